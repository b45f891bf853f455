//! Bagged regression trees: a mean and a spread for every point, and honest predictions for the
//! points they were fitted to (Breiman, "Bagging predictors", 1996; out-of-bag estimates).

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use smartcore::linalg::basic::matrix::DenseMatrix;
use smartcore::tree::decision_tree_regressor::{
    DecisionTreeRegressor, DecisionTreeRegressorParameters,
};

/// Trees in a forest.
const N_TREES: usize = 24;
/// Share of the columns that a tree sees.
const COLUMN_SHARE: f64 = 0.7;
/// Rows that a fit needs.
pub(super) const MIN_ROWS: usize = 4;

/// A fitted forest.
#[derive(Debug)]
pub(super) struct Forest {
    trees: Vec<Tree>,
    out_of_bag: Vec<Option<Prediction>>,
}

/// What the trees say about a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Prediction {
    /// Mean over the trees.
    pub(super) mean: f64,
    /// Variance over the trees.
    pub(super) variance: f64,
}

type Regressor = DecisionTreeRegressor<f64, f64, DenseMatrix<f64>, Vec<f64>>;

#[derive(Debug)]
struct Tree {
    columns: Vec<usize>,
    regressor: Regressor,
}

impl Forest {
    /// Fits rows of equal length to their targets; `None` if there are fewer than [`MIN_ROWS`], or
    /// nothing to tell them apart.
    pub(super) fn fit(rows: &[&[f64]], targets: &[f64], seed: u64) -> Option<Self> {
        if rows.len() < MIN_ROWS || rows.len() != targets.len() {
            return None;
        }
        let columns = informative_columns(rows);
        if columns.is_empty() {
            return None;
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut trees = Vec::with_capacity(N_TREES);
        let mut votes: Vec<Votes> = vec![Votes::default(); rows.len()];
        for _ in 0..N_TREES {
            let bag: Vec<usize> = rows
                .iter()
                .map(|_| rng.random_range(0..rows.len()))
                .collect();
            let tree = Tree::fit(rows, targets, &bag, &columns, &mut rng)?;
            let bag: BTreeSet<usize> = bag.into_iter().collect();
            let out: Vec<usize> = (0..rows.len()).filter(|row| !bag.contains(row)).collect();
            let out_rows: Vec<&[f64]> = out.iter().map(|&row| rows[row]).collect();
            for (&row, vote) in out.iter().zip(tree.predict(&out_rows)) {
                votes[row].add(vote);
            }
            trees.push(tree);
        }
        Some(Self {
            trees,
            out_of_bag: votes.iter().map(Votes::prediction).collect(),
        })
    }

    /// Predicts for rows as the forest was fitted to.
    pub(super) fn predict(&self, rows: &[&[f64]]) -> Vec<Prediction> {
        let mut votes = vec![Votes::default(); rows.len()];
        for tree in &self.trees {
            for (votes, vote) in votes.iter_mut().zip(tree.predict(rows)) {
                votes.add(vote);
            }
        }
        let nothing = Prediction {
            mean: 0.0,
            variance: 0.0,
        };
        votes
            .iter()
            .map(|votes| votes.prediction().unwrap_or(nothing))
            .collect()
    }

    /// Returns what the trees that did not see a row say about it, by row; `None` if all saw it.
    pub(super) fn out_of_bag(&self) -> &[Option<Prediction>] {
        &self.out_of_bag
    }
}

impl Tree {
    fn fit(
        rows: &[&[f64]],
        targets: &[f64],
        bag: &[usize],
        columns: &[usize],
        rng: &mut ChaCha8Rng,
    ) -> Option<Self> {
        let mut columns = columns.to_vec();
        let n_columns = (columns.len() as f64 * COLUMN_SHARE).ceil() as usize;
        while columns.len() > n_columns {
            columns.swap_remove(rng.random_range(0..columns.len()));
        }
        let bagged: Vec<&[f64]> = bag.iter().map(|&row| rows[row]).collect();
        let bagged_targets: Vec<f64> = bag.iter().map(|&row| targets[row]).collect();
        let parameters = DecisionTreeRegressorParameters {
            max_depth: Some(12),
            min_samples_leaf: 1,
            min_samples_split: 2,
            seed: Some(rng.random()),
        };
        let matrix = matrix(&bagged, &columns)?;
        let regressor = Regressor::fit(&matrix, &bagged_targets, parameters).ok()?;
        Some(Self { columns, regressor })
    }

    fn predict(&self, rows: &[&[f64]]) -> Vec<f64> {
        let predicted = matrix(rows, &self.columns).map(|rows| self.regressor.predict(&rows));
        predicted.and_then(Result::ok).unwrap_or_default()
    }
}

/// Running sums of what trees say about one row.
#[derive(Debug, Clone, Copy, Default)]
struct Votes {
    n: f64,
    mean: f64,
    squares: f64,
}

impl Votes {
    fn add(&mut self, vote: f64) {
        self.n += 1.0;
        let delta = vote - self.mean;
        self.mean += delta / self.n;
        self.squares += delta * (vote - self.mean);
    }

    fn prediction(&self) -> Option<Prediction> {
        (self.n > 0.0).then(|| Prediction {
            mean: self.mean,
            variance: self.squares / self.n,
        })
    }
}

/// Copies columns of rows, or returns `None` if there are no rows.
fn matrix(rows: &[&[f64]], columns: &[usize]) -> Option<DenseMatrix<f64>> {
    if rows.is_empty() {
        return None;
    }
    let values = columns
        .iter()
        .flat_map(|&column| rows.iter().map(move |row| row[column]));
    DenseMatrix::new(rows.len(), columns.len(), values.collect(), true).ok()
}

/// Returns the columns that vary, without those that order the rows as an earlier one does: a tree
/// cannot tell a number from its logarithm.
fn informative_columns(rows: &[&[f64]]) -> Vec<usize> {
    let n_columns = rows.iter().map(|row| row.len()).min().unwrap_or(0);
    let mut seen = BTreeSet::new();
    let mut informative = Vec::new();
    for column in 0..n_columns {
        let mut sorted: Vec<f64> = rows.iter().map(|row| row[column]).collect();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        let rank = |value: f64| sorted.partition_point(|other| other.total_cmp(&value).is_lt());
        let ranks: Vec<usize> = rows.iter().map(|row| rank(row[column])).collect();
        if sorted.len() > 1 && seen.insert(ranks) {
            informative.push(column);
        }
    }
    informative
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows `[a, log a, b, 1]` with target `a + 2 b`.
    fn data(n: usize, seed: u64) -> (Vec<Vec<f64>>, Vec<f64>) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut draw = || f64::from(rng.random_range(1..=16u8));
        let rows: Vec<Vec<f64>> = (0..n)
            .map(|_| (draw(), draw()))
            .map(|(a, b)| vec![a, a.ln(), b, 1.0])
            .collect();
        let targets = rows.iter().map(|row| row[0] + 2.0 * row[2]).collect();
        (rows, targets)
    }

    fn refs(rows: &[Vec<f64>]) -> Vec<&[f64]> {
        rows.iter().map(Vec::as_slice).collect()
    }

    #[test]
    fn predictions_follow_the_target_and_spread_where_they_err() {
        let (rows, targets) = data(120, 1);
        let forest = Forest::fit(&refs(&rows), &targets, 7).unwrap();
        let (new_rows, new_targets) = data(200, 2);
        let predictions = forest.predict(&refs(&new_rows));
        let errors: Vec<f64> = predictions
            .iter()
            .zip(&new_targets)
            .map(|(p, t)| (p.mean - t).powi(2))
            .collect();
        let mean_square = errors.iter().sum::<f64>() / 200.0;
        assert!(
            mean_square < 10.0,
            "{mean_square} of a variance of about 105"
        );
        let variance = predictions.iter().map(|p| p.variance).sum::<f64>() / 200.0;
        assert!(
            variance > 0.2 * mean_square && variance < 5.0 * mean_square,
            "{variance}"
        );
    }

    #[test]
    fn out_of_bag_predictions_do_not_know_the_target() {
        let (rows, mut targets) = data(60, 3);
        targets[10] += 1000.0;
        let forest = Forest::fit(&refs(&rows), &targets, 7).unwrap();
        let own = forest.out_of_bag()[10].unwrap().mean;
        assert!((own - (targets[10] - 1000.0)).abs() < 30.0, "{own}");
        assert!(forest.predict(&[&rows[10]])[0].mean > own + 300.0);
    }

    #[test]
    fn the_same_seed_gives_the_same_forest() {
        let (rows, targets) = data(40, 4);
        let predict = |seed| {
            Forest::fit(&refs(&rows), &targets, seed)
                .unwrap()
                .predict(&refs(&rows))
        };
        assert_eq!(predict(1), predict(1));
        assert_ne!(predict(1), predict(2));
    }

    #[test]
    fn too_little_to_learn_from_gives_no_forest() {
        let (rows, targets) = data(3, 5);
        assert!(Forest::fit(&refs(&rows), &targets, 0).is_none());
        let same = vec![vec![1.0, 2.0]; 8];
        assert!(Forest::fit(&refs(&same), &[1.0; 8], 0).is_none());
        assert!(Forest::fit(&[&[], &[], &[], &[]], &[1.0; 4], 0).is_none());
    }

    #[test]
    fn copies_of_a_column_and_constants_are_left_out() {
        let (rows, _) = data(50, 6);
        assert_eq!(informative_columns(&refs(&rows)), [0, 2]);
    }
}
