// 16 bytes at a time, whose elements are interleaved with others; the number is an element's bits.
use core::arch::aarch64::*;
macro_rules! zload { ($p:expr) => { vld1q_u8($p as *const u8) } }
macro_rules! zstore { ($p:expr, $v:expr) => { vst1q_u8($p as *mut u8, $v) } }
macro_rules! zzero { () => { vdupq_n_u8(0) } }
macro_rules! zip8 { ($a:expr, $b:expr) => { (vzip1q_u8($a, $b), vzip2q_u8($a, $b)) } }
macro_rules! zip16 { ($a:expr, $b:expr) => {{ let (a, b) = (vreinterpretq_u16_u8($a), vreinterpretq_u16_u8($b)); (vreinterpretq_u8_u16(vzip1q_u16(a, b)), vreinterpretq_u8_u16(vzip2q_u16(a, b))) }} }
macro_rules! zip32 { ($a:expr, $b:expr) => {{ let (a, b) = (vreinterpretq_u32_u8($a), vreinterpretq_u32_u8($b)); (vreinterpretq_u8_u32(vzip1q_u32(a, b)), vreinterpretq_u8_u32(vzip2q_u32(a, b))) }} }
macro_rules! zip64 { ($a:expr, $b:expr) => {{ let (a, b) = (vreinterpretq_u64_u8($a), vreinterpretq_u64_u8($b)); (vreinterpretq_u8_u64(vzip1q_u64(a, b)), vreinterpretq_u8_u64(vzip2q_u64(a, b))) }} }
