//! What a run of the tool must have left, whatever happened to it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use metainfer::digest::Digest;
use serde_json::Value;

use super::fault::Fault;
use super::proc;
use super::records::{Ids, Records};
use super::run::{LONGEST_RUN, Run};
use super::workspace::Workspace;

/// Processes may need so long to notice that their tool is gone.
const LAST_BREATH: Duration = Duration::from_secs(5);

/// What a workspace may hold beside what it began with.
const KNOWN_FILES: [&str; 13] = [
    "Cargo.lock",
    "Cargo.toml",
    "armed",
    "faults.log",
    "metainfer.lock",
    "metainfer.toml",
    "models",
    "rustc.sh",
    "spared",
    "src",
    "stderr.txt",
    "target",
    "tmp",
];

/// What was recorded when somebody looked last.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Names of all records in the store.
    ids: Ids,
    /// Evaluations and labels of this workspace's adaptation.
    n_evaluations: usize,
    n_labels: usize,
    adaptation: Option<Digest>,
}

impl Seen {
    /// Returns the evaluations of the adaptation.
    pub(super) fn n_evaluations(&self) -> usize {
        self.n_evaluations
    }
}

/// Looks at a workspace after a run of the tool and returns a sentence for each promise that was not
/// kept. `hangs` are the times at which somebody gave the store free again.
pub(super) fn after_run(
    workspace: &Workspace,
    run: &Run,
    seen: &mut Seen,
    budget: usize,
    hangs: &[Instant],
) -> Vec<String> {
    let mut faults = Vec::new();
    faults.extend(exit(run, hangs));
    let left = proc::wait_for_none(&workspace.dir, LAST_BREATH);
    if !left.is_empty() {
        faults.push(format!("processes are left: {}", left.join("; ")));
    }
    if run.signal().is_none() {
        faults.extend(leftovers(workspace));
    }
    seen.adaptation = seen.adaptation.or(adaptation(&workspace.journal()));
    let records = match Records::read(&workspace.store()) {
        Ok(records) => records,
        Err(error) => {
            faults.push(format!("the store cannot be read: {error:#}"));
            return faults;
        }
    };
    let ids = records.ids();
    let n_lost = seen.ids.n_missing_in(&ids);
    if n_lost > 0 {
        faults.push(format!("{n_lost} records are lost"));
    }
    seen.ids = ids;
    let Some(adaptation) = seen.adaptation else {
        return faults;
    };
    let records = records.of(adaptation);
    let n_doubled = records.n_doubled();
    if n_doubled > 0 {
        faults.push(format!("{n_doubled} records say what others say"));
    }
    let n_spent = records.spent().count();
    if n_spent > budget || run.spent > run.budget {
        faults.push(format!(
            "{n_spent} evaluations are recorded and {} reported, of {budget}",
            run.spent
        ));
    }
    let (new, reported) = (n_spent - seen.n_evaluations.min(n_spent), run.n_evaluations);
    // A run that was ended may have recorded one that it could not report.
    let most = reported + usize::from(run.code() != Some(0));
    if new < reported || new > most {
        faults.push(format!(
            "{reported} evaluations were reported, {new} recorded"
        ));
    }
    let new = records.labels.len() - seen.n_labels.min(records.labels.len());
    if (new as u64) < run.n_labels || (most == reported && new as u64 != run.n_labels) {
        faults.push(format!(
            "{} labels were reported, {new} recorded",
            run.n_labels
        ));
    }
    seen.n_evaluations = n_spent;
    seen.n_labels = records.labels.len();
    faults
}

/// Returns what is wrong with how a run ended.
fn exit(run: &Run, hangs: &[Instant]) -> Option<String> {
    let struck = |fault| run.struck.contains(&fault);
    let ended = Instant::now();
    let began = ended.checked_sub(run.wall + LAST_BREATH).unwrap_or(ended);
    let is_fine = match (run.code(), run.signal()) {
        (Some(0), _) => true,
        (Some(130), _) => struck(Fault::Interrupt),
        // It says that it cannot have the store.
        (Some(101), _) => {
            hangs.iter().any(|&end| end > began) && run.stderr.contains("labels.sqlite")
        }
        (_, Some(9)) => struck(Fault::ToolKilled),
        _ => false,
    };
    if run.status.is_none() {
        return Some(format!("it did not end within {} s", LONGEST_RUN.as_secs()));
    }
    (!is_fine).then(|| {
        let last: Vec<&str> = run.stderr.lines().rev().take(6).collect();
        let said: Vec<&str> = last.into_iter().rev().collect();
        let code = run
            .code()
            .map_or_else(|| "by signal".to_owned(), |c| c.to_string());
        format!("it ended with {code}: {}", said.join(" / "))
    })
}

/// Returns the files that nobody has a use for.
fn leftovers(workspace: &Workspace) -> Vec<String> {
    let mut left = Vec::new();
    let mut look = |dir: &Path, is_known: &dyn Fn(&str) -> bool| {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if !is_known(&entry.file_name().to_string_lossy()) {
                left.push(format!("`{}` is left", entry.path().display()));
            }
        }
    };
    look(&workspace.temporary(), &|_| false);
    look(&workspace.dir, &|name| KNOWN_FILES.contains(&name));
    look(&workspace.home, &|name| {
        name.starts_with("labels.sqlite") || name.starts_with("device-")
    });
    let native = workspace.scratch().join("native");
    for dir in fs::read_dir(native).into_iter().flatten().flatten() {
        look(&dir.path(), &|name| {
            // What a process makes for itself has its number in its name.
            let is_of_process = name.contains('-');
            let kept = [".o", ".list", ".refused"];
            !is_of_process && kept.iter().any(|end| name.ends_with(end))
        });
    }
    left
}

/// Returns the key under which a run counts its evaluations, from the head of its journal.
fn adaptation(journal: &Path) -> Option<Digest> {
    let text = fs::read_to_string(journal).ok()?;
    let (_, json) = text.lines().next()?.split_once(' ')?;
    let head: Value = serde_json::from_str(json).ok()?;
    serde_json::from_value(head.get("adaptation")?.clone()).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn ended(raw: i32, struck: &[Fault]) -> Option<String> {
        let run = Run {
            status: Some(ExitStatus::from_raw(raw)),
            struck: struck.to_vec(),
            stderr: "error: x\n  caused by: `labels.sqlite` is locked\n".to_owned(),
            ..Run::default()
        };
        exit(&run, &[])
    }

    #[test]
    fn an_end_is_fine_if_something_explains_it() {
        assert_eq!(ended(0, &[]), None);
        assert_eq!(ended(9, &[Fault::ToolKilled]), None);
        assert!(ended(9, &[Fault::WorkerKilled]).is_some());
        assert_eq!(ended(130 << 8, &[Fault::Interrupt]), None);
        let told = ended(101 << 8, &[Fault::Interrupt]).unwrap();
        assert!(told.contains("ended with 101: error: x / "), "{told}");
        let store_was_hanging = Run {
            status: Some(ExitStatus::from_raw(101 << 8)),
            stderr: "`labels.sqlite` is locked".to_owned(),
            ..Run::default()
        };
        assert_eq!(exit(&store_was_hanging, &[Instant::now()]), None);
    }
}
