//! Integration tests: one binary, one file for each area.

mod adapt_ahead;
mod adapt_hangs;
mod adapt_limits;
mod adapt_options;
mod adapt_reference;
mod adapt_refuses;
mod adapt_repeats;
mod adapt_replay;
mod adapt_rules;
mod adapt_survives;
mod adapt_variants;
mod chain;
mod check;
mod config;
mod deploy;
mod diff;
mod faults_models;
mod faults_places;
mod graph;
mod init;
mod jobs;
mod support;
mod threads;
mod transcripts;
mod usage;
mod worker;
mod worker_threads;

#[test]
fn every_file_of_this_directory_is_part_of_this_binary() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let listed = include_str!("main.rs");
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let line = format!("mod {stem};\n");
        assert!(stem == "main" || listed.contains(&line), "missing: {line}");
    }
}
