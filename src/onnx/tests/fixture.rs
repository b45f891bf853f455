//! The fixture, and what configuration can get wrong about it.

use super::{fashion, load_fashion, options};
use crate::graph::partition;
use crate::onnx::{LoadOptions, load};

#[test]
fn the_fixture_is_cut_into_fused_convolutions() {
    let model = load_fashion();
    let subgraphs = partition(&model.graph).subgraphs;
    let text: Vec<String> = subgraphs.iter().map(|s| s.describe(&model.graph)).collect();
    assert_eq!(
        text,
        [
            "conv 3×3 s2 1→16 +relu",
            "conv 3×3 s2 16→32 +relu",
            "conv 3×3 32→64 +relu",
            "conv 3×3 64→32 +add +relu",
            "conv 1×1 32→64",
            "conv 3×3 32→64 +relu",
            "conv 3×3 g4 64→64 +add +relu",
            "conv 1×1 64→128 +relu",
            "dwconv 3×3 128 +relu",
            "conv 1×1 128→64 +add +relu",
            "conv 1×1 64→128 +relu",
            "dwconv 3×3 128 +relu",
            "conv 1×1 128→64 +add +relu",
            "dwconv 3×3 s2 64 +relu",
            "conv 1×1 64→96 +relu",
            "conv 1×1 96→128 +relu",
            "conv 3×3 g16 128→128 +relu",
            "conv 1×1 128→96 +add +relu +gap +flatten",
            "gemm 96→10",
        ]
    );
}

#[test]
fn a_dynamic_input_names_itself_and_the_key_to_set() {
    let error = load(&fashion(), &LoadOptions::default()).unwrap_err();
    assert_eq!(
        error.problem.to_string(),
        "input `image` has the dynamic shape [N, 1, 28, 28]"
    );
    assert_eq!(
        error.help().unwrap(),
        "fix the shape with `inputs = { image = [1, 1, 28, 28] }` under `[[model]]` in metainfer.toml"
    );
}

#[test]
fn a_configured_input_that_does_not_exist_names_the_nearest() {
    let error = load(&fashion(), &options(&[("imgae", &[1, 1, 28, 28])])).unwrap_err();
    assert_eq!(error.problem.to_string(), "there is no input `imgae`");
    assert_eq!(error.help().unwrap(), "did you mean `image`?");
}

#[test]
fn a_configured_shape_that_contradicts_the_model_is_refused() {
    let error = load(&fashion(), &options(&[("image", &[1, 3, 28, 28])])).unwrap_err();
    assert_eq!(
        error.problem.to_string(),
        "input `image` is configured as [1, 3, 28, 28], the model says [N, 1, 28, 28]"
    );
}

#[test]
fn an_empty_dimension_is_refused() {
    let error = load(&fashion(), &options(&[("image", &[0, 1, 28, 28])])).unwrap_err();
    assert_eq!(
        error.problem.to_string(),
        "value `image` has the empty shape [0, 1, 28, 28]"
    );
}
