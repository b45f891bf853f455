//! The worker process.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;

use super::{host, serve};
use crate::cpu::{cpus_beside, stay_on_cpu};

/// What the process is told on its command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    cpu: Option<usize>,
    memory_limit_bytes: Option<u64>,
}

/// Returns a worker's arguments if the command line asks for one, as
/// [`WorkerSpec::of_this_program`](crate::measure::WorkerSpec::of_this_program) does:
/// `PROGRAM metainfer worker …`.
pub fn requested(args: impl IntoIterator<Item = String>) -> Option<Vec<String>> {
    let mut args = args.into_iter().skip(1);
    let is_worker = args.next()? == "metainfer" && args.next()? == "worker";
    is_worker.then(|| args.collect())
}

/// Runs a worker over standard input and output, with the arguments that
/// [`Worker::spawn`](crate::measure::Worker::spawn) gives it: `[--cpu N] [--memory-limit BYTES]`.
///
/// Standard output belongs to the protocol here, and standard error to the tool.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // If nobody listens there is nobody to tell.
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: impl IntoIterator<Item = String>) -> Result<(), String> {
    let options = parse(args)?;
    let requests = requests()?;
    let mut helper_cpus = Vec::new();
    if let Some(cpu) = options.cpu {
        helper_cpus = cpus_beside(cpu);
        stay_on_cpu(cpu).map_err(|error| format!("cannot stay on processor {cpu}: {error}"))?;
    }
    if let Some(bytes) = options.memory_limit_bytes {
        host::limit_memory(bytes)
            .map_err(|error| format!("cannot limit memory to {bytes} bytes: {error}"))?;
    }
    let requests = requests.into_iter().map(Ok);
    serve(requests, io::stdout().lock(), helper_cpus).map_err(|error| error.to_string())
}

fn parse(args: impl IntoIterator<Item = String>) -> Result<Options, String> {
    let mut options = Options::default();
    let mut args = args.into_iter();
    while let Some(flag) = args.next() {
        let value = args.next();
        let number = value.and_then(|value| value.parse::<u64>().ok());
        match (flag.as_str(), number) {
            ("--cpu", Some(cpu)) => options.cpu = Some(cpu as usize),
            ("--memory-limit", Some(bytes)) => options.memory_limit_bytes = Some(bytes),
            ("--cpu" | "--memory-limit", None) => return Err(format!("`{flag}` needs a number")),
            _ => return Err(format!("unknown argument `{flag}`")),
        }
    }
    Ok(options)
}

/// Reads requests on a thread of its own, which ends the process when the tool is gone: the pipe
/// closes then, however the tool ended, and a candidate that hangs must not outlive it. (The
/// signal that Linux can send when a parent dies is sent when the parent's *thread* ends, which
/// those of an async runtime do at any time.)
fn requests() -> Result<mpsc::Receiver<String>, String> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let read = move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
        host::end()
    };
    let thread = thread::Builder::new().name("requests".to_owned());
    thread
        .spawn(read)
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_numbers_after_known_flags() {
        let parse = |args: &[&str]| parse(args.iter().map(|&arg| arg.to_owned()));
        let expected = Options {
            cpu: Some(1),
            memory_limit_bytes: Some(1 << 30),
        };
        assert_eq!(parse(&[]), Ok(Options::default()));
        assert_eq!(
            parse(&["--cpu", "1", "--memory-limit", "1073741824"]),
            Ok(expected)
        );
        assert_eq!(parse(&["--cpu"]), Err("`--cpu` needs a number".to_owned()));
        assert_eq!(
            parse(&["--cpu", "x"]),
            Err("`--cpu` needs a number".to_owned())
        );
        assert_eq!(
            parse(&["--gpu", "1"]),
            Err("unknown argument `--gpu`".to_owned())
        );
    }
}
