//! The canonical form of a graph: what exporters spell out is put back together.
//!
//! Each rule looks at one node and what feeds it, and says what the node becomes; the driver in
//! `rewrite` applies rules until nothing changes. A rule replaces the node that produces the final
//! value and leaves the rest to dead-code removal, so every value that survives keeps its name and
//! its numbers, and the reference executor can be asked for it.

#![expect(
    clippy::float_cmp,
    reason = "constants either are what a pattern says or it does not match"
)]

mod activation;
mod algebra;
mod batch_norm;
pub(crate) mod builder;
mod compose;
mod identity;
mod matmul;
mod normalization;
mod pad;
mod pattern;
mod pool;
mod quantized;
mod rewrite;
mod rule;
mod scale;
mod widen;
mod window;

pub use quantized::spell_out as spell_out_quantized;
pub use rewrite::canonicalize;
pub use widen::widen_halves;
pub use window::write_out_windows;
