//! The spaces of the native backend, as they are shipped.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::*;

const CONV: &str = include_str!("../../templates/spaces/native/conv.toml");
const DEPTHWISE: &str = include_str!("../../templates/spaces/native/depthwise.toml");
const DENSE: &str = include_str!("../../templates/spaces/native/dense.toml");

fn instantiate(text: &str, facts: &[(&str, i64)]) -> SearchSpace {
    let template = SpaceTemplate::parse("native", text).unwrap();
    let facts = facts
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.into()))
        .collect();
    template.instantiate(&facts).unwrap()
}

fn depthwise(oc: i64, hw: i64, [max_lanes, registers]: [i64; 2]) -> SearchSpace {
    instantiate(
        DEPTHWISE,
        &[
            ("oc", oc),
            ("oh", hw),
            ("ow", hw),
            ("kh", 3),
            ("kw", 3),
            ("stride_h", 1),
            ("stride_w", 1),
            ("margin", 1),
            ("max_lanes", max_lanes),
            ("registers", registers),
        ],
    )
}

fn dense(k: i64, m: i64, [max_lanes, registers]: [i64; 2]) -> SearchSpace {
    instantiate(
        DENSE,
        &[
            ("k", k),
            ("m", m),
            ("max_lanes", max_lanes),
            ("registers", registers),
        ],
    )
}

fn conv([ic, oc, groups, hw, k]: [i64; 5], [max_lanes, registers]: [i64; 2]) -> SearchSpace {
    instantiate(
        CONV,
        &[
            ("ic", ic),
            ("oc", oc),
            ("groups", groups),
            ("oh", hw),
            ("ow", hw),
            ("kh", k),
            ("kw", k),
            ("margin", i64::from(k > 1)),
            ("scaled", 0),
            ("max_lanes", max_lanes),
            ("registers", registers),
        ],
    )
}

const ISAS: [[i64; 2]; 4] = [[16, 32], [8, 16], [4, 16], [4, 32]];

#[test]
fn every_shape_has_choices_and_a_valid_default() {
    let shapes = [
        [3, 16, 1, 112, 3],
        [64, 64, 1, 56, 3],
        [512, 512, 1, 7, 1],
        [128, 128, 32, 56, 3],
        [8, 24, 1, 12, 1],
        [16, 10, 1, 1, 1],
        [1, 1, 1, 1, 1],
        [1, 7, 1, 2, 5],
        [6, 9, 3, 5, 3],
        [40, 120, 1, 14, 1],
    ];
    for isa in ISAS {
        for shape in shapes {
            let space = conv(shape, isa);
            let default = space.default_mapping().unwrap();
            assert_eq!(space.is_valid(&default), Ok(()), "{shape:?}");
            assert!(
                space.enumerate().nth(11).is_some(),
                "{shape:?} on {isa:?} is too small"
            );
        }
        for oc in [1, 8, 24, 96] {
            for hw in [1, 7, 56] {
                let space = depthwise(oc, hw, isa);
                assert!(space.default_mapping().is_some());
                assert!(space.enumerate().nth(11).is_some());
            }
        }
        for (k, m) in [(1, 1), (7, 10), (512, 1000)] {
            let space = dense(k, m, isa);
            assert!(space.default_mapping().is_some());
        }
    }
}

#[test]
fn defaults_are_what_measurements_showed_to_be_good() {
    let check = |space: SearchSpace, expected: [i64; 4]| {
        let default = space.default_mapping().unwrap();
        let actual =
            ["lanes", "oc_vectors", "tile_w", "tile_h"].map(|name| default.int(name).unwrap_or(1));
        assert_eq!(actual, expected, "{default}");
    };
    check(conv([64, 64, 1, 56, 3], [16, 32]), [16, 2, 14, 1]);
    check(conv([512, 512, 1, 7, 1], [16, 32]), [16, 2, 7, 2]);
    check(conv([64, 64, 1, 56, 3], [8, 16]), [8, 2, 6, 1]);
    check(depthwise(96, 112, [16, 32]), [16, 1, 7, 2]);
}

#[test]
fn drawing_from_the_largest_space_needs_no_enumeration() {
    let space = conv([3, 16, 1, 112, 3], [4, 16]);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let valid = (0..500).filter_map(|_| space.sample(&mut rng));
    assert_eq!(valid.filter(|m| space.is_valid(m).is_ok()).count(), 500);
    assert!(!space.is_listed());
}

#[test]
fn parameters_and_constraints_say_what_they_are_for() {
    for text in [CONV, DEPTHWISE, DENSE] {
        let template = SpaceTemplate::parse("native", text).unwrap();
        assert!(template.params().all(|(_, doc)| doc.ends_with('.')));
        assert!(
            template
                .constraints
                .iter()
                .all(|constraint| !constraint.reason.is_empty())
        );
    }
}
