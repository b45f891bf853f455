//! `MatMul` and `Gemm`: of f32 with what follows them, of other types as plain loops.

use std::sync::Arc;

use serde_json::json;

use super::element;
use super::nest;
use super::node::{Known, LoopNode};
use super::product::Product;
use crate::backend::native::kernels::qmatmul_fits;
use crate::backend::native::lower::quantized::Operands;
use crate::backend::native::lower::subgraph::{Lowering, NotCovered};
use crate::backend::native::spec::{Kind, MatMul, Matrix, Operation, Quantized, Source};
use crate::graph::{DType, Node, NodeId, Tensor};

/// Lowers a product on its own; `None` if the node is none.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    if !matches!(node.node.op.as_str(), "MatMul" | "Gemm") {
        return None;
    }
    Some(lower_node(node))
}

fn lower_node(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    match node.main_output()?.dtype {
        DType::F32 => with_epilogue(node, None, &[]),
        DType::Bool => Err(node.refuse("booleans")),
        _ => plain(node),
    }
}

/// Lowers a product of f32, or of 8-bit integers if its subgraph begins with their conversions,
/// with the epilogue of its subgraph.
///
/// # Errors
/// [`NotCovered`] if something of it cannot be fused.
pub(in crate::backend::native::lower) fn fused(
    ctx: &Lowering<'_>,
    node: &Node,
) -> Result<Vec<Operation>, NotCovered> {
    let loop_node = LoopNode::new(ctx, node)?;
    if loop_node.main_output()?.dtype != DType::F32 {
        return Err(loop_node.refuse("operands that are not of f32"));
    }
    let integers = ctx.integer_operands(node);
    if integers.is_none() && !ctx.subgraph.prologue.is_empty() {
        return Err(loop_node.refuse("operators before it"));
    }
    with_epilogue(&loop_node, integers.as_ref(), &ctx.subgraph.epilogue)
}

/// A product as the node says it, and the operands.
struct Read<'a> {
    product: Product,
    lhs: Known<'a>,
    rhs: Known<'a>,
    addend: Option<Known<'a>>,
    alpha: f32,
    beta: f32,
}

fn read<'a>(node: &LoopNode<'a>) -> Result<Read<'a>, NotCovered> {
    let (lhs, rhs) = (node.required(0)?, node.required(1)?);
    let gemm = node.node.op == "Gemm";
    let product = if gemm {
        let transposed = ["transA", "transB"].map(|name| node.node.int(name, 0) != 0);
        Product::of_gemm(lhs.dims(), rhs.dims(), transposed)
    } else {
        Product::of_matmul(lhs.dims(), rhs.dims())
    };
    let product = product.ok_or_else(|| {
        node.refuse(format!(
            "operands of shapes {} and {}",
            lhs.shape, rhs.shape
        ))
    })?;
    let factor = |name: &str| {
        if gemm {
            node.node.float(name, 1.0)
        } else {
            1.0
        }
    };
    Ok(Read {
        product,
        lhs,
        rhs,
        addend: node.input(2).filter(|_| gemm),
        alpha: factor("alpha"),
        beta: factor("beta"),
    })
}

fn with_epilogue(
    node: &LoopNode<'_>,
    integers: Option<&Operands<'_>>,
    epilogue: &[NodeId],
) -> Result<Vec<Operation>, NotCovered> {
    let read = read(node)?;
    let ctx = node.ctx;
    let product = &read.product;
    let quantized = integers.map(|integers| weights(node, product, integers));
    let quantized = quantized.transpose()?;
    let mut operands = match integers {
        Some(integers) => vec![Source::Value(integers.x)],
        None => vec![node.source(&read.lhs), node.source(&read.rhs)],
    };
    let mut addend = None;
    let mut start = node.main_output()?.id;
    let mut rest = epilogue;
    if let Some(known) = read.addend.filter(|_| read.beta.to_bits() << 1 != 0) {
        addend = Some((product.addend(known.dims()), read.beta));
        operands.push(node.source(&known));
    } else if let Some((first, others)) = epilogue.split_first()
        && let Some(bias) = added_row(ctx, ctx.node(*first), product.extents[2])
    {
        let row = Matrix {
            row: 0,
            column: 1,
            batch: vec![0; product.batch.len()],
        };
        addend = Some((row, 1.0));
        operands.push(Source::Constant(bias));
        start = ctx.output(ctx.node(*first))?;
        rest = others;
    }
    // Alpha comes before the addend, so it must not be zero times infinity: it is a plain factor.
    let fused = ctx.fuse_bytes(start, rest, integers.is_some())?;
    if fused.pooled.is_some() {
        return Err(node.refuse("a pool follows it"));
    }
    operands.extend(fused.residual.map(|value| node.source(&node.known(value))));
    let output = fused.last.unwrap_or(start);
    let after = ctx.after(&fused.rest)?;
    let quantized = quantized.map(|quantized| fused.rounded(quantized));
    let [m, k, n] = product.extents;
    let matmul = MatMul {
        extents: product.extents,
        batch: product.batch.clone(),
        lhs: product.lhs.clone(),
        rhs: product.rhs.clone(),
        result: product.result.clone(),
        addend,
        alpha: read.alpha,
        epilogue: fused.steps,
        operands,
        output,
        quantized,
    };
    let x = if let Some(integers) = integers {
        integers.x
    } else if read.lhs.data.is_none() {
        read.lhs.id
    } else {
        read.rhs.id
    };
    let name = format!("matmul {m}x{k}x{n}");
    let main = ctx.operation(name, Kind::MatMul(matmul), x, output);
    Ok(std::iter::once(main)
        .chain(after)
        .chain(ctx.views(&fused.views))
        .collect())
}

/// Returns what the kernel of integers needs, weights by columns.
fn weights(
    node: &LoopNode<'_>,
    product: &Product,
    integers: &Operands<'_>,
) -> Result<Quantized, NotCovered> {
    let [_, k, n] = product.extents;
    let rank = node.required(1)?.shape.rank();
    if rank != 2 || !qmatmul_fits([k, n]) {
        return Err(node.refuse("rows of integers do not divide into vectors"));
    }
    let is_transposed = node.node.int("transA", 0) != 0;
    if is_transposed || !product.batch.is_empty() {
        return Err(node.refuse("rows of integers do not lie one after the other"));
    }
    let rhs = &product.rhs;
    let places = (0..k * n).map(|at| at / n * rhs.row + at % n * rhs.column);
    let weights = places.map(|place| integers.weights[place]).collect();
    let axis = usize::from(rhs.column == 1);
    integers.quantized(node.ctx, node.node, weights, (axis, n), 1.0)
}

/// Returns the constant of one number a column, or one for all, that a node adds.
fn added_row(ctx: &Lowering<'_>, node: &Node, n: usize) -> Option<Arc<Tensor>> {
    if node.op != "Add" {
        return None;
    }
    let given = node.inputs.iter().flatten();
    let value = given
        .copied()
        .find(|&id| ctx.graph.constant(id).is_some())?;
    let row = ctx.graph.constant(value)?.as_f32()?;
    let is_row = ctx.graph.value(value).shape.dims().last() == Some(&n) && row.len() == n;
    is_row.then(|| Arc::new(Tensor::from_f32(row.to_vec())))
}

/// Lowers a product of any type: one row of sums at a time.
fn plain(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let read = read(node)?;
    let y = node.main_output()?;
    let dtype = y.dtype;
    let mut inputs = vec![read.lhs, read.rhs];
    let rust = element::rust_type(dtype);
    let is_float = dtype.is_float();
    let scaled = |factor: f32, text: String| match (factor.to_bits() == 1f32.to_bits(), is_float) {
        (true, _) => text,
        (false, true) => format!("{text} * {}", element::float(factor.into(), dtype)),
        (false, false) => format!(
            "({text} as f64 * {}) as {rust}",
            element::float(factor.into(), DType::F64)
        ),
    };
    let mut value = scaled(read.alpha, "s".to_owned());
    if let Some(addend) = read.addend {
        let matrix = read.product.addend(addend.dims());
        let place = format!("x2.add(m * {} + n * {})", matrix.row, matrix.column);
        let added = scaled(read.beta, element::load(dtype, &place));
        value = if is_float {
            format!("{value} + {added}")
        } else {
            format!("({value}).wrapping_add({added})")
        };
        inputs.push(addend);
    }
    let facts = facts(
        &read.product,
        &Sums {
            storage: inputs
                .iter()
                .map(|input| element::storage(input.dtype))
                .collect(),
            sum: rust,
            load: [0, 1].map(|idx| element::load(dtype, &format!("x{idx}.add(at)"))),
            result: element::storage(dtype),
            store: format!(
                "{{ let v: {rust} = {value}; {} }}",
                element::store(dtype, "v")
            ),
        },
        is_float,
    );
    let room = read.product.extents[2] * element::bytes(rust);
    Ok(vec![node.operation(
        "loops/product.rs.j2",
        facts,
        &inputs,
        &[y],
        room,
    )])
}

/// What the template of plain products does with elements.
pub(super) struct Sums {
    /// Types of the operands in memory.
    pub(super) storage: Vec<&'static str>,
    /// The type of a sum.
    pub(super) sum: &'static str,
    /// A factor of the left and of the right operand, of index `at`; rows are `m`, columns `n`.
    pub(super) load: [String; 2],
    /// The type of the result in memory.
    pub(super) result: &'static str,
    /// What is stored for the sum `s` of row `m` and column `n`.
    pub(super) store: String,
}

/// Returns what the template of plain products reads.
pub(super) fn facts(product: &Product, sums: &Sums, is_float: bool) -> serde_json::Value {
    let [m, k, n] = product.extents;
    let place = |matrix: &Matrix, row: &str, column: &str| {
        let batch = nest::place(&matrix.batch);
        format!(
            "{batch} + {row} * {} + {column} * {}",
            matrix.row, matrix.column
        )
    };
    json!({
        "M": m, "K": k, "N": n, "batch": product.batch,
        "storage": sums.storage, "sum": sums.sum, "result": sums.result,
        "lhs_at": place(&product.lhs, "m", "k"),
        "rhs_at": place(&product.rhs, "k", "n"),
        "y_at": place(&product.result, "m", "n"),
        "lhs": sums.load[0], "rhs": sums.load[1], "store": sums.store,
        "is_float": is_float,
    })
}
