//! The mapping of fully connected layers, and whether their weights may be of half precision.

use super::isa;
use super::kernels::are_halves;
use super::spec::Dense;
use crate::device::Isa;
use crate::space::Mapping;

/// Fewest weights of half precision that are worth a try: those of fewer stay in the first caches.
const MIN_HALVES: usize = 1 << 14;

/// Returns whether the weights of a layer may be of half precision.
pub(super) fn may_halve(isa: Isa, dense: &Dense) -> bool {
    let is_float = dense.quantized.is_none();
    is_float && isa::widest(isa).converts_halves() && dense.k * dense.m >= MIN_HALVES
}

/// Returns the mapping that a layer has untuned.
pub(super) fn default_dense(isa: Isa, dense: &Dense) -> Mapping {
    let table = isa::widest(isa);
    let vectors = dense.m.div_ceil(table.lanes);
    let limit = if table.registers > 16 { 16 } else { 8 };
    let r = (1..=limit)
        .rev()
        .find(|r| vectors.is_multiple_of(*r))
        .unwrap_or(1);
    let mut unroll = (8 / r).max(1);
    while unroll > 1 && dense.k < unroll {
        unroll /= 2;
    }
    let mapping = Mapping::default()
        .with("lanes", table.lanes as i64)
        .with("oc_vectors", r as i64)
        .with("unroll", unroll as i64);
    match (may_halve(isa, dense), are_halves(&dense.weights)) {
        (false, _) => mapping,
        // Nothing gets lost.
        (true, true) => mapping.with("weights", "f16"),
        (true, false) => mapping.with("weights", "f32"),
    }
}
