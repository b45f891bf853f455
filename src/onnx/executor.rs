//! The reference executor `rten`: loads encoded graphs, converts values, runs on one thread.
//!
//! It computes in f32, i32, i8 and u8 only. Wider integers and booleans are narrowed on the way in
//! and widened on the way out, so the declared element type is kept on our side. Numbers of half
//! precision are converted before and behind it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rten::{Model, ModelOptions, RunOptions, ThreadPool, Value, ValueOrView};

use super::encode::encode;
use super::error::Problem;
use super::halves::{Edge, Edges, take_off};
use crate::graph::{DType, Graph, Shape, Tensor, TensorData, f16_to_f32, f64_to_f16};

/// What it is doing once a graph is loaded.
pub(super) const RUNNING: &str = "run the model";

/// A graph ready to run.
pub(super) struct Executor {
    model: Model,
    edges: Edges,
    threads: Arc<ThreadPool>,
}

impl Executor {
    /// Loads a graph without optimising it, so that every value keeps its name.
    pub(super) fn new(graph: &Graph, threads: Arc<ThreadPool>) -> Result<Self, Problem> {
        let mut graph = graph.clone();
        let edges = take_off(&mut graph);
        let bytes = encode(&graph).map_err(|error| reference("encode the model", error))?;
        let load = move || {
            let mut options = ModelOptions::with_all_ops();
            options.enable_optimization(false);
            options.load(bytes)
        };
        let model =
            guarded("load the model", load)?.map_err(|error| reference("load the model", error))?;
        Ok(Self {
            model,
            edges,
            threads,
        })
    }

    /// Runs the graph and returns the wanted values as the executor holds them.
    pub(super) fn run(
        &self,
        inputs: &[(&str, &Tensor)],
        wanted: &[&str],
    ) -> Result<Vec<Value>, Problem> {
        let id = |name: &str| {
            self.model
                .node_id(name)
                .map_err(|error| reference(&format!("find `{name}`"), error))
        };
        let converted = self.convert(inputs)?;
        let converted = converted.iter().map(|(edge, tensor)| (&*edge.to, tensor));
        let given = inputs.iter().copied().chain(converted);
        let given = given.filter(|(_, tensor)| tensor.dtype() != DType::F16);
        let inputs = given
            .map(|(name, tensor)| Ok((id(name)?, ValueOrView::Value(to_value(tensor)?))))
            .collect::<Result<Vec<_>, Problem>>()?;
        let wanted: Vec<&str> = wanted
            .iter()
            .map(|name| self.before_rounding(name))
            .collect();
        // Each value may be asked for once.
        let mut names = wanted.clone();
        names.sort_unstable();
        names.dedup();
        let ids = names.iter().map(|name| id(name));
        let ids = ids.collect::<Result<Vec<_>, _>>()?;
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.threads)));
        let values = guarded(RUNNING, || self.model.run(inputs, &ids, Some(options)))?
            .map_err(|error| reference(RUNNING, error))?;
        let value = |name| names.binary_search(name).ok().and_then(|at| values.get(at));
        let found = wanted.iter().map(|name| value(name).cloned());
        found
            .collect::<Option<_>>()
            .ok_or_else(|| reference(RUNNING, "it returned too few values"))
    }

    /// Does the conversions of inputs.
    fn convert<'a>(
        &'a self,
        inputs: &[(&str, &Tensor)],
    ) -> Result<Vec<(&'a Edge, Tensor)>, Problem> {
        let mut converted: Vec<(&Edge, Tensor)> = Vec::new();
        for edge in &self.edges.before {
            let made = converted.iter().find(|(made, _)| made.to == edge.from);
            let given = inputs.iter().find(|(name, _)| *name == edge.from);
            let source = made.map(|(_, tensor)| tensor);
            if let Some(source) = source.or(given.map(|(_, tensor)| *tensor)) {
                converted.push((edge, from_value(to_value(source)?, edge.dtype)?));
            }
        }
        Ok(converted)
    }

    /// Returns the name of the f32 value that a value of half precision is the rounded one of; other
    /// values are themselves.
    fn before_rounding<'a>(&'a self, name: &'a str) -> &'a str {
        let mut edges = self.edges.before.iter().chain(&self.edges.behind);
        let edge = edges.find(|edge| edge.to == name && edge.dtype == DType::F16);
        edge.map_or(name, |edge| &edge.from)
    }
}

/// Makes the single thread that runs are done on.
pub(super) fn single_thread() -> Arc<ThreadPool> {
    Arc::new(ThreadPool::with_num_threads(1))
}

/// Turns a panic of the executor into a failure.
fn guarded<T>(doing: &str, run: impl FnOnce() -> T) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
        let text = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("it panicked");
        reference(doing, text.to_owned())
    })
}

fn reference(doing: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Problem {
    Problem::Reference {
        doing: doing.to_owned(),
        source: source.into(),
    }
}

/// Converts to a value of the executor.
fn to_value(tensor: &Tensor) -> Result<Value, Problem> {
    let dims = tensor.shape().dims();
    let narrow = |ints: Vec<i64>| -> Vec<i32> {
        let clamp = |v: i64| v.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        ints.into_iter().map(clamp).collect()
    };
    match tensor.data() {
        TensorData::F32(data) => shaped(dims, data.clone()),
        TensorData::F64(data) => shaped(dims, data.iter().map(|&v| v as f32).collect()),
        TensorData::F16(data) => shaped(dims, data.iter().map(|&v| f16_to_f32(v)).collect()),
        TensorData::I8(data) => shaped(dims, data.clone()),
        TensorData::U8(data) => shaped(dims, data.clone()),
        TensorData::U64(data) => {
            let ints = data.iter().map(|&v| v.try_into().unwrap_or(i64::MAX));
            shaped(dims, narrow(ints.collect()))
        }
        _ => match tensor.to_i64() {
            Some(ints) => shaped(dims, narrow(ints)),
            None => Err(Problem::UnsupportedType {
                value: "input".to_owned(),
                dtype: tensor.dtype().to_string(),
            }),
        },
    }
}

fn shaped<T>(dims: &[usize], data: Vec<T>) -> Result<Value, Problem>
where
    Value: From<rten_tensor::Tensor<T>>,
{
    match rten_tensor::Tensor::try_from_data(dims, data) {
        Ok(tensor) => Ok(tensor.into()),
        Err(error) => Err(reference("take an input", error.to_string())),
    }
}

/// Returns the element type that an executor's value has at least.
pub(super) fn value_dtype(value: &Value) -> DType {
    match value {
        Value::Int8Tensor(_) => DType::I8,
        Value::UInt8Tensor(_) => DType::U8,
        Value::Int32Tensor(_) => DType::I32,
        _ => DType::F32,
    }
}

/// Converts from a value of the executor to the declared element type.
pub(super) fn from_value(value: Value, dtype: DType) -> Result<Tensor, Problem> {
    let refuse = || reference("return a value", "it is not a tensor".to_owned());
    let (shape, data) = match value {
        Value::FloatTensor(tensor) => {
            let (shape, data) = parts(tensor);
            (shape, from_f32(data, dtype))
        }
        Value::Int32Tensor(tensor) => {
            let (shape, data) = parts(tensor);
            (shape, from_i32(data, dtype))
        }
        Value::Int8Tensor(tensor) => {
            let (shape, data) = parts(tensor);
            let data = match dtype {
                DType::I8 => TensorData::I8(data),
                _ => from_i32(data.into_iter().map(i32::from).collect(), dtype),
            };
            (shape, data)
        }
        Value::UInt8Tensor(tensor) => {
            let (shape, data) = parts(tensor);
            let data = match dtype {
                DType::U8 => TensorData::U8(data),
                _ => from_i32(data.into_iter().map(i32::from).collect(), dtype),
            };
            (shape, data)
        }
        _ => return Err(refuse()),
    };
    if data.dtype() != dtype {
        return Err(reference("return a value", format!("it is not {dtype}")));
    }
    Tensor::new(shape, data).map_err(|error| reference("return a value", error))
}

fn parts<T: Copy>(tensor: rten_tensor::Tensor<T>) -> (Shape, Vec<T>) {
    use rten_tensor::Layout;
    let shape = Shape(tensor.shape().to_vec());
    (shape, tensor.into_data())
}

fn from_f32(data: Vec<f32>, dtype: DType) -> TensorData {
    match dtype {
        DType::F64 => TensorData::F64(data.into_iter().map(f64::from).collect()),
        DType::F16 => TensorData::F16(data.into_iter().map(|v| f64_to_f16(v.into())).collect()),
        _ => TensorData::F32(data),
    }
}

fn from_i32(data: Vec<i32>, dtype: DType) -> TensorData {
    match dtype {
        DType::I8 => TensorData::I8(data.into_iter().map(|v| v as i8).collect()),
        DType::U8 => TensorData::U8(data.into_iter().map(|v| v as u8).collect()),
        DType::I16 => TensorData::I16(data.into_iter().map(|v| v as i16).collect()),
        DType::U16 => TensorData::U16(data.into_iter().map(|v| v as u16).collect()),
        DType::U32 => TensorData::U32(data.into_iter().map(|v| v as u32).collect()),
        DType::I64 => TensorData::I64(data.into_iter().map(i64::from).collect()),
        DType::U64 => TensorData::U64(data.into_iter().map(|v| v as u64).collect()),
        DType::Bool => TensorData::Bool(data.into_iter().map(|v| v != 0).collect()),
        _ => TensorData::I32(data),
    }
}
