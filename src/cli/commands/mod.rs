//! The commands, one file each.

pub(crate) mod adapt;
pub(crate) mod check;
mod command;
pub(crate) mod deploy;
pub(crate) mod diff;
pub(crate) mod graph;
pub(crate) mod init;
pub(crate) mod jobs;
mod parse;
pub(crate) mod targets;

pub(crate) use command::Command;
use parse::{parse_priority, parse_time};
