//! The number of the generator moves with what it makes.

use std::path::Path;

use super::node::untuned_program;
use crate::backend::native::backend::GENERATOR;
use crate::backend::native::lower::lower;
use crate::device::Isa;
use crate::digest::Encoder;
use crate::graph::partition;
use crate::onnx::{LoadOptions, load};

/// Labels and locks of one generator must not be read as those of another one: whoever changes
/// what is made of equal candidates changes `GENERATOR`, and then this line. Templates have a
/// digest of their own in the version; they are left out here.
const PINNED: (u32, &str) = (4, "10116bfe3397");

#[test]
fn other_programs_have_another_generator_number() {
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fashion/models/fashion.onnx");
    let shape = ("image".to_owned(), vec![1, 1, 28, 28]);
    let options = LoadOptions {
        input_shapes: [shape].into(),
    };
    let loaded = load(&fixture, &options).unwrap();
    let partition = partition(&loaded.graph);
    let operations = lower(&loaded.graph, &partition).unwrap();
    let mut encoder = Encoder::new("test of the generator");
    for isa in [Isa::Portable, Isa::X86V2, Isa::X86V3, Isa::X86V4] {
        let n_subgraphs = partition.subgraphs.len();
        let program = untuned_program(isa, &loaded.graph, &operations, n_subgraphs);
        encoder.u64(program.arena_bytes as u64);
        encoder.bytes(&program.weights);
        for step in &program.steps {
            encoder.str(&step.name);
            encoder.str(&format!("{:?}", step.args));
        }
    }
    let actual = (GENERATOR, encoder.finish().short());
    assert_eq!((actual.0, actual.1.as_str()), PINNED);
}
