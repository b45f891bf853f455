//! What differs between two lockfiles.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::{Deployment, DeploymentKey, Field, FieldValue, LockedSubgraph, Lockfile};

/// The differences between two lockfiles, sorted by model and target; empty if there are none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Diff {
    /// Deployments that differ.
    pub deployments: Vec<DeploymentDiff>,
}

/// One deployment that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct DeploymentDiff {
    /// Which one.
    pub key: DeploymentKey,
    /// How.
    pub change: Change,
}

/// How a deployment differs.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Only the new lockfile has it.
    Added(Box<Deployment>),
    /// Only the old lockfile has it.
    Removed(Box<Deployment>),
    /// Both have it.
    Changed {
        /// Fields that differ, in the order of the file.
        fields: Vec<FieldDiff>,
        /// Subgraphs that differ, in the order of the model.
        subgraphs: Vec<SubgraphDiff>,
        /// Subgraphs that are as they were.
        n_unchanged: usize,
    },
}

/// One field that differs; `None` where a side does not have it.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldDiff {
    /// Key of the field.
    pub key: Cow<'static, str>,
    /// Value in the old lockfile.
    pub old: Option<FieldValue>,
    /// Value in the new lockfile.
    pub new: Option<FieldValue>,
}

/// One subgraph that differs; an index is `None` where a side does not have it.
#[derive(Debug, Clone, PartialEq)]
pub struct SubgraphDiff {
    /// What it is.
    pub op: String,
    /// Position in the old deployment.
    pub old_idx: Option<usize>,
    /// Position in the new deployment.
    pub new_idx: Option<usize>,
    /// Choices that differ.
    pub fields: Vec<FieldDiff>,
}

impl Diff {
    /// Compares two lockfiles.
    pub fn new(old: &Lockfile, new: &Lockfile) -> Self {
        let keys: BTreeSet<&DeploymentKey> = old
            .deployments
            .keys()
            .chain(new.deployments.keys())
            .collect();
        let deployments = keys
            .into_iter()
            .filter_map(|key| {
                let change = match (old.deployments.get(key), new.deployments.get(key)) {
                    (Some(old), Some(new)) if old == new => return None,
                    (Some(old), Some(new)) => compare(old, new),
                    (Some(old), None) => Change::Removed(Box::new(old.clone())),
                    (None, Some(new)) => Change::Added(Box::new(new.clone())),
                    (None, None) => return None,
                };
                Some(DeploymentDiff {
                    key: key.clone(),
                    change,
                })
            })
            .collect();
        Self { deployments }
    }

    /// Returns whether the lockfiles say the same.
    pub fn is_empty(&self) -> bool {
        self.deployments.is_empty()
    }
}

fn compare(old: &Deployment, new: &Deployment) -> Change {
    let pairs = align(&old.subgraphs, &new.subgraphs);
    let subgraphs: Vec<SubgraphDiff> = pairs
        .iter()
        .filter_map(|&(old_idx, new_idx)| {
            let old_subgraph = old_idx.map(|idx| &old.subgraphs[idx]);
            let new_subgraph = new_idx.map(|idx| &new.subgraphs[idx]);
            let fields = diff_fields(
                old_subgraph.map(LockedSubgraph::choice).unwrap_or_default(),
                new_subgraph.map(LockedSubgraph::choice).unwrap_or_default(),
            );
            let is_same = old_idx.is_some() && new_idx.is_some() && fields.is_empty();
            (!is_same).then(|| SubgraphDiff {
                op: new_subgraph
                    .or(old_subgraph)
                    .map(|subgraph| subgraph.op.clone())
                    .unwrap_or_default(),
                old_idx,
                new_idx,
                fields,
            })
        })
        .collect();
    Change::Changed {
        fields: diff_fields(old.fields(), new.fields()),
        n_unchanged: pairs.len() - subgraphs.len(),
        subgraphs,
    }
}

/// Returns the fields that differ, in the order of the new side and then of the old one.
fn diff_fields(old: Vec<Field>, new: Vec<Field>) -> Vec<FieldDiff> {
    let mut old_values: BTreeMap<Cow<'static, str>, FieldValue> = old
        .iter()
        .map(|field| (field.key.clone(), field.value.clone()))
        .collect();
    let mut diffs = Vec::new();
    for Field { key, value } in new {
        let old_value = old_values.remove(&key);
        if old_value.as_ref() != Some(&value) {
            diffs.push(FieldDiff {
                key,
                old: old_value,
                new: Some(value),
            });
        }
    }
    for Field { key, value } in old {
        if old_values.contains_key(&key) {
            diffs.push(FieldDiff {
                key,
                old: Some(value),
                new: None,
            });
        }
    }
    diffs
}

/// Pairs subgraphs of equal structure along a longest common subsequence; the rest stand alone.
/// Common ends are split off first, so the quadratic part is as small as the change.
fn align(old: &[LockedSubgraph], new: &[LockedSubgraph]) -> Vec<(Option<usize>, Option<usize>)> {
    let is_same = |i: usize, j: usize| old[i].structure == new[j].structure;
    let shortest = old.len().min(new.len());
    let n_head = (0..shortest).take_while(|&i| is_same(i, i)).count();
    let n_tail = (0..shortest - n_head)
        .take_while(|&i| is_same(old.len() - 1 - i, new.len() - 1 - i))
        .count();
    let (old_end, new_end) = (old.len() - n_tail, new.len() - n_tail);
    let (n_old, n_new) = (old_end - n_head, new_end - n_head);

    let mut lengths = vec![vec![0u32; n_new + 1]; n_old + 1];
    for i in (0..n_old).rev() {
        for j in (0..n_new).rev() {
            lengths[i][j] = if is_same(n_head + i, n_head + j) {
                lengths[i + 1][j + 1] + 1
            } else {
                lengths[i + 1][j].max(lengths[i][j + 1])
            };
        }
    }
    let mut pairs: Vec<_> = (0..n_head).map(|i| (Some(i), Some(i))).collect();
    let (mut i, mut j) = (0, 0);
    while i < n_old || j < n_new {
        if i < n_old && j < n_new && is_same(n_head + i, n_head + j) {
            pairs.push((Some(n_head + i), Some(n_head + j)));
            i += 1;
            j += 1;
        } else if i < n_old && (j == n_new || lengths[i + 1][j] >= lengths[i][j + 1]) {
            pairs.push((Some(n_head + i), None));
            i += 1;
        } else {
            pairs.push((None, Some(n_head + j)));
            j += 1;
        }
    }
    pairs.extend((0..n_tail).map(|i| (Some(old_end + i), Some(new_end + i))));
    pairs
}
