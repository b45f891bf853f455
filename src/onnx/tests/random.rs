//! Random models: whatever the wiring, rewriting preserves values and cutting is sound.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::net::{Net, check_values};
use crate::graph::{Attribute, Graph, ValueId, partition};

const CHANNELS: usize = 4;

/// Builds a model from choices: what each node is, and which earlier values it reads.
fn build(choices: &[(u8, prop::sample::Index, prop::sample::Index)]) -> Net {
    let mut net = Net::new(13, &[1, CHANNELS, 5, 6]);
    let c = &[CHANNELS];
    net.weights("w1", &[CHANNELS, CHANNELS, 1, 1])
        .weights("w3", &[CHANNELS, 1, 3, 3]);
    net.weights("per_channel", &[CHANNELS, 1, 1])
        .weights("beta", c)
        .positive("variance", c);
    net.scalar("three", 3.0)
        .scalar("zero", 0.0)
        .scalar("six", 6.0)
        .scalar("one", 1.0);
    // Images, and values of one number a channel.
    let (mut images, mut pixels) = (vec!["x".to_owned()], Vec::<String>::new());
    for (idx, (kind, first, second)) in choices.iter().enumerate() {
        let y = format!("v{idx}");
        let a = images[first.index(images.len())].clone();
        let b = images[second.index(images.len())].clone();
        let same = [
            ("group", Attribute::Int(CHANNELS as i64)),
            ("pads", Attribute::Ints(vec![1; 4])),
        ];
        match kind % 14 {
            0 | 1 => net.node(&y, "Conv", &format!("{a} w1")),
            2 => net.with(&y, "Conv", &format!("{a} w3"), &same),
            3 => net.node(&y, "Relu", &a),
            4 => net.node(&y, "Sigmoid", &a),
            5 => net.node(&y, "Add", &format!("{a} {b}")),
            6 => net.node(&y, "Mul", &format!("{a} {b}")),
            7 => net.node(&y, "Mul", &format!("per_channel {a}")),
            8 => net.node(&y, "Add", &format!("{a} per_channel")),
            9 => net.node(&y, "Clip", &format!("{a} zero six")),
            10 => net.node(&y, "Add", &format!("{a} three")),
            11 => net.node(&y, "Div", &format!("{a} six")),
            12 => {
                let inputs = format!("{a} variance beta beta variance");
                net.node(&y, "BatchNormalization", &inputs)
            }
            _ if pixels.is_empty() || first.index(3) == 0 => {
                net.node(&y, "GlobalAveragePool", &a);
                let gate = format!("s{idx}");
                net.node(&gate, "Sigmoid", &y);
                pixels.push(gate);
                continue;
            }
            _ => {
                let s = &pixels[second.index(pixels.len())];
                net.node(&y, "Mul", &format!("{a} {s}"))
            }
        };
        images.push(y);
    }
    let last = images.last().cloned().unwrap_or_default();
    net.node("y", "Identity", &last).output("y");
    let other = &images[images.len() / 2];
    if *other != last && other != "x" {
        net.output(other);
    }
    net
}

/// Every node is in one subgraph, and each subgraph reads only what earlier ones produce.
fn check_partition(graph: &Graph) {
    let subgraphs = partition(graph).subgraphs;
    let mut made: BTreeSet<ValueId> = graph.inputs.iter().copied().collect();
    let mut n_nodes = 0;
    for subgraph in &subgraphs {
        assert!(subgraph.inputs.iter().all(|id| made.contains(id)));
        let mut inside = made.clone();
        for id in subgraph.nodes() {
            n_nodes += 1;
            for input in graph.node(id).inputs.iter().flatten() {
                assert!(inside.contains(input) || graph.constant(*input).is_some());
            }
            let outputs = graph.node(id).outputs.iter().flatten();
            assert!(outputs.clone().all(|id| !inside.contains(id)));
            inside.extend(outputs);
        }
        made.extend(&subgraph.outputs);
    }
    assert_eq!(n_nodes, graph.nodes.len());
    assert!(graph.outputs.iter().all(|id| made.contains(id)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn rewriting_preserves_values_and_cutting_is_sound(
        choices in prop::collection::vec(any::<(u8, prop::sample::Index, prop::sample::Index)>(), 1..24),
    ) {
        let model = build(&choices).load().unwrap();
        check_partition(&model.graph);
        check_partition(&model.source);
        check_values(&model);
    }

    #[test]
    fn the_order_of_nodes_in_the_file_changes_nothing(
        choices in prop::collection::vec(any::<(u8, prop::sample::Index, prop::sample::Index)>(), 1..24),
    ) {
        let mut net = build(&choices);
        let model = net.load().unwrap();
        net.graph.nodes.reverse();
        let reversed = net.load().unwrap();
        prop_assert_eq!(model.graph.digests(), reversed.graph.digests());
        let digests = |graph: &Graph| -> Vec<_> {
            let subgraphs = partition(graph).subgraphs;
            subgraphs.iter().map(|subgraph| subgraph.digests(graph)).collect()
        };
        prop_assert_eq!(digests(&model.graph), digests(&reversed.graph));
    }
}
