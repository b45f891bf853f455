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
//! - [`graph`]: the typed layer over ONNX operators: canonical form, subgraphs, digests. It knows
//!   no protobuf, no files and no hardware.
//! - [`space`]: parameters, constraints and candidates, from `templates/spaces`.
//! - [`device`]: what the hardware is, as data, from `templates/devices` or by reading this host.
//! - [`label`]: what was measured, where and how: one immutable record a candidate.
//! - [`digest`], [`fsx`]: stable hashes; the only place that writes files.
//! - [`process`]: what the tool asks of the system for itself.
//! - [`config`]: `metainfer.toml`, with places for every finding. It reads no file itself.
//! - [`search`]: what to try next, how to share the budget, how to compose the whole. It does no
//!   I/O, has no clock, and repeats with its seed.
//! - [`accuracy`]: how far a variant is from its model, and whether that is near enough.
//! - [`variant`]: other structures of a model that compute nearly the same, as rewrites of its graph.
//! - [`queue`]: jobs and trials on their way: states, leases, whose turn it is.
//! - [`lock`]: `metainfer.lock` as text and as a value.
//! - [`event`]: what happened, as data.
//! - [`onnx`]: files to graphs and back, and the reference executor that says what is right.
//! - [`data`]: calibration and validation samples, from arrays and pictures.
//! - [`calibrate`]: what samples say of a model and of its variants.
//! - [`cpu`]: processors, and who keeps off which while something is timed.
//! - [`backend`]: compilers behind one trait; [`backend::native`] renders Rust kernels from
//!   `templates/kernels` and compiles them with `rustc`.
//! - [`measure`]: the worker process that runs artifacts, and statistics over what it says.
//! - [`store`]: labels in SQLite or memory, as sets that merge; jobs and trials beside them.
//! - [`adapt`]: the loop, the only place where the parts meet.
//! - [`deploy`]: a lock becomes a crate without dependencies.
//! - [`report`]: the only user of the terminal. [`cli`]: the only user of clap and of environment
//!   variables.
//!
//! # Direction of dependencies
//!
//! A module may use modules on its own or a lower line; `cargo xtask tidy` enforces it. Names that
//! are not above have a place kept for what is to come.
//!
//! ```text
//! 5  main  cli                                             wires everything
//! 4  report  watch  server  deploy                         edges
//! 3  adapt                                                 orchestration, the async part
//! 2  store  backend  measure  onnx  data  calibrate  cpu  device::probe  effects on the outside world
//! 1  variant  accuracy  meta  search  queue  event  lock  config  pure logic: no I/O, no clock, no globals
//! 0  graph  space  device  label  digest  fsx  process     vocabulary
//! ```
//!
//! # Invariants
//!
//! - Candidates are compiled code of unknown quality: they run in a worker process only.
//! - No candidate is timed whose numbers were not compared with the reference.
//! - A label is in the store before the next trial starts, and is never changed.
//! - What a label is found by holds structure, device, engine and compiler: there is no look-up
//!   without all of them.
//! - The lockfile changes as a whole or not at all, and only by a measured comparison.
//! - Unsafe code is where kernels are loaded and run, and where the system is asked to limit them.
//! - No compiler runs on the core that something is timed on, and one process at a time holds the
//!   device.

pub mod accuracy;
pub mod adapt;
pub mod backend;
pub mod calibrate;
pub mod cli;
pub mod config;
pub mod cpu;
pub mod data;
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
pub mod process;
pub mod queue;
pub mod report;
pub mod search;
pub mod space;
pub mod store;
pub mod variant;
