//! Logical processors: which ones this process may use, and who keeps off which.
//!
//! Nothing else of this tool runs on the core that something is timed on: whoever builds is
//! [registered](Builder), and yields while somebody [times](Quiet).

mod affinity;
mod quiet;

pub use affinity::{allowed_cpus, cpus_beside, cpus_off_core, move_to_cpu, stay_on_cpu};
pub use quiet::{Builder, Quiet};
