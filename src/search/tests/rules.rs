//! The rules of the loop, as far as one task can keep them.

use std::collections::{BTreeMap, BTreeSet};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::landscape::{any, landscape_search};
use crate::label::Outcome;
use crate::search::{Observation, TaskSearch};
use crate::space::Mapping;

#[test]
fn the_default_is_proposed_first_and_suggestions_next() {
    let (landscape, mut search) = landscape_search();
    let rng = &mut ChaCha8Rng::seed_from_u64(0);
    let suggested: Vec<Mapping> = (0..2)
        .map(|_| landscape.space.sample(rng).unwrap())
        .collect();
    let outside = suggested[0].clone().with("tile", 99);
    search.suggest([
        suggested[0].clone(),
        outside,
        suggested[1].clone(),
        suggested[0].clone(),
    ]);
    let batch = search.propose(4, &any);
    assert_eq!(batch[0], *search.default_mapping());
    assert_eq!(batch[1..3], suggested);
    assert!(!batch[..3].contains(&batch[3]));

    let alien = Mapping::default().with("other", 1);
    let mut search = TaskSearch::new(landscape.space.clone(), alien.clone(), 11);
    assert_eq!(search.propose(1, &any), std::slice::from_ref(&alien));
    search.observe(
        &alien,
        Observation::Ok {
            ns: 5.0,
            dispersion: 0.0,
        },
    );
    assert_eq!(search.best().unwrap().0, &alien);
    assert!(
        search
            .propose(3, &any)
            .iter()
            .all(|m| search.space().is_valid(m).is_ok())
    );
}

#[test]
fn what_failed_or_is_known_well_enough_is_never_proposed_again() {
    let (landscape, mut search) = landscape_search();
    let rng = &mut ChaCha8Rng::seed_from_u64(1);
    let outcomes = [
        Outcome::CompileError,
        Outcome::WrongOutput,
        Outcome::Abandoned,
        Outcome::RunTimeout,
    ];
    let mut n_seen: BTreeMap<Mapping, u32> = BTreeMap::new();
    let mut failed = BTreeSet::new();
    for round in 0..25 {
        for mapping in search.propose(3, &any) {
            assert!(!failed.contains(&mapping), "{mapping} was proposed again");
            assert_eq!(landscape.space.is_valid(&mapping), Ok(()));
            *n_seen.entry(mapping.clone()).or_default() += 1;
            if rng.random_bool(0.3) {
                search.observe(&mapping, Observation::Failed(outcomes[round % 4]));
                failed.insert(mapping);
            } else {
                search.observe(&mapping, landscape.evaluate(&mapping, rng));
                if landscape.fails(&mapping) {
                    failed.insert(mapping);
                }
            }
        }
    }
    assert!(n_seen.values().all(|&n| n <= 3));
    let best = search.best().unwrap();
    assert!(!failed.contains(best.0));
    assert!(
        failed
            .iter()
            .all(|mapping| search.estimate(mapping).is_none())
    );
    assert!(search.failure_rate() > 0.1 && search.failure_rate() < 0.6);
}

#[test]
fn a_lost_device_is_no_failure_of_the_mapping() {
    let (_, mut search) = landscape_search();
    let default = search.propose(1, &any).remove(0);
    assert!(!search.propose(1, &any).contains(&default), "it is held");
    search.observe(&default, Observation::Failed(Outcome::DeviceLost));
    assert_eq!(search.n_mappings(), 0);
    assert!(search.propose(1, &any).contains(&default));
    search.release(&default);
    assert_eq!(search.propose(1, &any), [default]);
}

#[test]
fn nonsense_is_not_learnt() {
    let (_, mut search) = landscape_search();
    let default = search.default_mapping().clone();
    for ns in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
        search.observe(
            &default,
            Observation::Ok {
                ns,
                dispersion: 0.1,
            },
        );
    }
    search.observe(&default, Observation::Failed(Outcome::Ok));
    assert_eq!(search.best(), None);
    assert_eq!(search.expected_gain(), None);
    search.observe(
        &default,
        Observation::Ok {
            ns: 1e4,
            dispersion: f64::NAN,
        },
    );
    let (mapping, estimate) = search.best().unwrap();
    assert_eq!((mapping, estimate.n_samples), (&default, 1));
    assert!((estimate.ns - 1e4).abs() < 1.0 && estimate.spread.is_finite());
}

#[test]
fn one_lucky_sample_does_not_become_the_best() {
    let (landscape, mut search) = landscape_search();
    let rng = &mut ChaCha8Rng::seed_from_u64(2);
    for _ in 0..20 {
        for mapping in search.propose(2, &any) {
            search.observe(&mapping, landscape.evaluate(&mapping, rng));
        }
    }
    let (best, estimate) = search.best().map(|(m, e)| (m.clone(), e)).unwrap();
    for _ in 0..6 {
        let ns = landscape.true_ns(&best) * 1.001;
        search.observe(
            &best,
            Observation::Ok {
                ns,
                dispersion: 0.02,
            },
        );
    }
    // A neighbour as fast as the best, with a sample that is 4 % too low.
    let neighbours = landscape.space.neighbours(&best).into_iter();
    let lucky = neighbours
        .filter(|m| !landscape.fails(m) && search.estimate(m).is_some_and(|e| e.n_samples == 0));
    let lucky = lucky
        .max_by(|a, b| landscape.true_ns(a).total_cmp(&landscape.true_ns(b)))
        .unwrap();
    let ns = search.best().unwrap().1.ns * 0.99;
    search.observe(
        &lucky,
        Observation::Ok {
            ns,
            dispersion: 0.02,
        },
    );
    assert_eq!(search.best().unwrap().0, &best, "estimated {estimate:?}");
    // Seen again and again, it does.
    for _ in 0..8 {
        search.observe(
            &lucky,
            Observation::Ok {
                ns: ns * 0.97,
                dispersion: 0.02,
            },
        );
    }
    assert_eq!(search.best().unwrap().0, &lucky);
}

#[test]
fn a_tenth_of_the_proposals_or_more_explores() {
    // Every guided proposal keeps `order`, the only thing that matters here.
    let (_, mut search) = landscape_search();
    let rng = &mut ChaCha8Rng::seed_from_u64(4);
    let mut n_elsewhere = 0;
    for round in 0..120 {
        for mapping in search.propose(1, &any) {
            let ns = if mapping.word("order") == Some("px") {
                1e3
            } else {
                1e6
            };
            let ns = ns * (1.0 + 0.01 * rng.random::<f64>());
            search.observe(
                &mapping,
                Observation::Ok {
                    ns,
                    dispersion: 0.01,
                },
            );
            n_elsewhere += i32::from(round >= 40 && ns > 1e5);
        }
    }
    // Two thirds of a blind eighth are elsewhere.
    assert!((3..20).contains(&n_elsewhere), "{n_elsewhere} of 80");
}
