//! The messages of `onnx.proto` that matter here, borrowed from the bytes of the file.
//!
//! Field numbers are those of ONNX's published schema. Unknown fields are skipped; lengths of
//! lists are bounded by [`MAX_ITEMS`] and nesting by [`MAX_DEPTH`].

use super::wire::{Reader, WireError};

/// Most nodes, tensors or attributes that one file may hold.
const MAX_ITEMS: usize = 1 << 20;
/// Most dimensions of a value.
const MAX_RANK: usize = 64;
/// Deepest nesting of graphs in attributes.
const MAX_DEPTH: usize = 8;

/// A model that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProtoError {
    /// The bytes are no protobuf message of this schema.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Too many things.
    #[error("more than {MAX_ITEMS} nodes, tensors or attributes")]
    TooMany,
    /// Graphs within graphs.
    #[error("graphs are nested more than {MAX_DEPTH} deep")]
    TooDeep,
}

/// `ModelProto`.
#[derive(Debug, Default)]
pub(super) struct Model<'a> {
    pub ir_version: Option<i64>,
    pub opsets: Vec<(&'a str, i64)>,
    pub graph: Option<Graph<'a>>,
    /// Names of model-local functions, as `(domain, name)`.
    pub functions: Vec<(&'a str, &'a str)>,
}

/// `GraphProto`.
#[derive(Debug, Default, Clone)]
pub(super) struct Graph<'a> {
    pub name: &'a str,
    pub nodes: Vec<Node<'a>>,
    pub initializers: Vec<Tensor<'a>>,
    pub inputs: Vec<ValueInfo<'a>>,
    pub outputs: Vec<ValueInfo<'a>>,
    /// Name of the first sparse initializer.
    pub sparse: Option<&'a str>,
}

/// `NodeProto`.
#[derive(Debug, Default, Clone)]
pub(super) struct Node<'a> {
    pub name: &'a str,
    pub op: &'a str,
    pub domain: &'a str,
    pub inputs: Vec<&'a str>,
    pub outputs: Vec<&'a str>,
    pub attributes: Vec<Attribute<'a>>,
}

/// `AttributeProto`.
#[derive(Debug, Default, Clone)]
pub(super) struct Attribute<'a> {
    pub name: &'a str,
    pub kind: Option<i64>,
    pub float: f32,
    pub int: i64,
    pub string: &'a [u8],
    pub tensor: Option<Tensor<'a>>,
    pub graph: Option<Box<Graph<'a>>>,
    pub floats: Vec<f32>,
    pub ints: Vec<i64>,
    pub strings: Vec<&'a [u8]>,
    pub reference: &'a str,
}

/// `TensorProto`.
#[derive(Debug, Default, Clone)]
pub(super) struct Tensor<'a> {
    pub name: &'a str,
    pub dims: Vec<i64>,
    pub data_type: i64,
    pub raw: Option<&'a [u8]>,
    pub floats: Vec<f32>,
    pub doubles: Vec<f64>,
    /// `int32_data`, `int64_data` or `uint64_data`.
    pub ints: Vec<i64>,
    pub is_external: bool,
    pub external: Vec<(&'a str, &'a str)>,
}

/// `ValueInfoProto` of a tensor.
#[derive(Debug, Default, Clone)]
pub(super) struct ValueInfo<'a> {
    pub name: &'a str,
    /// `TensorProto.DataType`; 0 if it is not a tensor or not said.
    pub data_type: i64,
    /// Dimensions, if the rank is known.
    pub dims: Option<Vec<Dim<'a>>>,
}

/// One dimension of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dim<'a> {
    Fixed(i64),
    Symbol(&'a str),
}

/// Limits that all messages of a file share.
struct Budget {
    items: usize,
}

impl Budget {
    fn spend(&mut self) -> Result<(), ProtoError> {
        self.items += 1;
        if self.items > MAX_ITEMS {
            return Err(ProtoError::TooMany);
        }
        Ok(())
    }
}

/// Decodes a model.
pub(super) fn decode(bytes: &[u8]) -> Result<Model<'_>, ProtoError> {
    let mut budget = Budget { items: 0 };
    let mut model = Model::default();
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => model.ir_version = Some(payload.int(number)?),
            7 => model.graph = Some(graph(payload.bytes(number)?, 0, &mut budget)?),
            8 => model.opsets.push(opset(payload.bytes(number)?)?),
            25 => {
                budget.spend()?;
                model.functions.push(function(payload.bytes(number)?)?);
            }
            _ => {}
        }
    }
    Ok(model)
}

/// Returns whether the bytes begin like a model: `ir_version` first, then fields it can have.
pub(super) fn begins_like_a_model(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes);
    matches!(reader.next(), Ok(Some((1, payload))) if payload.int(1).is_ok_and(|v| (1..1000).contains(&v)))
}

fn opset(bytes: &[u8]) -> Result<(&str, i64), ProtoError> {
    let (mut domain, mut version) = ("", 0);
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => domain = payload.text(number)?,
            2 => version = payload.int(number)?,
            _ => {}
        }
    }
    Ok((domain, version))
}

fn function(bytes: &[u8]) -> Result<(&str, &str), ProtoError> {
    let (mut name, mut domain) = ("", "");
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => name = payload.text(number)?,
            10 => domain = payload.text(number)?,
            _ => {}
        }
    }
    Ok((domain, name))
}

fn graph<'a>(bytes: &'a [u8], depth: usize, budget: &mut Budget) -> Result<Graph<'a>, ProtoError> {
    if depth > MAX_DEPTH {
        return Err(ProtoError::TooDeep);
    }
    let mut graph = Graph::default();
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => {
                budget.spend()?;
                graph
                    .nodes
                    .push(node(payload.bytes(number)?, depth, budget)?);
            }
            2 => graph.name = payload.text(number)?,
            5 => {
                budget.spend()?;
                graph.initializers.push(tensor(payload.bytes(number)?)?);
            }
            11 => {
                budget.spend()?;
                graph.inputs.push(value_info(payload.bytes(number)?)?);
            }
            12 => {
                budget.spend()?;
                graph.outputs.push(value_info(payload.bytes(number)?)?);
            }
            15 => graph.sparse = graph.sparse.or(Some(sparse_name(payload.bytes(number)?)?)),
            _ => {}
        }
    }
    Ok(graph)
}

fn node<'a>(bytes: &'a [u8], depth: usize, budget: &mut Budget) -> Result<Node<'a>, ProtoError> {
    let mut node = Node::default();
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => {
                budget.spend()?;
                node.inputs.push(payload.text(number)?);
            }
            2 => {
                budget.spend()?;
                node.outputs.push(payload.text(number)?);
            }
            3 => node.name = payload.text(number)?,
            4 => node.op = payload.text(number)?,
            5 => {
                budget.spend()?;
                let bytes = payload.bytes(number)?;
                node.attributes.push(attribute(bytes, depth, budget)?);
            }
            7 => node.domain = payload.text(number)?,
            _ => {}
        }
    }
    Ok(node)
}

fn attribute<'a>(
    bytes: &'a [u8],
    depth: usize,
    budget: &mut Budget,
) -> Result<Attribute<'a>, ProtoError> {
    let mut attribute = Attribute::default();
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => attribute.name = payload.text(number)?,
            2 => attribute.float = payload.float(number)?,
            3 => attribute.int = payload.int(number)?,
            4 => attribute.string = payload.bytes(number)?,
            5 => attribute.tensor = Some(tensor(payload.bytes(number)?)?),
            6 => {
                let body = graph(payload.bytes(number)?, depth + 1, budget)?;
                attribute.graph = Some(Box::new(body));
            }
            7 => payload.floats(number, &mut attribute.floats)?,
            8 => payload.ints(number, &mut attribute.ints)?,
            9 => {
                budget.spend()?;
                attribute.strings.push(payload.bytes(number)?);
            }
            20 => attribute.kind = Some(payload.int(number)?),
            21 => attribute.reference = payload.text(number)?,
            _ => {}
        }
    }
    Ok(attribute)
}

fn tensor(bytes: &[u8]) -> Result<Tensor<'_>, ProtoError> {
    let mut tensor = Tensor::default();
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => payload.ints(number, &mut tensor.dims)?,
            2 => tensor.data_type = payload.int(number)?,
            4 => payload.floats(number, &mut tensor.floats)?,
            5 | 7 | 11 => payload.ints(number, &mut tensor.ints)?,
            8 => tensor.name = payload.text(number)?,
            9 => tensor.raw = Some(payload.bytes(number)?),
            10 => payload.doubles(number, &mut tensor.doubles)?,
            13 => tensor.external.push(entry(payload.bytes(number)?)?),
            14 => tensor.is_external = payload.int(number)? == 1,
            _ => {}
        }
    }
    Ok(tensor)
}

fn entry(bytes: &[u8]) -> Result<(&str, &str), ProtoError> {
    let (mut key, mut value) = ("", "");
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => key = payload.text(number)?,
            2 => value = payload.text(number)?,
            _ => {}
        }
    }
    Ok((key, value))
}

fn sparse_name(bytes: &[u8]) -> Result<&str, ProtoError> {
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        if number == 1 {
            return Ok(tensor(payload.bytes(number)?)?.name);
        }
    }
    Ok("")
}

fn value_info(bytes: &[u8]) -> Result<ValueInfo<'_>, ProtoError> {
    let mut info = ValueInfo::default();
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => info.name = payload.text(number)?,
            2 => {
                let mut kinds = Reader::new(payload.bytes(number)?);
                while let Some((kind, payload)) = kinds.next()? {
                    if kind == 1 {
                        tensor_type(payload.bytes(kind)?, &mut info)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(info)
}

fn tensor_type<'a>(bytes: &'a [u8], info: &mut ValueInfo<'a>) -> Result<(), ProtoError> {
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => info.data_type = payload.int(number)?,
            2 => {
                let dims = info.dims.insert(Vec::new());
                let mut shape = Reader::new(payload.bytes(number)?);
                while let Some((number, payload)) = shape.next()? {
                    if number == 1 {
                        if dims.len() == MAX_RANK {
                            return Err(ProtoError::TooMany);
                        }
                        dims.push(dim(payload.bytes(number)?)?);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn dim(bytes: &[u8]) -> Result<Dim<'_>, ProtoError> {
    let mut dim = Dim::Symbol("?");
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => dim = Dim::Fixed(payload.int(number)?),
            2 => dim = Dim::Symbol(payload.text(number)?),
            _ => {}
        }
    }
    Ok(dim)
}
