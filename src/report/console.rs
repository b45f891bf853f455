//! The console: one place where events, answers and errors become lines.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::answer::Answer;
use super::events;
use super::json::{self, Message};
use super::progress::Progress;
use super::shell::{self, Color, Shell};
use crate::config::{Diagnostic, Severity};
use crate::event::{Event, Reporter};

/// How to say what happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Human,
    /// One JSON object per line on stdout.
    Json,
}

/// What is decided once about output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// For people or machines.
    pub format: Format,
    /// When to use color.
    pub color: Color,
    /// No status lines and no progress.
    pub is_quiet: bool,
    /// How much more to say.
    pub verbosity: u8,
    /// Whether progress bars are allowed at all: no CI, no dumb terminal.
    pub allows_progress: bool,
}

/// Why a command could not finish.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Failure {
    /// What went wrong.
    pub message: String,
    /// Its causes, outermost first.
    pub causes: Vec<String>,
    /// What to try next.
    pub help: Vec<String>,
}

/// Renders what happens; shared by the threads of a run.
pub struct Console {
    options: Options,
    state: Mutex<State>,
}

struct State {
    shell: Shell,
    progress: Progress,
}

impl Console {
    /// Renders to this process's streams.
    pub fn new(options: Options) -> Self {
        Self::with_shell(options, Shell::new(options.color))
    }

    fn with_shell(options: Options, shell: Shell) -> Self {
        let has_progress =
            options.allows_progress && !options.is_quiet && options.format == Format::Human;
        Self {
            options,
            state: Mutex::new(State {
                shell,
                progress: Progress::new(has_progress),
            }),
        }
    }

    /// Says that a command starts: the first line of the JSON form.
    pub fn start(&self, command: &str) {
        self.message(&Message::Started(json::Started {
            format_version: json::FORMAT_VERSION,
            version: env!("CARGO_PKG_VERSION"),
            command,
        }));
    }

    /// Says that the command ended: the last line of the JSON form.
    pub fn finish(&self, exit_code: u8) {
        self.state().progress.clear();
        self.message(&Message::Finished(json::Finished {
            success: exit_code == 0,
            exit_code,
        }));
    }

    /// Says what is done, e.g. `Created` and a path.
    pub fn status(&self, verb: &str, object: &str) {
        if self.says_status() {
            self.state().print(|shell| shell.status(verb, object));
        }
    }

    /// Says what is going on.
    pub fn note(&self, verb: &str, object: &str) {
        if self.says_status() {
            self.state().print(|shell| shell.note(verb, object));
        }
    }

    /// Gives the answer of a command on stdout.
    pub fn answer(&self, answer: &dyn Answer) {
        match self.options.format {
            Format::Human => {
                let mut state = self.state();
                let text = answer.human(shell::width());
                state.print(|shell| shell.answer(&text));
            }
            Format::Json => answer
                .json()
                .iter()
                .for_each(|message| self.message(message)),
        }
    }

    /// Gives text as it is on stdout, e.g. help.
    pub fn text(&self, text: &str) {
        self.state().print(|shell| shell.answer(text));
    }

    /// Says what is wrong with a configuration.
    pub fn diagnostic(&self, diagnostic: &Diagnostic) {
        let place = diagnostic.place.to_string();
        let help: Vec<String> = diagnostic.help.iter().cloned().collect();
        let message = &diagnostic.message;
        match diagnostic.severity {
            Severity::Error => {
                self.state()
                    .print(|shell| shell.error(message, &[], Some(&place), &help));
            }
            Severity::Warning if self.options.is_quiet => {}
            Severity::Warning => {
                self.state()
                    .print(|shell| shell.warning(message, Some(&place), &help));
            }
        }
        self.message(&Message::Diagnostic(json::Diagnostic {
            level: match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            code: Some(diagnostic.code),
            message: message.clone(),
            causes: &[],
            help: &help,
            place: Some(json::Place {
                file: diagnostic.place.file.display().to_string(),
                line: diagnostic.place.line,
                column: diagnostic.place.column,
            }),
        }));
    }

    /// Says what should be known and stops nothing.
    pub fn warning(&self, code: &str, text: &str, help: &[String]) {
        if !self.options.is_quiet {
            self.state().print(|shell| shell.warning(text, None, help));
        }
        self.message(&Message::Diagnostic(json::Diagnostic {
            level: "warning",
            code: Some(code),
            message: text.to_owned(),
            causes: &[],
            help,
            place: None,
        }));
    }

    /// Says why the command could not finish.
    pub fn failure(&self, failure: &Failure) {
        let Failure {
            message,
            causes,
            help,
        } = failure;
        self.state()
            .print(|shell| shell.error(message, causes, None, help));
        self.message(&Message::Diagnostic(json::Diagnostic {
            level: "error",
            code: None,
            message: message.clone(),
            causes,
            help,
            place: None,
        }));
    }

    /// Writes text as it is to stderr, e.g. a usage error that is rendered already.
    pub fn raw_error(&self, text: &str) {
        self.state().print(|shell| shell.raw_stderr(text));
    }

    fn says_status(&self) -> bool {
        !self.options.is_quiet && self.options.format == Format::Human
    }

    fn message(&self, message: &Message<'_>) {
        if self.options.format == Format::Json {
            let line = json::line(message);
            self.state().print(|shell| shell.answer(&line));
        }
    }

    /// A thread that panicked while printing leaves nothing half done that matters.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Prints with the progress bar out of the way.
    fn print(&mut self, write: impl FnOnce(&mut Shell)) {
        let Self { shell, progress } = self;
        progress.suspend(|| write(shell));
    }
}

impl Reporter for Console {
    fn report(&self, event: &Event<'_>) {
        if let Event::Warning {
            code,
            subject,
            detail,
        } = event
        {
            let text = format!("{subject}: {detail}");
            return self.warning(code, &text, &[]);
        }
        if self.options.format == Format::Json {
            if let Some(message) = events::message(event) {
                self.message(&message);
            }
            return;
        }
        if self.options.is_quiet {
            return;
        }
        let mut state = self.state();
        match event {
            Event::AdaptStarted { .. } => state.progress.restart(),
            Event::AdaptFinished { .. } => state.progress.clear(),
            Event::EvaluationFinished {
                n_evaluations,
                max_evaluations,
                ..
            } => {
                let text = events::progress(event);
                state
                    .progress
                    .update(*n_evaluations, *max_evaluations, &text);
            }
            _ => {}
        }
        let line = events::line(event, self.options.verbosity);
        for line in line.into_iter().chain(events::additions(event)) {
            state.print(|shell| {
                if line.is_result {
                    shell.status(line.verb, &line.object);
                } else {
                    shell.note(line.verb, &line.object);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::event::Spent;
    use crate::lock::Footprint;
    use crate::search::HalfWay;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Runs `act` on a console and returns stdout and stderr.
    fn output(options: Options, act: impl FnOnce(&Console)) -> (String, String) {
        let (stdout, stderr) = (Buffer::default(), Buffer::default());
        let shell = Shell::to(Box::new(stdout.clone()), Box::new(stderr.clone()));
        act(&Console::with_shell(options, shell));
        let text = |buffer: Buffer| String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        (text(stdout), text(stderr))
    }

    const FINISHED: Event<'static> = Event::AdaptFinished {
        model: "net",
        target: "cpu",
        n_evaluations: 97,
        n_reused_labels: 12,
        baseline_ns: 2.3e6,
        latency_ns: 1e6,
        footprint: Some(Footprint {
            arena_bytes: 3 << 20,
            weight_bytes: 6_783_084,
            code_bytes: 201_728,
        }),
        lock_changed: true,
        interrupted: false,
        utilisation: Some(0.9),
        spent: Some(Spent {
            elapsed: Duration::from_secs(61),
            max_time: Some(Duration::from_mins(30)),
            compile_time: Duration::from_mins(2),
            max_compile_time: None,
            disk_bytes: 300 << 20,
            max_disk_bytes: 4 << 30,
        }),
        half_way: Some(HalfWay {
            estimated: Duration::from_secs(40),
            actual: Duration::from_secs(31),
        }),
    };

    #[test]
    fn status_lines_are_on_stderr_in_twelve_columns() {
        let (stdout, stderr) = output(Options::default(), |console| console.report(&FINISHED));
        assert_eq!(stdout, "");
        assert_eq!(
            stderr,
            "      Locked `net` on `cpu`: 1.00 ms, 2.30× the untuned speed (97 evaluations, \
             12 labels reused)\n      Memory 3.00 MiB for a run, 6.47 MiB of weights, \
             197 KiB of code\n        Used 61 s of 30 min, 2 min of compilers, 300 MiB of 4.00 GiB on \
             disk; half way 40 s were expected, 31 s it took\n"
        );
    }

    #[test]
    fn quiet_drops_status_and_warnings_and_keeps_errors() {
        let options = Options {
            is_quiet: true,
            ..Options::default()
        };
        let (_, stderr) = output(options, |console| {
            console.report(&FINISHED);
            console.status("Created", "x");
            console.warning("code", "careful", &[]);
            console.failure(&Failure {
                message: "no".to_owned(),
                causes: vec!["deep".to_owned()],
                help: vec!["try".to_owned()],
            });
        });
        assert_eq!(stderr, "error: no\n\nCaused by:\n  deep\n\nhelp: try\n");
    }

    #[test]
    fn json_has_a_first_and_a_last_line_and_one_object_per_line() {
        let options = Options {
            format: Format::Json,
            ..Options::default()
        };
        let (stdout, stderr) = output(options, |console| {
            console.start("adapt");
            console.report(&FINISHED);
            console.warning("drift", "careful\nhere", &[]);
            console.finish(100);
        });
        let lines: Vec<serde_json::Value> = stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let reasons: Vec<_> = lines.iter().map(|line| line["reason"].as_str()).collect();
        let expected = ["started", "adapt-finished", "diagnostic", "finished"];
        assert_eq!(reasons, expected.map(Some));
        assert_eq!(lines[0]["format_version"], 1);
        assert_eq!(lines[1]["elapsed_ms"], 61_000);
        assert_eq!(lines[1]["max_compile_time_ms"], serde_json::Value::Null);
        assert_eq!(lines[1]["half_way_estimated_ms"], 40_000);
        assert_eq!(lines[3]["success"], false);
        assert_eq!(stderr, "warning: careful\nhere\n");
    }
}
