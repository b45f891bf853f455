//! Samples from files.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use npyz::WriterBuilder as _;
use proptest::prelude::*;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;
use crate::config::{Channels, Preprocess};
use crate::graph::{DType, Shape, TensorData};

/// Writes a file.
fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
    crate::fsx::write_scratch(path.as_ref(), bytes.as_ref()).unwrap();
}

/// Returns the bytes of an array.
fn npy<T: npyz::AutoSerialize + Copy>(shape: &[u64], data: &[T]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let options = npyz::WriteOptions::new().default_dtype().shape(shape);
    let mut writer = options.writer(&mut bytes).begin_nd().unwrap();
    writer.extend(data.iter().copied()).unwrap();
    writer.finish().unwrap();
    bytes
}

/// Writes arrays as a `.npz` file.
fn npz(dir: &Path, arrays: &[(&str, Vec<u8>)]) -> PathBuf {
    let path = dir.join("samples.npz");
    let mut archive = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        archive
            .start_file(format!("{name}.npy"), SimpleFileOptions::default())
            .unwrap();
        archive.write_all(bytes).unwrap();
    }
    let bytes = archive.finish().unwrap().into_inner();
    write(&path, bytes);
    path
}

fn read_image(path: &Path, shape: &[usize]) -> Result<Samples, DataError> {
    let shape = Shape(shape.to_vec());
    let input = Input {
        name: "image",
        dtype: DType::F32,
        shape: &shape,
    };
    read(path, &Preprocess::default(), "labels", &[input])
}

/// Asserts what is wrong.
#[track_caller]
fn check_error(arrays: &[(&str, Vec<u8>)], shape: &[usize], expected: &str) {
    let dir = tempfile::tempdir().unwrap();
    let error = read_image(&npz(dir.path(), arrays), shape).unwrap_err();
    assert_eq!(error.kind.to_string(), expected);
}

#[test]
fn the_fixture_is_read() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fashion/data");
    let calibration = read_image(&data.join("calib.npz"), &[1, 1, 28, 28]).unwrap();
    let validation = read_image(&data.join("val.npz"), &[1, 1, 28, 28]).unwrap();
    assert_eq!(
        (calibration.inputs.len(), validation.inputs.len()),
        (256, 1000)
    );
    calibration.expect(MIN_CALIBRATION).unwrap();
    calibration.expect_classes(10).unwrap();
    validation.expect_disjoint(&calibration).unwrap();
    assert_ne!(calibration.digest(), validation.digest());
    let error = calibration.expect_classes(9).unwrap_err().kind.to_string();
    assert!(error.starts_with("label 9 of sample "), "{error}");
    assert!(
        error.ends_with("whole numbers from 0 to below 9"),
        "{error}"
    );
    let error = calibration.expect_disjoint(&calibration).unwrap_err();
    assert!(matches!(
        *error.kind,
        DataErrorKind::Overlap {
            own: 0,
            other: 0,
            ..
        }
    ));
}

#[test]
fn pixels_are_scaled_shifted_and_reversed() {
    let dir = tempfile::tempdir().unwrap();
    let pixels: Vec<u8> = vec![0, 51, 102, 153, 204, 255];
    let path = npz(dir.path(), &[("any", npy(&[1, 3, 1, 2], &pixels))]);
    let shape = Shape(vec![1, 3, 1, 2]);
    let input = Input {
        name: "image",
        dtype: DType::F32,
        shape: &shape,
    };
    let preprocess = Preprocess {
        mean: vec![0.0, 0.2, 0.5],
        std: vec![1.0, 2.0, 0.5],
        channels: Channels::Bgr,
        ..Preprocess::default()
    };
    let samples = read(&path, &preprocess, "labels", &[input]).unwrap();
    let values = samples.inputs[0]["image"].as_f32().unwrap();
    let expected = [0.8, 1.0, 0.1, 0.2, -1.0, -0.6];
    for (value, expected) in values.iter().zip(expected) {
        assert!((value - expected).abs() < 1e-6, "{values:?}");
    }
}

#[test]
fn an_input_with_a_batch_takes_several_entries() {
    let dir = tempfile::tempdir().unwrap();
    let values: Vec<f32> = (0..12).map(|v| v as f32).collect();
    let path = npz(dir.path(), &[("image", npy(&[4, 3], &values))]);
    let samples = read_image(&path, &[2, 3]).unwrap();
    assert_eq!(samples.inputs.len(), 2);
    assert_eq!(samples.inputs[1]["image"].as_f32().unwrap(), &values[6..]);
}

#[test]
fn mistakes_are_named_with_their_place() {
    let four = || npy(&[4, 2], &[0f32; 8]);
    check_error(
        &[("image", npy(&[4, 3], &[0f32; 12]))],
        &[1, 2],
        "array `image` is [4, 3]; input `image` needs samples of shape [1, 2]",
    );
    check_error(
        &[("image", npy(&[2, 2], &[0.0, 1.0, f32::NAN, 2.0]))],
        &[1, 2],
        "sample 1 of array `image` has the element NaN, which is not a finite number of f32",
    );
    check_error(
        &[("a", four()), ("b", four())],
        &[1, 2],
        "there is no array for input `image`: arrays are named as inputs are, and there are `a`, `b`",
    );
    check_error(
        &[("image", four()), ("labels", npy(&[3], &[0i64, 1, 2]))],
        &[1, 2],
        "array `labels` has 3 samples, another one 4",
    );
    check_error(
        &[("image", four()), ("labels", npy(&[4], &[0i64, 1, -2, 3]))],
        &[1, 2],
        "label -2 of sample 2 is no class: they are whole numbers from 0 to below 4294967295",
    );
    check_error(
        &[("image", npy::<f32>(&[0, 2], &[]))],
        &[1, 2],
        "there are 0 samples, and at least 1 are needed",
    );
}

#[test]
fn what_is_no_file_of_samples_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("samples.txt");
    write(&path, "1 2 3");
    let error = read_image(&path, &[1, 2]).unwrap_err();
    assert!(matches!(*error.kind, DataErrorKind::Format));
    let error = read_image(&dir.path().join("none.npz"), &[1, 2]).unwrap_err();
    assert!(matches!(*error.kind, DataErrorKind::Read(_)));
}

#[test]
fn pictures_are_fitted_and_have_labels() {
    let dir = tempfile::tempdir().unwrap();
    for (name, level) in [("b.png", 255), ("a.png", 0)] {
        let picture = image::RgbImage::from_pixel(8, 4, image::Rgb([level, 51, 102]));
        picture.save(dir.path().join(name)).unwrap();
    }
    write(
        dir.path().join("labels.csv"),
        "file,label\nb.png,1\na.png,0\n",
    );
    let samples = read_image(dir.path(), &[1, 3, 2, 2]).unwrap();
    assert_eq!(samples.labels, Some(vec![0, 1]));
    let values = samples.inputs[1]["image"].as_f32().unwrap();
    assert!(
        (values[0] - 1.0).abs() < 1e-6 && (values[4] - 0.2).abs() < 1e-6,
        "{values:?}"
    );
    write(dir.path().join("labels.csv"), "c.png,1\n");
    let error = read_image(dir.path(), &[1, 3, 2, 2]).unwrap_err();
    assert!(matches!(
        *error.kind,
        DataErrorKind::LabelLine { line: 1, .. }
    ));
    write(dir.path().join("a.png"), "no picture");
    let error = read_image(dir.path(), &[1, 3, 2, 2]).unwrap_err();
    assert!(
        matches!(*error.kind, DataErrorKind::Picture { .. }),
        "{error:?}"
    );
}

proptest! {
    #[test]
    fn arrays_come_back(values in proptest::collection::vec(any::<i32>(), 1..50)) {
        let dir = tempfile::tempdir().unwrap();
        let path = npz(dir.path(), &[("ids", npy(&[values.len() as u64, 1], &values))]);
        let shape = Shape(vec![1, 1]);
        let input = Input { name: "ids", dtype: DType::I64, shape: &shape };
        let samples = read(&path, &Preprocess::default(), "labels", &[input]).unwrap();
        let back = samples.inputs.iter().map(|sample| sample["ids"].data());
        for (back, value) in back.zip(&values) {
            prop_assert_eq!(back, &TensorData::I64(vec![i64::from(*value)]));
        }
    }

    #[test]
    fn damaged_files_are_errors(at in 0usize..400, byte: u8, cut in 0usize..400) {
        let dir = tempfile::tempdir().unwrap();
        let path = npz(dir.path(), &[("image", npy(&[4, 2], &[1f32; 8]))]);
        let mut bytes = std::fs::read(&path).unwrap();
        let n = bytes.len();
        bytes[at % n] = byte;
        bytes.truncate(n - cut % n);
        write(&path, &bytes);
        // It is read or it is not: what counts is that nothing panics.
        let _ = read_image(&path, &[1, 2]);
    }
}
