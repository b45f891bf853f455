//! The right class of each sample.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::DataErrorKind;
use super::arrays::{Array, Elements};

/// Name of the file of labels in a directory of pictures.
pub(super) const LABELS: &str = "labels.csv";

/// Returns the classes in an array of labels: whole numbers of any type, one for each sample, or for
/// each of the entries that make up a sample.
pub(super) fn classes(
    array: &Array,
    name: &str,
    n_samples: usize,
    batch: usize,
) -> Result<Vec<u32>, DataErrorKind> {
    let dims: Vec<usize> = array.shape.iter().copied().filter(|&d| d != 1).collect();
    let n_entries = n_samples.saturating_mul(batch);
    let shapes = [vec![n_samples], vec![n_entries], vec![n_samples, batch]];
    let plain = |shape: &Vec<usize>| shape.iter().copied().filter(|&d| d != 1).eq(dims.clone());
    if array.shape.is_empty() || !shapes.iter().any(plain) {
        return Err(DataErrorKind::Labels {
            array: name.to_owned(),
            found: format!("{:?}", array.shape),
            expected: n_entries,
        });
    }
    let no_class = |sample: usize, found: &dyn std::fmt::Display| DataErrorKind::NoClass {
        sample,
        found: found.to_string(),
    };
    match &array.data {
        Elements::Bytes(data) => Ok(data.iter().map(|&class| class.into()).collect()),
        Elements::Integers(data) => {
            let class = |(sample, class): (usize, &i64)| {
                u32::try_from(*class).map_err(|_| no_class(sample, class))
            };
            data.iter().enumerate().map(class).collect()
        }
        Elements::Reals(data) => {
            let is_class =
                |real: f64| (0.0..=u32::MAX.into()).contains(&real) && real.fract() == 0.0;
            let class = |(sample, real): (usize, &f64)| {
                let class = is_class(*real).then_some(*real as u32);
                class.ok_or_else(|| no_class(sample, real))
            };
            data.iter().enumerate().map(class).collect()
        }
    }
}

/// Reads the label of each picture from a file of lines `FILE,CLASS`; the first may be `file,label`.
pub(super) fn read_labels(path: &Path, names: &[String]) -> Result<Vec<i64>, DataErrorKind> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| DataErrorKind::Read(format!("`{LABELS}`: {error}")))?;
    let pictures: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let mut labels = BTreeMap::new();
    for (idx, line) in text.lines().enumerate() {
        if line.trim().is_empty() || (idx == 0 && line.trim() == "file,label") {
            continue;
        }
        let wrong = || DataErrorKind::LabelLine {
            line: idx + 1,
            text: line.to_owned(),
        };
        let (name, label) = line.rsplit_once(',').ok_or_else(wrong)?;
        let label: i64 = label.trim().parse().map_err(|_| wrong())?;
        let name = name.trim();
        if !pictures.contains(name) || labels.insert(name, label).is_some() {
            return Err(wrong());
        }
    }
    let label = |name: &String| {
        let label = labels.get(name.as_str()).copied();
        label.ok_or_else(|| DataErrorKind::NoLabel { name: name.clone() })
    };
    names.iter().map(label).collect()
}
