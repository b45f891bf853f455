//! Rules about single files, and the command that checks all rules.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use super::direction;
use super::source::{Finding, Source, read_all};
use crate::shell;

/// Files longer than this without tests are listed by `--long`.
const LONG: usize = 250;
/// Files longer than this without tests get a warning.
const TOO_LONG: usize = 400;
/// Files longer than this without tests fail.
const LIMIT: usize = 800;

/// What to report.
#[derive(clap::Args, Default)]
pub(crate) struct Args {
    /// List files of more than 250 lines too
    #[arg(long)]
    long: bool,
}

/// Checks the work tree.
///
/// # Errors
/// If a rule is broken; the findings are on the terminal.
pub(crate) fn run(args: &Args) -> Result<()> {
    let root = shell::root();
    for source in code_files(&root)? {
        let n_lines = source.code_len();
        if n_lines > TOO_LONG && !source.is_test() {
            println!(
                "warning: {}: {n_lines} lines, look for the second noun",
                source.path
            );
        } else if args.long && n_lines > LONG && !source.is_test() {
            println!("note: {}: {n_lines} lines", source.path);
        }
    }
    let findings = check(&root)?;
    for finding in &findings {
        println!(
            "error: {}:{}: {}",
            finding.path, finding.line, finding.message
        );
    }
    if !findings.is_empty() {
        bail!("{} findings", findings.len());
    }
    Ok(())
}

/// Returns all findings in a work tree, sorted.
pub(super) fn check(root: &Path) -> Result<Vec<Finding>> {
    let lib = fs::read_to_string(root.join("src/lib.rs"))?;
    let mut library = read_all(root, "src", &[".rs"])?;
    library.retain(|source| !is_test_module(source, &lib));
    let mut findings = direction::check(&direction::parse_lines(&lib), &library);
    for source in &library {
        findings.extend(file_rules(source));
        findings.extend(effects(source));
    }
    for source in &read_all(root, "xtask/src", &[".rs"])? {
        findings.extend(file_rules(source));
    }
    let templates = read_all(root, "templates", &[""])?;
    for template in &templates {
        findings.extend(mentions(template, &library, &templates));
    }
    let written = [".rs", ".toml", ".j2", ".py", ".md", "run"];
    for directory in ["src", "templates", "tests", "xtask", "fixtures", ".ci"] {
        let sources = read_all(root, directory, &written)?;
        findings.extend(sources.iter().flat_map(no_private_paths));
    }
    findings.sort();
    findings.dedup();
    Ok(findings)
}

/// Returns whether the file belongs to a module that `lib.rs` declares for tests only.
pub(super) fn is_test_module(source: &Source, lib: &str) -> bool {
    let module = source.module();
    let declared = |name: &&str| lib.contains(&format!("#[cfg(test)]\nmod {name};"));
    module.first().is_some_and(declared)
}

fn code_files(root: &Path) -> Result<Vec<Source>> {
    let mut sources = read_all(root, "src", &[".rs"])?;
    sources.extend(read_all(root, "xtask/src", &[".rs"])?);
    Ok(sources)
}

/// Header, length, `mod.rs` without logic, open points with a reference.
pub(super) fn file_rules(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !source.text.starts_with("//!") && !source.is_test() {
        findings.push(source.finding(
            1,
            "starts without `//!` docs: say what it is responsible for",
        ));
    }
    if source.code_len() > LIMIT && !source.is_test() {
        let message = format!("{} lines without tests, at most {LIMIT}", source.code_len());
        findings.push(source.finding(0, message));
    }
    if source.path.ends_with("/mod.rs") {
        let logic = source.code().find(|(_, code)| is_item_with_body(code));
        findings.extend(logic.map(|(line, _)| {
            source.finding(line, "`mod.rs` has docs, `mod` lines and re-exports only")
        }));
    }
    let todo = concat!("TO", "DO");
    for (idx, line) in source.text.lines().enumerate() {
        let rest = line.split_once(todo).map(|(_, rest)| rest);
        if rest.is_some_and(|rest| !rest.starts_with("(#") && !rest.contains("://")) {
            findings.push(source.finding(idx + 1, format!("`{todo}` without an issue")));
        }
    }
    findings
}

fn is_item_with_body(code: &str) -> bool {
    let code = code.strip_prefix("pub ").unwrap_or(code);
    let code = code
        .trim_start_matches("pub(crate) ")
        .trim_start_matches("pub(super) ");
    let items = [
        "fn ",
        "async fn ",
        "const fn ",
        "unsafe fn ",
        "impl ",
        "impl<",
        "struct ",
        "enum ",
        "trait ",
        "macro_rules!",
        "static ",
        "const ",
        "type ",
    ];
    items.iter().any(|item| code.starts_with(item))
        || code.starts_with("mod ") && code.ends_with('{')
}

/// Writing to the file system is for `fsx`, writing to the terminal for `report`.
pub(super) fn effects(source: &Source) -> Vec<Finding> {
    let module = source.module();
    let owner = module.first().copied().unwrap_or_default();
    let writes = [
        "fs::write",
        "fs::rename",
        "fs::copy",
        "fs::remove",
        "fs::create_dir",
        "fs::hard_link",
        "File::create",
        "OpenOptions",
        "DirBuilder",
    ];
    let prints = ["println!", "eprintln!", "print!(", "eprint!(", "dbg!"];
    let rules: [(&str, &[&str]); 2] = [("fsx", &writes), ("report", &prints)];
    let mut findings = Vec::new();
    for (line, code) in source.code() {
        for (allowed, words) in rules {
            let word = words.iter().find(|word| code.contains(*word));
            if let Some(word) = word.filter(|_| owner != allowed) {
                findings.push(source.finding(line, format!("`{word}` is for `{allowed}` only")));
            }
        }
    }
    findings
}

/// A template nobody names is dead.
pub(super) fn mentions(
    template: &Source,
    library: &[Source],
    templates: &[Source],
) -> Vec<Finding> {
    let name = template.path.rsplit('/').next().unwrap_or_default();
    let named = |source: &Source| source.path != template.path && source.text.contains(name);
    if library.iter().chain(templates).any(named) {
        return Vec::new();
    }
    vec![template.finding(0, "no source file and no other template names it")]
}

/// Absolute paths of the machine that somebody worked on.
pub(super) fn no_private_paths(source: &Source) -> Vec<Finding> {
    let private = ["work", "root", "home", "Users"].map(|directory| format!("/{directory}/"));
    let mut findings = Vec::new();
    for (idx, line) in source.text.lines().enumerate() {
        for path in &private {
            let starts = |(at, _): (usize, &str)| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "._-}~*/".contains(c))
            };
            if line.match_indices(path.as_str()).any(starts) {
                findings.push(source.finding(idx + 1, format!("path below `{path}`")));
            }
        }
    }
    findings
}
