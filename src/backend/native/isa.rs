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
    /// Products of u8 and s8 in lanes of as many i32.
    pub integers: Integers,
}

impl VectorTable {
    /// Returns whether numbers of half precision are loaded and stored by instructions of their own.
    pub fn converts_halves(&self) -> bool {
        self.features.split(',').any(|feature| feature == "f16c")
    }
}

/// How an instruction set multiplies u8 by s8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Integers {
    /// The template that defines vectors of i32.
    pub template: &'static str,
    /// The template that defines sums of four products.
    pub dot: &'static str,
    /// Whether the weights of a vector lie in two halves: the first and third of each four, then
    /// the second and fourth.
    pub halves: bool,
    /// Whether bytes can be permuted across a whole vector.
    pub permutes: bool,
}

impl Integers {
    const fn new(template: &'static str, dot: &'static str, halves: bool) -> Self {
        Self {
            template,
            dot,
            halves,
            permutes: false,
        }
    }

    /// Returns the registers that a vector of weights takes.
    pub fn registers(self) -> usize {
        1 + usize::from(self.halves)
    }
}

const INTEGERS_16: Integers = Integers::new("isa/q_avx512.rs", "isa/dot_avx512.rs", true);
const INTEGERS_8: Integers = Integers::new("isa/q_avx2.rs", "isa/dot_avx2.rs", true);
const INTEGERS_4: Integers = Integers::new("isa/q_sse4.rs", "isa/dot_sse4.rs", true);
const VNNI_16: Integers = Integers {
    permutes: true,
    ..Integers::new("isa/q_avx512.rs", "isa/dot_vnni512.rs", false)
};
const VNNI_8: Integers = Integers::new("isa/q_avx2.rs", "isa/dot_vnni256.rs", false);
const NEON: Integers = Integers::new("isa/q_neon.rs", "isa/dot_neon.rs", false);
const PORTABLE: Integers = Integers::new("isa/q_portable.rs", "isa/dot_portable.rs", false);

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
        integers: Integers,
    ) -> VectorTable {
        VectorTable {
            lanes,
            registers,
            features,
            template,
            integers,
        }
    }
    match isa {
        Isa::Portable => const { &[table(4, 16, "", "isa/portable.rs", PORTABLE)] },
        Isa::X86V2 => const { &[table(4, 16, V2, "isa/sse4.rs", INTEGERS_4)] },
        Isa::X86V3 => {
            const {
                &[
                    table(8, 16, V3, "isa/avx2.rs", INTEGERS_8),
                    table(4, 16, V3, "isa/fma128.rs", INTEGERS_4),
                ]
            }
        }
        Isa::X86V4 => {
            const {
                &[
                    table(16, 32, V4, "isa/avx512.rs", INTEGERS_16),
                    table(8, 32, V4, "isa/avx2.rs", INTEGERS_8),
                    table(4, 32, V4, "isa/fma128.rs", INTEGERS_4),
                ]
            }
        }
        Isa::X86V4Vnni => {
            const {
                &[
                    table(16, 32, V4_VNNI, "isa/avx512.rs", VNNI_16),
                    table(8, 32, V4_VNNI, "isa/avx2.rs", VNNI_8),
                    table(4, 32, V4_VNNI, "isa/fma128.rs", INTEGERS_4),
                ]
            }
        }
        Isa::Neon => const { &[table(4, 32, "neon", "isa/neon.rs", NEON)] },
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

/// Returns the template that defines how elements of two vectors are interleaved; `None` if there
/// are no vectors.
pub fn zips(isa: Isa) -> Option<&'static str> {
    match isa {
        Isa::Portable => None,
        Isa::X86V2 | Isa::X86V3 | Isa::X86V4 | Isa::X86V4Vnni => Some("isa/zip_x86.rs"),
        Isa::Neon => Some("isa/zip_neon.rs"),
    }
}

/// Returns the first of `tables`, widest first, for `n` numbers in vectors; or the second if the
/// first computes more than a quarter more.
pub fn least_waste(tables: impl Iterator<Item = VectorTable>, n: usize) -> Option<VectorTable> {
    let computed = |table: VectorTable| n.next_multiple_of(table.lanes);
    tables.take(2).reduce(|wide, narrow| {
        if computed(narrow) * 5 < computed(wide) * 4 {
            narrow
        } else {
            wide
        }
    })
}
