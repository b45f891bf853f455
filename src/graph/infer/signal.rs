//! Windows and Fourier transforms.

use super::fact::{Case, Facts, InferError, axis, dim, dtype, mismatch, one};

/// `HannWindow`, `HammingWindow`, `BlackmanWindow` (17).
pub(super) fn window(case: &Case<'_>) -> Facts {
    one(
        dtype(case.node.int("output_datatype", 1))?,
        vec![count(case, 0)?],
    )
}

/// `MelWeightMatrix` (17): `[bins of the spectrum, mel bins]`.
pub(super) fn mel_weights(case: &Case<'_>) -> Facts {
    one(
        dtype(case.node.int("output_datatype", 1))?,
        vec![count(case, 1)? / 2 + 1, count(case, 0)?],
    )
}

/// `DFT` (17, 20): along one axis of `[…, 1 or 2]`, whose last dimension holds real and imaginary
/// parts. `onesided` drops the half that symmetry repeats; with `inverse`, it restores it.
pub(super) fn fourier(case: &Case<'_>) -> Facts {
    let x = case.operand(0)?;
    let mut dims = x.shape.dims().to_vec();
    let Some(signal_rank) = dims
        .len()
        .checked_sub(1)
        .filter(|_| matches!(dims.last(), Some(1 | 2)))
    else {
        return mismatch(format!("{dims:?} does not end in real and imaginary parts"));
    };
    let stated = if case.opset < 20 {
        case.node.int("axis", 1)
    } else {
        match case.ints_input(2)? {
            Some(list) => list.first().copied().unwrap_or(-2),
            None => -2,
        }
    };
    let along = axis(stated, dims.len())?;
    if along == signal_rank {
        return mismatch("the axis is that of real and imaginary parts");
    }
    let is_onesided = case.node.int("onesided", 0) != 0;
    let is_inverse = case.node.int("inverse", 0) != 0;
    let restores = is_onesided && is_inverse;
    let length = match case.optional(1) {
        Some(_) => count(case, 1)?,
        None if restores => 2 * dims[along].saturating_sub(1),
        None => dims[along],
    };
    dims[along] = if is_onesided && !is_inverse {
        length / 2 + 1
    } else {
        length
    };
    dims[signal_rank] = if restores { 1 } else { 2 };
    one(x.dtype, dims)
}

/// `STFT` (17): signal `[n, length, 1 or 2]` to `[n, frames, bins, 2]`.
pub(super) fn short_time_fourier(case: &Case<'_>) -> Facts {
    let x = case.operand(0)?;
    let (n, length) = match *x.shape.dims() {
        [n, length] | [n, length, 1 | 2] => (n, length),
        ref dims => return mismatch(format!("{dims:?} is no signal")),
    };
    let step = count(case, 1)?;
    let window = match case.optional(2) {
        Some(window) if window.shape.rank() == 1 => Some(window.shape.len()),
        Some(window) => return mismatch(format!("the window is {}", window.shape)),
        None => None,
    };
    let frame = match case.optional(3) {
        Some(_) => count(case, 3)?,
        None => window.ok_or(InferError::MissingInput(3))?,
    };
    if step == 0 || frame == 0 || frame > length || window.is_some_and(|size| size != frame) {
        return mismatch(format!(
            "frames of {frame} with a window of {window:?} every {step} of {length}"
        ));
    }
    let bins = match case.node.int("onesided", 1) {
        0 => frame,
        _ => frame / 2 + 1,
    };
    one(x.dtype, vec![n, (length - frame) / step + 1, bins, 2])
}

/// Returns a constant input as a size.
fn count(case: &Case<'_>, idx: usize) -> Result<usize, InferError> {
    match case.ints_input(idx)?.as_deref() {
        Some(&[size]) => dim(size),
        Some(sizes) => mismatch(format!("input {idx} is {sizes:?}")),
        None => Err(InferError::MissingInput(idx)),
    }
}
