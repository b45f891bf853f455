//! How far each step of a segment is after each band of rows.

use std::collections::BTreeMap;

use super::stage::{Reach, Stage};
use crate::backend::native::program::buffers::BufferId;

/// The rows that are complete after each band, and who reads what.
#[derive(Debug)]
pub(super) struct Bands {
    /// By band and stage.
    pub(super) done: Vec<Vec<usize>>,
    /// By stage: the stages that read what it writes, and how.
    pub(super) readers: Vec<Vec<(usize, Reach)>>,
}

/// Orders the work of a segment in bands after each of which the last stage has `rows` rows more.
pub(super) fn bands(stages: &[Stage], rows: usize) -> Bands {
    let makers: BTreeMap<BufferId, usize> = stages
        .iter()
        .enumerate()
        .filter_map(|(idx, stage)| Some((stage.writes?, idx)))
        .collect();
    let mut readers: Vec<Vec<(usize, Reach)>> = vec![Vec::new(); stages.len()];
    for (idx, stage) in stages.iter().enumerate() {
        for (id, reach) in &stage.reads {
            if let Some(&maker) = makers.get(id) {
                readers[maker].push((idx, reach.clone()));
            }
        }
    }
    let height = stages.last().map_or(0, |stage| stage.rows);
    let n_bands = height.div_ceil(rows.max(1)).max(1);
    let mut done: Vec<Vec<usize>> = Vec::new();
    for band in 0..n_bands {
        let mut now = vec![0; stages.len()];
        for (idx, stage) in stages.iter().enumerate().rev() {
            let needed = readers[idx]
                .iter()
                .map(|(reader, reach)| reach.end(now[*reader], stage.rows));
            let wanted = match needed.max() {
                _ if band + 1 == n_bands => stage.rows,
                Some(needed) => needed,
                // Nobody in the segment waits for it, so that it keeps the pace of the last.
                None if stage.rows == height => ((band + 1) * rows).min(height),
                None => (stage.rows * (band + 1)).div_ceil(n_bands),
            };
            let wanted = wanted.next_multiple_of(stage.grain).min(stage.rows);
            let before = done.last().map_or(0, |last: &Vec<usize>| last[idx]);
            now[idx] = wanted.max(before);
        }
        done.push(now);
    }
    Bands { done, readers }
}

impl Bands {
    /// Returns how many rows a stage has before a band.
    pub(super) fn before(&self, band: usize, stage: usize) -> usize {
        band.checked_sub(1).map_or(0, |band| self.done[band][stage])
    }
}
