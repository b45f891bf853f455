//! The search of one task, by asking and telling.
//!
//! The default first, then what was suggested from outside, then a random start, half of it around
//! the default; from then on the expected improvement of a [`Posterior`] over random mappings and
//! neighbours of the best, with every eighth proposal drawn blindly, whatever was learnt.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::OnceLock;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::pool::Pool;
use super::posterior::{Estimate, Posterior};
use super::record::{Observation, Record};
use crate::space::{Mapping, SearchSpace};

/// Different mappings to be seen before the forest decides.
const N_START: usize = 8;
/// One of so many proposals is drawn blindly.
const EXPLORE_EVERY: u32 = 8;
/// Samples after which a mapping is not proposed again.
const ENOUGH_SAMPLES: u32 = 3;
/// Share of the latency that is expected to be had as long as nothing is known.
const UNKNOWN_GAIN: f64 = 0.3;
/// Open mappings in the common pool below which a filter gets one of its own.
const MIN_OPEN: usize = 40;
/// Draws among which a random one is to pass a filter.
const MAX_DRAWS: usize = 200;

/// The search of one task. Deterministic: equal calls give equal results.
#[derive(Debug)]
pub struct TaskSearch {
    space: SearchSpace,
    default: Mapping,
    seed: u64,
    rng: ChaCha8Rng,
    record: Record,
    suggested: VecDeque<Mapping>,
    /// Proposed and neither observed nor released.
    pending: BTreeSet<Mapping>,
    n_proposed: u32,
    /// What was believed before samples of known mappings came in.
    before: Option<Posterior>,
    /// What follows from the record, when it is asked for.
    posterior: OnceLock<Posterior>,
    /// What may be proposed next, when it is asked for.
    pool: OnceLock<Pool>,
}

impl TaskSearch {
    /// Starts a search. `default` is always a candidate, even if the space does not contain it.
    pub fn new(space: SearchSpace, default: Mapping, seed: u64) -> Self {
        Self {
            space,
            default,
            seed,
            rng: ChaCha8Rng::seed_from_u64(seed),
            record: Record::default(),
            suggested: VecDeque::new(),
            pending: BTreeSet::new(),
            n_proposed: 0,
            before: None,
            posterior: OnceLock::new(),
            pool: OnceLock::new(),
        }
    }

    /// Returns the space.
    pub fn space(&self) -> &SearchSpace {
        &self.space
    }

    /// Returns the untuned default.
    pub fn default_mapping(&self) -> &Mapping {
        &self.default
    }

    /// Queues mappings to be proposed right after the default, e.g. what is locked, or what was
    /// best for a similar task. What is not valid in the space is dropped.
    pub fn suggest(&mut self, mappings: impl IntoIterator<Item = Mapping>) {
        let valid = mappings
            .into_iter()
            .filter(|mapping| self.space.is_valid(mapping).is_ok());
        self.suggested.extend(valid);
    }

    /// Takes note of what an evaluation says. Observations of one mapping are pooled.
    pub fn observe(&mut self, mapping: &Mapping, observation: Observation) {
        self.pending.remove(mapping);
        let ran = self
            .record
            .get(mapping)
            .is_some_and(|entry| entry.log_ns().is_some());
        let is_repeat = ran && matches!(observation, Observation::Ok { .. });
        self.record.add(mapping, observation);
        self.pool = OnceLock::new();
        if let Some(posterior) = self.posterior.take() {
            self.before = Some(posterior);
        }
        if !is_repeat {
            self.before = None;
        }
    }

    /// Gives a proposal back that was not evaluated; it may be proposed again.
    pub fn release(&mut self, mapping: &Mapping) {
        self.pending.remove(mapping);
    }

    /// Proposes up to `n` different mappings that pass `filter`; fewer if there are no more.
    ///
    /// Each is held until it is observed or [released](Self::release). Never proposed are
    /// mappings that failed, that have enough samples, or that are held already.
    pub fn propose(&mut self, n: usize, filter: &dyn Fn(&Mapping) -> bool) -> Vec<Mapping> {
        let mut batch = Vec::new();
        let mut narrow = None;
        while batch.len() < n {
            let Some(mapping) = self.next(filter, &batch, &mut narrow) else {
                break;
            };
            self.pending.insert(mapping.clone());
            batch.push(mapping);
            self.n_proposed += 1;
        }
        batch
    }

    /// Returns the mapping that is believed to be the fastest, noise considered; `None` if nothing
    /// ran.
    pub fn best(&self) -> Option<(&Mapping, Estimate)> {
        let (mapping, belief) = self.posterior().ranking().first()?;
        Some((mapping, belief.estimate()))
    }

    /// Returns the best of each group of mappings, e.g. of each combination of layouts.
    pub fn best_by<K: Ord>(&self, key: impl Fn(&Mapping) -> K) -> BTreeMap<K, (Mapping, Estimate)> {
        let mut best = BTreeMap::new();
        for (mapping, belief) in self.posterior().ranking() {
            let found = best.entry(key(mapping));
            found.or_insert_with(|| (mapping.clone(), belief.estimate()));
        }
        best
    }

    /// Returns what is believed of a mapping; `None` if it failed, or if it was not seen and is not
    /// part of the space.
    pub fn estimate(&self, mapping: &Mapping) -> Option<Estimate> {
        let posterior = &self.posterior();
        if let Some(entry) = self.record.get(mapping) {
            entry.log_ns()?;
            let mut ranking = posterior.ranking().iter();
            return ranking
                .find(|(seen, _)| seen == mapping)
                .map(|(_, belief)| belief.estimate());
        }
        let features = self.space.encode(mapping)?;
        posterior
            .predict(&[&features])
            .first()
            .map(super::posterior::Belief::estimate)
    }

    /// Returns the latency that one more proposal is expected to save, nanoseconds per run; `None`
    /// if nothing ran yet, and so nothing is known.
    pub fn expected_gain(&self) -> Option<f64> {
        let best_ns = self.best()?.1.ns;
        let is_new = |m: &Mapping| self.record.get(m).is_none() && !self.pending.contains(m);
        let expected = self.pool().best_improvement(is_new);
        let is_starting = self.record.n_mappings() < N_START && expected > 0.0;
        Some(best_ns * if is_starting { UNKNOWN_GAIN } else { expected })
    }

    /// Returns the share of the mappings seen that failed, other than by being slow.
    pub fn failure_rate(&self) -> f64 {
        self.record.failure_rate()
    }

    /// Returns the number of different mappings seen.
    pub fn n_mappings(&self) -> usize {
        self.record.n_mappings()
    }

    fn posterior(&self) -> &Posterior {
        self.posterior.get_or_init(|| match &self.before {
            Some(before) => before.with_repeats(&self.record),
            None => Posterior::new(&self.space, &self.record, self.derived_seed(0)),
        })
    }

    fn pool(&self) -> &Pool {
        self.pool.get_or_init(|| self.pool_of(&|_| true, 0))
    }

    /// Draws a pool of mappings that pass a filter.
    fn pool_of(&self, filter: &dyn Fn(&Mapping) -> bool, salt: u32) -> Pool {
        let seed = self.derived_seed(salt);
        Pool::new(&self.space, self.posterior(), &self.default, filter, seed)
    }

    /// Returns a seed that changes with every observation.
    fn derived_seed(&self, salt: u32) -> u64 {
        let salt = self.record.n_observations() << 16 ^ u64::from(salt);
        self.seed ^ salt.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// Returns whether a mapping may still be proposed.
    fn may_propose(&self, mapping: &Mapping) -> bool {
        let seen = self.record.get(mapping);
        let is_open = seen.is_none_or(|e| e.failure.is_none() && e.n_samples < ENOUGH_SAMPLES);
        is_open && !self.pending.contains(mapping)
    }

    /// Proposes one mapping. `narrow` is filled with a pool of the filter's own if the filter leaves
    /// little of the common one.
    fn next(
        &mut self,
        filter: &dyn Fn(&Mapping) -> bool,
        batch: &[Mapping],
        narrow: &mut Option<Pool>,
    ) -> Option<Mapping> {
        let is_new = |search: &Self, mapping: &Mapping| {
            search.record.get(mapping).is_none()
                && !search.pending.contains(mapping)
                && filter(mapping)
        };
        if is_new(self, &self.default) {
            return Some(self.default.clone());
        }
        while let Some(idx) = self.suggested.iter().position(filter) {
            let suggested = self.suggested.remove(idx)?;
            if is_new(self, &suggested) {
                return Some(suggested);
            }
        }
        let n_tried = self.record.n_mappings() + self.pending.len();
        let blind = n_tried < N_START || self.n_proposed.is_multiple_of(EXPLORE_EVERY);
        if blind && let Some(mapping) = self.draw(&is_new) {
            return Some(mapping);
        }
        let open = |mapping: &Mapping| self.may_propose(mapping) && filter(mapping);
        let mut pool = self.pool();
        if pool.count(open) < MIN_OPEN {
            pool = narrow.get_or_insert_with(|| self.pool_of(filter, self.n_proposed));
        }
        let guided = pool.pick(batch, open);
        guided.or_else(|| self.draw(&is_new))
    }

    /// Draws a new mapping: around the default and everywhere in turn.
    fn draw(&mut self, is_new: &dyn Fn(&Self, &Mapping) -> bool) -> Option<Mapping> {
        for attempt in 0..MAX_DRAWS as u32 {
            let drawn = if (self.n_proposed + attempt).is_multiple_of(2) {
                self.space.sample(&mut self.rng)
            } else {
                let n_changes = self.rng.random_range(1..=3);
                self.space
                    .perturbed(&self.default, n_changes, &mut self.rng)
            };
            if let Some(drawn) = drawn.filter(|drawn| is_new(self, drawn)) {
                return Some(drawn);
            }
        }
        None
    }
}
