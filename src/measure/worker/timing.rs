//! Taking samples.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::clock::{Counter, thread_cpu_ns};
use super::refusal::Refusal;
use super::slot::Slot;
use crate::measure::protocol::Profile;

/// Slow runs in a row after which a profile is given up.
const PATIENCE: usize = 3;

/// Samples every step. The first run, which faults its memory in, never counts as slow.
pub(super) fn profile(
    slot: &mut Slot,
    counter: &mut Counter,
    warmup: u32,
    repeats: u32,
    give_up_ns: Option<u64>,
) -> Profile {
    counter.recalibrate();
    let n_runs = warmup as usize + repeats as usize;
    let mut run_ns = Vec::new();
    let mut steps_ns = vec![Vec::new(); slot.n_steps()];
    let mut ticks = Vec::new();
    let mut n_slow = 0;
    for run_idx in 0..n_runs {
        let start_ns = thread_cpu_ns();
        slot.run_with_ticks(&mut ticks);
        let ns = thread_cpu_ns() - start_ns;
        run_ns.push(ns);
        for (samples, pair) in steps_ns.iter_mut().zip(ticks.windows(2)) {
            samples.push(counter.ns_between(pair[0], pair[1]));
        }
        let is_slow = run_idx > 0 && give_up_ns.is_some_and(|limit_ns| ns > limit_ns);
        n_slow = if is_slow { n_slow + 1 } else { 0 };
        if n_slow == PATIENCE {
            break;
        }
    }
    let gave_up = n_slow == PATIENCE;
    let n_skipped = if gave_up {
        run_ns.len() - PATIENCE
    } else {
        warmup as usize
    };
    run_ns.drain(..n_skipped);
    for samples in &mut steps_ns {
        samples.drain(..n_skipped);
    }
    Profile {
        run_ns,
        steps_ns,
        gave_up,
    }
}

/// Samples whole runs of several slots, in a random order each round.
pub(super) fn compare(
    loaded: &mut BTreeMap<u32, Slot>,
    slots: &[u32],
    warmup: u32,
    rounds: u32,
    seed: u64,
) -> Result<Vec<Vec<u64>>, Refusal> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..slots.len()).collect();
    let mut slots_ns = vec![Vec::new(); slots.len()];
    for round in 0..warmup as usize + rounds as usize {
        order.shuffle(&mut rng);
        for &idx in &order {
            let slot = get(loaded, slots[idx])?;
            let start_ns = thread_cpu_ns();
            slot.run(0, slot.n_steps());
            let ns = thread_cpu_ns() - start_ns;
            if round >= warmup as usize {
                slots_ns[idx].push(ns);
            }
        }
    }
    Ok(slots_ns)
}

/// Returns what is loaded into a slot.
pub(super) fn get(loaded: &mut BTreeMap<u32, Slot>, slot: u32) -> Result<&mut Slot, Refusal> {
    loaded
        .get_mut(&slot)
        .ok_or_else(|| Refusal::device_lost(format!("nothing is loaded into slot {slot}")))
}
