// Integers beside vectors of f32: four of i32, results rounded half to even and saturated.
#[derive(Clone, Copy)]
#[repr(C)]
struct I([i32; 4]);
#[inline(always)]
fn whole(f: impl Fn(usize) -> i32) -> I { I([f(0), f(1), f(2), f(3)]) }
#[inline(always)]
fn bytes_of(v: I) -> [u8; 4] { let b = |i: usize| (if v.0[i] < 0 { 0 } else if v.0[i] > 255 { 255 } else { v.0[i] }) as u8; [b(0), b(1), b(2), b(3)] }
macro_rules! iload { ($p:expr) => { core::ptr::read_unaligned($p as *const I) } }
macro_rules! istore { ($p:expr, $v:expr) => { core::ptr::write_unaligned($p as *mut I, $v) } }
macro_rules! izero { () => { I([0; 4]) } }
macro_rules! iadd { ($a:expr, $b:expr) => {{ let (a, b) = ($a, $b); whole(|i| a.0[i].wrapping_add(b.0[i])) }} }
macro_rules! tof { ($v:expr) => {{ let v = $v; lanes(|i| v.0[i] as f32) }} }
macro_rules! toi { ($v:expr) => {{ let v = $v; whole(|i| nearest(v.0[i]) as i32) }} }
macro_rules! byte { ($v:expr) => {{ let b = bytes_of($v); whole(|i| b[i] as i32) }} }
macro_rules! wide { ($p:expr) => {{ let b = core::ptr::read_unaligned($p as *const [u8; 4]); whole(|i| b[i] as i32) }} }
macro_rules! pack1 { ($p:expr, $v:expr) => { core::ptr::write_unaligned($p as *mut [u8; 4], bytes_of($v)) } }
// Four vectors one after the other.
macro_rules! pack4 { ($p:expr, $a:expr, $b:expr, $c:expr, $d:expr) => { core::ptr::write_unaligned($p as *mut [[u8; 4]; 4], [bytes_of($a), bytes_of($b), bytes_of($c), bytes_of($d)]) } }
// Products of lanes, summed up.
macro_rules! mac { ($a:expr, $x:expr, $w:expr) => {{ let (a, x, w) = ($a, $x, $w); whole(|i| a.0[i].wrapping_add(x.0[i].wrapping_mul(w.0[i]))) }} }
// The factor of HardSwish: $v clamped to ±$limit, times $slope, plus a half.
macro_rules! gate { ($v:expr, $limit:expr, $slope:expr) => {{ let limit = $limit; fma!(max!(min!($v, limit), sub!(zero!(), limit)), $slope, splat!(0.5)) }} }
