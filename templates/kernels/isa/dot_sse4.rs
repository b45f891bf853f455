// Sums of four products of u8 and s8 in each lane of i32. Both are widened to 16 bits, so that no
// product and no sum of two saturates. Weights: the first and third of four, [L][2], then the others.
macro_rules! wload { ($p:expr) => { (_mm_cvtepi8_epi16(_mm_loadl_epi64($p as *const __m128i)), _mm_cvtepi8_epi16(_mm_loadl_epi64($p.add(8) as *const __m128i))) } }
macro_rules! four { ($p:expr) => {{ let x = _mm_set1_epi32(core::ptr::read_unaligned($p as *const i32)); (_mm_and_si128(x, _mm_set1_epi32(0x00ff_00ff)), _mm_srli_epi16::<8>(x)) }} }
macro_rules! dot { ($a:expr, $x:expr, $w:expr) => { mac!(mac!($a, $x.0, $w.0), $x.1, $w.1) } }
