//! `Einsum`: sums of products over named axes, of any number of operands.

use std::collections::BTreeMap;

use serde_json::json;

use super::element;
use super::nest;
use super::node::{Known, LoopNode};
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::DType;

/// First of the names that axes of an ellipsis get; no letter of an equation.
const UNNAMED: u32 = 0xe000;
/// Rows that are shorter are no loop of their own.
const MIN_ROW: usize = 4;
/// Sums that a dot product keeps side by side.
const LANES: usize = 16;

/// Lowers `Einsum`; `None` if it is another operator.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    (node.node.op == "Einsum").then(|| einsum(node))
}

fn einsum(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let y = node.main_output()?;
    if y.dtype == DType::Bool {
        return Err(node.refuse("Booleans have no sum"));
    }
    let mut inputs: Vec<Known<'_>> = Vec::new();
    for idx in 0..node.node.inputs.len() {
        inputs.push(node.required(idx)?);
    }
    let equation = Equation::read(node, &inputs)?;
    let size = |name: &char| equation.sizes[name];
    let (free, summed) = (&equation.output, &equation.summed);
    let extents: Vec<usize> = free.iter().map(size).collect();
    if extents != y.dims() {
        return Err(node.refuse("its equation does not fit its output"));
    }
    let along = |names: &[char]| -> Vec<Vec<usize>> {
        let operands = inputs.iter().zip(&equation.terms);
        operands
            .map(|(input, term)| strides(input.dims(), term, names))
            .collect()
    };
    let mut walked = along(free);
    walked.push(nest::dense(&extents));
    let (mut extents, mut walked) = nest::merge(&extents, &walked);
    let sums: Vec<usize> = summed.iter().map(size).collect();
    let (mut sums, mut inner) = nest::merge(&sums, &along(summed));
    if sums == [1] {
        sums.clear();
        inner.iter_mut().for_each(Vec::clear);
    }
    // Rows of the output are summed as a whole where operands have them in one piece.
    let last = |strides: &Vec<usize>| strides.last().copied().unwrap_or(0);
    let row = extents.last().copied().unwrap_or(1);
    let is_row = matches!(y.dtype, DType::F32 | DType::F64)
        && row >= MIN_ROW
        && walked.iter().all(|strides| last(strides) <= 1)
        && walked[..inputs.len()]
            .iter()
            .any(|strides| last(strides) == 1);
    let is_dot = !is_row
        && y.dtype.is_float()
        && inner.iter().all(|strides| last(strides) <= 1)
        && sums.last().is_some_and(|&n| n >= 2 * LANES);
    let n_inputs = inputs.len();
    let mut moves = vec![false; n_inputs];
    if is_row {
        extents.pop();
        for (idx, strides) in walked.iter_mut().enumerate() {
            let stride = strides.pop();
            if idx < n_inputs {
                moves[idx] = stride == Some(1);
            }
        }
    }
    let mut run = row;
    if is_dot {
        run = sums.pop().unwrap_or(1);
        for (idx, strides) in inner.iter_mut().enumerate() {
            moves[idx] = strides.pop() == Some(1);
        }
    }
    let is_float = y.dtype.is_float();
    let operands: Vec<_> = (0..n_inputs)
        .map(|idx| {
            json!({
                "outer": nest::place(&walked[idx]),
                "inner": nest::place(&inner[idx]).replace('i', "k"),
                "moves": moves[idx],
                "load": element::load(inputs[idx].dtype, &format!("p{idx}")),
                "load_moved": element::load(inputs[idx].dtype, &format!("p{idx}.add(r)")),
            })
        })
        .collect();
    let product = (1..n_inputs).fold("v0".to_owned(), |product, idx| {
        if is_float {
            format!("{product} * v{idx}")
        } else {
            format!("{product}.wrapping_mul(v{idx})")
        }
    });
    let facts = json!({
        "mode": if is_row { "row" } else if is_dot { "dot" } else { "single" },
        "storage": element::storage(y.dtype),
        "dtype": element::rust_type(y.dtype),
        "extents": extents, "sums": sums, "run": run, "lanes": LANES,
        "operands": operands,
        "y_at": nest::place(&walked[n_inputs]),
        "product": product,
        "sum": if is_float { "acc + t" } else { "acc.wrapping_add(t)" },
        "zero": if is_float { "0.0" } else { "0" },
        "store": element::store(y.dtype, "v"),
    });
    Ok(vec![node.operation(
        "loops/einsum.rs.j2",
        facts,
        &inputs,
        &[y],
        0,
    )])
}

/// Returns the strides of an operand along named axes: of a diagonal those of its axes together.
fn strides(dims: &[usize], term: &[char], names: &[char]) -> Vec<usize> {
    let own = nest::dense(dims);
    let along = |name: &char| {
        let axes = term.iter().enumerate();
        let axes = axes.filter(|(axis, named)| *named == name && dims[*axis] != 1);
        axes.map(|(axis, _)| own[axis]).sum()
    };
    names.iter().map(along).collect()
}

/// An equation whose axes all have names.
struct Equation {
    /// Names of the axes of each operand.
    terms: Vec<Vec<char>>,
    output: Vec<char>,
    /// Names that the output lacks.
    summed: Vec<char>,
    sizes: BTreeMap<char, usize>,
}

impl Equation {
    fn read(node: &LoopNode<'_>, inputs: &[Known<'_>]) -> Result<Self, NotCovered> {
        let equation: String = node
            .node
            .string("equation", "")
            .split_whitespace()
            .collect();
        let misfit = || node.refuse(format!("its equation `{equation}` does not fit its inputs"));
        let (left, right) = match equation.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (equation.as_str(), None),
        };
        let texts: Vec<&str> = left.split(',').collect();
        if texts.len() != inputs.len() {
            return Err(misfit());
        }
        let mut terms = Vec::new();
        let mut sizes = BTreeMap::new();
        let mut n_unnamed = 0;
        for (text, input) in texts.iter().zip(inputs) {
            let n_named = text.chars().filter(char::is_ascii_alphabetic).count();
            let others = input.dims().len().checked_sub(n_named).ok_or_else(misfit)?;
            let term = names(text, others).ok_or_else(misfit)?;
            if term.len() != input.dims().len() {
                return Err(misfit());
            }
            if text.contains("...") {
                n_unnamed = n_unnamed.max(others);
            }
            for (&name, &size) in term.iter().zip(input.dims()) {
                let known = sizes.entry(name).or_insert(size);
                if *known == 1 {
                    *known = size;
                }
                if size != *known && size != 1 {
                    return Err(misfit());
                }
            }
            terms.push(term);
        }
        let output = match right {
            Some(text) => names(text, n_unnamed).ok_or_else(misfit)?,
            None => implied(&texts.concat(), n_unnamed),
        };
        let is_known = |name: &char| sizes.contains_key(name);
        let is_once = |name: &char| output.iter().filter(|other| *other == name).count() == 1;
        if !output.iter().all(|name| is_known(name) && is_once(name)) {
            return Err(misfit());
        }
        let summed = sizes.keys().copied();
        let summed = summed.filter(|name| !output.contains(name)).collect();
        Ok(Self {
            terms,
            output,
            summed,
            sizes,
        })
    }
}

/// Returns the names of a term's axes, of which `others` are in its ellipsis; those are named from
/// the last one on.
fn names(text: &str, others: usize) -> Option<Vec<char>> {
    let (front, back) = match text.split_once("...") {
        Some((front, back)) => (front, Some(back)),
        None => (text, None),
    };
    let mut names: Vec<char> = front.chars().collect();
    if let Some(back) = back {
        names.extend(
            (0..others as u32)
                .rev()
                .filter_map(|idx| char::from_u32(UNNAMED + idx)),
        );
        names.extend(back.chars());
    }
    let is_name = |name: &char| name.is_ascii_alphabetic() || *name as u32 >= UNNAMED;
    names.iter().all(is_name).then_some(names)
}

/// Returns the output that is not stated: the axes of ellipses, then those named once, by alphabet.
fn implied(all: &str, n_unnamed: usize) -> Vec<char> {
    let mut named: Vec<char> = all.chars().filter(char::is_ascii_alphabetic).collect();
    named.sort_unstable();
    let single: String = named
        .chunk_by(|a, b| a == b)
        .filter(|same| same.len() == 1)
        .flatten()
        .collect();
    let ellipsis = if n_unnamed > 0 { "..." } else { "" };
    names(&format!("{ellipsis}{single}"), n_unnamed).unwrap_or_default()
}
