// x86-64-v4, 16 lanes in zmm registers.
use core::arch::x86_64::*;
type V = __m512;
const L: usize = 16;
macro_rules! load { ($p:expr) => { _mm512_loadu_ps($p) } }
macro_rules! store { ($p:expr, $v:expr) => { _mm512_storeu_ps($p, $v) } }
// 16 numbers of half precision.
macro_rules! load_half { ($p:expr) => { _mm512_cvtph_ps(_mm256_loadu_si256($p as *const __m256i)) } }
macro_rules! store_half { ($p:expr, $v:expr) => { _mm256_storeu_si256($p as *mut __m256i, _mm512_cvtps_ph::<0>($v)) } }
macro_rules! splat { ($x:expr) => { _mm512_set1_ps($x) } }
macro_rules! zero { () => { _mm512_setzero_ps() } }
macro_rules! add { ($a:expr, $b:expr) => { _mm512_add_ps($a, $b) } }
macro_rules! sub { ($a:expr, $b:expr) => { _mm512_sub_ps($a, $b) } }
macro_rules! mul { ($a:expr, $b:expr) => { _mm512_mul_ps($a, $b) } }
macro_rules! div { ($a:expr, $b:expr) => { _mm512_div_ps($a, $b) } }
macro_rules! max { ($a:expr, $b:expr) => { _mm512_max_ps($a, $b) } }
macro_rules! min { ($a:expr, $b:expr) => { _mm512_min_ps($a, $b) } }
macro_rules! fma { ($a:expr, $b:expr, $c:expr) => { _mm512_fmadd_ps($a, $b, $c) } }
macro_rules! sqrt { ($x:expr) => { _mm512_sqrt_ps($x) } }
macro_rules! round { ($x:expr) => { _mm512_roundscale_ps::<8>($x) } }
macro_rules! pow2 { ($n:expr) => { _mm512_scalef_ps(_mm512_set1_ps(1.0), $n) } }
// Range with "smaller magnitude, sign of the first" clamps to ±3 in one instruction.
macro_rules! hardswish { ($x:expr) => { mul!($x, fma!(_mm512_range_ps::<2>($x, splat!(3.0)), splat!(0.16666667), splat!(0.5))) } }
// Even lanes of the first, then odd lanes of the second.
macro_rules! deinterleave { ($a:expr, $b:expr) => { _mm512_permutex2var_ps($a, _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31), $b) } }
