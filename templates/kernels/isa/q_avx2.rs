// Integers beside vectors of f32: 8 lanes of i32, results rounded half to even and saturated.
macro_rules! iload { ($p:expr) => { _mm256_loadu_si256($p as *const __m256i) } }
macro_rules! istore { ($p:expr, $v:expr) => { _mm256_storeu_si256($p as *mut __m256i, $v) } }
macro_rules! izero { () => { _mm256_setzero_si256() } }
macro_rules! iadd { ($a:expr, $b:expr) => { _mm256_add_epi32($a, $b) } }
macro_rules! tof { ($v:expr) => { _mm256_cvtepi32_ps($v) } }
macro_rules! toi { ($v:expr) => { _mm256_cvtps_epi32($v) } }
macro_rules! byte { ($v:expr) => { _mm256_min_epi32(_mm256_max_epi32($v, _mm256_setzero_si256()), _mm256_set1_epi32(255)) } }
macro_rules! wide { ($p:expr) => { _mm256_cvtepu8_epi32(_mm_loadl_epi64($p as *const __m128i)) } }
macro_rules! pack1 { ($p:expr, $v:expr) => {{ let v = $v; let v = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v)); _mm_storel_epi64($p as *mut __m128i, _mm_packus_epi16(v, v)) }} }
// Four vectors one after the other. Packing interleaves halves, which the permutation undoes.
macro_rules! pack4 { ($p:expr, $a:expr, $b:expr, $c:expr, $d:expr) => { _mm256_storeu_si256($p as *mut __m256i, _mm256_permutevar8x32_epi32(_mm256_packus_epi16(_mm256_packs_epi32($a, $b), _mm256_packs_epi32($c, $d)), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))) } }
// Products of lanes whose numbers have 16 bits, summed up.
macro_rules! mac { ($a:expr, $x:expr, $w:expr) => { _mm256_add_epi32($a, _mm256_madd_epi16($x, $w)) } }
// The factor of HardSwish: $v clamped to ±$limit, times $slope, plus a half.
macro_rules! gate { ($v:expr, $limit:expr, $slope:expr) => {{ let limit = $limit; fma!(max!(min!($v, limit), sub!(zero!(), limit)), $slope, splat!(0.5)) }} }
