//! Numbers and words for people: one rounding, one plural.

use std::time::Duration;

/// Formats a duration in nanoseconds with three digits: `917 ns`, `1.83 ms`, `12.4 s`.
pub(super) fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if !ns.is_finite() => return "?".to_owned(),
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Formats a span of time that is known roughly: `42 s`, `3 min`, `1.2 h`.
pub(super) fn span(span: Duration) -> String {
    match span.as_secs_f64() {
        seconds if seconds < 99.5 => format!("{seconds:.0} s"),
        seconds if seconds < 99.5 * 60.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

/// Formats a count with a unit prefix: `950`, `1.2k`, `3.40M`, `12.0G`.
pub(super) fn count(n: u64) -> String {
    let (value, unit) = match n {
        n if n < 10_000 => return n.to_string(),
        n if n < 1_000_000 => (n as f64 / 1e3, "k"),
        n if n < 1_000_000_000 => (n as f64 / 1e6, "M"),
        n => (n as f64 / 1e9, "G"),
    };
    format!("{}{unit}", three_digits(value))
}

/// Formats a size: `48 KiB`, `2 MiB`.
pub(super) fn bytes(n: u64) -> String {
    match n {
        0 => "-".to_owned(),
        n if n < 1 << 10 => format!("{n} B"),
        n if n < 1 << 20 => format!("{} KiB", n >> 10),
        n if n < 1 << 30 => format!("{} MiB", n >> 20),
        n => format!("{} GiB", n >> 30),
    }
}

/// Formats a size with three digits: `917 B`, `1.83 KiB`, `12.4 MiB`.
pub(super) fn size(n: u64) -> String {
    let (value, unit) = match n {
        n if n < 1 << 10 => return format!("{n} B"),
        n if n < 1 << 20 => (n as f64 / f64::from(1 << 10), "KiB"),
        n if n < 1 << 30 => (n as f64 / f64::from(1 << 20), "MiB"),
        n => (n as f64 / f64::from(1 << 30), "GiB"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Formats a ratio: `2.31×`.
pub(super) fn factor(ratio: f64) -> String {
    format!("{}×", three_digits(ratio))
}

/// Formats a number and what it counts: `1 subgraph`, `3 subgraphs`.
pub(super) fn plural(n: usize, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

fn three_digits(value: f64) -> String {
    match value {
        value if !value.is_finite() => "?".to_owned(),
        // Bounds are those of rounding: 9.996 is 10.0 and not 10.00.
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_rounded_to_what_is_known() {
        assert_eq!(span(Duration::from_millis(400)), "0 s");
        assert_eq!(span(Duration::from_secs(99)), "99 s");
        assert_eq!(span(Duration::from_secs(100)), "2 min");
        assert_eq!(span(Duration::from_secs(5970)), "1.7 h");
    }

    #[test]
    fn durations_have_three_digits() {
        assert_eq!(duration(917.0), "917 ns");
        assert_eq!(duration(1_834_000.0), "1.83 ms");
        assert_eq!(duration(9_999_000.0), "10.0 ms");
        assert_eq!(duration(12_400_000_000.0), "12.4 s");
        assert_eq!(duration(f64::NAN), "?");
    }

    #[test]
    fn counts_and_sizes_are_short() {
        assert_eq!(count(950), "950");
        assert_eq!(count(12_345), "12.3k");
        assert_eq!(count(3_400_000), "3.40M");
        assert_eq!(count(12_000_000_000), "12.0G");
        assert_eq!(bytes(48 << 10), "48 KiB");
        assert_eq!(bytes(0), "-");
        assert_eq!(size(917), "917 B");
        assert_eq!(size(1 << 20), "1.00 MiB");
        assert_eq!(size(13_000_000), "12.4 MiB");
    }

    #[test]
    fn plurals() {
        assert_eq!(plural(1, "task"), "1 task");
        assert_eq!(plural(0, "task"), "0 tasks");
    }
}
