//! Search: what to try next, how to share the budget, and what to make of the results.
//!
//! Pure and seeded: no I/O, no clock, no globals. The same observations in the same order lead to
//! the same proposals. Nothing here knows how a candidate is compiled or measured.
//!
//! A [`TaskSearch`] proposes mappings of one task and is told how they went; [`plan_evaluation`]
//! decides which tasks try something new in an evaluation, within a [`Budget`] and until a
//! [`StopRule`] ends it; [`compose`] chooses among what was seen for the whole model; [`elect`]
//! replaces what is locked, or does not.

mod allocation;
mod budget;
pub mod compose;
mod forest;
pub mod frontier;
mod pace;
mod pool;
mod posterior;
mod record;
mod rules;
mod task;
#[cfg(test)]
mod tests;

pub use allocation::{StopRule, TaskState, plan_evaluation};
pub use budget::{Budget, Reservation};
pub use pace::{HalfWay, Left, Pace};
pub use posterior::Estimate;
pub use record::Observation;
pub use rules::{DEFAULT_MIN_GAIN, GIVE_UP_FACTOR, Incumbent, Rival, elect, give_up_ns};
pub use task::TaskSearch;
