//! How often each value is read.

use std::collections::BTreeMap;

use crate::backend::native::spec::{Kind, Loops, MatMul, Operand, Operation, Source};
use crate::graph::{Graph, ValueId};

/// Counts the readers of each value; an output of the model is one.
pub(super) fn readers(graph: &Graph, operations: &[Operation]) -> BTreeMap<ValueId, usize> {
    let mut readers = BTreeMap::new();
    let mut count = |value: ValueId| *readers.entry(value).or_insert(0) += 1;
    for operation in operations {
        if !matches!(
            operation.kind,
            Kind::Loops(_) | Kind::MatMul(_) | Kind::Concat(_)
        ) {
            count(operation.x);
        }
        match &operation.kind {
            Kind::Conv(conv) | Kind::Depthwise(conv) => {
                conv.residual
                    .into_iter()
                    .chain(conv.scale)
                    .for_each(&mut count);
            }
            Kind::Dense(dense) => dense.residual.into_iter().for_each(&mut count),
            Kind::Map(map) => {
                for operand in &map.operands {
                    if let Operand::Same(value) | Operand::Channel(value) = operand {
                        count(*value);
                    }
                }
            }
            // What shares the memory may be read at any later time.
            Kind::Alias => {
                count(operation.x);
            }
            Kind::Concat(concat) => concat.inputs.iter().copied().for_each(&mut count),
            Kind::Loops(Loops {
                inputs: sources, ..
            })
            | Kind::MatMul(MatMul {
                operands: sources, ..
            }) => {
                for source in sources {
                    if let Source::Value(value) = source {
                        count(*value);
                    }
                }
            }
            Kind::Deconv(_) | Kind::Resample(_) | Kind::Pool(_) | Kind::Table(_) => {}
        }
    }
    graph.outputs.iter().for_each(|&value| count(value));
    readers
}
