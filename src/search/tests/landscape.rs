//! The search on made-up landscapes whose optimum is known.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::label::Outcome;
use crate::search::{Observation, TaskSearch};
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
pub(super) struct Landscape {
    pub(super) space: SearchSpace,
    seed: u64,
    optimum_ns: f64,
}

impl Landscape {
    pub(super) fn new(seed: u64) -> Self {
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

    pub(super) fn true_ns(&self, mapping: &Mapping) -> f64 {
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
    pub(super) fn fails(&self, mapping: &Mapping) -> bool {
        let corner = mapping.int("unroll") == Some(8) && mapping.int("lanes") != Some(8);
        corner || self.chance(&["fails", &mapping.to_string()]) < 0.05
    }

    pub(super) fn evaluate(&self, mapping: &Mapping, rng: &mut ChaCha8Rng) -> Observation {
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

/// A search of landscape 3 with its default.
pub(super) fn landscape_search() -> (Landscape, TaskSearch) {
    let landscape = Landscape::new(3);
    let default = landscape
        .space
        .enumerate()
        .find(|m| !landscape.fails(m))
        .unwrap();
    let search = TaskSearch::new(landscape.space.clone(), default, 11);
    (landscape, search)
}

/// Lets everything pass.
pub(super) fn any(_: &Mapping) -> bool {
    true
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
