// What plain loops share: the C library's functions of one element, and half-precision numbers.
extern "C" {
    fn expf(x: f32) -> f32;
    fn exp(x: f64) -> f64;
    fn logf(x: f32) -> f32;
    fn log(x: f64) -> f64;
    fn sinf(x: f32) -> f32;
    fn sin(x: f64) -> f64;
    fn cosf(x: f32) -> f32;
    fn cos(x: f64) -> f64;
    fn tanf(x: f32) -> f32;
    fn tan(x: f64) -> f64;
    fn asinf(x: f32) -> f32;
    fn asin(x: f64) -> f64;
    fn acosf(x: f32) -> f32;
    fn acos(x: f64) -> f64;
    fn atanf(x: f32) -> f32;
    fn atan(x: f64) -> f64;
    fn sinhf(x: f32) -> f32;
    fn sinh(x: f64) -> f64;
    fn coshf(x: f32) -> f32;
    fn cosh(x: f64) -> f64;
    fn tanhf(x: f32) -> f32;
    fn tanh(x: f64) -> f64;
    fn asinhf(x: f32) -> f32;
    fn asinh(x: f64) -> f64;
    fn acoshf(x: f32) -> f32;
    fn acosh(x: f64) -> f64;
    fn atanhf(x: f32) -> f32;
    fn atanh(x: f64) -> f64;
    fn erff(x: f32) -> f32;
    fn erf(x: f64) -> f64;
    fn floorf(x: f32) -> f32;
    fn floor(x: f64) -> f64;
    fn ceilf(x: f32) -> f32;
    fn ceil(x: f64) -> f64;
    fn rintf(x: f32) -> f32;
    fn rint(x: f64) -> f64;
    fn sqrtf(x: f32) -> f32;
    fn sqrt(x: f64) -> f64;
    fn expm1f(x: f32) -> f32;
    fn expm1(x: f64) -> f64;
    fn log1pf(x: f32) -> f32;
    fn log1p(x: f64) -> f64;
    fn cbrtf(x: f32) -> f32;
    fn cbrt(x: f64) -> f64;
    fn powf(x: f32, y: f32) -> f32;
    fn pow(x: f64, y: f64) -> f64;
    fn fmodf(x: f32, y: f32) -> f32;
    fn fmod(x: f64, y: f64) -> f64;
    fn atan2f(x: f32, y: f32) -> f32;
    fn atan2(x: f64, y: f64) -> f64;
}
#[inline(always)]
fn from_f16(h: u16) -> f32 {
    let (sign, exponent, fraction) = ((h as u32 & 0x8000) << 16, h as u32 >> 10 & 0x1f, h as u32 & 0x3ff);
    let magnitude = if exponent == 0 {
        // Subnormal: an exact product.
        (fraction as f32 * 5.9604645e-8).to_bits()
    } else if exponent == 31 {
        0x7f80_0000 | fraction << 13
    } else {
        (exponent + 112) << 23 | fraction << 13
    };
    f32::from_bits(sign | magnitude)
}
// Rounds to nearest, ties to even.
#[inline(always)]
fn to_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let (sign, magnitude) = ((bits >> 16 & 0x8000) as u16, bits & 0x7fff_ffff);
    if magnitude > 0x7f80_0000 { return sign | 0x7e00; }
    if magnitude >= 0x4780_0000 { return sign | 0x7c00; }
    if magnitude < 0x3880_0000 {
        // Adding 0.5 leaves the subnormal's fraction in the lowest bits, rounded by the adder.
        let shifted = f32::from_bits(magnitude) + 0.5;
        return sign | (shifted.to_bits() - 0x3f00_0000) as u16;
    }
    let odd = magnitude >> 13 & 1;
    sign | ((magnitude - 0x3800_0000 + 0xfff + odd) >> 13) as u16
}
// Integer power by squaring, wrapping; negative exponents truncate to 0 but for bases of ±1.
#[inline(always)]
fn ipow(base: i64, exponent: i64) -> i64 {
    if exponent < 0 {
        return match base { 1 => 1, -1 => if exponent % 2 == 0 { 1 } else { -1 }, _ => 0 };
    }
    let (mut result, mut base, mut exponent) = (1i64, base, exponent);
    while exponent > 0 {
        if exponent & 1 == 1 { result = result.wrapping_mul(base); }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    result
}
// The element that an index names: negative ones count from the end, and what is out of range is
// the first or the last.
#[inline(always)]
fn index(i: i64, n: i64) -> usize {
    let i = if i < 0 { i.wrapping_add(n) } else { i };
    i.min(n - 1).max(0) as usize
}
