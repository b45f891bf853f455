//! Maintenance commands of the project, one file each; run as `cargo xtask <command>`.

fn main() {}
