//! Vectors of as many lanes as there are output channels to fill them.

use std::collections::BTreeMap;

use super::kernels::{Bench, base, isas};
use crate::backend::native::space::{Spaces, default_mapping};
use crate::backend::native::spec::{Conv, Kind, Operation};
use crate::device::Isa;
use crate::graph::ValueId;
use crate::space::Mapping;

fn operation(conv: &Conv) -> Operation {
    let kind = if conv.is_depthwise() {
        Kind::Depthwise(conv.clone())
    } else {
        Kind::Conv(conv.clone())
    };
    Operation {
        subgraph: 0,
        name: "test".to_owned(),
        kind,
        x: ValueId(0),
        y: ValueId(1),
    }
}

fn untuned(isa: Isa, conv: &Conv) -> Mapping {
    default_mapping(isa, &operation(conv))
}

#[test]
fn untuned_convolutions_have_vectors_that_their_outputs_fill() {
    let spaces = Spaces::new(&BTreeMap::new(), 1).unwrap();
    for (oc, expected) in [
        (3, 8),
        (8, 8),
        (9, 16),
        (16, 16),
        (24, 8),
        (40, 16),
        (88, 16),
    ] {
        for columns in [14, 30] {
            let conv = base([32, 7, columns], oc, 1, 1, 0);
            for (isa, lanes) in [(Isa::X86V4, expected), (Isa::X86V3, 8), (Isa::X86V2, 4)] {
                let mapping = untuned(isa, &conv);
                assert_eq!(mapping.int("lanes"), Some(lanes), "{isa} {oc}");
                let space = spaces.of(isa, &operation(&conv)).unwrap().unwrap();
                assert_eq!(space.is_valid(&mapping), Ok(()), "{isa} {oc} {mapping}");
            }
        }
    }
    // Groups are merged until vectors of 16 are full.
    let grouped = Conv {
        groups: 8,
        ..base([64, 7, 7], 64, 1, 1, 0)
    };
    assert_eq!(untuned(Isa::X86V4, &grouped).int("lanes"), Some(16));
}

/// What vectors of 8 leave of blocks of 16 channels is read by what comes next, if that has vectors
/// of 16, and has no part in its results.
#[test]
fn lanes_that_nobody_fills_change_nothing_behind_them() {
    for isa in isas() {
        let mut bench = Bench::new();
        for oc in [3, 8, 24] {
            let x = bench.input([1, 19, 7, 9]);
            let convs = [
                base([19, 7, 9], oc, 1, 1, 0),
                Conv {
                    groups: oc,
                    ..base([oc, 7, 9], oc, 3, 1, 1)
                },
                base([oc, 7, 9], 40, 3, 1, 1),
                base([40, 7, 9], oc, 3, 2, 1),
            ];
            convs.into_iter().fold(x, |x, conv| {
                let mapping = untuned(isa, &conv);
                let conv = bench.weighted(conv);
                bench.conv_of(x, conv, &mapping)
            });
        }
        bench.check(isa);
    }
}
