//! Chance that follows from a seed and a name.

use metainfer::digest::Encoder;

/// Returns a number in `[0, 1)` that is the same for the same seed and name, everywhere.
pub(super) fn chance(seed: u64, name: &str) -> f64 {
    (draw(seed, name) >> 11) as f64 / (1u64 << 53) as f64
}

/// Returns a number that is the same for the same seed and name, everywhere.
pub(super) fn draw(seed: u64, name: &str) -> u64 {
    let mut encoder = Encoder::new("metainfer soak v1");
    encoder.u64(seed);
    encoder.str(name);
    let digest = encoder.finish();
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest.as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

/// Numbers one after the other.
#[derive(Debug, Clone)]
pub(super) struct Dice {
    seed: u64,
    n_drawn: u64,
}

impl Dice {
    /// Returns the dice of a seed and a name.
    pub(super) fn new(seed: u64, name: &str) -> Self {
        Self {
            seed: draw(seed, name),
            n_drawn: 0,
        }
    }

    /// Returns the next number in `[0, 1)`.
    pub(super) fn chance(&mut self) -> f64 {
        self.n_drawn += 1;
        chance(self.seed, &self.n_drawn.to_string())
    }

    /// Returns the next number below `n`, which is at least 1.
    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.chance() * n as f64) as usize
    }

    /// Returns one of some things.
    pub(super) fn pick<T: Copy>(&mut self, things: &[T]) -> Option<T> {
        things.get(self.below(things.len().max(1))).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_a_name_decide_and_all_values_come_up() {
        assert_eq!(chance(1, "a").to_bits(), chance(1, "a").to_bits());
        assert!(chance(1, "a").to_bits() != chance(2, "a").to_bits());
        let mut dice = Dice::new(7, "x");
        let mut seen = [0; 6];
        for _ in 0..600 {
            seen[dice.below(6)] += 1;
        }
        assert!(seen.iter().all(|&n| n > 60), "{seen:?}");
        assert_eq!(dice.pick::<u8>(&[]), None);
    }
}
