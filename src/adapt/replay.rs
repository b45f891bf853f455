//! A run once more, from its journal and without a device.

use std::sync::Arc;

use super::adaptation::{Earlier, JOURNAL_VERSION, Known, search, settle};
use super::bench::Bench;
use super::job::{Job, Source, open_native};
use super::journal::{Entry, Header, journal_path, read};
use super::trials::Trials;
use super::{Error, Request};
use crate::config::Model;
use crate::device::Target;
use crate::event::{Event, Reporter};
use crate::lock::decode;
use crate::store::Memory;

/// Replays the last run of each model and target of a request: goes through the same search,
/// answered from the journal, to its end where the run was killed. Nothing is built, measured,
/// recorded or locked.
///
/// # Errors
/// [`Error::Diverged`] if the search decides otherwise than it did; [`Error::NoJournal`] if there is
/// no journal of this model on this target.
pub async fn replay(request: &Request, reporter: &dyn Reporter) -> Result<(), Error> {
    for model in &request.models {
        let source = Source::load(model)?;
        for target in &request.targets {
            one(request, reporter, model, target, &source).await?;
        }
    }
    Ok(())
}

/// Replays one run.
async fn one(
    request: &Request,
    reporter: &dyn Reporter,
    model: &Model,
    target: &Target,
    source: &Source,
) -> Result<(), Error> {
    let path = journal_path(&request.scratch, &model.name, &target.name);
    let none = |reason: &'static str| Error::NoJournal {
        path: path.clone(),
        reason,
    };
    if !path.exists() {
        return Err(none("there is none"));
    }
    let mut entries = read(&path)?.into_iter();
    let n_entries = entries.len();
    let (header, known) = match (entries.next(), entries.next()) {
        (
            Some(Entry::Started(header)),
            Some(Entry::Known {
                labels,
                evaluations,
            }),
        ) => (header, Known::of_journal(&labels, &evaluations)),
        _ => return Err(none("its beginning is damaged")),
    };
    let Header {
        version,
        adaptation,
        content,
        search: settings,
        jobs,
        lock,
        ..
    } = *header;
    if version != JOURNAL_VERSION {
        return Err(none("another release wrote it"));
    }
    let request = Request {
        search: settings,
        jobs,
        ..request.clone()
    };
    let job = Job::new(&request, model, target, source, &open_native)?;
    if job.adaptation() != adaptation || source.whole.content != content {
        return Err(none("it is of another model, device or engine"));
    }
    let lockfile = decode(&lock)?;
    let earlier = Earlier::of(&job, &lockfile);
    let trials = Trials::of_replay(&request, reporter, &job, Arc::new(Memory::new()));
    let bench = Bench::replay(entries.collect());
    let mut search = search(&request, reporter, &job, bench, trials, &earlier, &known);
    let is_complete = match settle(&mut search, earlier).await {
        Ok(_) => true,
        Err(Error::JournalEnds { .. }) => false,
        Err(error) => return Err(error),
    };
    reporter.report(&Event::Replayed {
        model: &model.name,
        target: &target.name,
        n_entries,
        n_evaluations: search.session.budget.n_spent(),
        is_complete,
    });
    Ok(())
}
