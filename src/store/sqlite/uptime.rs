//! The machine's own time, which all its processes share.

use std::sync::OnceLock;
use std::time::Instant;

use crate::queue::Uptime;

/// Returns the time since the machine was started. Where the system does not say, that of this
/// process since it first asked: leases of other processes are over then.
pub(super) fn uptime() -> Uptime {
    static BOOT: OnceLock<String> = OnceLock::new();
    static STARTED: OnceLock<Instant> = OnceLock::new();
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let seconds = read("/proc/uptime").and_then(|text| {
        let first = text.split_whitespace().next()?;
        first.parse::<f64>().ok()
    });
    if let Some(seconds) = seconds {
        let boot = BOOT.get_or_init(|| {
            let id = read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
            id.trim().to_owned()
        });
        return Uptime {
            boot: boot.clone(),
            ms: (seconds * 1000.0) as i64,
        };
    }
    let started = STARTED.get_or_init(Instant::now);
    Uptime {
        boot: format!("process {}", std::process::id()),
        ms: started.elapsed().as_millis() as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_within_one_start_of_the_machine() {
        let first = uptime();
        std::thread::sleep(std::time::Duration::from_millis(30));
        let second = uptime();
        assert_eq!(first.boot, second.boot);
        let passed_ms = second.ms - first.ms;
        assert!((10..10_000).contains(&passed_ms), "{passed_ms} ms");
    }
}
