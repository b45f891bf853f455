//! `If`: branches become part of the graph.

use super::build::Builder;
use super::error::Problem;
use super::proto;
use super::sort::{sorted, title};
use crate::graph::{Fact, Node, Tensor, ValueId};

impl Builder<'_> {
    /// Inlines an `If`.
    ///
    /// A constant condition says which branch is taken. Otherwise, if only one branch fits the
    /// fixed input shapes, it is that one, as a run that took the other could only fail. If both
    /// fit and give the same shapes, both are computed and `Where` selects: operators have no side
    /// effects, so this differs in cost alone.
    pub(super) fn branch(&mut self, source: &proto::Node<'_>) -> Result<(), Problem> {
        let name = source.inputs.first().copied().unwrap_or_default();
        let condition = self.draft.lookup(name, title(source))?;
        let value = self
            .draft
            .graph
            .constant(condition)
            .and_then(Tensor::to_i64);
        let taken = match value.as_deref() {
            Some([0]) => "else_branch",
            Some([_]) => "then_branch",
            _ => match (
                self.fits(source, "then_branch")?,
                self.fits(source, "else_branch")?,
            ) {
                (true, false) => "then_branch",
                (false, true) => "else_branch",
                _ => return self.select(source, condition),
            },
        };
        let results = self.inline(source, taken)?;
        for (&name, &id) in source.outputs.iter().zip(&results) {
            self.rename(name, id)?;
        }
        Ok(())
    }

    /// Returns whether a branch fits the shapes it would be given.
    fn fits(&mut self, source: &proto::Node<'_>, branch: &str) -> Result<bool, Problem> {
        let start = self.draft.mark();
        let result = self.inline(source, branch);
        self.draft.rewind(&start);
        match result {
            Ok(_) => Ok(true),
            Err(Problem::Mismatch { .. } | Problem::ZeroSized { .. }) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Computes both branches and selects.
    fn select(&mut self, source: &proto::Node<'_>, condition: ValueId) -> Result<(), Problem> {
        let on_true = self.inline(source, "then_branch")?;
        let on_false = self.inline(source, "else_branch")?;
        for (&name, (&lhs, &rhs)) in source.outputs.iter().zip(on_true.iter().zip(&on_false)) {
            let graph = &self.draft.graph;
            let (left, right) = (graph.value(lhs), graph.value(rhs));
            let agree = left.dtype == right.dtype && left.shape == right.shape;
            if !agree || graph.value(condition).shape.rank() > left.shape.rank() {
                return Err(Problem::UnsupportedOperator {
                    op: "If".to_owned(),
                    node: title(source).to_owned(),
                    detail: format!(
                        "its condition `{}` is not a constant and its branches give different shapes",
                        graph.value(condition).name
                    ),
                });
            }
            let fact = Fact {
                dtype: left.dtype,
                shape: left.shape.clone(),
            };
            let output = self.draft.define(name, fact)?;
            self.append("Where", vec![condition, lhs, rhs], output);
        }
        Ok(())
    }

    /// Adds a branch to the graph and returns its outputs.
    fn inline(&mut self, source: &proto::Node<'_>, branch: &str) -> Result<Vec<ValueId>, Problem> {
        let body = source
            .attributes
            .iter()
            .filter(|attribute| attribute.name == branch)
            .find_map(|attribute| attribute.graph.as_deref())
            .ok_or_else(|| Problem::Malformed {
                detail: format!("`If` node `{}` has no `{branch}`", title(source)),
            })?;
        self.draft.enter();
        self.initializers(body)?;
        for node in sorted(body)? {
            self.node(node)?;
        }
        let mut results = Vec::new();
        for output in &body.outputs {
            results.push(self.draft.lookup(output.name, title(source))?);
        }
        self.draft.leave();
        if results.len() != source.outputs.len() {
            return Err(Problem::Malformed {
                detail: format!("`{branch}` of node `{}` has other outputs", title(source)),
            });
        }
        Ok(results)
    }

    /// Gives a value of an inlined branch the name it has outside.
    fn rename(&mut self, name: &str, id: ValueId) -> Result<(), Problem> {
        let value = self.draft.graph.value(id).clone();
        if let Some(data) = value.data {
            return self.draft.define_constant(name, data);
        }
        let fact = Fact {
            dtype: value.dtype,
            shape: value.shape,
        };
        let output = self.draft.define(name, fact)?;
        self.append("Identity", vec![id], output);
        Ok(())
    }

    fn append(&mut self, op: &str, inputs: Vec<ValueId>, output: ValueId) {
        self.draft.graph.nodes.push(Node {
            name: String::new(),
            op: op.to_owned(),
            domain: String::new(),
            attributes: [].into(),
            inputs: inputs.into_iter().map(Some).collect(),
            outputs: vec![Some(output)],
        });
    }
}
