//! Which variant each site gets: the fastest whole within an error budget, as far as labels say.

use super::catalogue::{Catalogue, Way};
use super::study::Study;
use crate::adapt::composer::{self, FORMS, Stored, form_id};
use crate::adapt::job::Job;
use crate::adapt::session::Session;
use crate::calibrate::Recipe;
use crate::graph::ValueId;
use crate::search::compose::{Choice, End, Problem, Value};
use crate::search::frontier::{Plan, within};
use crate::space::{Precision, Variant};

/// What rounding an input of the model takes, bytes in a nanosecond: cautious.
const ROUNDED_BYTES_PER_NS: f64 = 4.0;

/// A recipe, and what it should come to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Planned {
    /// Variants by site.
    pub(super) recipe: Recipe,
    /// Latency, nanoseconds.
    pub(super) ns: f64,
    /// Sum of the errors of all roundings.
    pub(super) error: f64,
}

/// What was planned for a budget.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plans {
    /// The fastest within the budget.
    pub(super) best: Planned,
    /// Nothing within the budget should be faster than this, nanoseconds.
    pub(super) bound_ns: f64,
    /// Trade-offs of which none is both faster and better, fastest first.
    pub(super) front: Vec<Planned>,
}

/// The choices of one site, or of one input of the model.
struct Variable<'a> {
    /// By choice: the way, or the form of an input of the model.
    ways: Vec<Option<&'a Way>>,
    choices: Vec<Choice>,
    errors: Vec<f64>,
}

/// Plans the fastest recipe whose errors sum to `budget` at most; `None` if nothing is known of some
/// site.
pub(super) fn plan(
    study: &Study<'_>,
    base: &Job<'_>,
    session: &Session,
    catalogue: &Catalogue,
    ways: &[Vec<Way>],
    budget: f64,
) -> Option<Plans> {
    let n_sites = study.fit.sites.len();
    let mut variables: Vec<Variable<'_>> = (0..n_sites)
        .map(|site| of_site(study, base, catalogue, site, &ways[site]))
        .collect();
    let inputs = rounded_inputs(study);
    variables.extend(inputs.iter().map(|&input| of_input(study, input)));
    let problem = Problem {
        values: values(study, base, session, &inputs),
        subgraphs: variables.iter().map(|v| v.choices.clone()).collect(),
    };
    let errors: Vec<Vec<f64>> = variables.iter().map(|v| v.errors.clone()).collect();
    let found = within(&problem, &errors, budget).ok().flatten()?;
    let planned = |plan: &Plan| {
        let chosen = variables.iter().zip(&plan.choices);
        let chosen = chosen.filter_map(|(variable, &choice)| variable.ways[choice]);
        let integer = chosen.map(|way| &catalogue.entries[way.entry]);
        let integer = integer.filter(|entry| entry.form.precision == Precision::Int8);
        let int8 = Variant {
            precision: Precision::Int8,
            ..Variant::default()
        };
        Planned {
            recipe: integer.map(|entry| (entry.site, int8)).collect(),
            ns: plan.cost_ns,
            error: plan.error,
        }
    };
    Some(Plans {
        best: planned(&found.best),
        bound_ns: found.bound_ns,
        front: found.front.iter().map(planned).collect(),
    })
}

/// Returns the ways to run a site as choices: with a port for each value that may be rounded.
fn of_site<'a>(
    study: &Study<'_>,
    base: &Job<'_>,
    catalogue: &Catalogue,
    site: usize,
    ways: &'a [Way],
) -> Variable<'a> {
    let subgraph = &study.partition().subgraphs[site];
    let main = base.prepared.main_values(site);
    let own = &study.fit.sites[site];
    let alike = own
        .equal(&study.fit.roundings)
        .and(own.layer)
        .map(|layer| layer.x);
    let port = |id: &ValueId, is_integer: bool, side: usize, way: &Way| {
        let layout = match main {
            Some(main) if main[side] == *id => way.layouts[side].as_str(),
            _ => composer::LAYOUT_ANY,
        };
        let is_int8 = catalogue.entries[way.entry].form.precision == Precision::Int8;
        let stored = match is_integer {
            true if side == 0 && is_int8 && alike == Some(*id) => Stored::Alike,
            true => Stored::Integers,
            false => Stored::Numbers,
        };
        form_id(layout, stored)
    };
    let mut variable = Variable {
        ways: Vec::new(),
        choices: Vec::new(),
        errors: Vec::new(),
    };
    for way in ways {
        let form = &catalogue.entries[way.entry].form;
        let inputs = subgraph.inputs.iter();
        let inputs = inputs.map(|id| port(id, form.integer_inputs.contains(id), 0, way));
        let outputs = subgraph.outputs.iter();
        let outputs = outputs.map(|id| port(id, form.integer_outputs.contains(id), 1, way));
        variable.choices.push(Choice {
            cost_ns: way.ns,
            inputs: inputs.collect(),
            outputs: outputs.collect(),
        });
        let of_value = |id: &ValueId| study.value_errors.get(id).copied().unwrap_or(0.0);
        let mut error: f64 = form.integer_outputs.iter().map(of_value).sum();
        if form.precision == Precision::Int8 {
            let weights = study.weight_errors.get(&site).copied();
            let inner = own.rounded(&study.fit.roundings);
            let inner = inner.filter(|id| !subgraph.inputs.contains(id));
            error += weights.unwrap_or(0.0) + inner.map(|id| of_value(&id)).sum::<f64>();
        }
        variable.errors.push(error);
        variable.ways.push(Some(way));
    }
    if variable.choices.is_empty() {
        // Nothing to choose and nothing measured: it costs the same in any whole.
        variable.choices.push(Choice {
            cost_ns: 0.0,
            inputs: vec![form_id(composer::LAYOUT_ANY, Stored::Numbers); subgraph.inputs.len()],
            outputs: vec![form_id(composer::LAYOUT_ANY, Stored::Numbers); subgraph.outputs.len()],
        });
        variable.errors.push(0.0);
        variable.ways.push(None);
    }
    variable
}

/// Returns the inputs of the model that may be rounded.
fn rounded_inputs(study: &Study<'_>) -> Vec<ValueId> {
    let inputs = study.graph().inputs.iter();
    let inputs = inputs.filter(|id| study.fit.roundings.affine.contains_key(id));
    inputs.copied().collect()
}

/// Returns the forms of an input of the model: as it comes, or rounded in a step of its own.
fn of_input<'a>(study: &Study<'_>, input: ValueId) -> Variable<'a> {
    let bytes = 5.0 * study.graph().value(input).shape.len() as f64;
    let choice = |is_integer: bool| Choice {
        cost_ns: f64::from(u8::from(is_integer)) * bytes / ROUNDED_BYTES_PER_NS,
        inputs: Vec::new(),
        outputs: vec![form_id(
            "nchw",
            if is_integer {
                Stored::Integers
            } else {
                Stored::Numbers
            },
        )],
    };
    Variable {
        ways: vec![None, None],
        choices: vec![choice(false), choice(true)],
        errors: vec![0.0, study.value_errors.get(&input).copied().unwrap_or(0.0)],
    }
}

/// Returns the values between sites: converted between layouts at a cost, never between forms.
fn values(study: &Study<'_>, base: &Job<'_>, session: &Session, inputs: &[ValueId]) -> Vec<Value> {
    let graph = study.graph();
    let subgraphs = &study.partition().subgraphs;
    let n_sites = subgraphs.len();
    let ports = |id: ValueId, of: &dyn Fn(usize) -> Vec<ValueId>| -> Vec<End> {
        let sites = (0..n_sites).filter_map(|subgraph| {
            let port = of(subgraph).iter().position(|other| *other == id)?;
            Some(End::Port { subgraph, port })
        });
        sites.collect()
    };
    let fixed = || End::Fixed(form_id("nchw", Stored::Numbers));
    let mut values = Vec::new();
    for id in (0..graph.values.len()).map(ValueId) {
        let made = ports(id, &|site| subgraphs[site].outputs.clone());
        let input = inputs.iter().position(|input| *input == id);
        let producer = match (made.first(), input) {
            (Some(port), _) => *port,
            (None, Some(position)) => End::Port {
                subgraph: n_sites + position,
                port: 0,
            },
            (None, None) if graph.inputs.contains(&id) => fixed(),
            (None, None) => continue,
        };
        let mut consumers = ports(id, &|site| subgraphs[site].inputs.clone());
        if graph.outputs.contains(&id) {
            consumers.push(fixed());
        }
        if !consumers.is_empty() {
            values.push(Value {
                producer,
                consumers,
                conversion_ns: composer::form_conversions(base, session, id),
            });
        }
    }
    debug_assert!(values.iter().all(|v| v.conversion_ns.len() == FORMS));
    values
}
