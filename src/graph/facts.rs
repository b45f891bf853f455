//! Readings of single nodes that several parts need.

use super::{Attribute, DType, Graph, Node, Tensor, TensorData, ValueId};

/// Returns the constant bounds of a `Clip`, infinite where left out; `None` if they are computed
/// or the node is no `Clip` of f32.
///
/// Bounds are attributes before operator set 11 and inputs from then on.
pub fn clip_bounds(graph: &Graph, node: &Node) -> Option<(f32, f32)> {
    if node.op != "Clip" {
        return None;
    }
    let bound = |name: &str, idx: usize, default: f32| {
        if let Some(Attribute::Float(value)) = node.attributes.get(name) {
            return Some(*value);
        }
        match node.input(idx) {
            None => Some(default),
            Some(id) => scalar(graph, id),
        }
    };
    Some((
        bound("min", 1, f32::NEG_INFINITY)?,
        bound("max", 2, f32::INFINITY)?,
    ))
}

/// Counts an axis or an index from the front, negative ones from the end; `None` if it is not below
/// `size`.
pub fn from_front(index: i64, size: usize) -> Option<usize> {
    let index = if index < 0 {
        index.checked_add(size as i64)?
    } else {
        index
    };
    usize::try_from(index).ok().filter(|&index| index < size)
}

/// Returns the element of an f32 constant that has just one.
pub fn scalar(graph: &Graph, id: ValueId) -> Option<f32> {
    match graph.constant(id)?.as_f32()? {
        [value] => Some(*value),
        _ => None,
    }
}

/// Returns the scale and the zero point of a `QuantizeLinear` or `DequantizeLinear` between f32 and
/// 8-bit integers that has one of each, both constant.
pub fn affine(graph: &Graph, node: &Node) -> Option<(f32, i32)> {
    let (float, integer) = match node.op.as_str() {
        "QuantizeLinear" => (node.input(0)?, node.output(0)?),
        "DequantizeLinear" => (node.output(0)?, node.input(0)?),
        _ => return None,
    };
    let integer = graph.value(integer).dtype;
    let is_plain = node.domain.is_empty()
        && node.int("block_size", 0) == 0
        && node.int("precision", 1) == 1
        && graph.value(float).dtype == DType::F32
        && matches!(integer, DType::U8 | DType::I8);
    let scale = scalar(graph, node.input(1)?).filter(|scale| is_plain && scale.is_normal())?;
    let zero = match node.input(2) {
        None => 0,
        Some(id) => match graph.constant(id)?.to_i64()?.as_slice() {
            [zero] => *zero as i32,
            _ => return None,
        },
    };
    (scale > 0.0).then_some((scale, zero))
}

/// Returns whether a `DequantizeLinear` makes f32 weights of constant 8-bit integers around zero, in
/// which zero is 0 for i8 and 128 for u8, with one scale or one for each index along an axis.
pub fn is_symmetric(graph: &Graph, node: &Node) -> bool {
    let constant = |idx| graph.constant(node.input(idx)?);
    let (Some(weights), Some(scales)) = (constant(0), constant(1)) else {
        return false;
    };
    let middle = match weights.dtype() {
        DType::I8 => 0,
        DType::U8 => 128,
        _ => return false,
    };
    let zeros = match node.input(2) {
        None => Some(vec![0]),
        Some(_) => constant(2).and_then(Tensor::to_i64),
    };
    node.int("block_size", 0) == 0
        && node.domain.is_empty()
        && matches!(scales.data(), TensorData::F32(_))
        && node.output(0).is_some()
        && zeros.is_some_and(|zeros| zeros.iter().all(|&zero| zero == middle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_count_from_both_ends() {
        assert_eq!(from_front(-1, 3), Some(2));
        assert_eq!(from_front(2, 3), Some(2));
        assert_eq!(from_front(3, 3), None);
        assert_eq!(from_front(-4, 3), None);
    }
}
