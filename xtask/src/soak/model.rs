//! Small models, a new one for each round.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use metainfer::graph::{Attribute, DType, Graph, Node, Shape, Tensor, TensorData, Value, ValueId};
use metainfer::onnx;

use super::dice::Dice;

/// Channels to choose from.
const CHANNELS: [usize; 7] = [4, 8, 12, 16, 20, 24, 32];

/// Returns the bytes of a model: two to four convolutions, one after the other, each perhaps with an
/// activation, and perhaps a sum with what they began with.
pub(super) fn random(dice: &mut Dice) -> Result<Vec<u8>> {
    let side = 4 + dice.below(9);
    let first = dice.pick(&CHANNELS).unwrap_or(8);
    let mut model = Model::new(first, side);
    let (mut at, mut channels) = (model.graph.inputs[0], first);
    for idx in 0..2 + dice.below(3) {
        let out = dice.pick(&CHANNELS).unwrap_or(8);
        let kernel = dice.pick(&[1, 1, 3]).unwrap_or(1);
        at = model.conv(dice, &format!("conv{idx}"), at, [channels, out], kernel);
        channels = out;
        if let Some(op) = dice
            .pick(&[Some("Relu"), Some("HardSwish"), None])
            .flatten()
        {
            let name = format!("activation{idx}");
            at = model.node(&name, op, Vec::new(), &[at], channels);
        }
    }
    if channels == first {
        let input = model.graph.inputs[0];
        at = model.node("sum", "Add", Vec::new(), &[input, at], channels);
    }
    model.graph.outputs.push(at);
    Ok(onnx::encode(&model.graph)?)
}

struct Model {
    graph: Graph,
    side: usize,
}

impl Model {
    fn new(channels: usize, side: usize) -> Self {
        let graph = Graph {
            name: "soak".to_owned(),
            opset: 17,
            values: Vec::new(),
            nodes: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        let mut model = Self { graph, side };
        let input = model.value("x", vec![1, channels, side, side], None);
        model.graph.inputs.push(input);
        model
    }

    fn conv(
        &mut self,
        dice: &mut Dice,
        name: &str,
        x: ValueId,
        [ic, oc]: [usize; 2],
        kernel: usize,
    ) -> ValueId {
        let dims = vec![oc, ic, kernel, kernel];
        let reach = 1.0 / ((ic * kernel * kernel) as f64).sqrt();
        let len = dims.iter().product::<usize>();
        let weights = (0..len).map(|_| ((dice.chance() * 2.0 - 1.0) * reach) as f32);
        let weights = Tensor::new(Shape(dims.clone()), TensorData::F32(weights.collect()));
        let weights = self.value(&format!("{name}.w"), dims, weights.ok());
        let pad = (kernel / 2) as i64;
        let attributes = vec![("pads", Attribute::Ints(vec![pad; 4]))];
        self.node(name, "Conv", attributes, &[x, weights], oc)
    }

    /// Adds a node and returns what it makes.
    fn node(
        &mut self,
        name: &str,
        op: &str,
        attributes: Vec<(&str, Attribute)>,
        inputs: &[ValueId],
        channels: usize,
    ) -> ValueId {
        let output = self.value(name, vec![1, channels, self.side, self.side], None);
        let attributes = attributes.into_iter();
        self.graph.nodes.push(Node {
            name: format!("node_{name}"),
            op: op.to_owned(),
            domain: String::new(),
            attributes: attributes
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<BTreeMap<_, _>>(),
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: vec![Some(output)],
        });
        output
    }

    fn value(&mut self, name: &str, dims: Vec<usize>, data: Option<Tensor>) -> ValueId {
        let id = ValueId(self.graph.values.len());
        self.graph.values.push(Value {
            name: name.to_owned(),
            dtype: DType::F32,
            shape: Shape(dims),
            data: data.map(Arc::new),
        });
        id
    }
}

#[cfg(test)]
mod tests {
    use metainfer::onnx::LoadOptions;

    use super::*;

    #[test]
    fn models_can_be_read_and_differ() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("net.onnx");
        let mut structures = Vec::new();
        for round in 0..20 {
            let bytes = random(&mut Dice::new(round, "model")).unwrap();
            std::fs::write(&path, bytes).unwrap();
            let graph = onnx::load(&path, &LoadOptions::default()).unwrap().graph;
            assert!(graph.nodes.len() >= 2);
            structures.push(graph.digests().structure);
        }
        structures.sort();
        structures.dedup();
        assert!(structures.len() > 15);
    }
}
