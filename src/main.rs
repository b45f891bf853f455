//! `cargo metainfer …`: arguments in, exit code out.

use std::process::ExitCode;

use metainfer::{cli, cpu::guard, measure::worker, process};

fn main() -> ExitCode {
    process::survive_size_limit();
    // The tool starts itself anew to measure, and to clean up after itself; this is not for people,
    // so `cli` does not know it.
    if guard::is_requested(std::env::args_os()) {
        return guard::main();
    }
    let args = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    if let Some(args) = worker::requested(args) {
        return worker::main(args);
    }
    process::give_memory_back();
    cli::run(std::env::args_os()).into()
}
