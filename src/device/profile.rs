//! Device profiles.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, Digestible, Encoder};

/// An instruction set that the native backend has a vector table for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Isa {
    /// Plain Rust, anywhere.
    #[serde(rename = "portable")]
    Portable,
    /// SSE4.2.
    #[serde(rename = "x86-64-v2")]
    X86V2,
    /// AVX2 and FMA.
    #[serde(rename = "x86-64-v3")]
    X86V3,
    /// AVX-512 F, BW, CD, DQ, VL.
    #[serde(rename = "x86-64-v4")]
    X86V4,
    /// AVX-512 VNNI and VBMI as well.
    #[serde(rename = "x86-64-v4-vnni")]
    X86V4Vnni,
    /// `AArch64` Advanced SIMD.
    #[serde(rename = "aarch64-neon")]
    Neon,
}

/// What a target's hardware is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DeviceProfile {
    /// Name of the profile, e.g. `host` or `x86-64-v3`.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Marketing name of the processor, as it reports itself; empty if any will do.
    #[serde(default)]
    pub processor: String,
    /// Instruction set that code is made for.
    pub isa: Isa,
    /// Level-1 data cache of one core, bytes.
    pub l1d_bytes: u64,
    /// Level-2 cache of one core, bytes.
    pub l2_bytes: u64,
    /// Last-level cache, bytes.
    pub l3_bytes: u64,
    /// Hardware threads.
    pub threads: u32,
}

impl Isa {
    /// All instruction sets, weakest first.
    pub const ALL: [Self; 6] = [
        Self::Portable,
        Self::X86V2,
        Self::X86V3,
        Self::X86V4,
        Self::X86V4Vnni,
        Self::Neon,
    ];

    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::X86V2 => "x86-64-v2",
            Self::X86V3 => "x86-64-v3",
            Self::X86V4 => "x86-64-v4",
            Self::X86V4Vnni => "x86-64-v4-vnni",
            Self::Neon => "aarch64-neon",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Digestible for DeviceProfile {
    fn digest(&self, encoder: &mut Encoder) {
        encoder.str(&self.processor);
        encoder.str(self.isa.name());
        encoder.u64(self.l1d_bytes);
        encoder.u64(self.l2_bytes);
        encoder.u64(self.l3_bytes);
    }
}

impl DeviceProfile {
    /// Returns the fingerprint that labels of this device carry: equal for machines whose
    /// latencies may be compared. The profile's name and description do not enter.
    pub fn fingerprint(&self) -> Digest {
        Digest::of("metainfer device v1", self)
    }
}
