//! Operators as plain loops over dense row-major values, of any element type and rank.
//!
//! One file per family: each function reads one node and says what its template needs. Expressions
//! over one element are text ([`scalar`]); extents and strides are merged where they allow
//! ([`nest`]).

mod affine_grid;
mod arrange;
mod axes;
mod columns;
mod convolution;
mod copy;
mod crop;
mod determinant;
mod dropout;
mod einsum;
mod element;
mod elementwise;
mod gather;
mod generate;
mod grid_sample;
mod integer;
mod matmul;
mod nest;
mod node;
mod normalize;
mod pooling;
mod product;
mod quantize;
mod recurrent;
mod reduce;
mod region;
mod registry;
mod remap;
mod resize;
mod scalar;
mod scan;
mod scatter;
mod sliding;
mod softmax;
mod statistics;
mod top_k;
mod vector;
mod window;

pub(super) use convolution::fused as convolution;
pub(super) use matmul::fused as product;
pub(super) use registry::lower;
pub(super) use resize::nearest_pixels;
