//! Values of flags that several commands have.

use std::time::Duration;

use crate::queue::Priority;

/// Reads a span of time.
pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; expected e.g. `90s`, `30m`"))
}

/// Reads a priority.
pub(super) fn parse_priority(text: &str) -> Result<Priority, String> {
    Priority::of_name(text).ok_or_else(|| "expected `low`, `normal` or `high`".to_owned())
}
