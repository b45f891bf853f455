//! Writes a [`Graph`] as ONNX.
//!
//! Names are those of the graph, constants become initializers with raw data, and operators that
//! ONNX took up in a later operator set than the graph's (`HardSwish`, `Gelu`, `Swish`,
//! `LayerNormalization`) are written as they are: other readers may insist on that later set.

use std::cell::RefCell;
use std::collections::BTreeSet;

use rten_onnx::onnx;
use rten_onnx::protobuf::ProtobufError;

use crate::graph::{Attribute, Graph, Node, Tensor, Value};

/// Version of the file format that is written.
const IR_VERSION: i64 = 8;

/// Encodes a graph as the bytes of an ONNX file.
///
/// # Errors
/// Fails only if the graph does not fit the 2 GiB that protobuf allows.
pub fn encode(graph: &Graph) -> Result<Vec<u8>, ProtobufError> {
    let domains: BTreeSet<&str> = graph
        .nodes
        .iter()
        .map(|node| node.domain.as_str())
        .collect();
    let mut opset_import = vec![opset("", graph.opset)];
    opset_import.extend(
        domains
            .into_iter()
            .filter(|domain| !matches!(*domain, "" | "ai.onnx"))
            .map(|domain| opset(domain, 1)),
    );
    let model = onnx::ModelProto {
        ir_version: Some(IR_VERSION),
        producer_name: Some("cargo-metainfer".to_owned()),
        producer_version: None,
        graph: Some(graph_proto(graph)),
        opset_import,
        metadata_props: Vec::new(),
    };
    model.write_buf()
}

fn opset(domain: &str, version: i64) -> onnx::OperatorSetIdProto {
    onnx::OperatorSetIdProto {
        domain: Some(domain.to_owned()),
        version: Some(version),
    }
}

fn graph_proto(graph: &Graph) -> onnx::GraphProto {
    let value_info = |id: &crate::graph::ValueId| value_info(graph.value(*id));
    onnx::GraphProto {
        node: graph
            .nodes
            .iter()
            .map(|node| node_proto(graph, node))
            .collect(),
        initializer: graph
            .values
            .iter()
            .filter_map(|value| Some(tensor_proto(Some(&value.name), value.data.as_deref()?)))
            .collect(),
        input: graph.inputs.iter().map(value_info).collect(),
        output: graph.outputs.iter().map(value_info).collect(),
        value_info: Vec::new(),
    }
}

fn node_proto(graph: &Graph, node: &Node) -> onnx::NodeProto {
    let names = |ids: &[Option<crate::graph::ValueId>]| {
        ids.iter()
            .map(|id| id.map_or(String::new(), |id| graph.value(id).name.clone()))
            .collect()
    };
    onnx::NodeProto {
        domain: Some(node.domain.clone()).filter(|domain| !domain.is_empty()),
        name: Some(node.name.clone()).filter(|name| !name.is_empty()),
        input: names(&node.inputs),
        output: names(&node.outputs),
        op_type: Some(node.op.clone()),
        attribute: node
            .attributes
            .iter()
            .map(|(name, attribute)| attribute_proto(name, attribute))
            .collect(),
    }
}

fn attribute_proto(name: &str, attribute: &Attribute) -> onnx::AttributeProto {
    let mut proto = onnx::AttributeProto {
        name: Some(name.to_owned()),
        ..Default::default()
    };
    let kind = match attribute {
        Attribute::Float(value) => {
            proto.f = Some(*value);
            onnx::AttributeType::FLOAT
        }
        Attribute::Int(value) => {
            proto.i = Some(*value);
            onnx::AttributeType::INT
        }
        Attribute::String(value) => {
            proto.s = Some(value.clone());
            onnx::AttributeType::STRING
        }
        Attribute::Floats(values) => {
            proto.floats.clone_from(values);
            onnx::AttributeType::FLOATS
        }
        Attribute::Ints(values) => {
            proto.ints.clone_from(values);
            onnx::AttributeType::INTS
        }
        Attribute::Strings(values) => {
            proto.strings.clone_from(values);
            onnx::AttributeType::STRINGS
        }
        Attribute::Tensor(tensor) => {
            proto.t = Some(tensor_proto(None, tensor));
            onnx::AttributeType::TENSOR
        }
        Attribute::Graph(graph) => {
            proto.g = Some(graph_proto(graph));
            onnx::AttributeType::GRAPH
        }
    };
    proto.r#type = Some(kind);
    proto
}

fn tensor_proto(name: Option<&str>, tensor: &Tensor) -> onnx::TensorProto {
    onnx::TensorProto {
        name: name.map(str::to_owned),
        dims: tensor
            .shape()
            .dims()
            .iter()
            .map(|&dim| dim as i64)
            .collect(),
        data_type: Some(onnx::DataType(tensor.dtype().onnx())),
        raw_data: Some(RefCell::new(tensor.data().to_le_bytes())),
        ..Default::default()
    }
}

fn value_info(value: &Value) -> onnx::ValueInfoProto {
    let dim = value.shape.dims().iter().map(|&size| onnx::Dimension {
        dim_value: Some(size as i64),
        dim_param: None,
    });
    onnx::ValueInfoProto {
        name: Some(value.name.clone()),
        r#type: Some(onnx::TypeProto {
            tensor_type: Some(onnx::TypeProtoTensor {
                elem_type: Some(onnx::DataType(value.dtype.onnx())),
                shape: Some(onnx::TensorShapeProto { dim: dim.collect() }),
            }),
            sequence: None,
        }),
    }
}
