//! Operator attributes of a file.

use super::error::Problem;
use super::proto;
use super::sort::title;
use super::tensor::TensorReader;
use crate::graph::Attribute;

/// Reads an attribute; `None` for a graph, which the caller handles.
pub(super) fn read(
    tensors: &TensorReader,
    node: &proto::Node<'_>,
    attribute: &proto::Attribute<'_>,
) -> Result<Option<Attribute>, Problem> {
    let name = attribute.name;
    let malformed = |detail: &str| Problem::Malformed {
        detail: format!("attribute `{name}` of node `{}` {detail}", title(node)),
    };
    if !attribute.reference.is_empty() {
        return Err(malformed("refers to a function"));
    }
    let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(malformed("is not UTF-8 text")),
    };
    let kind = attribute.kind.unwrap_or_else(|| guess(attribute));
    Ok(Some(match kind {
        1 => Attribute::Float(attribute.float),
        2 => Attribute::Int(attribute.int),
        3 => Attribute::String(text(attribute.string)?),
        4 => {
            let tensor = attribute
                .tensor
                .as_ref()
                .ok_or_else(|| malformed("is empty"))?;
            let owner = format!("{}.{name}", title(node));
            Attribute::Tensor(tensors.read(&owner, tensor)?)
        }
        5 => return Ok(None),
        6 => Attribute::Floats(attribute.floats.clone()),
        7 => Attribute::Ints(attribute.ints.clone()),
        8 => {
            let strings = attribute.strings.iter().map(|bytes| text(bytes));
            Attribute::Strings(strings.collect::<Result<_, _>>()?)
        }
        other => {
            return Err(malformed(&format!(
                "is of kind {other}, which is not supported"
            )));
        }
    }))
}

/// Files of the first version of the format leave the kind out.
fn guess(attribute: &proto::Attribute<'_>) -> i64 {
    if attribute.graph.is_some() {
        5
    } else if attribute.tensor.is_some() {
        4
    } else if !attribute.ints.is_empty() {
        7
    } else if !attribute.floats.is_empty() {
        6
    } else if !attribute.strings.is_empty() {
        8
    } else if !attribute.string.is_empty() {
        3
    } else if attribute.float != 0.0 {
        1
    } else {
        2
    }
}
