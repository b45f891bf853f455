//! The typed layer over ONNX operators: a [`Graph`] of [`Node`]s and [`Value`]s at static shapes.
//!
//! It knows no protobuf, no files and no hardware. Operators keep their ONNX names and attributes;
//! what is added is a dtype and a static shape on every value, and constants as [`Tensor`]s.
//! A graph can therefore always be written back to ONNX.

mod attribute;
mod shape;
mod tensor;
mod types;

mod compact;
mod defaults;
mod facts;
mod flops;
mod infer;
mod join;
mod operator;

mod canonical;

mod describe;
mod digest;
mod extract;
mod partition;
mod subgraph;
mod table;
mod upgrade;

pub use attribute::Attribute;
pub(crate) use canonical::builder::Builder;
pub use canonical::{canonicalize, spell_out_quantized, widen_halves, write_out_windows};
pub use compact::compact;
pub use digest::Digests;
pub use extract::extract;
pub use facts::{affine, clip_bounds, from_front, is_symmetric, scalar};
use infer::Window;
pub use infer::{Fact, InferError, Operand, infer};
pub use join::side_by_side;
pub use partition::partition;
pub use shape::{DType, Shape};
pub use subgraph::{Kind, Partition, Subgraph};
pub use table::{Table, table};
pub(crate) use tensor::f64_to_f16;
pub use tensor::{Tensor, TensorData, TensorError, f16_to_f32};
pub use types::{Graph, Node, NodeId, Value, ValueId};
pub use upgrade::{UpgradeError, upgrade};
