//! A node as the families of plain loops see it.

use std::sync::Arc;

use serde_json::Value;

use crate::backend::native::lower::subgraph::{Lowering, NotCovered};
use crate::backend::native::spec::{Kind, Loops, Operation, Source};
use crate::graph::{DType, Node, Shape, Tensor, ValueId, from_front};

/// A node whose inputs and outputs have known types and shapes.
pub(super) struct LoopNode<'a> {
    pub(super) ctx: &'a Lowering<'a>,
    pub(super) node: &'a Node,
}

/// What is known of an input or output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) id: ValueId,
    pub(super) dtype: DType,
    pub(super) shape: &'a Shape,
    /// Its elements, if they are constant.
    pub(super) data: Option<&'a Tensor>,
}

impl Known<'_> {
    pub(super) fn dims(&self) -> &[usize] {
        self.shape.dims()
    }
}

impl<'a> LoopNode<'a> {
    pub(super) fn new(ctx: &'a Lowering<'a>, node: &'a Node) -> Result<Self, NotCovered> {
        let this = Self { ctx, node };
        if this.node.outputs.iter().flatten().next().is_none() {
            return Err(this.refuse("it has no output"));
        }
        Ok(this)
    }

    pub(super) fn refuse(&self, reason: impl Into<String>) -> NotCovered {
        self.ctx.not_covered(self.node, reason)
    }

    /// Returns input `idx` if it is given.
    pub(super) fn input(&self, idx: usize) -> Option<Known<'a>> {
        self.node.input(idx).map(|id| self.known(id))
    }

    /// Returns input `idx`, which must be given.
    pub(super) fn required(&self, idx: usize) -> Result<Known<'a>, NotCovered> {
        self.input(idx)
            .ok_or_else(|| self.refuse(format!("input {idx} is missing")))
    }

    /// Returns output `idx` if it is wanted.
    pub(super) fn output(&self, idx: usize) -> Option<Known<'a>> {
        self.node.output(idx).map(|id| self.known(id))
    }

    /// Returns output 0, which must be wanted.
    pub(super) fn main_output(&self) -> Result<Known<'a>, NotCovered> {
        self.output(0)
            .ok_or_else(|| self.refuse("its first output is left out"))
    }

    /// Returns the version of the operator set that the node follows.
    pub(super) fn opset(&self) -> i64 {
        self.ctx.graph.opset
    }

    /// Returns the integers of input `idx`, which must be constant if it is given.
    pub(super) fn constant_ints(&self, idx: usize) -> Result<Option<Vec<i64>>, NotCovered> {
        let Some(known) = self.input(idx) else {
            return Ok(None);
        };
        let ints = known.data.and_then(Tensor::to_i64);
        ints.map(Some)
            .ok_or_else(|| self.refuse(format!("input {idx} is not a constant of integers")))
    }

    /// Returns the integers of an attribute that later operator sets made input `idx`.
    pub(super) fn ints(&self, name: &str, idx: usize) -> Result<Option<Vec<i64>>, NotCovered> {
        match self.node.ints(name) {
            Some(ints) => Ok(Some(ints.to_vec())),
            None => self.constant_ints(idx),
        }
    }

    /// Returns the axis that an attribute names among `rank`.
    pub(super) fn axis(&self, default: i64, rank: usize) -> Result<usize, NotCovered> {
        from_front(self.node.int("axis", default), rank)
            .ok_or_else(|| self.refuse("`axis` is out of range"))
    }

    /// Returns what is known of a value.
    pub(super) fn known(&self, id: ValueId) -> Known<'a> {
        let value = self.ctx.graph.value(id);
        Known {
            id,
            dtype: value.dtype,
            shape: &value.shape,
            data: self.ctx.graph.constant(id),
        }
    }

    /// Returns what a kernel reads for an input: the value, or its numbers.
    pub(super) fn source(&self, known: &Known<'_>) -> Source {
        match &self.ctx.graph.value(known.id).data {
            Some(data) => Source::Constant(data.clone()),
            None => Source::Value(known.id),
        }
    }

    /// Returns an operation that renders `template` with `facts`.
    pub(super) fn operation(
        &self,
        template: &'static str,
        facts: Value,
        inputs: &[Known<'_>],
        outputs: &[Known<'_>],
        room: usize,
    ) -> Operation {
        self.operation_with(template, facts, inputs, Vec::new(), outputs, room)
    }

    /// Returns an operation that also reads tables, as its last inputs.
    pub(super) fn operation_with(
        &self,
        template: &'static str,
        facts: Value,
        inputs: &[Known<'_>],
        tables: Vec<Tensor>,
        outputs: &[Known<'_>],
        room: usize,
    ) -> Operation {
        let mut sources: Vec<Source> = inputs.iter().map(|known| self.source(known)).collect();
        let tables = tables.into_iter().map(Arc::new);
        sources.extend(tables.map(Source::Constant));
        let computed = sources.iter().find_map(|source| match source {
            Source::Value(id) => Some(*id),
            Source::Constant(_) => None,
        });
        let y = outputs.first().map_or(ValueId(0), |known| known.id);
        let loops = Loops {
            template,
            facts,
            inputs: sources,
            outputs: outputs.iter().map(|known| known.id).collect(),
            room,
        };
        let name = self.node.op.to_lowercase();
        self.ctx
            .operation(name, Kind::Loops(loops), computed.unwrap_or(y), y)
    }
}
