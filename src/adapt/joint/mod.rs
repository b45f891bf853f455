//! Variants and mappings searched together.
//!
//! A recipe gives each site of the model a variant; the graph that it makes is searched like any
//! model, by labels that all recipes share, as equal subgraphs are one task. What to build next is
//! planned from all labels so far: first the model itself and the recipe with every variant are
//! measured, so that something is known of each site in each form; then the fastest whole within
//! the limits on accuracy is planned, checked on samples, searched, and planned again.

mod catalogue;
mod gate;
mod plan;
mod rounds;
mod study;

pub(super) use rounds::Joint;
