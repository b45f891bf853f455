//! Running an artifact once on given inputs.

use std::path::Path;

use safetensors::tensor::{TensorView, serialize};

use super::reference::Reference;
use super::refusal::Refusal;
use super::slot::Slot;
use crate::fsx;
use crate::graph::DType;
use crate::onnx::stored_type;

/// Runs the artifact in `slot` on the inputs that a file has, and writes all outputs to another.
pub(super) fn run(slot: &mut Slot, inputs: &Path, outputs: &Path) -> Result<(), Refusal> {
    slot.fill_inputs(&Reference::read(inputs)?.tensors()?)?;
    poison(slot);
    slot.run(0, slot.n_steps());
    let views = slot.artifact.outputs.iter().zip(&slot.outputs);
    let views = views
        .map(|(io, buffer)| {
            let shape = io.shape.dims().to_vec();
            let view = TensorView::new(stored_type(io.dtype), shape, buffer.bytes());
            view.map(|view| (io.name.as_str(), view))
        })
        .collect::<Result<Vec<_>, _>>()
        .and_then(|views| serialize(views, None))
        .map_err(|error| Refusal::device_lost(format!("cannot write the outputs: {error}")))?;
    fsx::write_scratch(outputs, &views).map_err(|error| Refusal::device_lost(error.to_string()))
}

/// Makes what the run leaves unwritten show: as NaN, as a Boolean that is none, or as integers that
/// are seldom right.
fn poison(slot: &mut Slot) {
    for (io, buffer) in slot.artifact.outputs.iter().zip(&mut slot.outputs) {
        let byte = match io.dtype {
            DType::F16 | DType::F32 | DType::F64 => 0xff,
            _ => 0x5a,
        };
        buffer.bytes_mut().fill(byte);
    }
}
