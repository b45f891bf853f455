//! Reading this machine: instruction set, caches, processor name, threads.
//!
//! What the operating system does not say is taken as typical; nothing here fails or measures.

use std::fs;
use std::path::Path;

use super::{DeviceProfile, Isa};

/// Sizes of the data caches, bytes; 0 where unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Caches {
    l1d: u64,
    l2: u64,
    l3: u64,
}

/// Returns the profile of this machine, named `host`.
pub fn host() -> DeviceProfile {
    let caches = read_caches(Path::new("/sys/devices/system/cpu/cpu0/cache"));
    let isa = best_isa();
    let processor = fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| processor_name(&text))
        .unwrap_or_else(|| format!("{} {}", std::env::consts::ARCH, std::env::consts::OS));
    DeviceProfile {
        name: "host".to_owned(),
        description: "this machine".to_owned(),
        processor,
        isa,
        l1d_bytes: or_typical(caches.l1d, 32 << 10),
        l2_bytes: or_typical(caches.l2, 1 << 20),
        l3_bytes: caches.l3,
        threads: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
    }
}

#[cfg(target_arch = "x86_64")]
fn best_isa() -> Isa {
    let v2 = is_x86_feature_detected!("sse4.2")
        && is_x86_feature_detected!("ssse3")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("cmpxchg16b");
    let v3 = v2
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("movbe");
    let v4 = v3
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    let vnni =
        v4 && is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512vbmi");
    match (v2, v3, v4, vnni) {
        (_, _, _, true) => Isa::X86V4Vnni,
        (_, _, true, _) => Isa::X86V4,
        (_, true, _, _) => Isa::X86V3,
        (true, _, _, _) => Isa::X86V2,
        _ => Isa::Portable,
    }
}

#[cfg(target_arch = "aarch64")]
fn best_isa() -> Isa {
    Isa::Neon
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn best_isa() -> Isa {
    Isa::Portable
}

fn or_typical(bytes: u64, typical: u64) -> u64 {
    if bytes == 0 { typical } else { bytes }
}

/// Reads the cache directory that Linux keeps for a processor.
fn read_caches(dir: &Path) -> Caches {
    let mut caches = Caches::default();
    for idx in 0..8 {
        let field = |name: &str| {
            fs::read_to_string(dir.join(format!("index{idx}")).join(name))
                .map(|text| text.trim().to_owned())
                .unwrap_or_default()
        };
        let bytes = cache_bytes(&field("size")).unwrap_or(0);
        match (field("level").as_str(), field("type").as_str()) {
            ("1", "Data" | "Unified") => caches.l1d = bytes,
            ("2", "Data" | "Unified") => caches.l2 = bytes,
            ("3", "Data" | "Unified") => caches.l3 = bytes,
            _ => {}
        }
    }
    caches
}

/// Reads a size such as `32K`.
fn cache_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => match text.strip_suffix('M') {
            Some(digits) => (digits, 1 << 20),
            None => (text, 1),
        },
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Finds the processor's name in `/proc/cpuinfo`; Arm kernels give numbers instead of a name.
fn processor_name(cpuinfo: &str) -> Option<String> {
    let field = |name: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    field("model name")
        .filter(|name| !name.is_empty())
        .or_else(|| {
            let implementer = field("CPU implementer")?;
            let part = field("CPU part")?;
            Some(format!("implementer {implementer} part {part}"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_bytes_reads_what_linux_writes() {
        assert_eq!(cache_bytes("32K"), Some(32 << 10));
        assert_eq!(cache_bytes("4M"), Some(4 << 20));
        assert_eq!(cache_bytes("512"), Some(512));
        assert_eq!(cache_bytes(""), None);
        assert_eq!(cache_bytes("99999999999999999999K"), None);
    }

    #[test]
    fn processor_name_prefers_the_marketing_name() {
        let text = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n";
        assert_eq!(processor_name(text).as_deref(), Some("AMD EPYC"));
    }

    #[test]
    fn processor_name_falls_back_to_arm_numbers() {
        let text = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(
            processor_name(text).as_deref(),
            Some("implementer 0x41 part 0xd0c")
        );
        assert_eq!(processor_name("processor : 0\n"), None);
    }

    #[test]
    fn read_caches_survives_a_missing_directory() {
        assert_eq!(read_caches(Path::new("/nonexistent")), Caches::default());
    }

    #[test]
    fn host_is_usable_and_stable() {
        let profile = host();
        assert!(profile.isa.runs(profile.isa));
        assert!(profile.l1d_bytes > 0 && profile.threads > 0);
        assert_eq!(profile.fingerprint(), host().fingerprint());
    }
}
