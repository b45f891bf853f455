//! Operators that are applied to results before they are stored.

use super::subgraph::{Lowering, NotCovered};
use crate::backend::native::spec::{Epilogue, literal};
use crate::graph::{Attribute, Node, NodeId, ValueId};

/// Returns whether an operator only changes the shape.
pub(super) fn is_view(op: &str) -> bool {
    matches!(
        op,
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Identity"
    )
}

/// An epilogue as far as it has been read.
#[derive(Debug, Default)]
pub(super) struct Fused {
    /// The operators.
    pub(super) steps: Vec<Epilogue>,
    /// The other operand of the one that has one.
    pub(super) residual: Option<ValueId>,
    /// The value that the last of them gives.
    pub(super) last: Option<ValueId>,
    /// The output of a global average pool over that value.
    pub(super) pooled: Option<ValueId>,
    /// Values that are another one under another shape, which ends the epilogue.
    pub(super) views: Vec<(ValueId, ValueId)>,
}

impl Lowering<'_> {
    /// Reads the epilogue nodes that follow `start`.
    pub(super) fn fuse(&self, start: ValueId, nodes: &[NodeId]) -> Result<Fused, NotCovered> {
        let mut fused = Fused {
            last: Some(start),
            ..Fused::default()
        };
        let mut current = start;
        for &id in nodes {
            let node = self.node(id);
            if is_view(&node.op) {
                fused
                    .views
                    .push((self.activation(node, 0)?, self.output(node)?));
                continue;
            }
            if !fused.views.is_empty() {
                return Err(self.not_covered(node, "it follows a change of shape"));
            }
            if node.op == "GlobalAveragePool" {
                fused.pooled = Some(self.output(node)?);
                continue;
            }
            if let Some(step) = self.unary(node) {
                fused.steps.push(step);
            } else if let Some(step) = self.with_constant(node, current) {
                fused.steps.push(step);
            } else {
                let other = node
                    .inputs
                    .iter()
                    .flatten()
                    .copied()
                    .find(|&v| v != current);
                let same_shape = |value: ValueId| {
                    self.graph.value(value).shape == self.graph.value(current).shape
                };
                match (node.op.as_str(), other) {
                    (op @ ("Add" | "Mul"), Some(other))
                        if fused.residual.is_none() && same_shape(other) =>
                    {
                        fused.residual = Some(other);
                        fused.steps.push(match op {
                            "Add" => Epilogue::AddTensor,
                            _ => Epilogue::MulTensor,
                        });
                    }
                    _ => return Err(self.not_covered(node, "it cannot follow a fused kernel")),
                }
            }
            current = self.output(node)?;
        }
        fused.last = Some(current);
        Ok(fused)
    }

    /// Returns what an operator of one operand does to a vector.
    pub(super) fn unary(&self, node: &Node) -> Option<Epilogue> {
        let float = |name: &str, default: f32| literal(node.float(name, default));
        Some(match node.op.as_str() {
            "Relu" => Epilogue::Relu,
            "LeakyRelu" => Epilogue::LeakyRelu {
                alpha: float("alpha", 0.01),
            },
            "Clip" => {
                let bound = |idx: usize, name: &str, default: f32| match node.input(idx) {
                    Some(value) => self.scalar(value),
                    None => match node.attributes.get(name) {
                        Some(Attribute::Float(value)) => Some(*value),
                        _ => Some(default),
                    },
                };
                Epilogue::Clip {
                    low: literal(bound(1, "min", f32::NEG_INFINITY)?),
                    high: literal(bound(2, "max", f32::INFINITY)?),
                }
            }
            "HardSigmoid" => Epilogue::HardSigmoid {
                alpha: float("alpha", 0.2),
                beta: float("beta", 0.5),
            },
            "HardSwish" => Epilogue::HardSwish,
            "Sigmoid" => Epilogue::Sigmoid,
            "Silu" | "Swish" if node.float("alpha", 1.0).to_bits() == 1f32.to_bits() => {
                Epilogue::Silu
            }
            "Tanh" => Epilogue::Tanh,
            "Exp" => Epilogue::Exp,
            "Neg" => Epilogue::Neg,
            "Elu" => Epilogue::Elu {
                alpha: float("alpha", 1.0),
            },
            "Gelu" => match node.string("approximate", "none") {
                "tanh" => Epilogue::GeluTanh,
                _ => Epilogue::GeluErf,
            },
            _ => return None,
        })
    }

    /// Returns what a binary operator with a constant number does to `current`.
    pub(super) fn with_constant(&self, node: &Node, current: ValueId) -> Option<Epilogue> {
        let (lhs, rhs) = (node.input(0)?, node.input(1)?);
        let (constant, current_first) = match (lhs == current, rhs == current) {
            (true, false) => (self.scalar(rhs)?, true),
            (false, true) => (self.scalar(lhs)?, false),
            _ => return None,
        };
        let value = literal(constant);
        Some(match (node.op.as_str(), current_first) {
            ("Add", _) => Epilogue::AddConst { value },
            ("Mul", _) => Epilogue::MulConst { value },
            ("Sub", true) => Epilogue::AddConst {
                value: literal(-constant),
            },
            ("Sub", false) => Epilogue::RsubConst { value },
            ("Div", true) => Epilogue::DivConst { value },
            ("Div", false) => Epilogue::RdivConst { value },
            _ => return None,
        })
    }

    /// Returns the number of a constant with one element.
    fn scalar(&self, value: ValueId) -> Option<f32> {
        match self.graph.constant(value)?.as_f32()? {
            [number] => Some(*number),
            _ => None,
        }
    }
}
