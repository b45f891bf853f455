//! `cargo xtask peers`: deployed models against onnxruntime, OpenVINO, tract and rten.
//!
//! Deploys each model as locked and untuned, in f32 and as an int8 QDQ model that onnxruntime's
//! quantiser makes ([`quantize`]), for one thread and more, builds the crates, and races them with
//! the peers in one process (`python/race.py`). An engine or a build that fails is a line with the
//! reason. Writes `target/peers/<model>-<threads>.json` and prints a table. Needs `python3` with
//! `venv` and `pip`.

mod answer;
mod build;
mod command;
mod quantize;
mod race;
pub(crate) mod rten;
mod scripts;
mod table;

pub(crate) use command::{Args, run};
