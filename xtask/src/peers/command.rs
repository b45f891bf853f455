//! The command: every model at every number of threads.

use anyhow::Result;

use super::build;
use super::race::race;
use super::scripts::Scripts;
use super::table;
use crate::models::{self, Precision};

/// What to measure.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Names of models; all of them if none is given
    names: Vec<String>,
    /// Precisions of model files, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "f32")]
    pub(super) precision: Vec<Precision>,
    /// Numbers of threads, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..))]
    threads: Vec<u32>,
    /// Only our untuned builds: nothing is adapted
    #[arg(long)]
    pub(super) untuned: bool,
    /// Use the programs in target/release as they are
    #[arg(long)]
    no_build: bool,
    /// Rounds that are measured
    #[arg(long, default_value_t = 600)]
    pub(super) rounds: u32,
    /// Calls of each engine before the first round
    #[arg(long, default_value_t = 50)]
    pub(super) warmup: u32,
    /// Inputs of each kind that the outputs are compared on
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) inputs: u32,
    /// Seed of the inputs and of the order
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,
    /// First processor core to run on
    #[arg(long, default_value_t = 1)]
    pub(super) core: u32,
    /// How to print the results
    #[arg(long, value_enum, default_value = "human")]
    message_format: MessageFormat,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum MessageFormat {
    /// Tables.
    Human,
    /// One object a race, each on a line.
    Json,
}

/// Measures the models one after the other.
pub(crate) fn run(args: &Args) -> Result<()> {
    let scripts = Scripts::install()?;
    if !args.no_build {
        build::programs()?;
    }
    let mut answers = Vec::new();
    for model in models::select(&args.names)? {
        models::prepare(model)?;
        for &threads in &args.threads {
            let answer = race(model, threads, args, &scripts)?;
            match args.message_format {
                MessageFormat::Human => println!("{}\n", table::race(&answer)),
                MessageFormat::Json => println!("{}", serde_json::to_string(&answer)?),
            }
            answers.push(answer);
        }
    }
    if args.message_format == MessageFormat::Human {
        println!("{}", table::summary(&answers));
    }
    Ok(())
}
