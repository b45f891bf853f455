//! Products, recurrent cells, attention.

use super::{check, int, refuse, text};

#[test]
fn products() {
    check("MatMul", &[], "f64[3] f64[5,3,2]", "f64[5,2]");
    check("MatMul", &[], "i32[2,1,4,3] i32[5,3,2]", "i32[2,5,4,2]");
    check("MatMul", &[], "f32[3] f32[3]", "f32[]");
    check("MatMulInteger", &[], "u8[4,3] i8[3,2]", "i32[4,2]");
    let inputs = "u8[2,4] f32[] u8[] i8[4,3] f32[] i8[] f32[] i8[]";
    check("QLinearMatMul", &[], inputs, "i8[2,3]");
    let transposed = [("transA", int(1)), ("transB", int(1))];
    check("Gemm", &transposed, "f32[3,2] f32[4,3] f32[4]", "f32[2,4]");
    refuse(
        "MatMul",
        &[],
        "f32[2,3] f32[2,3]",
        "[2, 3] and [2, 3] do not multiply",
    );
    refuse(
        "Gemm",
        &[],
        "f32[2,3] f32[3,4] f32[3]",
        "shapes [3] and [2, 4] do not broadcast",
    );
    check("Det", &[], "f32[5,3,3]", "f32[5]");
}

#[test]
fn sums_over_named_axes() {
    let of = |equation: &str| [("equation", text(equation))];
    check("Einsum", &of("...ii ->...i"), "f64[3,5,5]", "f64[3,5]");
    check(
        "Einsum",
        &of("b...i,ij->...bj"),
        "f32[2,7,3] f32[3,4]",
        "f32[7,2,4]",
    );
    check(
        "Einsum",
        &of("...i,...i"),
        "f32[2,1,3] f32[4,3]",
        "f32[2,4]",
    );
    check("Einsum", &of("ba,ca"), "f32[2,3] f32[4,3]", "f32[2,4]");
    check("Einsum", &of("->"), "f32[]", "f32[]");
    refuse(
        "Einsum",
        &of("ij->ijk"),
        "f32[2,3]",
        "axis `k` is in no term",
    );
    refuse(
        "Einsum",
        &of("i->ii"),
        "f32[2]",
        "`ii` names axis `i` twice",
    );
    refuse(
        "Einsum",
        &of("i.j->i"),
        "f32[2,3]",
        "`i.j` is no list of axes",
    );
    refuse(
        "Einsum",
        &of("ij,jk"),
        "f32[2,3] f32[2,3]",
        "axis `j` is 3 and 2",
    );
}

#[test]
fn recurrent_cells() {
    let both = [
        ("direction", text("bidirectional")),
        ("hidden_size", int(5)),
    ];
    let weights = "f32[6,2,3] f32[2,20,3] f32[2,20,5]";
    check("LSTM", &both, weights, "f32[6,2,2,5] f32[2,2,5] f32[2,2,5]");
    let first = [("layout", int(1))];
    check(
        "GRU",
        &first,
        "f32[2,6,3] f32[1,15,3] f32[1,15,5] f32[1,30] _ f32[2,1,5]",
        "f32[2,6,1,5] f32[2,1,5]",
    );
    refuse(
        "LSTM",
        &[],
        weights,
        "weights [2, 20, 3] are for 2 directions, not 1",
    );
    refuse(
        "RNN",
        &[("hidden_size", int(4))],
        "f32[6,2,3] f32[1,5,3] f32[1,5,5]",
        "`hidden_size` is not 5, as the recurrence [1, 5, 5] is",
    );
    refuse(
        "RNN",
        &[],
        "f32[6,2,3] f32[1,5,3] f32[1,5,5] f32[1,5]",
        "the bias is [1, 5], it must be [1, 10]",
    );
}

#[test]
fn attention() {
    check(
        "Attention@24",
        &[],
        "f16[2,6,4,8] f16[2,3,5,8] f16[2,3,5,10] _ f16[2,3,7,8] f16[2,3,7,10]",
        "f16[2,6,4,10] f16[2,3,12,8] f16[2,3,12,10] f16[2,6,4,12]",
    );
    let heads = [("q_num_heads", int(3)), ("kv_num_heads", int(3))];
    check(
        "Attention@23",
        &heads,
        "f32[2,4,24] f32[2,6,24] f32[2,6,30]",
        "f32[2,4,30]",
    );
    refuse(
        "Attention@23",
        &[],
        "f32[2,4,24] f32[2,6,24] f32[2,6,24]",
        "input 0 of width 24 does not split into 0 heads (`q_num_heads`)",
    );
    check(
        "RotaryEmbedding@23",
        &[],
        "f32[2,3,4,8] f32[9,4] f32[9,4] i64[2,4]",
        "f32[2,3,4,8]",
    );
    refuse(
        "RotaryEmbedding@23",
        &[],
        "f32[2,3,4,8] f32[9,8] f32[9,8] i64[2,4]",
        "input 1 is [9, 8], 2 dimensions that end in 4 are needed",
    );
}
