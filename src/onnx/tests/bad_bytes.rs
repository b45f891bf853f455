//! Files that are no models, or half of one.

use std::io::Write;
use std::path::Path;

use proptest::prelude::*;

use super::{fashion, options};
use crate::onnx::error::{Error, Problem};
use crate::onnx::{LoadOptions, load};

/// Loads bytes from a file.
fn load_bytes(bytes: &[u8]) -> Error {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    load(file.path(), &options(&[])).unwrap_err()
}

fn fixture() -> Vec<u8> {
    std::fs::read(fashion()).unwrap()
}

#[test]
fn other_kinds_of_files_are_not_onnx() {
    let others: [(&[u8], &str); 5] = [
        (b"", "it is empty"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid",
            "it is a Git LFS pointer",
        ),
        (b"{\"model\": 1}", "a tag or number is not well-formed"),
        (
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
            "a tag or number is not well-formed",
        ),
        (&[0x08, 0x07], "it has no graph"),
    ];
    for (bytes, expected) in others {
        let error = load_bytes(bytes);
        match error.problem.as_ref() {
            Problem::NotOnnx { detail } => assert_eq!(detail, expected),
            other => panic!("{other:?} for {bytes:?}"),
        }
        assert!(error.help().unwrap().contains("git lfs pull"));
    }
}

#[test]
fn the_error_names_the_file() {
    let error = load(Path::new("no/such.onnx"), &LoadOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "cannot use model `no/such.onnx`");
    assert!(matches!(*error.problem, Problem::Read { .. }));
    let directory = tempfile::tempdir().unwrap();
    let error = load(directory.path(), &LoadOptions::default()).unwrap_err();
    assert!(matches!(*error.problem, Problem::NotAFile(_)));
}

#[test]
fn a_truncated_model_says_so() {
    let bytes = fixture();
    for len in [100, bytes.len() / 2, bytes.len() - 20] {
        let error = load_bytes(&bytes[..len]);
        assert!(
            matches!(*error.problem, Problem::Truncated { .. }),
            "{error:?}"
        );
        assert_eq!(error.help().unwrap(), "copy or download the file again");
    }
}

#[test]
fn a_file_of_2_gib_is_refused_unread() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 31).unwrap();
    let start = std::time::Instant::now();
    let error = load(file.path(), &LoadOptions::default()).unwrap_err();
    assert_eq!(
        error.problem.to_string(),
        "the file has 2147483648 bytes, ONNX files end at 2 GiB"
    );
    assert!(start.elapsed().as_millis() < 500);
}

#[test]
fn graphs_nested_without_end_are_refused() {
    // A node whose attribute holds a graph, a thousand times over, innermost first.
    let wrap = |number: u8, inner: &[u8]| {
        let mut bytes = vec![number << 3 | 2];
        let mut len = inner.len();
        while len >= 0x80 {
            bytes.push(len as u8 | 0x80);
            len >>= 7;
        }
        bytes.push(len as u8);
        bytes.extend(inner);
        bytes
    };
    let mut graph = Vec::new();
    for _ in 0..1000 {
        graph = wrap(1, &wrap(5, &wrap(6, &graph)));
    }
    let mut model = vec![0x08, 0x08];
    model.extend(wrap(7, &graph));
    let error = load_bytes(&model);
    assert_eq!(
        error.problem.to_string(),
        "the file is damaged: graphs are nested more than 8 deep"
    );
}

/// Loading may fail, but only by an error.
fn survives(bytes: &[u8]) {
    let options = options(&[("image", &[1, 1, 28, 28])]);
    let _ = super::survives(bytes, &options).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_byte_of_the_structure_can_be_changed_into_a_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        // A model without weights to speak of, so that nearly every byte is structure.
        let mut bytes = small();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        survives(&bytes);
    }

    #[test]
    fn no_byte_of_the_fixture_can_be_changed_into_a_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = fixture();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        survives(&bytes);
    }

    #[test]
    fn arbitrary_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        survives(&bytes);
    }
}

/// A model with many kinds of operators and attributes.
fn small() -> Vec<u8> {
    use super::net::Net;
    use crate::graph::Attribute::{Float, Int, Ints};
    let mut net = Net::new(13, &[1, 4, 6, 5]);
    net.weights("w", &[2, 4, 3, 3])
        .weights("v", &[2, 1, 2, 2])
        .ints("shape", &[1, 2, -1]);
    net.ints("starts", &[0])
        .ints("ends", &[3])
        .ints("axes", &[2])
        .scalar("low", 0.0);
    let window = [
        ("pads", Ints(vec![1, 1, 1, 1])),
        ("strides", Ints(vec![1, 2])),
        ("dilations", Ints(vec![1, 1])),
        ("group", Int(1)),
    ];
    net.with("c", "Conv", "x w", &window);
    net.with(
        "t",
        "ConvTranspose",
        "c v",
        &[("group", Int(2)), ("strides", Ints(vec![2, 1]))],
    );
    net.with(
        "p",
        "MaxPool",
        "t",
        &[("kernel_shape", Ints(vec![2, 2])), ("ceil_mode", Int(1))],
    );
    net.node("k", "Clip", "p low")
        .with("h", "HardSigmoid", "k", &[("alpha", Float(0.3))]);
    net.node("s", "Slice", "h starts ends axes")
        .node("r", "Reshape", "s shape");
    net.with("m", "ReduceMean", "r", &[("axes", Ints(vec![-1]))])
        .node("d", "Sub", "r m");
    net.with("q", "Transpose", "d", &[("perm", Ints(vec![0, 2, 1]))]);
    net.with("g", "Gather", "q starts", &[("axis", Int(1))]);
    net.with("y", "Softmax", "g", &[("axis", Int(-1))])
        .output("y");
    net.load().unwrap();
    crate::onnx::encode(&net.graph).unwrap()
}
