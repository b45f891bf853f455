//! `LSTM`, `GRU` and `RNN`: all directions, activations, layouts and optional operands.
//!
//! [`cell`] reads the node. What is f32 with constant weights is [`packed`]: the products of all
//! inputs come first, then the steps, with vectors over hidden units. All else is [`plain`].

mod cell;
mod packed;
mod plain;

pub(super) use cell::lower;
