//! Proposals are valid and keep to their plan.

use proptest::prelude::*;

use super::setup::{Setup, candidate, label, learn_defaults, session};
use crate::adapt::propose::{LAYOUTS, LayoutPlan, propose};
use crate::search::plan_evaluation;
use crate::space::Candidate;

/// Returns whether a subgraph has a mapping of which nothing is known yet and whose layouts pass.
fn has_other(
    setup: &crate::adapt::job::Job<'_>,
    subgraph: usize,
    fits: &dyn Fn(&Candidate) -> bool,
) -> bool {
    use rand::SeedableRng;

    let Some(space) = setup.prepared.space(subgraph) else {
        return false;
    };
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
    let mut drawn = (0..300).filter_map(|_| space.sample(&mut rng));
    drawn.any(|mapping| fits(&candidate(&mapping)))
}

fn check(seed: u64, rounds: &[usize]) {
    let setup = Setup::new();
    let job = setup.job();
    let mut session = session(&job, seed);
    learn_defaults(&job, &mut session);
    let incumbent = job.defaults();
    for (&round, n) in rounds.iter().zip(1u64..) {
        let plan = match LAYOUTS.get(round) {
            Some(layout) => LayoutPlan::Throughout(layout),
            None => LayoutPlan::Like(&incumbent),
        };
        let shares = plan_evaluation(&session.states(&job), 1e5);
        let proposal = propose(&job, &mut session, &incumbent, plan, 1e5);
        assert_eq!(proposal.candidates.len(), job.task_of.len());
        let mut n_new = vec![0; job.tasks.len()];
        for (subgraph, proposed) in proposal.candidates.iter().enumerate() {
            let task = job.task_of[subgraph];
            let is_new = proposal.new.contains(&subgraph);
            n_new[task] += usize::from(is_new);
            let Some(space) = job.prepared.space(subgraph) else {
                assert!(!is_new);
                assert_eq!(proposed, &incumbent[subgraph]);
                continue;
            };
            let is_default = *proposed == incumbent[subgraph];
            let valid = space.is_valid(&proposed.mapping);
            assert!(is_default || valid.is_ok(), "{valid:?}");
            let fits = |candidate: &Candidate| {
                let layouts = job.prepared.layouts(subgraph, &candidate.mapping);
                layouts.is_none_or(|layouts| match plan {
                    LayoutPlan::Throughout(wanted) => layouts
                        .iter()
                        .all(|layout| [wanted, "flat", "nchw"].contains(&layout.as_str())),
                    LayoutPlan::Like(model) => {
                        let wanted = job.prepared.layouts(subgraph, &model[subgraph].mapping);
                        let wanted = wanted.unwrap();
                        layouts.iter().zip(&wanted).all(|(layout, wanted)| {
                            [wanted, "flat", "nchw"].contains(&layout.as_str())
                        })
                    }
                })
            };
            let may_differ = is_default || !has_other(&job, subgraph, &fits);
            assert!(may_differ || fits(proposed), "{plan:?}: {proposed:?}");
        }
        for (n_new, share) in n_new.iter().zip(&shares) {
            assert!(n_new <= share, "{n_new} of {share}");
        }
        assert!(!proposal.new.is_empty());
        // Some turn out to be fast, and some to fail.
        for &subgraph in &proposal.new {
            let task = job.task_of[subgraph];
            let mut label = label(
                &job,
                task,
                &proposal.candidates[subgraph].mapping,
                500 + 97 * n,
            );
            if (subgraph as u64 + n).is_multiple_of(5) {
                label.outcome = crate::label::Outcome::RunError;
                label.measurement = None;
            }
            session.learn(task, &label, 1.0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn every_candidate_is_valid_and_keeps_to_the_plan(
        seed in any::<u64>(),
        rounds in prop::collection::vec(0..LAYOUTS.len() + 2, 1..6),
    ) {
        check(seed, &rounds);
    }
}
