//! What samples say of a model's variants, on any device.

use std::collections::{BTreeMap, BTreeSet};

use super::gate::Verdict;
use crate::accuracy::{Divergence, Limits, score};
use crate::adapt::job::Source;
use crate::calibrate::{Fit, Recipe, Sample, Teacher, divergences};
use crate::data::Samples;
use crate::graph::{Graph, Partition, Subgraph, ValueId};
use crate::lock::{Deployment, Figure, GateFigures};
use crate::onnx;
use crate::space::Variant;
use crate::variant::{Site, quantize};

/// A model, and what its variants cost in accuracy.
pub(super) struct Study<'a> {
    /// The model.
    pub(super) base: &'a Source,
    /// What may be varied, and what it becomes.
    pub(super) fit: Fit,
    /// What rounding a value costs.
    pub(super) value_errors: BTreeMap<ValueId, f64>,
    /// What rounding the weights of a site costs.
    pub(super) weight_errors: BTreeMap<usize, f64>,
    teacher: Teacher,
    limits: Limits,
}

impl<'a> Study<'a> {
    /// Finds how values are rounded, and what each rounding costs alone. Cost: about as many runs of
    /// the reference executor as there are samples, and one for each site and sample.
    ///
    /// # Errors
    /// If the reference executor cannot run the model.
    pub(super) fn new(
        base: &'a Source,
        samples: &Samples,
        limits: &Limits,
    ) -> Result<Self, onnx::Error> {
        let (graph, path) = (base.graph(), base.loaded.path.as_path());
        let fit = Fit::new(graph, &base.partition, path, samples)?;
        let (_, check) = Fit::split(samples);
        let mut study = Self {
            base,
            fit,
            value_errors: BTreeMap::new(),
            weight_errors: BTreeMap::new(),
            teacher: Teacher::new(graph, path, &check)?,
            limits: *limits,
        };
        study.look_at_each()?;
        Ok(study)
    }

    /// Returns the graph of the model.
    pub(super) fn graph(&self) -> &Graph {
        self.base.graph()
    }

    /// Returns its subgraphs.
    pub(super) fn partition(&self) -> &Partition {
        &self.base.partition
    }

    /// Returns the inputs of a site that are integers if it is computed on integers.
    pub(super) fn integer_inputs(&self, site: usize) -> Vec<ValueId> {
        let inputs = &self.partition().subgraphs[site].inputs;
        let integers = self.fit.sites[site].integers.iter();
        integers.filter(|id| inputs.contains(id)).copied().collect()
    }

    /// Returns how far recipes are from the model.
    ///
    /// # Errors
    /// If the reference executor cannot run one.
    pub(super) fn divergences(&self, recipes: &[Recipe]) -> Result<Vec<Divergence>, onnx::Error> {
        let graphs: Vec<Graph> = recipes
            .iter()
            .map(|recipe| self.fit.graph_of(recipe))
            .collect();
        divergences(&self.teacher, &graphs)
    }

    /// Returns what adds up of a divergence, as a share of its limit.
    pub(super) fn share(&self, divergence: &Divergence) -> f64 {
        let (error, limit) = score(divergence, &self.limits);
        error / limit
    }

    /// Returns how many samples variants are compared on.
    pub(super) fn n_checks(&self) -> usize {
        self.teacher.traces().len()
    }

    /// Returns the limits that a deployment has to keep to.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the samples that variants are checked on.
    pub(super) fn checks(&self) -> Vec<Sample> {
        let inputs = self.graph().inputs.iter();
        let names: Vec<&String> = inputs.map(|&id| &self.graph().value(id).name).collect();
        let traces = self.teacher.traces().iter();
        let inputs = traces.map(|values| {
            let given = names
                .iter()
                .filter_map(|name| Some(((*name).clone(), values.get(*name)?.clone())));
            given.collect()
        });
        inputs.collect()
    }

    /// Adds to a deployment of a recipe what it rests on: the variants of its subgraphs and of the
    /// model's, and what the last check found.
    pub(super) fn describe(
        &self,
        recipe: &Recipe,
        source: &Source,
        deployment: &mut Deployment,
        verdict: &Verdict,
    ) {
        let made = |source: &Source, subgraph: &Subgraph| -> BTreeSet<String> {
            let graph = source.graph();
            let nodes = subgraph.nodes().into_iter();
            let made = nodes
                .flat_map(|id| graph.node(id).outputs.clone())
                .flatten();
            made.map(|id| graph.value(id).name.clone()).collect()
        };
        let of_sites: Vec<(BTreeSet<String>, Variant)> = recipe
            .iter()
            .map(|(&site, &variant)| (made(self.base, &self.partition().subgraphs[site]), variant))
            .collect();
        let subgraphs = source.partition.subgraphs.iter();
        for (subgraph, locked) in subgraphs.zip(&mut deployment.subgraphs) {
            // What is only rounded is no variant of anything.
            let made = made(source, subgraph);
            let site = of_sites
                .iter()
                .find(|(of_site, _)| !of_site.is_disjoint(&made));
            if let Some((_, variant)) = site {
                locked.candidate.variant = *variant;
            }
        }
        let known = deployment.divergence;
        let figure = |value: f64| Figure::new(value).unwrap_or(known);
        let divergence = verdict.divergence;
        deployment.divergence = figure(divergence.relative_l2);
        let count = |n: usize| n as u32;
        let gate = GateFigures {
            n_samples: count(verdict.n_samples),
            relative_l2: figure(divergence.relative_l2),
            kl: divergence.kl.and_then(Figure::new),
            paired: verdict
                .paired
                .map(|paired| [count(paired.lost), count(paired.gained)]),
        };
        if let Some(accuracy) = &mut deployment.accuracy {
            accuracy.gate = Some(gate);
            accuracy.variants = recipe
                .iter()
                .map(|(site, variant)| (count(*site), *variant))
                .collect();
        }
    }

    /// Measures what each rounding costs alone.
    fn look_at_each(&mut self) -> Result<(), onnx::Error> {
        let values: Vec<ValueId> = self.fit.roundings.affine.keys().copied().collect();
        let layers: Vec<usize> = (0..self.fit.sites.len())
            .filter(|&idx| {
                self.fit.sites[idx].layer.is_some() && !self.fit.sites[idx].integers.is_empty()
            })
            .collect();
        let alone = |value: ValueId| Site {
            anchor: crate::graph::NodeId(0),
            layer: None,
            integers: vec![value],
        };
        let of_values = values.iter().map(|&value| [alone(value)]);
        let of_layers = layers.iter().map(|&idx| {
            // What is rounded for this layer alone is a part of what it costs.
            let site = &self.fit.sites[idx];
            let own = site.equal(&self.fit.roundings).and(site.layer);
            [Site {
                integers: own.map(|layer| layer.x).into_iter().collect(),
                ..site.clone()
            }]
        });
        let graphs = of_values.chain(of_layers).map(|sites| {
            quantize(self.graph(), &sites, &[0].into(), &self.fit.roundings)
                .expect("the range of each of these values was taken")
        });
        let graphs: Vec<Graph> = graphs.collect();
        let errors = divergences(&self.teacher, &graphs)?;
        let errors: Vec<f64> = errors
            .iter()
            .map(|divergence| self.share(divergence))
            .collect();
        let mut errors = errors.into_iter();
        self.value_errors = values.iter().copied().zip(errors.by_ref()).collect();
        self.weight_errors = layers.into_iter().zip(errors).collect();
        for (&value, error) in &self.value_errors {
            let value = &self.graph().value(value).name;
            tracing::debug!(value, error, "rounded");
        }
        for (site, error) in &self.weight_errors {
            tracing::debug!(site, error, "weights rounded");
        }
        Ok(())
    }
}
