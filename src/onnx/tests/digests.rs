//! Digests: what changes them and what does not.

use std::collections::BTreeSet;

use super::load_fashion;
use super::net::Net;
use crate::graph::{Attribute, Digests, Graph, canonicalize, partition};
use crate::onnx::{LoadOptions, encode, load::decode};

fn digests(graph: &Graph) -> Vec<Digests> {
    let subgraphs = partition(graph).subgraphs;
    subgraphs
        .iter()
        .map(|subgraph| subgraph.digests(graph))
        .collect()
}

#[test]
fn the_encoding_of_the_fixture_is_pinned() {
    let graph = load_fashion().graph;
    let whole = graph.digests();
    assert_eq!(
        whole.structure.to_string(),
        "7fcd32bb0127bd86ae6453578f8bdb86c74b8221367ae048259e33835180e3a7"
    );
    assert_eq!(
        whole.content.to_string(),
        "6d08a4babb270a1b6bc692d1b77329f32a66c17323bcc6cdbb20c846a35a4fd3"
    );
    let first = digests(&graph)[0];
    assert_eq!(
        first.structure.to_string(),
        "eedd230956ec1015c6b09b0b195805c7ff95f34619541e96f2b3313787a9a9bf"
    );
    assert_eq!(
        first.content.to_string(),
        "8cdd7836775002ec915fa3212877977739fd1f88c0883a5ed69d3317fa1fa037"
    );
}

#[test]
fn equal_blocks_are_one_structure_with_different_contents() {
    let graph = load_fashion().graph;
    let all = digests(&graph);
    let structures: BTreeSet<_> = all.iter().map(|d| d.structure).collect();
    let contents: BTreeSet<_> = all.iter().map(|d| d.content).collect();
    assert_eq!((all.len(), structures.len(), contents.len()), (19, 15, 19));
    // Two inverted bottlenecks, and two convolutions of one shape in other blocks.
    assert_eq!(all[2].structure, all[5].structure);
    assert_eq!(all[7].structure, all[10].structure);
    assert_eq!(all[8].structure, all[11].structure);
    assert_eq!(all[9].structure, all[12].structure);
}

#[test]
fn names_and_node_order_change_nothing() {
    let model = load_fashion();
    let mut shuffled = model.source.clone();
    for (idx, value) in shuffled.values.iter_mut().enumerate() {
        value.name = format!("renamed_{}", idx * 7919 % 1009);
    }
    for node in &mut shuffled.nodes {
        node.name = format!("node_{}", node.op);
    }
    shuffled.nodes.reverse();
    let bytes = encode(&shuffled).unwrap();
    let other = decode(&bytes, "x.onnx".as_ref(), &LoadOptions::default()).unwrap();
    assert_eq!(other.graph.digests(), model.graph.digests());
    assert_eq!(digests(&other.graph), digests(&model.graph));
}

#[test]
fn one_attribute_of_one_convolution_changes_its_subgraph_alone() {
    let model = load_fashion();
    let before = digests(&model.graph);
    let mut changed = model.source.clone();
    // A dilation that its padding makes up for: all shapes stay.
    let node = changed
        .nodes
        .iter_mut()
        .filter(|node| node.op == "Conv")
        .nth(2)
        .unwrap();
    node.attributes
        .insert("dilations".to_owned(), Attribute::Ints(vec![2, 2]));
    node.attributes
        .insert("pads".to_owned(), Attribute::Ints(vec![2; 4]));
    let node = changed
        .nodes
        .iter_mut()
        .rfind(|node| node.op == "Conv")
        .unwrap();
    assert_ne!(node.ints("dilations").unwrap(), [2, 2]);
    let after = digests(&canonicalize(changed));
    let differing: Vec<usize> = (0..before.len())
        .filter(|&i| before[i] != after[i])
        .collect();
    assert_eq!(differing.len(), 1);
    assert_ne!(
        before[differing[0]].structure,
        after[differing[0]].structure
    );
}

#[test]
fn other_weights_change_contents_alone() {
    let build = |name: &str| {
        let mut net = Net::new(13, &[1, 4, 6, 5]);
        net.weights(name, &[6, 4, 3, 3])
            .node("c", "Conv", &format!("x {name}"));
        net.node("y", "Relu", "c").output("y");
        net.load().unwrap().graph.digests()
    };
    let (lhs, rhs) = (build("v"), build("w"));
    assert_eq!(lhs.structure, rhs.structure);
    assert_ne!(lhs.content, rhs.content);
}

#[test]
fn constants_that_say_how_to_compute_are_structure() {
    let build = |high: f32, axis: i64| {
        let mut net = Net::new(13, &[1, 4, 6, 5]);
        net.scalar("low", -1.0)
            .scalar("high", high)
            .ints("axes", &[axis]);
        net.node("c", "Clip", "x low high")
            .node("y", "ReduceSum", "c axes")
            .output("y");
        net.load().unwrap().graph.digests().structure
    };
    assert_ne!(build(1.0, 1), build(2.0, 1));
    assert_ne!(build(1.0, 1), build(1.0, 2));
    assert_eq!(build(1.0, 3), build(1.0, -1));
}

#[test]
fn learned_factors_are_content_even_as_single_numbers() {
    let build = |factor: f32| {
        let mut net = Net::new(13, &[1, 4, 6, 5]);
        net.scalar("factor", factor).node("r", "Relu", "x");
        net.node("y", "Mul", "r factor").output("y");
        net.load().unwrap().graph.digests()
    };
    assert_eq!(build(0.5).structure, build(0.7).structure);
    assert_ne!(build(0.5).content, build(0.7).content);
}

#[test]
fn defaults_and_operator_sets_change_nothing() {
    let old = {
        let mut net = Net::new(10, &[1, 4, 6, 5]);
        let bounds = [
            ("min", Attribute::Float(-1.0)),
            ("max", Attribute::Float(2.0)),
        ];
        net.weights("w", &[6, 4, 3, 3]);
        let written = [
            ("group", Attribute::Int(1)),
            ("strides", Attribute::Ints(vec![1, 1])),
            ("pads", Attribute::Ints(vec![0; 4])),
        ];
        net.with("a", "Conv", "x w", &written)
            .with("y", "Clip", "a", &bounds)
            .output("y");
        net.load().unwrap().graph.digests()
    };
    let new = {
        let mut net = Net::new(17, &[1, 4, 6, 5]);
        net.weights("w", &[6, 4, 3, 3])
            .scalar("low", -1.0)
            .scalar("high", 2.0);
        net.node("a", "Conv", "x w")
            .node("y", "Clip", "a low high")
            .output("y");
        net.load().unwrap().graph.digests()
    };
    assert_eq!(old, new);
}

#[test]
fn operands_of_a_sum_may_change_places() {
    let build = |operands: &str| {
        let mut net = Net::new(13, &[1, 4, 6, 5]);
        net.weights("w", &[4, 4, 1, 1])
            .node("r", "Relu", "x")
            .node("c", "Conv", "r w");
        net.node("y", "Add", operands).output("y");
        digests(&net.load().unwrap().graph)
    };
    assert_eq!(build("c r"), build("r c"));
}

#[test]
fn one_value_read_twice_is_not_two_equal_values() {
    let build = |second: bool| {
        let mut net = Net::new(13, &[1, 4, 6, 5]);
        net.weights("w", &[4, 4, 1, 1])
            .node("a", "Conv", "x w")
            .node("b", "Conv", "x w");
        net.node("y", "Add", if second { "a b" } else { "a a" })
            .output("y");
        net.load().unwrap().graph.digests().structure
    };
    assert_ne!(build(true), build(false));
}

#[test]
fn encoding_and_loading_changes_no_digest() {
    let model = load_fashion();
    let bytes = encode(&model.graph).unwrap();
    let again = decode(&bytes, "x.onnx".as_ref(), &LoadOptions::default()).unwrap();
    assert_eq!(again.graph.digests(), model.graph.digests());
    assert_eq!(digests(&again.graph), digests(&model.graph));
    assert_eq!(encode(&again.graph).unwrap(), bytes);
}
