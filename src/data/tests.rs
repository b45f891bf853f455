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
    calibration.expect_classes(1, 10).unwrap();
    validation.expect_disjoint(&calibration).unwrap();
    assert_ne!(calibration.digest(), validation.digest());
    calibration.expect_labels().unwrap();
    let unlabelled = Samples {
        labels: None,
        ..calibration.clone()
    };
    assert_eq!(
        unlabelled.expect_labels().unwrap_err().kind.to_string(),
        "`accept.max-top1-drop` cannot be checked: these samples have no labels"
    );
    let error = calibration.expect_classes(2, 10).unwrap_err().kind;
    assert_eq!(
        error.to_string(),
        "each sample has 1 of the 2 labels that the rows of the output need"
    );
    let error = calibration.expect_classes(1, 9).unwrap_err();
    let error = error.kind.to_string();
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
    let labels = npy(&[4], &[3u8, 2, 1, 0]);
    let path = npz(
        dir.path(),
        &[("image", npy(&[4, 3], &values)), ("labels", labels)],
    );
    let samples = read_image(&path, &[2, 3]).unwrap();
    assert_eq!(samples.labels_of(1), [1, 0]);
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
        "element 0 of sample 1 of array `image` is NaN, not a finite number of f32: \
         correct it, or leave the sample out",
    );
    check_error(
        &[("a", four()), ("b", four())],
        &[1, 2],
        "there is no array for input `image`: arrays are named as inputs are, and there are `a`, `b`",
    );
    check_error(
        &[("image", four()), ("labels", npy(&[3], &[0i64, 1, 2]))],
        &[1, 2],
        "array `labels` is [3]; labels are one class for each of the 4 entries",
    );
    check_error(
        &[("image", four()), ("labels", npy(&[4], &[0i64, 1, -2, 3]))],
        &[1, 2],
        "label -2 of sample 2 is no class: classes are whole numbers from 0 up",
    );
    check_error(
        &[("image", npy::<f32>(&[0, 2], &[]))],
        &[1, 2],
        "there are 0 samples, and at least 1 are needed",
    );
}

#[test]
fn arrays_that_do_not_belong_to_the_model_are_named() {
    let four = || npy(&[4, 2], &[0f32; 8]);
    check_error(
        &[("image", four()), ("label", npy(&[4], &[0i64; 4]))],
        &[1, 2],
        "array `label` is neither an input of the model (`image`) nor its labels (`labels`): \
         rename it, or leave it out",
    );
    check_error(
        &[("image", npy(&[4, 28, 20, 3], &[0u8; 6720]))],
        &[1, 3, 28, 20],
        "array `image` is [4, 28, 20, 3]; input `image` needs samples of shape [1, 3, 28, 20]: \
         its axes are in another order, transpose them",
    );
    check_error(
        &[("image", npy(&[3, 3], &[0f32; 9]))],
        &[2, 3],
        "array `image` has 3 entries, no multiple of the batch of 2 that input `image` takes",
    );
    check_error(
        &[("image", npy(&[3, 0], &[0f32; 0]))],
        &[1, 0],
        "array `image` is [3, 0]; input `image` needs samples of shape [1, 0]",
    );
}

#[test]
fn labels_are_whole_numbers_of_any_type() {
    let dir = tempfile::tempdir().unwrap();
    let four = || npy(&[4, 2], &[0f32; 8]);
    let labels = |labels: Vec<u8>| {
        let path = npz(dir.path(), &[("image", four()), ("labels", labels)]);
        read_image(&path, &[1, 2]).map(|samples| samples.labels.unwrap())
    };
    let expected = [0, 3, 1, 2];
    assert_eq!(labels(npy(&[4], &[0f32, 3.0, 1.0, 2.0])).unwrap(), expected);
    assert_eq!(labels(npy(&[4, 1], &[0i16, 3, 1, 2])).unwrap(), expected);
    for (wrong, message) in [
        (
            npy(&[4], &[0.0, 1.0, 1.5, 2.0]),
            "label 1.5 of sample 2 is no class: classes are whole numbers from 0 up",
        ),
        (
            npy(&[4], &[0.0, f64::NAN, 1.0, 2.0]),
            "label NaN of sample 1 is no class: classes are whole numbers from 0 up",
        ),
        (
            npy(&[4, 10], &[0u8; 40]),
            "array `labels` is [4, 10]; labels are one class for each of the 4 entries",
        ),
    ] {
        assert_eq!(labels(wrong).unwrap_err().kind.to_string(), message);
    }
}

/// Returns the bytes of a `.npy` file that is nothing but a header.
fn header(text: &str) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

#[test]
fn headers_that_lie_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("samples.npy");
    let shaped = |shape: &str| {
        let dtype = "'descr': '<f4', 'fortran_order': False";
        header(&format!("{{{dtype}, 'shape': ({shape}), }}\n"))
    };
    let mut longest = b"\x93NUMPY\x02\x00".to_vec();
    longest.extend(u32::MAX.to_le_bytes());
    for bytes in [
        shaped("1099511627776, 1099511627776"),
        shaped("0, 9223372036854775808, 9223372036854775808"),
        shaped("99999999999999999999, 2"),
        shaped("1000000000, 2"),
        shaped("4, 2"),
        shaped("-4, 2"),
        header(&"(".repeat(60_000)),
        longest,
    ] {
        write(&path, &bytes);
        let kind = read_image(&path, &[1, 2]).unwrap_err().kind;
        let is_named = matches!(
            *kind,
            DataErrorKind::Read(_) | DataErrorKind::TooLarge { .. }
        );
        assert!(is_named, "{kind:?}");
    }
}

#[test]
fn pixels_that_become_no_numbers_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = npz(dir.path(), &[("image", npy(&[1, 2], &[0u8, 9]))]);
    let shape = Shape(vec![1, 2]);
    let input = Input {
        name: "image",
        dtype: DType::F32,
        shape: &shape,
    };
    let preprocess = Preprocess {
        scale: f32::MAX,
        ..Preprocess::default()
    };
    let error = read(&path, &preprocess, "labels", &[input]).unwrap_err();
    let message = error.kind.to_string();
    let expected = "element 1 of sample 0 of array `image` is inf, not a finite number of f32";
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn reals_become_the_type_of_the_input() {
    let dir = tempfile::tempdir().unwrap();
    let path = npz(dir.path(), &[("image", npy(&[1, 2], &[0.5, -1e5]))]);
    let shape = Shape(vec![1, 2]);
    let of = |dtype| {
        let input = Input {
            name: "image",
            dtype,
            shape: &shape,
        };
        let samples = read(&path, &Preprocess::default(), "labels", &[input]);
        samples.map(|samples| samples.inputs[0]["image"].data().clone())
    };
    assert_eq!(of(DType::F32).unwrap(), TensorData::F32(vec![0.5, -1e5]));
    assert_eq!(of(DType::F64).unwrap(), TensorData::F64(vec![0.5, -1e5]));
    let message = of(DType::F16).unwrap_err().kind.to_string();
    let expected = "element 1 of sample 0 of array `image` is -100000, not a finite number of f16";
    assert!(message.starts_with(expected), "{message}");
    assert_eq!(
        of(DType::I64).unwrap_err().kind.to_string(),
        "array `image` is of type float, and input `image` takes i64: store it as that"
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
    let shape = Shape(vec![1, 3, 2, 2]);
    let input = Input {
        name: "image",
        dtype: DType::F32,
        shape: &shape,
    };
    let gray = Preprocess {
        channels: Channels::Gray,
        ..Preprocess::default()
    };
    let samples = read(dir.path(), &gray, "labels", &[input]).unwrap();
    let values = samples.inputs[1]["image"].as_f32().unwrap();
    assert!(
        values[0] > 0.2
            && values
                .iter()
                .all(|value| value.to_bits() == values[0].to_bits())
    );
    for (lines, message) in [
        (
            "c.png,1\n",
            "line 1 of `labels.csv` is not `FILE,CLASS` with a file of this directory, each once: \
             `c.png,1`",
        ),
        (
            "a.png,0\nb.png,1\na.png,1\n",
            "line 3 of `labels.csv` is not `FILE,CLASS` with a file of this directory, each once: \
             `a.png,1`",
        ),
        (
            "file,label\na.png,0\n",
            "`labels.csv` has no line for picture `b.png`: add one, or take the picture away",
        ),
    ] {
        write(dir.path().join("labels.csv"), lines);
        let error = read_image(dir.path(), &[1, 3, 2, 2]).unwrap_err();
        assert_eq!(error.kind.to_string(), message);
    }
    write(dir.path().join("a.png"), "no picture");
    let error = read_image(dir.path(), &[1, 3, 2, 2]).unwrap_err();
    assert!(
        matches!(*error.kind, DataErrorKind::Picture { .. }),
        "{error:?}"
    );
}

proptest! {
    #[test]
    fn reals_come_back(values in proptest::collection::vec(any::<f32>(), 1..50)) {
        let dir = tempfile::tempdir().unwrap();
        let path = npz(dir.path(), &[("image", npy(&[values.len() as u64, 1], &values))]);
        let samples = read_image(&path, &[1, 1]);
        if values.iter().all(|value| value.is_finite()) {
            let samples = samples.unwrap();
            let back = samples.inputs.iter().map(|sample| sample["image"].as_f32().unwrap()[0]);
            prop_assert!(back.zip(&values).all(|(back, value)| back.to_bits() == value.to_bits()));
        } else {
            let is_named = matches!(*samples.unwrap_err().kind, DataErrorKind::Element { .. });
            prop_assert!(is_named);
        }
    }

    #[test]
    fn damaged_headers_are_errors(at in 0usize..200, byte: u8, cut in 0usize..200) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples.npy");
        let mut bytes = npy(&[4, 2], &[1f32; 8]);
        let n = bytes.len();
        bytes[at % n] = byte;
        bytes.truncate(n - cut % n);
        write(&path, &bytes);
        // It is read or it is not: what counts is that nothing panics.
        let _ = read_image(&path, &[1, 2]);
    }

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
