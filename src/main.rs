//! Binary entry point.

use std::process::ExitCode;

use metainfer::measure::worker;

fn main() -> ExitCode {
    // The tool starts itself anew to measure; this is not for people, so `cli` does not know it.
    if let Some(args) = worker::requested(std::env::args()) {
        return worker::main(args);
    }
    ExitCode::SUCCESS
}
