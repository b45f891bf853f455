// Sums of four products of u8 and s8 in each lane of i32. Both are widened to 16 bits, so that no
// product and no sum of two saturates. Weights: the first and third of four, [L][2], then the others.
macro_rules! wload { ($p:expr) => { (_mm512_cvtepi8_epi16(_mm256_loadu_si256($p as *const __m256i)), _mm512_cvtepi8_epi16(_mm256_loadu_si256($p.add(32) as *const __m256i))) } }
macro_rules! four { ($p:expr) => {{ let x = _mm512_set1_epi32(core::ptr::read_unaligned($p as *const i32)); (_mm512_and_si512(x, _mm512_set1_epi32(0x00ff_00ff)), _mm512_srli_epi16::<8>(x)) }} }
macro_rules! dot { ($a:expr, $x:expr, $w:expr) => { mac!(mac!($a, $x.0, $w.0), $x.1, $w.1) } }
