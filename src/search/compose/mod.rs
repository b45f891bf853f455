//! Choosing one candidate for every subgraph of a model, layouts and their conversions included.
//!
//! The whole is a factor graph: a subgraph is a variable over its candidates, a value of the model
//! is a factor that charges the conversions between the layout it is produced in and those that
//! its consumers want, each wanted layout once. The K cheapest assignments are found exactly by
//! bucket elimination in min-fill order (Dechter, "Bucket elimination", AIJ 1999), followed by a
//! best-first search that the messages guide without error. Where elimination would need too
//! large tables, the same solver improves one part of the model at a time, the rest held fixed;
//! [`Method`] says which it was.

mod exact;
mod order;
mod parts;
mod problem;
mod table;
#[cfg(test)]
mod tests;

pub use parts::{Composition, MAX_ENTRIES, Method, Solution, compose};
pub use problem::{Choice, ComposeError, End, LayoutId, Problem, Value};
