//! Exit codes, the same for every command.

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Done.
    Done = 0,
    /// The command line is wrong; nothing was done.
    Usage = 2,
    /// Finished, and the answer is no: stale lock, regression, nothing met the limits.
    No = 100,
    /// Could not finish.
    Failed = 101,
    /// Interrupted; what was found so far is kept.
    Interrupted = 130,
}

impl ExitCode {
    /// All codes, in ascending order.
    pub const ALL: [Self; 5] = [
        Self::Done,
        Self::Usage,
        Self::No,
        Self::Failed,
        Self::Interrupted,
    ];

    /// Returns what the code says, one line.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Usage => "the command line is wrong, nothing was done",
            Self::No => "finished, and the answer is no, e.g. a stale lock",
            Self::Failed => "could not finish",
            Self::Interrupted => "interrupted, the best so far is kept",
        }
    }
}

/// How a command ended that could finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It did what was asked.
    Done,
    /// It finished, and the answer is no.
    No,
    /// It was interrupted and kept what it had.
    Interrupted,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::Done,
            Outcome::No => Self::No,
            Outcome::Interrupted => Self::Interrupted,
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}
