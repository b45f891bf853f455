//! A recurrent node, read.

use super::{packed, plain};
use crate::backend::native::lower::loops::node::{Known, LoopNode};
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::{Attribute, DType};

/// Which recurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recurrence {
    Lstm,
    Gru,
    Rnn,
}

/// An activation with its constants.
#[derive(Debug, Clone)]
pub(super) struct Activation {
    /// Its name in lower case.
    pub(super) name: String,
    pub(super) alpha: f32,
    pub(super) beta: f32,
}

/// One direction.
#[derive(Debug, Clone)]
pub(super) struct Direction {
    pub(super) is_reverse: bool,
    pub(super) activations: Vec<Activation>,
}

/// Operands, sizes and attributes of a recurrent node.
#[derive(Debug)]
pub(super) struct Cell<'a> {
    pub(super) recurrence: Recurrence,
    pub(super) directions: Vec<Direction>,
    pub(super) x: Known<'a>,
    /// `[directions, gates · hidden, inputs]`
    pub(super) w: Known<'a>,
    /// `[directions, gates · hidden, hidden]`
    pub(super) r: Known<'a>,
    /// `[directions, 2 · gates · hidden]`
    pub(super) b: Option<Known<'a>>,
    pub(super) lengths: Option<Known<'a>>,
    pub(super) h: Option<Known<'a>>,
    pub(super) c: Option<Known<'a>>,
    /// `[directions, 3 · hidden]`
    pub(super) p: Option<Known<'a>>,
    /// `Y`, `Y_h` and `Y_c` as far as they are wanted.
    pub(super) outputs: [Option<Known<'a>>; 3],
    pub(super) steps: usize,
    pub(super) batch: usize,
    pub(super) inputs: usize,
    pub(super) hidden: usize,
    /// Whether the batch comes first.
    pub(super) batch_first: bool,
    pub(super) clip: Option<f32>,
    /// Whether the forget gate is what the input gate leaves (LSTM).
    pub(super) couples: bool,
    /// Whether the reset gate follows the product (GRU).
    pub(super) resets_late: bool,
}

/// Lowers a recurrent node; `None` if it is none.
pub(in crate::backend::native::lower::loops) fn lower(
    node: &LoopNode<'_>,
) -> Option<Result<Vec<Operation>, NotCovered>> {
    let recurrence = match node.node.op.as_str() {
        "LSTM" => Recurrence::Lstm,
        "GRU" => Recurrence::Gru,
        "RNN" => Recurrence::Rnn,
        _ => return None,
    };
    Some(read(node, recurrence).and_then(|cell| {
        let operation = match packed::operation(node, &cell) {
            Some(operation) => operation,
            None => plain::operation(node, &cell)?,
        };
        Ok(vec![operation])
    }))
}

impl Recurrence {
    pub(super) fn gates(self) -> usize {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
            Self::Rnn => 1,
        }
    }

    fn default_activations(self) -> &'static [&'static str] {
        match self {
            Self::Lstm => &["Sigmoid", "Tanh", "Tanh"],
            Self::Gru => &["Sigmoid", "Tanh"],
            Self::Rnn => &["Tanh"],
        }
    }
}

impl Cell<'_> {
    /// Distances in `X` between steps and between batch entries.
    pub(super) fn x_strides(&self) -> [usize; 2] {
        if self.batch_first {
            [self.inputs, self.steps * self.inputs]
        } else {
            [self.batch * self.inputs, self.inputs]
        }
    }

    /// Distances in `Y` between steps, directions and batch entries.
    pub(super) fn y_strides(&self) -> [usize; 3] {
        let (d, b, h) = (self.directions.len(), self.batch, self.hidden);
        if self.batch_first {
            [d * h, h, self.steps * d * h]
        } else {
            [d * b * h, b * h, h]
        }
    }

    /// Distances in states between directions and between batch entries.
    pub(super) fn state_strides(&self) -> [usize; 2] {
        if self.batch_first {
            [self.hidden, self.directions.len() * self.hidden]
        } else {
            [self.batch * self.hidden, self.hidden]
        }
    }
}

fn read<'a>(node: &LoopNode<'a>, recurrence: Recurrence) -> Result<Cell<'a>, NotCovered> {
    let (x, w, r) = (node.required(0)?, node.required(1)?, node.required(2)?);
    let batch_first = node.node.int("layout", 0) != 0;
    let is_lstm = recurrence == Recurrence::Lstm;
    let cell_inputs = |idx| is_lstm.then(|| node.input(idx)).flatten();
    let (&[first, second, inputs], &[n_directions, rows, hidden]) = (x.dims(), r.dims()) else {
        return Err(node.refuse(format!("input {} with weights {}", x.shape, r.shape)));
    };
    let (batch, steps) = if batch_first {
        (first, second)
    } else {
        (second, first)
    };
    let cell = Cell {
        recurrence,
        directions: directions(node, recurrence)?,
        x,
        w,
        r,
        b: node.input(3),
        lengths: node.input(4),
        h: node.input(5),
        c: cell_inputs(6),
        p: cell_inputs(7),
        outputs: [node.output(0), node.output(1), node.output(2)],
        steps,
        batch,
        inputs,
        hidden,
        batch_first,
        clip: match node.node.attributes.get("clip") {
            Some(Attribute::Float(clip)) => Some(*clip),
            _ => None,
        },
        couples: node.node.int("input_forget", 0) != 0,
        resets_late: node.node.int("linear_before_reset", 0) != 0,
    };
    let gates = recurrence.gates();
    let n = n_directions * hidden;
    let has = |known: Option<Known<'_>>, len: usize| known.is_none_or(|k| k.shape.len() == len);
    let fits = n_directions == cell.directions.len()
        && rows == gates * hidden
        && w.dims() == [n_directions, rows, inputs]
        && has(cell.b, 2 * gates * n)
        && has(cell.h, batch * n)
        && has(cell.c, batch * n)
        && has(cell.p, 3 * n)
        && has(cell.lengths, batch);
    if !fits {
        return Err(node.refuse(format!(
            "operands of other extents than input {} and {n_directions} directions of {hidden} units need",
            x.shape
        )));
    }
    let floats = [Some(x), Some(w), Some(r), cell.b, cell.h, cell.c, cell.p];
    let floats = floats.iter().chain(&cell.outputs).flatten();
    if !x.dtype.is_float() || floats.into_iter().any(|known| known.dtype != x.dtype) {
        return Err(node.refuse(format!("elements of {}", x.dtype)));
    }
    if cell.lengths.is_some_and(|known| known.dtype != DType::I32) {
        return Err(node.refuse("lengths that are not i32"));
    }
    Ok(cell)
}

fn directions(node: &LoopNode<'_>, recurrence: Recurrence) -> Result<Vec<Direction>, NotCovered> {
    let reversed: &[bool] = match node.node.string("direction", "forward") {
        "forward" => &[false],
        "reverse" => &[true],
        "bidirectional" => &[false, true],
        other => return Err(node.refuse(format!("direction `{other}`"))),
    };
    let defaults = recurrence.default_activations();
    let names: Vec<String> = match node.node.attributes.get("activations") {
        Some(Attribute::Strings(names)) if names.len() == defaults.len() * reversed.len() => {
            names.clone()
        }
        None => defaults
            .repeat(reversed.len())
            .iter()
            .map(|&name| name.to_owned())
            .collect(),
        _ => return Err(node.refuse("another number of activations")),
    };
    // Constants are given in order to those activations that have them.
    let floats = |name: &str| match node.node.attributes.get(name) {
        Some(Attribute::Floats(values)) => values.clone(),
        _ => Vec::new(),
    };
    let (alphas, betas) = (floats("activation_alpha"), floats("activation_beta"));
    let (mut alphas, mut betas) = (alphas.into_iter(), betas.into_iter());
    let mut activations = names.iter().map(|name| {
        let name = name.to_lowercase();
        let (alpha, beta) = match name.as_str() {
            "sigmoid" | "tanh" | "relu" | "softsign" | "softplus" => (None, None),
            "affine" => (Some(1.0), Some(0.0)),
            "scaledtanh" => (Some(1.0), Some(1.0)),
            "hardsigmoid" => (Some(0.2), Some(0.5)),
            "leakyrelu" => (Some(0.01), None),
            "thresholdedrelu" | "elu" => (Some(1.0), None),
            _ => return Err(node.refuse(format!("activation `{name}`"))),
        };
        let constant = |default: Option<f32>, given: &mut std::vec::IntoIter<f32>| {
            default.map_or(0.0, |default| given.next().unwrap_or(default))
        };
        Ok(Activation {
            alpha: constant(alpha, &mut alphas),
            beta: constant(beta, &mut betas),
            name,
        })
    });
    reversed
        .iter()
        .map(|&is_reverse| {
            Ok(Direction {
                is_reverse,
                activations: activations
                    .by_ref()
                    .take(defaults.len())
                    .collect::<Result<_, _>>()?,
            })
        })
        .collect()
}
