// AArch64 Advanced SIMD, 4 lanes.
use core::arch::aarch64::*;
type V = float32x4_t;
const L: usize = 4;
macro_rules! load { ($p:expr) => { vld1q_f32($p) } }
macro_rules! store { ($p:expr, $v:expr) => { vst1q_f32($p, $v) } }
macro_rules! splat { ($x:expr) => { vdupq_n_f32($x) } }
macro_rules! zero { () => { vdupq_n_f32(0.0) } }
macro_rules! add { ($a:expr, $b:expr) => { vaddq_f32($a, $b) } }
macro_rules! sub { ($a:expr, $b:expr) => { vsubq_f32($a, $b) } }
macro_rules! mul { ($a:expr, $b:expr) => { vmulq_f32($a, $b) } }
macro_rules! div { ($a:expr, $b:expr) => { vdivq_f32($a, $b) } }
macro_rules! max { ($a:expr, $b:expr) => { vmaxq_f32($a, $b) } }
macro_rules! min { ($a:expr, $b:expr) => { vminq_f32($a, $b) } }
macro_rules! fma { ($a:expr, $b:expr, $c:expr) => { vfmaq_f32($c, $a, $b) } }
macro_rules! sqrt { ($x:expr) => { vsqrtq_f32($x) } }
macro_rules! round { ($x:expr) => { vrndnq_f32($x) } }
macro_rules! pow2 { ($n:expr) => { vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(vcvtnq_s32_f32($n), vdupq_n_s32(127)))) } }
macro_rules! hardswish { ($x:expr) => { mul!($x, min!(max!(fma!($x, splat!(0.16666667), splat!(0.5)), zero!()), splat!(1.0))) } }
// Even lanes of the first, then odd lanes of the second.
macro_rules! deinterleave { ($a:expr, $b:expr) => {{ let (a, b) = ($a, $b); vcombine_f32(vget_low_f32(vuzp1q_f32(a, a)), vget_low_f32(vuzp2q_f32(b, b))) }} }
