// Sums of four products of u8 and s8. Weights: [L][4].
#[inline(always)]
fn four_products(x: [u8; 4], w: [i8; 4]) -> i32 { let p = |i: usize| x[i] as i32 * w[i] as i32; p(0) + p(1) + p(2) + p(3) }
macro_rules! wload { ($p:expr) => { core::ptr::read_unaligned($p as *const [[i8; 4]; 4]) } }
macro_rules! four { ($p:expr) => { core::ptr::read_unaligned($p as *const [u8; 4]) } }
macro_rules! dot { ($a:expr, $x:expr, $w:expr) => {{ let (a, x, w) = ($a, $x, $w); whole(|i| a.0[i].wrapping_add(four_products(x, w[i]))) }} }
