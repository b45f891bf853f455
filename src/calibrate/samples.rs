//! The samples of a model, checked against it.

use crate::accuracy::Limits;
use crate::config::{Accept, SampleSettings};
use crate::data::{DataError, Input, MIN_CALIBRATION, Samples, read};
use crate::digest::Encoder;
use crate::graph::Graph;
use crate::lock::Basis;

/// What variants of a model are fitted to, compared on and judged by.
#[derive(Debug, Clone)]
pub struct ModelSamples {
    /// For fitting and comparing.
    pub calibration: Samples,
    /// For the last check, if there are any.
    pub validation: Option<Samples>,
    /// What a deployment must keep to.
    pub accept: Accept,
}

impl ModelSamples {
    /// Reads the samples of a model; `None` if it has no calibration samples.
    ///
    /// # Errors
    /// [`DataError`] if something is wrong with them: also if there are too few, if labels name no
    /// class of the model, or if a sample is in both sets.
    pub fn read(
        settings: &SampleSettings,
        accept: &Accept,
        graph: &Graph,
    ) -> Result<Option<Self>, DataError> {
        let Some(path) = &settings.calibration else {
            return Ok(None);
        };
        let input = |id: &crate::graph::ValueId| {
            let value = graph.value(*id);
            Input {
                name: &value.name,
                dtype: value.dtype,
                shape: &value.shape,
            }
        };
        let inputs: Vec<Input<'_>> = graph.inputs.iter().map(input).collect();
        let read = |path| read(path, &settings.preprocess, &settings.labels, &inputs);
        let calibration = read(path)?;
        calibration.expect(MIN_CALIBRATION)?;
        let validation = settings.validation.as_deref().map(read).transpose()?;
        for samples in validation.iter().chain([&calibration]) {
            if let Some(n_classes) = n_classes(graph) {
                samples.expect_classes(n_classes)?;
            }
        }
        if let Some(validation) = &validation {
            validation.expect_disjoint(&calibration)?;
        }
        Ok(Some(Self {
            calibration,
            validation,
            accept: *accept,
        }))
    }

    /// Returns what a lock says of them.
    pub fn basis(&self) -> Basis {
        let mut encoder = Encoder::new("metainfer model samples v1");
        encoder.digest(&self.calibration.digest());
        if let Some(validation) = &self.validation {
            encoder.digest(&validation.digest());
        }
        Basis {
            samples: encoder.finish(),
            accept: self.accept.to_string(),
        }
    }

    /// Returns the limits on accuracy, defaults if there are none.
    pub fn limits(&self, graph: &Graph) -> Limits {
        self.accept.limits.or_default(n_classes(graph).is_some())
    }
}

/// Returns the number of classes, if the model is a classifier.
fn n_classes(graph: &Graph) -> Option<usize> {
    let [output] = graph.outputs.as_slice() else {
        return None;
    };
    match graph.value(*output).shape.dims() {
        [_, n, ones @ ..] if *n > 1 && ones.iter().all(|&size| size == 1) => Some(*n),
        _ => None,
    }
}
