//! From arguments to an exit code.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;

use super::args::{Cli, ColorWhen, Global, MessageFormat};
use super::{Environment, Error, ExitCode, log};
use crate::report::{Color, Console, Failure, Format, Options};

/// What every command gets.
pub(crate) struct Ctx {
    pub(crate) global: Global,
    pub(crate) environment: Environment,
    pub(crate) console: Arc<Console>,
}

impl Ctx {
    /// Returns the user's data directory.
    pub(crate) fn home(&self) -> Result<PathBuf, Error> {
        self.environment.home.clone().ok_or_else(|| {
            Error::failed("the user's data directory is not known")
                .help("set the variable `METAINFER_HOME` to a directory for labels")
        })
    }
}

/// Runs the command line; `args` starts with the program's name.
///
/// `cargo metainfer check` arrives as `cargo-metainfer metainfer check`; the direct form
/// `cargo-metainfer check` means the same.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args: Vec<OsString> = args.into_iter().collect();
    if args.get(1).is_some_and(|arg| arg == "metainfer") {
        args.remove(1);
    }
    let environment = match Environment::read() {
        Ok(environment) => environment,
        Err(error) => {
            let console = Console::new(Options::default());
            return fail(&console, &error.into());
        }
    };
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&environment, &error),
    };
    let Cli { command, global } = cli;
    let options = match options(&global, &environment) {
        Ok(options) => options,
        Err(error) => return fail(&Console::new(Options::default()), &error),
    };
    let console = Arc::new(Console::new(options));
    console.start(command.name());
    let ctx = Ctx {
        global,
        environment,
        console: Arc::clone(&console),
    };
    let started = check_unstable(&ctx).and_then(|()| start_log(&ctx));
    let code = match started.and_then(|()| command.run(&ctx)) {
        Ok(outcome) => outcome.into(),
        Err(error) => fail(&console, &error),
    };
    console.finish(code as u8);
    code
}

/// Says why, and returns the exit code for it.
fn fail(console: &Console, error: &Error) -> ExitCode {
    let mut causes = Vec::new();
    let mut cause = error.source.source();
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    console.failure(&Failure {
        message: error.to_string(),
        causes,
        help: error.help.clone(),
    });
    error.exit_code()
}

/// Prints what clap says: help and version to stdout, errors to stderr.
fn usage(environment: &Environment, error: &clap::Error) -> ExitCode {
    let color = color(None, environment).unwrap_or_default();
    let console = Console::new(Options {
        color,
        ..Options::default()
    });
    let text = error.render().ansi().to_string();
    if error.use_stderr() {
        console.raw_error(&text);
        ExitCode::Usage
    } else {
        console.text(&text);
        ExitCode::Done
    }
}

fn options(global: &Global, environment: &Environment) -> Result<Options, Error> {
    Ok(Options {
        format: match global.message_format {
            MessageFormat::Human => Format::Human,
            MessageFormat::Json => Format::Json,
        },
        color: color(global.color, environment)?,
        is_quiet: global.quiet,
        verbosity: global.verbose,
        allows_progress: !environment.is_ci && !environment.is_dumb_terminal,
    })
}

/// Decides on color: the flag goes before `CARGO_TERM_COLOR`, that before `NO_COLOR` and `TERM`.
fn color(flag: Option<ColorWhen>, environment: &Environment) -> Result<Color, Error> {
    let auto = if environment.no_color || environment.is_dumb_terminal {
        Color::Never
    } else {
        Color::Auto
    };
    match (flag, environment.color.as_deref()) {
        (Some(ColorWhen::Auto), _) | (None, None | Some("auto")) => Ok(auto),
        (Some(ColorWhen::Always), _) | (None, Some("always")) => Ok(Color::Always),
        (Some(ColorWhen::Never), _) | (None, Some("never")) => Ok(Color::Never),
        (None, Some(other)) => Err(Error::usage(format!(
            "environment variable `CARGO_TERM_COLOR` must be `auto`, `always` or `never`, \
             not `{other}`"
        ))),
    }
}

fn start_log(ctx: &Ctx) -> Result<(), Error> {
    match &ctx.environment.log {
        Some(filter) => log::start(filter),
        None => Ok(()),
    }
}

/// Answers `-Z`: this release has no features that may still change.
fn check_unstable(ctx: &Ctx) -> Result<(), Error> {
    match ctx.global.unstable.first() {
        None => Ok(()),
        Some(flag) => Err(Error::usage(format!("unknown `-Z` flag `{flag}`"))
            .help("this release has no features that may still change")),
    }
}
