//! Normalisations and elementwise operators.

use super::{check, int, ints, refuse, text};

#[test]
fn normalizations() {
    check(
        "BatchNormalization",
        &[],
        "f32[2,3,4] f32[3] f32[3] f32[3] f32[3]",
        "f32[2,3,4]",
    );
    refuse(
        "BatchNormalization",
        &[("training_mode", int(1))],
        "f32[2,3,4] f32[3] f32[3] f32[3] f32[3]",
        "it is in training mode: export the model for inference",
    );
    check(
        "LayerNormalization",
        &[("axis", int(1))],
        "f16[2,3,4] f16[3,4]",
        "f16[2,3,4] f32[2,1,1] f32[2,1,1]",
    );
    check(
        "InstanceNormalization",
        &[],
        "f32[2,3,4] f32[3] f32[3]",
        "f32[2,3,4]",
    );
    let groups = [("num_groups", int(2))];
    check(
        "GroupNormalization@18",
        &groups,
        "f32[2,4,5] f32[2] f32[2]",
        "f32[2,4,5]",
    );
    check(
        "GroupNormalization@21",
        &groups,
        "f32[2,4,5] f32[4] f32[4]",
        "f32[2,4,5]",
    );
    refuse(
        "GroupNormalization@21",
        &groups,
        "f32[2,3,5] f32[3] f32[3]",
        "input [2, 3, 5] does not split into 2 groups (`num_groups`)",
    );
    check("Softmax@11", &[("axis", int(2))], "f32[2,3]", "f32[2,3]");
    refuse(
        "Softmax",
        &[("axis", int(2))],
        "f32[2,3]",
        "axis 2 is out of range for 2 dimensions",
    );
    refuse("LpNormalization", &[("p", int(3))], "f32[2,3]", "`p` is 3");
    refuse(
        "LRN",
        &[],
        "f32[2,3]",
        "`size` is 0 over the channels of [2, 3]",
    );
    check(
        "MeanVarianceNormalization",
        &[("axes", ints(&[0, -1]))],
        "f32[2,3]",
        "f32[2,3]",
    );
}

#[test]
fn elementwise() {
    check("Add", &[], "u16[2,1] u16[3]", "u16[2,3]");
    check("Pow", &[], "f32[2] i64[2]", "f32[2]");
    check("Less", &[], "i8[2] i8[]", "bool[2]");
    check("Max", &[], "f64[2,1] f64[3] f64[1,1]", "f64[2,3]");
    check("Where", &[], "bool[2,1] i8[3] i8[]", "i8[2,3]");
    check("Cast", &[("to", int(10))], "bool[2]", "f16[2]");
    check("CastLike", &[], "bool[2] u64[9]", "u64[2]");
    check("BitCast@26", &[("to", int(7))], "f64[2]", "i64[2]");
    check("Clip", &[], "u8[2] _ u8[]", "u8[2]");
    check("Mod", &[("fmod", int(1))], "f16[2] f16[2]", "f16[2]");
    check(
        "BitShift",
        &[("direction", text("LEFT"))],
        "u8[2] u8[]",
        "u8[2]",
    );
    check("Dropout@10", &[], "f32[2]", "f32[2] bool[2]");
    check("Dropout@7", &[], "f32[2]", "f32[2] f32[2]");
    check("IsInf", &[], "f32[2]", "bool[2]");
    check("PRelu", &[], "f32[2,3] f32[3]", "f32[2,3]");
}

#[test]
fn what_does_not_fit_element_by_element() {
    refuse(
        "Add",
        &[],
        "f32[2] f32[3]",
        "shapes [2] and [3] do not broadcast",
    );
    refuse(
        "Add",
        &[],
        "f32[2] f64[2]",
        "element types f32 and f64 differ",
    );
    refuse(
        "Add",
        &[],
        "bool[2] bool[2]",
        "input 0 is bool, the operator takes number types",
    );
    refuse(
        "And",
        &[],
        "i8[2] i8[2]",
        "input 0 is i8, the operator takes boolean types",
    );
    refuse(
        "Neg",
        &[],
        "u8[2]",
        "input 0 is u8, the operator takes signed types",
    );
    refuse(
        "BitwiseNot",
        &[],
        "f32[2]",
        "input 0 is f32, the operator takes integer types",
    );
    refuse(
        "Exp",
        &[],
        "i32[2]",
        "input 0 is i32, the operator takes floating-point types",
    );
    refuse("Mod@13", &[], "f32[2] f32[2]", "`fmod` must be 1 for f32");
    refuse("BitShift", &[], "u8[2] u8[2]", "`direction` is ``");
    refuse(
        "Clip",
        &[],
        "f32[2] i64[]",
        "element types f32 and i64 differ",
    );
    refuse("Clip", &[], "f32[2] f32[2]", "bound [2] is no scalar");
    refuse(
        "PRelu",
        &[],
        "f32[3] f32[2,3]",
        "slope [2, 3] does not broadcast to [3]",
    );
    refuse(
        "Cast",
        &[("to", int(8))],
        "f32[2]",
        "element type 8 of its output is not supported",
    );
    refuse(
        "BitCast@26",
        &[("to", int(7))],
        "f32[2]",
        "f32 and i64 differ in size",
    );
    refuse(
        "Dropout@12",
        &[],
        "f32[2] f32[]=0.5 bool[]=1",
        "it is or may be in training mode: export the model for inference",
    );
    refuse("NoSuchOperator", &[], "f32[2]", "no rule");
}
