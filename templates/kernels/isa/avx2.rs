// x86-64-v3 and, with 32 registers, v4: 8 lanes in ymm registers.
use core::arch::x86_64::*;
type V = __m256;
const L: usize = 8;
macro_rules! load { ($p:expr) => { _mm256_loadu_ps($p) } }
macro_rules! store { ($p:expr, $v:expr) => { _mm256_storeu_ps($p, $v) } }
// 8 numbers of half precision.
macro_rules! load_half { ($p:expr) => { _mm256_cvtph_ps(_mm_loadu_si128($p as *const __m128i)) } }
macro_rules! store_half { ($p:expr, $v:expr) => { _mm_storeu_si128($p as *mut __m128i, _mm256_cvtps_ph::<0>($v)) } }
macro_rules! splat { ($x:expr) => { _mm256_set1_ps($x) } }
macro_rules! zero { () => { _mm256_setzero_ps() } }
macro_rules! add { ($a:expr, $b:expr) => { _mm256_add_ps($a, $b) } }
macro_rules! sub { ($a:expr, $b:expr) => { _mm256_sub_ps($a, $b) } }
macro_rules! mul { ($a:expr, $b:expr) => { _mm256_mul_ps($a, $b) } }
macro_rules! div { ($a:expr, $b:expr) => { _mm256_div_ps($a, $b) } }
macro_rules! max { ($a:expr, $b:expr) => { _mm256_max_ps($a, $b) } }
macro_rules! min { ($a:expr, $b:expr) => { _mm256_min_ps($a, $b) } }
macro_rules! fma { ($a:expr, $b:expr, $c:expr) => { _mm256_fmadd_ps($a, $b, $c) } }
macro_rules! sqrt { ($x:expr) => { _mm256_sqrt_ps($x) } }
macro_rules! round { ($x:expr) => { _mm256_round_ps::<8>($x) } }
macro_rules! pow2 { ($n:expr) => { _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(_mm256_cvtps_epi32($n), _mm256_set1_epi32(127)))) } }
macro_rules! hardswish { ($x:expr) => { mul!($x, min!(max!(fma!($x, splat!(0.16666667), splat!(0.5)), zero!()), splat!(1.0))) } }
// Even lanes of the first, then odd lanes of the second.
macro_rules! deinterleave { ($a:expr, $b:expr) => { _mm256_castpd_ps(_mm256_permute4x64_pd::<0b11_01_10_00>(_mm256_castps_pd(_mm256_shuffle_ps::<0b11_01_10_00>($a, $b)))) } }
