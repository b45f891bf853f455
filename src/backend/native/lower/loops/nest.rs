//! Extents and strides of loop nests.

/// Returns the strides of a dense row-major value, in elements.
pub(super) fn dense(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis];
    }
    strides
}

/// Returns the strides by which a dense value of extents `from` is walked along `to`, to which it
/// is broadcast: 0 along axes that it lacks or has once.
pub(super) fn broadcast(from: &[usize], to: &[usize]) -> Vec<usize> {
    let missing = to.len().saturating_sub(from.len());
    let own = dense(from);
    (0..to.len())
        .map(|axis| match axis.checked_sub(missing) {
            Some(axis) if from[axis] != 1 => own[axis],
            _ => 0,
        })
        .collect()
}

/// Merges neighbouring axes that every operand walks as one, and drops axes of extent 1.
///
/// `strides[i]` are those of operand `i`. At least one axis remains.
pub(super) fn merge(dims: &[usize], strides: &[Vec<usize>]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let mut merged: Vec<usize> = Vec::new();
    let mut walked: Vec<Vec<usize>> = vec![Vec::new(); strides.len()];
    for (axis, &extent) in dims.iter().enumerate() {
        if extent == 1 {
            continue;
        }
        let joins = !merged.is_empty()
            && walked
                .iter()
                .zip(strides)
                .all(|(walked, own)| walked.last() == Some(&own[axis].wrapping_mul(extent)));
        if joins {
            if let Some(last) = merged.last_mut() {
                *last *= extent;
            }
            for (walked, own) in walked.iter_mut().zip(strides) {
                if let Some(last) = walked.last_mut() {
                    *last = own[axis];
                }
            }
        } else {
            merged.push(extent);
            for (walked, own) in walked.iter_mut().zip(strides) {
                walked.push(own[axis]);
            }
        }
    }
    if merged.is_empty() {
        merged.push(1);
        for strides in &mut walked {
            strides.push(0);
        }
    }
    (merged, walked)
}

/// Returns the index expression of a place in loops over `i0`, `i1`, ….
pub(super) fn place(strides: &[usize]) -> String {
    let terms: Vec<String> = strides
        .iter()
        .enumerate()
        .filter(|(_, stride)| **stride > 0)
        .map(|(axis, stride)| match stride {
            1 => format!("i{axis}"),
            _ => format!("i{axis} * {stride}"),
        })
        .collect();
    if terms.is_empty() {
        "0".to_owned()
    } else {
        terms.join(" + ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_merge_where_all_operands_walk_them_as_one() {
        let dims = [2, 3, 1, 4, 5];
        let whole = dense(&dims);
        assert_eq!(
            merge(&dims, std::slice::from_ref(&whole)),
            (vec![120], vec![vec![1]])
        );
        let row = broadcast(&[4, 5], &dims);
        assert_eq!(row, [0, 0, 0, 5, 1]);
        let (extents, strides) = merge(&dims, &[whole, row]);
        assert_eq!(extents, [6, 20]);
        assert_eq!(strides, [vec![20, 1], vec![0, 1]]);
        assert_eq!(merge(&[1, 1], &[vec![1, 1]]), (vec![1], vec![vec![0]]));
    }
}
