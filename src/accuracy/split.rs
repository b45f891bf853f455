//! Samples for fitting and samples for checking.

use crate::digest::Digest;

/// Of so many samples one is for checking.
const EVERY: usize = 4;

/// Splits samples into those that variants are fitted to and those that they are checked on, three
/// to one; returns their indices, in an order that depends on nothing but their content.
///
/// Samples of equal content are on the same side, and so none is on both.
pub fn split(digests: &[Digest]) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..digests.len()).collect();
    order.sort_by_key(|&idx| digests[idx]);
    let (mut fit, mut check) = (Vec::new(), Vec::new());
    let mut n_distinct = 0;
    for (position, &idx) in order.iter().enumerate() {
        let is_new = position == 0 || digests[order[position - 1]] != digests[idx];
        n_distinct += usize::from(is_new);
        if n_distinct % EVERY == 0 {
            check.push(idx);
        } else {
            fit.push(idx);
        }
    }
    (fit, check)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn digests(contents: &[u8]) -> Vec<Digest> {
        let digest = |content: &u8| Digest::of_bytes("metainfer test v1", &[*content]);
        contents.iter().map(digest).collect()
    }

    proptest! {
        #[test]
        fn no_content_is_on_both_sides(contents in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (fit, check) = split(&digests(&contents));
            prop_assert_eq!(fit.len() + check.len(), contents.len());
            for idx in &check {
                prop_assert!(fit.iter().all(|other| contents[*other] != contents[*idx]));
            }
        }

        #[test]
        fn the_order_of_the_samples_does_not_matter(
            contents in Just((0..100u8).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let (_, check) = split(&digests(&contents));
            let (_, sorted) = split(&digests(&(0..100).collect::<Vec<_>>()));
            let check: Vec<usize> = check.iter().map(|&idx| contents[idx].into()).collect();
            prop_assert_eq!(check, sorted);
        }
    }

    #[test]
    fn a_quarter_is_for_checking() {
        let (fit, check) = split(&digests(&(0..=255).collect::<Vec<_>>()));
        assert_eq!((fit.len(), check.len()), (192, 64));
    }
}
