//! Operators that are applied to results before they are stored.

use super::subgraph::{Lowering, NotCovered};
use crate::backend::native::spec::{Affine, Epilogue, Quantized, literal};
use crate::graph::{Attribute, Node, NodeId, ValueId};

/// Returns whether an operator only changes the shape.
pub(super) fn is_view(op: &str) -> bool {
    matches!(
        op,
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Identity"
    )
}

/// Returns whether an operator converts from or to integers of a scale.
pub(super) fn is_conversion(op: &str) -> bool {
    matches!(op, "QuantizeLinear" | "DequantizeLinear")
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
    /// How the other operand is read if it is u8.
    pub(super) residual_bytes: Option<Affine>,
    /// How the last value is rounded if it is u8.
    pub(super) rounds: Option<Affine>,
    /// What has to be computed after that.
    pub(super) rest: Vec<NodeId>,
}

impl Fused {
    /// Says how a layer of integers reads the other operand and rounds its results.
    pub(super) fn rounded(&self, quantized: Quantized) -> Quantized {
        Quantized {
            y: self.rounds,
            residual: self.residual_bytes,
            ..quantized
        }
    }
}

impl Lowering<'_> {
    /// Reads the epilogue nodes that follow `start`, all of which must be of f32.
    pub(super) fn fuse(&self, start: ValueId, nodes: &[NodeId]) -> Result<Fused, NotCovered> {
        let fused = self.fuse_bytes(start, nodes, false)?;
        match fused.rest.first() {
            None => Ok(fused),
            Some(&id) => Err(self.not_covered(self.node(id), "its kernel is of f32")),
        }
    }

    /// Reads the epilogue nodes that follow `start`. A kernel that rounds to u8 takes them until
    /// one of them needs a kernel of its own; others leave conversions and what follows them.
    pub(super) fn fuse_bytes(
        &self,
        start: ValueId,
        nodes: &[NodeId],
        rounds: bool,
    ) -> Result<Fused, NotCovered> {
        let mut bytes = None;
        let mut skipped = None;
        let mut fused = Fused {
            last: Some(start),
            ..Fused::default()
        };
        let mut current = start;
        for (idx, &id) in nodes.iter().enumerate() {
            let node = self.node(id);
            if skipped == Some(id) {
                continue;
            }
            if is_conversion(&node.op) {
                let next = nodes.get(idx + 1).map(|&next| (next, self.node(next)));
                if let Some((to, affine)) = self.quantized(node).filter(|_| rounds) {
                    let goes_on = fused.residual.is_none()
                        && !self.subgraph.outputs.contains(&to)
                        && !self.reads_numbers(&nodes[idx + 1..])
                        && self.table(&nodes[idx + 1..]).is_none();
                    if let Some((next, dequantizer)) = next
                        && self
                            .dequantized(dequantizer)
                            .is_some_and(|(from, _)| from == to)
                        && goes_on
                    {
                        fused.steps.push(affine.requantize());
                        skipped = Some(next);
                        current = self.output(dequantizer)?;
                        continue;
                    }
                    fused.rounds = Some(affine);
                    fused.rest = nodes[idx + 1..].to_vec();
                    current = to;
                    break;
                }
                // The other operand of what follows.
                if let Some((from, affine)) = self.dequantized(node).filter(|_| rounds) {
                    bytes = Some((self.output(node)?, from, affine));
                    continue;
                }
                fused.rest = nodes[idx..].to_vec();
                break;
            }
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
                        let read = bytes.filter(|(real, ..)| *real == other);
                        fused.residual = Some(read.map_or(other, |(_, from, _)| from));
                        fused.residual_bytes = read.map(|(.., affine)| affine);
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

    /// Returns whether the first operator after conversions reads a constant of several numbers,
    /// such as one a column: no epilogue does.
    fn reads_numbers(&self, nodes: &[NodeId]) -> bool {
        let mut nodes = nodes.iter().map(|&id| self.node(id));
        let next = nodes.find(|node| !is_conversion(&node.op));
        let is_many = |&id: &ValueId| {
            let constant = self.graph.constant(id);
            constant.is_some_and(|numbers| numbers.shape().len() != 1)
        };
        next.is_some_and(|node| node.inputs.iter().flatten().any(is_many))
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
