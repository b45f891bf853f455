// Transcendental functions over vectors, from the primitives of the instruction set.
// exp: Cephes' degree-5 polynomial after reduction by ln 2; relative error under 2 ulp in
// [-87, 88], clamped outside. erf: Abramowitz and Stegun 7.1.26, absolute error under 1.5e-7.
macro_rules! exp { ($x:expr) => {{
    let x = min!(max!($x, splat!(-87.0)), splat!(88.0));
    let n = round!(mul!(x, splat!(1.442695041)));
    let r = fma!(n, splat!(-0.693359375), x);
    let r = fma!(n, splat!(2.12194440e-4), r);
    let p = fma!(splat!(1.9875691500e-4), r, splat!(1.3981999507e-3));
    let p = fma!(p, r, splat!(8.3334519073e-3));
    let p = fma!(p, r, splat!(4.1665795894e-2));
    let p = fma!(p, r, splat!(1.6666665459e-1));
    let p = fma!(p, r, splat!(5.0000001201e-1));
    let p = add!(fma!(p, mul!(r, r), r), splat!(1.0));
    mul!(p, pow2!(n))
}} }
macro_rules! sigmoid { ($x:expr) => {{
    let e = exp!(sub!(zero!(), $x));
    div!(splat!(1.0), add!(splat!(1.0), e))
}} }
macro_rules! tanh { ($x:expr) => {{
    let e = exp!(mul!($x, splat!(-2.0)));
    sub!(div!(splat!(2.0), add!(splat!(1.0), e)), splat!(1.0))
}} }
macro_rules! erf { ($x:expr) => {{
    let x = $x;
    let a = max!(x, sub!(zero!(), x));
    let t = div!(splat!(1.0), fma!(a, splat!(0.3275911), splat!(1.0)));
    let p = fma!(splat!(1.061405429), t, splat!(-1.453152027));
    let p = fma!(p, t, splat!(1.421413741));
    let p = fma!(p, t, splat!(-0.284496736));
    let p = mul!(fma!(p, t, splat!(0.254829592)), t);
    let y = sub!(splat!(1.0), mul!(p, exp!(sub!(zero!(), mul!(a, a)))));
    // The sign of x: ±1, or 0 where x is 0.
    let s = max!(min!(mul!(x, splat!(1e30)), splat!(1.0)), splat!(-1.0));
    mul!(y, s)
}} }
