// Plain Rust, four lanes: runs anywhere, and compilers turn it into what vectors they know.
#[derive(Clone, Copy)]
#[repr(C)]
struct V([f32; 4]);
const L: usize = 4;
#[inline(always)]
fn lanes(f: impl Fn(usize) -> f32) -> V { V([f(0), f(1), f(2), f(3)]) }
#[inline(always)]
fn two_to(n: f32) -> f32 { f32::from_bits(((n as i32 + 127) as u32) << 23) }
// Adding and subtracting 1.5·2²³ rounds to the nearest integer, ties to even, for |x| < 2²².
#[inline(always)]
fn nearest(x: f32) -> f32 { (x + 12582912.0) - 12582912.0 }
macro_rules! load { ($p:expr) => { core::ptr::read_unaligned($p as *const V) } }
macro_rules! store { ($p:expr, $v:expr) => { core::ptr::write_unaligned($p as *mut V, $v) } }
macro_rules! splat { ($x:expr) => { V([$x; 4]) } }
macro_rules! zero { () => { V([0.0; 4]) } }
macro_rules! add { ($a:expr, $b:expr) => {{ let (a, b) = ($a, $b); lanes(|i| a.0[i] + b.0[i]) }} }
macro_rules! sub { ($a:expr, $b:expr) => {{ let (a, b) = ($a, $b); lanes(|i| a.0[i] - b.0[i]) }} }
macro_rules! mul { ($a:expr, $b:expr) => {{ let (a, b) = ($a, $b); lanes(|i| a.0[i] * b.0[i]) }} }
macro_rules! div { ($a:expr, $b:expr) => {{ let (a, b) = ($a, $b); lanes(|i| a.0[i] / b.0[i]) }} }
macro_rules! max { ($a:expr, $b:expr) => {{ let (a, b) = ($a, $b); lanes(|i| if a.0[i] > b.0[i] { a.0[i] } else { b.0[i] }) }} }
macro_rules! min { ($a:expr, $b:expr) => {{ let (a, b) = ($a, $b); lanes(|i| if a.0[i] < b.0[i] { a.0[i] } else { b.0[i] }) }} }
macro_rules! fma { ($a:expr, $b:expr, $c:expr) => {{ let (a, b, c) = ($a, $b, $c); lanes(|i| a.0[i] * b.0[i] + c.0[i]) }} }
// A module of its own, as plain loops declare the same function.
mod root { extern "C" { pub fn sqrtf(x: f32) -> f32; } }
macro_rules! sqrt { ($x:expr) => {{ let x = $x; lanes(|i| unsafe { root::sqrtf(x.0[i]) }) }} }
macro_rules! round { ($x:expr) => {{ let x = $x; lanes(|i| nearest(x.0[i])) }} }
macro_rules! pow2 { ($n:expr) => {{ let n = $n; lanes(|i| two_to(n.0[i])) }} }
macro_rules! hardswish { ($x:expr) => {{ let x = $x; mul!(x, min!(max!(fma!(x, splat!(0.16666667), splat!(0.5)), zero!()), splat!(1.0))) }} }
// Even lanes of the first, then odd lanes of the second.
macro_rules! deinterleave { ($a:expr, $b:expr) => {{ let (a, b) = ($a, $b); V([a.0[0], a.0[2], b.0[1], b.0[3]]) }} }
