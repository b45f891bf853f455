//! What variants cost in accuracy.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::Teacher;
use crate::accuracy::{Divergence, Meter};
use crate::graph::{Graph, extract};
use crate::onnx::{Error, Runner};
use crate::variant::untouched;

/// Returns how far the outputs of each variant are from the teacher's, over its samples. Variants
/// are run from the first value on that they change, on all processors, one thread each.
///
/// # Errors
/// If the reference executor cannot run a variant.
pub fn divergences(teacher: &Teacher, variants: &[Graph]) -> Result<Vec<Divergence>, Error> {
    let n_threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let work = || -> Result<(), Error> {
        loop {
            let idx = next.fetch_add(1, Ordering::Relaxed);
            let Some(variant) = variants.get(idx) else {
                return Ok(());
            };
            let divergence = divergence(teacher, variant)?;
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.push((idx, divergence));
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads.min(variants.len()))
            .map(|_| scope.spawn(work))
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(idx, _)| *idx);
    Ok(found
        .into_iter()
        .map(|(_, divergence)| divergence)
        .collect())
}

/// Returns how far the outputs of one variant are from the teacher's.
fn divergence(teacher: &Teacher, variant: &Graph) -> Result<Divergence, Error> {
    let known = untouched(teacher.graph(), variant);
    let changed = extract(variant, &known, &variant.outputs);
    let runner = Runner::new(&changed, teacher.path())?;
    let mut meter = Meter::new();
    for (idx, values) in teacher.traces().iter().enumerate() {
        let right = teacher.outputs(idx);
        let mut outputs = right.clone();
        outputs.extend(runner.run(values)?);
        meter.add(&right, &outputs, &[]);
    }
    Ok(meter.divergence())
}
