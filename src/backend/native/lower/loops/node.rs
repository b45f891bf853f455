//! A node as the families of plain loops see it.

use serde_json::Value;

use crate::backend::native::lower::subgraph::{Lowering, NotCovered};
use crate::backend::native::spec::{Kind, Loops, Operation, Source};
use crate::graph::{DType, Node, Shape, Tensor, ValueId};

/// A node whose inputs and outputs have known types and shapes.
pub(super) struct LoopNode<'a> {
    ctx: &'a Lowering<'a>,
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

    fn known(&self, id: ValueId) -> Known<'a> {
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
        let sources: Vec<Source> = inputs.iter().map(|known| self.source(known)).collect();
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
