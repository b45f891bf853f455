//! Search: what to try next, how to share the budget, and what to make of the results.
//!
//! Pure and seeded: no I/O, no clock, no globals. The same observations in the same order lead to
//! the same proposals. Nothing here knows how a candidate is compiled or measured.

pub mod compose;
mod forest;
mod pool;
mod posterior;
mod record;
mod task;
#[cfg(test)]
mod tests;

pub use posterior::Estimate;
pub use record::Observation;
pub use task::TaskSearch;
