//! Integer layers: activations and weights between conversions, as ONNX writes them.

use std::collections::{BTreeMap, BTreeSet};

use super::affine::{Affine, Equal, Roundings};
use super::site::{Layer, Site};
use crate::graph::{
    Attribute, Builder, DType, Graph, NodeId, Shape, Tensor, TensorData, ValueId, compact,
};

/// Why a graph cannot be written with integers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantizeError {
    /// It is not known how a value is rounded.
    #[error("the range of `{0}` is not known")]
    NoRange(String),
}

/// Writes the sites of `integer` with 8-bit activations and weights: what they read is rounded once
/// and stored as u8, and all its other readers read what the integers stand for; weights are i8
/// with a scale for each output. A value whose channels are made alike first is rounded for the layers
/// that multiply it, and for nobody else. Outputs of the model stay as they are.
///
/// With no site the graph is returned as it is.
///
/// # Errors
/// [`QuantizeError`] if it is not known how a value is rounded.
pub fn quantize(
    graph: &Graph,
    sites: &[Site],
    integer: &BTreeSet<usize>,
    roundings: &Roundings,
) -> Result<Graph, QuantizeError> {
    let mut graph = graph.clone();
    let chosen: Vec<&Site> = integer.iter().filter_map(|&idx| sites.get(idx)).collect();
    let rounded = chosen.iter().flat_map(|site| site.rounded(roundings));
    for value in rounded.collect::<BTreeSet<ValueId>>() {
        let no_range = || QuantizeError::NoRange(graph.value(value).name.clone());
        let affine = *roundings.affine.get(&value).ok_or_else(no_range)?;
        round_value(&mut graph, value, affine);
    }
    let mut alike: BTreeMap<ValueId, ValueId> = BTreeMap::new();
    for site in chosen {
        let Some(layer) = site.layer else { continue };
        let equal = site.equal(roundings);
        if let Some(equal) = equal {
            let x = *alike
                .entry(layer.x)
                .or_insert_with(|| round_alike(&mut graph, layer.x, equal));
            graph.nodes[site.anchor.0].inputs[0] = Some(x);
        }
        round_weights(&mut graph, site.anchor, layer, equal);
    }
    compact(&mut graph);
    Ok(graph)
}

impl Site {
    /// Returns the values that are rounded for all their readers if the site takes integers.
    pub fn rounded<'a>(&'a self, roundings: &'a Roundings) -> impl Iterator<Item = ValueId> + 'a {
        let alike = self.equal(roundings).and(self.layer).map(|layer| layer.x);
        let values = self.integers.iter().copied();
        values.filter(move |id| Some(*id) != alike)
    }

    /// Returns what makes the channels alike of what the layer multiplies, if anything does.
    pub fn equal<'a>(&self, roundings: &'a Roundings) -> Option<&'a Equal> {
        let layer = self
            .layer
            .filter(|layer| self.integers.contains(&layer.x))?;
        roundings.equal.get(&layer.x)
    }
}

/// Divides the channels of a value, rounds the quotients and returns what the integers stand for.
fn round_alike(graph: &mut Graph, value: ValueId, equal: &Equal) -> ValueId {
    let (name, shape) = {
        let value = graph.value(value);
        (value.name.clone(), value.shape.clone())
    };
    let inverse = equal.factors.iter().map(|factor| 1.0 / factor).collect();
    let mut builder = Builder::new(graph);
    let inverse = builder.constant(&format!("{name}/inverse"), Tensor::from_f32(inverse));
    let alike = builder.value(&format!("{name}/alike"), DType::F32, shape.clone());
    builder.node("Mul", &[value, inverse], alike);
    let rounding = Rounding::of(graph, alike, equal.affine);
    rounding.round(graph);
    let mut builder = Builder::new(graph);
    let real = builder.value(&format!("{name}/alike/rounded"), DType::F32, shape);
    let inputs = [rounding.integer, rounding.scale, rounding.zero];
    builder.node("DequantizeLinear", &inputs, real);
    real
}

/// Rounds a value for all of its readers.
pub(super) fn round_value(graph: &mut Graph, value: ValueId, affine: Affine) {
    let rounding = Rounding::of(graph, value, affine);
    rounding.round(graph);
    rounding.restore(graph);
}

/// Rounds a value for all of its readers, and makes the integers an output in its place.
pub(super) fn integer_output(graph: &mut Graph, value: ValueId, affine: Affine) {
    let rounding = Rounding::of(graph, value, affine);
    let is_read = graph
        .nodes
        .iter()
        .any(|node| node.inputs.contains(&Some(value)));
    if is_read {
        rounding.restore(graph);
    }
    rounding.round(graph);
    for output in graph.outputs.iter_mut().filter(|id| **id == value) {
        *output = rounding.integer;
    }
}

/// Makes the integers of a value an input in its place.
pub(super) fn integer_input(graph: &mut Graph, value: ValueId, affine: Affine) {
    let rounding = Rounding::of(graph, value, affine);
    rounding.restore(graph);
    for input in graph.inputs.iter_mut().filter(|id| **id == value) {
        *input = rounding.integer;
    }
}

/// A value, and how integers stand for it.
struct Rounding {
    value: ValueId,
    integer: ValueId,
    scale: ValueId,
    zero: ValueId,
}

impl Rounding {
    /// Adds the integers that stand for a value.
    fn of(graph: &mut Graph, value: ValueId, affine: Affine) -> Self {
        let mut builder = Builder::new(graph);
        let (name, shape) = {
            let value = builder.graph.value(value);
            (value.name.clone(), value.shape.clone())
        };
        let scale = scalar(TensorData::F32(vec![affine.scale]));
        let zero = scalar(TensorData::U8(vec![affine.zero]));
        Self {
            value,
            scale: builder.constant(&format!("{name}/scale"), scale),
            zero: builder.constant(&format!("{name}/zero"), zero),
            integer: builder.value(&format!("{name}/u8"), DType::U8, shape),
        }
    }

    /// Makes the integers of the value.
    fn round(&self, graph: &mut Graph) {
        let inputs = [self.value, self.scale, self.zero];
        Builder::new(graph).node("QuantizeLinear", &inputs, self.integer);
    }

    /// Lets all readers of the value, apart from the rounding, read what the integers stand for.
    fn restore(&self, graph: &mut Graph) {
        let mut builder = Builder::new(graph);
        let value = builder.graph.value(self.value).clone();
        let name = format!("{}/rounded", value.name);
        let real = builder.value(&name, DType::F32, value.shape);
        for node in &mut builder.graph.nodes {
            let is_own = node.outputs.contains(&Some(self.integer));
            let inputs = node.inputs.iter_mut();
            for input in inputs.filter(|id| **id == Some(self.value) && !is_own) {
                *input = Some(real);
            }
        }
        builder.node(
            "DequantizeLinear",
            &[self.integer, self.scale, self.zero],
            real,
        );
    }
}

/// Rounds the weights of a layer to i8 around zero, with a scale for each output; those of a layer
/// whose input was divided make up for it.
pub(super) fn round_weights(
    graph: &mut Graph,
    anchor: NodeId,
    layer: Layer,
    equal: Option<&Equal>,
) {
    let Some(tensor) = graph.constant(layer.weights) else {
        return;
    };
    let Some(weights) = tensor.as_f32() else {
        return;
    };
    let shape = tensor.shape().clone();
    let columns = shape.dims().last().copied().unwrap_or(1).max(1);
    let weights = weights.iter().enumerate().map(|(idx, weight)| {
        // Both axes of a matrix: outputs along one, what is multiplied along the other.
        let channel = if layer.axis == 0 {
            idx % columns
        } else {
            idx / columns
        };
        weight
            * equal
                .and_then(|equal| equal.factors.get(channel))
                .unwrap_or(&1.0)
    });
    let weights: Vec<f32> = weights.collect();
    let (rounded, scales) = rounded_weights(&weights, &shape, layer.axis);
    let name = graph.value(layer.weights).name.clone();
    let n_scales = scales.len();
    let mut builder = Builder::new(graph);
    let constant = |builder: &mut Builder<'_>, part: &str, shape: Shape, data: TensorData| {
        let tensor = Tensor::new(shape, data).expect("there are as many elements as before");
        builder.constant(&format!("{name}/{part}"), tensor)
    };
    let integer = constant(&mut builder, "i8", shape.clone(), TensorData::I8(rounded));
    let scale = constant(
        &mut builder,
        "scale",
        vec![n_scales].into(),
        TensorData::F32(scales),
    );
    let real = builder.value(&format!("{name}/rounded"), DType::F32, shape);
    builder.node("DequantizeLinear", &[integer, scale], real);
    if let Some(node) = builder.graph.nodes.last_mut() {
        let axis = Attribute::Int(layer.axis as i64);
        node.attributes.insert("axis".to_owned(), axis);
    }
    builder.graph.nodes[anchor.0].inputs[1] = Some(real);
}

/// Returns weights as integers from −127 to 127 and what one step is worth for each index along
/// `axis`.
fn rounded_weights(weights: &[f32], shape: &Shape, axis: usize) -> (Vec<i8>, Vec<f32>) {
    let dims = shape.dims();
    let (n, inner) = (dims[axis], dims[axis + 1..].iter().product::<usize>());
    let channel = |idx: usize| idx / inner.max(1) % n.max(1);
    let mut scales = vec![0f32; n];
    for (idx, weight) in weights.iter().enumerate() {
        let scale = &mut scales[channel(idx)];
        *scale = scale.max(weight.abs() / 127.0);
    }
    for scale in &mut scales {
        if !scale.is_normal() {
            *scale = 1.0;
        }
    }
    let round = |(idx, weight): (usize, &f32)| {
        (weight / scales[channel(idx)])
            .round_ties_even()
            .clamp(-127.0, 127.0) as i8
    };
    (weights.iter().enumerate().map(round).collect(), scales)
}

fn scalar(data: TensorData) -> Tensor {
    Tensor::new(Shape::from(Vec::new()), data).expect("a scalar has one element")
}
