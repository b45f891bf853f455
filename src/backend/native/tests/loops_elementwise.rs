//! Operators of one element at a time.

use super::node::{NodeTest, f32s, i64s, tensor};
use crate::graph::{Attribute, TensorData};

#[test]
fn operands_broadcast_in_every_direction() {
    NodeTest::new("Sub")
        .input(f32s(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0]))
        .input(f32s(&[3, 1], &[10.0, 20.0, 30.0]))
        .gives(
            0.0,
            &[f32s(
                &[2, 3, 2],
                &[
                    -9.0, -8.0, -19.0, -18.0, -29.0, -28.0, -7.0, -6.0, -17.0, -16.0, -27.0, -26.0,
                ],
            )],
        );
}

#[test]
fn integers_wrap_and_round_as_the_specification_says() {
    let numbers = |data: &[i8]| tensor(&[data.len()], TensorData::I8(data.to_vec()));
    NodeTest::new("Mod")
        .input(numbers(&[-7, 7, -7, 7, 5]))
        .input(numbers(&[3, -3, -3, 3, 5]))
        .gives(0.0, &[numbers(&[2, -2, -1, 1, 0])]);
    NodeTest::new("Mod")
        .attribute("fmod", Attribute::Int(1))
        .input(numbers(&[-7, 7]))
        .input(numbers(&[3, -3]))
        .gives(0.0, &[numbers(&[-1, 1])]);
    NodeTest::new("Add")
        .input(numbers(&[127, -128]))
        .input(numbers(&[1, -1]))
        .gives(0.0, &[numbers(&[-128, 127])]);
    NodeTest::new("Pow")
        .input(i64s(&[3], &[2, -3, 5]))
        .constant(i64s(&[1], &[3]))
        .gives(0.0, &[i64s(&[3], &[8, -27, 125])]);
}

#[test]
fn halves_are_rounded_to_nearest_even_in_and_out_of_range() {
    // 1 + 2⁻¹¹ is a tie, 65520 overflows, 2⁻²⁵ is a tie with zero, 3·2⁻²⁵ rounds up to 2⁻²³.
    let x = [
        1.000_488_3,
        65519.0,
        65520.0,
        2f32.powi(-25),
        3.0 * 2f32.powi(-25),
        -0.1,
    ];
    NodeTest::new("Cast")
        .attribute("to", Attribute::Int(10))
        .input(f32s(&[6], &x))
        .gives(
            0.0,
            &[tensor(
                &[6],
                TensorData::F16(vec![0x3c00, 0x7bff, 0x7c00, 0, 2, 0xae66]),
            )],
        );
    NodeTest::new("Cast")
        .attribute("to", Attribute::Int(1))
        .input(tensor(
            &[4],
            TensorData::F16(vec![0x3c00, 0x0001, 0xfc00, 0xae66]),
        ))
        .gives(
            0.0,
            &[f32s(
                &[4],
                &[1.0, 5.960_464_5e-8, f32::NEG_INFINITY, -0.099_975_586],
            )],
        );
}

#[test]
fn comparisons_and_logic_give_booleans() {
    let booleans = |data: &[bool]| tensor(&[data.len()], TensorData::Bool(data.to_vec()));
    NodeTest::new("LessOrEqual")
        .input(f32s(&[3], &[1.0, f32::NAN, 3.0]))
        .constant(f32s(&[], &[1.0]))
        .gives(0.0, &[booleans(&[true, false, false])]);
    NodeTest::new("Xor")
        .input(booleans(&[true, true, false]))
        .input(booleans(&[true, false, false]))
        .gives(0.0, &[booleans(&[false, true, false])]);
    NodeTest::new("Where")
        .input(booleans(&[true, false, true]))
        .input(i64s(&[3], &[1, 2, 3]))
        .constant(i64s(&[], &[-1]))
        .gives(0.0, &[i64s(&[3], &[1, -1, 3])]);
}

#[test]
fn functions_of_the_c_library_are_exact_to_a_few_units() {
    let x = [-3.0f32, -0.5, 0.0, 0.25, 2.0];
    let expected: Vec<f32> = x.iter().map(|v| v.sin()).collect();
    NodeTest::new("Sin")
        .input(f32s(&[5], &x))
        .gives(1e-6, &[f32s(&[5], &expected)]);
    let expected: Vec<f32> = x.iter().map(|v| (1.0 + v.exp()).ln()).collect();
    NodeTest::new("Softplus")
        .input(f32s(&[5], &x))
        .gives(1e-6, &[f32s(&[5], &expected)]);
    NodeTest::new("Round")
        .input(f32s(&[4], &[0.5, 1.5, -2.5, 2.4]))
        .gives(0.0, &[f32s(&[4], &[0.0, 2.0, -2.0, 2.0])]);
    NodeTest::new("Clip")
        .input(i64s(&[3], &[-5, 0, 5]))
        .constant(i64s(&[], &[-1]))
        .constant(i64s(&[], &[3]))
        .gives(0.0, &[i64s(&[3], &[-1, 0, 3])]);
}

#[test]
fn vectors_along_the_last_axis_agree_with_single_elements() {
    // 37 is no multiple of any vector's lanes, and longer than every one of them.
    let x: Vec<f32> = (0..2 * 37).map(|i| i as f32 * 0.11 - 4.0).collect();
    let row: Vec<f32> = (0..37).map(|i| 2.0 - i as f32 * 0.1).collect();
    let column = [0.5, -1.5];
    let expected = |f: &dyn Fn(usize, usize) -> f32| {
        let numbers = (0..2).flat_map(|r| (0..37).map(move |c| f(r, c)));
        f32s(&[2, 37], &numbers.collect::<Vec<_>>())
    };
    NodeTest::new("Mul")
        .input(f32s(&[2, 37], &x))
        .constant(f32s(&[37], &row))
        .gives(0.0, &[expected(&|r, c| x[r * 37 + c] * row[c])]);
    NodeTest::new("Max")
        .input(f32s(&[2, 37], &x))
        .input(f32s(&[2, 1], &column))
        .gives(0.0, &[expected(&|r, c| x[r * 37 + c].max(column[r]))]);
    let one = |op: &str, f: &dyn Fn(f32) -> f32| {
        NodeTest::new(op)
            .input(f32s(&[2, 37], &x))
            .gives(1e-6, &[expected(&|r, c| f(x[r * 37 + c]))]);
    };
    one("Sigmoid", &|v| 1.0 / (1.0 + (-v).exp()));
    one("Tanh", &|v| v.tanh());
    one("Elu", &|v| if v < 0.0 { v.exp_m1() } else { v });
    one("Abs", &|v| v.abs());
    one("HardSwish", &|v| v * (v / 6.0 + 0.5).clamp(0.0, 1.0));
}
