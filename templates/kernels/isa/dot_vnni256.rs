// Sums of four products of u8 and s8 in each lane of i32, by one instruction. Weights: [L][4].
macro_rules! wload { ($p:expr) => { _mm256_loadu_si256($p as *const __m256i) } }
macro_rules! four { ($p:expr) => { _mm256_set1_epi32(core::ptr::read_unaligned($p as *const i32)) } }
macro_rules! dot { ($a:expr, $x:expr, $w:expr) => { _mm256_dpbusd_epi32($a, $x, $w) } }
