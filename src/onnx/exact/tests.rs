//! Exact results, and what has none.

use super::evaluate;
use crate::graph::{
    Attribute, DType, Fact, Node, Operand, Shape, Tensor, TensorData, ValueId, f64_to_f16, infer,
};

/// Infers and evaluates an operator on constants.
fn run(op: &str, attributes: &[(&str, Attribute)], inputs: &[&Tensor]) -> Option<Vec<Tensor>> {
    let node = Node {
        name: String::new(),
        op: op.to_owned(),
        domain: String::new(),
        attributes: attributes
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
        inputs: vec![Some(ValueId(0)); inputs.len()],
        outputs: vec![Some(ValueId(0)); if op == "Split" { 2 } else { 1 }],
    };
    let operands: Vec<Option<Operand<'_>>> = inputs
        .iter()
        .map(|tensor| {
            Some(Operand {
                dtype: tensor.dtype(),
                shape: tensor.shape(),
                data: Some(*tensor),
            })
        })
        .collect();
    let facts: Vec<Fact> = infer(&node, 20, &operands).unwrap().unwrap_or_default();
    let inputs: Vec<Option<&Tensor>> = inputs.iter().map(|t| Some(*t)).collect();
    evaluate(&node, &inputs, &facts)
}

#[track_caller]
fn check(op: &str, attributes: &[(&str, Attribute)], inputs: &[&Tensor], expected: &[&Tensor]) {
    let actual = run(op, attributes, inputs).unwrap();
    for (actual, expected) in actual.iter().zip(expected) {
        assert_eq!(actual, *expected, "{op}");
    }
}

fn i64s(data: &[i64]) -> Tensor {
    Tensor::from_i64(data.to_vec())
}

fn f32s(data: &[f32]) -> Tensor {
    Tensor::from_f32(data.to_vec())
}

fn bools(data: &[bool]) -> Tensor {
    of(&[data.len()], TensorData::Bool(data.to_vec()))
}

fn of(dims: &[usize], data: TensorData) -> Tensor {
    Tensor::new(Shape(dims.to_vec()), data).unwrap()
}

fn matrix(rows: usize, data: &[i64]) -> Tensor {
    of(&[rows, data.len() / rows], TensorData::I64(data.to_vec()))
}

#[test]
fn wide_integers_stay_exact() {
    let large = i64s(&[1 << 40, -(1 << 40)]);
    check(
        "Mul",
        &[],
        &[&large, &i64s(&[3])],
        &[&i64s(&[3 << 40, -(3 << 40)])],
    );
    check(
        "Add",
        &[],
        &[&i64s(&[i64::MAX]), &i64s(&[1])],
        &[&i64s(&[i64::MIN])],
    );
    check(
        "Div",
        &[],
        &[&i64s(&[-7, 7]), &i64s(&[2])],
        &[&i64s(&[-3, 3])],
    );
    check(
        "Mod",
        &[],
        &[&i64s(&[-7, 7]), &i64s(&[3, -3])],
        &[&i64s(&[2, -2])],
    );
    let fmod = [("fmod", Attribute::Int(1))];
    check(
        "Mod",
        &fmod,
        &[&i64s(&[-7, 7]), &i64s(&[3, -3])],
        &[&i64s(&[-1, 1])],
    );
    check(
        "Pow",
        &[],
        &[&i64s(&[3, -2]), &f32s(&[40.0, 3.0])],
        &[&i64s(&[12_157_665_459_056_929_024f64 as i64, -8])],
    );
    let unsigned = of(&[1], TensorData::U64(vec![u64::MAX]));
    check(
        "Max",
        &[],
        &[&unsigned, &of(&[1], TensorData::U64(vec![1]))],
        &[&unsigned],
    );
    assert_eq!(run("Div", &[], &[&large, &i64s(&[0])]), None);
    assert_eq!(run("Mod", &[], &[&large, &i64s(&[0])]), None);
}

#[test]
fn floats_are_rounded_once() {
    let third = f32s(&[1.0]);
    check("Div", &[], &[&third, &f32s(&[3.0])], &[&f32s(&[1.0 / 3.0])]);
    check(
        "Round",
        &[],
        &[&f32s(&[0.5, 1.5, -2.5])],
        &[&f32s(&[0.0, 2.0, -2.0])],
    );
    check(
        "Sign",
        &[],
        &[&f32s(&[-2.0, 0.0, 3.0])],
        &[&f32s(&[-1.0, 0.0, 1.0])],
    );
    let double = of(&[1], TensorData::F64(vec![0.1]));
    check(
        "Add",
        &[],
        &[&double, &double],
        &[&of(&[1], TensorData::F64(vec![0.2]))],
    );
}

#[test]
fn casts() {
    let to = |code| [("to", Attribute::Int(code))];
    check(
        "Cast",
        &to(7),
        &[&f32s(&[-1.9, 3.0e9])],
        &[&i64s(&[-1, 3_000_000_000])],
    );
    check(
        "Cast",
        &to(9),
        &[&f32s(&[0.0, -0.5])],
        &[&bools(&[false, true])],
    );
    check(
        "Cast",
        &to(3),
        &[&i64s(&[300])],
        &[&of(&[1], TensorData::I8(vec![44]))],
    );
    let half = of(
        &[2],
        TensorData::F16(vec![f64_to_f16(0.5), f64_to_f16(-2.0)]),
    );
    check("Cast", &to(1), &[&half], &[&f32s(&[0.5, -2.0])]);
    check("Cast", &to(10), &[&f32s(&[0.5, -2.0])], &[&half]);
    let bits = of(&[1], TensorData::F64(vec![1.0]));
    check(
        "BitCast",
        &to(7),
        &[&bits],
        &[&i64s(&[0x3ff0_0000_0000_0000])],
    );
}

#[test]
fn comparisons_and_choices() {
    check(
        "Less",
        &[],
        &[&i64s(&[1, 5]), &i64s(&[3])],
        &[&bools(&[true, false])],
    );
    check(
        "Equal",
        &[],
        &[&bools(&[true, false]), &bools(&[true])],
        &[&bools(&[true, false])],
    );
    check(
        "Where",
        &[],
        &[&bools(&[true, false]), &i64s(&[1]), &i64s(&[2])],
        &[&i64s(&[1, 2])],
    );
    check(
        "Not",
        &[],
        &[&bools(&[true, false])],
        &[&bools(&[false, true])],
    );
    check(
        "Clip",
        &[],
        &[&i64s(&[-5, 9]), &of(&[], TensorData::I64(vec![0]))],
        &[&i64s(&[0, 9])],
    );
    check(
        "IsNaN",
        &[],
        &[&f32s(&[f32::NAN, 1.0])],
        &[&bools(&[true, false])],
    );
}

#[test]
fn shifts_beyond_the_type_leave_the_sign() {
    let right = [("direction", Attribute::String("RIGHT".to_owned()))];
    let left = [("direction", Attribute::String("LEFT".to_owned()))];
    let i8s = |data: &[i8]| of(&[data.len()], TensorData::I8(data.to_vec()));
    check(
        "BitShift",
        &right,
        &[&i8s(&[-8, 4, -8]), &i8s(&[8, 9, 1])],
        &[&i8s(&[-1, 0, -4])],
    );
    check(
        "BitShift",
        &left,
        &[&i8s(&[64, 1]), &i8s(&[1, 8])],
        &[&i8s(&[-128, 0])],
    );
}

#[test]
fn moves() {
    let x = matrix(2, &[0, 1, 2, 3, 4, 5]);
    check("Transpose", &[], &[&x], &[&matrix(3, &[0, 3, 1, 4, 2, 5])]);
    let axis = [("axis", Attribute::Int(1))];
    check(
        "Gather",
        &axis,
        &[&x, &i64s(&[-1, 0])],
        &[&matrix(2, &[2, 0, 5, 3])],
    );
    check(
        "Concat",
        &axis,
        &[&x, &matrix(2, &[8, 9])],
        &[&matrix(2, &[0, 1, 2, 8, 3, 4, 5, 9])],
    );
    let parts = [&matrix(2, &[0, 3]), &matrix(2, &[1, 2, 4, 5])];
    check("Split", &axis, &[&x, &i64s(&[1, 2])], &parts);
    let slice = [
        &x,
        &i64s(&[-1]),
        &i64s(&[i64::MIN]),
        &i64s(&[1]),
        &i64s(&[-2]),
    ];
    check("Slice", &[], &slice, &[&matrix(2, &[2, 0, 5, 3])]);
    check(
        "Tile",
        &[],
        &[&i64s(&[1, 2]), &i64s(&[2])],
        &[&i64s(&[1, 2, 1, 2])],
    );
    check(
        "Expand",
        &[],
        &[&i64s(&[1]), &i64s(&[2, 2])],
        &[&matrix(2, &[1; 4])],
    );
    check(
        "Pad",
        &[],
        &[&i64s(&[7, 8]), &i64s(&[1, -1])],
        &[&i64s(&[0, 7])],
    );
    check("Trilu", &[], &[&x], &[&matrix(2, &[0, 1, 2, 0, 4, 5])]);
    check(
        "Compress",
        &axis,
        &[&x, &bools(&[false, true, true])],
        &[&matrix(2, &[1, 2, 4, 5])],
    );
    let nd = [&x, &matrix(2, &[0, 1, 1, -1]), &i64s(&[10, 11])];
    check("ScatterND", &[], &nd, &[&matrix(2, &[0, 10, 2, 3, 4, 11])]);
    check("GatherND", &[], &nd[..2], &[&i64s(&[1, 5])]);
    let elements = [&x, &matrix(2, &[2, 0]), &matrix(2, &[10, 11])];
    check(
        "ScatterElements",
        &axis,
        &elements,
        &[&matrix(2, &[0, 1, 10, 11, 4, 5])],
    );
    check(
        "GatherElements",
        &axis,
        &elements[..2],
        &[&matrix(2, &[2, 3])],
    );
    assert_eq!(run("Gather", &axis, &[&x, &i64s(&[3])]), None);
    assert_eq!(run("Gather", &axis, &[&x, &i64s(&[i64::MIN])]), None);
}

#[test]
fn reductions() {
    let x = matrix(2, &[0, 1, 2, 3, 4, 5]);
    check(
        "ReduceSum",
        &[],
        &[&x, &i64s(&[1])],
        &[&matrix(2, &[3, 12])],
    );
    check(
        "ReduceMax",
        &[("keepdims", Attribute::Int(0))],
        &[&x, &i64s(&[0])],
        &[&i64s(&[3, 4, 5])],
    );
    check(
        "ReduceProd",
        &[("keepdims", Attribute::Int(0))],
        &[&i64s(&[2, 3, 4])],
        &[&of(&[], TensorData::I64(vec![24]))],
    );
    let nothing = of(&[2, 0], TensorData::F32(vec![]));
    let column = |value| of(&[2, 1], TensorData::F32(vec![value; 2]));
    for (op, value) in [
        ("ReduceSum", 0.0),
        ("ReduceProd", 1.0),
        ("ReduceMax", f32::NEG_INFINITY),
        ("ReduceMin", f32::INFINITY),
        ("ReduceLogSumExp", f32::NEG_INFINITY),
    ] {
        check(op, &[], &[&nothing, &i64s(&[1])], &[&column(value)]);
    }
    let ties = matrix(1, &[1, 3, 3, 2]);
    let axis = ("axis", Attribute::Int(1));
    check(
        "ArgMax",
        std::slice::from_ref(&axis),
        &[&ties],
        &[&matrix(1, &[1])],
    );
    let last = [axis.clone(), ("select_last_index", Attribute::Int(1))];
    check("ArgMax", &last, &[&ties], &[&matrix(1, &[2])]);
    let backwards = [
        ("reverse", Attribute::Int(1)),
        ("exclusive", Attribute::Int(1)),
    ];
    check(
        "CumSum",
        &backwards,
        &[&i64s(&[1, 2, 3]), &of(&[], TensorData::I64(vec![0]))],
        &[&i64s(&[5, 3, 0])],
    );
    let k = i64s(&[2]);
    check(
        "TopK",
        &[axis],
        &[&ties, &k],
        &[&matrix(1, &[3, 3]), &matrix(1, &[1, 2])],
    );
}

#[test]
fn made_values() {
    let scalar = |value| of(&[], TensorData::I64(vec![value]));
    check(
        "Range",
        &[],
        &[&scalar(10), &scalar(3), &scalar(-3)],
        &[&i64s(&[10, 7, 4])],
    );
    check(
        "ConstantOfShape",
        &[],
        &[&i64s(&[2])],
        &[&f32s(&[0.0, 0.0])],
    );
    check(
        "NonZero",
        &[],
        &[&matrix(2, &[1, 0, 0, 4])],
        &[&matrix(2, &[0, 1, 0, 1])],
    );
    check(
        "EyeLike",
        &[("k", Attribute::Int(1))],
        &[&matrix(2, &[9; 6])],
        &[&matrix(2, &[0, 1, 0, 0, 0, 1])],
    );
    check(
        "OneHot",
        &[],
        &[&i64s(&[-1, 0]), &scalar(3), &i64s(&[5, 7])],
        &[&matrix(2, &[5, 5, 7, 7, 5, 5])],
    );
    let unsorted = [("sorted", Attribute::Int(0))];
    let expected = [
        &i64s(&[5, 2, 9]),
        &i64s(&[0, 1, 3]),
        &i64s(&[0, 1, 0, 2, 1]),
        &i64s(&[2, 2, 1]),
    ];
    check("Unique", &unsorted, &[&i64s(&[5, 2, 5, 9, 2])], &expected);
}

#[test]
fn quantisation_rounds_half_to_even_and_saturates() {
    let scale = of(&[], TensorData::F32(vec![2.0]));
    let zero = of(&[], TensorData::U8(vec![128]));
    let x = f32s(&[1.0, 3.0, -300.0, 1000.0]);
    let q = of(&[4], TensorData::U8(vec![128, 130, 0, 255]));
    check("QuantizeLinear", &[], &[&x, &scale, &zero], &[&q]);
    let back = f32s(&[0.0, 4.0, -256.0, 254.0]);
    check("DequantizeLinear", &[], &[&q, &scale, &zero], &[&back]);
    assert_eq!(
        run("QuantizeLinear", &[], &[&f32s(&[f32::NAN]), &scale, &zero]),
        None
    );
}

#[test]
fn types_keep_their_names() {
    let halves = of(&[2], TensorData::F16(vec![1, 2]));
    let swapped = run("Gather", &[], &[&halves, &i64s(&[1, 0])]).unwrap();
    assert_eq!(swapped[0].dtype(), DType::F16);
    assert_eq!(*swapped[0].data(), TensorData::F16(vec![2, 1]));
}
