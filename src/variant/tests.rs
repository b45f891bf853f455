//! Variants of real models.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::*;
use crate::graph::{Graph, Subgraph, ValueId, canonicalize, partition};
use crate::onnx::{LoadOptions, load};

/// Loads the model of the fixture.
fn fixture() -> Graph {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fashion/models/fashion.onnx");
    let options = LoadOptions {
        input_shapes: [("image".to_owned(), vec![1, 1, 28, 28])].into(),
    };
    load(&path, &options).unwrap().graph
}

/// Rounds every value over one range.
fn any_roundings(graph: &Graph) -> Roundings {
    let affine = Affine::of(Range {
        min: -3.0,
        max: 5.0,
    });
    let values = (0..graph.values.len()).map(ValueId);
    Roundings {
        affine: values.map(|id| (id, affine)).collect(),
        equal: BTreeMap::new(),
    }
}

/// Returns the sites that can be computed on integers.
fn integer_sites(sites: &[Site]) -> BTreeSet<usize> {
    let can = |idx: &usize| !sites[*idx].integers.is_empty();
    (0..sites.len()).filter(can).collect()
}

#[test]
fn a_variant_of_nothing_is_the_model() {
    let graph = fixture();
    let sites = sites(&graph, &partition(&graph));
    let same = quantize(&graph, &sites, &BTreeSet::new(), &Roundings::default()).unwrap();
    assert_eq!(same, graph);
    assert_eq!(
        untouched(&graph, &same).len(),
        graph.inputs.len() + graph.nodes.len()
    );
}

#[test]
fn every_node_of_a_rounded_model_is_in_one_subgraph() {
    let graph = fixture();
    let sites = sites(&graph, &partition(&graph));
    let all = integer_sites(&sites);
    assert_eq!(all.len(), sites.len());
    // All sites, every second one, and each alone.
    let halves: BTreeSet<usize> = all.iter().copied().step_by(2).collect();
    let each = all.iter().map(|&idx| BTreeSet::from([idx]));
    for integer in [all.clone(), halves].into_iter().chain(each) {
        let variant = quantize(&graph, &sites, &integer, &any_roundings(&graph)).unwrap();
        let variant = canonicalize(variant);
        let cut = partition(&variant);
        let nodes = cut.subgraphs.iter().flat_map(Subgraph::nodes);
        let mut nodes: Vec<usize> = nodes.map(|id| id.0).collect();
        nodes.sort_unstable();
        assert_eq!(
            nodes,
            (0..variant.nodes.len()).collect::<Vec<_>>(),
            "{integer:?}"
        );
    }
}

#[test]
fn what_a_layer_adds_to_its_products_may_be_numbers() {
    let graph = fixture();
    let cut = partition(&graph);
    let sites = sites(&graph, &cut);
    let adds = cut
        .subgraphs
        .iter()
        .position(|s| s.inputs.len() == 2)
        .unwrap();
    assert_eq!(
        sites[adds].integers,
        [graph.node(sites[adds].anchor).input(0).unwrap()]
    );
}

#[test]
fn channels_are_made_alike_for_those_who_multiply_them_only() {
    let graph = fixture();
    let sites = sites(&graph, &partition(&graph));
    let last = sites.len() - 1;
    let layer = sites[last].layer.unwrap();
    let n = graph.value(layer.x).shape.dims()[1];
    let mut roundings = any_roundings(&graph);
    let factors: Vec<f32> = (0..n).map(|idx| 1.0 + idx as f32).collect();
    let affine = roundings.affine[&layer.x];
    roundings.equal.insert(layer.x, Equal { factors, affine });
    let variant = quantize(&graph, &sites, &[last].into(), &roundings).unwrap();
    // Only the product reads what is rounded, and its weights are multiplied by the factors.
    let name = &graph.value(layer.x).name;
    let anchor = variant.nodes.iter().find(|node| node.op == "Gemm").unwrap();
    let x = variant.value(anchor.input(0).unwrap());
    assert_eq!(x.name, format!("{name}/alike/rounded"));
    let scales = variant
        .nodes
        .iter()
        .find(|node| node.output(0) == anchor.input(1))
        .unwrap();
    let scales = variant
        .constant(scales.input(1).unwrap())
        .unwrap()
        .as_f32()
        .unwrap();
    let weights = graph.constant(layer.weights).unwrap();
    let (dims, data) = (weights.shape().dims(), weights.as_f32().unwrap());
    for (output, scale) in scales.iter().enumerate() {
        let each = (0..n).map(|channel| {
            let at = if layer.axis == 0 {
                output * dims[1] + channel
            } else {
                channel * dims[1] + output
            };
            data[at].abs() * (1.0 + channel as f32)
        });
        let largest = each.fold(0f32, f32::max);
        assert!(
            (scale - largest / 127.0).abs() <= 1e-6 * largest,
            "{output}: {scale}"
        );
    }
}

#[test]
fn a_value_whose_range_is_not_known_is_named() {
    let graph = fixture();
    let sites = sites(&graph, &partition(&graph));
    let error = quantize(&graph, &sites, &[0].into(), &Roundings::default()).unwrap_err();
    assert_eq!(error, QuantizeError::NoRange("image".to_owned()));
}

#[test]
fn a_change_touches_what_comes_after_it_only() {
    let graph = fixture();
    let cut = partition(&graph);
    let sites = sites(&graph, &cut);
    let last = sites.len() - 1;
    let variant = quantize(&graph, &sites, &[last].into(), &any_roundings(&graph)).unwrap();
    let known = untouched(&graph, &variant);
    let names: BTreeSet<&str> = known
        .iter()
        .map(|id| variant.value(*id).name.as_str())
        .collect();
    let output = graph.value(graph.outputs[0]).name.as_str();
    assert!(!names.contains(output));
    assert_eq!(known.len(), graph.inputs.len() + graph.nodes.len() - 1);
}

#[test]
fn a_part_has_the_structure_that_it_has_in_the_whole() {
    let graph = fixture();
    let cut = partition(&graph);
    let sites = sites(&graph, &cut);
    let roundings = any_roundings(&graph);
    let whole = quantize(&graph, &sites, &integer_sites(&sites), &roundings).unwrap();
    let whole = canonicalize(whole);
    let digests = |graph: &Graph| -> BTreeSet<crate::digest::Digest> {
        let cut = partition(graph);
        let each = cut.subgraphs.iter().map(|s| s.digests(graph).structure);
        each.collect()
    };
    let known = digests(&whole);
    let read = read_values(&sites);
    for (idx, subgraph) in cut.subgraphs.iter().enumerate() {
        let is_rounded = |id: &&ValueId| read.contains(id);
        let form = Part {
            precision: crate::space::Precision::Int8,
            integer_inputs: subgraph.inputs.iter().filter(is_rounded).copied().collect(),
            integer_outputs: subgraph
                .outputs
                .iter()
                .filter(is_rounded)
                .copied()
                .collect(),
        };
        let alone = part(&graph, subgraph, &sites[idx], &form, &roundings.affine).unwrap();
        let missing = digests(&alone).difference(&known).count();
        assert_eq!(missing, 0, "site {idx}: {}", subgraph.describe(&graph));
    }
}
