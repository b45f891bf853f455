//! What is compiled at one optimisation level and at another.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::backend::Backend;
use crate::backend::native::{Native, NativeOptions};
use crate::device::Isa;
use crate::graph::{DType, Graph, Node, Shape, Value, ValueId, partition};
use crate::space::Mapping;

/// An object of one optimisation level must not get into a library of another.
#[test]
fn levels_share_no_objects_and_their_artifacts_have_digests_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let native = Native::open(&NativeOptions {
        isa: Isa::Portable,
        threads: 1,
        rustc: PathBuf::from("rustc"),
        dir: dir.path().to_owned(),
        opt_level: 2,
        timeout: Duration::from_mins(5),
        templates: BTreeMap::new(),
    })
    .unwrap();
    let levels: Vec<_> = native
        .options()
        .iter()
        .map(|o| o.int("opt-level"))
        .collect();
    assert_eq!(levels, [2, 3, 1].map(Some));
    let graph = Graph {
        name: "relu".to_owned(),
        opset: 17,
        values: ["x", "y"]
            .map(|name| Value {
                name: name.to_owned(),
                dtype: DType::F32,
                shape: Shape(vec![1, 4]),
                data: None,
            })
            .into(),
        nodes: vec![Node {
            name: "relu".to_owned(),
            op: "Relu".to_owned(),
            domain: String::new(),
            attributes: BTreeMap::new(),
            inputs: vec![Some(ValueId(0))],
            outputs: vec![Some(ValueId(1))],
        }],
        inputs: vec![ValueId(0)],
        outputs: vec![ValueId(1)],
    };
    let prepared = native.prepare(&graph, &partition(&graph)).unwrap();
    let build = |options: &Mapping| prepared.build(&[prepared.default_candidate(0)], options, 1);
    let mut dirs = BTreeMap::new();
    for options in native.options() {
        let artifact = build(options).unwrap().unwrap();
        assert_eq!(build(options).unwrap().unwrap().digest, artifact.digest);
        let dir = artifact.library.parent().unwrap().to_owned();
        let files = std::fs::read_dir(&dir).unwrap().flatten();
        let objects = files.filter(|file| file.path().extension().is_some_and(|e| e == "o"));
        assert_eq!(objects.count(), 1, "{options}");
        assert_eq!(dirs.insert(dir, artifact.digest), None);
    }
    let digests: BTreeSet<_> = dirs.values().collect();
    assert_eq!(digests.len(), 3);
    let unknown = build(&Mapping::default().with("opt-level", 7)).unwrap();
    assert!(unknown.unwrap_err().message.contains("opt-level=7"));
}
