//! Mappings that may be proposed next, scored.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::posterior::Posterior;
use crate::space::{Mapping, SearchSpace};

/// Random mappings in a pool.
const N_RANDOM: usize = 160;
/// Incumbents whose surroundings are in it.
const N_INCUMBENTS: usize = 4;
/// Neighbours of each.
const N_NEIGHBOURS: usize = 40;
/// Perturbations of each, by two to four changes.
const N_PERTURBED: usize = 16;
/// Incumbents that may be sampled again.
const N_AGAIN: usize = 6;

/// Scored mappings, best first.
#[derive(Debug)]
pub(super) struct Pool {
    scored: Vec<Scored>,
}

#[derive(Debug)]
struct Scored {
    mapping: Mapping,
    /// Expected improvement of log latency, times the chance that it runs.
    improvement: f64,
}

impl Pool {
    /// Draws and scores a pool of mappings that pass a filter.
    pub(super) fn new(
        space: &SearchSpace,
        posterior: &Posterior,
        default: &Mapping,
        filter: &dyn Fn(&Mapping) -> bool,
        seed: u64,
    ) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut unseen: BTreeSet<Mapping> = BTreeSet::new();
        unseen.extend((0..N_RANDOM).map_while(|_| space.sample(&mut rng)));
        let ranked = || posterior.ranking().iter().map(|(mapping, _)| mapping);
        let passing = ranked()
            .filter(|mapping| filter(mapping))
            .take(N_INCUMBENTS);
        let incumbents: BTreeSet<&Mapping> = ranked()
            .take(N_INCUMBENTS)
            .chain(passing)
            .chain([default])
            .collect();
        for incumbent in incumbents {
            let mut neighbours = space.neighbours(incumbent);
            neighbours.retain(filter);
            while neighbours.len() > N_NEIGHBOURS {
                neighbours.swap_remove(rng.random_range(0..neighbours.len()));
            }
            unseen.extend(neighbours);
            for _ in 0..N_PERTURBED {
                let n_changes = rng.random_range(2..=4);
                unseen.extend(space.perturbed(incumbent, n_changes, &mut rng));
            }
        }
        for mapping in ranked() {
            unseen.remove(mapping);
        }
        let unseen: Vec<(Mapping, Vec<f64>)> = unseen
            .into_iter()
            .filter_map(|mapping| space.encode(&mapping).map(|features| (mapping, features)))
            .collect();
        let rows: Vec<&[f64]> = unseen.iter().map(|(_, row)| row.as_slice()).collect();
        let beliefs = posterior.predict(&rows);
        let success = posterior.success(&rows);
        let passing = posterior
            .ranking()
            .iter()
            .filter(|(mapping, _)| filter(mapping));
        let again = passing.take(N_AGAIN);
        let again = again.map(|(mapping, belief)| Scored {
            mapping: mapping.clone(),
            improvement: posterior.expected_improvement(belief),
        });
        let unseen = unseen.iter().zip(beliefs).zip(success);
        let unseen = unseen.map(|(((mapping, _), belief), success)| Scored {
            mapping: mapping.clone(),
            improvement: success * posterior.expected_improvement(&belief),
        });
        let mut scored: Vec<Scored> = again.chain(unseen).collect();
        scored.sort_by(|lhs, rhs| rhs.improvement.total_cmp(&lhs.improvement));
        Self { scored }
    }

    /// Returns the best mapping that is open, the less welcome the more it is like one of `batch`.
    pub(super) fn pick(
        &self,
        batch: &[Mapping],
        is_open: impl Fn(&Mapping) -> bool,
    ) -> Option<Mapping> {
        let mut best: Option<(f64, &Mapping)> = None;
        for scored in &self.scored {
            if best.is_some_and(|(score, _)| score >= scored.improvement) {
                break;
            }
            if !is_open(&scored.mapping) {
                continue;
            }
            let novelty = |other: &Mapping| 1.0 - likeness(&scored.mapping, other).powi(4);
            let score = scored.improvement * batch.iter().map(novelty).product::<f64>();
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, &scored.mapping));
            }
        }
        best.map(|(_, mapping)| mapping.clone())
    }

    /// Returns how many mappings are open.
    pub(super) fn count(&self, is_open: impl Fn(&Mapping) -> bool) -> usize {
        self.scored
            .iter()
            .filter(|scored| is_open(&scored.mapping))
            .count()
    }

    /// Returns the largest improvement of log latency that is expected of an open mapping.
    pub(super) fn best_improvement(&self, is_open: impl Fn(&Mapping) -> bool) -> f64 {
        let open = self.scored.iter().find(|scored| is_open(&scored.mapping));
        open.map_or(0.0, |scored| scored.improvement)
    }
}

/// Returns the share of parameters that two mappings have in common.
fn likeness(lhs: &Mapping, rhs: &Mapping) -> f64 {
    let equal = lhs
        .0
        .iter()
        .filter(|(name, value)| rhs.0.get(*name) == Some(value))
        .count();
    equal as f64 / lhs.0.len().max(1) as f64
}
