//! Lines on stdout and stderr, in cargo's look.

use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Effects, Style};

/// Verb of a status line.
const STATUS: Style = AnsiColor::BrightGreen.on_default().effects(Effects::BOLD);
/// Verb of what is still going on.
const NOTE: Style = AnsiColor::BrightCyan.on_default().effects(Effects::BOLD);
const WARNING: Style = AnsiColor::BrightYellow.on_default().effects(Effects::BOLD);
const ERROR: Style = AnsiColor::BrightRed.on_default().effects(Effects::BOLD);
/// Header of a table.
pub(super) const HEADER: Style = Style::new().bold();

/// Writes lines; color and quiet are decided once.
pub(super) struct Shell {
    stdout: Stream,
    stderr: Stream,
}

struct Stream {
    writer: Box<dyn Write + Send>,
    has_color: bool,
}

/// When to use color.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Color {
    /// On a terminal.
    #[default]
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

/// Returns the width that tables on stdout should keep; a pipe has none.
pub(super) fn width() -> usize {
    if !std::io::stdout().is_terminal() {
        return usize::MAX;
    }
    terminal_size::terminal_size().map_or(80, |(width, _)| width.0.into())
}

impl Shell {
    /// Writes to this process's streams.
    pub(super) fn new(color: Color) -> Self {
        let has_color = |is_terminal: bool| match color {
            Color::Auto => is_terminal,
            Color::Always => true,
            Color::Never => false,
        };
        let stdout = std::io::stdout();
        let stderr = std::io::stderr();
        Self {
            stdout: Stream {
                has_color: has_color(stdout.is_terminal()),
                writer: Box::new(stdout),
            },
            stderr: Stream {
                has_color: has_color(stderr.is_terminal()),
                writer: Box::new(stderr),
            },
        }
    }

    /// Writes to given streams, without color.
    #[cfg(test)]
    pub(super) fn to(stdout: Box<dyn Write + Send>, stderr: Box<dyn Write + Send>) -> Self {
        let stream = |writer| Stream {
            writer,
            has_color: false,
        };
        Self {
            stdout: stream(stdout),
            stderr: stream(stderr),
        }
    }

    /// Writes an answer to stdout.
    pub(super) fn answer(&mut self, text: &str) {
        self.stdout.write(text);
    }

    /// Writes a green verb in 12 columns and its object to stderr.
    pub(super) fn status(&mut self, verb: &str, object: &str) {
        self.stderr
            .write(&format!("{STATUS}{verb:>12}{STATUS:#} {object}\n"));
    }

    /// Writes a cyan verb in 12 columns and its object to stderr.
    pub(super) fn note(&mut self, verb: &str, object: &str) {
        self.stderr
            .write(&format!("{NOTE}{verb:>12}{NOTE:#} {object}\n"));
    }

    pub(super) fn warning(&mut self, message: &str, place: Option<&str>, help: &[String]) {
        self.finding(("warning", WARNING), message, &[], place, help);
    }

    pub(super) fn error(
        &mut self,
        message: &str,
        causes: &[String],
        place: Option<&str>,
        help: &[String],
    ) {
        self.finding(("error", ERROR), message, causes, place, help);
    }

    /// Writes text as it is to stderr.
    pub(super) fn raw_stderr(&mut self, text: &str) {
        self.stderr.write(text);
    }

    fn finding(
        &mut self,
        (word, style): (&str, Style),
        message: &str,
        causes: &[String],
        place: Option<&str>,
        help: &[String],
    ) {
        let mut text = format!("{style}{word}{style:#}: {message}\n");
        if let Some(place) = place {
            text.extend([" --> ", place, "\n"]);
        }
        if !causes.is_empty() {
            text += "\nCaused by:\n";
            for cause in causes {
                for line in cause.lines() {
                    text.extend(["  ", line, "\n"]);
                }
            }
        }
        if !help.is_empty() && !causes.is_empty() {
            text.push('\n');
        }
        for line in help {
            let word = format!("{NOTE}help{NOTE:#}");
            text.extend([&word, ": ", line, "\n"]);
        }
        self.stderr.write(&text);
    }
}

impl Stream {
    /// A reader that went away (`| head`) is no failure of ours, so errors are dropped.
    fn write(&mut self, text: &str) {
        let result = if self.has_color {
            self.writer.write_all(text.as_bytes())
        } else {
            let plain = anstream::adapter::strip_str(text).to_string();
            self.writer.write_all(plain.as_bytes())
        };
        let _ = result.and_then(|()| self.writer.flush());
    }
}
