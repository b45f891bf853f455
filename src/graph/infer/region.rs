//! Sampling at grids and in regions of interest.

use super::fact::{Case, Facts, InferError, dim, mismatch, one};

/// `GridSample` (16, 20, 22): `[n, c, …]` sampled at `[n, …, coordinates]`.
pub(super) fn grid_sample(case: &Case<'_>) -> Facts {
    let (x, grid) = (case.operand(0)?, case.dims(1)?);
    let dims = x.shape.dims();
    let fits = dims.len() >= 3
        && grid.len() == dims.len()
        && grid[0] == dims[0]
        && grid[grid.len() - 1] == dims.len() - 2;
    if !fits {
        return mismatch(format!("a grid {grid:?} for input {dims:?}"));
    }
    let mut shape = dims[..2].to_vec();
    shape.extend(&grid[1..grid.len() - 1]);
    one(x.dtype, shape)
}

/// `AffineGrid` (20): `theta` `[n, 2, 3]` for sizes `[n, c, h, w]`, or `[n, 3, 4]` for volumes.
pub(super) fn affine_grid(case: &Case<'_>) -> Facts {
    let theta = case.operand(0)?;
    let size = case.dims_input(1)?;
    let spatial = size.get(2..).unwrap_or_default();
    let n = spatial.len();
    if !matches!(n, 2 | 3) || theta.shape.dims() != [size[0], n, n + 1] {
        return mismatch(format!("theta {} for size {size:?}", theta.shape));
    }
    let mut shape = vec![size[0]];
    shape.extend(spatial);
    shape.push(n);
    one(theta.dtype, shape)
}

/// `MaxRoiPool` (1, 22): `[n, c, h, w]` and regions `[r, 5]` to `[r, c, pooled …]`.
pub(super) fn max_roi_pool(case: &Case<'_>) -> Facts {
    let pooled = case.node.ints("pooled_shape").unwrap_or_default();
    let &[height, width] = pooled else {
        return mismatch(format!("`pooled_shape` is {pooled:?}"));
    };
    regions(case, 5, dim(height)?, dim(width)?)
}

/// `RoiAlign` (10, 16, 22): `[n, c, h, w]` and regions `[r, 4]` to `[r, c, height, width]`.
pub(super) fn roi_align(case: &Case<'_>) -> Facts {
    let size = |name| dim(case.node.int(name, 1));
    let n_regions = case.dims(1)?.first().copied().unwrap_or(0);
    case.operand(2)?;
    case.expect(2, "the list of batch indices", &[n_regions])?;
    regions(case, 4, size("output_height")?, size("output_width")?)
}

fn regions(
    case: &Case<'_>,
    width_of_region: usize,
    height: usize,
    width: usize,
) -> Result<Option<Vec<super::Fact>>, InferError> {
    let (x, rois) = (case.operand(0)?, case.dims(1)?);
    match (x.shape.dims(), rois) {
        (&[_, c, _, _], &[n, each]) if each == width_of_region => {
            one(x.dtype, vec![n, c, height, width])
        }
        (dims, rois) => mismatch(format!(
            "regions {rois:?} for {dims:?}: [n, c, h, w] and [regions, {width_of_region}] are needed"
        )),
    }
}
