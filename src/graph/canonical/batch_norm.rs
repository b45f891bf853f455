//! Batch normalisation at inference time: a factor and an offset by channel.

use super::rule::{Before, Replacement, Rewrite, Source, View};
use super::scale::Weighted;
use crate::graph::{Node, Shape, Tensor, TensorData};

/// Folds into the convolution or matrix product before.
pub(super) fn fold(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    let (scale, offset) = factors(view, node)?;
    Weighted::find(view, node.input(0)?)?.scaled(&scale, &offset)
}

/// Spells out as `Mul` and `Add` where there is nothing to fold into.
pub(super) fn spell_out(view: &View<'_>, node: &Node) -> Option<Rewrite> {
    let (scale, offset) = factors(view, node)?;
    let x = node.input(0)?;
    let shape = &view.graph.value(x).shape;
    let mut broadcast = vec![1; shape.rank().saturating_sub(1)];
    *broadcast.first_mut()? = scale.len();
    let constant = |values: &[f64]| {
        let data = TensorData::F32(values.iter().map(|&v| v as f32).collect());
        Tensor::new(Shape(broadcast.clone()), data).ok()
    };
    Some(Rewrite::Replace(Replacement {
        op: "Add",
        attributes: [].into(),
        inputs: vec![Some(Source::Constant(constant(&offset)?))],
        before: Some(Before {
            op: "Mul",
            attributes: [].into(),
            inputs: vec![
                Some(Source::Value(x)),
                Some(Source::Constant(constant(&scale)?)),
            ],
            shape: shape.clone(),
        }),
    }))
}

/// Returns factor and offset by channel.
fn factors(view: &View<'_>, node: &Node) -> Option<(Vec<f64>, Vec<f64>)> {
    if node.op != "BatchNormalization"
        || node.int("training_mode", 0) != 0
        || node.outputs.iter().skip(1).any(Option::is_some)
    {
        return None;
    }
    let constant = |idx| view.graph.constant(node.input(idx)?)?.as_f32();
    let (gamma, beta, mean, variance) = (constant(1)?, constant(2)?, constant(3)?, constant(4)?);
    let epsilon = f64::from(node.float("epsilon", 1e-5));
    let scale: Vec<f64> = gamma
        .iter()
        .zip(variance)
        .map(|(&g, &v)| f64::from(g) / (f64::from(v) + epsilon).sqrt())
        .collect();
    let offset = (0..scale.len())
        .map(|c| f64::from(beta[c]) - f64::from(mean[c]) * scale[c])
        .collect();
    let is_finite = scale.iter().all(|s| s.is_finite());
    is_finite.then_some((scale, offset))
}
