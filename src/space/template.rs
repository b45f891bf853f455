//! Templates of spaces: the written form, `templates/spaces/*.toml`.
//!
//! ```toml
//! doc = "Dense convolution by register tiles."
//!
//! [[param]]
//! name = "oc_vectors"
//! doc = "Vectors of output channels that a tile holds."
//! values = "divisors(ceil_div(oc, lanes))"     # a list, or an expression over facts
//! default = "min(2, ceil_div(oc, lanes))"      # one of the list, or an expression over facts
//!                                              # and the defaults of parameters above
//! when = "threads > 1"                         # there is no such parameter unless the facts are so
//! [[constraint]]
//! expr = "tile_w * oc_vectors + oc_vectors + 1 <= registers"
//! reason = "accumulators spill"
//!
//! [[feature]]                                  # what a surrogate should see, besides parameters
//! name = "accumulators"
//! expr = "tile_w * oc_vectors"
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use super::expr::Expr;
use super::{Facts, ParamValue, SearchSpace, SpaceError};

/// A space whose facts are still open.
#[derive(Debug, Clone)]
pub struct SpaceTemplate {
    pub(super) name: Arc<str>,
    pub(super) doc: String,
    pub(super) params: Vec<ParamTemplate>,
    pub(super) constraints: Vec<ConstraintTemplate>,
    pub(super) features: Vec<FeatureTemplate>,
}

/// A parameter of a template.
#[derive(Debug, Clone)]
pub(super) struct ParamTemplate {
    pub(super) name: Arc<str>,
    pub(super) doc: String,
    pub(super) when: Option<Expr>,
    pub(super) values: Source,
    pub(super) default: Option<Source>,
}

/// A condition on valid mappings.
#[derive(Debug, Clone)]
pub(super) struct ConstraintTemplate {
    pub(super) expr: Expr,
    pub(super) reason: String,
}

/// A derived number for surrogates.
#[derive(Debug, Clone)]
pub(super) struct FeatureTemplate {
    pub(super) name: String,
    pub(super) expr: Expr,
}

/// Values as written, or computed from facts.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Given(Vec<ParamValue>),
    Computed(Expr),
}

impl SpaceTemplate {
    /// Returns the template's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what the template says about itself.
    pub fn doc(&self) -> &str {
        &self.doc
    }

    /// Returns the names and descriptions of the parameters, in order.
    pub fn params(&self) -> impl Iterator<Item = (&str, &str)> {
        self.params.iter().map(|param| (&*param.name, &*param.doc))
    }

    /// Returns the names of the facts that [`instantiate`](Self::instantiate) needs, sorted.
    pub fn facts(&self) -> BTreeSet<&str> {
        let mut names: BTreeSet<&str> = self
            .exprs()
            .flat_map(Expr::names)
            .map(String::as_str)
            .collect();
        for param in &self.params {
            names.remove(&*param.name);
        }
        names
    }

    /// Fills in the facts.
    ///
    /// # Errors
    /// A fact that an expression needs is missing, a parameter has no values, or an expression
    /// fails.
    pub fn instantiate(&self, facts: &Facts) -> Result<SearchSpace, SpaceError> {
        super::bound::instantiate(self, facts)
    }

    fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let params = self.params.iter().flat_map(|param| {
            let sources = [Some(&param.values), param.default.as_ref()];
            let computed = sources
                .into_iter()
                .flatten()
                .filter_map(|source| match source {
                    Source::Given(_) => None,
                    Source::Computed(expr) => Some(expr),
                });
            computed.chain(&param.when)
        });
        let constraints = self.constraints.iter().map(|constraint| &constraint.expr);
        let features = self.features.iter().map(|feature| &feature.expr);
        params.chain(constraints).chain(features)
    }
}
