//! Quantised operators.

use super::{check, int, refuse};

#[test]
fn to_integers_and_back() {
    check("QuantizeLinear", &[], "f32[2,3] f32[] i8[]", "i8[2,3]");
    check("QuantizeLinear", &[], "f32[2,3] f32[3]", "u8[2,3]");
    check(
        "QuantizeLinear@21",
        &[("output_dtype", int(5))],
        "f32[2,3] f32[]",
        "i16[2,3]",
    );
    check(
        "DequantizeLinear",
        &[("axis", int(0))],
        "i8[2,3] f16[2] i8[2]",
        "f16[2,3]",
    );
    let blocks = [("block_size", int(2)), ("axis", int(1))];
    check(
        "DequantizeLinear@21",
        &blocks,
        "u8[2,5] f32[2,3]",
        "f32[2,5]",
    );
    check(
        "DynamicQuantizeLinear",
        &[],
        "f32[2,3]",
        "u8[2,3] f32[] u8[]",
    );
}

#[test]
fn scales_and_zero_points_that_do_not_fit() {
    refuse(
        "QuantizeLinear",
        &[],
        "f32[2] f32[]=0 u8[]",
        "input 1 holds the scale 0",
    );
    refuse(
        "QuantizeLinear",
        &[],
        "f32[2] f32[]=nan u8[]",
        "input 1 holds the scale NaN",
    );
    refuse(
        "DequantizeLinear",
        &[],
        "i8[2] f32[]=-1 i8[]",
        "input 1 holds the scale -1",
    );
    refuse(
        "DequantizeLinear",
        &[],
        "i8[2] f32[] u8[]",
        "element types i8 and u8 differ",
    );
    refuse(
        "QuantizeLinear@21",
        &[("output_dtype", int(3))],
        "f32[2] f32[] u8[]",
        "`output_dtype` is i8, the zero point is u8",
    );
    refuse(
        "QuantizeLinear",
        &[],
        "f32[2] f32[] i32[]",
        "it quantises to i32",
    );
    refuse(
        "QuantizeLinear",
        &[],
        "f32[2,3] f32[2] u8[2]",
        "scale [2] does not fit axis 1 of [2, 3] in blocks of 0",
    );
    refuse(
        "QuantizeLinear",
        &[],
        "f32[2,3] f32[3] u8[]",
        "scale [3] and zero point [] differ in shape",
    );
    refuse(
        "QLinearMatMul",
        &[],
        "u8[2,4] f32[] i8[] i8[4,3] f32[] i8[] f32[] i8[]",
        "input 0 is u8, its zero point is i8",
    );
    refuse(
        "QLinearMatMul",
        &[],
        "u8[2,4] f32[] u8[] i8[4,3] f32[] i8[] f32[]=0 i8[]",
        "input 6 holds the scale 0",
    );
}
