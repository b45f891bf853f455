//! Numbers of half precision: weights that are stored so.

use std::collections::BTreeMap;

use super::kernels::{Bench, dense, isas};
use crate::backend::native::isa;
use crate::backend::native::program::AssembleError;
use crate::backend::native::space::{Spaces, default_mapping};
use crate::backend::native::spec::{Dense, Kind, Operation};
use crate::device::Isa;
use crate::graph::{ValueId, f16_to_f32, f64_to_f16};
use crate::space::Mapping;

fn half(number: f32) -> f32 {
    f16_to_f32(f64_to_f16(number.into()))
}

fn mapping(lanes: usize, oc_vectors: i64, unroll: i64) -> Mapping {
    Mapping::default()
        .with("lanes", lanes as i64)
        .with("oc_vectors", oc_vectors)
        .with("unroll", unroll)
        .with("weights", "f16")
}

#[test]
fn dense_layers_read_weights_of_half_precision() {
    for isa in isas() {
        let mut bench = Bench::new();
        for table in isa::tables(isa) {
            for (shape, r, unroll) in [
                ([1, 37, 10], 1, 4),
                ([3, 64, 48], 1, 1),
                ([1, 1, 1], 1, 2),
                ([2, 17, 4 * table.lanes - 3], 2, 2),
            ] {
                dense(&mut bench, shape, &mapping(table.lanes, r, unroll), half);
            }
        }
        if isa::widest(isa).converts_halves() {
            bench.check(isa);
        } else {
            let refusal = bench.assemble(isa).unwrap_err();
            let AssembleError::Kernel { source, .. } = refusal else {
                panic!("{refusal}");
            };
            assert!(source.to_string().contains("half precision"), "{source}");
        }
    }
}

#[test]
fn weights_are_of_half_precision_untuned_if_nothing_gets_lost() {
    let spaces = Spaces::new(&BTreeMap::new(), 1).unwrap();
    let check = |isa: Isa, k: usize, weight: f32, expected: Option<&str>| {
        let dense = Dense {
            n: 1,
            k,
            m: 128,
            epilogue: Vec::new(),
            weights: vec![weight; k * 128],
            bias: vec![0.1; 128],
            residual: None,
            quantized: None,
        };
        let operation = Operation {
            subgraph: 0,
            name: String::new(),
            kind: Kind::Dense(dense),
            x: ValueId(0),
            y: ValueId(1),
        };
        let mapping = default_mapping(isa, &operation);
        assert_eq!(mapping.word("weights"), expected);
        let space = spaces.of(isa, &operation).unwrap().unwrap();
        assert!(space.is_valid(&mapping).is_ok());
        let other = mapping.with("weights", "f16");
        assert_eq!(space.is_valid(&other).is_ok(), expected.is_some());
    };
    for isa in [Isa::X86V3, Isa::X86V4, Isa::X86V4Vnni] {
        check(isa, 128, 0.5, Some("f16"));
        check(isa, 128, 0.1, Some("f32"));
        check(isa, 64, 0.5, None);
    }
    for isa in [Isa::Portable, Isa::X86V2, Isa::Neon] {
        check(isa, 128, 0.5, None);
    }
}
