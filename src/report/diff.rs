//! Answer of `diff`: what differs between two lockfiles.

use super::answer::Answer;
use super::format::{duration, factor, plural, size};
use super::json::{self, Message};
use crate::lock::{
    Change, Deployment, DeploymentDiff, DeploymentKey, Diff, FieldDiff, FieldValue, SubgraphDiff,
};

/// The differences, and between what.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DiffAnswer {
    /// Name of the old side, e.g. `HEAD`.
    pub old: String,
    /// Name of the new side, e.g. `the working tree`.
    pub new: String,
    /// The differences.
    pub diff: Diff,
}

impl Answer for DiffAnswer {
    fn human(&self, _: usize) -> String {
        if self.diff.is_empty() {
            return format!("no difference between {} and {}\n", self.old, self.new);
        }
        let mut text = format!("--- {}\n+++ {}\n", self.old, self.new);
        for DeploymentDiff { key, change } in &self.diff.deployments {
            text.push('\n');
            text += &deployment(key, change);
        }
        text
    }

    fn json(&self) -> Vec<Message<'_>> {
        self.diff.deployments.iter().map(message).collect()
    }
}

fn message(deployment: &DeploymentDiff) -> Message<'_> {
    let (change, fields, subgraphs) = match &deployment.change {
        Change::Added(new) => ("added", side_fields(new, Side::New), &[][..]),
        Change::Removed(old) => ("removed", side_fields(old, Side::Old), &[][..]),
        Change::Changed {
            fields, subgraphs, ..
        } => (
            "changed",
            fields.iter().map(field_json).collect(),
            &subgraphs[..],
        ),
    };
    Message::DeploymentDiff(json::DeploymentDiff {
        model: &deployment.key.model,
        target: &deployment.key.target,
        change,
        fields,
        subgraphs: subgraphs
            .iter()
            .map(|subgraph| json::SubgraphDiff {
                op: &subgraph.op,
                old_idx: subgraph.old_idx,
                new_idx: subgraph.new_idx,
                fields: subgraph.fields.iter().map(field_json).collect(),
            })
            .collect(),
    })
}

fn deployment(key: &DeploymentKey, change: &Change) -> String {
    let name = format!("`{}` on `{}`", key.model, key.target);
    match change {
        Change::Added(new) => format!("+ {name}: {}\n", summary(new)),
        Change::Removed(old) => format!("- {name}: {}\n", summary(old)),
        Change::Changed {
            fields,
            subgraphs,
            n_unchanged,
        } => {
            let mut text = format!("~ {name}\n");
            let width = fields.iter().map(|field| field.key.len()).max();
            for field in fields {
                text += &line(field, width.unwrap_or(0), 2);
            }
            for subgraph in subgraphs {
                text += &subgraph_lines(subgraph);
            }
            let unchanged = plural(*n_unchanged, "subgraph");
            text.extend(["  ", &unchanged, " unchanged\n"]);
            text
        }
    }
}

fn summary(deployment: &Deployment) -> String {
    format!(
        "{}, {} the untuned speed, {}",
        duration(deployment.latency_ms.get() * 1e6),
        factor(deployment.speed_up.get()),
        plural(deployment.subgraphs.len(), "subgraph"),
    )
}

fn subgraph_lines(subgraph: &SubgraphDiff) -> String {
    let (sign, idx) = match (subgraph.old_idx, subgraph.new_idx) {
        (_, Some(idx)) if subgraph.old_idx.is_some() => ('~', idx),
        (_, Some(idx)) => ('+', idx),
        (Some(idx), None) => ('-', idx),
        (None, None) => ('~', 0),
    };
    let mut text = format!("  {sign} #{idx} {}\n", subgraph.op);
    if sign != '~' {
        return text;
    }
    let width = subgraph.fields.iter().map(|field| field.key.len()).max();
    for field in &subgraph.fields {
        text += &line(field, width.unwrap_or(0), 6);
    }
    text
}

/// Formats `key  old → new`, with the change in percent where there is one.
fn line(field: &FieldDiff, width: usize, indent: usize) -> String {
    let word = |value: &Option<FieldValue>| {
        value
            .as_ref()
            .map_or_else(|| "(none)".to_owned(), value_text)
    };
    let change = |old: f64, new: f64| format!(" ({:+.1} %)", (new / old - 1.0) * 100.0);
    let percent = match (&field.old, &field.new) {
        (Some(FieldValue::Figure(old)), Some(FieldValue::Figure(new))) if old.get() > 0.0 => {
            change(old.get(), new.get())
        }
        (Some(FieldValue::Bytes(old)), Some(FieldValue::Bytes(new))) if *old > 0 => {
            change(*old as f64, *new as f64)
        }
        _ => String::new(),
    };
    format!(
        "{:indent$}{:width$}  {} → {}{percent}\n",
        "",
        field.key,
        word(&field.old),
        word(&field.new)
    )
}

fn value_text(value: &FieldValue) -> String {
    match value {
        FieldValue::Text(text) => text.clone(),
        FieldValue::Digest(digest) => digest.short(),
        FieldValue::Int(value) => value.to_string(),
        FieldValue::Figure(figure) => figure.to_string(),
        FieldValue::Bytes(bytes) => size(*bytes),
    }
}

#[derive(Clone, Copy)]
enum Side {
    Old,
    New,
}

fn side_fields(deployment: &Deployment, side: Side) -> Vec<json::FieldDiff> {
    let only = |field: crate::lock::Field| {
        let value = Some(value_json(&field.value));
        let (old, new) = match side {
            Side::Old => (value, None),
            Side::New => (None, value),
        };
        json::FieldDiff {
            key: field.key.into_owned(),
            old,
            new,
        }
    };
    deployment.fields().into_iter().map(only).collect()
}

fn field_json(field: &FieldDiff) -> json::FieldDiff {
    json::FieldDiff {
        key: field.key.clone().into_owned(),
        old: field.old.as_ref().map(value_json),
        new: field.new.as_ref().map(value_json),
    }
}

fn value_json(value: &FieldValue) -> serde_json::Value {
    match value {
        FieldValue::Text(text) => text.as_str().into(),
        FieldValue::Digest(digest) => digest.to_string().into(),
        FieldValue::Int(value) => (*value).into(),
        FieldValue::Figure(figure) => figure.get().into(),
        FieldValue::Bytes(bytes) => (*bytes).into(),
    }
}
