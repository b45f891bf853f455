//! The search of one task on made-up landscapes whose optimum is known.

mod landscape;
mod proposals;
mod rules;
