//! What a race says, and what follows from it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// What the harness writes; kept as a file and printed as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    /// Name of the model.
    pub(super) model: String,
    /// Threads of each engine.
    pub(super) threads: u32,
    cores: Vec<u32>,
    rounds: u32,
    inputs: u32,
    versions: BTreeMap<String, String>,
    /// What ran.
    pub(super) engines: Vec<Contender>,
    /// What did not, and why.
    pub(super) missing: BTreeMap<String, String>,
}

/// An engine with a model file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Contender {
    /// What it is called, e.g. `tuned int8`.
    pub(super) name: String,
    /// The engine, `ours` for both builds of ours.
    pub(super) engine: String,
    /// Precision of its model file.
    pub(super) precision: String,
    wall: Figures,
    processor: Figures,
    /// Largest relative L2 distance to onnxruntime on noise.
    pub(super) relative_error_noise: f64,
    /// The same on inputs that look real.
    pub(super) relative_error_real: f64,
    /// Largest distance to onnxruntime in quantisation steps of the output, if it is quantised.
    pub(super) quantisation_steps: Option<f64>,
    /// What a process takes to its first result.
    pub(super) start: Start,
    /// Its time over that of the fastest peer with a model of its precision or of f32.
    #[serde(default)]
    pub(super) over_fastest_peer: Option<f64>,
}

/// What one clock says.
#[derive(Debug, Serialize, Deserialize)]
struct Figures {
    p25_us: f64,
    median_us: f64,
    p25_us_halves: Option<[f64; 2]>,
}

/// What a process takes to its first result.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Start {
    pub(super) load_ms: f64,
    pub(super) first_ms: f64,
    pub(super) peak_memory_mib: f64,
    pub(super) disk_mib: Option<f64>,
}

impl Answer {
    /// Reads what the harness wrote.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)?;
        serde_json::from_str(&text).context("the harness wrote an answer of another form")
    }

    /// Compares each build of ours with the fastest peer: f32 with f32, int8 with either.
    pub(super) fn judge(&mut self) {
        let times: Vec<f64> = self.engines.iter().map(|engine| self.us(engine)).collect();
        let fastest = |precision: &str| {
            let peers = self.engines.iter().zip(&times).filter(|(engine, _)| {
                !engine.is_ours() && (engine.precision == precision || engine.precision == "f32")
            });
            peers.map(|(_, &us)| us).min_by(f64::total_cmp)
        };
        let ratios: Vec<Option<f64>> = self
            .engines
            .iter()
            .zip(&times)
            .map(|(engine, us)| {
                let peer = fastest(&engine.precision).filter(|_| engine.is_ours())?;
                Some(us / peer)
            })
            .collect();
        for (engine, ratio) in self.engines.iter_mut().zip(ratios) {
            engine.over_fastest_peer = ratio;
        }
    }

    /// Returns the lower quartile of what an engine took, microseconds: processor time on one
    /// thread, wall time on more.
    pub(super) fn us(&self, engine: &Contender) -> f64 {
        match self.threads {
            1 => engine.processor.p25_us,
            _ => engine.wall.p25_us,
        }
    }

    /// Returns what a distance to onnxruntime in f32 may be: 1e-4, or twice that of OpenVINO.
    pub(super) fn limit(&self, error: impl Fn(&Contender) -> f64) -> f64 {
        let is_witness =
            |engine: &&Contender| engine.engine == "openvino" && engine.precision == "f32";
        let witness = self.engines.iter().find(is_witness);
        witness.map_or(1e-4, |engine| (2.0 * error(engine)).max(1e-4))
    }
}

impl Contender {
    /// Returns whether this is a build of ours.
    pub(super) fn is_ours(&self) -> bool {
        self.engine == "ours"
    }
}

/// Returns the geometric mean; nothing of nothing.
pub(super) fn geometric_mean(values: &[f64]) -> Option<f64> {
    let n = (!values.is_empty()).then_some(values.len() as f64)?;
    Some((values.iter().map(|value| value.ln()).sum::<f64>() / n).exp())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns an answer with engines of a name, an engine, a precision and a time.
    pub(in super::super) fn answer(threads: u32, engines: &[(&str, &str, &str, f64)]) -> Answer {
        let engine = |&(name, engine, precision, us): &(&str, &str, &str, f64)| {
            let figures = |p25_us| serde_json::json!({"p25_us": p25_us, "median_us": p25_us, "p25_us_halves": null});
            serde_json::json!({
                "name": name, "engine": engine, "precision": precision,
                "processor": figures(us), "wall": figures(us * 2.0),
                "relative_error_noise": 1e-6, "relative_error_real": 1e-7,
                "quantisation_steps": null,
                "start": {"load_ms": 1.0, "first_ms": 2.0, "peak_memory_mib": 3.0, "disk_mib": null},
            })
        };
        let engines: Vec<_> = engines.iter().map(engine).collect();
        let value = serde_json::json!({
            "model": "m", "threads": threads, "cores": [0], "rounds": 1, "inputs": 1,
            "versions": {}, "engines": engines, "missing": {},
        });
        serde_json::from_value(value).unwrap()
    }

    #[track_caller]
    fn is(actual: f64, expected: f64) {
        assert!((actual - expected).abs() < 1e-12, "{actual}");
    }

    #[test]
    fn f32_is_compared_with_f32_and_int8_with_either() {
        let mut answer = answer(
            1,
            &[
                ("tuned f32", "ours", "f32", 3.0),
                ("tuned int8", "ours", "int8", 1.0),
                ("a", "openvino", "f32", 4.0),
                ("b", "onnxruntime", "f32", 6.0),
                ("c", "onnxruntime", "int8", 2.0),
                ("d", "openvino", "int8", 9.0),
            ],
        );
        answer.judge();
        let ratios: Vec<_> = answer.engines.iter().map(|e| e.over_fastest_peer).collect();
        assert_eq!(ratios, [Some(0.75), Some(0.5), None, None, None, None]);
    }

    #[test]
    fn int8_without_an_int8_peer_is_compared_with_f32() {
        let engines = [("t", "ours", "int8", 1.0), ("a", "openvino", "f32", 4.0)];
        let mut answer = answer(1, &engines);
        answer.judge();
        assert_eq!(answer.engines[0].over_fastest_peer, Some(0.25));
    }

    #[test]
    fn threads_are_judged_by_the_wall_clock() {
        let engines = [("a", "ours", "f32", 5.0)];
        let us = |answer: Answer| answer.us(&answer.engines[0]);
        is(us(answer(1, &engines)), 5.0);
        is(us(answer(2, &engines)), 10.0);
    }

    #[test]
    fn limit_grows_with_how_far_the_peers_are_apart() {
        let mut answer = answer(1, &[("a", "openvino", "f32", 1.0)]);
        is(answer.limit(|engine| engine.relative_error_noise), 1e-4);
        answer.engines[0].relative_error_noise = 2e-3;
        is(answer.limit(|engine| engine.relative_error_noise), 4e-3);
    }

    #[test]
    fn geometric_mean_of_nothing_is_nothing() {
        assert_eq!(geometric_mean(&[]), None);
        is(geometric_mean(&[0.5, 2.0]).unwrap(), 1.0);
    }
}
