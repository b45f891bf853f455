//! Models of all layers: files of `model-dir` and `[[model]]` entries put together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::settings::{Layer, Model, Objective, SettingsError, duplicate, is_name};
use super::written::Spanned;
use super::{Accept, AcceptEntry, Channels, ModelEntry, Place, Resize, SampleSettings};
use crate::graph::Shape;

/// A model while layers are being put together.
struct Draft {
    dir: PathBuf,
    origin: String,
    /// Last layer that declares it in a `[[model]]`.
    declared_in: Option<usize>,
    /// Its file, or the entry that leaves the file to `model-dir`.
    path: Result<PathBuf, Place>,
    inputs: BTreeMap<String, Shape>,
    samples: SampleSettings,
    accept: Accept,
}

pub(super) fn resolve(layers: &[Layer]) -> Result<Vec<Model>, SettingsError> {
    let mut drafts: BTreeMap<String, Draft> = BTreeMap::new();
    for (layer_idx, layer) in layers.iter().enumerate() {
        let mut files = layer.onnx_files.clone();
        files.sort();
        for path in files {
            let elsewhere = layer.config.models.iter().any(|entry| {
                entry.value.path.as_ref().map(|path| layer.dir.join(path)) == Some(path.clone())
            });
            if !elsewhere {
                add_file(&mut drafts, layer, path)?;
            }
        }
        for entry in &layer.config.models {
            add_entry(&mut drafts, layer, layer_idx, entry)?;
        }
    }
    drafts
        .into_iter()
        .map(|(name, draft)| match draft.path {
            Ok(path) => Ok(Model {
                name,
                path,
                inputs: draft.inputs,
                samples: draft.samples,
                accept: draft.accept,
                objective: Objective::Latency,
            }),
            Err(place) => Err(SettingsError::NoFile { name, place }),
        })
        .collect()
}

/// Adds a file of `model-dir`.
fn add_file(
    drafts: &mut BTreeMap<String, Draft>,
    layer: &Layer,
    path: PathBuf,
) -> Result<(), SettingsError> {
    let name = match path.file_stem().and_then(|stem| stem.to_str()) {
        Some(stem) if is_name(stem) => stem.to_owned(),
        _ => return Err(SettingsError::FileName { path }),
    };
    if let Some(earlier) = drafts.get(&name)
        && earlier.path.as_ref() != Ok(&path)
    {
        return Err(duplicate("model", &name, &earlier.origin, &show(&path)));
    }
    drafts.entry(name).or_insert_with(|| Draft {
        dir: layer.dir.clone(),
        origin: show(&path),
        declared_in: None,
        path: Ok(path),
        inputs: BTreeMap::new(),
        samples: SampleSettings::default(),
        accept: Accept::default(),
    });
    Ok(())
}

/// Adds or refines with a `[[model]]` entry.
fn add_entry(
    drafts: &mut BTreeMap<String, Draft>,
    layer: &Layer,
    layer_idx: usize,
    entry: &Spanned<ModelEntry>,
) -> Result<(), SettingsError> {
    let Spanned { value, place } = entry;
    if let Some(earlier) = drafts.get(&value.name)
        && (earlier.declared_in == Some(layer_idx) || earlier.dir != layer.dir)
    {
        let second = place.to_string();
        return Err(duplicate("model", &value.name, &earlier.origin, &second));
    }
    let draft = drafts.entry(value.name.clone()).or_insert_with(|| Draft {
        dir: layer.dir.clone(),
        origin: String::new(),
        declared_in: None,
        path: Err(place.clone()),
        inputs: BTreeMap::new(),
        samples: SampleSettings::default(),
        accept: Accept::default(),
    });
    draft.declared_in = Some(layer_idx);
    draft.origin = place.to_string();
    if let Some(path) = &value.path {
        draft.path = Ok(layer.dir.join(path));
    }
    refine_samples(&mut draft.samples, value, &layer.dir);
    refine_accept(&mut draft.accept, &value.accept);
    for (input, dims) in &value.inputs {
        draft
            .inputs
            .insert(input.clone(), Shape::from(dims.clone()));
    }
    Ok(())
}

fn refine_samples(samples: &mut SampleSettings, entry: &ModelEntry, dir: &Path) {
    for (path, known) in [
        (&entry.calibration, &mut samples.calibration),
        (&entry.validation, &mut samples.validation),
    ] {
        if let Some(path) = path {
            *known = Some(dir.join(path));
        }
    }
    if let Some(labels) = &entry.labels {
        samples.labels.clone_from(labels);
    }
    let (written, preprocess) = (&entry.preprocess, &mut samples.preprocess);
    let reals = |numbers: &Vec<f64>| numbers.iter().map(|&number| number as f32).collect();
    if let Some(scale) = written.scale {
        preprocess.scale = scale as f32;
    }
    if let Some(mean) = &written.mean {
        preprocess.mean = reals(mean);
    }
    if let Some(std) = &written.std {
        preprocess.std = reals(std);
    }
    match written.channels.as_deref() {
        Some("bgr") => preprocess.channels = Channels::Bgr,
        Some("gray") => preprocess.channels = Channels::Gray,
        Some(_) => preprocess.channels = Channels::Rgb,
        None => {}
    }
    match written.resize.as_deref() {
        Some("crop") => preprocess.resize = Resize::Crop,
        Some(_) => preprocess.resize = Resize::Stretch,
        None => {}
    }
}

fn refine_accept(accept: &mut Accept, written: &AcceptEntry) {
    let limits = &mut accept.limits;
    for (value, known) in [
        (written.max_kl, &mut limits.max_kl),
        (written.max_l2, &mut limits.max_l2),
        (written.max_top1_drop, &mut limits.max_top1_drop),
        (written.max_latency_ms, &mut accept.max_latency_ms),
        (written.max_energy_mj, &mut accept.max_energy_mj),
    ] {
        *known = value.or(*known);
    }
}

fn show(path: &Path) -> String {
    format!("`{}`", path.display())
}
