//! Batches of proposals on their way: proposed, being built, to be measured.
//!
//! Where there are processors to spare, the next batch is built while the one before it is
//! measured, on other cores than that of the device. It is proposed without knowing what the batch
//! before it comes to, which costs less than an idle compiler does.

use std::collections::VecDeque;

use super::bench::{Building, device_cpu};
use super::composer::Composed;
use super::propose::{LAYOUTS, LayoutPlan, Proposal, propose};
use super::search::Search;
use crate::measure::worker::cpus_off_core;

/// Builds at once from which on building beside measuring is faster than building in turn with it.
///
/// A build takes about 4 s of one processor and a measurement 0.35 s. With n processors, an
/// evaluation takes 4/n + 0.35 s in turn, and 4/(n - 1) s if one of them only measures: more with
/// 3 processors, the same with 4, and less from there on.
const MIN_BUILDS_BESIDE: usize = 3;

/// Builds at once at most: more would propose too much at a time without learning from it.
const MAX_BUILDS: usize = 8;

/// Returns whether to build ahead with so many compilers at once: if there are enough processors
/// beside the core that the device is on.
pub fn builds_ahead(jobs: usize) -> bool {
    let device = device_cpu();
    let n_others = device.map_or(0, |cpu| cpus_off_core(cpu).len());
    n_others.min(jobs.saturating_sub(1)) >= MIN_BUILDS_BESIDE
}

/// Proposals that are being built.
pub(super) struct Underway {
    pub(super) proposals: Vec<Proposal>,
    pub(super) building: Building,
}

/// What was proposed and is not measured yet.
#[derive(Default)]
pub(super) struct Pipeline {
    /// Not being built yet.
    pub(super) queue: VecDeque<Proposal>,
    /// Number of the next proposal.
    pub(super) round: u32,
    /// Being built beside what is measured.
    pub(super) ahead: Option<Underway>,
}

impl Search<'_> {
    /// Proposes at most `room` evaluations and starts to build them. `incumbent` is the best
    /// deployment known.
    pub(super) fn start_batch(
        &mut self,
        pipeline: &mut Pipeline,
        incumbent: &Composed,
        room: usize,
        is_beside: bool,
    ) -> Underway {
        let n_builds = self.bench.jobs(is_beside).min(MAX_BUILDS).min(room);
        let queue = &mut pipeline.queue;
        while queue.len() < n_builds {
            let round = pipeline.round;
            let plan = match round {
                // Each layout once, then mostly that of the best.
                1..=3 => LayoutPlan::Throughout(LAYOUTS[round as usize % LAYOUTS.len()]),
                _ if round % 4 == 3 => {
                    LayoutPlan::Throughout(LAYOUTS[(round / 4) as usize % LAYOUTS.len()])
                }
                _ => LayoutPlan::Like(&incumbent.candidates),
            };
            queue.push_back(propose(
                self.job,
                &mut self.session,
                &incumbent.candidates,
                plan,
                incumbent.cost_ns.max(1.0),
            ));
            pipeline.round += 1;
        }
        let proposals: Vec<Proposal> = queue.drain(..room.min(queue.len())).collect();
        let choices = proposals.iter().map(|p| p.candidates.clone());
        let choices = choices.map(|candidates| self.job.choices(candidates));
        Underway {
            building: self.bench.start(choices.collect(), is_beside),
            proposals,
        }
    }

    /// Gives up what was not measured: nothing is built any more when this returns.
    pub(super) async fn drain(&mut self, pipeline: Pipeline) {
        self.release(pipeline.queue);
        let Some(batch) = pipeline.ahead else {
            return;
        };
        // What went wrong with it goes wrong again where it matters.
        if let Ok(Ok(built)) = batch.building.finish().await {
            for artifact in built.into_iter().flatten() {
                self.bench.discard(&artifact);
            }
        }
        self.release(batch.proposals);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn building_ahead_takes_three_compilers_and_processors_beside_the_device() {
        let n_others = device_cpu().map_or(0, |cpu| cpus_off_core(cpu).len());
        for jobs in 0..10 {
            let expected = jobs >= 4 && n_others >= 3;
            assert_eq!(builds_ahead(jobs), expected, "{jobs} jobs");
        }
    }
}
