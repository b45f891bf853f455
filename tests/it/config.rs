//! Configuration through the command line: places, layers, models.

use crate::support::Sandbox;

#[test]
fn unknown_keys_are_warnings_with_their_place() {
    let sandbox = Sandbox::new();
    sandbox.file("metainfer.toml", "# mine\n[search]\nsede = 1\n");
    sandbox.metainfer("targets").code(0).stderr(
        "warning: unknown key `search.sede`\n --> metainfer.toml:3:1\nhelp: did you mean `seed`?\n",
    );
    sandbox.metainfer("targets --quiet").code(0).stderr("");
}

#[test]
fn wrong_values_exit_101_with_all_their_places() {
    let sandbox = Sandbox::new();
    sandbox.file("metainfer.toml", "[search]\nseed = -1\nmin-gain = 2\n");
    sandbox.metainfer("targets").code(101).stdout("").stderr(
        "error: `search.seed` must be an integer from 0 up\n --> metainfer.toml:2:8\n\
         error: `search.min-gain` must be a number from 0 to below 1\n --> metainfer.toml:3:12\n\
         error: the configuration has 2 errors\n",
    );
}

#[test]
fn diagnostics_have_places_in_json() {
    let sandbox = Sandbox::new();
    sandbox.file("metainfer.toml", "modle-dir = \"m\"\n");
    let messages = sandbox
        .metainfer("targets --message-format json")
        .code(0)
        .messages();
    assert_eq!(messages[1]["reason"], "diagnostic");
    assert_eq!(messages[1]["code"], "unknown-key");
    assert_eq!(messages[1]["place"]["file"], "metainfer.toml");
    assert_eq!(messages[1]["place"]["line"], 1);
    assert_eq!(messages[1]["help"][0], "did you mean `model-dir`?");
}

#[test]
fn a_config_flag_goes_before_files_and_is_checked_like_them() {
    let sandbox = Sandbox::new();
    sandbox
        .metainfer("targets --config search.sed=1")
        .code(0)
        .stderr(
            "warning: unknown key `search.sed`\n --> --config:1:8\nhelp: did you mean `seed`?\n",
        );
    sandbox.metainfer("targets --config seed").code(2);
}

#[test]
fn two_configurations_of_one_workspace_are_an_error() {
    let sandbox = Sandbox::new();
    let manifest = sandbox.read("Cargo.toml");
    sandbox
        .file("metainfer.toml", "")
        .file(
            "Cargo.toml",
            &format!("{manifest}[workspace.metadata.metainfer]\n"),
        )
        .metainfer("targets")
        .code(101)
        .stderr(
            "error: both `metainfer.toml` and `[workspace.metadata.metainfer]` in `Cargo.toml` \
             configure this\nhelp: move all keys to `metainfer.toml`\n",
        );
}

#[test]
fn a_missing_model_dir_is_an_error_with_its_place() {
    let sandbox = Sandbox::new();
    sandbox.file("metainfer.toml", "\nmodel-dir = \"nets\"\n");
    let run = sandbox.metainfer("adapt").code(101);
    assert!(
        run.stderr
            .starts_with("error: metainfer.toml:2:13: cannot read `model-dir` `nets`\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn no_models_at_all_is_an_error_that_names_init() {
    Sandbox::new().metainfer("adapt").code(101).stderr(
        "error: no models are configured in `.`\n\
         help: cargo metainfer init finds ONNX files and writes `metainfer.toml`\n",
    );
}

#[test]
fn packages_bring_their_own_models_and_can_be_selected() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "Cargo.toml",
        "[workspace]\nmembers = [\"a\", \"b\"]\nresolver = \"3\"\n",
    );
    for name in ["a", "b"] {
        sandbox
            .file(
                &format!("{name}/Cargo.toml"),
                &format!(
                    "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                     [[package.metadata.metainfer.model]]\nname = \"net-{name}\"\npath = \"n.onnx\"\n"
                ),
            )
            .file(&format!("{name}/src/lib.rs"), "");
    }
    let known = |flags: &str| {
        let run = sandbox.metainfer(&format!("adapt --model none {flags}"));
        run.code(2)
            .stderr
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(known(""), "help: models: net-a, net-b");
    assert_eq!(known("-p b"), "help: models: net-b");
    assert_eq!(known("--exclude b"), "help: models: net-a");
}

#[test]
fn a_profile_that_this_machine_cannot_run_is_named_with_the_reason() {
    let sandbox = Sandbox::new();
    sandbox.file("m/a.onnx", "").file(
        "metainfer.toml",
        "model-dir = \"m\"\n[[target]]\nname = \"phone\"\nprofile = \"phone.toml\"\n",
    );
    let profile = "name = \"phone\"\ndescription = \"a phone\"\nprocessor = \"Phone 1\"\n\
                   isa = \"portable\"\nl1d-bytes = 1\nl2-bytes = 1\nl3-bytes = 0\nthreads = 1\n";
    sandbox.file("phone.toml", profile);
    let run = sandbox.metainfer("adapt").code(101);
    assert!(
        run.stderr.starts_with(
            "error: target `phone` cannot be measured here: profile `phone.toml` is of `Phone 1`"
        ),
        "{}",
        run.stderr
    );
    let run = sandbox.metainfer("targets").code(0);
    assert!(run.stdout.contains("no: is of `Phone 1`"), "{}", run.stdout);
}

#[test]
fn more_threads_than_processors_are_refused_with_the_place_of_the_key() {
    let sandbox = Sandbox::new();
    sandbox.file("m/a.onnx", "").file(
        "metainfer.toml",
        "model-dir = \"m\"\n[[target]]\nname = \"cpu\"\nthreads = 4096\n",
    );
    let n_processors = std::thread::available_parallelism().unwrap();
    sandbox.metainfer("adapt").code(101).stderr(&format!(
        "error: target `cpu` cannot be measured here: `threads = 4096` (metainfer.toml:4:11), \
         this machine has {n_processors}\n\
         help: set `threads` to {n_processors} or less in its `[[target]]`\n"
    ));
    let run = sandbox.metainfer("targets").code(0);
    assert!(
        run.stdout
            .contains("no: `threads = 4096` (metainfer.toml:4:11)"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_broken_profile_is_named_with_file_and_line() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "metainfer.toml",
        "[[target]]\nname = \"t\"\nprofile = \"p.toml\"\n",
    );
    let run = sandbox.metainfer("targets").code(101);
    assert!(
        run.stderr
            .contains("is neither a shipped profile nor a file")
    );
    assert!(
        run.stderr
            .contains("help: shipped profiles: host, portable")
    );
    sandbox.file("p.toml", "name = \"p\"\nl1d = 3\n");
    let run = sandbox.metainfer("targets").code(101);
    assert!(
        run.stderr
            .contains("cannot read `p.toml`\n  line 2: unknown field `l1d`"),
        "{}",
        run.stderr
    );
}
