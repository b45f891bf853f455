//! Logical processors: which ones this process may use, and who keeps off which.
//!
//! Nothing else of this tool runs on the core that something is timed on: whoever builds is
//! [registered](Builder), and yields while somebody [times](Quiet). What builds start ends with this
//! tool, whatever ends it: a [guard] sees to that.

mod affinity;
pub mod guard;
mod quiet;

pub use affinity::{allowed_cpus, cpus_beside, cpus_off_core, move_to_cpu, stay_on_cpu};
pub use guard::Guarded;
pub use quiet::{Builder, Quiet};
