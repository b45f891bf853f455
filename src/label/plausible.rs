//! What figures of a record can be true.
//!
//! A store or a peer may be broken or lying; a wrong figure that is believed once is locked for
//! everyone. These checks catch what no honest measurement produces.

use super::canonical::Record;
use super::{Label, Latency, Measurement, Outcome, Stage};

/// Longest message that a record may carry, bytes.
pub const MAX_MESSAGE_BYTES: usize = 4096;

/// Longest name or version that a record may carry, bytes.
const MAX_NAME_BYTES: usize = 1024;

/// Most samples that a label may carry.
const MAX_SAMPLES: usize = 100_000;

/// Longest latency that can be meant, nanoseconds: one hour.
const MAX_LATENCY_NS: f64 = 3.6e12;

/// Latest time that can be meant, milliseconds since the Unix epoch: the end of the year 9999.
const MAX_TIME_MS: u64 = 253_402_300_799_999;

/// A figure or a combination of fields that cannot be true.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Implausible {
    /// Not a finite number, negative, zero where that cannot be, or far too large.
    #[error("`{0}` is out of range")]
    OutOfRange(&'static str),
    /// Absent though the outcome implies it.
    #[error("`{0}` is missing though the outcome implies it")]
    Missing(&'static str),
    /// Present though the outcome rules it out.
    #[error("`{0}` is there though the outcome rules it out")]
    Unexpected(&'static str),
    /// Empty, or longer than anyone writes.
    #[error("`{0}` is empty or too long")]
    Length(&'static str),
    /// The quantiles are not those of the samples.
    #[error("the quantiles are not those of the samples")]
    Quantiles,
}

/// Shortens a message to what a record may carry, at a character boundary.
pub fn shorten(message: &str) -> &str {
    let mut end = message.len().min(MAX_MESSAGE_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}

impl Record for Label {
    const NAME: &'static str = "label";
    const VERSION: u32 = 1;

    fn check(&self) -> Result<(), Implausible> {
        name("task.backend", &self.task.backend)?;
        name("task.backend_version", &self.task.backend_version)?;
        name("provenance.tool", &self.provenance.tool)?;
        if self.task.threads == 0 {
            return Err(Implausible::OutOfRange("task.threads"));
        }
        time("provenance.time_ms", self.provenance.time_ms)?;
        message(self.outcome, &self.message)?;
        match (&self.measurement, self.outcome) {
            (None, Outcome::Ok) => return Err(Implausible::Missing("measurement")),
            (Some(_), outcome) if !outcome.has_run() => {
                return Err(Implausible::Unexpected("measurement"));
            }
            (Some(measurement), _) => check_measurement(measurement, self.stage)?,
            (None, _) => {}
        }
        if let Some((energy_mj, source)) = &self.energy_mj {
            positive("energy_mj", Some(*energy_mj))?;
            name("energy_mj", source)?;
        }
        match self.divergence {
            Some(divergence) if !divergence.is_finite() || divergence < 0.0 => {
                Err(Implausible::OutOfRange("divergence"))
            }
            Some(_) if !self.outcome.has_run() => Err(Implausible::Unexpected("divergence")),
            _ => Ok(()),
        }
    }
}

/// Checks that a failure's message is short, and that success has none.
pub(super) fn message(outcome: Outcome, message: &str) -> Result<(), Implausible> {
    if outcome == Outcome::Ok && !message.is_empty() {
        return Err(Implausible::Unexpected("message"));
    }
    if message.len() > MAX_MESSAGE_BYTES {
        return Err(Implausible::Length("message"));
    }
    Ok(())
}

/// Checks that a figure, if given, is positive and finite.
pub(super) fn positive(field: &'static str, value: Option<f64>) -> Result<(), Implausible> {
    match value {
        Some(value) if !value.is_finite() || value <= 0.0 => Err(Implausible::OutOfRange(field)),
        _ => Ok(()),
    }
}

/// Checks that a time is one that a clock shows.
pub(super) fn time(field: &'static str, time_ms: u64) -> Result<(), Implausible> {
    if time_ms > MAX_TIME_MS {
        return Err(Implausible::OutOfRange(field));
    }
    Ok(())
}

fn name(field: &'static str, name: &str) -> Result<(), Implausible> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Err(Implausible::Length(field));
    }
    Ok(())
}

fn check_measurement(measurement: &Measurement, stage: Stage) -> Result<(), Implausible> {
    let Measurement {
        latency,
        samples_ns,
        ..
    } = measurement;
    let is_latency = |ns: f64| ns > 0.0 && ns <= MAX_LATENCY_NS;
    if !is_latency(latency.p25_ns) || !is_latency(latency.p50_ns) {
        return Err(Implausible::OutOfRange("latency"));
    }
    if samples_ns.len() > MAX_SAMPLES {
        return Err(Implausible::Length("samples_ns"));
    }
    if samples_ns.iter().any(|&ns| ns as f64 > MAX_LATENCY_NS) {
        return Err(Implausible::OutOfRange("samples_ns"));
    }
    match Latency::of(samples_ns) {
        Some(of_samples) if of_samples == *latency => Ok(()),
        // A simulator has one figure and no samples.
        None if stage == Stage::Simulated && latency.dispersion == 0.0 => Ok(()),
        None => Err(Implausible::Missing("samples_ns")),
        Some(_) => Err(Implausible::Quantiles),
    }
}
