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
fn any_affine(graph: &Graph) -> BTreeMap<ValueId, Affine> {
    let affine = Affine::of(Range {
        min: -3.0,
        max: 5.0,
    });
    let values = (0..graph.values.len()).map(ValueId);
    values.map(|id| (id, affine)).collect()
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
    let same = quantize(&graph, &sites, &BTreeSet::new(), &BTreeMap::new()).unwrap();
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
        let variant = quantize(&graph, &sites, &integer, &any_affine(&graph)).unwrap();
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
fn a_value_whose_range_is_not_known_is_named() {
    let graph = fixture();
    let sites = sites(&graph, &partition(&graph));
    let error = quantize(&graph, &sites, &[0].into(), &BTreeMap::new()).unwrap_err();
    assert_eq!(error, QuantizeError::NoRange("image".to_owned()));
}

#[test]
fn a_change_touches_what_comes_after_it_only() {
    let graph = fixture();
    let cut = partition(&graph);
    let sites = sites(&graph, &cut);
    let last = sites.len() - 1;
    let variant = quantize(&graph, &sites, &[last].into(), &any_affine(&graph)).unwrap();
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
    let affine = any_affine(&graph);
    let whole = quantize(&graph, &sites, &integer_sites(&sites), &affine).unwrap();
    let whole = canonicalize(whole);
    let digests = |graph: &Graph| -> BTreeSet<crate::digest::Digest> {
        let cut = partition(graph);
        let each = cut.subgraphs.iter().map(|s| s.digests(graph).structure);
        each.collect()
    };
    let known = digests(&whole);
    for (idx, subgraph) in cut.subgraphs.iter().enumerate() {
        let is_last = subgraph.outputs.iter().any(|id| graph.outputs.contains(id));
        let form = Part {
            precision: crate::space::Precision::Int8,
            integer_inputs: subgraph.inputs.clone(),
            integer_outputs: if is_last {
                Vec::new()
            } else {
                subgraph.outputs.clone()
            },
        };
        let alone = part(&graph, subgraph, &sites[idx], &form, &affine).unwrap();
        let missing = digests(&alone).difference(&known).count();
        assert_eq!(missing, 0, "site {idx}: {}", subgraph.describe(&graph));
    }
}
