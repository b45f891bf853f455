//! Where the elements of matrices lie that are multiplied.

use super::nest;
use crate::backend::native::spec::Matrix;

/// A batched product of matrices.
#[derive(Debug, Clone)]
pub(super) struct Product {
    /// Rows, inner extent and columns.
    pub(super) extents: [usize; 3],
    /// Extents of the loops over matrices.
    pub(super) batch: Vec<usize>,
    pub(super) lhs: Matrix,
    pub(super) rhs: Matrix,
    pub(super) result: Matrix,
}

impl Product {
    /// Returns the product that `MatMul` makes of dense operands of these extents: vectors are rows
    /// on the left and columns on the right, the rest broadcasts. `None` if they do not go together.
    pub(super) fn of_matmul(lhs: &[usize], rhs: &[usize]) -> Option<Self> {
        let (lhs_batch, [m, k]) = split(lhs, true)?;
        let (rhs_batch, [inner, n]) = split(rhs, false)?;
        let rank = lhs_batch.len().max(rhs_batch.len());
        let extent = |dims: &[usize], axis: usize| {
            (axis + dims.len())
                .checked_sub(rank)
                .map_or(1, |axis| dims[axis])
        };
        let mut dims: Vec<usize> = Vec::new();
        for axis in 0..rank {
            dims.push(match (extent(lhs_batch, axis), extent(rhs_batch, axis)) {
                (a, b) if a == b || b == 1 => a,
                (1, b) => b,
                _ => return None,
            });
        }
        if k != inner {
            return None;
        }
        let scaled = |dims: Vec<usize>, by: usize, row: usize| {
            let strides = dims.into_iter().map(|stride| stride * by);
            strides.chain([row]).collect::<Vec<_>>()
        };
        let strides = [
            scaled(nest::broadcast(lhs_batch, &dims), m * k, k),
            scaled(nest::broadcast(rhs_batch, &dims), k * n, 0),
            scaled(nest::dense(&dims), m * n, n),
        ];
        dims.push(m);
        let (mut batch, mut strides) = nest::merge(&dims, &strides);
        // Matrices that share their right operand are the rows of one.
        let mut m = 1;
        let mut rows = [0; 3];
        if strides[1].last() == Some(&0) {
            m = batch.pop().unwrap_or(1);
            for (row, strides) in rows.iter_mut().zip(&mut strides) {
                *row = strides.pop().unwrap_or(0);
            }
        }
        let mut strides = strides.into_iter();
        let mut matrix = |row, column| Matrix {
            row,
            column,
            batch: strides.next().unwrap_or_default(),
        };
        Some(Self {
            extents: [m, k, n],
            lhs: matrix(rows[0], 1),
            rhs: matrix(n, 1),
            result: matrix(rows[2], 1),
            batch,
        })
    }

    /// Returns the product that `Gemm` makes of two matrices.
    pub(super) fn of_gemm(lhs: &[usize], rhs: &[usize], transposed: [bool; 2]) -> Option<Self> {
        let matrix = |dims: &[usize], transposed: bool| {
            let &[rows, columns] = dims else { return None };
            let (row, column) = if transposed {
                (1, columns)
            } else {
                (columns, 1)
            };
            let extents = if transposed {
                [columns, rows]
            } else {
                [rows, columns]
            };
            let batch = Vec::new();
            Some((extents, Matrix { row, column, batch }))
        };
        let ([m, k], lhs) = matrix(lhs, transposed[0])?;
        let ([inner, n], rhs) = matrix(rhs, transposed[1])?;
        let (_, result) = matrix(&[m, n], false)?;
        (k == inner).then_some(Self {
            extents: [m, k, n],
            batch: Vec::new(),
            lhs,
            rhs,
            result,
        })
    }

    /// Returns how an operand of these extents is read when it is broadcast to the result, whose
    /// loops are not merged.
    pub(super) fn addend(&self, dims: &[usize]) -> Matrix {
        let [m, _, n] = self.extents;
        let strides = nest::broadcast(dims, &[m, n]);
        Matrix {
            row: strides[0],
            column: strides[1],
            batch: vec![0; self.batch.len()],
        }
    }
}

/// Splits extents into those of the loops and those of the matrix.
fn split(dims: &[usize], is_left: bool) -> Option<(&[usize], [usize; 2])> {
    Some(match dims {
        &[n] if is_left => (&[], [1, n]),
        &[n] => (&[], [n, 1]),
        [batch @ .., rows, columns] => (batch, [*rows, *columns]),
        [] => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_with_one_right_operand_become_rows() {
        let product = Product::of_matmul(&[2, 3, 4, 5], &[5, 6]).unwrap();
        assert_eq!(product.extents, [24, 5, 6]);
        assert!(product.batch.is_empty());
        let product = Product::of_matmul(&[2, 3, 1, 5], &[2, 1, 5, 6]).unwrap();
        assert_eq!((product.extents, product.batch), ([3, 5, 6], vec![2]));
        assert_eq!(product.rhs.batch, [30]);
    }

    #[test]
    fn batches_broadcast_on_both_sides() {
        let product = Product::of_matmul(&[3, 1, 2, 5], &[4, 5, 6]).unwrap();
        assert_eq!(product.batch, [3, 4]);
        assert_eq!(product.lhs.batch, [10, 0]);
        assert_eq!(product.rhs.batch, [0, 30]);
        assert_eq!(product.result.batch, [48, 12]);
        assert!(Product::of_matmul(&[2, 2, 5], &[3, 5, 6]).is_none());
        assert!(Product::of_matmul(&[2, 5], &[4, 6]).is_none());
    }

    #[test]
    fn vectors_are_rows_or_columns() {
        let product = Product::of_matmul(&[5], &[2, 5, 6]).unwrap();
        assert_eq!((product.extents, product.batch), ([1, 5, 6], vec![2]));
        assert_eq!(Product::of_matmul(&[5], &[5]).unwrap().extents, [1, 5, 1]);
    }
}
