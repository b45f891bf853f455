use std::path::Path;
use std::time::Instant;

use proptest::prelude::*;
use safetensors::tensor::{Dtype, TensorView, serialize};

use super::buffer::Buffer;
use super::check::{ONE_STEP, Slack, distance, for_each};
use super::clock::{Counter, thread_cpu_ns, ticks};
use super::reference::{Reference, Values, element};
use super::serve;
use super::slot::end;
use crate::backend::View;
use crate::fsx;
use crate::graph::DType;
use crate::label::Outcome;
use crate::measure::protocol::Response;

fn answers(lines: &[&str]) -> Vec<Response> {
    let mut output = Vec::new();
    let requests = lines.iter().map(|&line| Ok(line.to_owned()));
    serve(requests, &mut output, Vec::new()).unwrap();
    let text = String::from_utf8(output).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn serve_answers_each_line_and_stops_at_exit() {
    let profile = r#"{"request":"profile","slot":3,"warmup":1,"repeats":1,"give_up_ns":null}"#;
    let exit = r#"{"request":"exit"}"#;
    let answers = answers(&["nonsense", profile, "{}", exit, profile]);
    assert_eq!(answers.len(), 3);
    for (answer, text) in answers
        .iter()
        .zip(["not a request", "slot 3", "not a request"])
    {
        let Response::Failed { outcome, message } = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(*outcome, Outcome::DeviceLost);
        assert!(message.contains(text), "{message}");
    }
}

#[test]
fn buffers_are_zeroed_aligned_and_as_long_as_asked() {
    for n_bytes in [0, 1, 64, 5000] {
        let mut buffer = Buffer::zeroed(n_bytes).unwrap();
        assert_eq!(buffer.bytes(), vec![0; n_bytes]);
        assert_eq!(buffer.f32s().len(), n_bytes / 4);
        assert_eq!(buffer.as_ptr() as usize % 4096, 0);
        buffer.bytes_mut().fill(7);
    }
    assert_eq!(Buffer::copy_of(b"abc").unwrap().bytes(), b"abc");
    let refusal = Buffer::zeroed(usize::MAX).unwrap_err();
    assert_eq!(refusal.outcome, Outcome::OutOfMemory);
}

#[test]
fn the_counter_agrees_with_the_clock() {
    let counter = Counter::calibrated();
    let (outer, start_cpu_ns) = (Instant::now(), thread_cpu_ns());
    let start_ticks = ticks();
    let inner = Instant::now();
    while inner.elapsed().as_millis() < 30 {
        std::hint::spin_loop();
    }
    let inner_ns = inner.elapsed().as_nanos() as f64;
    let ns = counter.ns_between(start_ticks, ticks()) as f64;
    let cpu_ns = (thread_cpu_ns() - start_cpu_ns) as f64;
    let outer_ns = outer.elapsed().as_nanos() as f64;
    assert!(cpu_ns > 0.0 && cpu_ns < 1.01 * outer_ns);
    if cfg!(target_arch = "x86_64") {
        let is_between = 0.99 * inner_ns < ns && ns < 1.01 * outer_ns;
        assert!(is_between, "{inner_ns} {ns} {outer_ns}");
    }
    assert_eq!(counter.ns_between(10, 5), 0);
}

#[test]
fn a_reference_is_known_by_path_size_and_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("reference.safetensors");
    let bytes = 1.5_f32.to_le_bytes();
    let view = TensorView::new(Dtype::F32, vec![1], &bytes).unwrap();
    fsx::replace(&path, &serialize([("v", view)], None).unwrap()).unwrap();
    let reference = Reference::read(&path).unwrap();
    assert!(reference.is_of(&path) && !reference.is_of(Path::new("other")));
    let tensors = reference.tensors().unwrap();
    let values = tensors.get("v", 1).unwrap();
    assert!((element(values.dtype, values.bytes, 0) - 1.5).abs() < 1e-12);
    let message = tensors.get("v", 2).unwrap_err().message;
    assert!(
        message.contains("`v`") && message.contains("expected 2"),
        "{message}"
    );
    fsx::replace(
        &path,
        b"longer than what was there before, and something else",
    )
    .unwrap();
    assert!(!reference.is_of(&path));
    assert!(Reference::read(&path).is_err());
}

#[test]
fn elements_of_all_number_types_are_read() {
    let two = |dtype, bytes: &[u8]| [element(dtype, bytes, 0), element(dtype, bytes, 1)];
    let i64s: Vec<u8> = [-3_i64, 4].iter().flat_map(|v| v.to_le_bytes()).collect();
    let f64s: Vec<u8> = [-3_f64, 4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let i16s: Vec<u8> = [-3_i16, 4].iter().flat_map(|v| v.to_le_bytes()).collect();
    for (dtype, bytes) in [
        (DType::I64, i64s),
        (DType::F64, f64s),
        (DType::I16, i16s),
        (DType::I8, vec![253, 4]),
    ] {
        let expected = [-3.0, 4.0];
        let actual = two(dtype, &bytes);
        assert!(
            actual
                .iter()
                .zip(expected)
                .all(|(a, e)| (a - e).abs() < 1e-12)
        );
    }
    let halves = two(DType::F16, &[0x00, 0x3c, 0x01, 0x80]).map(f64::to_bits);
    assert_eq!(halves, [1.0, -(2f64.powi(-24))].map(f64::to_bits));
}

/// Views of small blocked tensors, packed or with room between rows, blocks and batches.
fn views() -> impl Strategy<Value = View> {
    let dims = (1..3_usize, 1..9_usize, 1..4_usize, 1..4_usize);
    (dims, 1..5_usize, 0..3_usize, 0..3_usize, 0..9_usize).prop_map(
        |((n, c, h, w), block, row_gap, block_gap, offset)| {
            let row_stride = w * block + row_gap;
            let block_stride = h * row_stride + block_gap;
            View {
                offset,
                dims: [n, c, h, w],
                block,
                n_stride: c.div_ceil(block) * block_stride,
                block_stride,
                row_stride,
            }
        },
    )
}

proptest! {
    #[test]
    fn the_end_of_a_view_is_behind_its_last_element(view in views()) {
        let mut last = 0;
        for_each(&view, |_, at| last = last.max(at));
        prop_assert_eq!(end(&view), Some(last + 1));
    }

    #[test]
    fn the_distance_sees_what_is_in_the_view_and_nothing_else(view in views(), scale in 1.01_f32..2.0) {
        let n: usize = view.dims.iter().product();
        let expected: Vec<f32> = (0..n).map(|idx| idx as f32 + 1.0).collect();
        let bytes: Vec<u8> = expected.iter().flat_map(|value| value.to_le_bytes()).collect();
        let reference = Values { dtype: DType::F32, bytes: &bytes };
        let mut buffer = Buffer::zeroed(4 * end(&view).unwrap()).unwrap();
        buffer.f32s_mut().fill(f32::NAN);
        let [_, n_channels, n_rows, n_columns] = view.dims;
        for (idx, value) in expected.iter().enumerate() {
            let (w, rest) = (idx % n_columns, idx / n_columns);
            let (h, rest) = (rest % n_rows, rest / n_rows);
            let at = view.index(rest / n_channels, rest % n_channels, h, w);
            buffer.f32s_mut()[at] = *value;
        }
        prop_assert_eq!(distance(&view, &buffer, DType::F32, reference, Slack::NONE), Some(0.0));
        for value in buffer.f32s_mut() {
            *value *= scale;
        }
        let relative = distance(&view, &buffer, DType::F32, reference, Slack::NONE).unwrap();
        prop_assert!((relative - (f64::from(scale) - 1.0)).abs() < 1e-5);
        let last = end(&view).unwrap() - 1;
        buffer.f32s_mut()[last] = f32::NAN;
        prop_assert_eq!(distance(&view, &buffer, DType::F32, reference, Slack::NONE), None);
    }
}

#[test]
fn integers_next_to_the_right_ones_are_right_and_others_are_not() {
    let view = View::dense(4);
    let check = |actual: [u8; 4], is_right: bool| {
        let reference = Values {
            dtype: DType::U8,
            bytes: &[7, 100, 0, 255],
        };
        let buffer = Buffer::copy_of(&actual).unwrap();
        let distance = distance(&view, &buffer, DType::U8, reference, ONE_STEP).unwrap();
        assert_eq!(distance <= 1e-4, is_right, "{actual:?}: {distance}");
    };
    check([7, 100, 0, 255], true);
    check([8, 99, 1, 254], true);
    check([7, 102, 0, 255], false);
}

#[test]
fn many_integers_next_to_the_right_ones_are_wrong() {
    let n_elements = 100;
    let view = View::dense(n_elements);
    let reference = Values {
        dtype: DType::U8,
        bytes: &vec![50; n_elements],
    };
    let check = |n_below: usize, is_right: bool| {
        let below = (0..n_elements).map(|idx| if idx < n_below { 49 } else { 50 });
        let buffer = Buffer::copy_of(&below.collect::<Vec<u8>>()).unwrap();
        let distance = distance(&view, &buffer, DType::U8, reference, ONE_STEP).unwrap();
        assert_eq!(distance <= 1e-4, is_right, "{n_below}: {distance}");
    };
    check(30, true);
    check(50, false);
}

#[test]
fn halves_next_to_the_right_ones_are_right_if_they_are_few() {
    let n_elements = 100;
    let view = View::dense(n_elements);
    // From 2⁻¹⁰ on, each a step above the one before.
    let right: Vec<u16> = (0x1400..).take(n_elements).collect();
    let bytes =
        |halves: &[u16]| -> Vec<u8> { halves.iter().flat_map(|h| h.to_le_bytes()).collect() };
    let right_bytes = bytes(&right);
    let check = |n_beside: usize, steps: u16, is_right: bool| {
        let mut halves = right.clone();
        for half in &mut halves[..n_beside] {
            *half += steps;
        }
        let buffer = Buffer::copy_of(&bytes(&halves)).unwrap();
        let reference = Values {
            dtype: DType::F16,
            bytes: &right_bytes,
        };
        let distance = distance(&view, &buffer, DType::F16, reference, ONE_STEP).unwrap();
        assert_eq!(
            distance <= 1e-4,
            is_right,
            "{n_beside} by {steps}: {distance}"
        );
    };
    check(0, 0, true);
    check(30, 1, true);
    check(60, 1, false);
    check(4, 2, false);
}

#[test]
fn views_that_no_buffer_holds_have_no_end() {
    let view = View {
        offset: 0,
        dims: [2, 2, 2, 2],
        block: 1,
        n_stride: 8,
        block_stride: 4,
        row_stride: 2,
    };
    assert_eq!(end(&view), Some(16));
    assert_eq!(end(&View { block: 0, ..view }), None);
    let n_stride = usize::MAX;
    assert_eq!(end(&View { n_stride, ..view }), None);
    let dims = [usize::MAX, 2, 2, 2];
    assert_eq!(end(&View { dims, ..view }), None);
    let dims = [0, 2, 2, 2];
    assert_eq!(end(&View { dims, ..view }), Some(0));
}
