//! Arguments shared by all commands, spelled as cargo spells them.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Effects};
use clap::{ArgAction, Args, Parser, ValueEnum};

use super::ExitCode;
use super::commands::Command;
use super::env::{VARIABLES, Variable};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::BrightGreen.on_default().effects(Effects::BOLD))
    .usage(AnsiColor::BrightGreen.on_default().effects(Effects::BOLD))
    .literal(AnsiColor::BrightCyan.on_default().effects(Effects::BOLD))
    .placeholder(AnsiColor::Cyan.on_default())
    .error(AnsiColor::BrightRed.on_default().effects(Effects::BOLD))
    .valid(AnsiColor::BrightCyan.on_default().effects(Effects::BOLD))
    .invalid(AnsiColor::Yellow.on_default().effects(Effects::BOLD));

/// Adapts ONNX models to the hardware they will run on, and locks what it found
#[derive(Debug, Parser)]
#[command(
    name = "cargo-metainfer",
    bin_name = "cargo metainfer",
    version,
    styles = STYLES,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    term_width = 80,
    after_help = reference()
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// Flags of every command.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Global {
    /// No status lines and no progress; answers, errors and exit codes stay
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = "Output"
    )]
    pub(crate) quiet: bool,
    /// Say more; twice, even more
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Output")]
    pub(crate) verbose: u8,
    /// When to use color
    #[arg(long, global = true, value_name = "WHEN", help_heading = "Output")]
    pub(crate) color: Option<ColorWhen>,
    /// How to say what happens: for people, or one JSON object per line
    #[arg(
        long,
        global = true,
        value_name = "FMT",
        default_value = "human",
        help_heading = "Output"
    )]
    pub(crate) message_format: MessageFormat,
    /// Override a configuration value, e.g. search.seed=1
    #[arg(long, global = true, value_name = "KEY=VALUE", help_heading = "Output")]
    pub(crate) config: Vec<String>,
    /// Features that may still change; `-Z help` lists them
    #[arg(
        short = 'Z',
        global = true,
        value_name = "FLAG",
        help_heading = "Output"
    )]
    pub(crate) unstable: Vec<String>,

    /// Configuration of these packages only, beside the workspace's
    #[arg(
        short,
        long,
        global = true,
        value_name = "SPEC",
        help_heading = "Package selection"
    )]
    pub(crate) package: Vec<String>,
    /// Configuration of all packages (the default)
    #[arg(long, global = true, help_heading = "Package selection")]
    pub(crate) workspace: bool,
    /// Not the configuration of these packages
    #[arg(
        long,
        global = true,
        value_name = "SPEC",
        conflicts_with = "package",
        help_heading = "Package selection"
    )]
    pub(crate) exclude: Vec<String>,

    /// Path to Cargo.toml
    #[arg(long, global = true, value_name = "PATH", help_heading = "Manifest")]
    pub(crate) manifest_path: Option<PathBuf>,
    /// Directory for everything generated
    #[arg(long, global = true, value_name = "DIR", help_heading = "Manifest")]
    pub(crate) target_dir: Option<PathBuf>,
    /// Fail rather than change metainfer.lock
    #[arg(long, global = true, help_heading = "Manifest")]
    pub(crate) locked: bool,
    /// Open no network connection
    #[arg(long, global = true, help_heading = "Manifest")]
    pub(crate) offline: bool,
    /// The same as --locked and --offline
    #[arg(long, global = true, help_heading = "Manifest")]
    pub(crate) frozen: bool,
}

/// Models and targets to work on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct Selection {
    /// Only this model (repeatable)
    #[arg(long = "model", value_name = "NAME")]
    pub(crate) models: Vec<String>,
    /// Only this target (repeatable)
    #[arg(long = "target", value_name = "NAME")]
    pub(crate) targets: Vec<String>,
}

/// Value of `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    Auto,
    Always,
    Never,
}

/// Value of `--message-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageFormat {
    Human,
    Json,
}

/// Returns what `--help` says of exit codes and environment variables.
fn reference() -> String {
    let header = STYLES.get_header();
    let mut text = format!("{header}Exit codes:{header:#}\n");
    for (code, meaning) in ExitCode::ALL.map(|code| (code as u8, code.meaning())) {
        let _ = writeln!(text, "  {code:<3}  {meaning}");
    }
    let _ = writeln!(text, "\n{header}Environment:{header:#}");
    for Variable { name, meaning } in VARIABLES {
        let _ = writeln!(text, "  {name:<32}  {meaning}");
    }
    text.truncate(text.trim_end().len());
    text
}

impl Global {
    pub(crate) fn is_locked(&self) -> bool {
        self.locked || self.frozen
    }

    /// Returns whether only part of the workspace is looked at.
    pub(crate) fn selects_packages(&self) -> bool {
        !self.package.is_empty() || !self.exclude.is_empty()
    }

    pub(crate) fn is_offline(&self) -> bool {
        self.offline || self.frozen
    }
}
