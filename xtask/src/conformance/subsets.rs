//! Which inputs to try as constants, and in which order.

/// Most inputs that are tried in all combinations.
const MAX_INPUTS: usize = 8;

/// Returns the sets of inputs that contain all of `bound` and more, small ones first, and those of
/// later inputs first: data comes before what says what to do with it. O(2ⁿ) for n inputs, and
/// none beyond [`MAX_INPUTS`].
pub(super) fn larger(n_inputs: usize, bound: &[usize]) -> Vec<Vec<usize>> {
    if n_inputs > MAX_INPUTS {
        return Vec::new();
    }
    let given: u32 = bound.iter().map(|idx| 1 << idx).sum();
    let mut sets: Vec<u32> = (0..1 << n_inputs)
        .filter(|set| set & given == given && *set != given)
        .collect();
    sets.sort_by_key(|set| (set.count_ones(), std::cmp::Reverse(*set)));
    let members = |set: u32| (0..n_inputs).filter(move |idx| set & (1 << idx) != 0);
    sets.into_iter().map(|set| members(set).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_sets_and_late_inputs_come_first() {
        let expected: [&[usize]; 7] = [&[2], &[1], &[0], &[1, 2], &[0, 2], &[0, 1], &[0, 1, 2]];
        assert_eq!(larger(3, &[]), expected);
        let expected: [&[usize]; 3] = [&[1, 2], &[0, 1], &[0, 1, 2]];
        assert_eq!(larger(3, &[1]), expected);
        assert!(
            larger(1, &[0]).is_empty() && larger(0, &[]).is_empty() && larger(9, &[]).is_empty()
        );
    }
}
