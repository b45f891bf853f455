//! The last check: what was built, on samples that nothing was fitted to, against the untuned model.

use std::path::Path;

use super::rounds::Joint;
use super::study::Study;
use crate::accuracy::{Divergence, Meter, Missed, Paired, judge};
use crate::adapt::Error;
use crate::adapt::bench::TrialError;
use crate::adapt::job::{Choices, Job};
use crate::adapt::search::{Baseline, Search};
use crate::backend::Artifact;
use crate::calibrate::Sample;
use crate::event::Event;
use crate::fsx;
use crate::label::Purpose;
use crate::measure::Worker;
use crate::onnx::{read_tensors, write_tensors};

/// Checks deployments.
pub(super) struct Gate<'a> {
    pub(super) joint: &'a Joint<'a>,
    pub(super) study: &'a Study<'a>,
}

/// What a check came to.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    /// Samples that it was checked on.
    pub(super) n_samples: usize,
    /// How far its outputs are from the untuned model's.
    pub(super) divergence: Divergence,
    /// What it gets right and wrong, if samples have labels.
    pub(super) paired: Option<Paired>,
    /// Limits that it does not keep to.
    pub(super) missed: Vec<Missed>,
}

impl Verdict {
    /// Returns how many times as large as its limit the worst figure is; 1 if that cannot be told.
    pub(super) fn excess(&self) -> f64 {
        let ratios = self
            .missed
            .iter()
            .map(|missed| missed.ratio().unwrap_or(1.0));
        ratios.fold(1.0, f64::max)
    }
}

impl Gate<'_> {
    /// Runs a deployment and the untuned model on the validation samples, or on those that variants
    /// were checked on if there are none.
    ///
    /// # Errors
    /// If one of them does not run.
    pub(super) async fn judge(
        &self,
        search: &mut Search<'_>,
        choices: &Choices,
        base: &Job<'_>,
        baseline: &Baseline,
    ) -> Result<Verdict, Error> {
        let (ticket, built) = search.build(choices, Purpose::Confirm).await?;
        let artifact = built.map_err(|failure| Error::Default {
            model: base.model.name.clone(),
            target: base.target.name.clone(),
            message: failure.message,
        })?;
        let validation = self.joint.samples.validation.as_ref();
        let samples = match validation {
            Some(samples) => samples.inputs.clone(),
            None => self.study.checks(),
        };
        let turn = search.trials.patient_turn(ticket).await?;
        let right = self.outputs(&baseline.artifact, &samples).await?;
        let own = self.outputs(&artifact, &samples).await?;
        drop(turn);
        search.trials.drop(ticket).await?;
        search.bench.discard(&artifact);
        let mut meter = Meter::new();
        for (idx, (right, own)) in right.iter().zip(&own).enumerate() {
            let labels = validation.map_or(&[][..], |samples| samples.labels_of(idx));
            meter.add(right, own, labels);
        }
        let (divergence, paired) = (meter.divergence(), meter.paired());
        let missed = judge(&divergence, paired.as_ref(), self.study.limits());
        let words: Vec<String> = missed.iter().map(ToString::to_string).collect();
        let model = &base.model.name;
        self.joint.reporter.report(&Event::AccuracyChecked {
            model,
            target: &base.target.name,
            n_samples: samples.len(),
            kl: divergence.kl,
            relative_l2: divergence.relative_l2,
            agreement: divergence.agreement,
            top1_drop: paired.as_ref().map(Paired::drop),
            standard_error: paired.as_ref().map(Paired::standard_error),
            missed: &words.join(", "),
        });
        Ok(Verdict {
            n_samples: samples.len(),
            divergence,
            paired,
            missed,
        })
    }

    /// Returns the outputs of an artifact for each sample, run in a worker of its own.
    async fn outputs(&self, artifact: &Artifact, samples: &[Sample]) -> Result<Vec<Sample>, Error> {
        let request = self.joint.request;
        let dir = request.scratch.join("gate");
        fsx::create_dir_all(&dir)?;
        let [given, gives] = ["inputs", "outputs"].map(|name| dir.join(name));
        let limit = request.timeouts.trial_timeout;
        let mut worker = Worker::spawn(&request.worker).map_err(TrialError::from)?;
        let loaded = worker.load(0, artifact.clone(), limit).await;
        loaded.map_err(TrialError::from)?;
        let failed = |source| self.joint.failed(source);
        let mut outputs = Vec::new();
        for sample in samples {
            write_tensors(&given, sample).map_err(failed)?;
            let ran = worker.run(0, given.clone(), gives.clone(), limit).await;
            ran.map_err(TrialError::from)?;
            outputs.push(read_tensors(&gives).map_err(failed)?);
        }
        let files: [&Path; 2] = [&given, &gives];
        for path in files {
            // What stays is written over by the next check.
            let _ = fsx::remove_file(path);
        }
        Ok(outputs)
    }
}
