//! What a trial says of the subgraphs that were in it.

use std::path::PathBuf;

use super::setup::{Setup, switched};
use crate::adapt::bench::{Trial, TrialError};
use crate::adapt::job::{Choices, Job};
use crate::adapt::ledger::{self, TOLERANCE};
use crate::backend::{Artifact, StepSpec};
use crate::digest::Digest;
use crate::label::{Outcome, Purpose};
use crate::measure::WorkerError;
use crate::measure::protocol::{Profile, StepCheck, Verified};

fn step(subgraph: Option<usize>, conversion: Option<&str>) -> StepSpec {
    StepSpec {
        name: "step".to_owned(),
        subgraph,
        conversion: conversion.map(str::to_owned),
        traces: Vec::new(),
    }
}

/// Returns an artifact of two subgraphs: the first takes two steps, the second has its input
/// converted and copied into a border.
fn artifact(first: usize, second: usize) -> Artifact {
    Artifact {
        digest: Digest::of_bytes("test", b"artifact"),
        library: PathBuf::from("a.so"),
        weights: PathBuf::from("a.bin"),
        threads: 1,
        arena_bytes: 0,
        fills: Vec::new(),
        resolutions: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        steps: vec![
            step(Some(first), None),
            step(Some(first), None),
            step(None, Some("nchw16c→nhwc 1x16x14x14")),
            step(None, Some("nhwc→nhwc 1x16x14x14")),
            step(Some(second), None),
        ],
        compile_ns: 500,
    }
}

fn check_of(relative_l2: Option<f64>) -> StepCheck {
    StepCheck {
        relative_l2,
        compared: true,
    }
}

/// Returns a trial in which step `i` took `10^i` nanoseconds, and twice that in the second run.
fn trial(distances: [Option<f64>; 5]) -> Trial {
    Trial {
        verified: Verified {
            steps: distances.map(check_of).to_vec(),
            run: check_of(Some(0.0)),
        },
        profile: Profile {
            run_ns: vec![11111, 22222],
            steps_ns: (0..5u32)
                .map(|i| vec![10u64.pow(i), 2 * 10u64.pow(i)])
                .collect(),
            gave_up: false,
        },
        measure_ns: 1000,
    }
}

/// Returns two different subgraphs with something to choose.
fn two(job: &Job<'_>) -> [usize; 2] {
    let (first, _) = switched(job);
    let second = (0..job.task_of.len()).find(|&subgraph| {
        job.task_of[subgraph] != job.task_of[first] && job.prepared.space(subgraph).is_some()
    });
    [first, second.unwrap()]
}

#[test]
fn a_subgraph_is_its_steps_and_the_copies_that_only_give_it_a_border() {
    let setup = Setup::new();
    let job = setup.job();
    let [first, second] = two(&job);
    let choices = job.choices(job.defaults());
    let fine = Some(1e-7);
    let labels = ledger::labels(&job, &choices, &artifact(first, second), &trial([fine; 5]));
    assert_eq!(labels.len(), 3, "two subgraphs and one conversion");
    let samples = |task: Option<usize>| {
        let (_, label) = labels.iter().find(|(of, _)| *of == task).unwrap();
        label.check().unwrap();
        assert_eq!(label.outcome, Outcome::Ok);
        label.measurement.as_ref().unwrap().samples_ns.clone()
    };
    assert_eq!(samples(Some(job.task_of[first])), [11, 22]);
    assert_eq!(samples(Some(job.task_of[second])), [11000, 22000]);
    assert_eq!(samples(None), [100, 200]);
    for (task, label) in &labels {
        let Some(task) = *task else {
            assert_eq!(
                label.task,
                job.side_key("nchw16c→nhwc 1x16x14x14", &job.options())
            );
            assert_eq!(label.candidate.mapping.0.len(), 0);
            continue;
        };
        assert_eq!(label.task, job.tasks[task].key);
        let subgraph = job.tasks[task].occurrences[0];
        assert_eq!(label.candidate, choices.candidates[subgraph]);
        assert_eq!(label.content, Some(job.source.subgraphs[subgraph].content));
        assert_eq!(label.divergence, Some(1e-7));
        assert_eq!(
            label.provenance.artifact,
            Some(Digest::of_bytes("test", b"artifact"))
        );
    }
}

#[test]
fn labels_under_other_options_have_keys_of_their_own() {
    let setup = Setup::new();
    let job = setup.job();
    let [first, second] = two(&job);
    let mut keys = std::collections::BTreeSet::new();
    for options in job.backend.options() {
        let choices = Choices {
            candidates: job.defaults(),
            options: options.clone(),
        };
        let artifact = artifact(first, second);
        let labels = ledger::labels(&job, &choices, &artifact, &trial([Some(0.0); 5]));
        for (task, label) in labels {
            let is_searched = *options == job.options();
            if let Some(task) = task {
                assert_eq!(label.task == job.tasks[task].key, is_searched);
            }
            let level = format!("-O{}", options.int("opt-level").unwrap());
            assert!(label.task.backend_version.ends_with(&level), "{options}");
            assert!(keys.insert(label.task.digest()));
        }
    }
    assert_eq!(
        keys.len(),
        9,
        "two subgraphs and a conversion under three levels"
    );
}

#[test]
fn numbers_out_of_tolerance_are_wrong_output_of_that_subgraph_only() {
    let setup = Setup::new();
    let job = setup.job();
    let [first, second] = two(&job);
    let (fine, bad) = (Some(TOLERANCE), Some(TOLERANCE * 1.01));
    for (distances, is_wrong) in [
        ([fine, fine, fine, fine, fine], [false, false]),
        ([fine, bad, fine, fine, fine], [true, false]),
        ([fine, fine, fine, fine, bad], [false, true]),
        ([fine, fine, fine, bad, fine], [false, true]),
        ([None, fine, fine, fine, None], [true, true]),
    ] {
        let labels = ledger::labels(
            &job,
            &job.choices(job.defaults()),
            &artifact(first, second),
            &trial(distances),
        );
        for (subgraph, is_wrong) in [first, second].into_iter().zip(is_wrong) {
            let task = Some(job.task_of[subgraph]);
            let (_, label) = labels.iter().find(|(of, _)| *of == task).unwrap();
            label.check().unwrap();
            let expected = if is_wrong {
                Outcome::WrongOutput
            } else {
                Outcome::Ok
            };
            assert_eq!(label.outcome, expected, "{distances:?}");
            assert_eq!(label.measurement.is_none(), is_wrong);
            assert_eq!(label.message.is_empty(), !is_wrong);
        }
    }
}

#[test]
fn evaluations_say_how_the_trial_ended() {
    let setup = Setup::new();
    let job = setup.job();
    let [first, second] = two(&job);
    let artifact = artifact(first, second);
    let evaluation = |trial: Result<&Trial, &TrialError>| {
        let evaluation = ledger::evaluation(&job, &artifact, Purpose::Screening, trial, 3, 77);
        evaluation.check().unwrap();
        assert_eq!(evaluation.adaptation, job.adaptation());
        assert_eq!((evaluation.n_labels, evaluation.time_ms), (3, 77));
        (evaluation.outcome, evaluation.run_p25_ns)
    };
    let mut trial = trial([Some(0.0); 5]);
    let (outcome, ns) = evaluation(Ok(&trial));
    assert_eq!(outcome, Outcome::Ok);
    assert!((11111.0..22222.0).contains(&ns.unwrap()));
    trial.profile.gave_up = true;
    assert_eq!(evaluation(Ok(&trial)), (Outcome::Abandoned, None));
    let error = TrialError::from(WorkerError::TimedOut {
        after: std::time::Duration::from_secs(1),
    });
    assert_eq!(evaluation(Err(&error)), (Outcome::RunTimeout, None));
    let gone = TrialError::from(WorkerError::Gone);
    assert_eq!(evaluation(Err(&gone)), (Outcome::DeviceLost, None));
}
