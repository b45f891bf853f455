//! Every site in every form, side by side in one graph: what each takes is read off labels.
//!
//! The graph is never built as a whole. It is cut and prepared as any other, so that its subgraphs
//! have the structure digests, and so the tasks and labels, that they have in a whole model.

use std::collections::BTreeMap;

use super::study::Study;
use crate::adapt::composer::{LAYOUT_ANY, layout_pair};
use crate::adapt::job::{Job, Source};
use crate::adapt::session::Session;
use crate::adapt::{Error, OpenBackend, Request};
use crate::backend::Backend;
use crate::config::Model;
use crate::device::Target;
use crate::graph::{Graph, ValueId, partition, side_by_side};
use crate::label::{Outcome, quantile};
use crate::space::Precision;
use crate::store::TaskLabels;
use crate::variant::{Part, part};

/// What integers save as long as nothing says so, as a share of the time of f32.
const INTEGER_SHARE: f64 = 0.6;

/// What converting one element takes as long as it was not measured, nanoseconds.
const CONVERTED_NS: f64 = 0.2;

/// One form of one site.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The site.
    pub(super) site: usize,
    /// How it is computed, and the form of its values.
    pub(super) form: Part,
    /// Elements that a site of numbers reads or makes as integers.
    n_converted: usize,
    /// Nodes of the graph that are its own.
    nodes: std::ops::Range<usize>,
}

/// One way to run a site.
#[derive(Debug, Clone)]
pub(super) struct Way {
    /// Index of its entry.
    pub(super) entry: usize,
    /// Layouts of what it mainly reads and makes.
    pub(super) layouts: [String; 2],
    /// Latency, nanoseconds.
    pub(super) ns: f64,
}

/// All sites in all forms.
pub(super) struct Catalogue {
    pub(super) entries: Vec<Entry>,
    /// The graph, as a model.
    source: Source,
    /// By entry: its subgraphs.
    subgraphs: Vec<Vec<usize>>,
}

impl Catalogue {
    /// Lists the forms that a backend covers.
    pub(super) fn new(study: &Study<'_>, backend: &dyn Backend) -> Self {
        let graph = study.graph();
        let mut entries = Vec::new();
        let mut graphs: Vec<Graph> = Vec::new();
        let mut n_nodes = 0;
        for (site, subgraph) in study.partition().subgraphs.iter().enumerate() {
            for form in forms(study, site) {
                let alone = part(
                    graph,
                    subgraph,
                    &study.fit.sites[site],
                    &form,
                    &study.fit.roundings.affine,
                );
                let Ok(alone) = alone else { continue };
                if backend.prepare(&alone, &partition(&alone)).is_err() {
                    continue;
                }
                let nodes = n_nodes..n_nodes + alone.nodes.len();
                n_nodes = nodes.end;
                let converted = form.integer_inputs.iter().chain(&form.integer_outputs);
                let converted = converted.filter(|_| form.precision == Precision::F32);
                entries.push(Entry {
                    site,
                    n_converted: converted.map(|id| graph.value(*id).shape.len()).sum(),
                    form,
                    nodes,
                });
                graphs.push(alone);
            }
        }
        let (whole, _) = side_by_side(graphs);
        let source = study.base.canonical(whole);
        let of_entry = |entry: &Entry| {
            let subgraphs = source.partition.subgraphs.iter().enumerate();
            let own = subgraphs.filter(|(_, subgraph)| entry.nodes.contains(&subgraph.anchor.0));
            own.map(|(idx, _)| idx).collect()
        };
        Self {
            subgraphs: entries.iter().map(of_entry).collect(),
            entries,
            source,
        }
    }

    /// Prepares the graph for a target.
    ///
    /// # Errors
    /// If the backend does not work.
    pub(super) fn job<'a>(
        &'a self,
        request: &Request,
        model: &'a Model,
        target: &'a Target,
        open_backend: &OpenBackend<'_>,
    ) -> Result<Job<'a>, Error> {
        Job::new(request, model, target, &self.source, open_backend)
    }

    /// Returns the ways to run each site, by site, as far as labels or those of other forms say what
    /// they take.
    pub(super) fn ways(
        &self,
        job: &Job<'_>,
        labels: &TaskLabels,
        study: &Study<'_>,
    ) -> Vec<Vec<Way>> {
        let mut session = Session::new(job, 0, 0, &BTreeMap::new());
        session.resume(job, labels, &[]);
        let known: Vec<Vec<Way>> = (0..self.entries.len())
            .map(|entry| self.measured(job, &session, labels, entry))
            .collect();
        let mut ways = vec![Vec::new(); study.fit.sites.len()];
        for (idx, entry) in self.entries.iter().enumerate() {
            let own = if known[idx].is_empty() {
                self.estimated(idx, &known)
            } else {
                known[idx].clone()
            };
            ways[entry.site].extend(own);
        }
        ways
    }

    /// Returns what is measured of an entry: the best for each pair of layouts.
    fn measured(
        &self,
        job: &Job<'_>,
        session: &Session,
        labels: &TaskLabels,
        entry: usize,
    ) -> Vec<Way> {
        let mut fixed_ns = 0.0;
        let mut best: Option<BTreeMap<[String; 2], f64>> = None;
        for &subgraph in &self.subgraphs[entry] {
            let task = job.task_of[subgraph];
            let Some(search) = &session.searches[task] else {
                let key = job.tasks[task].key.digest();
                let Some(ns) = plain_latency(labels, key) else {
                    return Vec::new();
                };
                fixed_ns += ns;
                continue;
            };
            if search.best().is_none() {
                return Vec::new();
            }
            let by_layouts = search.best_by(|mapping| layout_pair(job, subgraph, mapping));
            let by_layouts: BTreeMap<[String; 2], f64> = by_layouts
                .into_iter()
                .map(|(layouts, (_, estimate))| (layouts, estimate.ns))
                .collect();
            // Of several subgraphs the slowest decides on the layouts.
            let cheapest = |ways: &BTreeMap<[String; 2], f64>| {
                ways.values().copied().fold(f64::INFINITY, f64::min)
            };
            best = Some(match best.take() {
                None => by_layouts,
                Some(other) => {
                    let (main, minor) = if cheapest(&other) >= cheapest(&by_layouts) {
                        (other, by_layouts)
                    } else {
                        (by_layouts, other)
                    };
                    fixed_ns += cheapest(&minor);
                    main
                }
            });
        }
        let any = || [LAYOUT_ANY.to_owned(), LAYOUT_ANY.to_owned()];
        let best = best.unwrap_or_else(|| [(any(), 0.0)].into());
        let way = |(layouts, ns)| Way {
            entry,
            layouts,
            ns: ns + fixed_ns,
        };
        best.into_iter().map(way).collect()
    }

    /// Returns what an entry should take, by what other forms of its site do; what no form of was
    /// measured costs nothing but conversions.
    fn estimated(&self, entry: usize, known: &[Vec<Way>]) -> Vec<Way> {
        let own = &self.entries[entry];
        let others = self.entries.iter().enumerate();
        let others: Vec<(usize, bool)> = others
            .filter(|(idx, other)| other.site == own.site && !known[*idx].is_empty())
            .map(|(idx, other)| (idx, other.form.precision == own.form.precision))
            .collect();
        let of_one = |is_same: bool| others.iter().find(|(_, same)| *same == is_same);
        let (source, factor) = match (of_one(true), of_one(false), own.form.precision) {
            (Some((idx, _)), _, _) => (Some(*idx), 1.0),
            (None, Some((idx, _)), Precision::Int8) => (Some(*idx), INTEGER_SHARE),
            (None, Some((idx, _)), Precision::F32) => (Some(*idx), 1.0 / INTEGER_SHARE),
            (None, None, _) => (None, 1.0),
        };
        let converted_ns = CONVERTED_NS * own.n_converted as f64;
        let any = Way {
            entry,
            layouts: [LAYOUT_ANY.to_owned(), LAYOUT_ANY.to_owned()],
            ns: 0.0,
        };
        let known = source.map_or(std::slice::from_ref(&any), |idx| known[idx].as_slice());
        let way = |way: &Way| Way {
            entry,
            ns: way.ns * factor + converted_ns,
            layouts: way.layouts.clone(),
        };
        known.iter().map(way).collect()
    }
}

/// Returns the forms that a site may take: each precision with each form of the values around it.
fn forms(study: &Study<'_>, site: usize) -> Vec<Part> {
    let subgraph = &study.partition().subgraphs[site];
    let can_round = |id: &&ValueId| study.fit.roundings.affine.contains_key(id);
    let inputs: Vec<ValueId> = subgraph.inputs.iter().filter(can_round).copied().collect();
    let outputs: Vec<ValueId> = subgraph.outputs.iter().filter(can_round).copied().collect();
    let mut forms = Vec::new();
    for integer_outputs in subsets(&outputs) {
        for integer_inputs in subsets(&inputs) {
            forms.push(Part {
                precision: Precision::F32,
                integer_inputs,
                integer_outputs: integer_outputs.clone(),
            });
        }
        if study.fit.sites[site].integers.is_empty() {
            continue;
        }
        let needed = study.integer_inputs(site);
        for integer_inputs in subsets(&inputs) {
            if needed.iter().all(|id| integer_inputs.contains(id)) {
                forms.push(Part {
                    precision: Precision::Int8,
                    integer_inputs,
                    integer_outputs: integer_outputs.clone(),
                });
            }
        }
    }
    forms
}

/// Returns all subsets of a few values; of many, none and all of them.
fn subsets(values: &[ValueId]) -> Vec<Vec<ValueId>> {
    if values.len() > 3 {
        return vec![Vec::new(), values.to_vec()];
    }
    let subset = |bits: usize| {
        let chosen = values.iter().enumerate();
        let chosen = chosen.filter(move |(idx, _)| bits >> idx & 1 == 1);
        chosen.map(|(_, id)| *id).collect()
    };
    (0..1 << values.len()).map(subset).collect()
}

/// Returns what a subgraph without choices takes, as measured; `None` if it was not.
fn plain_latency(labels: &TaskLabels, key: crate::digest::Digest) -> Option<f64> {
    let labels = labels.get(&key)?.iter();
    let right = labels.filter(|label| label.outcome == Outcome::Ok);
    let measured = right.filter_map(|label| label.measurement.as_ref());
    let mut ns: Vec<u64> = measured.map(|m| m.latency.p25_ns as u64).collect();
    ns.sort_unstable();
    quantile(&ns, 0.5)
}
