//! The samples of a model, checked against it.

use crate::accuracy::Limits;
use crate::config::{Accept, SampleSettings};
use crate::data::{DataError, DataErrorKind, Input, MIN_CALIBRATION, Samples, read};
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
    /// class of the model, if a sample is in both sets, or if they cannot show what `accept` asks for.
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
            if let Some([rows, classes]) = rows_of_classes(graph) {
                samples.expect_classes(rows, classes)?;
            }
        }
        if let Some(validation) = &validation {
            validation.expect_disjoint(&calibration)?;
        }
        if accept.limits.max_top1_drop.is_some() {
            let reason = |reason| DataErrorKind::NoTop1 { reason };
            match (&validation, rows_of_classes(graph)) {
                (_, None) => {
                    return Err(calibration.error(reason("the model is no classifier")));
                }
                (None, _) => {
                    return Err(calibration.error(reason("there are no `validation` samples")));
                }
                (Some(validation), Some(_)) => validation.expect_labels()?,
            }
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
        self.accept
            .limits
            .or_default(rows_of_classes(graph).is_some())
    }
}

/// Returns the number of rows and of classes, if the model is a classifier.
fn rows_of_classes(graph: &Graph) -> Option<[usize; 2]> {
    let [output] = graph.outputs.as_slice() else {
        return None;
    };
    match graph.value(*output).shape.dims() {
        [rows, n, ones @ ..] if *n > 1 && ones.iter().all(|&size| size == 1) => Some([*rows, *n]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::onnx::{LoadOptions, load};

    /// Reads samples of the fixture, with a limit on top-1.
    fn read(validation: Option<PathBuf>, labels: &str) -> Result<(), String> {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fashion");
        let options = LoadOptions {
            input_shapes: [("image".to_owned(), vec![1, 1, 28, 28])].into(),
        };
        let graph = load(&fixture.join("models/fashion.onnx"), &options)
            .unwrap()
            .graph;
        let settings = SampleSettings {
            calibration: Some(fixture.join("data/calib.npz")),
            validation,
            labels: labels.to_owned(),
            ..SampleSettings::default()
        };
        let limits = Limits {
            max_top1_drop: Some(0.01),
            ..Limits::default()
        };
        let accept = Accept {
            limits,
            ..Accept::default()
        };
        let samples = ModelSamples::read(&settings, &accept, &graph);
        samples.map(|_| ()).map_err(|error| error.kind.to_string())
    }

    #[test]
    fn a_limit_on_top1_needs_labels_before_anything_is_searched() {
        let validation =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fashion/data/val.npz");
        assert_eq!(read(Some(validation), "labels"), Ok(()));
        assert_eq!(
            read(None, "labels").unwrap_err(),
            "`accept.max-top1-drop` cannot be checked: there are no `validation` samples"
        );
    }
}
