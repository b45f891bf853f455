//! Steps before their kernels are rendered.

use super::buffers::BufferId;
use crate::backend::native::spec::Operation;

/// One step before its kernel is rendered.
#[derive(Debug)]
pub(super) enum Planned {
    /// An operation of the model.
    Operation { idx: usize, bound: Bound },
    /// A copy of a value to another layout.
    Convert { from: BufferId, to: BufferId },
}

impl Planned {
    /// Returns the subgraph that the step belongs to; conversions belong to none.
    pub(super) fn subgraph(&self, operations: &[Operation]) -> Option<usize> {
        match self {
            Self::Operation { idx, .. } => Some(operations[*idx].subgraph),
            Self::Convert { .. } => None,
        }
    }
}

/// The buffers of an operation.
#[derive(Debug, Default)]
pub(super) struct Bound {
    pub(super) x: Option<BufferId>,
    pub(super) y: Option<BufferId>,
    pub(super) residual: Option<BufferId>,
    pub(super) scale: Option<BufferId>,
    pub(super) pooled: Option<BufferId>,
    pub(super) operands: Vec<Option<BufferId>>,
    pub(super) results: Vec<BufferId>,
    pub(super) x_is_exclusive: bool,
}
