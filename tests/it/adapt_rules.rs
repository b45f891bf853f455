//! The rules of the loop, on kernels some of which are wrong, crash, hang or do not compile.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::collections::BTreeSet;
use std::time::Duration;

use metainfer::label::{Label, Outcome, Purpose};
use metainfer::lock::{self, Deployment};
use metainfer::space::Candidate;

use crate::support::Sandbox;
use crate::support::inside::{Fault, Log, run};
use crate::support::tiny::{self, Conv, Tiny};

fn locked(sandbox: &Sandbox) -> Deployment {
    let lockfile = lock::decode(&sandbox.read("metainfer.lock")).unwrap();
    lockfile.deployments.into_values().next().unwrap()
}

fn choices(deployment: &Deployment) -> Vec<&Candidate> {
    let subgraphs = deployment.subgraphs.iter();
    subgraphs.map(|subgraph| &subgraph.candidate).collect()
}

fn unroll(candidate: &Candidate) -> i64 {
    candidate.mapping.int("unroll").unwrap()
}

/// Returns the labels of the pointwise convolution in the middle of the model.
fn labels_of_middle(sandbox: &Sandbox) -> Vec<Label> {
    let structure = locked(sandbox).subgraphs[1].structure;
    let mut labels = sandbox.records().labels;
    labels.retain(|label| label.task.structure == structure);
    labels
}

/// Checks that faulty candidates of the middle are labelled so, that all others are not, that a
/// right one is locked, and that a second run tries none of them again.
fn check(fault: Fault, max_evaluations: u32, expected: Outcome) -> Vec<Label> {
    let sandbox = Sandbox::with_tiny(&tiny::three());
    let log = Log::default();
    run(&sandbox.request(max_evaluations), fault, &log).unwrap();
    let middle = labels_of_middle(&sandbox);
    for label in &middle {
        let outcome = if Fault::hits(unroll(&label.candidate)) {
            expected
        } else {
            Outcome::Ok
        };
        assert_eq!(label.outcome, outcome, "{:?}", label.candidate);
    }
    let failures: Vec<Label> = middle
        .into_iter()
        .filter(|l| l.outcome == expected)
        .collect();
    assert!(!failures.is_empty(), "no faulty candidate was tried");
    let labels = sandbox.records().labels;
    let n_failures = labels.iter().filter(|l| l.outcome != Outcome::Ok).count();
    assert_eq!(n_failures, failures.len(), "innocents are blamed");
    assert!(!Fault::hits(unroll(choices(&locked(&sandbox))[1])));

    // Without the lock everything is searched again, but for what is known to fail.
    std::fs::remove_file(sandbox.path("metainfer.lock")).unwrap();
    run(&sandbox.request(max_evaluations), fault, &log).unwrap();
    let again = labels_of_middle(&sandbox);
    let failed: Vec<&Candidate> = again
        .iter()
        .filter(|label| label.outcome == expected)
        .map(|label| &label.candidate)
        .collect();
    let different: BTreeSet<&Candidate> = failed.iter().copied().collect();
    assert_eq!(failed.len(), different.len(), "a failure was tried again");
    assert!(failed.len() >= failures.len());
    failures
}

#[test]
fn wrong_numbers_are_labelled_and_never_locked() {
    for label in check(Fault::WrongNumbers, 5, Outcome::WrongOutput) {
        assert!(
            label.message.contains("relative distance"),
            "{}",
            label.message
        );
        assert!(label.measurement.is_none());
        assert!(label.divergence.unwrap() > 1e-4);
    }
}

#[test]
fn models_of_integers_adapt_and_wrong_kernels_of_them_are_never_locked() {
    let sandbox = Sandbox::with_tiny(&tiny::quantized());
    run(&sandbox.request(8), Fault::WrongIntegers, &Log::default()).unwrap();
    let locked = locked(&sandbox);
    let mut n_wrong = 0;
    for label in sandbox.records().labels {
        let Some(unroll) = label.candidate.mapping.int("unroll") else {
            assert_eq!(label.outcome, Outcome::Ok);
            continue;
        };
        let expected = if unroll == 2 {
            Outcome::Ok
        } else {
            n_wrong += 1;
            Outcome::WrongOutput
        };
        assert_eq!(label.outcome, expected, "{:?}", label.candidate);
    }
    assert!(n_wrong > 0, "no faulty candidate was tried");
    let unrolls = choices(&locked).into_iter();
    let unrolls = unrolls.filter_map(|choice| choice.mapping.int("unroll"));
    assert_eq!(unrolls.collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn a_crash_is_pinned_on_its_candidate_and_the_run_goes_on() {
    for label in check(Fault::Crash, 12, Outcome::RunError) {
        assert!(label.message.contains("SIGSEGV"), "{}", label.message);
    }
}

#[test]
fn what_does_not_compile_is_labelled_with_the_message_and_never_run() {
    for label in check(Fault::CompileError, 4, Outcome::CompileError) {
        assert!(label.message.contains("injected"), "{}", label.message);
        assert_eq!(label.provenance.artifact, None);
    }
}

#[test]
fn a_hang_ends_when_its_time_is_up() {
    let mut tiny = Tiny::new(1);
    let only = tiny.conv("only", tiny.input(), Conv::new([8, 8], 1));
    let sandbox = Sandbox::with_tiny(&tiny.finish(only));
    let mut request = sandbox.request(4);
    request.timeouts.trial_timeout = Duration::from_secs(2);
    run(&request, Fault::Hang, &Log::default()).unwrap();
    let records = sandbox.records();
    let hung: Vec<&Label> = records
        .labels
        .iter()
        .filter(|label| label.outcome == Outcome::RunTimeout)
        .collect();
    assert!(!hung.is_empty());
    for label in hung {
        assert!(Fault::hits(unroll(&label.candidate)));
        assert!(label.message.contains("within 2 s"), "{}", label.message);
    }
    assert!(!Fault::hits(unroll(choices(&locked(&sandbox))[0])));
    assert!(records.spent().count() <= 4);
}

/// Returns what every subgraph of a model has untuned, by the labels of its first evaluation.
fn defaults(sandbox: &Sandbox, deployment: &Deployment) -> Vec<Candidate> {
    let records = sandbox.records();
    let first = records.evaluations[0].artifact;
    let of = |structure| {
        let mut labels = records.labels.iter();
        labels.find(|label: &&Label| {
            label.task.structure == structure && label.provenance.artifact == Some(first)
        })
    };
    let subgraphs = deployment.subgraphs.iter();
    subgraphs
        .map(|subgraph| of(subgraph.structure).unwrap().candidate.clone())
        .collect()
}

/// Adapts, and then makes the lock of the default one of other choices, whose search was
/// interrupted.
fn adapted_with_lock_of(
    fault: Fault,
    change: impl FnOnce(&mut Deployment),
) -> (Sandbox, Deployment) {
    let sandbox = Sandbox::with_tiny(&tiny::three());
    // The only evaluation is that of the default.
    run(&sandbox.request(1), fault, &Log::default()).unwrap();
    let mut lockfile = lock::decode(&sandbox.read("metainfer.lock")).unwrap();
    let deployment = lockfile.deployments.values_mut().next().unwrap();
    let defaults = defaults(&sandbox, deployment);
    assert_eq!(choices(deployment), defaults.iter().collect::<Vec<_>>());
    change(deployment);
    deployment.is_interrupted = true;
    let deployment = deployment.clone();
    sandbox.file("metainfer.lock", &lock::encode(&lockfile).unwrap());
    (sandbox, deployment)
}

#[test]
fn min_gain_is_not_asked_of_those_that_challenge_a_default_that_is_not_locked() {
    let sandbox = Sandbox::with_tiny(&tiny::three());
    let log = Log::default();
    let mut request = sandbox.request(4);
    request.search.min_gain = 0.999;
    run(&request, Fault::SlowDefault, &log).unwrap();
    let compared = log.compared.lock().unwrap();
    let gained = |&(ratio, accepted): &(f64, bool)| accepted && ratio > 0.001;
    assert_eq!(compared.iter().filter(|c| gained(c)).count(), 1);
    let deployment = locked(&sandbox);
    assert!(deployment.speed_up.get() > 1.5);
    assert_ne!(unroll(choices(&deployment)[1]), 4);
}

#[test]
fn min_gain_keeps_a_default_that_is_locked() {
    let (sandbox, old) = adapted_with_lock_of(Fault::SlowDefault, |_| {});
    let log = Log::default();
    let mut request = sandbox.request(4);
    request.search.min_gain = 0.999;
    run(&request, Fault::SlowDefault, &log).unwrap();
    let compared = log.compared.lock().unwrap();
    assert!(
        compared.iter().any(|(ratio, _)| *ratio < 0.7),
        "{compared:?}"
    );
    assert!(compared.iter().all(|(_, accepted)| !accepted));
    assert_eq!(choices(&locked(&sandbox)), choices(&old));
}

#[test]
fn min_gain_keeps_the_locked_incumbent_and_the_default_is_measured_beside_it() {
    let (sandbox, old) = adapted_with_lock_of(Fault::None, |deployment| {
        let middle = &mut deployment.subgraphs[1].candidate.mapping;
        *middle = middle.clone().with("unroll", 2);
    });
    let (text, before) = (sandbox.read("metainfer.lock"), sandbox.records());
    // The budget of the first run only has the default in it.
    for max_evaluations in [1, 4] {
        sandbox.file("metainfer.lock", &text);
        let mut request = sandbox.request(max_evaluations);
        request.search.min_gain = 0.9;
        run(&request, Fault::None, &Log::default()).unwrap();
        let new = locked(&sandbox);
        assert_eq!(choices(&new), choices(&old));
        assert!(!new.is_interrupted);
    }
    let records = sandbox.records();
    let new = &records.evaluations[before.evaluations.len()..];
    assert_eq!(new[0].artifact, before.evaluations[0].artifact);
    assert_eq!(new.last().unwrap().purpose, Purpose::Confirm);
}

#[test]
fn a_locked_choice_that_is_slower_than_the_default_is_replaced_even_if_the_budget_is_spent() {
    let (sandbox, _) = adapted_with_lock_of(Fault::None, |deployment| {
        // Values change their layout twice between the convolutions, in tiles of one column.
        let middle = &mut deployment.subgraphs[1].candidate.mapping;
        let slow = middle.clone().with("tile_w", 1).with("tile_h", 1);
        *middle = slow.with("layout_in", "nhwc").with("unroll", 1);
        let last = &mut deployment.subgraphs[2].candidate.mapping;
        let slow = last.clone().with("tile_w", 1).with("tile_h", 1);
        *last = slow.with("layout_in", "nhwc");
    });
    let log = Log::default();
    let summary = run(&sandbox.request(1), Fault::None, &log).unwrap();
    assert_eq!(summary.n_evaluations, 1);
    let deployment = locked(&sandbox);
    let defaults = defaults(&sandbox, &deployment);
    assert_eq!(choices(&deployment), defaults.iter().collect::<Vec<_>>());
}

#[test]
fn a_search_of_a_small_space_ends_before_its_budget() {
    let sandbox = Sandbox::with_tiny(&tiny::dense());
    let summary = run(&sandbox.request(300), Fault::None, &Log::default()).unwrap();
    assert!(summary.n_evaluations < 20, "{}", summary.n_evaluations);
    let records = sandbox.records();
    let artifacts: BTreeSet<_> = records.spent().map(|e| e.artifact).collect();
    assert_eq!(artifacts.len(), records.spent().count(), "evaluated twice");
}
