//! Comparing an artifact's numbers with the reference.
//!
//! Kernels that round to 8 bits may round sums next to a tie either way, and a model of many layers
//! carries that on. So each step is judged from the reference's own operands, where it may be one
//! step of its own rounding off, for few elements; a wrong kernel is not. The whole is held to what
//! such steps make of the outputs, which is measured: [`sensitivities`]. Models of floats have no
//! such slack.

use super::buffer::Buffer;
use super::reference::{Tensors, Values, element};
use super::refusal::Refusal;
use super::slot::Slot;
use crate::backend::{Place, TraceSpec, View};
use crate::graph::DType;
use crate::measure::protocol::{StepCheck, Verified};

/// Steps by which outputs of a whole run may differ from the reference: over thirty layers
/// onnxruntime's own ways of computing a model of 8-bit integers differ by two in the end.
const WHOLE_STEPS: f64 = 4.0;

/// What a step that rounds may differ by. Sums within rounding of a tie are rare, but means of two
/// bytes are ties every other time, half of which may go the other way; rounding that is wrong, such
/// as towards zero, moves every other element.
pub(super) const ONE_STEP: Slack = Slack {
    near: 1.0,
    share: 0.3,
};

/// Elements that are no share of anything.
const FEW: f64 = 4.0;

/// How far integers, or numbers that stand for them, may be from the right ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slack {
    /// The largest distance that does not count.
    pub(super) near: f64,
    /// The largest share of elements that are not right and yet as near as that; all count if there
    /// are more.
    pub(super) share: f64,
}

impl Slack {
    /// No distance is nothing.
    pub(super) const NONE: Self = Self {
        near: 0.0,
        share: 0.0,
    };

    /// Returns the largest distance to a number that does not count: of half precision, one step of
    /// that number, as it is the rounded one of another that is compared with more digits elsewhere.
    fn near(self, dtype: DType, expected: f64) -> f64 {
        match dtype {
            DType::F16 => half_step(expected),
            _ => self.near,
        }
    }
}

/// Returns the distance between numbers of half precision of that size.
fn half_step(number: f64) -> f64 {
    let exponent = ((number.to_bits() >> 52) as i32 & 0x7ff) - 1023;
    2f64.powi(exponent.clamp(-14, 15) - 10)
}

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
    let sensitivities = sensitivities(slot, tensors)?;
    let mut run = NOTHING;
    for _ in 0..2 {
        poison(slot);
        slot.run(0, slot.n_steps());
        let outputs = slot.artifact.outputs.iter().zip(&slot.outputs);
        for (idx, (io, buffer)) in outputs.enumerate() {
            let view = View::dense(io.shape.len());
            let reference = tensors.get(&io.name, io.shape.len())?;
            let step = if is_byte(io.dtype) {
                1.0
            } else {
                let known = slot.artifact.resolutions.get(idx);
                known.map_or(0.0, |&s| f64::from(s)).max(sensitivities[idx])
            };
            run.add(distance(
                &view,
                buffer,
                io.dtype,
                reference,
                match io.dtype {
                    DType::F16 => ONE_STEP,
                    _ => Slack {
                        near: WHOLE_STEPS * step,
                        share: 1.0,
                    },
                },
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
    let slack = if is_byte(dtype) || dtype == DType::F16 {
        ONE_STEP
    } else {
        Slack::NONE
    };
    let distance = distance(&trace.view, buffer, dtype, reference, slack);
    let is_wrong = is_byte(dtype) || distance.is_none_or(|distance| distance > MAX_UNNOTICED);
    if is_wrong && dtype == reference.dtype {
        let (element, bytes) = (dtype.bytes(), buffer.bytes_mut());
        for_each(&trace.view, |idx, at| {
            let right = &reference.bytes[idx * element..][..element];
            bytes[at * element..][..element].copy_from_slice(right);
        });
    }
    Ok(distance)
}

/// Runs the artifact once more, with each byte that a step leaves a step beside the right one, up or
/// down; returns the largest distance of each output to the reference, 0 if it depends on no byte.
fn sensitivities(slot: &mut Slot, tensors: &Tensors<'_>) -> Result<Vec<f64>, Refusal> {
    let steps = slot.artifact.steps.clone();
    let traces = || steps.iter().map(|step| &step.traces);
    if !traces().flatten().any(|trace| is_byte(trace.dtype)) {
        return Ok(vec![0.0; slot.outputs.len()]);
    }
    for (step_idx, traces) in traces().enumerate() {
        slot.run(step_idx, step_idx + 1);
        for trace in traces.iter().filter(|trace| is_byte(trace.dtype)) {
            let reference = tensors.get(&trace.value, trace.view.dims.iter().product())?;
            let bytes = match trace.place {
                Place::Arena => slot.arena.bytes_mut(),
                Place::Output(idx) => slot.outputs[idx].bytes_mut(),
            };
            if reference.dtype == trace.dtype {
                for_each(&trace.view, |idx, at| {
                    bytes[at] = beside(trace.dtype, reference.bytes[idx], idx);
                });
            }
        }
    }
    let outputs = slot.artifact.outputs.iter().zip(&slot.outputs);
    let largest = outputs.map(|(io, buffer)| {
        let reference = tensors.get(&io.name, io.shape.len())?;
        let bytes = buffer.bytes();
        let apart = (0..io.shape.len()).map(|idx| {
            let right = element(reference.dtype, reference.bytes, idx);
            (element(io.dtype, bytes, idx) - right).abs()
        });
        Ok(apart.filter(|apart| apart.is_finite()).fold(0.0, f64::max))
    });
    largest.collect()
}

/// Returns the integer above or below one, whose direction is that of no pattern.
fn beside(dtype: DType, byte: u8, idx: usize) -> u8 {
    let is_up = (idx as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1;
    match (dtype, is_up) {
        (DType::I8, true) => (byte as i8).saturating_add(1) as u8,
        (DType::I8, false) => (byte as i8).saturating_sub(1) as u8,
        (_, true) => byte.saturating_add(1),
        (_, false) => byte.saturating_sub(1),
    }
}

fn is_byte(dtype: DType) -> bool {
    matches!(dtype, DType::U8 | DType::I8)
}

/// Returns the relative L2 distance of what differs by more than `slack` allows; `None` if it is not a
/// finite number.
pub(super) fn distance(
    view: &View,
    buffer: &Buffer,
    dtype: DType,
    reference: Values<'_>,
    slack: Slack,
) -> Option<f64> {
    let (mut difference, mut norm) = (0.0, 0.0);
    let (mut n_near, mut near_difference, mut n_elements) = (0usize, 0.0, 0usize);
    let mut add = |actual: f64, expected: f64| {
        // Rounding of the numbers themselves.
        let near = slack.near(dtype, expected) * (1.0 + 1e-5);
        let apart = (actual - expected).abs();
        if apart > near || apart.is_nan() {
            difference += apart * apart;
        } else if apart > MAX_UNNOTICED * near {
            n_near += 1;
            near_difference += apart * apart;
        }
        n_elements += 1;
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
    if n_near as f64 > slack.share * n_elements as f64 + FEW {
        difference += near_difference;
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
        match io.dtype {
            DType::F32 => buffer.f32s_mut().fill(f32::NAN),
            // All bits are one of those that are not a number.
            DType::F16 => buffer.bytes_mut().fill(0xff),
            _ => {}
        }
    }
}
