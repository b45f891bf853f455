//! Variants: searched with the mappings, within limits on accuracy, and deployed.

use std::path::Path;

use metainfer::onnx::{self, LoadOptions};

use crate::support::Sandbox;

/// The fixture with its samples and some limits.
fn sandbox(settings: &str) -> Sandbox {
    let sandbox = Sandbox::with_fashion();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fashion/data");
    for file in ["calib.npz", "val.npz"] {
        sandbox.copy(&data.join(file), file);
    }
    let config = sandbox.read("metainfer.toml");
    let samples = "preprocess = { mean = [0.286], std = [0.353] }\ncalibration = \"calib.npz\"\n";
    sandbox.file("metainfer.toml", &format!("{config}{samples}{settings}"));
    sandbox
}

/// Returns the value of a key of the lockfile, as it is written.
fn locked(sandbox: &Sandbox, key: &str) -> Option<String> {
    let lock = sandbox.read("metainfer.lock");
    let mut values = lock
        .lines()
        .filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
    values.next().map(str::to_owned)
}

#[test]
fn integers_are_faster_within_the_limits_and_are_locked_checked_and_deployed() {
    let sandbox =
        sandbox("validation = \"val.npz\"\naccept = { max-kl = 0.01, max-top1-drop = 0.01 }\n");
    let adapt = "adapt --max-evaluations 6 --message-format json";
    let messages = sandbox.metainfer(adapt).code(0).messages();
    let of = |reason: &str| {
        messages
            .iter()
            .filter(|m| m["reason"] == reason)
            .collect::<Vec<_>>()
    };
    let studied = of("variants-studied");
    assert_eq!(studied[0]["n_variable"], 19);
    let checked = of("accuracy-checked");
    let checked = checked.last().unwrap();
    assert_eq!(
        (checked["n_samples"].as_u64(), checked["missed"].as_str()),
        (Some(1000), Some(""))
    );
    assert!(checked["kl"].as_f64().unwrap() <= 0.01);
    let spent = of("adapt-finished")[0]["n_evaluations"].as_u64().unwrap();
    assert!(spent <= 6, "{spent}");

    let lock = sandbox.read("metainfer.lock");
    assert!(lock.contains("\nvariants.s0 = \"int8\"\n"), "{lock}");
    assert!(lock.contains("\nvariant = \"int8\"\n"), "{lock}");
    assert_eq!(locked(&sandbox, "gate.samples").as_deref(), Some("1000"));
    let [lost, gained]: [i64; 2] =
        ["gate.lost", "gate.gained"].map(|key| locked(&sandbox, key).unwrap().parse().unwrap());
    assert!(lost - gained <= 10, "{lost} lost, {gained} gained");

    // Nothing changes as long as nothing is changed.
    sandbox.metainfer("check").code(0);
    sandbox.metainfer("adapt --locked").code(0);
    assert_eq!(sandbox.read("metainfer.lock"), lock);
    // The same variant is made again for its crate.
    sandbox.metainfer("deploy --out out").code(0);
    assert!(sandbox.path("out/Cargo.toml").exists());
    // It is written as ONNX for others.
    sandbox.metainfer("deploy --onnx --out out.onnx").code(0);
    let exported = onnx::load(&sandbox.path("out.onnx"), &LoadOptions::default()).unwrap();
    let n_rounded = exported
        .source
        .nodes
        .iter()
        .filter(|n| n.op == "QuantizeLinear")
        .count();
    assert!(n_rounded >= 18, "{n_rounded}");

    // Other samples, other limits: the lock is stale.
    let config = sandbox.read("metainfer.toml");
    sandbox.file(
        "metainfer.toml",
        &config.replace("max-kl = 0.01", "max-kl = 0.02"),
    );
    let run = sandbox.metainfer("check").code(100);
    assert!(run.stdout.contains("`accept` changed"), "{}", run.stdout);
    sandbox.file(
        "metainfer.toml",
        &config
            .replace("calib.npz", "val.npz")
            .replace("validation = \"val.npz\"\n", "")
            .replace(", max-top1-drop = 0.01", ""),
    );
    let run = sandbox.metainfer("deploy --out out").code(100);
    assert!(
        run.stderr.contains("`calibration` changed"),
        "{}",
        run.stderr
    );
}

#[test]
fn limits_that_nothing_meets_keep_the_model_as_it_is() {
    let sandbox = sandbox("accept = { max-l2 = 1e-9 }\n");
    sandbox.metainfer("adapt --max-evaluations 3").code(0);
    let lock = sandbox.read("metainfer.lock");
    assert!(
        !lock.contains("int8") && lock.contains("accept = \"max-l2 0.000000001\""),
        "{lock}"
    );
}

#[test]
fn a_latency_that_nothing_meets_is_an_answer_and_nothing_is_locked() {
    let sandbox = sandbox("accept = { max-latency-ms = 1e-6 }\n");
    let run = sandbox.metainfer("adapt --max-evaluations 3").code(100);
    assert!(run.stderr.contains("limit 0.000001"), "{}", run.stderr);
    assert!(!sandbox.path("metainfer.lock").exists());
}

#[test]
fn samples_that_are_fitted_to_are_not_checked_on() {
    let sandbox = sandbox("validation = \"calib.npz\"\n");
    let run = sandbox.metainfer("adapt").code(101);
    let expected = "what is fitted to and what is checked on must differ";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
    assert!(
        run.stderr.contains("see `calibration` and `validation`"),
        "{}",
        run.stderr
    );
}
