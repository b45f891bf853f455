// Integers beside vectors of f32: 4 lanes of i32, results rounded half to even and saturated.
macro_rules! iload { ($p:expr) => { vld1q_s32($p as *const i32) } }
macro_rules! istore { ($p:expr, $v:expr) => { vst1q_s32($p as *mut i32, $v) } }
macro_rules! izero { () => { vdupq_n_s32(0) } }
macro_rules! iadd { ($a:expr, $b:expr) => { vaddq_s32($a, $b) } }
macro_rules! tof { ($v:expr) => { vcvtq_f32_s32($v) } }
macro_rules! toi { ($v:expr) => { vcvtnq_s32_f32($v) } }
macro_rules! byte { ($v:expr) => { vminq_s32(vmaxq_s32($v, vdupq_n_s32(0)), vdupq_n_s32(255)) } }
macro_rules! wide { ($p:expr) => { vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(core::ptr::read_unaligned($p as *const u32) as u64))))) } }
macro_rules! pack1 { ($p:expr, $v:expr) => {{ let v = vqmovn_s32($v); core::ptr::write_unaligned($p as *mut u32, vget_lane_u32::<0>(vreinterpret_u32_u8(vqmovun_s16(vcombine_s16(v, v))))) }} }
// Four vectors one after the other.
macro_rules! pack4 { ($p:expr, $a:expr, $b:expr, $c:expr, $d:expr) => { vst1q_u8($p, vcombine_u8(vqmovun_s16(vcombine_s16(vqmovn_s32($a), vqmovn_s32($b))), vqmovun_s16(vcombine_s16(vqmovn_s32($c), vqmovn_s32($d))))) } }
// Products of lanes, summed up.
macro_rules! mac { ($a:expr, $x:expr, $w:expr) => { vmlaq_s32($a, $x, $w) } }
// The factor of HardSwish: $v clamped to ±$limit, times $slope, plus a half.
macro_rules! gate { ($v:expr, $limit:expr, $slope:expr) => {{ let limit = $limit; fma!(max!(min!($v, limit), sub!(zero!(), limit)), $slope, splat!(0.5)) }} }
