//! Comparing an artifact's numbers with the reference.

use super::buffer::Buffer;
use super::reference::{Tensors, Values, element};
use super::refusal::Refusal;
use super::slot::Slot;
use crate::backend::{IoSpec, Place, TraceSpec, View};
use crate::graph::DType;
use crate::measure::protocol::{StepCheck, Verified};

/// Steps of a rounded output by which a whole run may differ from the reference. Where sums lie
/// next to a tie, rounding may go either way; each step of the run is held to one such step from
/// the reference's own operands, but over thirty layers onnxruntime's own ways of computing a
/// model of 8-bit integers differ by two in the end.
const WHOLE_STEPS: f64 = 4.0;

/// Distance above which a value is replaced by the reference's.
const MAX_UNNOTICED: f64 = 1e-6;

/// Runs the artifact step by step, then twice as a whole, and compares.
pub(super) fn verify(slot: &mut Slot, tensors: &Tensors<'_>) -> Result<Verified, Refusal> {
    slot.fill_inputs(tensors)?;
    let mut steps = Vec::with_capacity(slot.n_steps());
    poison(slot);
    for step_idx in 0..slot.n_steps() {
        slot.run(step_idx, step_idx + 1);
        let traces = slot.artifact.steps[step_idx].traces.clone();
        let mut check = NOTHING;
        for trace in &traces {
            check.add(judge(slot, trace, tensors)?);
        }
        steps.push(check);
    }
    let mut run = NOTHING;
    for _ in 0..2 {
        poison(slot);
        slot.run(0, slot.n_steps());
        let outputs = slot.artifact.outputs.iter().zip(&slot.outputs);
        for (idx, (io, buffer)) in outputs.enumerate() {
            let view = dense(io);
            let reference = tensors.get(&io.name, io.shape.len())?;
            let step = match io.dtype {
                DType::U8 | DType::I8 => 1.0,
                _ => slot
                    .artifact
                    .resolutions
                    .get(idx)
                    .map_or(0.0, |&s| s.into()),
            };
            run.add(distance(
                &view,
                buffer,
                io.dtype,
                reference,
                WHOLE_STEPS * step,
            ));
        }
    }
    Ok(Verified { steps, run })
}

const NOTHING: StepCheck = StepCheck {
    relative_l2: Some(0.0),
    compared: false,
};

impl StepCheck {
    /// Takes in another distance; one that is not a number stays.
    fn add(&mut self, distance: Option<f64>) {
        self.compared = true;
        self.relative_l2 = match (self.relative_l2, distance) {
            (Some(largest), Some(distance)) => Some(largest.max(distance)),
            _ => None,
        };
    }
}

/// Compares one traced value, and corrects it if it is wrong.
fn judge(
    slot: &mut Slot,
    trace: &TraceSpec,
    tensors: &Tensors<'_>,
) -> Result<Option<f64>, Refusal> {
    let n_elements = trace.view.dims.iter().product();
    let reference = tensors.get(&trace.value, n_elements)?;
    let dtype = trace.dtype;
    let buffer = match trace.place {
        Place::Arena => &mut slot.arena,
        Place::Output(idx) => &mut slot.outputs[idx],
    };
    // An 8-bit integer next to the right one is right, and yet what reads it gets the right one.
    let near = f64::from(u8::from(matches!(dtype, DType::U8 | DType::I8)));
    let distance = distance(&trace.view, buffer, dtype, reference, near);
    let is_wrong = near > 0.0 || distance.is_none_or(|distance| distance > MAX_UNNOTICED);
    if is_wrong && dtype == reference.dtype {
        let (element, bytes) = (dtype.bytes(), buffer.bytes_mut());
        for_each(&trace.view, |idx, at| {
            let right = &reference.bytes[idx * element..][..element];
            bytes[at * element..][..element].copy_from_slice(right);
        });
    }
    Ok(distance)
}

/// Returns the relative L2 distance of what differs by more than `near`; `None` if it is not a finite
/// number.
pub(super) fn distance(
    view: &View,
    buffer: &Buffer,
    dtype: DType,
    reference: Values<'_>,
    near: f64,
) -> Option<f64> {
    let (mut difference, mut norm) = (0.0, 0.0);
    // Rounding of the numbers themselves.
    let near = near * (1.0 + 1e-5);
    let mut add = |actual: f64, expected: f64| {
        let apart = (actual - expected).abs();
        let beyond = if apart <= near { 0.0 } else { apart };
        difference += beyond * beyond;
        norm += expected * expected;
    };
    if dtype == DType::F32 && reference.dtype == DType::F32 {
        let numbers = buffer.f32s();
        for_each(view, |idx, at| {
            add(
                numbers[at].into(),
                element(DType::F32, reference.bytes, idx),
            );
        });
    } else {
        let bytes = buffer.bytes();
        for_each(view, |idx, at| {
            let expected = element(reference.dtype, reference.bytes, idx);
            add(element(dtype, bytes, at), expected);
        });
    }
    let scale = if norm > 0.0 { norm } else { 1.0 };
    let relative = (difference / scale).sqrt();
    relative.is_finite().then_some(relative)
}

/// Calls `visit(row-major index, index in the buffer)` for each element of a view.
pub(super) fn for_each(view: &View, mut visit: impl FnMut(usize, usize)) {
    let [n_batches, n_channels, n_rows, n_columns] = view.dims;
    let mut idx = 0;
    for n in 0..n_batches {
        for c in 0..n_channels {
            for h in 0..n_rows {
                let row = view.index(n, c, h, 0);
                for w in 0..n_columns {
                    visit(idx, row + w * view.block);
                    idx += 1;
                }
            }
        }
    }
}

/// Makes what a run leaves unwritten show as not a number.
fn poison(slot: &mut Slot) {
    for (io, buffer) in slot.artifact.outputs.iter().zip(&mut slot.outputs) {
        if io.dtype == DType::F32 {
            buffer.f32s_mut().fill(f32::NAN);
        }
    }
}

fn dense(io: &IoSpec) -> View {
    let n = io.shape.len();
    View {
        offset: 0,
        dims: [1, 1, 1, n],
        block: 1,
        n_stride: n,
        block_stride: n,
        row_stride: n,
    }
}
