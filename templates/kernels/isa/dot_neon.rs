// Sums of four products of u8 and s8 in each lane of i32: both are widened to 16 bits, products to
// 32, and neighbours are added twice. Weights: [L][4].
macro_rules! wload { ($p:expr) => {{ let w = vld1q_s8($p as *const i8); (vmovl_s8(vget_low_s8(w)), vmovl_s8(vget_high_s8(w))) }} }
macro_rules! four { ($p:expr) => { vreinterpretq_s16_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(core::ptr::read_unaligned($p as *const u32))))) } }
macro_rules! dot { ($a:expr, $x:expr, $w:expr) => {{
    let x = vget_low_s16($x);
    let first = vpaddq_s32(vmull_s16(x, vget_low_s16($w.0)), vmull_s16(x, vget_high_s16($w.0)));
    let second = vpaddq_s32(vmull_s16(x, vget_low_s16($w.1)), vmull_s16(x, vget_high_s16($w.1)));
    vaddq_s32($a, vpaddq_s32(first, second))
}} }
