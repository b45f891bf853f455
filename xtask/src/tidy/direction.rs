//! The direction of dependencies: a module uses modules on its own line or a lower one.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Finding, Source};

/// Modules and the line that each is on, by `::` path.
pub(super) type Lines = BTreeMap<String, u8>;

/// Reads the table in the docs of `src/lib.rs`: rows `//! 2  store  backend  what they are`, names
/// separated by two spaces or more, the last entry being a description.
pub(super) fn parse_lines(lib: &str) -> Lines {
    let mut lines = Lines::new();
    for row in lib.lines().filter_map(|line| line.strip_prefix("//! ")) {
        let entries: Vec<_> = row
            .split("  ")
            .map(str::trim)
            .filter(|e| !e.is_empty())
            .collect();
        let [number, names @ .., _description] = entries.as_slice() else {
            continue;
        };
        if let Ok(number) = number.parse() {
            lines.extend(names.iter().map(|name| ((*name).to_owned(), number)));
        }
    }
    lines
}

/// Returns uses of a higher line, cycles on one line, and modules without a line.
pub(super) fn check(lines: &Lines, sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut same_line = BTreeMap::<&str, BTreeSet<&str>>::new();
    for source in sources {
        let module = source.module();
        if module.is_empty() {
            continue;
        }
        let Some((user, user_line)) = place(lines, &module) else {
            let message = format!(
                "module `{}` is missing in the table of src/lib.rs",
                module[0]
            );
            findings.push(source.finding(0, message));
            continue;
        };
        for (line, used) in used_paths(source) {
            let used: Vec<_> = used.split("::").collect();
            let Some((used, used_line)) = place(lines, &used) else {
                continue;
            };
            if used_line > user_line {
                let message =
                    format!("`{user}` (line {user_line}) must not use `{used}` (line {used_line})");
                findings.push(source.finding(line, message));
            } else if used == "fsx" && user_line < 2 {
                let message = format!("`{user}` is pure; only lines 2 to 5 may use `fsx`");
                findings.push(source.finding(line, message));
            } else if used_line == user_line && used != user {
                same_line.entry(user).or_default().insert(used);
            }
        }
    }
    findings.extend(cycle(&same_line).map(|cycle| Finding {
        path: "src/lib.rs".to_owned(),
        line: 0,
        message: format!("modules of one line use each other: {}", cycle.join(" → ")),
    }));
    findings
}

/// Returns the longest prefix of a module path that has a line, with it.
fn place<'a>(lines: &'a Lines, module: &[&str]) -> Option<(&'a str, u8)> {
    let find = |len: usize| lines.get_key_value(&module[..len].join("::"));
    let (name, line) = (1..=module.len().min(2)).rev().find_map(find)?;
    Some((name, *line))
}

/// Returns the paths from the crate's root that the code of a file names, with line numbers.
fn used_paths(source: &Source) -> Vec<(usize, String)> {
    let depth = source.module().len();
    let mut text = String::new();
    let mut starts = Vec::new();
    for (line, code) in source.code() {
        starts.push((text.len(), line));
        text.push_str(code);
        text.push('\n');
    }
    let line_at = |offset: usize| {
        let idx = starts.partition_point(|&(start, _)| start <= offset);
        starts[idx.max(1) - 1].1
    };
    let to_root = if depth == 1 {
        "super::"
    } else {
        "super::super::"
    };
    let roots: &[&str] = match depth {
        1 | 2 => &["crate::", "metainfer::", to_root],
        _ => &["crate::", "metainfer::"],
    };
    let mut used = Vec::new();
    for root in roots {
        for (offset, _) in text.match_indices(root) {
            let before = text[..offset].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                continue;
            }
            let rest = &text[offset + root.len()..];
            used.extend(heads(rest).into_iter().map(|path| (line_at(offset), path)));
        }
    }
    used
}

/// Returns the first one or two segments of a path, or of each path of a braced group.
fn heads(text: &str) -> Vec<String> {
    let Some(group) = text.strip_prefix('{') else {
        return head(text).into_iter().collect();
    };
    let mut depth = 1;
    let mut paths = Vec::new();
    let mut start = 0;
    for (idx, char) in group.char_indices() {
        match char {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && char == ',') {
            paths.extend(head(group[start..idx].trim()));
            start = idx + 1;
        }
        if depth == 0 {
            break;
        }
    }
    paths
}

fn head(text: &str) -> Option<String> {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let path = &text[..text.find(|c| !is_path(c)).unwrap_or(text.len())];
    let segments: Vec<_> = path.split("::").filter(|s| !s.is_empty()).take(2).collect();
    (!segments.is_empty()).then(|| segments.join("::"))
}

/// Returns one cycle of a graph, if there is one.
fn cycle<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Option<Vec<&'a str>> {
    let mut done = BTreeSet::new();
    edges
        .keys()
        .find_map(|start| visit(edges, start, &mut Vec::new(), &mut done))
}

fn visit<'a>(
    edges: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    node: &'a str,
    path: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> Option<Vec<&'a str>> {
    if let Some(start) = path.iter().position(|seen| *seen == node) {
        return Some([&path[start..], &[node]].concat());
    }
    if done.contains(node) {
        return None;
    }
    path.push(node);
    let found = edges
        .get(node)
        .into_iter()
        .flatten()
        .find_map(|next| visit(edges, next, path, done));
    path.pop();
    done.insert(node);
    found
}
