//! Targets of all layers: `[[target]]` entries laid over each other.

use std::collections::BTreeMap;

use super::Place;
use super::settings::{Layer, SettingsError, TargetSettings, disagree, duplicate};
use super::written::{Spanned, TargetEntry};

pub(super) fn resolve(layers: &[Layer]) -> Result<Vec<TargetSettings>, SettingsError> {
    let mut targets: BTreeMap<String, (TargetSettings, Place, usize)> = BTreeMap::new();
    for (layer_idx, layer) in layers.iter().enumerate() {
        for Spanned { value, place } in &layer.config.targets {
            let earlier = targets.remove(&value.name);
            if let Some((_, first, earlier_idx)) = &earlier
                && *earlier_idx == layer_idx
            {
                let (first, second) = (first.to_string(), place.to_string());
                return Err(duplicate("target", &value.name, &first, &second));
            }
            let refined = refine(earlier.as_ref().map(|(target, ..)| target), value, layer);
            if let Some((target, _, earlier_idx)) = &earlier {
                let elsewhere = TargetSettings {
                    threads_place: target.threads_place.clone(),
                    ..refined.clone()
                };
                disagree(&layers[*earlier_idx], layer, "target", *target == elsewhere)?;
            }
            let entry = (refined, place.clone(), layer_idx);
            targets.insert(value.name.clone(), entry);
        }
    }
    if targets.is_empty() {
        let entry = TargetEntry {
            name: "cpu".to_owned(),
            ..TargetEntry::default()
        };
        return Ok(vec![refine(None, &entry, &Layer::default())]);
    }
    Ok(targets.into_values().map(|(target, ..)| target).collect())
}

/// Lays an entry over what earlier layers say of the target, or over the built-in values.
fn refine(base: Option<&TargetSettings>, entry: &TargetEntry, layer: &Layer) -> TargetSettings {
    let base = base.cloned().unwrap_or_else(|| TargetSettings {
        name: entry.name.clone(),
        backend: "native".to_owned(),
        profile: "host".to_owned(),
        dir: layer.dir.clone(),
        threads: 1,
        threads_place: None,
    });
    let threads = entry.threads.as_ref();
    TargetSettings {
        name: base.name,
        backend: entry.backend.clone().unwrap_or(base.backend),
        dir: match entry.profile {
            Some(_) => layer.dir.clone(),
            None => base.dir,
        },
        profile: entry.profile.clone().unwrap_or(base.profile),
        threads: threads.map_or(base.threads, |threads| threads.value),
        threads_place: threads
            .map(|threads| threads.place.clone())
            .or(base.threads_place),
    }
}
