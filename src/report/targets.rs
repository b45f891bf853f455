//! Answer of `targets`: what is configured, what is available, and what can be used here.

use super::answer::Answer;
use super::format::bytes;
use super::json::{self, Message};
use super::table::{Align, Table};
use crate::device::{DeviceProfile, Obstacle};

/// Configured targets, then shipped profiles that no target uses.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Targets {
    /// One row each.
    pub rows: Vec<TargetRow>,
}

/// One target or profile.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetRow {
    /// Name and backend of the target; `None` for a profile that is only available.
    pub target: Option<(String, String)>,
    /// Profile as the configuration names it.
    pub profile_name: String,
    /// What the hardware is.
    pub profile: DeviceProfile,
    /// Threads that a model may use.
    pub threads: Option<u32>,
    /// Why it cannot be used here, if it cannot.
    pub obstacle: Option<Obstacle>,
}

impl Answer for Targets {
    fn human(&self, width: usize) -> String {
        let mut table = Table::new(&[
            ("target", Align::Left),
            ("profile", Align::Left),
            ("isa", Align::Left),
            ("L1d", Align::Right),
            ("L2", Align::Right),
            ("L3", Align::Right),
            ("usable here", Align::Left),
        ]);
        for row in &self.rows {
            table.push(vec![
                row.target
                    .as_ref()
                    .map_or_else(|| "-".to_owned(), |(name, _)| name.clone()),
                row.profile_name.clone(),
                row.profile.isa.to_string(),
                bytes(row.profile.l1d_bytes),
                bytes(row.profile.l2_bytes),
                bytes(row.profile.l3_bytes),
                row.obstacle
                    .as_ref()
                    .map_or_else(|| "yes".to_owned(), |obstacle| format!("no: {obstacle}")),
            ]);
        }
        table.render(width)
    }

    fn json(&self) -> Vec<Message<'_>> {
        self.rows.iter().map(message).collect()
    }
}

fn message(row: &TargetRow) -> Message<'_> {
    let TargetRow {
        target,
        profile_name,
        profile,
        threads,
        obstacle,
    } = row;
    Message::Target(json::Target {
        name: target.as_ref().map(|(name, _)| name.as_str()),
        backend: target.as_ref().map(|(_, backend)| backend.as_str()),
        profile: profile_name,
        isa: profile.isa.name(),
        processor: &profile.processor,
        threads: *threads,
        fingerprint: profile.fingerprint().to_string(),
        obstacle: obstacle.as_ref().map(ToString::to_string),
    })
}
