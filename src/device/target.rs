//! Targets: a device profile and the backend that serves it.

use std::fmt;

use super::{DeviceProfile, Isa};

/// A named deployment destination.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Name in the configuration, e.g. `cpu`.
    pub name: String,
    /// Name of the backend, e.g. `native`.
    pub backend: String,
    /// The profile as the configuration names it: `host`, a shipped one's name or a path. A
    /// lockfile keeps it, because the profile's own figures differ from machine to machine.
    pub profile_name: String,
    /// What the hardware is.
    pub profile: DeviceProfile,
    /// Threads that a model may use.
    pub threads: u32,
    /// Why code for the profile cannot be run and measured here, if it cannot.
    pub obstacle: Option<Obstacle>,
}

/// Why code for a profile cannot run on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// The machine lacks the instruction set.
    Isa {
        /// What the profile needs.
        needed: Isa,
        /// The best that the machine has.
        available: Isa,
    },
    /// The profile is of another processor.
    Processor {
        /// What the profile is of.
        needed: String,
        /// What the machine has.
        available: String,
    },
    /// The target is to use more threads than the machine has processors.
    Threads {
        /// How many it is to use.
        needed: u32,
        /// How many processors the machine has.
        available: u32,
        /// Where that is written.
        place: String,
    },
}

/// Fits a profile to the machine it is to be measured on.
///
/// A profile that says nothing of the processor stands for any machine with its instruction set:
/// it takes processor, caches and threads of `host`, so that its fingerprint tells machines
/// apart. A profile that names its processor is taken as it is. The second value says why the
/// profile cannot be run on `host`, if it cannot.
pub fn adopt(profile: DeviceProfile, host: &DeviceProfile) -> (DeviceProfile, Option<Obstacle>) {
    if !host.isa.runs(profile.isa) {
        let obstacle = Obstacle::Isa {
            needed: profile.isa,
            available: host.isa,
        };
        return (profile, Some(obstacle));
    }
    if profile.processor.is_empty() {
        let adopted = DeviceProfile {
            name: profile.name,
            description: profile.description,
            isa: profile.isa,
            ..host.clone()
        };
        return (adopted, None);
    }
    let obstacle = (profile.processor != host.processor).then(|| Obstacle::Processor {
        needed: profile.processor.clone(),
        available: host.processor.clone(),
    });
    (profile, obstacle)
}

impl Isa {
    /// Returns whether a machine whose best instruction set is `self` runs code made for `other`.
    pub fn runs(self, other: Self) -> bool {
        match (self, other) {
            (_, Self::Portable) => true,
            (Self::Neon, other) => other == Self::Neon,
            (_, Self::Neon) => false,
            (host, other) => other <= host,
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Isa { needed, available } => {
                write!(f, "needs {needed}, this machine has {available}")
            }
            Self::Processor { needed, available } => {
                write!(f, "is of `{needed}`, this machine is `{available}`")
            }
            Self::Threads {
                needed,
                available,
                place,
            } => {
                write!(
                    f,
                    "`threads = {needed}` ({place}), this machine has {available}"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(isa: Isa) -> DeviceProfile {
        DeviceProfile {
            name: "host".to_owned(),
            description: String::new(),
            processor: "Test CPU".to_owned(),
            isa,
            l1d_bytes: 48 << 10,
            l2_bytes: 2 << 20,
            l3_bytes: 32 << 20,
            threads: 8,
        }
    }

    fn anonymous(isa: Isa) -> DeviceProfile {
        DeviceProfile {
            name: isa.to_string(),
            processor: String::new(),
            threads: 1,
            ..host(isa)
        }
    }

    #[test]
    fn runs_follows_the_levels_and_never_crosses_architectures() {
        assert!(Isa::X86V4.runs(Isa::X86V2));
        assert!(!Isa::X86V2.runs(Isa::X86V3));
        assert!(Isa::Neon.runs(Isa::Portable));
        assert!(!Isa::Neon.runs(Isa::X86V2));
        assert!(!Isa::X86V4.runs(Isa::Neon));
        assert!(Isa::X86V4Vnni.runs(Isa::X86V4));
        assert!(!Isa::X86V4.runs(Isa::X86V4Vnni));
        assert!(!Isa::Neon.runs(Isa::X86V4Vnni));
        assert!(!Isa::Portable.runs(Isa::X86V2));
    }

    #[test]
    fn adopt_gives_a_weaker_level_the_machine_and_a_fingerprint_of_its_own() {
        let host = host(Isa::X86V4);
        let (adopted, obstacle) = adopt(anonymous(Isa::X86V3), &host);
        assert_eq!(obstacle, None);
        assert_eq!(adopted.processor, "Test CPU");
        assert_eq!(adopted.threads, 8);
        assert_eq!(adopted.isa, Isa::X86V3);
        assert_ne!(adopted.fingerprint(), host.fingerprint());
    }

    #[test]
    fn adopt_says_which_instruction_set_is_missing() {
        let (_, obstacle) = adopt(anonymous(Isa::X86V4), &host(Isa::X86V3));
        assert_eq!(
            obstacle.unwrap().to_string(),
            "needs x86-64-v4, this machine has x86-64-v3"
        );
    }

    #[test]
    fn adopt_keeps_the_profile_of_a_named_processor() {
        let profile = DeviceProfile {
            processor: "Other CPU".to_owned(),
            ..anonymous(Isa::X86V3)
        };
        let (adopted, obstacle) = adopt(profile.clone(), &host(Isa::X86V4));
        assert_eq!(adopted, profile);
        assert_eq!(
            obstacle.unwrap().to_string(),
            "is of `Other CPU`, this machine is `Test CPU`"
        );
    }
}
