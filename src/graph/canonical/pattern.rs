//! What rules recognise values by: scalars, scaled values, clips.

use super::rule::View;
use crate::graph::{Attribute, Node, ValueId};

/// How many scalar factors a value is followed through.
const MAX_FACTORS: usize = 3;

impl View<'_> {
    /// Returns the element of an f32 constant that has just one.
    pub(super) fn scalar(&self, id: ValueId) -> Option<f32> {
        match self.graph.constant(id)?.as_f32()? {
            [value] => Some(*value),
            _ => None,
        }
    }

    /// Returns whether a node's output has the shape of a value.
    pub(super) fn keeps_shape(&self, node: &Node, id: ValueId) -> bool {
        node.output(0)
            .is_some_and(|output| self.graph.value(output).shape == self.graph.value(id).shape)
    }

    /// Splits a node with one scalar constant operand into the other operand and the scalar.
    ///
    /// For `Sub` and `Div` the constant must be on the right.
    pub(super) fn with_scalar(&self, node: &Node) -> Option<(ValueId, f32)> {
        let (lhs, rhs) = (node.input(0)?, node.input(1)?);
        let is_commutative = matches!(node.op.as_str(), "Add" | "Mul");
        let (value, scalar) = match (self.scalar(rhs), self.scalar(lhs)) {
            (Some(scalar), _) => (lhs, scalar),
            (None, Some(scalar)) if is_commutative => (rhs, scalar),
            _ => return None,
        };
        self.keeps_shape(node, value).then_some((value, scalar))
    }

    /// Returns the ways to see a value as a scalar times another value, itself times 1 first.
    pub(super) fn factors(&self, id: ValueId) -> Vec<(f32, ValueId)> {
        let mut seen = vec![(1.0, id)];
        let (mut factor, mut value) = (1.0, id);
        while seen.len() <= MAX_FACTORS {
            let Some(node) = self.producer(value).filter(|node| node.domain.is_empty()) else {
                break;
            };
            let Some((inner, scalar)) = self.with_scalar(node) else {
                break;
            };
            factor *= match node.op.as_str() {
                "Mul" => scalar,
                "Div" => 1.0 / scalar,
                _ => break,
            };
            value = inner;
            seen.push((factor, value));
        }
        seen
    }

    /// Returns whether `id` is `factor` times `of`.
    pub(super) fn is_scaled(&self, id: ValueId, factor: f32, of: ValueId) -> bool {
        self.factors(id)
            .iter()
            .any(|&(f, value)| value == of && is_close(f, factor))
    }

    /// Returns the ways to see a node's output as `scalar · lhs · rhs`, both orders.
    pub(super) fn products(&self, node: &Node) -> Vec<(f32, ValueId, ValueId)> {
        let Some(output) = node.output(0) else {
            return Vec::new();
        };
        if !matches!(node.op.as_str(), "Mul" | "Div") {
            return Vec::new();
        }
        let mut products = Vec::new();
        for (outer, core) in self.factors(output) {
            let Some(product) = self.producer(core).filter(|node| node.op == "Mul") else {
                continue;
            };
            let (Some(a), Some(b)) = (product.input(0), product.input(1)) else {
                continue;
            };
            if self.scalar(a).is_some() || self.scalar(b).is_some() {
                continue;
            }
            for (left, lhs) in self.factors(a) {
                for (right, rhs) in self.factors(b) {
                    products.push((outer * left * right, lhs, rhs));
                    products.push((outer * left * right, rhs, lhs));
                }
            }
        }
        products
    }

    /// Returns what a value is a scalar more than, and the scalar.
    pub(super) fn offset(&self, id: ValueId) -> Option<(ValueId, f32)> {
        let node = self.producer(id)?;
        let (value, scalar) = self.with_scalar(node)?;
        match node.op.as_str() {
            "Add" => Some((value, scalar)),
            "Sub" => Some((value, -scalar)),
            _ => None,
        }
    }

    /// Returns what a value clips to `low..=high`.
    pub(super) fn clipped(&self, id: ValueId, low: f32, high: f32) -> Option<ValueId> {
        let node = self.producer(id)?;
        let (min, max) = self.clip_bounds(node)?;
        (is_close(min, low) && is_close(max, high)).then(|| node.input(0))?
    }

    /// Returns the constant bounds of a `Clip`.
    pub(super) fn clip_bounds(&self, node: &Node) -> Option<(f32, f32)> {
        crate::graph::clip_bounds(self.graph, node)
    }

    /// Returns constant integers that moved from an attribute to input `idx`.
    pub(super) fn ints(&self, node: &Node, name: &str, idx: usize) -> Option<Vec<i64>> {
        if let Some(Attribute::Ints(values)) = node.attributes.get(name) {
            return Some(values.clone());
        }
        self.graph.constant(node.input(idx)?)?.to_i64()
    }
}

/// Returns whether two constants are one, written with different rounding.
pub(super) fn is_close(lhs: f32, rhs: f32) -> bool {
    lhs == rhs || (lhs - rhs).abs() <= 1e-5 * rhs.abs().max(lhs.abs())
}
