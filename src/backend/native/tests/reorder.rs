//! Copies between layouts.

use super::kernels::isas;
use super::qbench::QBench;
use super::qconv::SHARES;
use crate::backend::native::layout::{Border, Geometry, Layout};

const LAYOUTS: [Layout; 5] = [
    Layout::Nchw,
    Layout::Nhwc,
    Layout::Blocked(8),
    Layout::Blocked(16),
    Layout::Blocked(32),
];

/// Channels below, at and beyond blocks and vectors; rows below, at and beyond vectors.
const DIMS: [[usize; 4]; 7] = [
    [1, 3, 9, 21],
    [2, 24, 5, 16],
    [1, 16, 3, 7],
    [1, 33, 2, 40],
    [3, 20, 1, 1],
    [1, 8, 4, 67],
    [1, 5, 6, 70],
];

#[test]
fn every_element_is_copied_to_its_place_in_the_other_layout() {
    let some = Border {
        top: 1,
        left: 3,
        bottom: 2,
        right: 1,
        fill: 0,
    };
    let none = Border::default();
    for isa in isas() {
        for (case, dims) in DIMS.into_iter().enumerate() {
            let mut bench = QBench::new(isa);
            for (i, from) in LAYOUTS.into_iter().enumerate() {
                for (j, to) in LAYOUTS.into_iter().enumerate() {
                    let odd = (case + i + j) % 3;
                    bench.share = SHARES[(case + j) % SHARES.len()];
                    let x = Geometry::new(dims, from, if odd == 1 { some } else { none });
                    let y = Geometry::new(dims, to, if odd == 2 { some } else { none });
                    bench.reorder(x, y, [1, 2, 4, 8][(case + 3 * i + j) % 4]);
                }
            }
            bench.check();
        }
    }
}

#[test]
fn single_pixels_are_copied_to_and_from_flat_values() {
    for isa in isas() {
        let mut bench = QBench::new(isa);
        for element in [1, 4] {
            let dims = [3, 37, 1, 1];
            let flat = Geometry::new(dims, Layout::Flat, Border::default());
            for layout in LAYOUTS {
                let other = Geometry::new(dims, layout, Border::default());
                bench.reorder(flat, other, element);
                bench.reorder(other, flat, element);
            }
        }
        bench.check();
    }
}
