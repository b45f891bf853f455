//! Slices, gathers, scatters, reductions.

use super::{check, int, ints, refuse, text};

#[test]
fn slices() {
    let inputs = "f32[9,7] i64[2]=-1,1 i64[2]=-9223372036854775807,100 i64[2]=0,-1 i64[2]=-2,3";
    check("Slice", &[], inputs, "f32[5,2]");
    check("Slice", &[], "bool[5] i32[1]=7 i32[1]=9", "bool[0]");
    let old = [
        ("starts", ints(&[1])),
        ("ends", ints(&[-1])),
        ("axes", ints(&[1])),
    ];
    check("Slice@9", &old, "u8[4,5]", "u8[4,3]");
    refuse(
        "Slice",
        &[],
        "f32[9] i64[1]=0 i64[1]=9 i64[1]=0 i64[1]=0",
        "a slice has step 0",
    );
    refuse(
        "Slice",
        &[],
        "f32[9] i64[1] i64[1]=9",
        "its output shape depends on the elements of input 1, which is not a constant",
    );
}

#[test]
fn gathers_and_scatters() {
    check(
        "Gather",
        &[("axis", int(-1))],
        "u16[2,3] i32[4,1]",
        "u16[2,4,1]",
    );
    refuse("Gather", &[], "f32[2,3] f32[4]", "indices are f32");
    check(
        "GatherElements",
        &[("axis", int(1))],
        "f32[2,3] i64[2,9]",
        "f32[2,9]",
    );
    refuse(
        "GatherElements",
        &[("axis", int(1))],
        "f32[2,3] i64[3,3]",
        "indices [3, 3] do not fit data [2, 3]",
    );
    check(
        "GatherND",
        &[("batch_dims", int(1))],
        "f32[2,3,4] i64[2,1]",
        "f32[2,4]",
    );
    refuse(
        "GatherND",
        &[("batch_dims", int(1))],
        "f32[2,3,4] i64[3,1]",
        "indices [3, 1] do not fit data [2, 3, 4]",
    );
    check("ScatterND", &[], "f32[4,5] i64[3,1] f32[3,5]", "f32[4,5]");
    refuse(
        "ScatterND",
        &[],
        "f32[4,5] i64[3,1] f32[3]",
        "the update is [3], it must be [3, 5]",
    );
    check(
        "ScatterElements",
        &[("reduction", text("max"))],
        "i8[4] i64[2] i8[2]",
        "i8[4]",
    );
    refuse(
        "ScatterElements",
        &[("reduction", text("sum"))],
        "i8[4] i64[2] i8[2]",
        "`reduction` is `sum`",
    );
    check(
        "TensorScatter@24",
        &[],
        "f32[2,3,9,4] f32[2,3,1,4] i64[2]",
        "f32[2,3,9,4]",
    );
}

#[test]
fn reductions() {
    check("ReduceSum", &[], "i64[2,3,4] i64[2]=0,-1", "i64[1,3,1]");
    check(
        "ReduceL1@13",
        &[("axes", ints(&[1])), ("keepdims", int(0))],
        "f32[2,3]",
        "f32[2]",
    );
    check("ReduceMax", &[], "u8[2,3]", "u8[1,1]");
    check(
        "ReduceMin",
        &[("noop_with_empty_axes", int(1))],
        "f32[2,3]",
        "f32[2,3]",
    );
    check(
        "ReduceProd",
        &[("noop_with_empty_axes", int(1))],
        "f32[2,3] i64[0]=",
        "f32[2,3]",
    );
    refuse(
        "ReduceMean",
        &[],
        "f32[2,3] i64[2]=0,-2",
        "axes [0, -2] name one axis twice",
    );
    check(
        "ArgMin",
        &[("axis", int(-1)), ("keepdims", int(0))],
        "f16[2,3]",
        "i64[2]",
    );
    refuse("ArgMax", &[], "f32[0,3]", "axis 0 of [0, 3] is empty");
    check("CumSum", &[], "i32[2,3] i64[]=1", "i32[2,3]");
    refuse(
        "CumSum",
        &[],
        "i32[2,3] i64[]=2",
        "axis 2 is out of range for 2 dimensions",
    );
}

#[test]
fn selections() {
    check("TopK", &[], "f32[2,5] i64[1]=3", "f32[2,3] i64[2,3]");
    refuse(
        "TopK",
        &[],
        "f32[2,5] i64[1]=6",
        "the 6 largest of 5 along axis 1",
    );
    check("NonZero", &[], "f32[2,2]=1,0,-0.0,3", "i64[2,2]");
    check(
        "Compress",
        &[("axis", int(1))],
        "f32[2,3] bool[2]=0,1",
        "f32[2,1]",
    );
    check("Compress", &[], "f32[2,3] bool[4]=0,1,1,1", "f32[3]");
    for (op, inputs, idx) in [
        ("NonZero", "f32[2]", 0),
        ("Unique", "f32[2]", 0),
        ("NonMaxSuppression", "f32[1,6,4] f32[1,1,6]", 1),
    ] {
        let expected = format!(
            "its output shape depends on the elements of input {idx}, which is not a constant"
        );
        refuse(op, &[], inputs, &expected);
    }
}
