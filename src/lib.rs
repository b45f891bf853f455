//! Adapts ONNX models to the hardware they will run on.
//!
//! For each model and target, model variants and hardware mappings are searched together, on real
//! measurements and within a budget; the result is locked into a committed `metainfer.lock`.
//!
//! # Bird's-eye view
//!
//! ```text
//! metainfer.toml ─ onnx ─ graph ─ subgraphs + digests ─┬─ unchanged: labels from the store
//!                                                      └─ changed: task
//! task ─ space ─ search proposes ─ backend compiles ─ measure checks and times ─ label ─ search …
//! labels ─ composition of the whole model ─ the best measured whole ─ metainfer.lock ─ deploy
//! ```
//!
//! # Modules, in reading order
//!
//! A module may use modules on its own or a lower line; `cargo xtask tidy` enforces it.
//!
//! ```text
//! 5  main  cli                                             wires everything
//! 4  report  watch  server  deploy                         edges
//! 3  adapt                                                 orchestration, the async part
//! 2  store  backend  measure  onnx  device::probe          effects on the outside world
//! 1  variant  accuracy  meta  search  event  lock  config  pure logic: no I/O, no clock, no globals
//! 0  graph  space  device  label  digest  fsx              vocabulary
//! ```

pub mod adapt;
pub mod backend;
pub mod cli;
pub mod config;
pub mod deploy;
pub mod device;
pub mod digest;
pub mod event;
pub mod fsx;
pub mod graph;
pub mod label;
pub mod lock;
pub mod measure;
pub mod onnx;
pub mod report;
pub mod search;
pub mod space;
pub mod store;
