//! `deploy`: from a model to a crate.

use std::path::Path;
use std::process::Command;

use crate::support::Sandbox;

const LOCK: &str = include_str!("support/metainfer.lock");
const CONFIG: &str = "model-dir = \"models\"\n\
                      [[model]]\nname = \"fashion\"\ninputs = { image = [1, 1, 28, 28] }\n";

/// Returns a workspace with the model of `fixtures/fashion`.
fn fashion() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("metainfer.toml", CONFIG);
    let model = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/fashion/models/fashion.onnx"
    );
    sandbox.copy(Path::new(model), "models/fashion.onnx");
    sandbox
}

#[test]
fn untuned_writes_a_crate_that_builds_and_touches_nothing_the_second_time() {
    let sandbox = fashion();
    let deploy = "deploy --untuned --out out/fashion --message-format json";
    let messages = sandbox.metainfer(deploy).code(0).messages();
    let deployed = &messages[1];
    assert_eq!(deployed["reason"], "deployed");
    assert_eq!(deployed["model"], "fashion");
    assert_eq!(deployed["target"], "cpu");
    assert_eq!(deployed["tuned"], false);
    assert_eq!(deployed["package"], "fashion");
    assert_eq!(deployed["manifest_path"], "out/fashion/Cargo.toml");
    assert!(deployed["n_changed"].as_u64() > Some(5), "{deployed}");

    let again = sandbox.metainfer(deploy).code(0).messages();
    assert_eq!(again[1]["n_changed"], 0);

    sandbox.file("src/lib.rs", "pub use fashion::Model;\n");
    let manifest = sandbox.read("Cargo.toml");
    let manifest = format!("{manifest}[dependencies]\nfashion = {{ path = \"out/fashion\" }}\n");
    sandbox.file("Cargo.toml", &manifest);
    let mut check = Command::new(env!("CARGO"));
    check.args(["check", "--quiet", "--offline"]);
    let output = check.current_dir(sandbox.root()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

#[test]
fn without_a_lock_the_answer_is_no() {
    let run = fashion().metainfer("deploy --out out").code(100);
    let expected = "error: the lock has no deployment of model `fashion` for target `cpu`: \
                    not locked\n";
    assert!(run.stderr.starts_with(expected), "{}", run.stderr);
    assert!(
        run.stderr.contains("--untuned deploys without a lock"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_lock_of_another_structure_is_not_deployed() {
    let sandbox = fashion();
    sandbox.file("metainfer.lock", LOCK);
    let run = sandbox.metainfer("deploy --out out").code(100);
    assert!(run.stderr.contains("structure changed"), "{}", run.stderr);
    assert!(!sandbox.path("out").exists());
}

#[test]
fn a_directory_of_somebody_else_is_left_alone() {
    let sandbox = fashion();
    let run = sandbox.metainfer("deploy --untuned --out src").code(101);
    let expected = "`src` has files that `cargo metainfer deploy` did not write";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
    assert!(
        run.stderr.contains("choose another directory"),
        "{}",
        run.stderr
    );
    assert_eq!(sandbox.read("src/lib.rs"), "");
}

#[test]
fn one_of_several_models_must_be_named() {
    let sandbox = fashion();
    sandbox.copy(&sandbox.path("models/fashion.onnx"), "models/other.onnx");
    let run = sandbox.metainfer("deploy --untuned --out out").code(2);
    assert!(run.stderr.contains("there are 2 models"), "{}", run.stderr);
    assert!(
        run.stderr.contains("--model NAME: fashion, other"),
        "{}",
        run.stderr
    );
    let run = sandbox.metainfer("deploy --model nope --out out").code(2);
    assert!(
        run.stderr.contains("no model is named `nope`"),
        "{}",
        run.stderr
    );
}
