//! Evaluations on their way: proposed, being built, to be measured.
//!
//! Compilers are kept at work while the device measures, within a bound: what is proposed ahead is
//! proposed without knowing what is measured meanwhile. Builds use all processors while nothing is
//! timed and keep off the device's core otherwise, so that two processors are enough.

use std::collections::{BTreeMap, VecDeque};

use tracing::Instrument as _;

use super::Error;
use super::bench::{Built, Need};
use super::composer::Composed;
use super::propose::{LAYOUTS, LayoutPlan, Proposal, propose};
use super::search::Search;
use super::trials::{Ticket, trial_span};
use crate::backend::BackendError;
use crate::label::Purpose;
use crate::queue::TrialState;
use crate::store::Batch;

/// Builds at once at most: more would propose too much at a time without learning from it.
const MAX_BUILDS: usize = 8;

/// How often a deployment is repaired whose candidates fail to build, before it is given up.
const MAX_REPAIRS: usize = 8;

/// Proposals in a row that others are at, after which none is made for a while.
const MAX_REFUSED: usize = 4;

/// What was proposed and is not measured yet.
#[derive(Default)]
pub(super) struct Flight {
    /// Not being built yet.
    queue: VecDeque<Proposal>,
    /// Number of the next proposal.
    round: u32,
    /// By number of the build.
    building: BTreeMap<u64, Passenger>,
}

/// A proposal that is being built.
struct Passenger {
    proposal: Proposal,
    ticket: Ticket,
    n_repairs: usize,
}

impl Flight {
    /// Starts with the proposal of a number.
    pub(super) fn new(round: u32) -> Self {
        Self {
            round,
            ..Self::default()
        }
    }
}

impl Search<'_> {
    /// Proposes, and starts to build, as much as there are compilers for and one more; what the
    /// budget has room for beside `reserve`. `incumbent` is the best deployment known.
    ///
    /// # Errors
    /// What stops the whole run.
    pub(super) async fn fill(
        &mut self,
        flight: &mut Flight,
        incumbent: &Composed,
        reserve: u32,
    ) -> Result<(), Error> {
        let bound = self.request.jobs.clamp(1, MAX_BUILDS) + 1;
        let mut n_refused = 0;
        while flight.building.len() < bound
            && self.session.budget.n_left() > reserve + flight.building.len() as u32
            && n_refused < MAX_REFUSED
            && !self.is_stopped()?
        {
            let proposal = match flight.queue.pop_front() {
                Some(proposal) => proposal,
                None => self.proposal(flight, incumbent),
            };
            let choices = self.job.choices(proposal.candidates.clone());
            let Some(ticket) = self.begin(&choices, Purpose::Screening).await? else {
                self.release([proposal]);
                n_refused += 1;
                continue;
            };
            let passenger = Passenger {
                proposal,
                ticket,
                n_repairs: 0,
            };
            self.board(flight, passenger).await?;
        }
        Ok(())
    }

    fn proposal(&mut self, flight: &mut Flight, incumbent: &Composed) -> Proposal {
        let plan = match flight.round {
            // Each layout once, then mostly that of the best.
            round @ 1..=3 => LayoutPlan::Throughout(LAYOUTS[round as usize % LAYOUTS.len()]),
            round if round % 4 == 3 => {
                LayoutPlan::Throughout(LAYOUTS[(round / 4) as usize % LAYOUTS.len()])
            }
            _ => LayoutPlan::Like(&incumbent.candidates),
        };
        flight.round += 1;
        propose(
            self.job,
            &mut self.session,
            &incumbent.candidates,
            plan,
            incumbent.cost_ns.max(1.0),
        )
    }

    /// Starts to build a proposal.
    async fn board(&mut self, flight: &mut Flight, passenger: Passenger) -> Result<(), Error> {
        let choices = self.job.choices(passenger.proposal.candidates.clone());
        let build = self.bench.launch(&choices, Need::Screening)?;
        let ticket = passenger.ticket;
        flight.building.insert(build, passenger);
        self.trials.advance(ticket, TrialState::Compiling).await
    }

    /// Takes a build that ended: measures what was built, and labels and replaces candidates that
    /// do not build. Returns whether what was measured is a surprise.
    ///
    /// # Errors
    /// What stops the whole run.
    pub(super) async fn take(
        &mut self,
        flight: &mut Flight,
        build: u64,
        result: Result<Built, BackendError>,
    ) -> Result<bool, Error> {
        let Some(mut passenger) = flight.building.remove(&build) else {
            return Ok(false);
        };
        let ticket = passenger.ticket;
        match self.expect_backend(result)? {
            Ok(artifact) => {
                self.trials.advance(ticket, TrialState::Compiled).await?;
                let span = trial_span(&artifact, Purpose::Screening);
                let seen = self.evaluate(ticket, passenger.proposal, artifact);
                let seen = seen.instrument(span).await?;
                flight.queue.extend(seen.split);
                Ok(seen.is_surprising)
            }
            Err(failure) => {
                let has_culprit = self.repair(&mut passenger.proposal, &failure).await?;
                passenger.n_repairs += 1;
                if has_culprit && passenger.n_repairs < MAX_REPAIRS && !self.is_stopped()? {
                    self.trials.advance(ticket, TrialState::Queued).await?;
                    self.board(flight, passenger).await?;
                } else {
                    self.release([passenger.proposal]);
                    let nothing = Batch::default();
                    self.trials.end(ticket, TrialState::Failed, nothing).await?;
                }
                Ok(false)
            }
        }
    }

    /// Gives up what was not measured: nothing is built any more when this returns.
    ///
    /// # Errors
    /// If the store does not work.
    pub(super) async fn abandon(&mut self, flight: Flight) -> Result<(), Error> {
        self.release(flight.queue);
        self.bench.abandon_builds().await;
        for passenger in flight.building.into_values() {
            self.release([passenger.proposal]);
            self.trials.drop(passenger.ticket).await?;
        }
        Ok(())
    }
}
