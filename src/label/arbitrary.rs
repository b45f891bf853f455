//! Records for tests.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::digest::Digest;
use crate::space::{Candidate, Mapping, ParamValue};

/// Returns the digest of a number.
pub(crate) fn digest(n: u64) -> Digest {
    Digest::of_bytes("metainfer test v1", &n.to_le_bytes())
}

/// Returns a task.
pub(crate) fn task(n: u64) -> TaskKey {
    TaskKey {
        structure: digest(n),
        device: digest(1000),
        backend: "native".to_owned(),
        backend_version: "1".to_owned(),
        threads: 1,
    }
}

/// Returns a good label of task `n`, different for each `sample_ns`.
pub(crate) fn label(n: u64, sample_ns: u64) -> Label {
    let samples_ns = vec![sample_ns + 2, sample_ns, sample_ns + 1];
    Label {
        task: task(n),
        candidate: Candidate {
            mapping: Mapping::default()
                .with("tile", 16)
                .with("layout", "nchw16c"),
            ..Candidate::default()
        },
        stage: Stage::Measured,
        outcome: Outcome::Ok,
        message: String::new(),
        measurement: Measurement::of(samples_ns, Clock::Tsc, Context::Chain),
        energy_mj: None,
        divergence: Some(2.5e-7),
        content: Some(digest(2000)),
        cost: Cost {
            compile_ns: 60_000_000,
            measure_ns: 1_000_000,
        },
        provenance: Provenance {
            tool: "0.1.0".to_owned(),
            toolchain: "rustc 1.95.0".to_owned(),
            artifact: Some(digest(3000)),
            time_ms: 1_750_000_000_000,
        },
    }
}

/// Returns a good evaluation of adaptation `n`, different for each `time_ms`.
pub(crate) fn evaluation(n: u64, time_ms: u64) -> Evaluation {
    Evaluation {
        adaptation: digest(n),
        artifact: digest(3000),
        purpose: Purpose::Screening,
        outcome: Outcome::Ok,
        message: String::new(),
        run_p25_ns: Some(1.5e6),
        ratio_to_baseline: Some(0.75),
        n_labels: 3,
        cost: Cost::default(),
        time_ms,
    }
}

/// Generates good labels of a few tasks.
pub(crate) fn labels() -> impl Strategy<Value = Label> {
    let measurement = vec(1..10_000_000_u64, 1..12);
    let message = "[ -~\n\u{e9}\u{4e2d}]{0,40}";
    let word = prop_oneof![
        any::<i64>().prop_map(ParamValue::Int),
        "[a-z0-9\"\\\\]{0,8}".prop_map(ParamValue::Word),
    ];
    let mapping = proptest::collection::btree_map("[a-z_]{1,6}", word, 0..5);
    let rest = (
        option::of(1e-6..1e6_f64),
        option::of(0.0..1.0_f64),
        0..10_000_000_000_000_u64,
        any::<bool>(),
    );
    (0..4_u64, 0..4_usize, measurement, message, mapping, rest).prop_map(
        |(task_idx, outcome_idx, samples_ns, message, mapping, rest)| {
            let (energy_mj, divergence, time_ms, alone) = rest;
            let mut label = label(task_idx, 1);
            label.candidate.mapping = Mapping(mapping);
            label.provenance.time_ms = time_ms;
            label.energy_mj = energy_mj.map(|energy_mj| (energy_mj, "model".to_owned()));
            let context = if alone {
                Context::Alone
            } else {
                Context::Chain
            };
            label.outcome = [
                Outcome::Ok,
                Outcome::WrongOutput,
                Outcome::CompileError,
                Outcome::RunTimeout,
            ][outcome_idx];
            label.measurement = None;
            label.divergence = None;
            if label.outcome.has_run() {
                label.measurement = Measurement::of(samples_ns, Clock::Tsc, context);
                label.divergence = divergence;
            }
            if label.outcome != Outcome::Ok {
                label.message = message;
            }
            label
        },
    )
}
