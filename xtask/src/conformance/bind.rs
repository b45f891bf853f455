//! Turning inputs of a model into constants, in the bytes of its file.
//!
//! ONNX lets an input have an initializer of the same name, which is then its value unless another
//! is given. So binding adds an initializer and changes nothing else: the graph is decoded no
//! further than to where it begins.

use anyhow::{Context, Result, bail};

use super::values::Values;

/// `ModelProto.graph`.
const GRAPH: u64 = 7;
/// `GraphProto.initializer`.
const INITIALIZER: u64 = 5;
/// `TensorProto.dims`, `data_type`, `name` and `raw_data`.
const DIMS: u64 = 1;
const DATA_TYPE: u64 = 2;
const NAME: u64 = 8;
const RAW_DATA: u64 = 9;

/// Returns the model with values for some of its inputs.
///
/// # Errors
/// If the bytes are no model.
pub(super) fn bind(model: &[u8], inputs: &[(&str, &Values)]) -> Result<Vec<u8>> {
    let mut bound = Vec::with_capacity(model.len());
    let mut rest = model;
    let mut n_graphs = 0;
    while !rest.is_empty() {
        let start = rest;
        let key = take_varint(&mut rest)?;
        match (key >> 3, key & 7) {
            (GRAPH, 2) => {
                n_graphs += 1;
                let mut graph = take_bytes(&mut rest)?.to_vec();
                for (name, values) in inputs {
                    put_bytes(&mut graph, INITIALIZER, &tensor(name, values));
                }
                put_bytes(&mut bound, GRAPH, &graph);
                continue;
            }
            (_, 0) => drop(take_varint(&mut rest)?),
            (_, 1) => drop(take(&mut rest, 8)?),
            (_, 2) => drop(take_bytes(&mut rest)?),
            (_, 5) => drop(take(&mut rest, 4)?),
            (_, wire_type) => bail!("wire type {wire_type} does not exist"),
        }
        bound.extend_from_slice(&start[..start.len() - rest.len()]);
    }
    match n_graphs {
        1 => Ok(bound),
        n => bail!("the model has {n} graphs"),
    }
}

/// Encodes a `TensorProto`.
fn tensor(name: &str, values: &Values) -> Vec<u8> {
    let mut message = Vec::new();
    for &dim in &values.shape {
        put_varint(&mut message, DIMS << 3);
        put_varint(&mut message, dim as u64);
    }
    put_varint(&mut message, DATA_TYPE << 3);
    put_varint(&mut message, values.dtype.onnx() as u64);
    put_bytes(&mut message, NAME, name.as_bytes());
    put_bytes(&mut message, RAW_DATA, &values.bytes);
    message
}

fn put_bytes(message: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(message, field << 3 | 2);
    put_varint(message, bytes.len() as u64);
    message.extend_from_slice(bytes);
}

fn put_varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

fn take_varint(rest: &mut &[u8]) -> Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    bail!("a number has more than 64 bits")
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8]> {
    let len = take_varint(rest)?;
    take(rest, usize::try_from(len)?)
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(len).context("the model ends early")?;
    *rest = left;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use metainfer::graph::DType;

    use super::*;

    #[test]
    fn bound_inputs_are_initializers_and_all_else_stays() {
        let axes = Values {
            dtype: DType::I64,
            shape: vec![1],
            bytes: 300_i64.to_le_bytes().to_vec(),
        };
        // `ir_version = 8`, a graph of name `g`, and an operator set of version 300.
        let model = [8, 8, 0x3a, 3, 0x12, 1, b'g', 0x42, 3, 0x10, 0xac, 2];
        let bound = bind(&model, &[("axes", &axes)]).unwrap();
        let tensor = [
            &[8, 1, 0x10, 7, 0x42, 4][..],
            b"axes",
            &[0x4a, 8, 0x2c, 1, 0, 0, 0, 0, 0, 0],
        ];
        let tensor = tensor.concat();
        let graph = [&[0x12, 1, b'g', 0x2a, tensor.len() as u8][..], &tensor].concat();
        let head = [8, 8, 0x3a, graph.len() as u8];
        let expected = [&head[..], &graph, &model[7..]].concat();
        assert_eq!(bound, expected);
        assert_eq!(bind(&model, &[]).unwrap(), model);
    }

    #[test]
    fn other_bytes_are_refused() {
        for bytes in [&[0x3a, 9, 1][..], &[0xff; 11], &[3], &[8, 8]] {
            assert!(bind(bytes, &[]).is_err(), "{bytes:?}");
        }
    }
}
