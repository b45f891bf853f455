//! Elements picked by position, whatever their type.

use crate::graph::{Tensor, TensorData};

/// Applies a generic expression to the elements of any type.
macro_rules! each_type {
    ($data:expr, $d:ident => $result:expr) => {
        match $data {
            TensorData::F32($d) => TensorData::F32($result),
            TensorData::F16($d) => TensorData::F16($result),
            TensorData::F64($d) => TensorData::F64($result),
            TensorData::I8($d) => TensorData::I8($result),
            TensorData::U8($d) => TensorData::U8($result),
            TensorData::I16($d) => TensorData::I16($result),
            TensorData::U16($d) => TensorData::U16($result),
            TensorData::I32($d) => TensorData::I32($result),
            TensorData::U32($d) => TensorData::U32($result),
            TensorData::I64($d) => TensorData::I64($result),
            TensorData::U64($d) => TensorData::U64($result),
            TensorData::Bool($d) => TensorData::Bool($result),
        }
    };
}
pub(super) use each_type;

/// Picks elements; `None` if one does not exist.
pub(super) fn take(data: &TensorData, positions: &[usize]) -> Option<TensorData> {
    if positions.iter().any(|&position| position >= data.len()) {
        return None;
    }
    Some(each_type!(data, d => positions.iter().map(|&position| d[position]).collect()))
}

/// Joins the elements of tensors of one type, one tensor after the other.
pub(super) fn join(tensors: &[&Tensor]) -> Option<TensorData> {
    let (first, rest) = tensors.split_first()?;
    let mut all = first.data().clone();
    for tensor in rest {
        macro_rules! extend {
            ($($kind:ident),*) => {
                match (&mut all, tensor.data()) {
                    $((TensorData::$kind(all), TensorData::$kind(next)) => all.extend(next),)*
                    _ => return None,
                }
            };
        }
        extend!(F32, F16, F64, I8, U8, I16, U16, I32, U32, I64, U64, Bool);
    }
    Some(all)
}

/// Returns how far apart neighbours along each axis are.
pub(super) fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for i in (1..dims.len()).rev() {
        strides[i - 1] = strides[i] * dims[i];
    }
    strides
}

/// Calls `visit` with every index of a shape, in row-major order.
pub(super) fn each_index(dims: &[usize], mut visit: impl FnMut(&[usize])) {
    if dims.contains(&0) {
        return;
    }
    let mut index = vec![0; dims.len()];
    loop {
        visit(&index);
        let mut axis = dims.len();
        loop {
            let Some(next) = axis.checked_sub(1) else {
                return;
            };
            axis = next;
            index[axis] += 1;
            if index[axis] < dims[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}

/// Returns for each element of a shape the position in `from` that broadcasting reads.
pub(super) fn broadcast(from: &[usize], to: &[usize]) -> Vec<usize> {
    let steps = strides(from);
    let skipped = to.len().saturating_sub(from.len());
    let mut positions = Vec::new();
    each_index(to, |index| {
        let own = index[skipped..].iter().zip(from).zip(&steps);
        positions.push(
            own.map(|((&i, &d), &s)| if d == 1 { 0 } else { i * s })
                .sum(),
        );
    });
    positions
}

/// Returns for each element of a shape the position that a function of its index gives.
pub(super) fn positions(
    dims: &[usize],
    mut of: impl FnMut(&[usize]) -> Option<usize>,
) -> Option<Vec<usize>> {
    let mut list = Vec::new();
    let mut is_complete = true;
    each_index(dims, |index| match of(index) {
        Some(position) => list.push(position),
        None => is_complete = false,
    });
    is_complete.then_some(list)
}
