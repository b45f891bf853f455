//! Operators whose elements follow from their place: `OneHot`, `EyeLike`, `Trilu`, `Range`,
//! `ConstantOfShape`, `Shape`, `Size`.

use serde_json::json;

use super::copy::{self, Fill};
use super::element;
use super::nest;
use super::node::{Known, LoopNode};
use crate::backend::native::lower::subgraph::NotCovered;
use crate::backend::native::spec::Operation;
use crate::graph::{Attribute, DType, Tensor};

/// Lowers an operator of places; `None` if it is not one.
pub(super) fn lower(node: &LoopNode<'_>) -> Option<Result<Vec<Operation>, NotCovered>> {
    Some(match node.node.op.as_str() {
        "OneHot" => one_hot(node),
        "EyeLike" => eye_like(node),
        "Trilu" => triangle(node),
        "Range" => range(node),
        "ConstantOfShape" => constant_of_shape(node),
        "Shape" => dimensions(node),
        "Size" => size(node),
        _ => return None,
    })
}

/// Makes the operation of one expression an element, over `extents` of a dense output; `types` are
/// those of the elements of the inputs, `lets` hold what is the same for all elements.
fn operation(
    node: &LoopNode<'_>,
    inputs: &[Known<'_>],
    types: &[&str],
    extents: &[usize],
    lets: &[String],
    stored: (&str, &str),
) -> Result<Vec<Operation>, NotCovered> {
    let y = node.main_output()?;
    if extents.iter().product::<usize>() != y.shape.len() {
        return Err(node.refuse("its shapes do not fit"));
    }
    let (element, expression) = stored;
    let facts = json!({
        "element": element,
        "inputs": types,
        "extents": extents,
        "lets": lets,
        "at": nest::place(&nest::dense(extents)),
        "expression": expression,
    });
    Ok(vec![node.operation(
        "loops/generate.rs.j2",
        facts,
        inputs,
        &[y],
        0,
    )])
}

/// `OneHot`: indices outside of `-depth..depth` give no one.
fn one_hot(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (indices, values, y) = (node.required(0)?, node.required(2)?, node.main_output()?);
    let axis = node.axis(-1, indices.dims().len() + 1)?;
    if values.shape.len() != 2 || values.dtype != y.dtype {
        return Err(node.refuse("it has not two values of its type"));
    }
    let outer = indices.dims()[..axis].iter().product();
    let inner: usize = indices.dims()[axis..].iter().product();
    let depth = y.dims()[axis];
    let place = format!("x0.add({})", nest::place(&[inner, 0, 1]));
    let expression = format!(
        "{{ let k = {} as i64; let k = if k < 0 {{ k.wrapping_add({depth}) }} else {{ k }}; if k == i1 as i64 {{ on }} else {{ off }} }}",
        element::load(indices.dtype, &place)
    );
    let storage = copy::storage(y.dtype);
    operation(
        node,
        &[indices, values],
        &[element::storage(indices.dtype), storage],
        &[outer, depth, inner],
        &["let (off, on) = (*x1, *x1.add(1));".to_owned()],
        (storage, &expression),
    )
}

/// `EyeLike`: ones on a diagonal; only the shape of the input matters.
fn eye_like(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let y = node.main_output()?;
    let expression = format!(
        "if i1 as i64 - i0 as i64 == {} {{ {} }} else {{ 0 }}",
        node.node.int("k", 0),
        one(y.dtype)
    );
    let storage = copy::storage(y.dtype);
    operation(node, &[], &[], y.dims(), &[], (storage, &expression))
}

/// Returns the bits of one.
fn one(dtype: DType) -> String {
    if dtype.is_float() {
        super::crop::bits(1.0, dtype)
    } else {
        "1".to_owned()
    }
}

/// `Trilu`: one side of a diagonal of each matrix, zeros on the other.
fn triangle(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (x, y) = (node.required(0)?, node.main_output()?);
    let &[ref outer @ .., rows, columns] = x.dims() else {
        return Err(node.refuse("its input has no matrices"));
    };
    let extents = [outer.iter().product(), rows, columns];
    let storage = copy::storage(y.dtype);
    let mut inputs = vec![x];
    let mut types = vec![storage];
    let mut lets = vec!["let k = 0i64;".to_owned()];
    if let Some(k) = node.input(1) {
        lets = vec!["let k = *x1 as i64;".to_owned()];
        types.push(element::storage(k.dtype));
        inputs.push(k);
    }
    let sign = if node.node.int("upper", 1) == 0 {
        "<="
    } else {
        ">="
    };
    let expression = format!(
        "if i2 as i64 - i1 as i64 {sign} k {{ *x0.add({}) }} else {{ 0 }}",
        nest::place(&nest::dense(&extents))
    );
    operation(
        node,
        &inputs,
        &types,
        &extents,
        &lets,
        (storage, &expression),
    )
}

/// `Range` of a length that is known although its bounds are not.
fn range(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let (start, delta, y) = (node.required(0)?, node.required(2)?, node.main_output()?);
    let storage = element::storage(y.dtype);
    let number = |x: &str| element::load(y.dtype, x);
    let lets = [format!(
        "let (start, delta) = ({}, {});",
        number("x0"),
        number("x1")
    )];
    let ty = element::rust_type(y.dtype);
    let value = if y.dtype.is_float() {
        format!("start + i0 as {ty} * delta")
    } else {
        format!("start.wrapping_add((i0 as {ty}).wrapping_mul(delta))")
    };
    let expression = format!("{{ let v = {value}; {} }}", element::store(y.dtype, "v"));
    operation(
        node,
        &[start, delta],
        &[storage, storage],
        y.dims(),
        &lets,
        (storage, &expression),
    )
}

/// `ConstantOfShape`.
fn constant_of_shape(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let y = node.main_output()?;
    let value = match node.node.attributes.get("value") {
        Some(Attribute::Tensor(value)) => bits(value),
        _ => 0,
    };
    let fill = Fill {
        output: 0,
        len: y.shape.len(),
        value: value.to_string(),
    };
    copy::operation(node, &[], &[y], &[fill], &[])
}

/// Returns the bits of a tensor's first element.
fn bits(tensor: &Tensor) -> u64 {
    let bytes = tensor.data().to_le_bytes();
    let first = bytes.iter().take(tensor.dtype().bytes()).rev();
    first.fold(0, |bits, &byte| bits << 8 | u64::from(byte))
}

/// `Shape`: what is known without the elements.
fn dimensions(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let x = node.required(0)?;
    let rank = x.dims().len() as i64;
    let bound = |value: i64| (if value < 0 { value + rank } else { value }).clamp(0, rank) as usize;
    let (start, end) = (
        bound(node.node.int("start", 0)),
        bound(node.node.int("end", rank)),
    );
    let dims = x.dims().get(start..end).unwrap_or_default();
    let dims: Vec<i64> = dims.iter().map(|&size| size as i64).collect();
    known(node, &dims)
}

/// `Size`.
fn size(node: &LoopNode<'_>) -> Result<Vec<Operation>, NotCovered> {
    let n = node.required(0)?.shape.len() as i64;
    known(node, &[n])
}

/// Makes the operation of an output of known integers.
fn known(node: &LoopNode<'_>, values: &[i64]) -> Result<Vec<Operation>, NotCovered> {
    let place = if node.main_output()?.dims().is_empty() {
        "0"
    } else {
        "i0"
    };
    let list: Vec<String> = values.iter().map(|value| format!("{value}i64")).collect();
    let expression = format!("[{}][{place}]", list.join(", "));
    let dims = node.main_output()?.dims().to_vec();
    operation(node, &[], &[], &dims, &[], ("i64", &expression))
}
