//! Reductions along axes, `ArgMax` and `ArgMin`.
//!
//! Sums of floats run in as many accumulators as make a vector. What is computed of integers that
//! is no integer (`ReduceL2`, `ReduceLogSum`, …) is computed in f64.

use serde_json::json;

use super::axes::{Axes, over};
use super::element;
use super::nest;
use super::node::LoopNode;
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::{DType, from_front};

/// Lowers a reduction; `None` if it is none.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    match node.node.op.as_str() {
        "ArgMax" | "ArgMin" => Some(arg(node)),
        op => op.strip_prefix("Reduce").map(|kind| reduce(node, kind)),
    }
}

/// How elements become one.
struct Fold {
    /// The type of the accumulators.
    sum: &'static str,
    /// What they start from.
    start: String,
    /// What an element `v` is turned into before it is folded; `most` is the largest one.
    map: String,
    /// `a` and `b` folded.
    combine: &'static str,
    /// What the accumulator `a` becomes.
    finish: String,
    /// Whether the largest element is found first.
    needs_most: bool,
}

fn fold(kind: &str, dtype: DType, count: usize) -> Option<Fold> {
    match kind {
        "Max" => return Some(extreme(dtype, true)),
        "Min" => return Some(extreme(dtype, false)),
        _ if dtype == DType::Bool => return None,
        _ => {}
    }
    let is_float = dtype.is_float();
    let own = element::rust_type(dtype);
    // What logarithms and roots are taken of.
    let real = if is_float { own } else { "f64" };
    let f = if real == "f64" { "" } else { "f" };
    let add = |ty: &str| match ty {
        "f32" | "f64" => "a + b",
        _ => "a.wrapping_add(b)",
    };
    let square = if is_float {
        "v * v"
    } else {
        "v.wrapping_mul(v)"
    };
    let absolute = if is_float {
        "v.abs()"
    } else if element::is_signed(dtype) {
        "v.wrapping_abs()"
    } else {
        "v"
    };
    let made = |sum: &'static str, map: String, finish: String| Fold {
        sum,
        start: format!("0 as {sum}"),
        map,
        combine: add(sum),
        finish,
        needs_most: false,
    };
    let to_real = format!("(v as {real})");
    let back = |text: String| {
        if is_float {
            text
        } else {
            format!("({text}) as {own}")
        }
    };
    Some(match kind {
        "Sum" => made(own, "v".into(), "a".into()),
        "Mean" if is_float => made(own, "v".into(), format!("a / {count} as {own}")),
        // The sum of narrow integers does not fit their type.
        "Mean" => {
            let wide = if dtype == DType::U64 { "u64" } else { "i64" };
            let count = count.max(1);
            made(
                wide,
                format!("(v as {wide})"),
                format!("(a / {count}) as {own}"),
            )
        }
        "L1" => made(own, absolute.into(), "a".into()),
        "SumSquare" => made(own, square.into(), "a".into()),
        "L2" => made(
            real,
            format!("{{ let v = {to_real}; v * v }}"),
            back(format!("sqrt{f}(a)")),
        ),
        "LogSum" => made(real, to_real, back(format!("log{f}(a)"))),
        "LogSumExp" => Fold {
            needs_most: true,
            ..made(
                real,
                format!("exp{f}({to_real} - most)"),
                back(format!("most + log{f}(a)")),
            )
        },
        "Prod" => Fold {
            start: format!("1 as {own}"),
            combine: if is_float {
                "a * b"
            } else {
                "a.wrapping_mul(b)"
            },
            ..made(own, "v".into(), "a".into())
        },
        _ => return None,
    })
}

/// The largest or the smallest element; what is not a number stays.
fn extreme(dtype: DType, is_max: bool) -> Fold {
    let own = element::rust_type(dtype);
    let bound = match (dtype.is_float(), is_max) {
        (true, true) => "NEG_INFINITY",
        (true, false) => "INFINITY",
        (false, true) => "MIN",
        (false, false) => "MAX",
    };
    let (start, combine) = match (dtype, is_max) {
        (DType::Bool, true) => ("false".to_owned(), "a | b"),
        (DType::Bool, false) => ("true".to_owned(), "a & b"),
        (_, true) if dtype.is_float() => (
            format!("{own}::{bound}"),
            "if a > b || a != a { a } else { b }",
        ),
        (_, false) if dtype.is_float() => (
            format!("{own}::{bound}"),
            "if a < b || a != a { a } else { b }",
        ),
        (_, true) => (format!("{own}::{bound}"), "if a > b { a } else { b }"),
        (_, false) => (format!("{own}::{bound}"), "if a < b { a } else { b }"),
    };
    Fold {
        sum: own,
        start,
        map: "v".to_owned(),
        combine,
        finish: "a".to_owned(),
        needs_most: false,
    }
}

fn reduce(node: &LoopNode<'_>, kind: &str) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let over = over(node, x.dims().len())?;
    let axes = Axes::new(x.dims(), &over);
    let fold = fold(kind, x.dtype, axes.count())
        .ok_or_else(|| node.refuse(format!("elements of {}", x.dtype)))?;
    let store = format!(
        "{{ let v: {} = {}; {} }}",
        element::rust_type(y.dtype),
        fold.finish,
        element::store(y.dtype, "v")
    );
    // Columns are folded next to each other where the axes that go are not the innermost ones.
    let (mut kept, gone) = (axes.kept, axes.gone);
    let is_columns = kept.1.last() == Some(&1) && !fold.needs_most;
    let columns = if is_columns {
        kept.0.pop().unwrap_or(1)
    } else {
        1
    };
    if is_columns {
        kept.1.pop();
    }
    let mut outputs = nest::dense(&kept.0);
    for stride in &mut outputs {
        *stride *= columns;
    }
    let (mut gone_extents, mut gone_strides) = gone;
    let is_run = !is_columns && gone_strides.last() == Some(&1);
    let run = if is_run {
        gone_extents.pop().unwrap_or(1)
    } else {
        1
    };
    if is_run {
        gone_strides.pop();
    }
    let reduced: Vec<String> = gone_strides
        .iter()
        .enumerate()
        .map(|(axis, stride)| format!("j{axis} * {stride}"))
        .chain(["0".to_owned()])
        .collect();
    let facts = json!({
        "units": kept.0.first(), "kept": kept.0, "gone": gone_extents, "columns": columns, "is_columns": is_columns, "run": run,
        "start_at": nest::place(&kept.1), "y_at": nest::place(&outputs), "gone_at": reduced.join(" + "),
        "x": element::storage(x.dtype), "y": element::storage(y.dtype),
        "type": element::rust_type(x.dtype), "load": element::load(x.dtype, "x.add(at)"),
        "sum": fold.sum, "start": fold.start, "map": fold.map, "fold": fold.combine,
        "store": store, "needs_most": fold.needs_most,
    });
    Ok(vec![node.operation(
        "loops/reduce.rs.j2",
        facts,
        &[x],
        &[y],
        0,
    )])
}

fn arg(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let axis = from_front(node.node.int("axis", 0), x.dims().len())
        .ok_or_else(|| node.refuse("`axis` is out of range"))?;
    if x.dtype == DType::Bool {
        return Err(node.refuse("elements of bool"));
    }
    let (before, rest) = x.dims().split_at(axis);
    let sign = if node.node.op == "ArgMax" { ">" } else { "<" };
    let last = node.node.int("select_last_index", 0) != 0;
    let facts = json!({
        "outer": before.iter().product::<usize>(), "extent": rest[0],
        "inner": rest[1..].iter().product::<usize>(),
        "x": element::storage(x.dtype), "type": element::rust_type(x.dtype),
        "load": element::load(x.dtype, "x.add(at)"),
        "wins": format!("{sign}{}", if last { "=" } else { "" }),
    });
    Ok(vec![node.operation(
        "loops/arg_reduce.rs.j2",
        facts,
        &[x],
        &[y],
        0,
    )])
}
