//! Taking samples.
//!
//! Which physical pages an artifact gets decides how they share the sets of the caches: two copies
//! of one artifact with 5 MB of memory differed by up to 7 % for as long as they stayed where they
//! were, with an interval that said otherwise. So memory moves to other pages every few runs, in
//! random order (whoever moves first gets other pages than who gets his), and samples show the
//! placement as the noise that it is: the same two copies are then told apart in 0 of 60
//! comparisons of 60 rounds, also on a machine with four times more work than processors.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::clock::Counter;
use super::refusal::Refusal;
use super::slot::Slot;
use crate::measure::protocol::Profile;

/// Slow runs in a row after which a profile is given up.
const PATIENCE: usize = 3;

/// Samples that are taken before memory moves on.
const SAMPLES_PER_PLACE: u32 = 4;

/// Samples every step. The first run, which faults its memory in, never counts as slow.
pub(super) fn profile(
    slot: &mut Slot,
    counter: &mut Counter,
    warmup: u32,
    repeats: u32,
    give_up_ns: Option<u64>,
) -> Result<Profile, Refusal> {
    counter.recalibrate();
    let mut samples = Samples::new(slot.n_steps());
    let is_slow = |ns: u64| give_up_ns.is_some_and(|limit_ns| ns > limit_ns);
    let mut n_slow = 0;
    for run_idx in 0..warmup {
        let ns = samples.take(slot, counter);
        n_slow = if run_idx > 0 && is_slow(ns) {
            n_slow + 1
        } else {
            0
        };
        if n_slow == PATIENCE {
            return Ok(samples.last_slow());
        }
    }
    samples.clear();
    for run_idx in 0..repeats {
        if run_idx % SAMPLES_PER_PLACE == 0 {
            settle(slot)?;
        }
        let ns = samples.take(slot, counter);
        n_slow = if is_slow(ns) { n_slow + 1 } else { 0 };
        if n_slow == PATIENCE {
            return Ok(samples.last_slow());
        }
    }
    Ok(samples.profile)
}

/// Samples whole runs of several slots, in a random order each round, all by one clock: that of the
/// wall if several threads run one of them. Its threads are awake when its time begins, whoever ran
/// before.
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
    let mut clock: Option<fn() -> u64> = None;
    for &slot in slots {
        let slot = get(loaded, slot)?;
        if clock.is_none() || slot.is_shared() {
            clock = Some(slot.clock());
        }
    }
    let Some(now_ns) = clock else {
        return Ok(slots_ns);
    };
    for round in 0..warmup.saturating_add(rounds) {
        order.shuffle(&mut rng);
        if round % SAMPLES_PER_PLACE == 0 {
            for &idx in &order {
                settle(get(loaded, slots[idx])?)?;
            }
        }
        for &idx in &order {
            let ns = time(get(loaded, slots[idx])?, now_ns);
            if round >= warmup {
                slots_ns[idx].push(ns);
            }
        }
    }
    Ok(slots_ns)
}

/// Moves memory to other pages and runs once, so that the caches know them.
fn settle(slot: &mut Slot) -> Result<(), Refusal> {
    slot.relocate()?;
    slot.run(0, slot.n_steps());
    Ok(())
}

/// Runs once and returns the time it took, nanoseconds.
fn time(slot: &mut Slot, now_ns: fn() -> u64) -> u64 {
    slot.rouse();
    let start_ns = now_ns();
    slot.run(0, slot.n_steps());
    now_ns() - start_ns
}

/// Samples so far.
struct Samples {
    profile: Profile,
    ticks: Vec<u64>,
}

impl Samples {
    fn new(n_steps: usize) -> Self {
        let profile = Profile {
            run_ns: Vec::new(),
            steps_ns: vec![Vec::new(); n_steps],
            gave_up: false,
        };
        let ticks = Vec::new();
        Self { profile, ticks }
    }

    /// Runs once and returns the time of the run, nanoseconds.
    fn take(&mut self, slot: &mut Slot, counter: &Counter) -> u64 {
        let now_ns = slot.clock();
        let start_ns = now_ns();
        slot.run_with_ticks(&mut self.ticks);
        let ns = now_ns() - start_ns;
        self.profile.run_ns.push(ns);
        for (samples, pair) in self.profile.steps_ns.iter_mut().zip(self.ticks.windows(2)) {
            samples.push(counter.ns_between(pair[0], pair[1]));
        }
        ns
    }

    fn clear(&mut self) {
        self.keep_last(0);
    }

    /// The samples of a profile that is given up.
    fn last_slow(mut self) -> Profile {
        self.keep_last(PATIENCE);
        self.profile.gave_up = true;
        self.profile
    }

    fn keep_last(&mut self, n: usize) {
        for samples in self
            .profile
            .steps_ns
            .iter_mut()
            .chain([&mut self.profile.run_ns])
        {
            samples.drain(..samples.len().saturating_sub(n));
        }
    }
}

/// Returns what is loaded into a slot.
pub(super) fn get(loaded: &mut BTreeMap<u32, Slot>, slot: u32) -> Result<&mut Slot, Refusal> {
    loaded
        .get_mut(&slot)
        .ok_or_else(|| Refusal::device_lost(format!("nothing is loaded into slot {slot}")))
}
