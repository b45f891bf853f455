//! The one form that quantised graphs get.

use super::{layers, unsigned};
use crate::graph::Graph;

/// Writes quantised layers as float ones between conversions, and 8-bit activations unsigned.
pub fn spell_out(graph: &mut Graph) {
    layers::spell_out(graph);
    unsigned::weights(graph);
    unsigned::activations(graph);
}
