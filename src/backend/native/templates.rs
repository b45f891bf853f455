//! The shipped kernel templates.

/// Includes files below `templates/kernels` under their paths.
macro_rules! shipped {
    ($($name:literal,)*) => {
        &[$(($name, include_str!(concat!("../../../templates/kernels/", $name))),)*]
    };
}

/// The shipped templates by name.
pub const TEMPLATES: &[(&str, &str)] = shipped![
    "concat.rs.j2",
    "conv.rs.j2",
    "conv_width.rs.j2",
    "dense.rs.j2",
    "depthwise.rs.j2",
    "epilogue.j2",
    "isa/avx2.rs",
    "isa/avx512.rs",
    "isa/fma128.rs",
    "isa/neon.rs",
    "isa/portable.rs",
    "isa/sse4.rs",
    "loops/arg_reduce.rs.j2",
    "loops/batch_norm.rs.j2",
    "loops/columns.rs.j2",
    "loops/convolution.rs.j2",
    "loops/convolution_rows.rs.j2",
    "loops/copy.rs.j2",
    "loops/dynamic_quantize.rs.j2",
    "loops/einsum.rs.j2",
    "loops/elementwise.rs.j2",
    "loops/gather.rs.j2",
    "loops/generate.rs.j2",
    "loops/grid_sample.rs.j2",
    "loops/integer_conv.rs.j2",
    "loops/lrn.rs.j2",
    "loops/nearest.rs.j2",
    "loops/normalize.rs.j2",
    "loops/normalize_axes.rs.j2",
    "loops/normalize_rows.rs.j2",
    "loops/pooling.rs.j2",
    "loops/prelude.rs",
    "loops/product.rs.j2",
    "loops/quantize.rs.j2",
    "loops/reduce.rs.j2",
    "loops/remap.rs.j2",
    "loops/resize.rs.j2",
    "loops/scan.rs.j2",
    "loops/scatter.rs.j2",
    "loops/softmax.rs.j2",
    "loops/softmax_columns.rs.j2",
    "loops/softmax_rows.rs.j2",
    "loops/top_k.rs.j2",
    "loops/unpool.rs.j2",
    "map.rs.j2",
    "matmul.rs.j2",
    "parts.rs.j2",
    "pool.rs.j2",
    "reorder.rs.j2",
    "resample.rs.j2",
    "vector_math.rs",
];
