//! Window attributes, written out.

use std::collections::BTreeMap;

use crate::graph::{Attribute, Graph, Node, Window};

/// Writes out `kernel_shape`, `strides` and `pads` of convolutions and pools, `dilations` and
/// `group` of convolutions, and resolves `auto_pad` and `output_shape` into pads.
///
/// Not every reader of ONNX knows the defaults; the reference executor insists on strides.
pub fn write_out_windows(graph: &mut Graph) {
    for idx in 0..graph.nodes.len() {
        if let Some(attributes) = explicit(graph, &graph.nodes[idx]) {
            graph.nodes[idx].attributes = attributes;
        }
    }
}

fn explicit(graph: &Graph, node: &Node) -> Option<BTreeMap<String, Attribute>> {
    let x = graph.value(node.input(0)?).shape.dims();
    let output = graph.value(node.output(0)?).shape.dims();
    let is_pool = matches!(node.op.as_str(), "MaxPool" | "AveragePool" | "LpPool");
    let kernel = match node.op.as_str() {
        "Conv" | "ConvTranspose" => graph.value(node.input(1)?).shape.dims().get(2..)?.to_vec(),
        _ if is_pool => {
            let kernel = node.ints("kernel_shape")?;
            kernel.iter().map(|&size| size as usize).collect()
        }
        _ => return None,
    };
    let mut window = Window::read(node, &kernel, x.get(2..)?).ok()?;
    if node.op == "ConvTranspose" {
        resolve_transposed(&mut window, node, x, output)?;
    }
    let ints = |values: &[usize]| Attribute::Ints(values.iter().map(|&v| v as i64).collect());
    let begins = window.pads.iter().map(|pad| pad.0);
    let pads = begins.chain(window.pads.iter().map(|pad| pad.1)).collect();
    let mut attributes = node.attributes.clone();
    attributes.remove("auto_pad");
    attributes.remove("output_shape");
    let mut set = |name: &str, value| attributes.insert(name.to_owned(), value);
    set("kernel_shape", ints(&window.kernel));
    set("strides", ints(&window.strides));
    set("pads", Attribute::Ints(pads));
    if !is_pool {
        set("dilations", ints(&window.dilations));
        set("group", Attribute::Int(node.int("group", 1)));
    }
    Some(attributes)
}

/// Finds the pads that give the output its size.
fn resolve_transposed(
    window: &mut Window,
    node: &Node,
    x: &[usize],
    output: &[usize],
) -> Option<()> {
    let mode = node.string("auto_pad", "NOTSET");
    if node.ints("output_shape").is_none() && !mode.starts_with("SAME") {
        return Some(());
    }
    let extra = node.ints("output_padding").unwrap_or_default();
    for i in 0..window.pads.len() {
        let full = (*x.get(2 + i)? as i64 - 1) * window.strides[i] as i64
            + window.extent(i)
            + extra.get(i).copied().unwrap_or(0);
        let total = full - *output.get(2 + i)? as i64;
        if total < 0 {
            return None;
        }
        let (small, large) = (total / 2, total - total / 2);
        window.pads[i] = if mode == "SAME_UPPER" {
            (small, large)
        } else {
            (large, small)
        };
    }
    Some(())
}
