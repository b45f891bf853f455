//! What variants of a model are made of, as samples say.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Sample, ranges};
use crate::accuracy::split;
use crate::data::Samples;
use crate::graph::{Graph, Partition};
use crate::onnx::Error;
use crate::space::{Precision, Variant};
use crate::variant::{Roundings, Site, quantize, sites};

/// Samples that variants are compared on at most.
const MAX_CHECKS: usize = 32;

/// Variants by site; those of other sites are what the model says.
pub type Recipe = BTreeMap<usize, Variant>;

/// What may be varied in a model, fitted to samples. Equal models and samples give equal fits, so
/// that a recipe is all that has to be kept of a variant.
#[derive(Debug, Clone)]
pub struct Fit {
    /// The model.
    pub graph: Graph,
    /// What may be varied: its subgraphs.
    pub sites: Vec<Site>,
    /// How values are rounded.
    pub roundings: Roundings,
}

impl Fit {
    /// Fits variants of a canonical graph, which `path` is the file of, to samples. Cost: up to 160
    /// runs of the reference executor.
    ///
    /// # Errors
    /// If the reference executor cannot run the model.
    pub fn new(
        graph: &Graph,
        partition: &Partition,
        path: &Path,
        samples: &Samples,
    ) -> Result<Self, Error> {
        let sites = sites(graph, partition);
        let (fit, check) = Self::split(samples);
        let roundings = ranges(graph, path, &sites, &fit, &check)?;
        Ok(Self {
            graph: graph.clone(),
            sites,
            roundings,
        })
    }

    /// Splits samples into those that variants are fitted to and those that they are compared on.
    pub fn split(samples: &Samples) -> (Vec<&Sample>, Vec<&Sample>) {
        let (fit, mut check) = split(&samples.digests);
        check.truncate(MAX_CHECKS);
        let pick = |of: &[usize]| of.iter().map(|&idx| &samples.inputs[idx]).collect();
        (pick(&fit), pick(&check))
    }

    /// Returns the recipe in which every site that can be computed on integers is.
    pub fn all_integer(&self) -> Recipe {
        let can = |idx: &usize| !self.sites[*idx].integers.is_empty();
        let int8 = Variant {
            precision: Precision::Int8,
            ..Variant::default()
        };
        let sites = (0..self.sites.len()).filter(can);
        sites.map(|idx| (idx, int8)).collect()
    }

    /// Returns the graph of a recipe, not canonical: what is written as ONNX, and what the reference
    /// executor runs.
    ///
    /// # Panics
    /// Never: the range of every value that a site rounds was taken.
    pub fn graph_of(&self, recipe: &Recipe) -> Graph {
        let integer = recipe
            .iter()
            .filter(|(_, variant)| variant.precision == Precision::Int8);
        let integer = integer.map(|(site, _)| *site).collect();
        quantize(&self.graph, &self.sites, &integer, &self.roundings)
            .expect("the range of every value that a site rounds was taken")
    }
}
