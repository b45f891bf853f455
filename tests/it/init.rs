//! `init` in workspaces of all kinds.

use crate::support::{ReadOnly, Sandbox};

#[test]
fn init_creates_extends_and_then_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.file("models/a.onnx", "").file("models/b.onnx", "");
    sandbox
        .metainfer("init")
        .code(0)
        .stdout("")
        .stderr("     Created `metainfer.toml` (2 models)\n");
    let text = sandbox.read("metainfer.toml");
    assert!(text.contains("\nmodel-dir = \"models\"\n"), "{text}");

    sandbox.file("metainfer.toml", &format!("# kept\n{text}"));
    sandbox.file("more/c d.onnx", "");
    sandbox
        .metainfer("init")
        .code(0)
        .stderr("    Extended `metainfer.toml` (1 model)\n");
    let text = sandbox.read("metainfer.toml");
    assert!(text.starts_with("# kept\n"), "{text}");
    assert!(text.contains("[[model]]\nname = \"c-d\"\npath = \"more/c d.onnx\"\n"));

    let run = sandbox.metainfer("init").code(0);
    assert_eq!(
        run.stderr,
        "       Fresh every ONNX file of the workspace is configured\n"
    );
    assert_eq!(sandbox.read("metainfer.toml"), text);
}

#[test]
fn init_dry_run_shows_and_writes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.file("models/a.onnx", "");
    let run = sandbox.metainfer("init --dry-run").code(0).stderr("");
    assert!(run.stdout.contains("model-dir = \"models\""));
    assert!(!sandbox.path("metainfer.toml").exists());
    let messages = sandbox
        .metainfer("init --dry-run --message-format json")
        .code(0)
        .messages();
    assert_eq!(messages[1]["reason"], "created");
    assert_eq!(messages[1]["dry_run"], true);
    assert_eq!(messages[1]["content"], run.stdout);
}

#[test]
fn init_looks_neither_into_the_target_directory_nor_into_hidden_ones() {
    let sandbox = Sandbox::new();
    sandbox.file("target/x.onnx", "").file(".git/y.onnx", "");
    sandbox
        .metainfer("init")
        .code(0)
        .stderr("     Created `metainfer.toml` (no ONNX file found yet)\n");
}

#[test]
fn init_leaves_a_manifest_alone_that_holds_the_configuration() {
    let sandbox = Sandbox::new();
    let manifest = format!(
        "{}[workspace.metadata.metainfer]\n",
        sandbox.read("Cargo.toml")
    );
    sandbox.file("Cargo.toml", &manifest).file("a.onnx", "");
    let run = sandbox.metainfer("init").code(101);
    assert!(
        run.stderr.contains("which init does not edit"),
        "{}",
        run.stderr
    );
    assert!(!sandbox.path("metainfer.toml").exists());
    assert_eq!(sandbox.read("Cargo.toml"), manifest);
}

#[test]
fn init_in_a_read_only_workspace_says_so_and_leaves_nothing() {
    let mut sandbox = Sandbox::new();
    sandbox.file("a.onnx", "");
    sandbox.unprivileged();
    let read_only = ReadOnly::new(&sandbox.root());
    let run = sandbox.metainfer("init").code(101);
    drop(read_only);
    assert!(
        run.stderr
            .starts_with("error: cannot write `[ROOT]/metainfer.toml`\n"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr
            .contains("help: check the owner and the permissions")
    );
    assert!(!sandbox.path("metainfer.toml").exists());
}
