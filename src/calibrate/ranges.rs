//! How the values of a model lie, and so how they are rounded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Sample;
use crate::graph::{Graph, ValueId, extract};
use crate::onnx::{Error, Runner};
use crate::variant::{Affine, Equal, Layer, Range, Roundings, Site, Spread, read_values, ties};

/// Samples that ranges are taken from at most: more change nothing (research: 32 to 64 suffice).
const MAX_SAMPLES: usize = 64;

/// Elements of a value that are looked at in each sample to choose a share of its range.
const MAX_LOOKED_AT: usize = 4096;

/// Returns how each value that the sites read is rounded to 8 bits: over the range that it has on the `fit`
/// samples, or over a share of it that rounds them with a smaller squared error, if it does so on
/// the `check` samples as well. Values that are only moved into each other share one rounding. The
/// channels of what products of matrices multiply are made alike if they are far from it.
///
/// # Errors
/// If the reference executor cannot run the model.
pub fn ranges(
    graph: &Graph,
    path: &Path,
    sites: &[Site],
    fit: &[&Sample],
    check: &[&Sample],
) -> Result<Roundings, Error> {
    let values = read_values(sites);
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
    let mut channels = channels(graph, sites);
    each(&runner, graph, &members, fit, &mut |id, data| {
        ranges.entry(group(&id)).or_default().widen(data);
        if let Some(channels) = channels.get_mut(&id) {
            let n = channels.len().max(1);
            for (idx, value) in data.iter().enumerate() {
                channels[idx % n].widen(std::slice::from_ref(value));
            }
        }
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
    Ok(Roundings {
        affine: values.iter().map(affine).collect(),
        equal: equal(graph, sites, &channels),
    })
}

/// Returns a range for each channel of what products of matrices multiply.
fn channels(graph: &Graph, sites: &[Site]) -> BTreeMap<ValueId, Vec<Range>> {
    let products = products(graph, sites).map(|layer| {
        let n = graph.value(layer.x).shape.dims().last().copied();
        (layer.x, vec![Range::default(); n.unwrap_or(0)])
    });
    products.collect()
}

/// Returns the layers that multiply along the last axis of what they read, as integers can.
fn products<'a>(graph: &'a Graph, sites: &'a [Site]) -> impl Iterator<Item = Layer> + 'a {
    let is_product = |site: &&Site| {
        let op = graph.node(site.anchor).op.as_str();
        matches!(op, "MatMul" | "Gemm")
    };
    let layers = sites.iter().filter(is_product);
    layers.filter_map(|site| site.layer.filter(|layer| site.integers.contains(&layer.x)))
}

/// Returns what makes channels alike, for the values where they are not.
fn equal(
    graph: &Graph,
    sites: &[Site],
    channels: &BTreeMap<ValueId, Vec<Range>>,
) -> BTreeMap<ValueId, Equal> {
    let found = channels.iter().filter_map(|(&value, ranges)| {
        let mut largest = vec![0f32; ranges.len()];
        for layer in products(graph, sites).filter(|layer| layer.x == value) {
            let tensor = graph.constant(layer.weights)?;
            let columns = tensor.shape().dims().last().copied().unwrap_or(1).max(1);
            for (idx, weight) in tensor.as_f32()?.iter().enumerate() {
                let channel = if layer.axis == 0 {
                    idx % columns
                } else {
                    idx / columns
                };
                let known = largest.get_mut(channel)?;
                *known = known.max(weight.abs());
            }
        }
        Some((value, Equal::of(ranges, &largest)?))
    });
    found.collect()
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
