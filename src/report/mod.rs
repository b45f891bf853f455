//! What the user gets to see: the only user of the terminal.
//!
//! stdout is for the answer, stderr for everything else. [`Console`] receives events from the
//! modules below and answers from the commands, and renders both for people (cargo's look) or as
//! one JSON object per line. Message types are structs of their own ([`json`]), so that internals
//! may change and the protocol does not.

mod answer;
mod checks;
mod console;
mod deployed;
mod diff;
mod events;
mod format;
mod graph;
mod jobs;
pub mod json;
mod progress;
mod shell;
mod table;
mod targets;
mod variants;

pub use answer::{Answer, Created};
pub use checks::{CheckRow, Checks};
pub use console::{Console, Failure, Format, Options};
pub use deployed::Deployed;
pub use diff::DiffAnswer;
pub use graph::{GraphAnswer, SubgraphRow};
pub use jobs::Jobs;
pub use shell::Color;
pub use targets::{TargetRow, Targets};
