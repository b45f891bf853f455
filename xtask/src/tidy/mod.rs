//! `cargo xtask tidy`: the rules of the source tree that neither rustc nor clippy knows.
//!
//! Directions of dependencies are read from the table in the docs of `src/lib.rs`, so that the
//! text people read is the text that is enforced.

mod direction;
mod rules;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use rules::{Args, run};
