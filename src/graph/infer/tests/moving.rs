//! Operators that move, repeat, resize or make elements.

use super::{check, int, ints, refuse, text};
use crate::graph::{Attribute, Shape, Tensor, TensorData};

#[test]
fn reshapes() {
    check("Reshape", &[], "f32[2,3,4] i64[3]=0,-1,2", "f32[2,6,2]");
    check("Reshape", &[], "f32[1] i64[0]=", "f32[]");
    check(
        "Reshape",
        &[("allowzero", int(1))],
        "f32[0,3] i64[2]=3,0",
        "f32[3,0]",
    );
    refuse(
        "Reshape",
        &[],
        "f32[2,3] i64[2]=-1,4",
        "[2, 3] does not reshape to [-1, 4]",
    );
    refuse(
        "Reshape",
        &[],
        "f32[2,3] i64[2]=9223372036854775807,9223372036854775807",
        "[2, 3] does not reshape to [9223372036854775807, 9223372036854775807]",
    );
    refuse("Reshape", &[], "f32[2,3]", "input 1 is missing");
    check("Flatten", &[("axis", int(0))], "f32[2,3]", "f32[1,6]");
    check(
        "Squeeze@11",
        &[("axes", ints(&[-3]))],
        "f32[1,3,1]",
        "f32[3,1]",
    );
    check("Squeeze", &[], "f32[1,3,1]", "f32[3]");
    check("Unsqueeze", &[], "f32[3] i64[2]=0,-1", "f32[1,3,1]");
    refuse(
        "Squeeze",
        &[],
        "f32[2,3] i64[1]=0",
        "axis 0 of [2, 3] is not 1",
    );
    refuse("Unsqueeze", &[], "f32[2]", "input 1 is missing");
    refuse(
        "Transpose",
        &[("perm", ints(&[0, 0]))],
        "f32[2,3]",
        "axes [0, 0] name one axis twice",
    );
}

#[test]
fn splits_and_joins() {
    check("Split@13", &[], "f32[2,6] i64[2]=1,1", "f32[1,6] f32[1,6]");
    check(
        "Split",
        &[("num_outputs", int(3)), ("axis", int(1))],
        "f32[2,7]",
        "f32[2,3] f32[2,3] f32[2,1]",
    );
    check(
        "Split",
        &[("num_outputs", int(4))],
        "f32[5]",
        "f32[2] f32[2] f32[1] f32[0]",
    );
    check(
        "Split@11",
        &[("split", ints(&[2, 0]))],
        "f32[2]",
        "f32[2] f32[0]",
    );
    refuse(
        "Split",
        &[("num_outputs", int(2))],
        "f32[4]",
        "axis 0 of [4] does not split into 2 parts for 1 outputs",
    );
    refuse(
        "Concat",
        &[("axis", int(0))],
        "f32[2] i32[2]",
        "f32 [2] and i32 [2] do not concatenate along axis 0",
    );
    check(
        "Concat",
        &[("axis", int(-1))],
        "f32[2,3] f32[2,0]",
        "f32[2,3]",
    );
}

#[test]
fn repeats_and_pads() {
    check("Expand", &[], "f32[3,1] i64[3]=2,1,6", "f32[2,3,6]");
    check("Tile", &[], "f32[3,1] i64[2]=2,5", "f32[6,5]");
    refuse("Tile", &[], "f32[3,1] i64[1]=2", "repeats [2] for [3, 1]");
    refuse(
        "Tile",
        &[],
        "f32[3] i64[1]=-2",
        "a dimension comes out as -2",
    );
    check("Pad", &[], "f32[2,3] i64[4]=0,1,0,-2 f32[]", "f32[2,2]");
    check(
        "Pad",
        &[("mode", text("reflect"))],
        "f32[2,3] i64[2]=2,1 _ i64[1]=-1",
        "f32[2,6]",
    );
    check("Pad@2", &[("pads", ints(&[1, 1]))], "f32[3]", "f32[5]");
    refuse(
        "Pad",
        &[("mode", text("reflect"))],
        "f32[3] i64[2]=3,0",
        "axis 0 of [3] is too short to be reflected by [3, 0]",
    );
    refuse(
        "Pad",
        &[("mode", text("mirror"))],
        "f32[3] i64[2]=3,0",
        "`mode` is `mirror`",
    );
    refuse(
        "Pad",
        &[],
        "f32[3] i64[2]=-2,-2",
        "a dimension comes out as -1",
    );
    check(
        "CenterCropPad",
        &[("axes", ints(&[-1]))],
        "f32[4,5] i64[1]=9",
        "f32[4,9]",
    );
    check("Trilu", &[], "bool[2,3,4]", "bool[2,3,4]");
    check(
        "DepthToSpace",
        &[("blocksize", int(2))],
        "i8[1,8,2,3]",
        "i8[1,2,4,6]",
    );
    refuse(
        "SpaceToDepth",
        &[("blocksize", int(2))],
        "i8[1,8,2,3]",
        "[1, 8, 2, 3] does not fold into 2×2 blocks",
    );
    check(
        "ReverseSequence",
        &[("time_axis", int(1)), ("batch_axis", int(0))],
        "f32[4,2] i64[4]",
        "f32[4,2]",
    );
    refuse(
        "ReverseSequence",
        &[],
        "f32[4,2] i64[4]",
        "the list of lengths is [4], it must be [2]",
    );
}

#[test]
fn resizes() {
    check(
        "Resize",
        &[],
        "f32[1,1,2,4] _ f32[4]=1,1,0.6,0.6",
        "f32[1,1,1,2]",
    );
    check(
        "Resize",
        &[("axes", ints(&[3, 2]))],
        "f32[1,1,2,4] _ _ i64[2]=7,8",
        "f32[1,1,8,7]",
    );
    let policy = |name: &str| {
        [
            ("axes", ints(&[2, 3])),
            ("keep_aspect_ratio_policy", text(name)),
        ]
    };
    check(
        "Resize",
        &policy("not_larger"),
        "f32[1,1,2,4] _ _ i64[2]=7,8",
        "f32[1,1,4,8]",
    );
    check(
        "Resize",
        &policy("not_smaller"),
        "f32[1,1,2,4] _ _ i64[2]=7,8",
        "f32[1,1,7,14]",
    );
    check("Resize@10", &[], "f32[2,4] f32[2]=2,3", "f32[4,12]");
    let attribute = [("scales", Attribute::Floats(vec![1.5, 1.0]))];
    check("Upsample@7", &attribute, "f32[2,4]", "f32[3,4]");
    refuse(
        "Resize",
        &[],
        "f32[2,4] _ f32[2]=0,1",
        "scales [0.0, 1.0] for 2 axes",
    );
    refuse(
        "Resize",
        &[("mode", text("area"))],
        "f32[2] _ f32[1]=1",
        "`mode` is `area`",
    );
    refuse(
        "Resize",
        &policy("big"),
        "f32[1,1,2,4] _ _ i64[2]=7,8",
        "`keep_aspect_ratio_policy` is `big`",
    );
}

#[test]
fn values_from_nothing() {
    check("Range", &[], "i64[]=10 i64[]=3 i64[]=-2", "i64[4]");
    check("Range", &[], "f32[]=1 f32[]=2 f32[]=0.3", "f32[4]");
    refuse(
        "Range",
        &[],
        "i64[]=0 i64[]=3 i64[]=0",
        "a range from 0 to 3 by 0",
    );
    refuse(
        "Range",
        &[],
        "i64[]=0 f32[]=3 i64[]=1",
        "element types i64 and f32 differ",
    );
    let value = Tensor::new(Shape(vec![1]), TensorData::Bool(vec![true])).unwrap();
    check(
        "ConstantOfShape",
        &[("value", Attribute::Tensor(value))],
        "i64[2]=2,0",
        "bool[2,0]",
    );
    check("EyeLike", &[("dtype", int(11))], "i32[2,3]", "f64[2,3]");
    check(
        "OneHot",
        &[("axis", int(0))],
        "i64[2,3] f32[1]=5 f16[2]",
        "f16[5,2,3]",
    );
    refuse(
        "OneHot",
        &[],
        "i64[2] i64[]=-5 f32[2]",
        "a dimension comes out as -5",
    );
    check("HannWindow", &[], "i32[]=10", "f32[10]");
    check(
        "MelWeightMatrix",
        &[],
        "i64[]=8 i64[]=16 i64[]=8192 f32[] f32[]",
        "f32[9,8]",
    );
}
