// Integers beside vectors of f32: 16 lanes of i32, results rounded half to even and saturated.
macro_rules! iload { ($p:expr) => { _mm512_loadu_si512($p as *const __m512i) } }
macro_rules! istore { ($p:expr, $v:expr) => { _mm512_storeu_si512($p as *mut __m512i, $v) } }
macro_rules! izero { () => { _mm512_setzero_si512() } }
macro_rules! iadd { ($a:expr, $b:expr) => { _mm512_add_epi32($a, $b) } }
macro_rules! tof { ($v:expr) => { _mm512_cvtepi32_ps($v) } }
macro_rules! toi { ($v:expr) => { _mm512_cvtps_epi32($v) } }
macro_rules! byte { ($v:expr) => { _mm512_min_epi32(_mm512_max_epi32($v, _mm512_setzero_si512()), _mm512_set1_epi32(255)) } }
macro_rules! wide { ($p:expr) => { _mm512_cvtepu8_epi32(_mm_loadu_si128($p as *const __m128i)) } }
macro_rules! pack1 { ($p:expr, $v:expr) => { _mm_storeu_si128($p as *mut __m128i, _mm512_cvtusepi32_epi8(_mm512_max_epi32($v, _mm512_setzero_si512()))) } }
// Four vectors one after the other. Packing interleaves quarters, which the permutation undoes.
macro_rules! pack4 { ($p:expr, $a:expr, $b:expr, $c:expr, $d:expr) => { _mm512_storeu_si512($p as *mut __m512i, _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), _mm512_packus_epi16(_mm512_packs_epi32($a, $b), _mm512_packs_epi32($c, $d)))) } }
// Products of lanes whose numbers have 16 bits, summed up.
macro_rules! mac { ($a:expr, $x:expr, $w:expr) => { _mm512_add_epi32($a, _mm512_madd_epi16($x, $w)) } }
// The factor of HardSwish: $v clamped to ±$limit, times $slope, plus a half.
macro_rules! gate { ($v:expr, $limit:expr, $slope:expr) => { fma!(_mm512_range_ps::<2>($v, $limit), $slope, splat!(0.5)) } }
