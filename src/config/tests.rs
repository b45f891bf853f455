use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::graph::Shape;

fn layer(text: &str) -> Layer {
    let parsed = parse(Path::new("metainfer.toml"), text, &[]);
    assert_eq!(parsed.diagnostics, []);
    Layer {
        package: None,
        dir: PathBuf::from("/w"),
        config: parsed.config.unwrap(),
        onnx_files: Vec::new(),
    }
}

fn package(name: &str, text: &str) -> Layer {
    Layer {
        package: Some(name.to_owned()),
        dir: PathBuf::from("/w").join(name),
        ..layer(text)
    }
}

fn resolve(layers: &[Layer]) -> Result<Settings, SettingsError> {
    Settings::resolve(layers, Overrides::default())
}

/// Asserts the findings of a text as `line:column code message (help)`.
fn check_findings(text: &str, expected: &[&str]) {
    let parsed = parse(Path::new("metainfer.toml"), text, &[]);
    let actual: Vec<String> = parsed
        .diagnostics
        .iter()
        .map(|d| {
            let help = d.help.as_deref().unwrap_or("-");
            let Place { line, column, .. } = d.place;
            format!("{line}:{column} {} {} ({help})", d.code, d.message)
        })
        .collect();
    assert_eq!(actual, expected, "{text}");
}

#[test]
fn every_documented_key_is_read() {
    let layer = layer(
        r#"
        model-dir = "models"
        [[model]]
        name = "a"
        path = "models/a.onnx"
        inputs = { x = [1, 3, 224, 224] }
        objective = "latency"
        calibration = "data/calib.npz"
        validation = "data/val"
        labels = "classes"
        preprocess = { scale = 0.5, mean = [0.1, 0.2, 0.3], std = [2], channels = "bgr", resize = "crop" }
        accept = { max-kl = 0.02, max-l2 = 0.1, max-top1-drop = 0.01, max-latency-ms = 5 }
        [[target]]
        name = "cpu"
        backend = "native"
        profile = "x86-64-v3"
        threads = 1
        [search]
        max-evaluations = 7
        min-gain = 0.5
        seed = 9
        max-time = "90s"
        max-compile-time = "2h 30m"
        max-disk = "2 GiB"
        worker-memory = "512 MiB"
        compile-timeout = "20s"
        trial-timeout = "5s"
        [cache]
        mode = "off"
        "#,
    );
    let settings = resolve(&[layer]).unwrap();
    let model = &settings.models[0];
    assert_eq!(model.path, Path::new("/w/models/a.onnx"));
    assert_eq!(model.inputs["x"], Shape::from([1, 3, 224, 224]));
    let samples = SampleSettings {
        calibration: Some(PathBuf::from("/w/data/calib.npz")),
        validation: Some(PathBuf::from("/w/data/val")),
        labels: "classes".to_owned(),
        preprocess: Preprocess {
            scale: 0.5,
            mean: vec![0.1, 0.2, 0.3],
            std: vec![2.0],
            channels: Channels::Bgr,
            resize: Resize::Crop,
        },
    };
    assert_eq!(model.samples, samples);
    let accept = "max-kl 0.02, max-l2 0.1, max-top1-drop 0.01, max-latency-ms 5";
    assert_eq!(model.accept.to_string(), accept);
    assert_eq!(settings.targets[0].profile, "x86-64-v3");
    let expected = SearchSettings {
        max_evaluations: 7,
        min_gain: 0.5,
        seed: 9,
    };
    assert_eq!(settings.search, expected);
    let limits = LimitSettings {
        max_time: Some(Duration::from_secs(90)),
        max_compile_time: Some(Duration::from_mins(150)),
        max_disk: Size(2 << 30),
        worker_memory: Some(Size(512 << 20)),
    };
    assert_eq!(settings.limits, limits);
    let timeouts = TimeoutSettings {
        compile_timeout: Duration::from_secs(20),
        trial_timeout: Duration::from_secs(5),
    };
    assert_eq!(settings.timeouts, timeouts);
}

#[test]
fn an_unknown_key_is_a_warning_with_its_place_and_the_nearest_key() {
    check_findings(
        "[search]\nmax-evals = 3\nseed = 1\n",
        &[
            "2:1 unknown-key unknown key `search.max-evals` (known keys: max-evaluations, min-gain, seed, max-time, max-compile-time, max-disk, worker-memory, compile-timeout, trial-timeout)",
        ],
    );
    check_findings(
        "[search]\n  sede = 3\n[[modle]]\nname = \"a\"\n",
        &[
            "2:3 unknown-key unknown key `search.sede` (did you mean `seed`?)",
            "3:3 unknown-key unknown key `modle` (did you mean `model`?)",
        ],
    );
}

#[test]
fn a_wrong_value_is_an_error_with_its_place() {
    check_findings(
        "model-dir = 3\n[search]\nmax-evaluations = 0\nmin-gain = 1.5\nseed = -1\n",
        &[
            "1:13 wrong-value `model-dir` must be a string that is not empty (-)",
            "3:19 wrong-value `search.max-evaluations` must be an integer from 1 up (-)",
            "4:12 wrong-value `search.min-gain` must be a number from 0 to below 1 (-)",
            "5:8 wrong-value `search.seed` must be an integer from 0 up (-)",
        ],
    );
    check_findings(
        "[search]\nmax-time = 30\nmax-compile-time = \"much\"\n",
        &[
            "2:12 wrong-value `search.max-time` must be a span of time such as \"90s\" or \"30m\" (-)",
            "3:20 wrong-value `search.max-compile-time` must be a span of time such as \"90s\" or \"30m\" (-)",
        ],
    );
    check_findings(
        "[search]\ncompile-timeout = \"0s\"\ntrial-timeout = 5\n",
        &[
            "2:19 wrong-value `search.compile-timeout` must be 1s or more (-)",
            "3:17 wrong-value `search.trial-timeout` must be a span of time such as \"90s\" or \"30m\" (-)",
        ],
    );
    check_findings(
        "[search]\nmax-disk = 30\nworker-memory = \"2 GB\"\n",
        &[
            "2:12 wrong-value `search.max-disk` must be a size such as `512 MiB` or `4 GiB` (-)",
            "3:17 wrong-value `search.worker-memory` must be a size such as `512 MiB` or `4 GiB` (-)",
        ],
    );
    check_findings(
        "[[model]]\nname = \"a/b\"\n[[model]]\nname = \"c\"\ninputs = { x = [1, -3] }\n",
        &[
            "2:8 wrong-value `model.name` must be letters, digits, `-`, `_` and `.`, not `a/b` (-)",
            "5:16 wrong-value `model.inputs.x` must be a list of dimensions such as [1, 3, 224, 224] (-)",
        ],
    );
    check_findings(
        "[[target]]\nname = \"t\"\nbackend = \"natvie\"\n",
        &["3:11 wrong-value `target.backend` must be `native` (did you mean `native`?)"],
    );
    check_findings(
        "[[target]]\nprofile = \"host\"\n",
        &["2:1 missing-key a `[[target]]` needs a `name` (-)"],
    );
    check_findings(
        "[model]\nname = \"a\"\n",
        &["1:1 wrong-value `model` must be tables, each headed `[[model]]` (-)"],
    );
    check_findings(
        "x =\n",
        &[
            "1:4 invalid-toml not valid TOML: string values must be quoted, expected literal string (-)",
        ],
    );
}

#[test]
fn samples_and_limits_are_checked_and_refined_key_by_key() {
    check_findings(
        "[[model]]\nname = \"a\"\naccept = { max-kl = -1, max-top1-drop = 1 }\n\
         preprocess = { scale = 0, mean = [-inf], std = [0], channels = \"grey\" }\n",
        &[
            "3:21 wrong-value `model.accept.max-kl` must be a number from 0 up (-)",
            "3:41 wrong-value `model.accept.max-top1-drop` must be a number from 0 to below 1 (-)",
            "4:24 wrong-value `model.preprocess.scale` must be a number from 0.000000001 to below \
             1000000000 (-)",
            "4:34 wrong-value `model.preprocess.mean` must be a list of numbers from -1000000000 to \
             below 1000000000, one or one for each channel (-)",
            "4:48 wrong-value `model.preprocess.std` must be a list of numbers from 0.000000001 to \
             below 1000000000, one or one for each channel (-)",
            "4:64 wrong-value `model.preprocess.channels` must be `rgb` or `bgr` or `gray` \
             (did you mean `gray`?)",
        ],
    );
    let entry = |settings: &str| layer(&format!("[[model]]\nname = \"a\"\n{settings}\n"));
    let models = resolve(&[
        entry(
            "path = \"a.onnx\"\ncalibration = \"c.npz\"\npreprocess = { std = [2] }\n\
             accept = { max-kl = 0.1, max-l2 = 0.2 }",
        ),
        entry("preprocess = { mean = [3] }\naccept = { max-kl = 0.3 }"),
    ]);
    let model = models.unwrap().models.remove(0);
    assert_eq!(model.samples.calibration, Some(PathBuf::from("/w/c.npz")));
    let Preprocess { mean, std, .. } = model.samples.preprocess;
    assert_eq!((mean, std), (vec![3.0], vec![2.0]));
    assert_eq!(model.accept.to_string(), "max-kl 0.3, max-l2 0.2");
}

#[test]
fn keys_without_effect_are_said_to_have_none() {
    check_findings(
        "[[model]]\nname = \"a\"\naccept = { max-energy-mj = 3 }\n",
        &[
            "3:12 no-effect `model.accept.max-energy-mj` is not supported by this release and has \
             no effect (energy is not measured yet)",
        ],
    );
    check_findings(
        "[cache]\nurl = \"https://x\"\n",
        &[
            "2:1 no-effect `cache.url` is not supported by this release and has no effect \
           (labels are kept in the user's data directory)",
        ],
    );
}

#[test]
fn metadata_tables_of_a_manifest_are_read_with_places_in_it() {
    let text = "[package]\nname = \"p\"\n[package.metadata.metainfer]\nmodle-dir = \"m\"\n";
    let table = ["package", "metadata", "metainfer"];
    let parsed = parse(Path::new("Cargo.toml"), text, &table);
    assert_eq!(parsed.diagnostics[0].place.to_string(), "Cargo.toml:4:1");
    let none = parse(Path::new("Cargo.toml"), text, &["workspace", "metadata"]);
    assert_eq!(none, Parsed::default());
}

#[test]
fn threads_are_taken_over_with_their_place() {
    let text = "[[target]]\nname = \"cpu\"\nthreads = 3\n";
    let target = resolve(&[layer(text)]).unwrap().targets.remove(0);
    assert_eq!(target.threads, 3);
    assert_eq!(
        target.threads_place.unwrap().to_string(),
        "metainfer.toml:3:11"
    );
    let parsed = parse(
        Path::new("metainfer.toml"),
        "[[target]]\nname = \"t\"\nthreads = 0\n",
        &[],
    );
    let message = &parsed.diagnostics[0].message;
    assert_eq!(message, "`target.threads` must be an integer from 1 up");
}

#[test]
fn without_a_target_there_is_one_named_cpu() {
    let settings = resolve(&[]).unwrap();
    let [target] = &settings.targets[..] else {
        panic!("{:?}", settings.targets);
    };
    assert_eq!(target.name, "cpu");
    assert_eq!(target.backend, "native");
    assert_eq!(target.profile, "host");
    assert_eq!(target.threads, 1);
}

#[test]
fn files_of_the_model_dir_are_models_by_their_stem_and_entries_refine_them() {
    let mut layer = layer("[[model]]\nname = \"b\"\ninputs = { x = [1] }\n");
    layer.onnx_files = ["/w/m/b.onnx", "/w/m/a.onnx"].map(PathBuf::from).to_vec();
    let models = resolve(&[layer]).unwrap().models;
    let names: Vec<_> = models.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(models[1].path, Path::new("/w/m/b.onnx"));
    assert_eq!(models[1].inputs["x"], Shape::from([1]));
}

#[test]
fn an_entry_with_the_path_of_a_file_renames_it() {
    let mut layer = layer("[[model]]\nname = \"net\"\npath = \"m/a b.onnx\"\n");
    layer.onnx_files = vec![PathBuf::from("/w/m/a b.onnx")];
    let models = resolve(&[layer]).unwrap().models;
    assert_eq!(models.len(), 1);
    assert_eq!(models[0].name, "net");
}

#[test]
fn duplicate_names_are_errors_that_name_both_places() {
    let twice =
        layer("[[model]]\nname = \"a\"\npath = \"x\"\n[[model]]\nname = \"a\"\npath = \"y\"\n");
    assert_eq!(
        resolve(&[twice]).unwrap_err().to_string(),
        "two models are named `a`: metainfer.toml:2:1 and metainfer.toml:5:1"
    );
    let entry = "[[model]]\nname = \"a\"\npath = \"x\"\n";
    assert!(matches!(
        resolve(&[package("p", entry), package("q", entry)]),
        Err(SettingsError::Duplicate { what: "model", .. })
    ));
    let targets = layer("[[target]]\nname = \"t\"\n[[target]]\nname = \"t\"\n");
    assert!(matches!(
        resolve(&[targets]),
        Err(SettingsError::Duplicate { what: "target", .. })
    ));
}

#[test]
fn an_entry_without_a_file_is_an_error() {
    let error = resolve(&[layer("[[model]]\nname = \"a\"\n")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "metainfer.toml:2:1: model `a` has no file: `path` is not given and no file of \
         `model-dir` is named `a.onnx`"
    );
}

#[test]
fn a_file_name_that_is_no_model_name_is_an_error() {
    let mut layer = layer("");
    layer.onnx_files = vec![PathBuf::from("/w/m/a b.onnx")];
    assert!(matches!(
        resolve(&[layer]),
        Err(SettingsError::FileName { .. })
    ));
}

#[test]
fn later_layers_win_and_flags_win_over_all() {
    let layers = [
        layer(
            "[search]\nmax-evaluations = 1\nseed = 1\nmin-gain = 0.1\nmax-time = \"1m\"\ntrial-timeout = \"7s\"\n",
        ),
        package(
            "p",
            "[search]\nmax-evaluations = 2\nseed = 2\nmax-compile-time = \"2m\"\n\
             max-disk = \"1 GiB\"\n",
        ),
    ];
    let overrides = Overrides {
        max_evaluations: Some(3),
        max_compile_time: Some(Duration::from_mins(3)),
        worker_memory: Some(Size(1 << 20)),
        ..Overrides::default()
    };
    let settings = Settings::resolve(&layers, overrides).unwrap();
    assert_eq!(settings.timeouts.trial_timeout, Duration::from_secs(7));
    assert_eq!(settings.timeouts.compile_timeout, Duration::from_mins(2));
    let Settings { search, limits, .. } = settings;
    assert_eq!(limits.max_time, Some(Duration::from_mins(1)));
    assert_eq!(limits.max_compile_time, Some(Duration::from_mins(3)));
    assert_eq!(limits.max_disk, Size(1 << 30));
    assert_eq!(limits.worker_memory, Some(Size(1 << 20)));
    assert_eq!(search.max_evaluations, 3);
    assert_eq!(search.seed, 2);
    assert!((search.min_gain - 0.1).abs() < 1e-12);
}

#[test]
fn packages_that_disagree_are_an_error_unless_one_is_selected() {
    let first = package("p", "[search]\nseed = 1\n");
    let second = package("q", "[search]\nseed = 2\n");
    let error = resolve(&[first.clone(), second]).unwrap_err().to_string();
    assert_eq!(error, "packages `p` and `q` disagree on `search.seed`");
    let same = package("q", "[search]\nseed = 1\n");
    assert_eq!(resolve(&[first, same]).unwrap().search.seed, 1);
}

#[test]
fn a_target_is_refined_key_by_key() {
    let layers = [
        layer("[[target]]\nname = \"t\"\nprofile = \"p.toml\"\n"),
        package("p", "[[target]]\nname = \"t\"\nthreads = 1\n"),
    ];
    let target = &resolve(&layers).unwrap().targets[0];
    assert_eq!(target.profile, "p.toml");
    assert_eq!(target.dir, Path::new("/w"));
}
