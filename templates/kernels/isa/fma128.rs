// x86-64-v3 and v4: 4 lanes in xmm registers, for narrow channel counts.
use core::arch::x86_64::*;
type V = __m128;
const L: usize = 4;
macro_rules! load { ($p:expr) => { _mm_loadu_ps($p) } }
macro_rules! store { ($p:expr, $v:expr) => { _mm_storeu_ps($p, $v) } }
// 4 numbers of half precision.
macro_rules! load_half { ($p:expr) => { _mm_cvtph_ps(_mm_loadl_epi64($p as *const __m128i)) } }
macro_rules! store_half { ($p:expr, $v:expr) => { _mm_storel_epi64($p as *mut __m128i, _mm_cvtps_ph::<0>($v)) } }
macro_rules! splat { ($x:expr) => { _mm_set1_ps($x) } }
macro_rules! zero { () => { _mm_setzero_ps() } }
macro_rules! add { ($a:expr, $b:expr) => { _mm_add_ps($a, $b) } }
macro_rules! sub { ($a:expr, $b:expr) => { _mm_sub_ps($a, $b) } }
macro_rules! mul { ($a:expr, $b:expr) => { _mm_mul_ps($a, $b) } }
macro_rules! div { ($a:expr, $b:expr) => { _mm_div_ps($a, $b) } }
macro_rules! max { ($a:expr, $b:expr) => { _mm_max_ps($a, $b) } }
macro_rules! min { ($a:expr, $b:expr) => { _mm_min_ps($a, $b) } }
macro_rules! fma { ($a:expr, $b:expr, $c:expr) => { _mm_fmadd_ps($a, $b, $c) } }
macro_rules! sqrt { ($x:expr) => { _mm_sqrt_ps($x) } }
macro_rules! round { ($x:expr) => { _mm_round_ps::<8>($x) } }
macro_rules! pow2 { ($n:expr) => { _mm_castsi128_ps(_mm_slli_epi32::<23>(_mm_add_epi32(_mm_cvtps_epi32($n), _mm_set1_epi32(127)))) } }
macro_rules! hardswish { ($x:expr) => { mul!($x, min!(max!(fma!($x, splat!(0.16666667), splat!(0.5)), zero!()), splat!(1.0))) } }
// Even lanes of the first, then odd lanes of the second.
macro_rules! deinterleave { ($a:expr, $b:expr) => { _mm_shuffle_ps::<0b11_01_10_00>($a, $b) } }
