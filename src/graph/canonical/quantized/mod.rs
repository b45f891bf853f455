//! Quantised graphs in one form: float operators between `DequantizeLinear` and `QuantizeLinear`.
//!
//! Before any rule, [`spell_out`] writes quantised layers in that form and makes 8-bit activations
//! unsigned; it changes no number, and the reference executes what it leaves. `rules` drop what does
//! nothing and let moves of elements work on the integers. At the end, [`separate`] gives every
//! reader a `DequantizeLinear` of its own, so that it can be computed within its reader.

mod form;
mod layers;
mod rules;
mod separate;
mod unsigned;

use super::builder;

pub use form::spell_out;
pub(super) use rules::{clamped, moved, requantized, unquantized_layer};
pub(super) use separate::separate;
