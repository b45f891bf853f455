//! Answering requests.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use super::check;
use super::clock::Counter;
use super::crew::Crews;
use super::reference::Reference;
use super::refusal::Refusal;
use super::run;
use super::slot::Slot;
use super::timing;
use crate::measure::protocol::{Request, Response};

/// What a worker has at hand.
#[derive(Debug)]
struct State {
    slots: BTreeMap<u32, Slot>,
    /// The last reference: hundreds of artifacts are compared with the same one.
    reference: Option<Reference>,
    counter: Counter,
    crews: Crews,
}

/// Answers requests, one line each, until [`Request::Exit`] or the end of the input. Threads that
/// help with a run stay on `helper_cpus`, one each, as far as there are any.
///
/// # Errors
/// [`io::Error`] if a line cannot be read or an answer cannot be written.
pub fn serve(
    requests: impl IntoIterator<Item = io::Result<String>>,
    mut output: impl Write,
    helper_cpus: Vec<usize>,
) -> io::Result<()> {
    let mut state = State {
        slots: BTreeMap::new(),
        reference: None,
        counter: Counter::calibrated(),
        crews: Crews::on(helper_cpus),
    };
    for line in requests {
        let response = match serde_json::from_str(&line?) {
            Ok(Request::Exit) => break,
            Ok(request) => state.answer(request),
            Err(error) => Err(Refusal::device_lost(format!("not a request: {error}"))),
        };
        let response = response
            .unwrap_or_else(|Refusal { outcome, message }| Response::Failed { outcome, message });
        // Serialised first: one write per answer, and numbers that JSON has no word for fail here.
        let mut bytes = serde_json::to_vec(&response)?;
        bytes.push(b'\n');
        output.write_all(&bytes)?;
        output.flush()?;
    }
    Ok(())
}

impl State {
    fn answer(&mut self, request: Request) -> Result<Response, Refusal> {
        match request {
            Request::Load { slot, artifact } => {
                // First, so that its memory is free for the next one.
                self.slots.remove(&slot);
                let crew = self.crews.of(artifact.threads)?;
                let loaded = Slot::load(*artifact, crew, self.reference.as_ref())?;
                self.slots.insert(slot, loaded);
                Ok(Response::Loaded)
            }
            Request::Verify { slot, reference } => {
                let slot = timing::get(&mut self.slots, slot)?;
                let reference = recall(&mut self.reference, &reference)?;
                let verified = check::verify(slot, &reference.tensors()?)?;
                Ok(Response::Verified(verified))
            }
            Request::Profile {
                slot,
                warmup,
                repeats,
                give_up_ns,
            } => {
                let slot = timing::get(&mut self.slots, slot)?;
                let counter = &mut self.counter;
                let profile = timing::profile(slot, counter, warmup, repeats, give_up_ns)?;
                Ok(Response::Profiled(profile))
            }
            Request::Compare {
                slots,
                warmup,
                rounds,
                seed,
            } => {
                let slots_ns = timing::compare(&mut self.slots, &slots, warmup, rounds, seed)?;
                Ok(Response::Compared { slots_ns })
            }
            Request::Run {
                slot,
                inputs,
                outputs,
            } => {
                let slot = timing::get(&mut self.slots, slot)?;
                run::run(slot, &inputs, &outputs)?;
                Ok(Response::Ran)
            }
            Request::Exit => Err(Refusal::device_lost("the worker is ending")),
        }
    }
}

/// Returns the reference, read again only if it is another one.
fn recall<'a>(kept: &'a mut Option<Reference>, path: &Path) -> Result<&'a Reference, Refusal> {
    let read = match kept.take() {
        Some(reference) if reference.is_of(path) => reference,
        _ => Reference::read(path)?,
    };
    Ok(kept.insert(read))
}
