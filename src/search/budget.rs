//! The budget of real evaluations.

/// How many evaluations may be spent, and were. An evaluation is reserved before it starts, and
/// so those in flight count too: the budget is never exceeded, in whatever order they end.
#[derive(Debug)]
pub struct Budget {
    max_evaluations: u32,
    n_spent: u32,
    n_reserved: u32,
}

/// The right to spend one evaluation; give it back to [`Budget::spend`] or [`Budget::release`].
/// One that is dropped stays reserved.
#[derive(Debug)]
#[must_use = "a reservation that is dropped is lost to the budget"]
pub struct Reservation(());

impl Budget {
    /// Starts with `n_spent` evaluations spent, e.g. by the run that this one resumes.
    pub fn new(max_evaluations: u32, n_spent: u32) -> Self {
        Self {
            max_evaluations,
            n_spent,
            n_reserved: 0,
        }
    }

    /// Reserves an evaluation, or returns `None` if none is left.
    pub fn reserve(&mut self) -> Option<Reservation> {
        (self.n_left() > 0).then(|| {
            self.n_reserved += 1;
            Reservation(())
        })
    }

    /// Counts an evaluation that was run, however it ended.
    pub fn spend(&mut self, Reservation(()): Reservation) {
        self.n_reserved = self.n_reserved.saturating_sub(1);
        self.n_spent = self.n_spent.saturating_add(1);
    }

    /// Gives an evaluation back that was not run.
    pub fn release(&mut self, Reservation(()): Reservation) {
        self.n_reserved = self.n_reserved.saturating_sub(1);
    }

    /// Returns how many evaluations may be spent in all.
    pub fn max_evaluations(&self) -> u32 {
        self.max_evaluations
    }

    /// Returns how many were spent.
    pub fn n_spent(&self) -> u32 {
        self.n_spent
    }

    /// Returns how many can still be reserved.
    pub fn n_left(&self) -> u32 {
        let taken = self.n_spent.saturating_add(self.n_reserved);
        self.max_evaluations.saturating_sub(taken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_budget_is_never_exceeded(
            max_evaluations in 0u32..20,
            n_spent in 0u32..25,
            steps in prop::collection::vec((0u8..3, any::<prop::sample::Index>()), 0..100),
        ) {
            let mut budget = Budget::new(max_evaluations, n_spent);
            let mut in_flight = Vec::new();
            let (mut n_run, mut n_released) = (0, 0);
            for (step, which) in steps {
                if step == 0 {
                    let n_left = budget.n_left();
                    let reservation = budget.reserve();
                    prop_assert_eq!(reservation.is_some(), n_left > 0);
                    in_flight.extend(reservation);
                } else if !in_flight.is_empty() {
                    let reservation = in_flight.swap_remove(which.index(in_flight.len()));
                    if step == 1 {
                        budget.spend(reservation);
                        n_run += 1;
                    } else {
                        budget.release(reservation);
                        n_released += 1;
                    }
                }
                prop_assert!(n_spent + n_run + in_flight.len() as u32 <= max_evaluations.max(n_spent));
                prop_assert_eq!(budget.n_spent(), n_spent + n_run);
                let taken = budget.n_spent() + in_flight.len() as u32;
                prop_assert_eq!(budget.n_left(), max_evaluations.saturating_sub(taken));
            }
            prop_assert!(n_released == 0 || max_evaluations > n_spent);
        }
    }
}
