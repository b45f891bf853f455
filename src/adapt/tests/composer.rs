//! Composition: conversions are priced, and what is locked has its chance.

use super::setup::{Setup, candidate, label, learn_defaults, session, session_with_lock, switched};
use crate::adapt::composer::{UNIVERSE, best};

#[test]
fn nothing_known_is_the_default_everywhere() {
    let setup = Setup::new();
    let job = setup.job();
    let composed = best(&job, &session(&job, 0), 3);
    assert_eq!(composed[0].candidates, job.defaults());
}

#[test]
fn a_faster_candidate_pays_for_the_conversions_around_it() {
    let setup = Setup::new();
    let job = setup.job();
    let (subgraph, nhwc) = switched(&job);
    let task = job.task_of[subgraph];
    assert_eq!(
        job.tasks[task].occurrences.len(),
        1,
        "one place is easier to reason about"
    );
    let mut session = session(&job, 0);
    learn_defaults(&job, &mut session);
    session.learn(task, &label(&job, task, &nhwc, 900), 1.0);
    // By their bytes, two conversions take more than the tenth of a microsecond that is gained.
    let [all_blocked] = &best(&job, &session, 1)[..] else {
        panic!("one was asked for");
    };
    assert_eq!(all_blocked.candidates, job.defaults());

    // Measured, they take next to nothing.
    let graph = job.source.graph();
    for dims in graph.values.iter().map(|value| value.shape.dims()) {
        let &[n, c, h, w] = dims else { continue };
        for from in UNIVERSE {
            for to in UNIVERSE {
                session.learn_side(&format!("{from}→{to} {n}x{c}x{h}x{w}"), 10.0);
            }
        }
    }
    let [switched] = &best(&job, &session, 1)[..] else {
        panic!("one was asked for");
    };
    assert_eq!(switched.candidates[subgraph], candidate(&nhwc));
    assert!(switched.cost_ns < all_blocked.cost_ns);
    let differs = |idx: &usize| switched.candidates[*idx] != all_blocked.candidates[*idx];
    assert_eq!((0..job.task_of.len()).filter(differs).count(), 1);
}

#[test]
fn what_is_locked_stands_in_for_what_was_never_measured() {
    let setup = Setup::new();
    let job = setup.job();
    let (subgraph, nhwc) = switched(&job);
    let task = job.task_of[subgraph];
    let other = job
        .prepared
        .default_candidate(subgraph)
        .mapping
        .with("unroll", 1);
    for locked in [nhwc, other] {
        // Nothing is known at all.
        let session = session_with_lock(&job, task, &locked);
        assert!(!session.is_open[task]);
        let composed = best(&job, &session, 1);
        assert_eq!(composed[0].candidates[subgraph], candidate(&locked));
        assert_eq!(session.fallback(&job)[subgraph], candidate(&locked));
    }
}

#[test]
fn what_is_locked_is_measured_before_it_is_given_up() {
    let setup = Setup::new();
    let job = setup.job();
    let (subgraph, _) = switched(&job);
    let task = job.task_of[subgraph];
    let default = job.prepared.default_candidate(subgraph);
    let locked = default.mapping.clone().with("unroll", 1);
    let mut session = session_with_lock(&job, task, &locked);
    learn_defaults(&job, &mut session);
    let choice = |session: &_| best(&job, session, 1)[0].candidates[subgraph].clone();
    assert_eq!(choice(&session), candidate(&locked));
    // Now it is known to be slower.
    session.learn(task, &label(&job, task, &locked, 3000), 1.0);
    assert_eq!(choice(&session), default);
}
