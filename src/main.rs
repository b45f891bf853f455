//! `cargo metainfer …`: arguments in, exit code out.

use std::process::ExitCode;

use metainfer::{cli, measure::worker};

fn main() -> ExitCode {
    // The tool starts itself anew to measure; this is not for people, so `cli` does not know it.
    let args = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    if let Some(args) = worker::requested(args) {
        return worker::main(args);
    }
    cli::run(std::env::args_os()).into()
}
