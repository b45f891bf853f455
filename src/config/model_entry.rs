//! A `[[model]]` as written.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use super::reader::{Reader, Section};
use super::written::read_name;

/// What `scale` and `std` may be: with it no pixel becomes infinite.
const FACTOR: Range<f64> = 1e-9..1e9;

/// What `mean` may be.
const MEAN: Range<f64> = -1e9..1e9;

/// A `[[model]]` table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelEntry {
    /// Name of the model.
    pub name: String,
    /// ONNX file, relative to the directory of the configuration.
    pub path: Option<PathBuf>,
    /// Shapes by input name.
    pub inputs: BTreeMap<String, Vec<usize>>,
    /// Calibration data: `.npz`, `.npy` or a directory of pictures.
    pub calibration: Option<PathBuf>,
    /// Validation data, likewise.
    pub validation: Option<PathBuf>,
    /// Name of the array of labels.
    pub labels: Option<String>,
    /// How pictures become inputs.
    pub preprocess: PreprocessEntry,
    /// Limits that a deployment must keep.
    pub accept: AcceptEntry,
    /// What is minimised: `latency` or `energy`.
    pub objective: Option<String>,
}

/// `preprocess = { … }` of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PreprocessEntry {
    /// What one step of a pixel is worth.
    pub scale: Option<f64>,
    /// By channel.
    pub mean: Option<Vec<f64>>,
    /// By channel.
    pub std: Option<Vec<f64>>,
    /// `rgb`, `bgr` or `gray`.
    pub channels: Option<String>,
    /// `stretch` or `crop`.
    pub resize: Option<String>,
}

/// `accept = { … }` of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AcceptEntry {
    /// Largest Kullback-Leibler divergence of the outputs.
    pub max_kl: Option<f64>,
    /// Largest relative L2 distance of an output.
    pub max_l2: Option<f64>,
    /// Largest loss of top-1 accuracy, as a fraction.
    pub max_top1_drop: Option<f64>,
    /// Longest latency, milliseconds.
    pub max_latency_ms: Option<f64>,
    /// Highest energy of one run, millijoules.
    pub max_energy_mj: Option<f64>,
}

pub(super) fn read_model(
    reader: &mut Reader<'_>,
    section: Section<'_>,
    span: &Range<usize>,
) -> Option<ModelEntry> {
    reader.expect_keys(
        section,
        &[
            "name",
            "path",
            "inputs",
            "calibration",
            "validation",
            "labels",
            "preprocess",
            "accept",
            "objective",
        ],
    );
    let name = read_name(reader, section, span);
    let inputs = reader.table(section, "inputs").map(|table| {
        let inputs = Section::new(table, "model.inputs");
        table
            .iter()
            .filter_map(|(input, _)| Some((input.to_owned(), reader.dims(inputs, input)?)))
            .collect()
    });
    let accept = reader.table(section, "accept").map(|table| {
        let accept = Section::new(table, "model.accept");
        reader.expect_keys(
            accept,
            &[
                "max-kl",
                "max-l2",
                "max-top1-drop",
                "max-latency-ms",
                "max-energy-mj",
            ],
        );
        reader.without_effect(accept, "max-energy-mj", "energy is not measured yet");
        AcceptEntry {
            max_kl: reader.number(accept, "max-kl", 0.0..f64::INFINITY),
            max_l2: reader.number(accept, "max-l2", 0.0..f64::INFINITY),
            max_top1_drop: reader.number(accept, "max-top1-drop", 0.0..1.0),
            max_latency_ms: reader.number(accept, "max-latency-ms", 0.0..f64::INFINITY),
            max_energy_mj: reader.number(accept, "max-energy-mj", 0.0..f64::INFINITY),
        }
    });
    let preprocess = reader.table(section, "preprocess").map(|table| {
        let section = Section::new(table, "model.preprocess");
        reader.expect_keys(section, &["scale", "mean", "std", "channels", "resize"]);
        PreprocessEntry {
            scale: reader.number(section, "scale", FACTOR),
            mean: reader.numbers(section, "mean", MEAN),
            std: reader.numbers(section, "std", FACTOR),
            channels: reader.word(section, "channels", &["rgb", "bgr", "gray"]),
            resize: reader.word(section, "resize", &["stretch", "crop"]),
        }
    });
    Some(ModelEntry {
        path: reader.path(section, "path"),
        inputs: inputs.unwrap_or_default(),
        calibration: reader.path(section, "calibration"),
        validation: reader.path(section, "validation"),
        labels: reader.string(section, "labels"),
        preprocess: preprocess.unwrap_or_default(),
        accept: accept.unwrap_or_default(),
        objective: reader.word(section, "objective", &["latency"]),
        name: name?,
    })
}
