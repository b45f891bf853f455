// 16 bytes at a time, whose elements are interleaved with others; the number is an element's bits.
use core::arch::x86_64::*;
macro_rules! zload { ($p:expr) => { _mm_loadu_si128($p as *const __m128i) } }
macro_rules! zstore { ($p:expr, $v:expr) => { _mm_storeu_si128($p as *mut __m128i, $v) } }
macro_rules! zzero { () => { _mm_setzero_si128() } }
macro_rules! zip8 { ($a:expr, $b:expr) => { (_mm_unpacklo_epi8($a, $b), _mm_unpackhi_epi8($a, $b)) } }
macro_rules! zip16 { ($a:expr, $b:expr) => { (_mm_unpacklo_epi16($a, $b), _mm_unpackhi_epi16($a, $b)) } }
macro_rules! zip32 { ($a:expr, $b:expr) => { (_mm_unpacklo_epi32($a, $b), _mm_unpackhi_epi32($a, $b)) } }
macro_rules! zip64 { ($a:expr, $b:expr) => { (_mm_unpacklo_epi64($a, $b), _mm_unpackhi_epi64($a, $b)) } }
