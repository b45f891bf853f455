//! What is near enough.

use std::fmt;

use super::{Divergence, Paired};

/// Mean KL divergence that a classifier may have if nothing is said (research: below it no variant
/// lost more than one point of top-1).
const DEFAULT_KL: f64 = 0.01;

/// Relative L2 distance that other models may have if nothing is said.
const DEFAULT_L2: f64 = 0.05;

/// Limits on accuracy; those that are not given do not count.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// Largest mean KL divergence, nats.
    pub max_kl: Option<f64>,
    /// Largest relative L2 distance of an output.
    pub max_l2: Option<f64>,
    /// Largest fall of the share of right answers.
    pub max_top1_drop: Option<f64>,
}

/// A limit that is not kept to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Missed {
    /// The KL divergence is too large.
    Kl {
        /// The figure, nats.
        found: f64,
        /// The limit.
        limit: f64,
    },
    /// The relative L2 distance is.
    L2 {
        /// The figure.
        found: f64,
        /// The limit.
        limit: f64,
    },
    /// The share of right answers falls too far.
    Top1 {
        /// By how much.
        found: f64,
        /// Standard error of that.
        standard_error: f64,
        /// The limit.
        limit: f64,
    },
    /// A limit on answers cannot be checked, as samples have no labels.
    NoLabels,
}

impl Limits {
    /// Returns whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the limits, or defaults if there are none: 0.01 nats for a classifier and a relative
    /// L2 of 0.05 otherwise.
    #[must_use]
    pub fn or_default(self, is_classifier: bool) -> Self {
        match (self.is_empty(), is_classifier) {
            (false, _) => self,
            (true, true) => Self {
                max_kl: Some(DEFAULT_KL),
                ..self
            },
            (true, false) => Self {
                max_l2: Some(DEFAULT_L2),
                ..self
            },
        }
    }
}

/// Returns what adds up over the parts of a model, and its limit: the KL divergence of a classifier
/// that has a limit on it, else the squared relative L2 distance.
///
/// A limit on answers alone is too coarse to add up on few samples; the default on KL stands for it
/// until the whole is checked.
pub fn score(divergence: &Divergence, limits: &Limits) -> (f64, f64) {
    match (divergence.kl, limits.max_kl, limits.max_l2) {
        (Some(kl), Some(limit), _) => (kl, limit),
        (_, _, Some(limit)) => (divergence.squared_l2, limit * limit),
        (Some(kl), None, None) => (kl, DEFAULT_KL),
        (None, _, None) => (divergence.squared_l2, DEFAULT_L2 * DEFAULT_L2),
    }
}

/// Returns the limits that a variant does not keep to.
pub fn judge(divergence: &Divergence, paired: Option<&Paired>, limits: &Limits) -> Vec<Missed> {
    let mut missed = Vec::new();
    if let (Some(limit), Some(found)) = (limits.max_kl, divergence.kl)
        && exceeds(found, limit)
    {
        missed.push(Missed::Kl { found, limit });
    }
    // A limit on KL says nothing of a model that is no classifier: the default stands for it.
    let stands_in = (limits.max_kl.is_some() && divergence.kl.is_none()).then_some(DEFAULT_L2);
    if let Some(limit) = limits.max_l2.or(stands_in)
        && exceeds(divergence.relative_l2, limit)
    {
        let found = divergence.relative_l2;
        missed.push(Missed::L2 { found, limit });
    }
    match (limits.max_top1_drop, paired) {
        (Some(limit), Some(paired)) if paired.drop() > limit => missed.push(Missed::Top1 {
            found: paired.drop(),
            standard_error: paired.standard_error(),
            limit,
        }),
        (Some(_), None) => missed.push(Missed::NoLabels),
        _ => {}
    }
    missed
}

impl Missed {
    /// Returns how many times as large as its limit the figure is that adds up over the parts of a model,
    /// such as a squared distance; `None` if it does not, or is no number.
    pub fn ratio(&self) -> Option<f64> {
        let ratio = match *self {
            Self::Kl { found, limit } => found / limit,
            Self::L2 { found, limit } => (found / limit).powi(2),
            Self::Top1 { .. } | Self::NoLabels => return None,
        };
        ratio.is_finite().then_some(ratio)
    }
}

/// Returns whether a figure is above a limit, or no number.
fn exceeds(found: f64, limit: f64) -> bool {
    found > limit || found.is_nan()
}

impl fmt::Display for Limits {
    /// Formats as in the configuration: `max-kl 0.01, max-top1-drop 0.01`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = [
            ("max-kl", self.max_kl),
            ("max-l2", self.max_l2),
            ("max-top1-drop", self.max_top1_drop),
        ];
        let mut separator = "";
        for (key, limit) in limits {
            if let Some(limit) = limit {
                write!(f, "{separator}{key} {limit}")?;
                separator = ", ";
            }
        }
        if separator.is_empty() {
            f.write_str("default")?;
        }
        Ok(())
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kl { found, limit } => write!(f, "KL is {found:.4}, limit {limit}"),
            Self::L2 { found, limit } => write!(f, "relative L2 is {found:.4}, limit {limit}"),
            Self::Top1 {
                found,
                standard_error,
                limit,
            } => write!(
                f,
                "top-1 falls by {:.1} points (± {:.1}), limit {}",
                found * 100.0,
                standard_error * 100.0,
                limit * 100.0
            ),
            Self::NoLabels => f.write_str("top-1 is limited and there are no labels"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divergence(kl: Option<f64>, relative_l2: f64) -> Divergence {
        Divergence {
            n_samples: 1000,
            relative_l2,
            squared_l2: relative_l2 * relative_l2,
            kl,
            agreement: kl.map(|_| 0.99),
        }
    }

    #[test]
    fn a_limit_holds_or_is_named() {
        let limits = Limits {
            max_kl: Some(0.01),
            max_l2: None,
            max_top1_drop: Some(0.01),
        };
        let paired = Paired {
            n: 1000,
            both: 880,
            lost: 20,
            gained: 6,
        };
        let missed = judge(&divergence(Some(0.02), 0.5), Some(&paired), &limits);
        let texts: Vec<String> = missed.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "KL is 0.0200, limit 0.01",
                "top-1 falls by 1.4 points (± 0.5), limit 1"
            ]
        );
        assert_eq!(
            missed.iter().map(Missed::ratio).collect::<Vec<_>>(),
            [Some(2.0), None]
        );
        let better = Paired { lost: 10, ..paired };
        assert!(judge(&divergence(Some(0.01), 0.5), Some(&better), &limits).is_empty());
    }

    #[test]
    fn no_number_keeps_to_no_limit() {
        let limits = Limits {
            max_l2: Some(0.05),
            ..Limits::default()
        };
        assert_eq!(judge(&divergence(None, f64::NAN), None, &limits).len(), 1);
    }

    #[test]
    fn defaults_depend_on_what_the_model_is() {
        let none = Limits::default();
        assert_eq!(none.or_default(true).max_kl, Some(0.01));
        assert_eq!(none.or_default(false).max_l2, Some(0.05));
        assert_eq!(score(&divergence(Some(0.005), 1.0), &none), (0.005, 0.01));
        let (squared, limit) = score(&divergence(None, 0.1), &none);
        assert!((squared - 0.01).abs() < 1e-12 && (limit - 0.0025).abs() < 1e-12);
    }
}
