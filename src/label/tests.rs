use proptest::prelude::*;

use super::arbitrary::{digest, evaluation, label, labels, task};
use super::*;

const LABEL_BYTES: &str = r#"{"version":1,"task":{"structure":"9368e3e400868c63def620c8e1c193826a874a0802284aefa3e8e6e4c1f68144","device":"160bd65478a4e9a550ccba81621eaf3d73bfccc7424713442c280c469a2f8cb1","backend":"native","backend_version":"1","threads":1},"candidate":{"variant":{"precision":"f32"},"mapping":{"layout":"nchw16c","tile":16}},"stage":"measured","outcome":"ok","message":"","measurement":{"latency":{"p25_ns":100.5,"p50_ns":101.0,"dispersion":0.009900990099009901},"samples_ns":[102,100,101],"clock":"tsc","context":"chain"},"energy_mj":null,"divergence":2.5e-7,"content":"d258ee1e2ed94bea5348308db2ea9fe5a1459e65c020dd52215cec75deb3576b","cost":{"compile_ns":60000000,"measure_ns":1000000},"provenance":{"tool":"0.1.0","toolchain":"rustc 1.95.0","artifact":"0e3670a496125dab879cfe775261274c74baffcd7bef2efff022b3cbfead745b","time_ms":1750000000000}}"#;

const EVALUATION_BYTES: &str = r#"{"version":1,"adaptation":"9368e3e400868c63def620c8e1c193826a874a0802284aefa3e8e6e4c1f68144","artifact":"0e3670a496125dab879cfe775261274c74baffcd7bef2efff022b3cbfead745b","purpose":"screening","outcome":"ok","message":"","run_p25_ns":1500000.0,"ratio_to_baseline":0.75,"n_labels":3,"cost":{"compile_ns":0,"measure_ns":0},"time_ms":100}"#;

const DIGESTS: [&str; 3] = [
    "1f23a05ae41880e203cc4289226cb599394d285e7375fe7b6056cbfc808d3ba9",
    "d1f5240f7e084a03b295b1f88782076dfe08e7fdd4ab6f870dd23f9b85439cbb",
    "3f7ac94735deac863b770318c4306ed532850d26a6a39b024af3156978531707",
];

#[test]
fn the_canonical_bytes_and_ids_are_pinned() {
    let label = label(1, 100);
    let bytes = String::from_utf8(label.encode()).unwrap();
    assert_eq!(bytes, LABEL_BYTES);
    let evaluation = evaluation(1, 100);
    let bytes = String::from_utf8(evaluation.encode()).unwrap();
    assert_eq!(bytes, EVALUATION_BYTES);
    let digests = [label.id().0, evaluation.id().0, task(1).digest()].map(|id| id.to_string());
    assert_eq!(digests, DIGESTS);
}

#[test]
fn an_evaluation_round_trips() {
    let evaluation = evaluation(1, 100);
    assert_eq!(
        Evaluation::decode(&evaluation.encode()).unwrap(),
        evaluation
    );
}

#[test]
fn a_newer_version_is_named_beside_the_one_that_is_known() {
    let text = String::from_utf8(label(1, 100).encode()).unwrap();
    let newer = text.replacen("\"version\":1", "\"version\":7", 1);
    let error = Label::decode(newer.as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the label has version 7, this release reads up to 1"
    );
    let unknown_shape = b"{\"version\":2,\"all\":\"new\"}";
    assert!(matches!(
        Label::decode(unknown_shape),
        Err(DecodeError::Newer { found: 2, .. })
    ));
}

#[test]
fn bytes_that_are_not_canonical_are_refused() {
    let text = String::from_utf8(label(1, 100).encode()).unwrap();
    let spaced = text.replacen(':', ": ", 1);
    let extended = text.replacen("{\"version\":1,", "{\"version\":1,\"x\":0,", 1);
    let reordered = format!(
        "{},\"version\":1}}",
        text[..text.len() - 1].replacen("\"version\":1,", "", 1)
    );
    for bytes in [spaced, extended, reordered] {
        assert!(
            matches!(
                Label::decode(bytes.as_bytes()),
                Err(DecodeError::NotCanonical { .. })
            ),
            "{bytes}"
        );
    }
    for bytes in [&text[..text.len() / 2], "", "[]", "{\"version\":1}"] {
        assert!(
            matches!(
                Label::decode(bytes.as_bytes()),
                Err(DecodeError::Malformed { .. })
            ),
            "{bytes}"
        );
    }
}

#[test]
fn figures_that_cannot_be_true_are_refused() {
    let check = |change: fn(&mut Label), expected: Implausible| {
        let mut label = label(1, 100);
        label.check().unwrap();
        change(&mut label);
        assert_eq!(label.check(), Err(expected));
    };
    check(
        |l| l.divergence = Some(f64::NAN),
        Implausible::OutOfRange("divergence"),
    );
    check(
        |l| l.divergence = Some(-1.0),
        Implausible::OutOfRange("divergence"),
    );
    check(
        |l| l.energy_mj = Some((0.0, "rapl".to_owned())),
        Implausible::OutOfRange("energy_mj"),
    );
    check(
        |l| measurement(l).latency.p25_ns = 0.0,
        Implausible::OutOfRange("latency"),
    );
    check(
        |l| measurement(l).latency.p25_ns *= 0.5,
        Implausible::Quantiles,
    );
    check(
        |l| measurement(l).samples_ns.clear(),
        Implausible::Missing("samples_ns"),
    );
    check(
        |l| measurement(l).samples_ns.push(u64::MAX),
        Implausible::OutOfRange("samples_ns"),
    );
    check(
        |l| l.measurement = None,
        Implausible::Missing("measurement"),
    );
    check(
        |l| l.outcome = Outcome::CompileError,
        Implausible::Unexpected("measurement"),
    );
    check(
        |l| l.message = "odd".to_owned(),
        Implausible::Unexpected("message"),
    );
    check(
        |l| l.provenance.time_ms = u64::MAX,
        Implausible::OutOfRange("provenance.time_ms"),
    );
    check(
        |l| l.task.threads = 0,
        Implausible::OutOfRange("task.threads"),
    );
    check(
        |l| l.task.backend.clear(),
        Implausible::Length("task.backend"),
    );
}

fn measurement(label: &mut Label) -> &mut Measurement {
    label.measurement.as_mut().unwrap()
}

#[test]
fn a_simulated_label_needs_no_samples() {
    let mut label = label(1, 100);
    label.stage = Stage::Simulated;
    label.measurement = Some(Measurement {
        latency: Latency::exact(1234.5),
        samples_ns: Vec::new(),
        clock: Clock::Wall,
        context: Context::Alone,
    });
    assert_eq!(Label::decode(&label.encode()).unwrap(), label);
}

#[test]
fn an_evaluation_that_went_well_has_a_latency() {
    let mut evaluation = evaluation(1, 100);
    evaluation.run_p25_ns = None;
    assert_eq!(evaluation.check(), Err(Implausible::Missing("run_p25_ns")));
    evaluation.outcome = Outcome::RunError;
    assert_eq!(evaluation.check(), Ok(()));
    evaluation.ratio_to_baseline = Some(f64::INFINITY);
    assert_eq!(
        evaluation.check(),
        Err(Implausible::OutOfRange("ratio_to_baseline"))
    );
}

#[test]
fn a_shortened_message_ends_between_characters() {
    assert_eq!(shorten("short"), "short");
    let long = "\u{e9}".repeat(MAX_MESSAGE_BYTES);
    let odd = format!("x{long}");
    assert!(long.starts_with(shorten(&long)) && shorten(&long).len() == MAX_MESSAGE_BYTES);
    assert_eq!(shorten(&odd).len(), MAX_MESSAGE_BYTES - 1);
}

#[test]
fn an_id_differs_when_any_field_does() {
    let changes: [fn(&mut Label); 16] = [
        |_| {},
        |l| l.task.structure = digest(77),
        |l| l.task.device = digest(77),
        |l| l.task.backend.push('x'),
        |l| l.task.backend_version.push('x'),
        |l| l.task.threads = 2,
        |l| l.candidate.mapping = l.candidate.mapping.clone().with("tile", 17),
        |l| l.candidate.mapping = l.candidate.mapping.clone().with("tile", "16"),
        |l| l.stage = Stage::Simulated,
        |l| l.outcome = Outcome::Abandoned,
        |l| l.energy_mj = Some((1.0, "model".to_owned())),
        |l| l.divergence = Some(0.0),
        |l| l.content = None,
        |l| l.cost.measure_ns += 1,
        |l| l.provenance.artifact = None,
        |l| l.provenance.time_ms += 1,
    ];
    let mut ids: Vec<_> = changes
        .iter()
        .map(|change| {
            let mut label = label(1, 100);
            change(&mut label);
            label.id()
        })
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), changes.len());
}

#[test]
fn quantiles_interpolate() {
    assert_eq!(quantile(&[], 0.5), None);
    assert_eq!(quantile(&[7], 0.25), Some(7.0));
    assert_eq!(quantile(&[1, 2, 3, 4, 5], 0.25), Some(2.0));
    assert_eq!(quantile(&[1, 2, 3, 4], 0.5), Some(2.5));
    assert_eq!(quantile(&[1, 2, 3, 4], 2.0), Some(4.0));
    let latency = Latency::of(&[40, 10, 20, 30, 50]).unwrap();
    assert_eq!((latency.p25_ns, latency.p50_ns), (20.0, 30.0));
    assert!((latency.dispersion - 2.0 / 3.0).abs() < 1e-12);
    assert_eq!(Latency::of(&[]), None);
    assert!(Latency::of(&[0, 0]).unwrap().dispersion.abs() < 1e-12);
}

proptest! {
    #[test]
    fn decode_of_encode_is_identity_and_canonical(label in labels()) {
        let bytes = label.encode();
        let decoded = Label::decode(&bytes).unwrap();
        prop_assert_eq!(&decoded, &label);
        prop_assert_eq!(decoded.encode(), bytes);
    }

    #[test]
    fn ids_are_equal_exactly_when_labels_are(lhs in labels(), rhs in labels()) {
        prop_assert_eq!(lhs == rhs, lhs.id() == rhs.id());
        prop_assert_eq!(lhs.clone().id(), lhs.id());
    }

    #[test]
    fn decode_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let _ = Label::decode(&bytes);
        let mut damaged = label(1, 100).encode();
        let position = at.index(damaged.len());
        damaged[position] = byte;
        if let Ok(decoded) = Label::decode(&damaged) {
            prop_assert_eq!(decoded.encode(), damaged);
        }
    }

    #[test]
    fn a_latency_ignores_the_order_of_samples(mut samples in proptest::collection::vec(1..1_000_000_u64, 1..50)) {
        let latency = Latency::of(&samples).unwrap();
        samples.reverse();
        prop_assert_eq!(Latency::of(&samples), Some(latency));
        prop_assert!(latency.p25_ns <= latency.p50_ns && latency.dispersion >= 0.0);
    }
}
