//! The parts of the loop that run nothing, on the fixture's model and AVX-512.

mod composer;
mod ledger;
mod propose;
mod session;
mod setup;
