//! The search on made-up landscapes whose optimum is known.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::label::Outcome;
use crate::space::{Facts, Mapping, ParamValue, SearchSpace, SpaceTemplate};

const SPACE: &str = r#"
param = [
    { name = "layout", values = ["nchw", "nhwc", "nchw16c"] },
    { name = "lanes", values = [4, 8, 16] },
    { name = "vectors", values = [1, 2, 3, 4, 6, 8] },
    { name = "tile", values = "range(1, 15)" },
    { name = "unroll", values = [1, 2, 4, 8] },
    { name = "order", values = ["oc", "px", "row"] },
]
constraint = [{ expr = "vectors * tile + vectors < 32", reason = "spills" }]
feature = [{ name = "accumulators", expr = "vectors * tile" }]
"#;

/// A landscape: latency is a product of effects of single parameters and of pairs.
struct Landscape {
    space: SearchSpace,
    seed: u64,
    optimum_ns: f64,
}

impl Landscape {
    fn new(seed: u64) -> Self {
        let template = SpaceTemplate::parse("made-up", SPACE).unwrap();
        let space = template.instantiate(&Facts::new()).unwrap();
        let mut landscape = Self {
            space,
            seed,
            optimum_ns: 0.0,
        };
        let running = landscape.space.enumerate().filter(|m| !landscape.fails(m));
        landscape.optimum_ns = running
            .map(|m| landscape.true_ns(&m))
            .fold(f64::INFINITY, f64::min);
        landscape
    }

    /// A number in 0..1 that depends on the landscape and the words.
    fn chance(&self, words: &[&str]) -> f64 {
        let text = words.join("/");
        let digest = crate::digest::Digest::of_bytes(
            "landscape",
            format!("{} {text}", self.seed).as_bytes(),
        );
        f64::from(u32::from_le_bytes(
            digest.as_bytes()[..4].try_into().unwrap(),
        )) / f64::from(u32::MAX)
    }

    fn true_ns(&self, mapping: &Mapping) -> f64 {
        let mut log = (1e5f64).ln();
        let params: Vec<(&String, &ParamValue)> = mapping.0.iter().collect();
        for (idx, (name, value)) in params.iter().enumerate() {
            let value = value.to_string();
            log += match mapping.int(name) {
                Some(number) => {
                    let ideal = 4.0 * self.chance(&[name, "ideal"]);
                    0.25 * ((number as f64).log2() - ideal).powi(2)
                }
                None => 0.8 * self.chance(&[name, &value]),
            };
            for (other, other_value) in &params[idx + 1..] {
                log += 0.08 * self.chance(&[name, &value, other, &other_value.to_string()]);
            }
        }
        let accumulators = (mapping.int("vectors").unwrap() * mapping.int("tile").unwrap()) as f64;
        let full = (16.0 + 12.0 * self.chance(&["full"])).log2();
        (log + 0.3 * (accumulators.log2() - full).abs()).exp()
    }

    /// A fifth of the mappings fail, half of them together.
    fn fails(&self, mapping: &Mapping) -> bool {
        let corner = mapping.int("unroll") == Some(8) && mapping.int("lanes") != Some(8);
        corner || self.chance(&["fails", &mapping.to_string()]) < 0.05
    }

    fn evaluate(&self, mapping: &Mapping, rng: &mut ChaCha8Rng) -> Observation {
        if self.fails(mapping) {
            return Observation::Failed(Outcome::RunError);
        }
        let noise = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        Observation::Ok {
            ns: self.true_ns(mapping) * (0.05 * noise).exp(),
            dispersion: 0.03,
        }
    }

    fn is_good(&self, mapping: &Mapping) -> bool {
        self.true_ns(mapping) <= 1.05 * self.optimum_ns
    }

    /// Evaluations until a random mapping is good.
    fn random_search(&self, rng: &mut ChaCha8Rng, limit: u32) -> u32 {
        (1..limit)
            .find(|_| {
                let mapping = self.space.sample(rng).unwrap();
                !self.fails(&mapping) && self.is_good(&mapping)
            })
            .unwrap_or(limit)
    }

    /// Evaluations until what the search believes to be best is good, in batches of three.
    fn task_search(&self, rng: &mut ChaCha8Rng, limit: u32) -> u32 {
        let default = self.space.sample(rng).unwrap();
        let mut search = TaskSearch::new(self.space.clone(), default, self.seed);
        let mut n_evaluations = 0;
        while n_evaluations < limit {
            for mapping in search.propose(3, &|_| true) {
                let observation = self.evaluate(&mapping, rng);
                search.observe(&mapping, observation);
                n_evaluations += 1;
            }
            if search.best().is_some_and(|(best, _)| self.is_good(best)) {
                return n_evaluations;
            }
        }
        limit
    }
}

#[test]
fn a_search_needs_far_fewer_evaluations_than_chance() {
    let run = |seeds: std::ops::Range<u64>| {
        let mut logs = [0.0, 0.0];
        for seed in seeds {
            let landscape = Landscape::new(seed);
            let rng = &mut ChaCha8Rng::seed_from_u64(seed);
            let random = landscape.random_search(rng, 3000);
            let search = landscape.task_search(rng, 240);
            logs[0] += f64::from(random).ln() / 20.0;
            logs[1] += f64::from(search).ln() / 20.0;
        }
        logs
    };
    let halves = std::thread::scope(|scope| {
        [0..10, 10..20]
            .map(|seeds| scope.spawn(|| run(seeds)))
            .map(|half| half.join().unwrap())
    });
    let logs = [halves[0][0] + halves[1][0], halves[0][1] + halves[1][1]];
    let [random, search] = logs.map(f64::exp);
    assert!(
        search < 90.0 && random > 10.0 * search,
        "{random} against {search}"
    );
}

/// A search of landscape 3 with its default.
fn landscape_search() -> (Landscape, TaskSearch) {
    let landscape = Landscape::new(3);
    let default = landscape
        .space
        .enumerate()
        .find(|m| !landscape.fails(m))
        .unwrap();
    let search = TaskSearch::new(landscape.space.clone(), default, 11);
    (landscape, search)
}

fn any(_: &Mapping) -> bool {
    true
}

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
    assert_eq!(search.propose(1, &any), [alien.clone()]);
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
    let mut n_seen: std::collections::BTreeMap<Mapping, u32> = std::collections::BTreeMap::new();
    let mut failed = std::collections::BTreeSet::new();
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
    assert_ne!(search.propose(1, &any), [default.clone()], "it is held");
    search.observe(&default, Observation::Failed(Outcome::DeviceLost));
    assert_eq!(search.n_mappings(), 0);
    assert_eq!(search.propose(1, &any), [default.clone()]);
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
    let (landscape, mut search) = landscape_search();
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
    let distinct: std::collections::BTreeSet<&Mapping> = batch.iter().collect();
    assert_eq!(distinct.len(), 8);
    for name in ["tile", "vectors"] {
        let values: std::collections::BTreeSet<_> = batch.iter().map(|m| m.int(name)).collect();
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
