// Sums of four products of u8 and s8 in each lane of i32, by one instruction. Weights: [L][4].
macro_rules! wload { ($p:expr) => { _mm512_loadu_si512($p as *const __m512i) } }
macro_rules! four { ($p:expr) => { _mm512_set1_epi32(core::ptr::read_unaligned($p as *const i32)) } }
macro_rules! dot { ($a:expr, $x:expr, $w:expr) => { _mm512_dpbusd_epi32($a, $x, $w) } }
// Pixels of 16 channels one after the other become channels of four pixels; bytes whose bit of the
// mask is 0 are not read.
static TRANSPOSED: [u8; 64] = { let mut t = [0; 64]; let mut i = 0; while i < 64 { t[i] = (i % 4 * 16 + i / 4) as u8; i += 1; } t };
macro_rules! pixels { ($p:expr, $mask:expr) => { _mm512_permutexvar_epi8(_mm512_loadu_si512(TRANSPOSED.as_ptr() as *const __m512i), _mm512_maskz_loadu_epi8($mask, $p as *const i8)) } }
