//! `cargo xtask soak`: adaptations under faults, for as long as it is told, and whether they keep
//! what they promise.
//!
//! A round is one generated model that is adapted in a workspace of its own until the tool says that
//! it is done, however often it is killed on the way. Faults come from two sides: the compiler is
//! replaced by a [`compiler`] that makes bad kernels, hangs or finds the disk full, and [`strike`]
//! hits the running tool from outside. After each run of the tool [`inspect`] looks at what it left.
//! All choices follow from the seed; what falls on which moment does not, as runs are real.

mod clock;
pub(crate) mod compiler;
mod dice;
mod fault;
mod inspect;
mod lock_quality;
mod model;
mod proc;
mod records;
mod round;
mod run;
mod session;
mod store;
mod strike;
mod summary;
mod tally;
mod workspace;

pub(crate) use session::{Args, run};
