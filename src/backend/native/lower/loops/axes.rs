//! Axes that an operator goes over, and those that it keeps.

use super::nest;
use super::node::LoopNode;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::graph::from_front;

/// Loops over the axes that remain, and for each of their places over those that go.
///
/// At least one axis is in each; where the input's last axis goes, it is the last of `gone`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Axes {
    /// Extents and the input's strides of axes that remain; the output is dense over them.
    pub(super) kept: (Vec<usize>, Vec<usize>),
    /// Extents and the input's strides of axes that go.
    pub(super) gone: (Vec<usize>, Vec<usize>),
}

impl Axes {
    /// Sorts the axes of a dense value.
    pub(super) fn new(dims: &[usize], over: &[bool]) -> Self {
        let strides = nest::dense(dims);
        let part = |goes: bool| {
            let chosen = (0..dims.len()).filter(|&axis| over[axis] == goes);
            let (extents, strides): (Vec<usize>, Vec<usize>) =
                chosen.map(|axis| (dims[axis], strides[axis])).unzip();
            // The output is dense over what remains, so that the input alone says what merges.
            let (extents, mut strides) = nest::merge(&extents, &[strides]);
            (extents, strides.pop().unwrap_or_default())
        };
        Self {
            kept: part(false),
            gone: part(true),
        }
    }

    /// Returns how many elements become one.
    pub(super) fn count(&self) -> usize {
        self.gone.0.iter().product()
    }
}

/// Returns which axes an operator goes over: those of `axes`, an attribute or input 1; without any,
/// all or, if `noop_with_empty_axes` is set, none.
pub(super) fn over(node: &LoopNode<'_>, rank: usize) -> Result<Vec<bool>, NotCovered> {
    let given = match (node.node.ints("axes"), node.input(1)) {
        (Some(list), _) => list.to_vec(),
        (None, Some(input)) => input
            .data
            .and_then(crate::graph::Tensor::to_i64)
            .ok_or_else(|| node.refuse("its axes are not constant"))?,
        (None, None) => Vec::new(),
    };
    if given.is_empty() {
        return Ok(vec![node.node.int("noop_with_empty_axes", 0) == 0; rank]);
    }
    marked(node, &given, rank)
}

/// Marks the axes of a list.
pub(super) fn marked(
    node: &LoopNode<'_>,
    list: &[i64],
    rank: usize,
) -> Result<Vec<bool>, NotCovered> {
    let mut over = vec![false; rank];
    for &axis in list {
        let axis = from_front(axis, rank)
            .ok_or_else(|| node.refuse(format!("axis {axis} is out of range")))?;
        over[axis] = true;
    }
    Ok(over)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_axes_merge_on_both_sides() {
        let axes = Axes::new(&[2, 3, 4, 5], &[false, true, true, false]);
        assert_eq!(axes.kept, (vec![2, 5], vec![60, 1]));
        assert_eq!(axes.gone, (vec![12], vec![5]));
        assert_eq!(axes.count(), 12);
        let axes = Axes::new(&[2, 3], &[true, true]);
        assert_eq!(axes.kept, (vec![1], vec![0]));
        assert_eq!(axes.gone, (vec![6], vec![1]));
    }
}
