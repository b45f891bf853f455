//! How the values of a model lie, and so how they are rounded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Sample;
use crate::graph::{Graph, ValueId, extract};
use crate::onnx::{Error, Runner};
use crate::variant::{Affine, Range, Spread, ties};

/// Samples that ranges are taken from at most: more change nothing (research: 32 to 64 suffice).
const MAX_SAMPLES: usize = 64;

/// Elements of a value that are looked at in each sample to choose a share of its range.
const MAX_LOOKED_AT: usize = 4096;

/// Returns how each of `values` is rounded to 8 bits: over the range that it has on the `fit`
/// samples, or over a share of it that rounds them with a smaller squared error, if it does so on
/// the `check` samples as well. Values that are only moved into each other share one rounding.
///
/// # Errors
/// If the reference executor cannot run the model.
pub fn ranges(
    graph: &Graph,
    path: &Path,
    values: &BTreeSet<ValueId>,
    fit: &[&Sample],
    check: &[&Sample],
) -> Result<BTreeMap<ValueId, Affine>, Error> {
    let ties = ties(graph);
    let group = |id: &ValueId| ties.get(id).copied().unwrap_or(*id);
    // All that is moved into one of the values counts.
    let groups: BTreeSet<ValueId> = values.iter().map(group).collect();
    let members: Vec<ValueId> = (0..graph.values.len())
        .map(ValueId)
        .filter(|id| groups.contains(&group(id)) && graph.constant(*id).is_none())
        .collect();
    let made: Vec<ValueId> = members
        .iter()
        .copied()
        .filter(|id| !graph.inputs.contains(id))
        .collect();
    let runner = Runner::new(&extract(graph, &[], &made), path)?;
    let mut ranges: BTreeMap<ValueId, Range> = BTreeMap::new();
    let fit = &fit[..fit.len().min(MAX_SAMPLES)];
    let check = &check[..check.len().min(MAX_SAMPLES / 2)];
    each(&runner, graph, &members, fit, &mut |id, data| {
        ranges.entry(group(&id)).or_default().widen(data);
    })?;
    let spread = |samples: &[&Sample]| -> Result<BTreeMap<ValueId, Spread>, Error> {
        let mut spreads: BTreeMap<ValueId, Spread> = BTreeMap::new();
        each(&runner, graph, &members, samples, &mut |id, data| {
            let group = group(&id);
            let stride = data.len().div_ceil(MAX_LOOKED_AT);
            let range = ranges.get(&group).copied().unwrap_or_default();
            spreads.entry(group).or_default().add(range, data, stride);
        })?;
        Ok(spreads)
    };
    let (fitted, held_out) = (spread(fit)?, spread(check)?);
    let affine = |id: &ValueId| {
        let group = group(id);
        let range = ranges.get(&group).copied().unwrap_or_default();
        let share = match (fitted.get(&group), held_out.get(&group)) {
            (Some(fitted), Some(held_out)) => fitted.best_share(held_out),
            _ => 1.0,
        };
        (*id, Affine::of(range.share(share)))
    };
    Ok(values.iter().map(affine).collect())
}

/// Runs samples and hands over the elements of each value.
fn each(
    runner: &Runner,
    graph: &Graph,
    values: &[ValueId],
    samples: &[&Sample],
    take: &mut dyn FnMut(ValueId, &[f32]),
) -> Result<(), Error> {
    for sample in samples {
        let made = runner.run(sample)?;
        for &id in values {
            let name = &graph.value(id).name;
            let tensor = made.get(name).or_else(|| sample.get(name));
            if let Some(data) = tensor.and_then(|tensor| tensor.as_f32()) {
                take(id, data);
            }
        }
    }
    Ok(())
}
