//! Transcripts of the command line in `tests/cmd`, which documentation shows too.

#[test]
fn transcripts_are_what_the_tool_says() {
    let home = tempfile::tempdir().unwrap();
    trycmd::TestCases::new()
        .register_bin("cargo", trycmd::cargo::cargo_bin!("cargo-metainfer"))
        .env("METAINFER_HOME", home.path().to_str().unwrap())
        .env("CARGO_TERM_COLOR", "never")
        .case("tests/cmd/*.trycmd");
}
