//! `graph`: what a model consists of, which is what would be tuned.

use std::collections::BTreeMap;

use crate::cli::args::Selection;
use crate::cli::exit_code::Outcome;
use crate::cli::files::shown;
use crate::cli::models::{self, Loaded};
use crate::cli::project::Project;
use crate::cli::run::Ctx;
use crate::cli::{Error, select};
use crate::config::{Model, Overrides};
use crate::report::{GraphAnswer, SubgraphRow};

/// Show the subgraphs of each model, their cost and their digests
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this model (repeatable)
    #[arg(long = "model", value_name = "NAME")]
    models: Vec<String>,
}

/// Answers for each selected model.
pub(crate) fn run(args: &Args, ctx: &Ctx) -> Result<Outcome, Error> {
    let Args { models } = args;
    let selection = Selection {
        models: models.clone(),
        targets: Vec::new(),
    };
    let project = Project::read(ctx, Overrides::default())?;
    for model in select::models(&project, &selection)? {
        let loaded = models::load(model)?;
        ctx.console.answer(&answer(model, &loaded));
    }
    Ok(Outcome::Done)
}

/// Puts equal subgraphs together, in the order of their first occurrence.
fn answer(model: &Model, loaded: &Loaded) -> GraphAnswer {
    let Loaded {
        graph,
        partition,
        digests,
        subgraphs,
    } = loaded;
    let mut rows: Vec<SubgraphRow> = Vec::new();
    let mut row_of = BTreeMap::new();
    for (idx, (subgraph, digests)) in partition.subgraphs.iter().zip(subgraphs).enumerate() {
        let structure = digests.structure;
        if let Some(&row_idx) = row_of.get(&structure) {
            let row: &mut SubgraphRow = &mut rows[row_idx];
            row.count += 1;
            continue;
        }
        row_of.insert(structure, rows.len());
        rows.push(SubgraphRow {
            idx,
            op: subgraph.describe(graph),
            outputs: subgraph
                .outputs
                .iter()
                .map(|&id| graph.value(id).shape.dims().to_vec())
                .collect(),
            flops: subgraph.flops(graph),
            count: 1,
            structure,
        });
    }
    GraphAnswer {
        model: model.name.clone(),
        path: shown(&model.path).display().to_string(),
        structure: digests.structure,
        content: digests.content,
        rows,
    }
}
