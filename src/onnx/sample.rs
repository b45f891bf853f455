//! Random inputs, and files of tensors.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use safetensors::{Dtype, SafeTensors, View};

use super::error::{Error, Problem};
use super::stored::{element_type, stored_type};
use super::tensor::from_le_bytes;
use crate::fsx;
use crate::graph::{DType, Graph, Tensor, TensorData, Value, ValueId};

/// Draws inputs for a graph: normal floats, and integers that are valid indices where they index a
/// constant table, otherwise 0 or 1. The same seed gives the same inputs.
pub fn random_inputs(graph: &Graph, seed: u64) -> BTreeMap<String, Tensor> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut inputs = BTreeMap::new();
    for &id in &graph.inputs {
        let value = graph.value(id);
        if let Some(tensor) = draw(value, limit(graph, id), &mut rng) {
            inputs.insert(value.name.clone(), tensor);
        }
    }
    inputs
}

/// Writes tensors to a safetensors file, under their names.
///
/// # Errors
/// If the file cannot be written.
pub fn write_tensors(path: &Path, tensors: &BTreeMap<String, Tensor>) -> Result<(), Error> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| {
        let path = path.to_owned();
        Problem::Write { path, source }
    };
    let views = tensors.iter().map(|(name, tensor)| (name, Bytes(tensor)));
    safetensors::serialize(views, None)
        .map_err(|error| failed(error.into()))
        .and_then(|bytes| fsx::write_scratch(path, &bytes).map_err(|error| failed(error.into())))
        .map_err(|problem| problem.at(path))
}

/// Reads the tensors of a safetensors file, by name.
///
/// # Errors
/// If the file cannot be read, or holds what no graph does.
pub fn read_tensors(path: &Path) -> Result<BTreeMap<String, Tensor>, Error> {
    let failed = |detail: String| {
        Problem::Stored {
            path: path.to_owned(),
            detail,
        }
        .at(path)
    };
    let bytes = fsx::read(path).map_err(|error| failed(error.to_string()))?;
    let stored = SafeTensors::deserialize(&bytes).map_err(|error| failed(error.to_string()))?;
    let tensors = stored.tensors().into_iter().map(|(name, view)| {
        let dtype = element_type(view.dtype())
            .ok_or_else(|| failed(format!("`{name}` is of type {:?}", view.dtype())))?;
        let data = from_le_bytes(dtype, view.data());
        let tensor = Tensor::new(view.shape().to_vec().into(), data)
            .map_err(|error| failed(format!("`{name}`: {error}")))?;
        Ok((name, tensor))
    });
    tensors.collect()
}

/// Returns how many values an integer input may take.
fn limit(graph: &Graph, id: ValueId) -> i64 {
    let rows = graph
        .nodes
        .iter()
        .filter(|node| node.op == "Gather" && node.input(1) == Some(id));
    let rows = rows.filter_map(|node| {
        let table = graph.constant(node.input(0)?)?;
        let axis = usize::try_from(node.int("axis", 0)).ok()?;
        table.shape().dims().get(axis).copied()
    });
    rows.min().map_or(2, |rows| rows as i64).max(1)
}

fn draw(value: &Value, limit: i64, rng: &mut ChaCha8Rng) -> Option<Tensor> {
    let len = value.shape.len();
    let mut ints =
        |limit: i64| -> Vec<i64> { (0..len).map(|_| rng.random_range(0..limit)).collect() };
    let data = match value.dtype {
        DType::F32 => TensorData::F32((0..len).map(|_| normal(rng) as f32).collect()),
        DType::F64 => TensorData::F64((0..len).map(|_| normal(rng)).collect()),
        // Halves between 1 and 2, whose bits need no conversion.
        DType::F16 => TensorData::F16((0..len).map(|_| rng.random_range(0x3c00..0x4000)).collect()),
        DType::Bool => TensorData::Bool(ints(2).into_iter().map(|v| v == 1).collect()),
        DType::I8 => TensorData::I8(ints(limit.min(100)).into_iter().map(|v| v as i8).collect()),
        DType::U8 => TensorData::U8(ints(limit.min(200)).into_iter().map(|v| v as u8).collect()),
        DType::I16 => TensorData::I16(
            ints(limit.min(1000))
                .into_iter()
                .map(|v| v as i16)
                .collect(),
        ),
        DType::U16 => TensorData::U16(
            ints(limit.min(1000))
                .into_iter()
                .map(|v| v as u16)
                .collect(),
        ),
        DType::I32 => TensorData::I32(ints(limit).into_iter().map(|v| v as i32).collect()),
        DType::U32 => TensorData::U32(ints(limit).into_iter().map(|v| v as u32).collect()),
        DType::I64 => TensorData::I64(ints(limit)),
        DType::U64 => TensorData::U64(ints(limit).into_iter().map(|v| v as u64).collect()),
    };
    Tensor::new(value.shape.clone(), data).ok()
}

/// Draws from the standard normal distribution (Box and Muller's method).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius: f64 = 1.0 - rng.random::<f64>();
    let angle: f64 = rng.random::<f64>() * std::f64::consts::TAU;
    (-2.0 * radius.ln()).sqrt() * angle.cos()
}

/// A tensor as safetensors sees it.
struct Bytes<'a>(&'a Tensor);

impl View for Bytes<'_> {
    fn dtype(&self) -> Dtype {
        stored_type(self.0.dtype())
    }

    fn shape(&self) -> &[usize] {
        self.0.shape().dims()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(self.0.data().to_le_bytes())
    }

    fn data_len(&self) -> usize {
        self.0.shape().len() * self.0.dtype().bytes()
    }
}
