use super::direction;
use super::rules::{check, effects, file_rules, is_test_module, mentions, no_private_paths};
use super::source::{Finding, Source};
use crate::shell;

const LIB: &str = "\
//! Words that are no table:  2 or 3  things.
//! 5  main  cli         wires everything
//! 2  store  device::probe  effects
//! 1  search  lock      pure logic
//! 0  device  fsx  label   vocabulary
";

fn source(path: &str, text: &str) -> Source {
    Source {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

fn messages(findings: &[Finding]) -> Vec<(usize, &str)> {
    findings
        .iter()
        .map(|finding| (finding.line, finding.message.as_str()))
        .collect()
}

#[track_caller]
fn check_direction(files: &[(&str, &str)], expected: &[(usize, &str)]) {
    let sources: Vec<_> = files
        .iter()
        .map(|(path, text)| source(path, text))
        .collect();
    let findings = direction::check(&direction::parse_lines(LIB), &sources);
    assert_eq!(messages(&findings), expected);
}

#[test]
fn table_of_lib_docs_is_read() {
    let lines = direction::parse_lines(LIB);
    assert_eq!(lines.get("device::probe"), Some(&2));
    assert_eq!(lines.get("label"), Some(&0));
    assert_eq!(lines.len(), 9, "{lines:?}");
}

#[test]
fn downward_uses_are_fine() {
    let text = "use crate::label::Label;\nuse crate::device::{Isa, Profile};\n";
    check_direction(
        &[("src/search/mod.rs", text), ("src/lib.rs", "pub mod cli;")],
        &[],
    );
}

#[test]
fn upward_use_is_found_where_it_is() {
    let upward = "`search` (line 1) must not use `store` (line 2)";
    check_direction(
        &[("src/search/a.rs", "\nuse crate::store::Store;\n")],
        &[(2, upward)],
    );
    check_direction(
        &[("src/search/a.rs", "fn f(_: crate::store::S) {}\n")],
        &[(1, upward)],
    );
    check_direction(
        &[("src/search/a.rs", "use super::super::store::S;\n")],
        &[(1, upward)],
    );
    check_direction(
        &[("src/search.rs", "use super::store::S;\n")],
        &[(1, upward)],
    );
    let group = "use crate::{\n    label::{Label, Key},\n    store::Store,\n};\n";
    check_direction(&[("src/search/a.rs", group)], &[(1, upward)]);
}

#[test]
fn comments_strings_and_tests_are_no_uses() {
    let text = "//! See [`x`](crate::store::X).\nuse crate::label; // not crate::store\n\
                #[cfg(test)]\nmod tests {\n    use crate::store::S;\n}\n";
    check_direction(&[("src/search/a.rs", text)], &[]);
    check_direction(&[("src/search/tests.rs", "use crate::store::S;")], &[]);
}

#[test]
fn device_probe_is_higher_than_device() {
    let upward = "`search` (line 1) must not use `device::probe` (line 2)";
    check_direction(
        &[("src/search/a.rs", "use crate::device::probe::host;")],
        &[(1, upward)],
    );
    let upward = "`device` (line 0) must not use `store` (line 2)";
    check_direction(
        &[("src/device/profile.rs", "use crate::store::S;")],
        &[(1, upward)],
    );
    check_direction(&[("src/device/probe.rs", "use crate::store::S;")], &[]);
}

#[test]
fn cycle_on_one_line_is_found() {
    check_direction(
        &[
            ("src/lock/a.rs", "use crate::search::S;"),
            ("src/search/a.rs", "use crate::lock::L;"),
        ],
        &[(
            0,
            "modules of one line use each other: lock → search → lock",
        )],
    );
}

#[test]
fn pure_modules_do_not_use_fsx() {
    let pure = "`lock` is pure; only lines 2 to 5 may use `fsx`";
    check_direction(&[("src/lock/a.rs", "use crate::fsx;")], &[(1, pure)]);
    check_direction(&[("src/store/a.rs", "use crate::fsx;")], &[]);
}

#[test]
fn module_without_a_line_is_found() {
    let missing = "module `nova` is missing in the table of src/lib.rs";
    check_direction(
        &[("src/nova/a.rs", "use crate::label::L;")],
        &[(0, missing)],
    );
}

#[test]
fn module_for_tests_only_is_left_alone() {
    let lib = "pub mod store;\n#[cfg(test)]\nmod testing;\n";
    assert!(is_test_module(&source("src/testing.rs", ""), lib));
    assert!(!is_test_module(&source("src/store/mod.rs", ""), lib));
    assert!(!is_test_module(&source("src/lib.rs", ""), lib));
}

#[test]
fn file_rules_find_header_length_logic_and_todo() {
    let none: &[usize] = &[];
    let check = |path: &str, text: &str| {
        let findings = file_rules(&source(path, text));
        findings.iter().map(|f| f.line).collect::<Vec<_>>()
    };
    assert_eq!(check("src/a/b.rs", "//! Docs.\nfn f() {}\n"), none);
    assert_eq!(check("src/a/b.rs", "fn f() {}\n"), [1]);
    assert_eq!(
        check(
            "src/a/mod.rs",
            "//! Docs.\n\nmod b;\npub use b::{\n    C,\n};\n"
        ),
        none
    );
    assert_eq!(check("src/a/mod.rs", "//! Docs.\npub struct A;\n"), [2]);
    assert_eq!(check("src/a/mod.rs", "//! Docs.\nimpl<T> A {}\n"), [2]);
    let todo = concat!("//! Docs.\n// TO", "DO later\n// TO", "DO(#12): then\n");
    assert_eq!(check("src/a/b.rs", todo), [2]);
    let long = format!("//! Docs.\n{}", "fn f() {}\n".repeat(800));
    assert_eq!(check("src/a/b.rs", &long), [0]);
    let long_tests = format!(
        "//! Docs.\n#[cfg(test)]\nmod tests {{\n{}}}\n",
        "x\n".repeat(800)
    );
    assert_eq!(check("src/a/b.rs", &long_tests), none);
}

#[test]
fn effects_have_one_owner() {
    let check = |path: &str, text: &str| effects(&source(path, text)).len();
    assert_eq!(check("src/store/a.rs", "std::fs::write(path, text)?;"), 1);
    assert_eq!(check("src/fsx.rs", "std::fs::write(path, text)?;"), 0);
    assert_eq!(
        check(
            "src/store/a.rs",
            "// fs::write is for fsx\nfs::read(path)?;"
        ),
        0
    );
    assert_eq!(check("src/cli/a.rs", "println!(\"x\");"), 1);
    assert_eq!(check("src/report/human.rs", "println!(\"x\");"), 0);
}

#[test]
fn template_must_be_named() {
    let template = source("templates/kernels/conv.rs.j2", "conv.rs.j2");
    let code = source(
        "src/a.rs",
        "include_str!(\"../templates/kernels/conv.rs.j2\")",
    );
    assert_eq!(mentions(&template, &[code], &[]), []);
    assert_eq!(
        mentions(&template, &[], &[source(&template.path, &template.text)]).len(),
        1
    );
}

#[test]
fn private_paths_are_found() {
    let check = |text: &str| no_private_paths(&source("README.md", text)).len();
    assert_eq!(check(&format!("see `/{}/main`", "work")), 1);
    assert_eq!(
        check("https://example.com/work/x and src/root/a and $HOME/root/x"),
        0
    );
}

#[test]
fn this_work_tree_is_tidy() {
    assert_eq!(check(&shell::root()).unwrap(), []);
}
