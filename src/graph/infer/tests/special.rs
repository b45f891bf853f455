//! Signals, regions, losses.

use super::{check, int, ints, refuse, text};

#[test]
fn fourier_transforms() {
    check("DFT@20", &[], "f32[1,10,10,1]", "f32[1,10,10,2]");
    let real = [("onesided", int(1))];
    check("DFT@20", &real, "f32[1,10,1] _ i64[]=1", "f32[1,6,2]");
    let back = [("onesided", int(1)), ("inverse", int(1))];
    check("DFT@20", &back, "f32[1,6,2]", "f32[1,10,1]");
    check(
        "DFT@17",
        &[("axis", int(2))],
        "f32[1,10,10,1] i64[]=4",
        "f32[1,10,4,2]",
    );
    refuse(
        "DFT@20",
        &[],
        "f32[1,10,3]",
        "[1, 10, 3] does not end in real and imaginary parts",
    );
    refuse(
        "DFT@17",
        &[("axis", int(2))],
        "f32[1,10,1]",
        "the axis is that of real and imaginary parts",
    );
    check("STFT", &[], "f32[1,128,1] i64[]=8 f32[16]", "f32[1,15,9,2]");
    refuse(
        "STFT",
        &[],
        "f32[1,128,1] i64[]=0 f32[16]",
        "frames of 16 with a window of Some(16) every 0 of 128",
    );
}

#[test]
fn regions() {
    check(
        "GridSample",
        &[],
        "f32[1,3,4,5] f32[1,6,7,2]",
        "f32[1,3,6,7]",
    );
    refuse(
        "GridSample",
        &[],
        "f32[1,3,4,5] f32[1,6,7,3]",
        "a grid [1, 6, 7, 3] for input [1, 3, 4, 5]",
    );
    check(
        "AffineGrid",
        &[],
        "f32[2,2,3] i64[4]=2,3,5,6",
        "f32[2,5,6,2]",
    );
    let size = [("output_height", int(5)), ("output_width", int(6))];
    check(
        "RoiAlign",
        &size,
        "f32[1,2,8,8] f32[3,4] i64[3]",
        "f32[3,2,5,6]",
    );
    check(
        "MaxRoiPool",
        &[("pooled_shape", ints(&[2, 2]))],
        "f32[1,2,8,8] f32[3,5]",
        "f32[3,2,2,2]",
    );
}

#[test]
fn losses() {
    check("NegativeLogLikelihoodLoss", &[], "f32[3,5] i64[3]", "f32[]");
    let each = [("reduction", text("none"))];
    check(
        "SoftmaxCrossEntropyLoss",
        &each,
        "f32[3,5,2] i64[3,2] f32[5]",
        "f32[3,2] f32[3,5,2]",
    );
    refuse(
        "NegativeLogLikelihoodLoss",
        &[],
        "f32[3,5] i64[4]",
        "targets [4] do not fit scores [3, 5]",
    );
}
