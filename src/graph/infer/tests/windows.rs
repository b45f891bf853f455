//! Convolutions and pools.

use super::{check, int, ints, refuse, text};

#[test]
fn convolutions() {
    let x = "f32[2,6,9,7]";
    check("Conv", &[], &format!("{x} f32[8,6,3,3]"), "f32[2,8,7,5]");
    let attributes = [
        ("group", int(3)),
        ("strides", ints(&[2, 1])),
        ("dilations", ints(&[1, 2])),
        ("pads", ints(&[1, 0, 0, 3])),
    ];
    check(
        "Conv",
        &attributes,
        &format!("{x} f32[9,2,3,3] f32[9]"),
        "f32[2,9,4,6]",
    );
    check("Conv", &[], "f16[1,2,5] f16[4,2,5]", "f16[1,4,1]");
    check(
        "ConvInteger",
        &[],
        "u8[1,1,3,3] i8[1,1,2,2] u8[]=1",
        "i32[1,1,2,2]",
    );
    let quantised = "u8[1,2,4,4] f32[] u8[] i8[6,2,1,1] f32[6] i8[6] f32[] u8[] i32[6]";
    check("QLinearConv", &[], quantised, "u8[1,6,4,4]");
    refuse(
        "Conv",
        &[("group", int(0))],
        &format!("{x} f32[8,6,3,3]"),
        "`group` is 0",
    );
    refuse(
        "Conv",
        &[],
        &format!("{x} f32[8,6,10,3]"),
        "kernel [10, 3] is larger than the padded input [9, 7]",
    );
    refuse(
        "Conv",
        &[],
        &format!("{x} f16[8,6,3,3]"),
        "element types f32 and f16 differ",
    );
    refuse(
        "Conv",
        &[("strides", ints(&[0, 1]))],
        &format!("{x} f32[8,6,3,3]"),
        "`strides` is [0, 1] for 2 spatial dimensions",
    );
    refuse(
        "Conv",
        &[],
        "i32[1,1,3,3] i32[1,1,2,2]",
        "input 0 is i32, the operator takes floating-point types",
    );
}

#[test]
fn transposed_convolutions() {
    let inputs = "f32[1,4,3,3] f32[4,2,3,3]";
    check(
        "ConvTranspose",
        &[("strides", ints(&[3, 2]))],
        inputs,
        "f32[1,2,9,7]",
    );
    let attributes = [
        ("strides", ints(&[3, 2])),
        ("output_padding", ints(&[1, 1])),
        ("pads", ints(&[1, 0, 0, 1])),
        ("group", int(2)),
    ];
    check("ConvTranspose", &attributes, inputs, "f32[1,4,9,7]");
    let stated = [("strides", ints(&[3, 2])), ("output_shape", ints(&[10, 8]))];
    check("ConvTranspose", &stated, inputs, "f32[1,2,10,8]");
    let same = [("strides", ints(&[2, 2])), ("auto_pad", text("SAME_UPPER"))];
    check("ConvTranspose", &same, inputs, "f32[1,2,6,6]");
    refuse(
        "ConvTranspose",
        &[("output_padding", ints(&[1, 0]))],
        inputs,
        "`output_padding` is [1, 0], each must be smaller than stride or dilation",
    );
    refuse(
        "ConvTranspose",
        &[("pads", ints(&[3, 0, 3, 0]))],
        inputs,
        "a dimension comes out as -1",
    );
}

#[test]
fn pools() {
    let kernel = ("kernel_shape", ints(&[3, 3]));
    let strided = [kernel.clone(), ("strides", ints(&[2, 2]))];
    check(
        "MaxPool",
        &strided,
        "i8[1,2,8,8]",
        "i8[1,2,3,3] i64[1,2,3,3]",
    );
    let ceiled = [
        kernel.clone(),
        ("strides", ints(&[2, 2])),
        ("ceil_mode", int(1)),
    ];
    check("MaxPool", &ceiled, "f32[1,2,8,8]", "f32[1,2,4,4]");
    let dilated = [kernel.clone(), ("dilations", ints(&[2, 2]))];
    check("AveragePool", &dilated, "f16[1,2,8,8]", "f16[1,2,4,4]");
    let same = [kernel.clone(), ("auto_pad", text("SAME_LOWER"))];
    check("LpPool", &same, "f32[1,2,8,8]", "f32[1,2,8,8]");
    check("GlobalLpPool", &[], "f32[1,2,8,8]", "f32[1,2,1,1]");
    let unpool = [("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2, 2]))];
    check(
        "MaxUnpool",
        &unpool,
        "f32[1,1,2,2] i64[1,1,2,2]",
        "f32[1,1,4,4]",
    );
    let inputs = "f32[1,1,2,2] i64[1,1,2,2] i64[4]=1,1,5,5";
    check("MaxUnpool", &unpool, inputs, "f32[1,1,5,5]");
    refuse(
        "MaxPool",
        &[],
        "f32[1,2,8,8]",
        "`kernel_shape` [] does not fit input [1, 2, 8, 8]",
    );
    refuse(
        "MaxPool",
        &[kernel, ("auto_pad", text("SOME"))],
        "f32[1,2,8,8]",
        "`auto_pad` is `SOME`",
    );
}

#[test]
fn deformed_and_causal_convolutions() {
    let inputs = "f32[1,1,3,3] f32[1,1,2,2] f32[1,8,2,2]";
    check("DeformConv", &[], inputs, "f32[1,1,2,2]");
    refuse(
        "DeformConv",
        &[],
        "f32[1,1,3,3] f32[1,1,2,2] f32[1,4,2,2]",
        "offsets are [1, 4, 2, 2] in 1 groups, [1, 8, 2, 2] are needed",
    );
    let inputs = "f32[2,3,5] f32[3,1,4] f32[3] f32[2,3,3]";
    check(
        "CausalConvWithState@27",
        &[],
        inputs,
        "f32[2,3,5] f32[2,3,3]",
    );
}

#[test]
fn columns_to_images() {
    let inputs = "f32[1,5,5] i64[2]=5,5 i64[2]=1,5";
    check("Col2Im", &[], inputs, "f32[1,1,5,5]");
    refuse(
        "Col2Im",
        &[],
        "f32[1,5,6] i64[2]=5,5 i64[2]=1,5",
        "columns [1, 5, 6] do not make an image [5, 5] of blocks [1, 5]",
    );
}
