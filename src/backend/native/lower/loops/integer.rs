//! Products of quantised numbers: `MatMulInteger`, `QLinearMatMul`, `ConvInteger`, `QLinearConv`.
//!
//! Sums are of i32. Those of the `QLinear` operators are scaled in f32, rounded to even and
//! saturated.

use serde_json::json;

use super::element;
use super::matmul::{Sums, facts};
use super::node::{Known, LoopNode};
use super::product::Product;
use super::window::Window;
use crate::backend::native::kernels::qmatmul_fits;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::{Affine, Kind, MatMul, Operation, Quantized};
use crate::graph::{DType, Tensor, TensorData};

/// Lowers a product of quantised numbers; `None` if it is none.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    let lowered = match node.node.op.as_str() {
        "MatMulInteger" => Operands::read(node, [0, 1], [Some(2), Some(3)], None)
            .and_then(|operands| matmul(&operands)),
        "QLinearMatMul" => Operands::read(node, [0, 3], [Some(2), Some(5)], Some([1, 4, 6, 7]))
            .and_then(|operands| matmul(&operands)),
        "ConvInteger" => Operands::read(node, [0, 1], [Some(2), Some(3)], None).and_then(conv),
        "QLinearConv" => {
            Operands::read(node, [0, 3], [Some(2), Some(5)], Some([1, 4, 6, 7])).and_then(conv)
        }
        _ => return None,
    };
    Some(lowered)
}

/// The operands of a product, and what is read beside them.
struct Operands<'n, 'a> {
    node: &'n LoopNode<'a>,
    /// All that the kernel reads: both factors first.
    inputs: Vec<Known<'a>>,
    /// Inputs of the kernel that hold the zero points of the factors.
    zeros: [Option<usize>; 2],
    /// Inputs of the kernel that hold the scales of the factors and of the result, and the zero
    /// point of the result.
    scales: Option<[usize; 4]>,
}

impl<'n, 'a> Operands<'n, 'a> {
    fn read(
        node: &'n LoopNode<'a>,
        factors: [usize; 2],
        zeros: [Option<usize>; 2],
        scales: Option<[usize; 4]>,
    ) -> Result<Self, NotCovered> {
        let mut inputs = vec![node.required(factors[0])?, node.required(factors[1])?];
        if let Some(factor) = inputs
            .iter()
            .find(|x| !matches!(x.dtype, DType::I8 | DType::U8))
        {
            return Err(node.refuse(format!("factors of {}", factor.dtype)));
        }
        let zeros = zeros.map(|zero| {
            inputs.push(node.input(zero?)?);
            Some(inputs.len() - 1)
        });
        let scales = match scales {
            None => None,
            Some(indices) => {
                let mut found = [0; 4];
                for (found, idx) in found.iter_mut().zip(indices) {
                    *found = inputs.len();
                    inputs.push(node.required(idx)?);
                }
                Some(found)
            }
        };
        Ok(Self {
            node,
            inputs,
            zeros,
            scales,
        })
    }

    /// Returns the expression of input `idx` at a place, `each` if it has more than one number.
    fn at(&self, idx: usize, each: &str, count: usize) -> Result<String, NotCovered> {
        let known = &self.inputs[idx];
        let place = match known.shape.len() {
            1 => "0",
            len if len == count && !each.is_empty() => each,
            _ => {
                let reason = format!("a scale or zero point of shape {}", known.shape);
                return Err(self.node.refuse(reason));
            }
        };
        let pointer = format!(
            "(x{idx} as *const {}).add({place})",
            element::storage(known.dtype)
        );
        Ok(element::load(known.dtype, &pointer))
    }

    /// Returns the zero point of a factor.
    fn zero(&self, factor: usize, each: &str, count: usize) -> Result<String, NotCovered> {
        match self.zeros[factor] {
            Some(idx) => Ok(format!("({} as i32)", self.at(idx, each, count)?)),
            None => Ok("0".to_owned()),
        }
    }

    /// Returns what is stored for the sum `s`.
    fn store(&self, each: [&str; 2], counts: [usize; 2]) -> Result<String, NotCovered> {
        let Some([x, w, y, zero]) = self.scales else {
            return Ok("s".to_owned());
        };
        let of_x = self.at(x, each[0], counts[0])?;
        let of_w = self.at(w, each[1], counts[1])?;
        let (of_y, zero) = (self.at(y, "", 1)?, self.at(zero, "", 1)?);
        let to = self.node.main_output()?.dtype;
        if !matches!(to, DType::I8 | DType::U8) {
            return Err(self.node.refuse(format!("results of {to}")));
        }
        Ok(format!(
            "(nearest(s as f32 * ({of_x} * {of_w} / {of_y})) + {zero} as f32) as {}",
            element::storage(to)
        ))
    }

    fn storage(&self) -> Vec<&'static str> {
        self.inputs
            .iter()
            .map(|input| element::storage(input.dtype))
            .collect()
    }
}

/// Returns the product of u8 by constant s8 weights around zero that there is a tuned kernel for.
fn tuned(node: &LoopNode<'_>) -> Option<Operation> {
    if node.node.op != "MatMulInteger" {
        return None;
    }
    let (x, w, y) = (node.input(0)?, node.input(1)?, node.output(0)?);
    let zero = node.input(2).filter(|zero| zero.data.is_none())?;
    let weights = signed(w.data?, node.input(3))?;
    let product = Product::of_matmul(x.dims(), w.dims())?;
    let [m, k, n] = product.extents;
    let is_one = w.dims().len() == 2 && product.batch.is_empty() && zero.shape.len() == 1;
    let is_byte = [x.dtype, zero.dtype] == [DType::U8; 2];
    if !is_one || !is_byte || !qmatmul_fits([k, n]) || x.data.is_some() {
        return None;
    }
    let matmul = MatMul {
        extents: product.extents,
        batch: product.batch,
        lhs: product.lhs,
        rhs: product.rhs,
        result: product.result,
        addend: None,
        alpha: 1.0,
        epilogue: Vec::new(),
        operands: vec![node.source(&x), node.source(&zero)],
        output: y.id,
        quantized: Some(Quantized {
            // What sums begin with is multiplied by the zero point when it is known.
            x: Affine {
                scale: 1.0,
                zero_point: 1,
            },
            weights,
            weight_scales: vec![1.0; n],
            y: None,
            residual: None,
            sums: true,
        }),
    };
    let name = format!("matmul {m}x{k}x{n}");
    Some(node.ctx.operation(name, Kind::MatMul(matmul), x.id, y.id))
}

/// Returns weights less their zero point, if it is that of s8 around zero.
fn signed(weights: &Tensor, zero: Option<Known<'_>>) -> Option<Vec<i8>> {
    let zeros = match zero {
        Some(zero) => zero.data?.to_i64()?,
        None => vec![0],
    };
    let is_all = |wanted: i64| zeros.iter().all(|&zero| zero == wanted);
    match weights.data() {
        TensorData::I8(data) if is_all(0) => Some(data.clone()),
        TensorData::U8(data) if is_all(128) => {
            Some(data.iter().map(|&v| (v ^ 0x80) as i8).collect())
        }
        _ => None,
    }
}

fn matmul(operands: &Operands<'_, '_>) -> Result<Vec<Operation>, NotCovered> {
    let (node, y) = (operands.node, operands.node.main_output()?);
    if let Some(operation) = tuned(node) {
        return Ok(vec![operation]);
    }
    let (lhs, rhs) = (operands.inputs[0], operands.inputs[1]);
    let product = Product::of_matmul(lhs.dims(), rhs.dims()).ok_or_else(|| {
        node.refuse(format!(
            "operands of shapes {} and {}",
            lhs.shape, rhs.shape
        ))
    })?;
    let [_, _, n] = product.extents;
    let rows = lhs.dims().iter().rev().nth(1).copied().unwrap_or(1);
    // Rows of several matrices may be the rows of one.
    let (row, rows) = (format!("m % {}", rows.max(1)), rows);
    let load = [
        format!("*x0.add(at) as i32 - {}", operands.zero(0, &row, rows)?),
        format!("*x1.add(at) as i32 - {}", operands.zero(1, "n", n)?),
    ];
    let sums = Sums {
        storage: operands.storage(),
        sum: "i32",
        load,
        result: element::storage(y.dtype),
        store: operands.store([&row, "n"], [rows, n])?,
    };
    let facts = facts(&product, &sums, false);
    Ok(vec![node.operation(
        "loops/product.rs.j2",
        facts,
        &operands.inputs,
        &[y],
        n * 4,
    )])
}

fn conv(mut operands: Operands<'_, '_>) -> Result<Vec<Operation>, NotCovered> {
    let (node, y) = (operands.node, operands.node.main_output()?);
    let (x, w) = (operands.inputs[0], operands.inputs[1]);
    let window = Window::of_conv(node, &x, &w, &y)?;
    let channels = w.dims()[0];
    let bias = match node.input(8).filter(|_| operands.scales.is_some()) {
        Some(bias) => {
            operands.inputs.push(bias);
            Some(format!("*x{}.add(oc)", operands.inputs.len() - 1))
        }
        None => None,
    };
    let facts = json!({
        "window": window.facts(), "storage": operands.storage(), "result": element::storage(y.dtype),
        "x_zero": operands.zero(0, "", 1)?, "w_zero": operands.zero(1, "oc", channels)?,
        "bias": bias, "store": operands.store(["", "oc"], [1, channels])?,
    });
    let room = window.row() * 4;
    Ok(vec![node.operation(
        "loops/integer_conv.rs.j2",
        facts,
        &operands.inputs,
        &[y],
        room,
    )])
}
