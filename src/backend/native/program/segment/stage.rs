//! What a step of a segment reads and writes, row by row.

use crate::backend::native::kernels::{weights_growth, winograd_side};
use crate::backend::native::layout::Layout;
use crate::backend::native::program::assemble::Choice;
use crate::backend::native::program::buffers::{BufferId, Buffers};
use crate::backend::native::program::planned::{Bound, Planned};
use crate::backend::native::spec::{Conv, Kind, Operand, Operation};
use crate::space::Mapping;

/// The rows of a value that rows of a result need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reach {
    /// A window of `extent` rows for each row, `stride` rows apart; the first begins `pad` rows
    /// above the value.
    Window {
        stride: usize,
        extent: usize,
        pad: usize,
    },
    /// One row each, in order.
    Table(Vec<usize>),
}

/// A step that can run some rows at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stage {
    /// Values that it reads row by row.
    pub(super) reads: Vec<(BufferId, Reach)>,
    /// Values that it reads whole, for any row.
    pub(super) whole: Vec<BufferId>,
    /// The value that it writes row by row.
    pub(super) writes: Option<BufferId>,
    /// A value that is complete after its last row only.
    pub(super) pooled: Option<BufferId>,
    /// Rows of its result.
    pub(super) rows: usize,
    /// It makes a multiple of so many at a time, or all that are left.
    pub(super) grain: usize,
    /// Bytes of its weights.
    pub(super) weight_bytes: usize,
}

/// Each row of the result needs the same row.
const SAME: Reach = Reach::Window {
    stride: 1,
    extent: 1,
    pad: 0,
};

impl Reach {
    /// Returns the first row that is needed for a row of the result and all after it; rows above
    /// the value are negative.
    pub(super) fn first(&self, row: usize) -> isize {
        match self {
            Self::Window { stride, pad, .. } => (row * stride) as isize - *pad as isize,
            Self::Table(rows) => rows.get(row).map_or(isize::MAX, |&row| row as isize),
        }
    }

    /// Returns how many rows of a value of `height` are needed for the first `rows` of the result.
    pub(super) fn end(&self, rows: usize, height: usize) -> usize {
        let Some(last) = rows.checked_sub(1) else {
            return 0;
        };
        let end = match self {
            Self::Window {
                stride,
                extent,
                pad,
            } => (last * stride + extent).saturating_sub(*pad),
            Self::Table(rows) => rows.get(last).map_or(height, |row| row + 1),
        };
        end.min(height)
    }
}

/// Describes a step; `None` if it cannot run some rows at a time.
pub(super) fn stage(
    planned: &Planned,
    operations: &[Operation],
    choice: &Choice<'_>,
    buffers: &Buffers,
) -> Option<Stage> {
    let stage = match planned {
        Planned::Convert { from, to } => Stage {
            reads: vec![(*from, SAME)],
            whole: Vec::new(),
            writes: Some(*to),
            pooled: None,
            rows: buffers.all[from.0].dims[2],
            grain: 1,
            weight_bytes: 0,
        },
        Planned::Operation { idx, bound } => {
            let operation = &operations[*idx];
            let mut stage = of_operation(operation, bound, choice.mapping(operation.subgraph))?;
            if let Some(y) = bound.y {
                stage.rows = buffers.all[y.0].dims[2];
            }
            stage
        }
    };
    let rows_lie_apart = |id: &BufferId| {
        let buffer = &buffers.all[id.0];
        buffer.dims[0] == 1 && buffer.dims[2] > 1 && buffer.layout != Layout::Flat
    };
    let reads = stage.reads.iter().map(|(id, _)| id);
    let all_apart = reads.chain(&stage.writes).all(rows_lie_apart);
    (all_apart && stage.rows > 1).then_some(stage)
}

fn of_operation(operation: &Operation, bound: &Bound, mapping: &Mapping) -> Option<Stage> {
    let mut reads = Vec::new();
    let mut whole = Vec::new();
    let mut rows = 0;
    let mut grain = 1;
    let mut weight_bytes = 0;
    match &operation.kind {
        Kind::Conv(conv) | Kind::Depthwise(conv) => {
            // Factors would be applied by each call anew, and sums along the width are kept in
            // memory that is free between calls.
            let by_width = mapping.word("vector") == Some("width");
            if conv.scale.is_some() || (by_width && conv.pooled.is_some()) {
                return None;
            }
            reads.push((bound.x?, of_conv(conv)));
            rows = conv.output[1];
            grain = winograd_side(mapping).filter(|_| !by_width).unwrap_or(1);
            let [more, less] = weights_growth(mapping);
            weight_bytes = conv.weights.len() * size_of::<f32>() * more / less;
            weight_bytes += conv.quantized.as_ref().map_or(0, |q| q.weights.len());
        }
        Kind::Pool(pool) => reads.push((
            bound.x?,
            Reach::Window {
                stride: pool.stride[0],
                extent: (pool.kernel[0] - 1) * pool.dilation[0] + 1,
                pad: pool.pad[0],
            },
        )),
        Kind::Table(_) => reads.push((bound.x?, SAME)),
        Kind::Map(map) => {
            reads.push((bound.x?, SAME));
            for (operand, id) in map.operands.iter().zip(&bound.operands) {
                match (operand, id) {
                    (Operand::Same(_), Some(id)) => reads.push((*id, SAME)),
                    (Operand::Channel(_), Some(id)) => whole.push(*id),
                    _ => {}
                }
            }
        }
        Kind::Resample(resample) => {
            if !resample.rows.is_sorted() {
                return None;
            }
            reads.push((bound.x?, Reach::Table(resample.rows.clone())));
        }
        Kind::Concat(_) => reads.extend(bound.operands.iter().flatten().map(|&id| (id, SAME))),
        Kind::Dense(_) | Kind::Deconv(_) | Kind::MatMul(_) | Kind::Loops(_) | Kind::Alias => {
            return None;
        }
    }
    reads.extend(bound.residual.map(|id| (id, SAME)));
    Some(Stage {
        reads,
        whole,
        writes: bound.y,
        pooled: bound.pooled,
        rows,
        grain,
        weight_bytes,
    })
}

fn of_conv(conv: &Conv) -> Reach {
    Reach::Window {
        stride: conv.stride[0],
        extent: (conv.kernel[0] - 1) * conv.dilation[0] + 1,
        pad: conv.pad[0],
    }
}
