//! From decoded messages to a [`Graph`] at static shapes, constants folded.
//!
//! Nodes are taken in topological order, so that each one knows its inputs: outputs that depend on
//! constants and shapes alone become constants at once, everything else gets a type and a shape by
//! rule. A value without elements is a constant, whatever makes it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::attribute;
use super::draft::{Draft, check_size};
use super::error::Problem;
use super::evaluate::Evaluator;
use super::exact::filled;
use super::fold::{facts, fold, keeps_weights, quantized_weights};
use super::inputs;
use super::load::LoadOptions;
use super::proto;
use super::simplify;
use super::sort::{sorted, title};
use super::tensor::{TensorReader, type_name};
use crate::graph::{Attribute, DType, Fact, Graph, Node, Shape, Tensor, TensorData, ValueId};

/// Most bytes that constants may be folded to in all: few bytes of a file can ask for many.
const MAX_FOLDED_BYTES: usize = 1 << 30;

/// Builds the graph of a model; nodes and values keep their names.
pub(super) fn build(
    model: &proto::Graph<'_>,
    opset: i64,
    tensors: &TensorReader,
    options: &LoadOptions,
) -> Result<Graph, Problem> {
    let mut builder = Builder {
        draft: Draft::new(model.name, opset),
        tensors,
        evaluator: Evaluator::default(),
        n_folded_bytes: 0,
        weights: quantized_weights(model),
    };
    builder.initializers(model)?;
    builder.inputs(model, options)?;
    for node in sorted(model)? {
        builder.node(node)?;
    }
    for output in &model.outputs {
        let id = builder.draft.lookup(output.name, "the model's outputs")?;
        if builder.draft.graph.outputs.contains(&id) {
            return Err(Problem::Duplicate(output.name.to_owned()));
        }
        builder.draft.graph.outputs.push(id);
    }
    let graph = builder.draft.graph;
    // With nothing in, nothing to do and nothing out, a model was given a wrong shape.
    let empty = |name: &str| {
        let value = graph.values.iter().find(|value| value.name == name)?;
        value.shape.is_empty().then_some(value)
    };
    let given = model.inputs.iter().find_map(|input| empty(input.name));
    let is_made = |id: &ValueId| graph.value(*id).shape.is_empty();
    match given {
        Some(value) if graph.nodes.is_empty() && graph.outputs.iter().any(is_made) => {
            Err(simplify::zero_sized(&value.name, value.shape.clone()))
        }
        _ => Ok(graph),
    }
}

/// Turns nodes into nodes.
pub(super) struct Builder<'a> {
    /// The graph so far.
    pub(super) draft: Draft,
    tensors: &'a TensorReader,
    evaluator: Evaluator,
    /// Size of all constants that nodes were folded to.
    n_folded_bytes: usize,
    /// Names of values that stay quantised, see [`quantized_weights`].
    weights: BTreeSet<&'a str>,
}

impl Builder<'_> {
    /// Defines the constants of a graph.
    pub(super) fn initializers(&mut self, model: &proto::Graph<'_>) -> Result<(), Problem> {
        if let Some(name) = model.sparse {
            return Err(Problem::Tensor {
                tensor: name.to_owned(),
                detail: "it is sparse, which is not supported".to_owned(),
            });
        }
        for tensor in &model.initializers {
            let data = self.tensors.read(tensor.name, tensor)?;
            self.draft.define_constant(tensor.name, Arc::new(data))?;
        }
        Ok(())
    }

    fn inputs(&mut self, model: &proto::Graph<'_>, options: &LoadOptions) -> Result<(), Problem> {
        let mut open = Vec::new();
        for input in &model.inputs {
            // Old files list initializers among the inputs.
            if !self.draft.knows(input.name) {
                open.push(input);
            }
        }
        inputs::check_names(&open, &options.input_shapes)?;
        for input in open {
            let configured = options.input_shapes.get(input.name).map(Vec::as_slice);
            let dtype =
                DType::from_onnx(input.data_type).ok_or_else(|| Problem::UnsupportedType {
                    value: input.name.to_owned(),
                    dtype: type_name(input.data_type),
                })?;
            let shape = inputs::fix(input, configured)?;
            if shape.is_empty() {
                self.empty(input.name, &Fact { dtype, shape })?;
                continue;
            }
            let id = self.draft.define(input.name, Fact { dtype, shape })?;
            self.draft.graph.inputs.push(id);
        }
        Ok(())
    }

    /// Adds a node, or what it folds to.
    pub(super) fn node(&mut self, source: &proto::Node<'_>) -> Result<(), Problem> {
        let unsupported = |detail: &str| {
            let domain = Some(source.domain).filter(|domain| !domain.is_empty());
            Err(Problem::UnsupportedOperator {
                op: domain.map_or(source.op.to_owned(), |domain| {
                    format!("{domain}.{}", source.op)
                }),
                node: title(source).to_owned(),
                detail: detail.to_owned(),
            })
        };
        let domain = match (source.domain, source.op) {
            // So onnxruntime's quantiser writes the standard's conversions to 16 bits for operator
            // sets that have none yet.
            ("com.microsoft", "QuantizeLinear" | "DequantizeLinear") | ("ai.onnx", _) => "",
            (domain, _) => domain,
        };
        if !matches!(domain, "" | "metainfer") {
            return unsupported("only operators of the standard ONNX domain are");
        }
        match source.op {
            "Constant" => return self.constant(source),
            "If" => return self.branch(source),
            "Loop" | "Scan" | "SequenceMap" => {
                return unsupported("loops are not");
            }
            "RandomNormal" | "RandomUniform" | "RandomNormalLike" | "RandomUniformLike"
            | "Multinomial" | "Bernoulli" => {
                return unsupported("its output is random");
            }
            _ => {}
        }
        let mut node = Node {
            name: source.name.to_owned(),
            op: source.op.to_owned(),
            domain: domain.to_owned(),
            attributes: [].into(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        for given in &source.attributes {
            if let Some(value) = attribute::read(self.tensors, source, given)? {
                node.attributes.insert(given.name.to_owned(), value);
            }
        }
        for name in &source.inputs {
            let id = match *name {
                "" => None,
                name => Some(self.draft.lookup(name, title(source))?),
            };
            node.inputs.push(id);
        }
        while node.inputs.last() == Some(&None) {
            node.inputs.pop();
        }
        self.place(source, node)
    }

    /// Infers, folds and appends a node whose inputs are resolved.
    fn place(&mut self, source: &proto::Node<'_>, mut node: Node) -> Result<(), Problem> {
        // The rules and the evaluator count outputs; their ids come later.
        node.outputs = source
            .outputs
            .iter()
            .map(|name| (!name.is_empty()).then_some(ValueId(0)))
            .collect();
        simplify::before(&self.draft.graph, &mut node);
        let facts = facts(&self.draft.graph, &node, title(source))?;
        let size = |fact: &Fact| fact.shape.len().saturating_mul(fact.dtype.bytes());
        let n_bytes = facts.iter().map(size).fold(0, usize::saturating_add);
        let stays = source
            .outputs
            .iter()
            .any(|name| self.weights.contains(name))
            && keeps_weights(&self.draft.graph, &node);
        let folded = if stays || self.n_folded_bytes.saturating_add(n_bytes) > MAX_FOLDED_BYTES {
            None
        } else {
            fold(&self.evaluator, &self.draft.graph, &node, &facts)?
        };
        if let Some(constants) = folded {
            self.n_folded_bytes += n_bytes;
            for (name, constant) in source.outputs.iter().zip(constants) {
                if let Some(constant) = constant.filter(|_| !name.is_empty()) {
                    self.draft.define_constant(name, constant)?;
                }
            }
            return Ok(());
        }
        if facts.iter().any(|fact| !fact.shape.is_empty()) {
            let mask = facts.get(1).filter(|_| node.op == "Dropout");
            if let (Some(name), Some(fact)) = (source.outputs.get(1), mask) {
                self.mask(name, fact, n_bytes)?;
            }
            simplify::after(&self.draft.graph, &mut node)?;
        }
        let mut facts = facts.into_iter();
        for (idx, name) in source.outputs.iter().enumerate().take(node.outputs.len()) {
            let fact = facts.next();
            node.outputs[idx] = match (name.is_empty(), fact) {
                (true, _) => None,
                // What has no elements is known.
                (false, Some(fact)) if fact.shape.is_empty() => {
                    self.empty(name, &fact)?;
                    None
                }
                (false, Some(fact)) => Some(self.draft.define(name, fact)?),
                (false, None) => {
                    return Err(Problem::Malformed {
                        detail: format!(
                            "node `{}` has more outputs than `{}`",
                            title(source),
                            node.op
                        ),
                    });
                }
            };
        }
        if node.outputs.iter().any(Option::is_some) {
            self.draft.graph.nodes.push(node);
        }
        Ok(())
    }

    /// Defines a value without elements.
    fn empty(&mut self, name: &str, fact: &Fact) -> Result<(), Problem> {
        check_size(name, &fact.shape)?;
        match filled(fact.dtype, &fact.shape) {
            Some(empty) => self.draft.define_constant(name, Arc::new(empty)),
            None => Err(simplify::zero_sized(name, fact.shape.clone())),
        }
    }

    /// Defines the mask of a `Dropout` that drops nothing: all true.
    fn mask(&mut self, name: &str, fact: &Fact, n_bytes: usize) -> Result<(), Problem> {
        check_size(name, &fact.shape)?;
        if name.is_empty() {
            return Ok(());
        }
        self.n_folded_bytes = self.n_folded_bytes.saturating_add(n_bytes);
        let data = vec![true; fact.shape.len()];
        let mask = Tensor::new(fact.shape.clone(), TensorData::Bool(data))
            .ok()
            .filter(|_| fact.dtype == DType::Bool && self.n_folded_bytes <= MAX_FOLDED_BYTES);
        match mask {
            Some(mask) => self.draft.define_constant(name, Arc::new(mask)),
            None => Err(Problem::UnsupportedOperator {
                op: "Dropout".to_owned(),
                node: name.to_owned(),
                detail: "its mask is read".to_owned(),
            }),
        }
    }

    fn constant(&mut self, source: &proto::Node<'_>) -> Result<(), Problem> {
        use Attribute::{Float, Floats, Int, Ints, Tensor as Whole};
        let name = source.outputs.first().copied().unwrap_or_default();
        for given in &source.attributes {
            let scalar = |data| Tensor::new(Shape::default(), data).ok();
            let tensor = match attribute::read(self.tensors, source, given)? {
                Some(Whole(tensor)) if given.name == "value" => Some(tensor),
                Some(Float(value)) => scalar(TensorData::F32(vec![value])),
                Some(Int(value)) => scalar(TensorData::I64(vec![value])),
                Some(Floats(values)) => Some(Tensor::from_f32(values)),
                Some(Ints(values)) => Some(Tensor::from_i64(values)),
                _ => None,
            };
            if let Some(tensor) = tensor {
                return self.draft.define_constant(name, Arc::new(tensor));
            }
        }
        Err(Problem::Tensor {
            tensor: name.to_owned(),
            detail: "its constant is of a kind that is not supported".to_owned(),
        })
    }
}
