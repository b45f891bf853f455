//! Exit codes, streams and the shared flags.

use crate::support::Sandbox;

#[test]
fn both_forms_of_the_command_mean_the_same() {
    let sandbox = Sandbox::new();
    let direct = sandbox.run(&["targets"]).code(0);
    let through_cargo = sandbox.run(&["metainfer", "targets"]).code(0);
    assert_eq!(direct.stdout, through_cargo.stdout);
    assert!(direct.stdout.contains("x86-64-v3"));
}

#[test]
fn a_usage_error_exits_2_and_prints_to_stderr_only() {
    for arguments in [
        "",
        "adapt --no-such-flag",
        "adapt --max-evaluations 0",
        "nonsense",
    ] {
        let run = Sandbox::new().metainfer(arguments).code(2).stdout("");
        assert!(run.stderr.contains("--help"), "{arguments}: {}", run.stderr);
    }
}

#[test]
fn help_and_version_exit_0_and_print_to_stdout() {
    for arguments in ["--help", "--version", "adapt --help"] {
        let run = Sandbox::new().metainfer(arguments).code(0).stderr("");
        assert!(!run.stdout.is_empty());
    }
}

#[test]
fn no_workspace_exits_101_with_help() {
    Sandbox::new()
        .metainfer("targets --manifest-path none/Cargo.toml")
        .code(101)
        .stderr(
            "error: cannot read the Cargo workspace\n\nCaused by:\n  manifest path \
             `none/Cargo.toml` does not exist\n\nhelp: run inside a Cargo package, or pass \
             --manifest-path PATH\n",
        );
}

#[test]
fn no_cargo_exits_101_and_names_it() {
    let mut sandbox = Sandbox::new();
    sandbox.variable("CARGO", "/nonexistent/cargo");
    let run = sandbox.metainfer("targets").code(101);
    assert!(
        run.stderr
            .starts_with("error: cannot run `/nonexistent/cargo`\n"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("help: install Rust"));
}

#[test]
fn unknown_models_targets_and_packages_exit_2_with_the_known_ones() {
    let sandbox = Sandbox::new();
    sandbox.file("metainfer.toml", "model-dir = \"m\"\n");
    sandbox.file("m/a.onnx", "").file("m/b.onnx", "");
    sandbox
        .metainfer("adapt --model c")
        .code(2)
        .stderr("error: no model is named `c`\nhelp: models: a, b\n");
    sandbox
        .metainfer("adapt --target gpu")
        .code(2)
        .stderr("error: no target is named `gpu`\nhelp: targets: cpu\n");
    sandbox
        .metainfer("adapt -p other")
        .code(2)
        .stderr("error: package `other` is not in the workspace\nhelp: packages: demo\n");
}

#[test]
fn wrong_variables_exit_2_and_are_named() {
    let mut sandbox = Sandbox::new();
    sandbox.variable("CARGO_METAINFER_SEED", "many");
    sandbox.metainfer("targets").code(2).stderr(
        "error: environment variable `CARGO_METAINFER_SEED` must be a whole number, not `many`\n",
    );
    let mut sandbox = Sandbox::new();
    sandbox.variable("CARGO_TERM_COLOR", "sometimes");
    let run = sandbox.metainfer("targets").code(2);
    assert!(run.stderr.contains("`CARGO_TERM_COLOR`"), "{}", run.stderr);
}

#[test]
fn color_follows_the_flag_then_the_variables() {
    let mut sandbox = Sandbox::new();
    let has_color = |sandbox: &Sandbox, arguments: &str| {
        let run = sandbox.metainfer(arguments).code(0);
        run.stdout.contains('\u{1b}')
    };
    assert!(!has_color(&sandbox, "targets"));
    assert!(has_color(&sandbox, "targets --color always"));
    sandbox.variable("CARGO_TERM_COLOR", "always");
    assert!(has_color(&sandbox, "targets"));
    assert!(!has_color(&sandbox, "targets --color never"));
}

#[test]
fn json_starts_and_finishes_also_when_the_command_fails() {
    let sandbox = Sandbox::new();
    let run = sandbox
        .metainfer("diff nowhere --message-format json")
        .code(101);
    let messages = run.messages();
    let reasons: Vec<_> = messages.iter().map(|m| m["reason"].as_str()).collect();
    let expected = ["started", "diagnostic", "finished"].map(Some);
    assert_eq!(reasons, expected);
    assert_eq!(messages[1]["level"], "error");
    assert_eq!(messages[2]["success"], false);
    assert_eq!(messages[2]["exit_code"], 101);
}

#[test]
fn unstable_flags_are_refused_because_there_are_none() {
    let run = Sandbox::new().metainfer("targets -Z help").code(2);
    assert_eq!(
        run.stderr,
        "error: unknown `-Z` flag `help`\nhelp: this release has no features that may still change\n"
    );
}
