//! Anchors with weights or windows.

use super::subgraph::{Lowering, NotCovered};
use crate::backend::native::kernels::qmatmul_fits;
use crate::backend::native::layout::{dims4, is_flat};
use crate::backend::native::spec::{Affine, Conv, Dense, Kind, Operation, Pool};
use crate::graph::{DType, Node, ValueId};

type Lowered = Result<Vec<Operation>, NotCovered>;

/// Lowers `Conv` with its prologue and epilogue.
pub(super) fn convolution(ctx: &Lowering<'_>, node: &Node) -> Lowered {
    let conv_input = ctx.activation(node, 0)?;
    let integers = ctx.integer_operands(node);
    let (x, scale) = match (ctx.subgraph.prologue.as_slice(), &integers) {
        (_, Some(integers)) => (integers.x, None),
        ([], None) => (conv_input, None),
        ([mul], None) => {
            let mul = ctx.node(*mul);
            let (lhs, rhs) = (ctx.activation(mul, 0)?, ctx.activation(mul, 1)?);
            let full =
                |value: ValueId| ctx.graph.value(value).shape == ctx.graph.value(conv_input).shape;
            if full(lhs) {
                (lhs, Some(rhs))
            } else {
                (rhs, Some(lhs))
            }
        }
        _ => return Err(ctx.not_covered(node, "its prologue has several operators")),
    };
    let result = ctx.output(node)?;
    require_f32(ctx, node, &[conv_input, result])?;
    let weight_shape = node
        .input(1)
        .map(|value| ctx.graph.value(value).shape.clone())
        .ok_or_else(|| ctx.not_covered(node, "it has no weights"))?;
    if weight_shape.rank() > 4 {
        return Err(ctx.not_covered(node, "more than two spatial axes"));
    }
    let weights = match &integers {
        Some(_) => Vec::new(),
        None => ctx.weights(node, 1)?.to_vec(),
    };
    let [n, ic, ih, iw] = dims4(&ctx.graph.value(x).shape);
    let [_, oc, oh, ow] = dims4(&ctx.graph.value(result).shape);
    let [_, _, kh, kw] = dims4(&weight_shape);
    let (stride, dilation) = (two(node, "strides", [1, 1]), two(node, "dilations", [1, 1]));
    let pad = pads(node, [ih, iw], [oh, ow], [kh, kw], stride, dilation);
    let bias = match node.input(2) {
        Some(_) => ctx.weights(node, 2)?.to_vec(),
        None => vec![0.0; oc],
    };
    let fused = ctx.fuse_bytes(result, &ctx.subgraph.epilogue, integers.is_some())?;
    let y = fused.last.unwrap_or(result);
    let groups = node.int("group", 1) as usize;
    let quantized = integers.map(|integers| {
        let weights = integers.weights.to_vec();
        integers.quantized(ctx, node, weights, (0, oc), 1.0)
    });
    let quantized = quantized.transpose()?.map(|given| fused.rounded(given));
    let rest = ctx.after(&fused.rest)?;
    let is_pixel = is_flat([n, ic, ih, iw]) && kh * kw == 1 && groups == 1;
    if is_pixel && scale.is_none() {
        let dense = Dense {
            n,
            k: ic,
            m: oc,
            epilogue: fused.steps.clone(),
            weights,
            bias,
            residual: fused.residual,
            quantized,
        };
        let mut operations =
            vec![ctx.operation(format!("dense {ic}→{oc}"), Kind::Dense(dense), x, y)];
        if let Some(pooled) = fused.pooled {
            operations.push(ctx.operation("view".to_owned(), Kind::Alias, y, pooled));
        }
        operations.extend(rest);
        operations.extend(ctx.views(&fused.views));
        return Ok(operations);
    }
    let views = fused.views.clone();
    let conv = Conv {
        n,
        groups,
        input: [ic, ih, iw],
        output: [oc, oh, ow],
        kernel: [kh, kw],
        stride,
        dilation,
        pad,
        stored: ctx.subgraph.outputs.contains(&y) || fused.pooled.is_none(),
        epilogue: fused.steps,
        weights,
        bias,
        residual: fused.residual,
        scale,
        pooled: fused.pooled,
        quantized,
    };
    let name = format!("conv {kh}x{kw} {ic}→{oc} g{groups}");
    let kind = if conv.is_depthwise() && conv.scale.is_none() {
        Kind::Depthwise(conv)
    } else {
        Kind::Conv(conv)
    };
    let main = ctx.operation(name, kind, x, y);
    let views = ctx.views(&views);
    Ok(std::iter::once(main).chain(rest).chain(views).collect())
}

/// Returns an attribute of one or two axes, the default where it has none.
fn two(node: &Node, name: &str, default: [usize; 2]) -> [usize; 2] {
    match node.ints(name) {
        Some([a, b]) => [*a as usize, *b as usize],
        Some([b]) => [default[0], *b as usize],
        _ => default,
    }
}

/// Returns the padding above and to the left.
fn pads(
    node: &Node,
    input: [usize; 2],
    output: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
) -> [usize; 2] {
    let total = |axis: usize| {
        ((output[axis] - 1) * stride[axis] + (kernel[axis] - 1) * dilation[axis] + 1)
            .saturating_sub(input[axis])
    };
    match node.string("auto_pad", "NOTSET") {
        "SAME_UPPER" => [total(0) / 2, total(1) / 2],
        "SAME_LOWER" => [total(0).div_ceil(2), total(1).div_ceil(2)],
        "VALID" => [0, 0],
        _ => match node.ints("pads") {
            Some([top, left, _, _]) => [*top as usize, *left as usize],
            Some([left, _]) => [0, *left as usize],
            _ => [0, 0],
        },
    }
}

/// Rows up to which every weight is read anew for each row.
const FEW_ROWS: usize = 4;

/// Lowers `Gemm` and `MatMul` with constant weights and few rows, or of integers whose rows do not
/// divide into vectors.
pub(super) fn fully_connected(ctx: &Lowering<'_>, node: &Node) -> Lowered {
    let input = ctx.activation(node, 0)?;
    let result = ctx.output(node)?;
    require_f32(ctx, node, &[input, result])?;
    let integers = ctx.integer_operands(node);
    let x = integers.as_ref().map_or(input, |integers| integers.x);
    let gemm = node.op == "Gemm";
    if gemm && node.int("transA", 0) != 0 {
        return Err(ctx.not_covered(node, "transA"));
    }
    let shape = &ctx.graph.value(x).shape;
    let output_shape = &ctx.graph.value(result).shape;
    let (&[n, k], &[_, m]) = (shape.dims(), output_shape.dims()) else {
        return Err(ctx.not_covered(node, format!("input of shape {shape}")));
    };
    let is_product = integers.is_none() || qmatmul_fits([k, m]);
    if n > FEW_ROWS && is_product {
        return Err(ctx.not_covered(node, "more rows than weights pay for"));
    }
    let scale = if gemm { node.float("alpha", 1.0) } else { 1.0 };
    let transposed = gemm && node.int("transB", 0) != 0;
    let places = (0..m * k).map(|i| if transposed { i } else { i % k * m + i / k });
    let (weights, quantized) = match &integers {
        Some(integers) => {
            let weights = places.map(|place| integers.weights[place]).collect();
            let axis = usize::from(!transposed);
            let quantized = integers.quantized(ctx, node, weights, (axis, m), scale)?;
            (Vec::new(), Some(quantized))
        }
        None if ctx.subgraph.prologue.is_empty() => {
            let given = ctx.weights(node, 1)?;
            (places.map(|place| scale * given[place]).collect(), None)
        }
        None => return Err(ctx.not_covered(node, "operators before it")),
    };
    let bias = if !gemm || node.input(2).is_none() {
        vec![0.0; m]
    } else {
        let beta = node.float("beta", 1.0);
        match ctx.weights(node, 2)? {
            [one] => vec![beta * one; m],
            many if many.len() == m => many.iter().map(|v| beta * v).collect(),
            _ => return Err(ctx.not_covered(node, "a bias that differs between rows")),
        }
    };
    let (bias, epilogue) = match added_bias(ctx, node, m) {
        Some(added) => (added, &ctx.subgraph.epilogue[1..]),
        None => (bias, ctx.subgraph.epilogue.as_slice()),
    };
    let start = match ctx.subgraph.epilogue.len() - epilogue.len() {
        0 => result,
        _ => ctx.output(ctx.node(ctx.subgraph.epilogue[0]))?,
    };
    let fused = ctx.fuse_bytes(start, epilogue, quantized.is_some())?;
    let y = fused.last.unwrap_or(start);
    let rest = ctx.after(&fused.rest)?;
    let quantized = quantized.map(|quantized| fused.rounded(quantized));
    let dense = Dense {
        n,
        k,
        m,
        epilogue: fused.steps,
        weights,
        bias,
        residual: fused.residual,
        quantized,
    };
    let main = ctx.operation(format!("dense {k}→{m}"), Kind::Dense(dense), x, y);
    Ok(std::iter::once(main)
        .chain(rest)
        .chain(ctx.views(&fused.views))
        .collect())
}

/// Returns the constant that is added to a `MatMul` right after it, one number an output.
fn added_bias(ctx: &Lowering<'_>, node: &Node, m: usize) -> Option<Vec<f32>> {
    let add = ctx.node(*ctx.subgraph.epilogue.first()?);
    if node.op != "MatMul" || add.op != "Add" {
        return None;
    }
    let constant = add
        .inputs
        .iter()
        .flatten()
        .find_map(|&value| ctx.graph.constant(value))?;
    let is_row = constant.shape().dims().last() == Some(&m) && constant.shape().len() == m;
    constant
        .as_f32()
        .filter(|_| is_row && m > 1)
        .map(<[f32]>::to_vec)
}

/// Lowers pooling over two spatial axes.
pub(super) fn pooling(ctx: &Lowering<'_>, node: &Node) -> Lowered {
    let input = ctx.activation(node, 0)?;
    let result = ctx.output(node)?;
    let dtype = |id| ctx.graph.value(id).dtype;
    let maximum = !node.op.ends_with("AveragePool");
    let (x, read) = match ctx.subgraph.prologue.as_slice() {
        [] if maximum && [dtype(input), dtype(result)] == [DType::U8; 2] => (input, Some(BYTES)),
        [] => (input, None),
        [first] => match ctx.dequantized(ctx.node(*first)) {
            Some((from, affine)) => (from, Some(affine)),
            None => return Err(ctx.not_covered(node, "operators before it")),
        },
        _ => return Err(ctx.not_covered(node, "operators before it")),
    };
    if read != Some(BYTES) {
        require_f32(ctx, node, &[input, result])?;
    }
    if node.outputs.iter().skip(1).any(Option::is_some) {
        return Err(ctx.not_covered(node, "the output of indices"));
    }
    if ctx.graph.value(x).shape.rank() > 4 {
        return Err(ctx.not_covered(node, "more than two spatial axes"));
    }
    let [_, _, ih, iw] = dims4(&ctx.graph.value(x).shape);
    let [_, _, oh, ow] = dims4(&ctx.graph.value(result).shape);
    let global = node.op.starts_with("Global");
    let kernel = if global {
        [ih, iw]
    } else {
        two(node, "kernel_shape", [1, 1])
    };
    let (stride, dilation) = (two(node, "strides", [1, 1]), two(node, "dilations", [1, 1]));
    let begin = pads(node, [ih, iw], [oh, ow], kernel, stride, dilation);
    let end = match node.ints("pads") {
        Some([_, _, bottom, right]) => [*bottom as usize, *right as usize],
        Some([_, right]) => [0, *right as usize],
        _ => [0, 0],
    };
    let is_number = dtype(result) == DType::F32;
    let fused = if is_number {
        ctx.fuse_bytes(result, &ctx.subgraph.epilogue, true)?
    } else {
        ctx.fuse(result, &ctx.subgraph.epilogue)?
    };
    if fused.residual.is_some() {
        return Err(ctx.not_covered(node, "another value in its epilogue"));
    }
    let rest = ctx.after(&fused.rest)?;
    let pool = Pool {
        average: !maximum,
        count_pad: node.int("count_include_pad", 0) != 0,
        kernel,
        stride,
        dilation,
        pad: [begin[0], begin[1], end[0], end[1]],
        epilogue: fused.steps,
        bytes: [read, fused.rounds.or(read.filter(|_| !is_number))],
    };
    let name = format!("{} {}x{}", node.op, kernel[0], kernel[1]);
    let y = fused.last.unwrap_or(result);
    let main = ctx.operation(name, Kind::Pool(pool), x, y);
    Ok(std::iter::once(main)
        .chain(rest)
        .chain(ctx.views(&fused.views))
        .collect())
}

/// Lowers operators that only change the shape.
pub(super) fn alias(ctx: &Lowering<'_>, node: &Node) -> Lowered {
    let x = ctx.activation(node, 0)?;
    let y = ctx.output(node)?;
    require_moved(ctx, node, &[x, y])?;
    if !ctx.subgraph.epilogue.is_empty() {
        return Err(ctx.not_covered(node, "operators fused after it"));
    }
    Ok(vec![ctx.operation(node.op.clone(), Kind::Alias, x, y)])
}

/// How integers that are only compared are read and written.
const BYTES: Affine = Affine {
    scale: 1.0,
    zero_point: 0,
};

/// Refuses values that kernels which move elements do not hold: other than f32 and u8.
pub(super) fn require_moved(
    ctx: &Lowering<'_>,
    node: &Node,
    values: &[ValueId],
) -> Result<(), NotCovered> {
    let is_u8 = |&id: &ValueId| ctx.graph.value(id).dtype == DType::U8;
    if values.iter().all(is_u8) {
        Ok(())
    } else {
        require_f32(ctx, node, values)
    }
}

pub(super) fn require_f32(
    ctx: &Lowering<'_>,
    node: &Node,
    values: &[ValueId],
) -> Result<(), NotCovered> {
    match values
        .iter()
        .map(|&value| ctx.graph.value(value).dtype)
        .find(|&d| d != DType::F32)
    {
        None => Ok(()),
        Some(dtype) => Err(ctx.not_covered(node, format!("values of {dtype}"))),
    }
}
