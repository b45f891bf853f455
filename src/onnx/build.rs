//! From decoded messages to a [`Graph`] at static shapes, constants folded.
//!
//! Nodes are taken in topological order, so that each one knows its inputs: outputs that depend on
//! constants and shapes alone become constants at once, everything else gets a type and a shape by
//! rule, or by running the node on zeros if there is no rule.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::attribute;
use super::error::Problem;
use super::evaluate::{Evaluator, Given, MAX_BYTES};
use super::inputs;
use super::load::LoadOptions;
use super::proto;
use super::sort::{sorted, title};
use super::tensor::{TensorReader, dtype, type_name};
use crate::graph::{
    DType, Fact, Graph, Node, Operand, Shape, Tensor, TensorData, Value, ValueId, infer,
};

/// Most elements and largest dimension of a value.
const MAX_ELEMENTS: usize = 1 << 31;

/// Builds the graph of a model; nodes and values keep their names.
pub(super) fn build(
    model: &proto::Graph<'_>,
    opset: i64,
    tensors: &TensorReader,
    options: &LoadOptions,
) -> Result<Graph, Problem> {
    let mut builder = Builder {
        graph: Graph {
            name: model.name.to_owned(),
            opset,
            values: Vec::new(),
            nodes: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        },
        tensors,
        evaluator: Evaluator::default(),
        scopes: vec![HashMap::new()],
        taken: HashSet::new(),
    };
    builder.initializers(model)?;
    builder.inputs(model, options)?;
    for node in sorted(model)? {
        builder.node(node)?;
    }
    for output in &model.outputs {
        let id = builder.lookup(output.name, "the model's outputs")?;
        builder.graph.outputs.push(id);
    }
    Ok(builder.graph)
}

struct Builder<'a> {
    graph: Graph,
    tensors: &'a TensorReader,
    evaluator: Evaluator,
    /// Names in reach, innermost graph last.
    scopes: Vec<HashMap<String, ValueId>>,
    /// Names in use.
    taken: HashSet<String>,
}

impl Builder<'_> {
    fn initializers(&mut self, model: &proto::Graph<'_>) -> Result<(), Problem> {
        if let Some(name) = model.sparse {
            return Err(Problem::Tensor {
                tensor: name.to_owned(),
                detail: "it is sparse, which is not supported".to_owned(),
            });
        }
        for tensor in &model.initializers {
            let data = self.tensors.read(tensor.name, tensor)?;
            self.define_constant(tensor.name, Arc::new(data))?;
        }
        Ok(())
    }

    fn inputs(&mut self, model: &proto::Graph<'_>, options: &LoadOptions) -> Result<(), Problem> {
        let mut open = Vec::new();
        for input in &model.inputs {
            // Old files list initializers among the inputs.
            if !self.scopes[0].contains_key(input.name) {
                open.push(input);
            }
        }
        inputs::check_names(&open, &options.input_shapes)?;
        for input in open {
            let configured = options.input_shapes.get(input.name).map(Vec::as_slice);
            let dtype = dtype(input.data_type).ok_or_else(|| Problem::UnsupportedType {
                value: input.name.to_owned(),
                dtype: type_name(input.data_type),
            })?;
            let shape = inputs::fix(input, configured)?;
            let id = self.define(input.name, Fact { dtype, shape })?;
            self.graph.inputs.push(id);
        }
        Ok(())
    }

    /// Adds a node, or what it folds to.
    fn node(&mut self, source: &proto::Node<'_>) -> Result<(), Problem> {
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
        if !matches!(source.domain, "" | "ai.onnx" | "metainfer") {
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
            domain: source.domain.replace("ai.onnx", ""),
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
                name => Some(self.lookup(name, title(source))?),
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
        let facts = self.facts(source, &node)?;
        if let Some(constants) = self.fold(&node, &facts)? {
            for (name, constant) in source.outputs.iter().zip(constants) {
                if let Some(constant) = constant.filter(|_| !name.is_empty()) {
                    self.define_constant(name, constant)?;
                }
            }
            return Ok(());
        }
        let mut facts = facts.into_iter();
        for (idx, name) in source.outputs.iter().enumerate() {
            let fact = facts.next();
            node.outputs[idx] = match (name.is_empty(), fact) {
                (true, _) => None,
                (false, Some(fact)) => Some(self.define(name, fact)?),
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
        self.graph.nodes.push(node);
        Ok(())
    }

    fn facts(&self, source: &proto::Node<'_>, node: &Node) -> Result<Vec<Fact>, Problem> {
        let operands: Vec<Option<Operand<'_>>> = node
            .inputs
            .iter()
            .map(|id| {
                let value = self.graph.value((*id)?);
                Some(Operand {
                    dtype: value.dtype,
                    shape: &value.shape,
                    data: value.data.as_deref(),
                })
            })
            .collect();
        let unsupported = |detail: String| Problem::UnsupportedOperator {
            op: node.op.clone(),
            node: title(source).to_owned(),
            detail,
        };
        match infer(node, self.graph.opset, &operands) {
            Ok(Some(facts)) => Ok(facts),
            Ok(None) => {
                let given = self.given(node);
                if bytes(&given) > MAX_BYTES {
                    return Err(unsupported("there is no shape rule for it".to_owned()));
                }
                self.evaluator
                    .facts(node, self.graph.opset, &given)
                    .map_err(|problem| match problem {
                        Problem::Reference { source, .. } => unsupported(source.to_string()),
                        other => other,
                    })
            }
            Err(error) => Err(Problem::Mismatch {
                node: title(source).to_owned(),
                op: node.op.clone(),
                source: error,
            }),
        }
    }

    /// Returns the outputs as constants if they depend on constants or shapes alone.
    fn fold(
        &self,
        node: &Node,
        facts: &[Fact],
    ) -> Result<Option<Vec<Option<Arc<Tensor>>>>, Problem> {
        let input = node.input(0).map(|id| self.graph.value(id));
        match (node.op.as_str(), input) {
            ("Shape", Some(value)) => {
                let n = facts.first().map_or(0, |fact| fact.shape.len());
                let rank = value.shape.rank() as i64;
                let start = node.int("start", 0);
                let start = (if start < 0 { start + rank } else { start }).clamp(0, rank) as usize;
                let dims = value.shape.dims()[start..]
                    .iter()
                    .take(n)
                    .map(|&d| d as i64);
                return Ok(Some(vec![Some(Arc::new(Tensor::from_i64(dims.collect())))]));
            }
            ("Size", Some(value)) => {
                let len = TensorData::I64(vec![value.shape.len() as i64]);
                let scalar = Tensor::new(Shape::default(), len).ok().map(Arc::new);
                return Ok(scalar.map(|scalar| vec![Some(scalar)]));
            }
            _ => {}
        }
        let given = self.given(node);
        let is_constant = given.iter().flatten().all(|given| given.data.is_some());
        if !is_constant || node.outputs.len() > facts.len() {
            return Ok(None);
        }
        if node.op == "Identity" {
            return Ok(Some(vec![
                given.into_iter().next().flatten().and_then(|g| g.data),
            ]));
        }
        for fact in facts {
            check_size(&node.op, &fact.shape)?;
        }
        let size = |fact: &Fact| fact.shape.len().saturating_mul(fact.dtype.bytes());
        if bytes(&given) > MAX_BYTES || facts.iter().map(size).sum::<usize>() > MAX_BYTES {
            return Ok(None);
        }
        let dtypes: Vec<Option<DType>> = facts.iter().map(|fact| Some(fact.dtype)).collect();
        // What the executor cannot run stays in the graph, at its inferred shape.
        let Ok(tensors) = self.evaluator.fold(node, self.graph.opset, &given, &dtypes) else {
            return Ok(None);
        };
        let agrees = tensors
            .iter()
            .zip(facts)
            .all(|(tensor, fact)| tensor.as_ref().is_none_or(|t| *t.shape() == fact.shape));
        let tensors = tensors.into_iter().map(|tensor| tensor.map(Arc::new));
        Ok(agrees.then(|| tensors.collect()))
    }

    fn given(&self, node: &Node) -> Vec<Option<Given>> {
        let given = |id: &Option<ValueId>| {
            let value = self.graph.value((*id)?);
            Some(Given {
                dtype: value.dtype,
                shape: value.shape.clone(),
                data: value.data.clone(),
            })
        };
        node.inputs.iter().map(given).collect()
    }

    fn constant(&mut self, source: &proto::Node<'_>) -> Result<(), Problem> {
        use crate::graph::Attribute::{Float, Floats, Int, Ints, Tensor as Whole};
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
                return self.define_constant(name, Arc::new(tensor));
            }
        }
        Err(Problem::Tensor {
            tensor: name.to_owned(),
            detail: "its constant is of a kind that is not supported".to_owned(),
        })
    }

    /// Inlines the branch of an `If` whose condition is a constant.
    fn branch(&mut self, source: &proto::Node<'_>) -> Result<(), Problem> {
        let condition = source.inputs.first().copied().unwrap_or_default();
        let id = self.lookup(condition, title(source))?;
        let value = self.graph.constant(id).and_then(Tensor::to_i64);
        let taken = match value.as_deref() {
            Some([0]) => "else_branch",
            Some([_]) => "then_branch",
            _ => {
                return Err(Problem::UnsupportedOperator {
                    op: "If".to_owned(),
                    node: title(source).to_owned(),
                    detail: format!("its condition `{condition}` is not a constant"),
                });
            }
        };
        let body = source
            .attributes
            .iter()
            .filter(|attribute| attribute.name == taken)
            .find_map(|attribute| attribute.graph.as_deref())
            .ok_or_else(|| Problem::Malformed {
                detail: format!("`If` node `{}` has no `{taken}`", title(source)),
            })?;
        self.scopes.push(HashMap::new());
        self.initializers(body)?;
        for node in sorted(body)? {
            self.node(node)?;
        }
        let mut results = Vec::new();
        for output in &body.outputs {
            results.push(self.lookup(output.name, title(source))?);
        }
        self.scopes.pop();
        for (&name, &id) in source.outputs.iter().zip(&results) {
            self.rename(name, id)?;
        }
        Ok(())
    }

    /// Gives a value of an inlined branch the name it has outside.
    fn rename(&mut self, name: &str, id: ValueId) -> Result<(), Problem> {
        let value = self.graph.value(id).clone();
        let fact = Fact {
            dtype: value.dtype,
            shape: value.shape,
        };
        if let Some(data) = value.data {
            return self.define_constant(name, data);
        }
        let output = self.define(name, fact)?;
        self.graph.nodes.push(Node {
            name: String::new(),
            op: "Identity".to_owned(),
            domain: String::new(),
            attributes: [].into(),
            inputs: vec![Some(id)],
            outputs: vec![Some(output)],
        });
        Ok(())
    }

    fn lookup(&self, name: &str, reader: &str) -> Result<ValueId, Problem> {
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        found.copied().ok_or_else(|| Problem::Undefined {
            value: name.to_owned(),
            reader: reader.to_owned(),
        })
    }

    fn define_constant(&mut self, name: &str, data: Arc<Tensor>) -> Result<(), Problem> {
        let value = Value {
            name: name.to_owned(),
            dtype: data.dtype(),
            shape: data.shape().clone(),
            data: Some(data),
        };
        self.push(value).map(|_| ())
    }

    fn define(&mut self, name: &str, fact: Fact) -> Result<ValueId, Problem> {
        check_size(name, &fact.shape)?;
        if fact.shape.is_empty() {
            return Err(Problem::ZeroSized {
                value: name.to_owned(),
                shape: fact.shape,
            });
        }
        self.push(Value {
            name: name.to_owned(),
            dtype: fact.dtype,
            shape: fact.shape,
            data: None,
        })
    }

    fn push(&mut self, mut value: Value) -> Result<ValueId, Problem> {
        let id = ValueId(self.graph.values.len());
        let is_inner = self.scopes.len() > 1;
        let Some(scope) = self.scopes.last_mut() else {
            return Err(Problem::Duplicate(value.name));
        };
        if scope.insert(value.name.clone(), id).is_some() {
            return Err(Problem::Duplicate(value.name));
        }
        // Both branches of an `If` may use one name, so inner values are renamed apart.
        while !self.taken.insert(value.name.clone()) {
            if !is_inner {
                return Err(Problem::Duplicate(value.name));
            }
            value.name.push('\'');
        }
        self.graph.values.push(value);
        Ok(id)
    }
}

fn check_size(name: &str, shape: &Shape) -> Result<(), Problem> {
    let is_large = shape.checked_len().is_none_or(|len| len > MAX_ELEMENTS)
        || shape.dims().iter().any(|&dim| dim > MAX_ELEMENTS);
    if is_large {
        return Err(Problem::TooLarge {
            value: name.to_owned(),
            shape: shape.clone(),
        });
    }
    Ok(())
}

fn bytes(given: &[Option<Given>]) -> usize {
    given
        .iter()
        .flatten()
        .map(|given| given.shape.len().saturating_mul(given.dtype.bytes()))
        .fold(0, usize::saturating_add)
}
