//! Any bytes are a model, or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metainfer::onnx::{LoadOptions, survives};

fuzz_target!(|bytes: &[u8]| {
    if let Err(fault) = survives(bytes, &LoadOptions::default()) {
        panic!("{fault}");
    }
});
