//! Answer of `graph`: the distinct subgraphs of a model.

use super::answer::Answer;
use super::format::{count, plural};
use super::json::{self, Message};
use super::table::{Align, Table};
use crate::digest::Digest;

/// A model and its distinct subgraphs, in the order of first occurrence.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphAnswer {
    /// Name of the model.
    pub model: String,
    /// ONNX file.
    pub path: String,
    /// Structure digest of the whole model.
    pub structure: Digest,
    /// Content digest of the whole model.
    pub content: Digest,
    /// Distinct subgraphs.
    pub rows: Vec<SubgraphRow>,
}

/// One distinct subgraph.
#[derive(Debug, Clone, PartialEq)]
pub struct SubgraphRow {
    /// Position of its first occurrence in the model.
    pub idx: usize,
    /// What it is.
    pub op: String,
    /// Shapes of its outputs.
    pub outputs: Vec<Vec<usize>>,
    /// Floating point operations of one run of it.
    pub flops: u64,
    /// How often the model has it.
    pub count: usize,
    /// Structure digest.
    pub structure: Digest,
}

impl GraphAnswer {
    fn n_subgraphs(&self) -> usize {
        self.rows.iter().map(|row| row.count).sum()
    }

    fn flops(&self) -> u64 {
        self.rows
            .iter()
            .map(|row| row.flops.saturating_mul(row.count as u64))
            .fold(0, u64::saturating_add)
    }
}

impl Answer for GraphAnswer {
    fn human(&self, width: usize) -> String {
        let mut table = Table::new(&[
            ("#", Align::Right),
            ("subgraph", Align::Left),
            ("output", Align::Left),
            ("FLOPs", Align::Right),
            ("count", Align::Right),
            ("structure", Align::Left),
        ]);
        for row in &self.rows {
            table.push(vec![
                row.idx.to_string(),
                row.op.clone(),
                shapes(&row.outputs),
                count(row.flops),
                row.count.to_string(),
                row.structure.short(),
            ]);
        }
        format!(
            "`{}`: {} in {}, {} FLOPs, structure {}, content {}\n{}",
            self.model,
            plural(self.n_subgraphs(), "subgraph"),
            plural(self.rows.len(), "task"),
            count(self.flops()),
            self.structure.short(),
            self.content.short(),
            table.render(width)
        )
    }

    fn json(&self) -> Vec<Message<'_>> {
        let model = Message::Model(json::Model {
            name: &self.model,
            path: &self.path,
            structure: self.structure.to_string(),
            content: self.content.to_string(),
            n_subgraphs: self.n_subgraphs(),
            n_tasks: self.rows.len(),
            flops: self.flops(),
        });
        let subgraphs = self.rows.iter().map(|row| {
            Message::Subgraph(json::Subgraph {
                model: &self.model,
                idx: row.idx,
                op: &row.op,
                outputs: &row.outputs,
                flops: row.flops,
                count: row.count,
                structure: row.structure.to_string(),
            })
        });
        std::iter::once(model).chain(subgraphs).collect()
    }
}

/// Formats shapes as `1×16×28×28`, several with commas.
fn shapes(shapes: &[Vec<usize>]) -> String {
    let shape = |dims: &Vec<usize>| {
        let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
        dims.join("×")
    };
    shapes.iter().map(shape).collect::<Vec<_>>().join(", ")
}
