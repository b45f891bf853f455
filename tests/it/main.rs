//! Integration tests.

mod worker;
