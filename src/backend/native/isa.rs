//! Vector tables: what each instruction set offers to the kernel templates.

use crate::device::Isa;

/// One vector width of an instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorTable {
    /// f32 lanes of a vector.
    pub lanes: usize,
    /// Vector registers.
    pub registers: usize,
    /// CPU features that the code needs, as `target_feature` spells them; empty for none.
    pub features: &'static str,
    /// The template that defines the primitives.
    pub template: &'static str,
}

const V2: &str = "sse3,ssse3,sse4.1,sse4.2,popcnt";
const V3: &str = "avx,avx2,bmi1,bmi2,f16c,fma,lzcnt,movbe,popcnt";
const V4: &str =
    "avx,avx2,bmi1,bmi2,f16c,fma,lzcnt,movbe,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl";
const V4_VNNI: &str = "avx,avx2,bmi1,bmi2,f16c,fma,lzcnt,movbe,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vnni,avx512vbmi";

/// Returns the vector widths of an instruction set, widest first.
pub fn tables(isa: Isa) -> &'static [VectorTable] {
    const fn table(
        lanes: usize,
        registers: usize,
        features: &'static str,
        template: &'static str,
    ) -> VectorTable {
        VectorTable {
            lanes,
            registers,
            features,
            template,
        }
    }
    match isa {
        Isa::Portable => const { &[table(4, 16, "", "isa/portable.rs")] },
        Isa::X86V2 => const { &[table(4, 16, V2, "isa/sse4.rs")] },
        Isa::X86V3 => {
            const {
                &[
                    table(8, 16, V3, "isa/avx2.rs"),
                    table(4, 16, V3, "isa/fma128.rs"),
                ]
            }
        }
        Isa::X86V4 => {
            const {
                &[
                    table(16, 32, V4, "isa/avx512.rs"),
                    table(8, 32, V4, "isa/avx2.rs"),
                    table(4, 32, V4, "isa/fma128.rs"),
                ]
            }
        }
        Isa::X86V4Vnni => {
            const {
                &[
                    table(16, 32, V4_VNNI, "isa/avx512.rs"),
                    table(8, 32, V4_VNNI, "isa/avx2.rs"),
                    table(4, 32, V4_VNNI, "isa/fma128.rs"),
                ]
            }
        }
        Isa::Neon => const { &[table(4, 32, "neon", "isa/neon.rs")] },
    }
}

/// Returns the table of `isa` with that many lanes.
pub fn table(isa: Isa, lanes: usize) -> Option<VectorTable> {
    tables(isa)
        .iter()
        .copied()
        .find(|table| table.lanes == lanes)
}

/// Returns the widest table of `isa`.
pub fn widest(isa: Isa) -> VectorTable {
    tables(isa)[0]
}
