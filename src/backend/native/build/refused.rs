//! Kernels that the compiler refused, as files beside the objects of those that it did not refuse:
//! no later run compiles them again.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::leftovers::CallDir;
use crate::fsx::{self, FsError};
use crate::label::Outcome;

/// How the compiler refused a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refusal {
    /// Symbol of the kernel, which names what is compiled.
    symbol: String,
    pub(super) outcome: Outcome,
    pub(super) message: String,
    /// Time that the call had, milliseconds.
    limit_ms: u64,
}

impl Refusal {
    /// Takes note of what a call said that had so much time.
    pub(super) fn new(symbol: &str, outcome: Outcome, message: &str, limit: Duration) -> Self {
        Self {
            symbol: symbol.to_owned(),
            outcome,
            message: message.to_owned(),
            limit_ms: limit.as_millis() as u64,
        }
    }

    /// Returns whether it says something of the kernel for all later runs: the compiler's own word
    /// on the source, or that the time was not enough. A call that ended without a word may have
    /// been anything.
    fn is_lasting(&self) -> bool {
        match self.outcome {
            Outcome::CompileError => self.message.lines().any(|line| line.starts_with("error")),
            Outcome::CompileTimeout => true,
            _ => false,
        }
    }

    /// Writes it, if it holds for later runs: whole or not at all.
    pub(super) fn write(&self, dir: &Path, call: &CallDir) -> Result<(), FsError> {
        if !self.is_lasting() {
            return Ok(());
        }
        // It is plain data with text keys: there is JSON for it.
        let json = serde_json::to_string(self).unwrap_or_default();
        let unfinished = call.file("refused");
        fsx::write_scratch(&unfinished, json.as_bytes())?;
        fsx::rename(&unfinished, &dir.join(format!("{}.refused", self.symbol)))
    }
}

/// Reads what was refused, by symbol. With more time than it had, a call that ran out of it is made
/// again. A file that makes no sense is as good as none: the compiler says it again.
pub(super) fn read(dir: &Path, limit: Duration) -> BTreeMap<String, Refusal> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let refusals = paths
        .filter(|path| path.extension().is_some_and(|ext| ext == "refused"))
        .filter_map(|path| fsx::read(&path).ok())
        .filter_map(|json| serde_json::from_slice::<Refusal>(&json).ok())
        .filter(|refusal| {
            refusal.outcome != Outcome::CompileTimeout
                || limit.as_millis() <= u128::from(refusal.limit_ms)
        });
    refusals
        .map(|refusal| (refusal.symbol.clone(), refusal))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::native::build::leftovers::stem;

    /// Writes a refusal and returns what a run with some time finds.
    fn found(outcome: Outcome, message: &str, now: u64) -> Option<Refusal> {
        let dir = tempfile::tempdir().unwrap();
        let call = CallDir::new(dir.path(), &stem("abc", 1)).unwrap();
        let refusal = Refusal::new("k", outcome, message, Duration::from_secs(10));
        refusal.write(dir.path(), &call).unwrap();
        let found = read(dir.path(), Duration::from_secs(now)).remove("k");
        assert!(found.is_none() || found == Some(refusal));
        found
    }

    #[test]
    fn what_the_compiler_says_of_a_kernel_lasts() {
        assert!(found(Outcome::CompileError, "error[E0308]: no", 99).is_some());
        assert!(found(Outcome::CompileError, "warning: x\nerror: no", 1).is_some());
        assert!(found(Outcome::CompileError, "", 1).is_none());
        assert!(found(Outcome::DeviceLost, "error: stopped", 1).is_none());
    }

    #[test]
    fn a_call_that_had_less_time_is_made_again() {
        assert!(found(Outcome::CompileTimeout, "", 10).is_some());
        assert!(found(Outcome::CompileTimeout, "", 9).is_some());
        assert!(found(Outcome::CompileTimeout, "", 11).is_none());
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none() {
        let dir = tempfile::tempdir().unwrap();
        fsx::write_scratch(&dir.path().join("k.refused"), b"{\"symbol\":\"k\"").unwrap();
        assert_eq!(read(dir.path(), Duration::from_secs(1)), BTreeMap::new());
    }
}
