//! What a session takes over from earlier runs.

use std::collections::BTreeMap;

use super::setup::{Setup, label, session, session_with_lock, switched};
use crate::digest::Digest;
use crate::label::{Cost, Evaluation, Outcome, Purpose};
use crate::store::TaskLabels;

fn evaluation(artifact: u8, purpose: Purpose, time_ms: u64) -> Evaluation {
    Evaluation {
        adaptation: Digest::of_bytes("test", b"adaptation"),
        artifact: Digest::of_bytes("test", &[artifact]),
        purpose,
        outcome: Outcome::Ok,
        message: String::new(),
        run_p25_ns: Some(1.0),
        ratio_to_baseline: None,
        n_labels: 0,
        cost: Cost::default(),
        time_ms,
    }
}

#[test]
fn the_budget_counts_what_follows_the_last_confirmation() {
    use Purpose::{Confirm, Final, Screening};

    let setup = Setup::new();
    let job = setup.job();
    let check = |purposes: &[Purpose], n_spent: u32, n_evaluated: usize| {
        let evaluations: Vec<Evaluation> = purposes
            .iter()
            .zip(0..)
            .map(|(&purpose, n)| evaluation(n, purpose, n.into()))
            .collect();
        let mut session = session(&job, 0);
        session.resume(&job, &TaskLabels::new(), &evaluations);
        assert_eq!(session.budget.n_spent(), n_spent, "{purposes:?}");
        assert_eq!(session.evaluated.len(), n_evaluated, "{purposes:?}");
        assert_eq!(session.budget.max_evaluations(), 20);
    };
    check(&[], 0, 0);
    check(&[Screening, Screening, Final], 3, 3);
    check(&[Screening, Final, Confirm], 0, 0);
    check(&[Screening, Confirm, Screening, Final], 2, 2);
    check(&[Confirm, Screening, Confirm, Screening], 1, 1);
    check(&[Screening; 25], 25, 25);
}

#[test]
fn a_spent_budget_leaves_nothing_to_reserve() {
    let setup = Setup::new();
    let job = setup.job();
    let mut session = session(&job, 0);
    let spent: Vec<Evaluation> = (0..25)
        .map(|n| evaluation(n, Purpose::Screening, n.into()))
        .collect();
    session.resume(&job, &TaskLabels::new(), &spent);
    assert!(session.budget.reserve().is_none());
}

#[test]
fn times_of_evaluations_only_go_forward() {
    let setup = Setup::new();
    let job = setup.job();
    let mut session = session(&job, 0);
    let ahead = [
        evaluation(1, Purpose::Screening, 5000),
        evaluation(2, Purpose::Confirm, 4000),
    ];
    session.resume(&job, &TaskLabels::new(), &ahead);
    let times = [1000, 1000, 7000, 6000].map(|now_ms| session.stamp(now_ms));
    assert_eq!(times, [5001, 5002, 7000, 7001]);
}

#[test]
fn only_tasks_with_something_to_choose_count_as_reused() {
    let setup = Setup::new();
    let job = setup.job();
    let mut cold = session(&job, 0);
    assert_eq!(cold.n_reused(), 0);
    // As for a softmax.
    (cold.searches[0], cold.is_open[0]) = (None, false);
    assert_eq!(cold.n_reused(), 0);
    let (subgraph, nhwc) = switched(&job);
    let warm = session_with_lock(&job, job.task_of[subgraph], &nhwc);
    assert_eq!(warm.n_reused(), 1);
}

#[test]
fn labels_of_earlier_runs_are_learnt_and_counted() {
    let setup = Setup::new();
    let job = setup.job();
    let (subgraph, nhwc) = switched(&job);
    let task = job.task_of[subgraph];
    let mut session = session(&job, 0);
    let ok = label(&job, task, &nhwc, 700);
    let default = job.prepared.default_candidate(subgraph).mapping;
    let crashed = crate::label::Label {
        outcome: Outcome::RunError,
        measurement: None,
        ..label(&job, task, &default, 1)
    };
    let labels: TaskLabels = BTreeMap::from([
        (job.tasks[task].key.digest(), vec![ok, crashed]),
        (
            Digest::of_bytes("test", b"another task"),
            vec![label(&job, task, &nhwc, 1)],
        ),
    ]);
    session.resume(&job, &labels, &[]);
    assert_eq!(session.n_reused_labels, 2);
    let search = session.searches[task].as_mut().unwrap();
    let (best, estimate) = search.best().unwrap();
    assert_eq!(best, &nhwc);
    assert!((650.0..750.0).contains(&estimate.ns), "{estimate:?}");
    assert!(session.proven[task].contains(&nhwc));
    assert!(!session.proven[task].contains(&default));
    let proposed = search.propose(30, &|_| true);
    assert!(!proposed.contains(&default), "a failure is tried again");
}
