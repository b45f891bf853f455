//! Outputs of a model and of a variant of it, sample by sample.

use std::collections::BTreeMap;

use super::Paired;
use crate::graph::Tensor;

/// Classes that a label can name at least for an output to be that of a classifier.
const MIN_CLASSES: usize = 2;

/// How far the outputs of a variant are from the model's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Divergence {
    /// Samples that it was seen on.
    pub n_samples: usize,
    /// Relative L2 distance, `‖y − y₀‖ / ‖y₀‖` over all samples, of the output where it is largest.
    pub relative_l2: f64,
    /// Squared relative distances, summed over the outputs.
    pub squared_l2: f64,
    /// Mean KL divergence of the classes' distribution from the model's, nats; for classifiers.
    pub kl: Option<f64>,
    /// Share of the samples on which both name the same class; for classifiers.
    pub agreement: Option<f64>,
}

/// Adds up what samples say.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    n_samples: usize,
    outputs: BTreeMap<String, Sums>,
    classes: Classes,
}

/// Of one output: the squared distance and the squared length.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    distance: f64,
    length: f64,
}

/// Of a classifier's rows.
#[derive(Debug, Clone, Copy, Default)]
struct Classes {
    /// Whether something was seen that is not the output of a classifier.
    is_none: bool,
    n_rows: usize,
    n_agreed: usize,
    kl: f64,
    paired: Paired,
}

impl Meter {
    /// Returns a meter that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the outputs for one sample by name, and the classes that are right, one for each row
    /// of a classifier's output; none if they are not known.
    ///
    /// A model with one output of shape `[rows, classes]`, trailing ones aside, is a classifier. Its
    /// rows are logits, or probabilities if none is negative and they add up to one.
    pub fn add(
        &mut self,
        teacher: &BTreeMap<String, Tensor>,
        student: &BTreeMap<String, Tensor>,
        labels: &[u32],
    ) {
        self.n_samples += 1;
        for (name, right) in teacher {
            let sums = self.outputs.entry(name.clone()).or_default();
            let own = student.get(name).map(reals);
            let right = reals(right);
            let own = own.filter(|own| own.len() == right.len());
            let Some(own) = own else {
                sums.distance = f64::INFINITY;
                continue;
            };
            for (right, own) in right.iter().zip(&own) {
                let error = own - right;
                // What is no number is as far away as can be.
                let error = if error.is_nan() { f64::INFINITY } else { error };
                sums.distance += error * error;
                sums.length += right * right;
            }
        }
        let rows = match (teacher.len(), teacher.iter().next()) {
            (1, Some((name, right))) => student.get(name).and_then(|own| Rows::of(right, own)),
            _ => None,
        };
        match rows {
            Some(rows) => self.classes.add(&rows, labels),
            None => self.classes.is_none = true,
        }
    }

    /// Returns what was seen.
    pub fn divergence(&self) -> Divergence {
        let squared = self.outputs.values().map(|sums| {
            let length = sums.length.max(f64::MIN_POSITIVE);
            if sums.distance > 0.0 {
                sums.distance / length
            } else {
                0.0
            }
        });
        let squared: Vec<f64> = squared.collect();
        let classes = Some(self.classes).filter(|c| !c.is_none && c.n_rows > 0);
        let share = |n: f64, c: Classes| n / c.n_rows as f64;
        Divergence {
            n_samples: self.n_samples,
            relative_l2: squared.iter().copied().fold(0.0, f64::max).sqrt(),
            squared_l2: squared.iter().sum(),
            kl: classes.map(|c| share(c.kl, c)),
            agreement: classes.map(|c| share(c.n_agreed as f64, c)),
        }
    }

    /// Returns who is right, if samples had labels and outputs are those of a classifier.
    pub fn paired(&self) -> Option<Paired> {
        Some(self.classes.paired).filter(|paired| !self.classes.is_none && paired.n > 0)
    }
}

/// Rows of a classifier's output.
struct Rows {
    teacher: Vec<f64>,
    student: Vec<f64>,
    n_classes: usize,
}

impl Rows {
    fn of(teacher: &Tensor, student: &Tensor) -> Option<Self> {
        let dims = teacher.shape().dims();
        let (first, rest) = dims.split_first()?;
        let (n_classes, ones) = rest.split_first()?;
        let is_classifier = *n_classes >= MIN_CLASSES
            && *first > 0
            && ones.iter().all(|&size| size == 1)
            && teacher.as_f32().is_some()
            && student.shape() == teacher.shape();
        is_classifier.then(|| Self {
            teacher: reals(teacher),
            student: reals(student),
            n_classes: *n_classes,
        })
    }
}

impl Classes {
    fn add(&mut self, rows: &Rows, labels: &[u32]) {
        let n = rows.n_classes;
        let is_distribution = |row: &[f64]| {
            row.iter().all(|&p| p >= 0.0) && (row.iter().sum::<f64>() - 1.0).abs() < 1e-3
        };
        let are_probabilities = rows.teacher.chunks(n).all(is_distribution);
        let pairs = rows.teacher.chunks(n).zip(rows.student.chunks(n));
        for (row, (teacher, student)) in pairs.enumerate() {
            let (p, q) = if are_probabilities {
                (teacher.to_vec(), student.to_vec())
            } else {
                (softmax(teacher), softmax(student))
            };
            self.n_rows += 1;
            self.kl += kl(&p, &q);
            let (right, own) = (largest(teacher), largest(student));
            self.n_agreed += usize::from(right == own);
            if let Some(&label) = labels.get(row) {
                let label = label as usize;
                self.paired.add(right == label, own == label);
            }
        }
    }
}

fn reals(tensor: &Tensor) -> Vec<f64> {
    match (tensor.as_f32(), tensor.to_i64()) {
        (Some(data), _) => data.iter().map(|&v| v.into()).collect(),
        (None, Some(data)) => data.iter().map(|&v| v as f64).collect(),
        (None, None) => Vec::new(),
    }
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exps: Vec<f64> = logits.iter().map(|&v| (v - max).exp()).collect();
    let sum: f64 = exps.iter().sum();
    exps.iter().map(|&v| v / sum).collect()
}

/// Returns `Σ p ln(p/q)`, not negative; infinite if it is not a number.
fn kl(p: &[f64], q: &[f64]) -> f64 {
    let terms = p.iter().zip(q).filter(|(p, _)| **p > 0.0);
    let sum: f64 = terms.map(|(p, q)| p * (p / q.max(1e-30)).ln()).sum();
    if sum.is_nan() {
        f64::INFINITY
    } else {
        sum.max(0.0)
    }
}

/// Returns the first of the largest elements.
fn largest(row: &[f64]) -> usize {
    let mut best = 0;
    for (idx, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = idx;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::TensorData;

    fn outputs(dims: &[usize], data: &[f32]) -> BTreeMap<String, Tensor> {
        let tensor = Tensor::new(dims.to_vec().into(), TensorData::F32(data.to_vec())).unwrap();
        [("y".to_owned(), tensor)].into()
    }

    #[test]
    fn hand_computed() {
        let mut meter = Meter::new();
        let (right, own) = (outputs(&[1, 2], &[3.0, 0.0]), outputs(&[1, 2], &[0.0, 3.0]));
        meter.add(&right, &own, &[0]);
        meter.add(&right, &right, &[1]);
        let divergence = meter.divergence();
        // ‖(−3, 3)‖² = 18 of 2 · 9.
        assert!((divergence.relative_l2 - 1.0).abs() < 1e-12);
        // KL of (σ, 1 − σ) from (1 − σ, σ) is 3 (2σ − 1) with σ = sigmoid(3); half of it in the mean.
        let sigmoid = 1.0 / (1.0 + (-3f64).exp());
        let expected = 3.0 * (2.0 * sigmoid - 1.0) / 2.0;
        assert!((divergence.kl.unwrap() - expected).abs() < 1e-12);
        assert_eq!(divergence.agreement, Some(0.5));
        let paired = meter.paired().unwrap();
        assert_eq!((paired.n, paired.lost, paired.gained), (2, 1, 0));
    }

    #[test]
    fn probabilities_are_taken_as_they_are() {
        let mut meter = Meter::new();
        meter.add(
            &outputs(&[1, 2], &[0.5, 0.5]),
            &outputs(&[1, 2], &[0.25, 0.75]),
            &[],
        );
        let expected = 0.5 * (2f64).ln() + 0.5 * (0.5 / 0.75f64).ln();
        assert!((meter.divergence().kl.unwrap() - expected).abs() < 1e-9);
        assert_eq!(meter.paired(), None);
    }

    #[test]
    fn each_row_of_a_batch_has_a_label_of_its_own() {
        let mut meter = Meter::new();
        let right = outputs(&[3, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
        let own = outputs(&[3, 2], &[1.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
        meter.add(&right, &own, &[0, 1, 1]);
        let paired = meter.paired().unwrap();
        assert_eq!((paired.n, paired.both), (3, 1));
        assert_eq!((paired.lost, paired.gained), (1, 1));
    }

    #[test]
    fn what_is_no_classifier_has_a_distance_only() {
        let mut meter = Meter::new();
        let right = outputs(&[1, 2, 3], &[1.0; 6]);
        meter.add(&right, &outputs(&[1, 2, 3], &[1.1; 6]), &[0]);
        let divergence = meter.divergence();
        assert!((divergence.relative_l2 - 0.1).abs() < 1e-6);
        assert_eq!((divergence.kl, divergence.agreement), (None, None));
    }

    #[test]
    fn what_is_missing_or_no_number_is_infinitely_far() {
        let right = outputs(&[1, 2], &[1.0, 2.0]);
        for own in [BTreeMap::new(), outputs(&[1, 2], &[f32::NAN, 2.0])] {
            let mut meter = Meter::new();
            meter.add(&right, &own, &[]);
            assert!(meter.divergence().relative_l2.is_infinite());
        }
    }

    #[test]
    fn the_same_is_not_apart_even_if_it_is_nothing() {
        let mut meter = Meter::new();
        let zeros = outputs(&[1, 3], &[0.0; 3]);
        meter.add(&zeros, &zeros, &[]);
        assert!(meter.divergence().relative_l2 <= 0.0);
        assert_eq!(meter.divergence().kl, Some(0.0));
    }
}
