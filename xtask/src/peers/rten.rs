//! `xtask rten`: serves the engine rten to the harness, over standard input and output.
//!
//! Lines of JSON go both ways; the bytes of tensors are hexadecimal. The first answer says that the
//! model is loaded. Calls are timed here, so that the way to and fro does not count.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rten::{Model, NodeId, RunOptions, ThreadPool, Value, ValueOrView};
use rten_tensor::{AsView, Layout, Tensor};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

/// What to serve.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Model file
    model: PathBuf,
    /// Threads of a run
    threads: usize,
}

/// A request.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Request {
    /// Take inputs.
    Bind(Vec<Sent>),
    /// Run once.
    Call,
    /// Say what the last run gave.
    Results,
    /// Say what memory it took.
    Memory,
}

/// A tensor as it travels.
#[derive(Serialize, Deserialize)]
struct Sent {
    name: String,
    dtype: String,
    shape: Vec<usize>,
    bytes: String,
}

/// A loaded model with its inputs and the outputs of the last run.
struct Engine {
    model: Model,
    threads: Arc<ThreadPool>,
    inputs: Vec<(NodeId, Value)>,
    outputs: Vec<Value>,
}

/// Serves until standard input ends.
pub(crate) fn run(args: &Args) -> Result<()> {
    let before = resident_mib("VmRSS")?;
    let started = Instant::now();
    let mut engine = Engine::load(&args.model, args.threads)?;
    let load_ms = started.elapsed().as_secs_f64() * 1e3;
    say(&json!({ "load_ms": load_ms }))?;
    for line in std::io::stdin().lock().lines() {
        let answer = match serde_json::from_str(&line?)? {
            Request::Bind(tensors) => {
                let inputs = tensors.iter().map(|tensor| engine.input(tensor));
                engine.inputs = inputs.collect::<Result<_>>()?;
                json!({})
            }
            Request::Call => engine.call()?,
            Request::Results => json!({ "values": engine.results()? }),
            Request::Memory => json!({ "peak_mib": resident_mib("VmHWM")? - before }),
        };
        say(&answer)?;
    }
    Ok(())
}

impl Engine {
    fn load(path: &Path, threads: usize) -> Result<Self> {
        Ok(Self {
            model: Model::load_file(path)?,
            threads: Arc::new(ThreadPool::with_num_threads(threads)),
            inputs: Vec::new(),
            outputs: Vec::new(),
        })
    }

    fn input(&self, tensor: &Sent) -> Result<(NodeId, Value)> {
        let id = self.model.node_id(&tensor.name)?;
        Ok((id, to_value(tensor)?))
    }

    fn call(&mut self) -> Result<Json> {
        let inputs: Vec<(NodeId, ValueOrView<'_>)> = self
            .inputs
            .iter()
            .map(|(id, value)| (*id, value.into()))
            .collect();
        let outputs = self.model.output_ids();
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.threads)));
        let cpu_ns = processor_ns();
        let started = Instant::now();
        let values = self.model.run(inputs, outputs, Some(options))?;
        let wall_ns = started.elapsed().as_nanos() as u64;
        let cpu_ns = processor_ns() - cpu_ns;
        self.outputs = values;
        Ok(json!({ "wall_ns": wall_ns, "cpu_ns": cpu_ns }))
    }

    fn results(&self) -> Result<Vec<Sent>> {
        let ids = self.model.output_ids().iter();
        let result = |(&id, value): (&NodeId, &Value)| {
            let info = self.model.node_info(id);
            let name = info.as_ref().and_then(rten::NodeInfo::name);
            to_sent(name.unwrap_or_default(), value)
        };
        ids.zip(&self.outputs).map(result).collect()
    }
}

/// Converts an input; the engine has 32-bit integers only.
fn to_value(tensor: &Sent) -> Result<Value> {
    let bytes = from_hex(&tensor.bytes)?;
    let shape = tensor.shape.as_slice();
    Ok(match tensor.dtype.as_str() {
        "f32" => Tensor::try_from_data(shape, words(&bytes, f32::from_le_bytes))?.into(),
        "i32" => Tensor::try_from_data(shape, words(&bytes, i32::from_le_bytes))?.into(),
        "i64" => {
            let wide = words(&bytes, i64::from_le_bytes);
            let narrow: Vec<i32> = wide
                .into_iter()
                .map(i32::try_from)
                .collect::<Result<_, _>>()?;
            Tensor::try_from_data(shape, narrow)?.into()
        }
        "u8" => Tensor::try_from_data(shape, bytes)?.into(),
        "i8" => {
            let bytes: Vec<i8> = bytes.into_iter().map(u8::cast_signed).collect();
            Tensor::try_from_data(shape, bytes)?.into()
        }
        other => bail!("it has no inputs of type {other}"),
    })
}

fn to_sent(name: &str, value: &Value) -> Result<Sent> {
    let (dtype, shape, bytes) = match value {
        Value::FloatTensor(tensor) => (
            "f32",
            tensor.shape().to_vec(),
            tensor.iter().flat_map(|v| v.to_le_bytes()).collect(),
        ),
        Value::Int32Tensor(tensor) => (
            "i32",
            tensor.shape().to_vec(),
            tensor.iter().flat_map(|v| v.to_le_bytes()).collect(),
        ),
        Value::UInt8Tensor(tensor) => ("u8", tensor.shape().to_vec(), tensor.to_vec()),
        Value::Int8Tensor(tensor) => (
            "i8",
            tensor.shape().to_vec(),
            tensor.iter().map(|v| v.cast_unsigned()).collect(),
        ),
        _ => bail!("`{name}` is no tensor"),
    };
    Ok(Sent {
        name: name.to_owned(),
        dtype: dtype.to_owned(),
        shape,
        bytes: to_hex(&bytes),
    })
}

/// Reads words of a width from little-endian bytes.
fn words<T, const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    let (words, _) = bytes.as_chunks::<N>();
    words.iter().map(|&word| read(word)).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes
        .iter()
        .flat_map(|&byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

fn from_hex(text: &str) -> Result<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).context("not hexadecimal");
    let (pairs, _) = text.as_bytes().as_chunks::<2>();
    pairs
        .iter()
        .map(|&[high, low]| Ok((digit(high)? << 4 | digit(low)?) as u8))
        .collect()
}

/// Returns the processor time of this process, nanoseconds.
fn processor_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Returns a figure of `/proc/self/status`, MiB.
fn resident_mib(key: &str) -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let fields: BTreeMap<&str, &str> = status
        .lines()
        .filter_map(|line| line.split_once(':'))
        .collect();
    let field = fields
        .get(key)
        .context("the system does not say how much memory is used")?;
    let kib = field.split_whitespace().next().unwrap_or_default();
    Ok(kib.parse::<f64>()? / 1024.0)
}

fn say(answer: &Json) -> Result<()> {
    println!("{answer}");
    Ok(std::io::stdout().flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_survive_the_way() {
        let wide: Vec<u8> = [1i64, -2].iter().flat_map(|v| v.to_le_bytes()).collect();
        let given = Sent {
            name: "x".to_owned(),
            dtype: "i64".to_owned(),
            shape: vec![2],
            bytes: to_hex(&wide),
        };
        let back = to_sent("x", &to_value(&given).unwrap()).unwrap();
        assert_eq!((back.dtype.as_str(), back.shape), ("i32", vec![2]));
        assert_eq!(back.bytes, "01000000feffffff");
        assert!(from_hex("0g").is_err());
    }

    #[test]
    fn inputs_of_another_size_are_refused() {
        let given = Sent {
            name: "x".to_owned(),
            dtype: "f32".to_owned(),
            shape: vec![3],
            bytes: to_hex(&[0; 8]),
        };
        assert!(to_value(&given).is_err());
    }
}
