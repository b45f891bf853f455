use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;
use crate::config::Objective;
use crate::device::Isa;
use crate::digest::Digest;
use crate::label::Stage;
use crate::space::{Candidate, Mapping, ParamValue, Variant};

fn digest(seed: u64) -> Digest {
    Digest::of_bytes("test", &seed.to_le_bytes())
}

fn subgraph(op: &str, layout: &str) -> LockedSubgraph {
    LockedSubgraph {
        op: op.to_owned(),
        structure: Digest::of_bytes("test", op.as_bytes()),
        candidate: Candidate {
            variant: Variant::default(),
            mapping: Mapping::default().with("layout", layout).with("oc_tile", 2),
        },
    }
}

fn deployment() -> Deployment {
    Deployment {
        file: digest(1),
        structure: digest(2),
        content: digest(3),
        profile: "host".to_owned(),
        isa: Isa::X86V4,
        processor: "Test CPU".to_owned(),
        device: digest(4),
        backend: "native".to_owned(),
        backend_version: "1".to_owned(),
        toolchain: "rustc 1.95.0".to_owned(),
        threads: 1,
        objective: Objective::Latency,
        evidence: Stage::Measured,
        evaluations: 97,
        is_interrupted: false,
        speed_up: Figure::new(2.31).unwrap(),
        latency_ms: Figure::new(0.0917).unwrap(),
        divergence: Figure::new(3.1e-7).unwrap(),
        footprint: None,
        accuracy: None,
        options: Mapping::default().with("opt-level", 3),
        subgraphs: vec![subgraph("conv_3x3 1→16 relu", "nchw16c")],
    }
}

fn key(model: &str, target: &str) -> DeploymentKey {
    DeploymentKey {
        model: model.to_owned(),
        target: target.to_owned(),
    }
}

fn lockfile(deployments: Vec<(DeploymentKey, Deployment)>) -> Lockfile {
    Lockfile {
        revision: 0,
        deployments: deployments.into_iter().collect(),
    }
}

fn sample() -> String {
    encode(&lockfile(vec![(key("fashion", "cpu"), deployment())])).unwrap()
}

#[test]
fn the_text_is_pinned() {
    insta::assert_snapshot!(sample());
}

#[test]
fn an_empty_lockfile_is_a_header_and_a_version() {
    let text = encode(&Lockfile::default()).unwrap();
    assert!(text.ends_with("version = 1\n"), "{text}");
    assert_eq!(decode(&text), Ok(Lockfile::default()));
}

/// Asserts the message of a text that cannot be decoded.
fn check_error(text: &str, expected: &str) -> LockError {
    let error = decode(text).unwrap_err();
    assert_eq!(error.to_string(), expected);
    error
}

#[test]
fn a_newer_version_is_refused_by_both_numbers_even_if_it_is_not_toml_as_we_know_it() {
    let expected = "version 2 is newer than 1, the newest that this release reads";
    let error = check_error("version = 2\n", expected);
    assert!(error.help().contains("update the tool"));
    check_error("version = 2\nnew = <syntax>\n", expected);
}

#[test]
fn a_newer_revision_is_read_and_not_written() {
    let text = sample()
        .replace("version = 1\n", "version = 1\nrevision = 7\n")
        .replace("threads = 1\n", "threads = 1\nphase-of-moon = \"full\"\n");
    let lockfile = decode(&text).unwrap();
    assert_eq!(lockfile.deployments[&key("fashion", "cpu")], deployment());
    assert_eq!(
        encode(&lockfile).unwrap_err().to_string(),
        "revision 7 is newer than 2, the newest that this release writes"
    );
}

fn sized() -> Deployment {
    Deployment {
        footprint: Some(Footprint {
            arena_bytes: 65_536,
            weight_bytes: 1_000,
            code_bytes: 20_000,
        }),
        ..deployment()
    }
}

#[test]
fn sizes_are_revision_1() {
    let text = encode(&lockfile(vec![
        (key("a", "cpu"), deployment()),
        (key("b", "cpu"), sized()),
    ]))
    .unwrap();
    assert!(text.contains("version = 1\nrevision = 1\n"), "{text}");
    let sizes =
        "divergence = 3.1e-7\narena-bytes = 65536\nweight-bytes = 1000\ncode-bytes = 20000\n";
    assert!(text.contains(sizes), "{text}");
    let lockfile = decode(&text).unwrap();
    assert_eq!(lockfile.revision, 1);
    assert_eq!(lockfile.deployments[&key("a", "cpu")], deployment());
    assert_eq!(lockfile.deployments[&key("b", "cpu")], sized());
    assert_eq!(encode(&lockfile).unwrap(), text);
    let older = text.replace("revision = 1\n", "");
    let error = decode(&older).unwrap_err().to_string();
    assert!(error.ends_with("unknown key `arena-bytes`"), "{error}");
    let partial = text.replace("code-bytes = 20000\n", "");
    let error = decode(&partial).unwrap_err().to_string();
    assert!(
        error.ends_with("`code-bytes` must be a whole number"),
        "{error}"
    );
}

#[test]
fn without_sizes_the_revision_stays_0() {
    assert!(!sample().contains("revision"));
    assert_eq!(decode(&sample()).unwrap().revision, 0);
}

#[test]
fn sizes_of_confirmed_choices_stay() {
    let padded = |deployment: Deployment| Deployment {
        footprint: deployment.footprint.map(|footprint| Footprint {
            code_bytes: footprint.code_bytes + 8,
            ..footprint
        }),
        ..deployment
    };
    let settled = |new: Deployment, old: &Deployment| new.settled(old, 0.03).footprint;
    assert_eq!(settled(padded(sized()), &sized()), sized().footprint);
    assert_eq!(settled(sized(), &deployment()), sized().footprint);
    let other = Deployment {
        options: Mapping::default().with("opt-level", 1),
        ..padded(sized())
    };
    assert_eq!(settled(other.clone(), &sized()), other.footprint);
    let newer = Deployment {
        toolchain: "rustc 2.0.0".to_owned(),
        ..padded(sized())
    };
    assert_eq!(settled(newer.clone(), &sized()), newer.footprint);
}

#[test]
fn merge_markers_are_named_with_the_way_out() {
    let text = sample().replace(
        "threads = 1\n",
        "<<<<<<< HEAD\nthreads = 1\n=======\nthreads = 2\n>>>>>>> theirs\n",
    );
    let error = decode(&text).unwrap_err();
    assert_eq!(error.to_string(), "line 18: unresolved merge conflict");
    assert!(error.help().contains("git checkout --ours metainfer.lock"));
}

#[test]
fn faults_are_named_with_their_line() {
    check_error("", "line 1: `version` must be a whole number");
    check_error("version = 1\nx = 1\n", "line 2: unknown key `x`");
    let text = sample();
    check_error(
        &text.replace("threads = 1", "threads = -1"),
        "line 18: `threads` must be a whole number",
    );
    check_error(
        &text.replace("speed-up = 2.31", "speed-up = nan"),
        "line 22: `speed-up` must be a number that is not negative",
    );
    check_error(
        &text.replace("op = \"conv", "opp = \"conv"),
        "line 28: unknown key `opp`",
    );
    check_error(
        &text.replace("isa = \"x86-64-v4\"\n", ""),
        "line 5: `isa` must be an instruction set",
    );
    check_error(
        &format!("{text}{}", text.split_once("version = 1\n").unwrap().1),
        "line 33: model `fashion` is locked twice for target `cpu`",
    );
    let error = decode("version = 1\nx = [").unwrap_err();
    assert!(
        matches!(error, LockError::Syntax { line: 2, .. }),
        "{error}"
    );
}

#[test]
fn settled_changes_no_byte_when_a_run_confirms_the_choices() {
    let old = deployment();
    let again = Deployment {
        speed_up: Figure::new(2.35).unwrap(),
        latency_ms: Figure::new(0.0925).unwrap(),
        divergence: Figure::new(4e-7).unwrap(),
        evaluations: 12,
        ..deployment()
    };
    assert_eq!(again.settled(&old, 0.03), old);
}

#[test]
fn settled_moves_what_left_the_noise_and_what_another_device_says() {
    let old = deployment();
    let faster = Deployment {
        latency_ms: Figure::new(0.08).unwrap(),
        evaluations: 12,
        subgraphs: vec![subgraph("conv_3x3 1→16 relu", "nhwc")],
        ..deployment()
    };
    assert_eq!(faster.clone().settled(&old, 0.03), faster);
    let elsewhere = Deployment {
        device: digest(9),
        latency_ms: Figure::new(0.0918).unwrap(),
        ..deployment()
    };
    assert_eq!(elsewhere.clone().settled(&old, 0.03), elsewhere);
}

#[test]
fn diff_shows_fields_and_choices() {
    let old = lockfile(vec![
        (key("a", "cpu"), deployment()),
        (key("b", "cpu"), deployment()),
    ]);
    let mut changed = deployment();
    changed.speed_up = Figure::new(2.5).unwrap();
    changed.subgraphs = vec![
        subgraph("conv_1x1 new", "nhwc"),
        subgraph("conv_3x3 1→16 relu", "nhwc"),
    ];
    let new = lockfile(vec![
        (key("a", "cpu"), changed),
        (key("c", "cpu"), deployment()),
    ]);

    let diff = Diff::new(&old, &new);
    let [a, b, c] = &diff.deployments[..] else {
        panic!("{diff:?}");
    };
    assert!(matches!(b.change, Change::Removed(_)));
    assert!(matches!(c.change, Change::Added(_)));
    let Change::Changed {
        fields,
        subgraphs,
        n_unchanged,
    } = &a.change
    else {
        panic!("{a:?}");
    };
    assert_eq!(*n_unchanged, 0);
    assert_eq!(fields.len(), 1);
    assert_eq!(fields[0].key, "speed-up");
    assert_eq!(
        (subgraphs[0].old_idx, subgraphs[0].new_idx),
        (None, Some(0))
    );
    assert_eq!(
        (subgraphs[1].old_idx, subgraphs[1].new_idx),
        (Some(0), Some(1))
    );
    assert_eq!(subgraphs[1].fields.len(), 1);
    assert_eq!(subgraphs[1].fields[0].key, "mapping.layout");
}

#[test]
fn diff_of_an_inserted_subgraph_is_one_subgraph() {
    let ops = ["a", "b", "a", "c", "b"];
    let subgraphs: Vec<_> = ops.map(|op| subgraph(op, "nhwc")).to_vec();
    let old = Deployment {
        subgraphs: subgraphs.clone(),
        ..deployment()
    };
    for position in 0..=subgraphs.len() {
        let mut new = old.clone();
        new.subgraphs.insert(position, subgraph("new", "nhwc"));
        let diff = Diff::new(
            &lockfile(vec![(key("m", "t"), old.clone())]),
            &lockfile(vec![(key("m", "t"), new)]),
        );
        let Change::Changed {
            subgraphs,
            n_unchanged,
            ..
        } = &diff.deployments[0].change
        else {
            panic!("{diff:?}");
        };
        assert_eq!(*n_unchanged, 5);
        assert_eq!(subgraphs.len(), 1);
        assert_eq!(subgraphs[0].new_idx, Some(position));
    }
}

fn current() -> Current {
    let deployment = deployment();
    Current {
        structure: deployment.structure,
        content: deployment.content,
        subgraphs: deployment.subgraphs.iter().map(|s| s.structure).collect(),
        profile: deployment.profile,
        isa: deployment.isa,
        processor: deployment.processor,
        device: deployment.device,
        backend: deployment.backend,
        backend_version: deployment.backend_version,
        threads: deployment.threads,
        objective: deployment.objective,
        basis: None,
    }
}

/// Asserts what is found, as sentences; stale ones end in `!`.
fn check_findings(current: &Current, expected: &[&str]) {
    let actual: Vec<String> = deployment()
        .compare(current)
        .iter()
        .map(|finding| format!("{finding}{}", if finding.is_stale() { "!" } else { "" }))
        .collect();
    assert_eq!(actual, expected);
}

#[test]
fn compare_says_what_is_stale() {
    check_findings(&current(), &[]);
    let structure = Current {
        structure: digest(9),
        content: digest(9),
        subgraphs: vec![digest(8), deployment().subgraphs[0].structure],
        ..current()
    };
    check_findings(
        &structure,
        &["structure changed, 1 of 2 subgraphs are new!"],
    );
    let weights = Current {
        content: digest(9),
        ..current()
    };
    check_findings(&weights, &["weights changed!"]);
    let settings = Current {
        backend_version: "2".to_owned(),
        profile: "x86-64-v3".to_owned(),
        device: digest(9),
        ..current()
    };
    check_findings(
        &settings,
        &[
            "`backend-version` changed from 1 to 2!",
            "`profile` changed from host to x86-64-v3!",
        ],
    );
}

#[test]
fn an_interrupted_search_is_stale_until_it_is_ended() {
    let interrupted = Deployment {
        is_interrupted: true,
        ..deployment()
    };
    assert_eq!(interrupted.compare(&current()), [Finding::Interrupted]);
    let ended = Deployment {
        evaluations: 300,
        ..deployment()
    };
    assert_eq!(ended.clone().settled(&interrupted, 0.03), ended);
}

#[test]
fn compare_notes_another_machine_and_does_not_call_it_stale() {
    let elsewhere = Current {
        device: digest(9),
        processor: "Other CPU".to_owned(),
        isa: Isa::X86V3,
        ..current()
    };
    check_findings(
        &elsewhere,
        &["locked on another machine, Test CPU (x86-64-v4); this one is Other CPU (x86-64-v3)"],
    );
}

prop_compose! {
    fn any_figure()(mantissa in 0.0..10.0f64, exponent in -12i32..9) -> Figure {
        Figure::new(mantissa * 10f64.powi(exponent)).unwrap()
    }
}

fn any_mapping() -> impl Strategy<Value = Mapping> {
    let value = prop_oneof![
        any::<i64>().prop_map(ParamValue::Int),
        any::<String>().prop_map(ParamValue::Word),
    ];
    btree_map("[a-z][a-z_-]{0,8}|\\PC{0,3}", value, 0..5).prop_map(Mapping)
}

prop_compose! {
    fn any_subgraph()(
        op in any::<String>(),
        structure in any::<u64>(),
        mapping in any_mapping(),
    ) -> LockedSubgraph {
        LockedSubgraph {
            op,
            structure: digest(structure),
            candidate: Candidate { variant: Variant::default(), mapping },
        }
    }
}

prop_compose! {
    fn any_deployment()(
        texts in prop::array::uniform4(any::<String>()),
        isa in prop::sample::select(Isa::ALL.to_vec()),
        counts in any::<(u32, u32)>(),
        figures in (any_figure(), any_figure(), any_figure()),
        evidence in prop::sample::select(vec![Stage::Measured, Stage::Simulated]),
        is_interrupted in any::<bool>(),
        options in any_mapping(),
        subgraphs in vec(any_subgraph(), 0..4),
    ) -> Deployment {
        let [profile, processor, backend, toolchain] = texts;
        Deployment {
            profile,
            isa,
            processor,
            backend,
            toolchain,
            threads: counts.0,
            evaluations: counts.1,
            evidence,
            is_interrupted,
            speed_up: figures.0,
            latency_ms: figures.1,
            divergence: figures.2,
            options,
            subgraphs,
            ..deployment()
        }
    }
}

fn any_deployments() -> impl Strategy<Value = Vec<(DeploymentKey, Deployment)>> {
    let key = ("[a-z]{1,3}", "[a-z]{1,3}").prop_map(|(model, target)| key(&model, &target));
    btree_map(key, any_deployment(), 0..4).prop_map(|map| map.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn decode_undoes_encode_and_encode_is_canonical(deployments in any_deployments()) {
        let lockfile = lockfile(deployments);
        let text = encode(&lockfile).unwrap();
        let decoded = decode(&text).unwrap();
        prop_assert_eq!(&decoded, &lockfile);
        prop_assert_eq!(encode(&decoded).unwrap(), text);
        prop_assert!(Diff::new(&decoded, &lockfile).is_empty());
    }

    #[test]
    fn the_order_of_entries_in_the_text_never_matters(deployments in any_deployments()) {
        let single = |entry: &(DeploymentKey, Deployment)| {
            let text = encode(&lockfile(vec![entry.clone()])).unwrap();
            text.split_once("version = 1\n").unwrap().1.to_owned()
        };
        let backwards: String = deployments.iter().rev().map(single).collect();
        let decoded = decode(&format!("version = 1\n{backwards}")).unwrap();
        prop_assert_eq!(decoded, lockfile(deployments));
    }

    #[test]
    fn changing_one_model_touches_no_line_of_another(
        mut deployments in any_deployments(),
        changed in any_deployment(),
    ) {
        let entry = (key("mmmm", "t"), deployment());
        deployments.push(entry);
        let before = encode(&lockfile(deployments.clone())).unwrap();
        if let Some(last) = deployments.last_mut() {
            last.1 = changed;
        }
        let after = encode(&lockfile(deployments)).unwrap();
        let others = |text: &str| -> Vec<String> {
            text.split("\n[[deployment]]\n")
                .filter(|part| !part.starts_with("model = \"mmmm\""))
                .map(|part| part.trim_end().to_owned())
                .collect()
        };
        prop_assert_eq!(others(&before), others(&after));
    }

    #[test]
    fn decode_never_panics(text in "(version|deployment|\\[|\\]|=|[0-9]|\"|\n|\\PC){0,60}") {
        let _ = decode(&text);
    }
}
