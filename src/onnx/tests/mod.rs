//! Loading, rewriting, running and writing models, real and broken.

mod bad_bytes;
mod bad_models;
mod branches;
mod composites;
mod digests;
mod fixture;
mod folding;
mod halves;
mod mutated;
mod mutation;
mod net;
mod partitions;
mod quantized;
mod random;
mod reference;
mod shapes;

use std::path::{Path, PathBuf};

use super::{LoadOptions, LoadedModel, load, survives};

/// Path of the fixture.
fn fashion() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fashion/models/fashion.onnx")
}

/// Options with static shapes.
fn options(inputs: &[(&str, &[usize])]) -> LoadOptions {
    LoadOptions {
        input_shapes: inputs
            .iter()
            .map(|(name, dims)| ((*name).to_owned(), dims.to_vec()))
            .collect(),
    }
}

/// The fixture at batch one.
fn load_fashion() -> LoadedModel {
    load(&fashion(), &options(&[("image", &[1, 1, 28, 28])])).unwrap()
}
