use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::*;

const TILES: &str = r#"
doc = "Register tiles."

[[param]]
name = "layout"
values = ["nhwc", "nchw8c", "nchw16c"]
default = "nchw16c"

[[param]]
name = "lanes"
values = [4, 8, 16]
default = "max_lanes"

[[param]]
name = "oc_vectors"
values = "divisors(ceil_div(oc, 4))"
default = "min(4, ceil_div(oc, lanes))"

[[param]]
name = "tile_w"
values = "range(1, min(ow, 28) + 1)"
default = "min(ow, registers // oc_vectors - 2)"

[[constraint]]
expr = "lanes <= max_lanes"
reason = "wider than the instruction set"

[[constraint]]
expr = "tile_w * oc_vectors + oc_vectors + 1 <= registers"
reason = "accumulators spill"

[[constraint]]
expr = "oc % (lanes * oc_vectors) == 0"
reason = "output channels are not covered"

[[constraint]]
expr = "layout == 'nhwc' or layout == 'nchw' ~ lanes ~ 'c'"
reason = "a vector crosses a channel block"

[[feature]]
name = "accumulators"
expr = "tile_w * oc_vectors"
"#;

fn facts(oc: i64, ow: i64, registers: i64) -> Facts {
    let facts = [
        ("oc", oc),
        ("ow", ow),
        ("registers", registers),
        ("max_lanes", 16),
    ];
    facts
        .map(|(name, value)| (name.to_owned(), value.into()))
        .into()
}

fn tiles(oc: i64, ow: i64, registers: i64) -> SearchSpace {
    let template = SpaceTemplate::parse("tiles", TILES).unwrap();
    template.instantiate(&facts(oc, ow, registers)).unwrap()
}

/// The constraints of `TILES`, written a second time.
fn holds(mapping: &Mapping, oc: i64, ow: i64, registers: i64) -> bool {
    let [lanes, vectors, tile] = ["lanes", "oc_vectors", "tile_w"].map(|n| mapping.int(n).unwrap());
    let layout = mapping.word("layout").unwrap();
    mapping.0.len() == 4
        && (1..=ow.min(28)).contains(&tile)
        && tile * vectors + vectors < registers
        && oc % (lanes * vectors) == 0
        && (layout == "nhwc" || layout == format!("nchw{lanes}c"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_candidate_satisfies_the_constraints(
        oc in (1i64..20).prop_map(|n| n * 4),
        ow in 1i64..40,
        registers in prop_oneof![Just(16i64), Just(32)],
        seed: u64,
    ) {
        let space = tiles(oc, ow, registers);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let all: Vec<Mapping> = space.enumerate().collect();
        for mapping in &all {
            prop_assert!(holds(mapping, oc, ow, registers), "{mapping}");
            prop_assert_eq!(space.is_valid(mapping), Ok(()));
        }
        prop_assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
        for _ in 0..20 {
            let sample = space.sample(&mut rng).unwrap();
            prop_assert!(all.contains(&sample), "{sample}");
            for neighbour in space.neighbours(&sample) {
                prop_assert!(all.contains(&neighbour), "{neighbour}");
                let changed = neighbour.0.iter().filter(|(k, v)| sample.0.get(*k) != Some(v));
                prop_assert_eq!(changed.count(), 1);
            }
            if let Some(other) = space.perturbed(&sample, 2, &mut rng) {
                prop_assert!(all.contains(&other) && other != sample, "{other}");
            }
        }
        prop_assert!(all.contains(&space.default_mapping().unwrap()));
    }

    #[test]
    fn enumerating_finds_what_brute_force_finds(oc in (1i64..12).prop_map(|n| n * 4), ow in 1i64..9) {
        let space = tiles(oc, ow, 16);
        let params = space.params();
        let mut all = vec![Mapping::default()];
        for param in &params {
            let extend = |m: &Mapping| {
                let values = param.values.iter();
                values.map(|v| m.clone().with(&param.name, v.clone())).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(extend).collect();
        }
        prop_assert_eq!(all.len() as u64, space.len_upper_bound());
        all.retain(|mapping| holds(mapping, oc, ow, 16) && mapping.int("lanes") <= Some(16));
        prop_assert_eq!(space.enumerate().collect::<Vec<_>>(), all);
    }
}

#[test]
fn a_parameter_is_there_when_the_facts_are_so() {
    let text = "[[param]]\nname = \"tile\"\nvalues = [1, 2]\n[[param]]\nname = \"share\"\n\
                when = \"threads > 1\"\nvalues = [\"rows\", \"channels\"]\n";
    let template = SpaceTemplate::parse("shared", text).unwrap();
    assert_eq!(
        template.facts().into_iter().collect::<Vec<_>>(),
        ["threads"]
    );
    let names = |threads: i64| {
        let facts = Facts::from([("threads".to_owned(), threads.into())]);
        let params = template.instantiate(&facts).unwrap().params();
        params.into_iter().map(|p| p.name).collect::<Vec<_>>()
    };
    assert_eq!(names(1), ["tile"]);
    assert_eq!(names(2), ["tile", "share"]);
    let error = template.instantiate(&Facts::new()).unwrap_err().to_string();
    assert!(
        error.contains("`when` of `share`") && error.contains("`threads`"),
        "{error}"
    );
}

#[test]
fn sampling_is_uniform_over_the_valid_mappings() {
    let space = tiles(16, 2, 16);
    let n_valid = space.enumerate().count();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..n_valid * 400 {
        *counts.entry(space.sample(&mut rng).unwrap()).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), n_valid);
    let (low, high) = (
        counts.values().min().unwrap(),
        counts.values().max().unwrap(),
    );
    assert!(*low > 300 && *high < 500, "{low}..{high} of 400");
}

#[test]
fn a_sparse_space_is_sampled_by_enumeration() {
    let text = "param = [
        { name = 'a', values = 'range(0, 3000)' },
        { name = 'b', values = 'range(0, 3000)' },
    ]
    constraint = [{ expr = 'a == 1234', reason = '' }, { expr = 'b % 1000 == 7' }]";
    let template = SpaceTemplate::parse("sparse", text).unwrap();
    let space = template.instantiate(&Facts::new()).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let seen: std::collections::BTreeSet<i64> = (0..50)
        .map(|_| space.sample(&mut rng).unwrap())
        .map(|mapping| mapping.int("b").unwrap())
        .collect();
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [7, 1007, 2007]);

    let empty = space.restricted(|_| false);
    assert_eq!(empty.sample(&mut rng), None);
    assert_eq!(empty.enumerate().count(), 0);
    assert_eq!(empty.default_mapping(), None);
}

#[test]
fn restricting_and_fixing_narrow_every_move() {
    let space = tiles(64, 14, 32)
        .fixed(&[("layout", "nhwc".into())])
        .unwrap();
    let space = space.restricted(|mapping| mapping.int("tile_w") < Some(4));
    let mapping = space.default_mapping().unwrap();
    assert_eq!(mapping.word("layout"), Some("nhwc"));
    let ok = |m: &Mapping| m.word("layout") == Some("nhwc") && m.int("tile_w") < Some(4);
    assert!(space.enumerate().all(|m| ok(&m)) && space.neighbours(&mapping).iter().all(ok));
    let outside = mapping.clone().with("layout", "nchw16c");
    assert_eq!(space.is_valid(&outside), Err(Violation::Restricted));

    let error = space.fixed(&[("layout", "nchw".into())]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "parameter `layout` of space `tiles` does not offer `nchw`"
    );
    assert_eq!(error.help().unwrap(), "it offers `nhwc`");
    let error = space.fixed(&[("layuot", "nchw".into())]).unwrap_err();
    assert_eq!(error.help().unwrap(), "did you mean `layout`?");
}

#[test]
fn defaults_build_on_the_defaults_above_them_and_give_way_to_constraints() {
    let mapping = tiles(64, 56, 32).default_mapping().unwrap();
    assert_eq!(
        mapping.to_string(),
        "lanes=16 layout=nchw16c oc_vectors=4 tile_w=6"
    );
    // 24 channels are no multiple of 16, so neither the layout nor the lanes can stay.
    let mapping = tiles(24, 3, 16).default_mapping().unwrap();
    assert_eq!(
        mapping.to_string(),
        "lanes=8 layout=nhwc oc_vectors=1 tile_w=3"
    );
}

#[test]
fn features_are_named_and_as_many_as_their_names() {
    let space = tiles(32, 8, 16);
    let mapping = space.default_mapping().unwrap();
    let features = space.encode(&mapping).unwrap();
    let names = space.feature_names();
    let named: Vec<String> = names
        .iter()
        .zip(features)
        .map(|(n, v)| format!("{n}: {v}"))
        .collect();
    assert_eq!(
        named[..3],
        [
            "layout == nhwc: 0",
            "layout == nchw8c: 0",
            "layout == nchw16c: 1"
        ]
    );
    assert!(named.contains(&"lanes: 16".to_owned()), "{named:?}");
    let accumulators = mapping.int("oc_vectors").unwrap() * mapping.int("tile_w").unwrap();
    assert_eq!(
        named.last().unwrap(),
        &format!("accumulators: {accumulators}")
    );
    assert_eq!(space.encode(&mapping.with("lanes", 5)), None);
}

#[test]
fn violations_say_what_is_wrong() {
    let space = tiles(64, 14, 16);
    let mapping = space.default_mapping().unwrap();
    let check = |mapping: Mapping, expected: &str| {
        assert_eq!(space.is_valid(&mapping).unwrap_err().to_string(), expected);
    };
    check(
        mapping.clone().with("tile_w", 14),
        "`tile_w * oc_vectors + oc_vectors + 1 <= registers` does not hold: accumulators spill",
    );
    check(
        mapping.clone().with("tile_w", 0),
        "parameter `tile_w` does not offer `0`",
    );
    check(
        mapping.clone().with("tile", 0),
        "there is no parameter `tile`",
    );
    check(Mapping::default(), "parameter `layout` has no value");
}

#[test]
fn wrong_templates_are_refused_with_the_place_and_a_remedy() {
    let check = |text: &str, expected: &str, help: Option<&str>| {
        let error = SpaceTemplate::parse("t", text)
            .and_then(|template| template.instantiate(&facts(4, 4, 16)))
            .unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.help().as_deref(), help);
    };
    let param = "[[param]]\nname = 'a'\nvalues = [1, 2]\n";
    check("[[param", "cannot read space `t`", None);
    check("[[param]]\nname = 'a'", "cannot read space `t`", None);
    check(
        "[[param]]\nname = 'a'\nvaleus = [1]",
        "unknown key `valeus` in `[[param]]` of space `t`",
        Some("did you mean `values`?"),
    );
    check(
        "[[constraints]]",
        "unknown key `constraints` in the top level of space `t`",
        Some("did you mean `constraint`?"),
    );
    check(
        &(param.to_owned() + param),
        "`a` is defined twice in space `t`",
        None,
    );
    check(
        &param.replace("'a'", "'oc'"),
        "`oc` is defined twice in space `t`",
        None,
    );
    check(
        &format!("{param}[[constraint]]\nexpr = 'a <= register'"),
        "`register` in a constraint of space `t` is neither a parameter nor a known fact",
        Some("did you mean `registers`?"),
    );
    check(
        &format!("{param}[[constraint]]\nexpr = 'a <='"),
        "cannot evaluate `a <=` in a constraint of space `t`",
        None,
    );
    check(
        &param.replace("[1, 2]", "'oc + 1'"),
        "cannot evaluate `oc + 1` in values of `a` of space `t`",
        None,
    );
    check(
        &param.replace("[1, 2]", "'range(oc, ow)'"),
        "parameter `a` of space `t` has 0 values",
        Some("give it between 1 and 65535 values; a fact may make a generated list empty"),
    );
    check(
        &format!("{param}[[feature]]\nname = 'f'\nexpr = 'ow // (a - 1)'"),
        "cannot evaluate `ow // (a - 1)` in feature `f` of space `t`",
        None,
    );
}

#[test]
fn the_facts_of_a_template_are_known() {
    let template = SpaceTemplate::parse("tiles", TILES).unwrap();
    let needed: Vec<&str> = template.facts().into_iter().collect();
    assert_eq!(needed, ["max_lanes", "oc", "ow", "registers"]);
    assert_eq!(template.doc(), "Register tiles.");
    assert_eq!(template.params().next(), Some(("layout", "")));
}
