//! What is proposed: filters, diversity, exhaustion, determinism, resumption.

use std::collections::BTreeSet;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::landscape::{Landscape, any, landscape_search};
use crate::search::TaskSearch;
use crate::space::Mapping;

#[test]
fn a_filter_holds_for_every_proposal_and_is_searched_as_well() {
    let (landscape, mut search) = landscape_search();
    let rng = &mut ChaCha8Rng::seed_from_u64(5);
    let filter = |m: &Mapping| m.word("layout") == Some("nhwc") && m.int("unroll") == Some(2);
    let mut best_ns = f64::INFINITY;
    for _ in 0..40 {
        let batch = search.propose(3, &filter);
        assert_eq!(batch.len(), 3);
        for mapping in batch {
            assert!(filter(&mapping), "{mapping}");
            search.observe(&mapping, landscape.evaluate(&mapping, rng));
            if !landscape.fails(&mapping) {
                best_ns = best_ns.min(landscape.true_ns(&mapping));
            }
        }
    }
    let passing = landscape
        .space
        .enumerate()
        .filter(|m| filter(m) && !landscape.fails(m));
    let optimum_ns = passing
        .map(|m| landscape.true_ns(&m))
        .fold(f64::INFINITY, f64::min);
    assert!(best_ns < 1.1 * optimum_ns, "{best_ns} against {optimum_ns}");
    assert_eq!(search.propose(3, &|_| false), []);
}

#[test]
fn a_space_is_exhausted_and_nothing_more_is_expected_of_it() {
    let (landscape, _) = landscape_search();
    let small = landscape
        .space
        .restricted(|m| m.int("tile") == Some(3) && m.int("vectors") == Some(2));
    let n_valid = small.enumerate().count();
    let mut search = TaskSearch::new(small.clone(), small.default_mapping().unwrap(), 0);
    let rng = &mut ChaCha8Rng::seed_from_u64(6);
    let mut n_proposed = 0;
    loop {
        let batch = search.propose(5, &any);
        if batch.is_empty() {
            break;
        }
        n_proposed += batch.len();
        for mapping in batch {
            search.observe(&mapping, landscape.evaluate(&mapping, rng));
        }
    }
    assert_eq!(search.n_mappings(), n_valid);
    assert!(n_proposed <= 3 * n_valid);
    let (best, estimate) = search.best().unwrap();
    let gain_ns = search.expected_gain().unwrap();
    assert!(gain_ns < 0.02 * estimate.ns, "{gain_ns} for {best}");
}

#[test]
fn a_batch_is_diverse() {
    let (landscape, mut search) = landscape_search();
    let rng = &mut ChaCha8Rng::seed_from_u64(7);
    for _ in 0..15 {
        for mapping in search.propose(3, &any) {
            search.observe(&mapping, landscape.evaluate(&mapping, rng));
        }
    }
    let batch = search.propose(8, &any);
    let distinct: BTreeSet<&Mapping> = batch.iter().collect();
    assert_eq!(distinct.len(), 8);
    for name in ["tile", "vectors"] {
        let values: BTreeSet<_> = batch.iter().map(|m| m.int(name)).collect();
        assert!(values.len() >= 3, "{name} is one of {values:?}");
    }
}

#[test]
fn the_best_of_each_layout_is_known() {
    let (landscape, mut search) = landscape_search();
    let rng = &mut ChaCha8Rng::seed_from_u64(8);
    for _ in 0..20 {
        for mapping in search.propose(3, &any) {
            search.observe(&mapping, landscape.evaluate(&mapping, rng));
        }
    }
    let best = search.best_by(|mapping| mapping.word("layout").unwrap().to_owned());
    assert_eq!(best.len(), 3);
    for (layout, (mapping, estimate)) in &best {
        assert_eq!(mapping.word("layout"), Some(&**layout));
        assert_eq!(search.estimate(mapping), Some(*estimate));
    }
    let fastest = best
        .values()
        .min_by(|a, b| a.1.ns.total_cmp(&b.1.ns))
        .unwrap();
    assert_eq!(search.best().unwrap(), (&fastest.0, fastest.1));
}

#[test]
fn equal_calls_give_equal_proposals() {
    let run = |seed| {
        let landscape = Landscape::new(3);
        let default = landscape.space.default_mapping().unwrap();
        let mut search = TaskSearch::new(landscape.space.clone(), default, seed);
        let rng = &mut ChaCha8Rng::seed_from_u64(9);
        let mut all = Vec::new();
        for _ in 0..12 {
            for mapping in search.propose(2, &any) {
                search.observe(&mapping, landscape.evaluate(&mapping, rng));
                all.push(mapping);
            }
        }
        all
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_resumed_search_proposes_nothing_that_was_measured() {
    let (landscape, mut search) = landscape_search();
    let rng = &mut ChaCha8Rng::seed_from_u64(10);
    let mut journal = Vec::new();
    for _ in 0..10 {
        for mapping in search.propose(3, &any) {
            let observation = landscape.evaluate(&mapping, rng);
            search.observe(&mapping, observation);
            journal.push((mapping, observation));
        }
    }
    let (_, mut resumed) = landscape_search();
    for (mapping, observation) in &journal {
        resumed.observe(mapping, *observation);
    }
    assert_eq!(resumed.best(), search.best());
    for mapping in resumed.propose(10, &any) {
        let n_seen = journal.iter().filter(|(seen, _)| *seen == mapping).count();
        assert!(n_seen < 3 && (n_seen == 0 || !landscape.fails(&mapping)));
    }
}
