// Integers beside vectors of f32: 4 lanes of i32, results rounded half to even and saturated.
macro_rules! iload { ($p:expr) => { _mm_loadu_si128($p as *const __m128i) } }
macro_rules! istore { ($p:expr, $v:expr) => { _mm_storeu_si128($p as *mut __m128i, $v) } }
macro_rules! izero { () => { _mm_setzero_si128() } }
macro_rules! iadd { ($a:expr, $b:expr) => { _mm_add_epi32($a, $b) } }
macro_rules! tof { ($v:expr) => { _mm_cvtepi32_ps($v) } }
macro_rules! toi { ($v:expr) => { _mm_cvtps_epi32($v) } }
macro_rules! byte { ($v:expr) => { _mm_min_epi32(_mm_max_epi32($v, _mm_setzero_si128()), _mm_set1_epi32(255)) } }
macro_rules! wide { ($p:expr) => { _mm_cvtepu8_epi32(_mm_cvtsi32_si128(core::ptr::read_unaligned($p as *const i32))) } }
macro_rules! pack1 { ($p:expr, $v:expr) => {{ let v = _mm_packs_epi32($v, $v); core::ptr::write_unaligned($p as *mut i32, _mm_cvtsi128_si32(_mm_packus_epi16(v, v))) }} }
// Four vectors one after the other.
macro_rules! pack4 { ($p:expr, $a:expr, $b:expr, $c:expr, $d:expr) => { _mm_storeu_si128($p as *mut __m128i, _mm_packus_epi16(_mm_packs_epi32($a, $b), _mm_packs_epi32($c, $d))) } }
// Products of lanes whose numbers have 16 bits, summed up.
macro_rules! mac { ($a:expr, $x:expr, $w:expr) => { _mm_add_epi32($a, _mm_madd_epi16($x, $w)) } }
// The factor of HardSwish: $v clamped to ±$limit, times $slope, plus a half.
macro_rules! gate { ($v:expr, $limit:expr, $slope:expr) => {{ let limit = $limit; fma!(max!(min!($v, limit), sub!(zero!(), limit)), $slope, splat!(0.5)) }} }
