//! `graph`: subgraphs and digests of real models, and models that are none.

use crate::support::Sandbox;

#[test]
fn graph_lists_distinct_subgraphs_in_the_order_of_the_model() {
    let run = Sandbox::with_fashion()
        .metainfer("graph")
        .code(0)
        .stderr("");
    let mut lines = run.stdout.lines();
    let title = lines.next().unwrap();
    assert!(
        title.starts_with("`fashion`: 19 subgraphs in 15 tasks, 11.8M FLOPs, structure "),
        "{title}"
    );
    assert!(lines.next().unwrap().starts_with(" #  subgraph "));
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with(" 0  conv 3×3 s2 1→16 +relu "),
        "{}",
        run.stdout
    );
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn graph_in_json_has_a_model_and_its_tasks() {
    let messages = Sandbox::with_fashion()
        .metainfer("graph --message-format json")
        .code(0)
        .messages();
    let model = &messages[1];
    assert_eq!(model["reason"], "model");
    assert_eq!(model["path"], "models/fashion.onnx");
    let subgraphs: Vec<_> = messages
        .iter()
        .filter(|message| message["reason"] == "subgraph")
        .collect();
    assert_eq!(model["n_tasks"], subgraphs.len());
    let n_subgraphs: u64 = subgraphs.iter().map(|s| s["count"].as_u64().unwrap()).sum();
    assert_eq!(model["n_subgraphs"], n_subgraphs);
    let flops: u64 = subgraphs
        .iter()
        .map(|s| s["flops"].as_u64().unwrap() * s["count"].as_u64().unwrap())
        .sum();
    assert_eq!(model["flops"], flops);
}

#[test]
fn a_dynamic_input_is_named_with_the_key_to_set() {
    let sandbox = Sandbox::with_fashion();
    sandbox.file("metainfer.toml", "model-dir = \"models\"\n");
    let run = sandbox.metainfer("graph").code(101);
    assert!(
        run.stderr.contains("models/fashion.onnx`"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("input `image`"), "{}", run.stderr);
    assert!(
        run.stderr
            .contains("help: fix the shape with `inputs = { image = ["),
        "{}",
        run.stderr
    );
}

#[test]
fn what_is_no_model_is_named() {
    let sandbox = Sandbox::with_fashion();
    sandbox.file("models/other.onnx", "not a model");
    let run = sandbox.metainfer("graph --model other").code(101);
    assert!(
        run.stderr
            .starts_with("error: cannot use model `[ROOT]/models/other.onnx`\n"),
        "{}",
        run.stderr
    );
    sandbox.metainfer("graph --model fashion").code(0);
}

#[test]
fn a_configured_file_that_is_not_there_is_named() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "metainfer.toml",
        "[[model]]\nname = \"a\"\npath = \"gone.onnx\"\n",
    );
    for command in ["graph", "adapt"] {
        sandbox.metainfer(command).code(101).stderr(
            "error: model `a` has no file: `gone.onnx` does not exist\n\
             help: check `path` of its `[[model]]`, or fetch the file\n",
        );
    }
}
