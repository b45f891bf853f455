//! Who reads each value.

use std::collections::{BTreeMap, BTreeSet};

use crate::backend::native::spec::{Kind, Loops, MatMul, Operand, Operation, Source};
use crate::graph::{Graph, ValueId};

/// Counts the readers of each value; an output of the model is one.
pub(super) fn readers(graph: &Graph, operations: &[Operation]) -> BTreeMap<ValueId, usize> {
    let mut readers = BTreeMap::new();
    let mut count = |value: ValueId| *readers.entry(value).or_insert(0) += 1;
    for operation in operations {
        each_read(operation, &mut count);
    }
    graph.outputs.iter().for_each(|&value| count(value));
    readers
}

/// Returns the values that are read as dense rows only: by plain loops, by products, under another
/// shape, or by the caller of the model.
pub(super) fn read_dense(graph: &Graph, operations: &[Operation]) -> BTreeSet<ValueId> {
    let mut dense: BTreeSet<ValueId> = graph.outputs.iter().copied().collect();
    let mut other = BTreeSet::new();
    for operation in operations {
        let reads = match operation.kind {
            Kind::Loops(_) | Kind::MatMul(_) | Kind::Alias => &mut dense,
            _ => &mut other,
        };
        each_read(operation, &mut |value| _ = reads.insert(value));
    }
    dense.retain(|value| !other.contains(value));
    dense
}

fn each_read(operation: &Operation, read: &mut impl FnMut(ValueId)) {
    if !matches!(
        operation.kind,
        Kind::Loops(_) | Kind::MatMul(_) | Kind::Concat(_)
    ) {
        read(operation.x);
    }
    match &operation.kind {
        Kind::Conv(conv) | Kind::Depthwise(conv) => {
            conv.residual.into_iter().chain(conv.scale).for_each(read);
        }
        Kind::Dense(dense) => dense.residual.into_iter().for_each(read),
        Kind::Map(map) => {
            for operand in &map.operands {
                if let Operand::Same(value) | Operand::Channel(value) = operand {
                    read(*value);
                }
            }
        }
        // What shares the memory may be read at any later time.
        Kind::Alias => read(operation.x),
        Kind::Concat(concat) => concat.inputs.iter().copied().for_each(read),
        Kind::Loops(Loops {
            inputs: sources, ..
        })
        | Kind::MatMul(MatMul {
            operands: sources, ..
        }) => {
            for source in sources {
                if let Source::Value(value) = source {
                    read(*value);
                }
            }
        }
        Kind::Deconv(_) | Kind::Resample(_) | Kind::Pool(_) | Kind::Table(_) => {}
    }
}
