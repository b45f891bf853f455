//! `deploy`: from a model to a crate.

use std::process::Command;

use metainfer::space::Mapping;

use crate::support::Sandbox;
use crate::support::locked::{locked, write_lock};

const LOCK: &str = include_str!("support/metainfer.lock");

#[test]
fn untuned_writes_a_crate_that_builds_and_touches_nothing_the_second_time() {
    let sandbox = Sandbox::with_fashion();
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
    let run = Sandbox::with_fashion()
        .metainfer("deploy --out out")
        .code(100);
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
    let sandbox = Sandbox::with_fashion();
    sandbox.file("metainfer.lock", LOCK);
    let run = sandbox.metainfer("deploy --out out").code(100);
    assert!(run.stderr.contains("structure changed"), "{}", run.stderr);
    assert!(!sandbox.path("out").exists());
}

#[test]
fn a_directory_of_somebody_else_is_left_alone() {
    let sandbox = Sandbox::with_fashion();
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
    let sandbox = Sandbox::with_fashion();
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

#[test]
fn a_locked_deployment_is_the_program_of_the_locked_choices() {
    let sandbox = Sandbox::with_fashion();
    let mut deployment = locked(&sandbox);
    write_lock(&sandbox, "fashion", deployment.clone());
    sandbox.metainfer("deploy --out locked").code(0);
    sandbox.metainfer("deploy --out default --untuned").code(0);
    let program = |dir: &str| sandbox.read(&format!("{dir}/src/program.rs"));
    assert_eq!(program("locked"), program("default"));

    let mapping = &mut deployment.subgraphs[0].candidate.mapping;
    let width = mapping.int("tile_w").unwrap();
    *mapping = std::mem::take(mapping).with("tile_w", width - 1);
    write_lock(&sandbox, "fashion", deployment);
    sandbox.metainfer("deploy --out locked").code(0);
    assert_ne!(program("locked"), program("default"));
}

#[test]
fn choices_that_do_not_apply_are_an_error_and_nothing_is_written() {
    let sandbox = Sandbox::with_fashion();
    let mut deployment = locked(&sandbox);
    deployment.subgraphs[0].candidate.mapping = Mapping::default().with("layout_in", "moebius");
    write_lock(&sandbox, "fashion", deployment);
    let run = sandbox.metainfer("deploy --out out").code(101);
    let expected = "error: cannot deploy model `fashion`\n";
    assert!(run.stderr.starts_with(expected), "{}", run.stderr);
    assert!(!sandbox.path("out").exists());
}

#[test]
fn no_compiler_is_an_error_that_names_it() {
    let mut sandbox = Sandbox::with_fashion();
    sandbox.variable("RUSTC", "/nonexistent/rustc");
    let run = sandbox.metainfer("deploy --untuned --out out").code(101);
    let expected = "error: cannot use the compiler `/nonexistent/rustc`\n";
    assert!(run.stderr.starts_with(expected), "{}", run.stderr);
    assert!(run.stderr.contains("help: install Rust"), "{}", run.stderr);
    assert!(!sandbox.path("out").exists());
}
