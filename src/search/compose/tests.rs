use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

fn port(subgraph: usize, port: usize) -> End {
    End::Port { subgraph, port }
}

/// A random problem over the given values `(producer, consumers)`; `None` is outside.
fn problem(
    n_subgraphs: usize,
    n_choices: usize,
    n_layouts: u16,
    values: &[(Option<usize>, &[Option<usize>])],
    rng: &mut ChaCha8Rng,
) -> Problem {
    let layout = |rng: &mut ChaCha8Rng| LayoutId(rng.random_range(0..n_layouts));
    let mut n_inputs = vec![0; n_subgraphs];
    let mut n_outputs = vec![0; n_subgraphs];
    let mut all = Vec::new();
    for (producer, consumers) in values {
        let end = |subgraph: &Option<usize>, ports: &mut Vec<usize>, rng: &mut ChaCha8Rng| {
            let Some(subgraph) = *subgraph else {
                return End::Fixed(layout(rng));
            };
            ports[subgraph] += 1;
            port(subgraph, ports[subgraph] - 1)
        };
        let producer = end(producer, &mut n_outputs, rng);
        let consumers = consumers
            .iter()
            .map(|c| end(c, &mut n_inputs, rng))
            .collect();
        let cost = |from: u16, to: u16, rng: &mut ChaCha8Rng| match rng.random_range(0..10) {
            _ if from == to => 0.0,
            0 => f64::INFINITY,
            _ => f64::from(rng.random_range(1..50)),
        };
        let conversion_ns = (0..n_layouts)
            .map(|from| (0..n_layouts).map(|to| cost(from, to, rng)).collect())
            .collect();
        all.push(Value {
            producer,
            consumers,
            conversion_ns,
        });
    }
    let mut choice = |subgraph: usize| Choice {
        cost_ns: f64::from(rng.random_range(1..100)),
        inputs: (0..n_inputs[subgraph])
            .map(|_| LayoutId(rng.random_range(0..n_layouts)))
            .collect(),
        outputs: (0..n_outputs[subgraph])
            .map(|_| LayoutId(rng.random_range(0..n_layouts)))
            .collect(),
    };
    let subgraphs = (0..n_subgraphs).map(|s| (0..n_choices).map(|_| choice(s)).collect());
    Problem {
        subgraphs: subgraphs.collect(),
        values: all,
    }
}

/// Costs of all assignments, ascending.
fn brute_force(problem: &Problem) -> Vec<f64> {
    let mut all = vec![Vec::new()];
    for choices in &problem.subgraphs {
        let extend = |prefix: &Vec<usize>| {
            let prefix = prefix.clone();
            (0..choices.len()).map(move |idx| [&prefix[..], &[idx]].concat())
        };
        all = all.iter().flat_map(extend).collect();
    }
    let mut costs: Vec<f64> = all
        .iter()
        .filter_map(|choices| problem.cost_ns(choices))
        .collect();
    costs.retain(|cost| cost.is_finite());
    costs.sort_by(f64::total_cmp);
    costs
}

type Shape = &'static [(Option<usize>, &'static [Option<usize>])];

const CHAIN: Shape = &[
    (None, &[Some(0)]),
    (Some(0), &[Some(1)]),
    (Some(1), &[Some(2)]),
    (Some(2), &[Some(3)]),
    (Some(3), &[None]),
];
/// Two blocks with skips that the third and fifth subgraph add.
const RESIDUAL: Shape = &[
    (None, &[Some(0)]),
    (Some(0), &[Some(1), Some(2)]),
    (Some(1), &[Some(2)]),
    (Some(2), &[Some(3), Some(4)]),
    (Some(3), &[Some(4)]),
    (Some(4), &[None]),
];
/// Squeeze and excite: 1 is pooled by 2, scaled by 4 with what 3 says.
const EXCITE: Shape = &[
    (None, &[Some(0), Some(0)]),
    (Some(0), &[Some(1)]),
    (Some(1), &[Some(2), Some(4)]),
    (Some(2), &[Some(3)]),
    (Some(3), &[Some(4)]),
    (Some(4), &[None]),
];
/// Two heads, two outputs of one subgraph, a value that leaves the model and is used within it.
const HEADS: Shape = &[
    (None, &[Some(0)]),
    (None, &[Some(1)]),
    (Some(0), &[Some(1), Some(2), None, Some(3)]),
    (Some(0), &[Some(3)]),
    (Some(1), &[Some(4)]),
    (Some(2), &[None]),
    (Some(3), &[]),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_k_best_are_those_of_brute_force(
        shape in prop_oneof![Just(CHAIN), Just(RESIDUAL), Just(EXCITE), Just(HEADS)],
        n_choices in 1usize..6,
        n_layouts in 1u16..4,
        k in 1usize..12,
        seed: u64,
    ) {
        let problem = problem(5, n_choices, n_layouts, shape, &mut ChaCha8Rng::seed_from_u64(seed));
        let expected: Vec<f64> = brute_force(&problem).into_iter().take(k).collect();
        let composition = compose(&problem, k, MAX_ENTRIES).unwrap();
        prop_assert_eq!(composition.method, Method::Exact);
        let solutions = composition.solutions;
        let costs: Vec<f64> = solutions.iter().map(|solution| solution.cost_ns).collect();
        prop_assert_eq!(costs, expected);
        let distinct: std::collections::BTreeSet<_> = solutions.iter().map(|s| &s.choices).collect();
        prop_assert_eq!(distinct.len(), solutions.len());
        for solution in &solutions {
            prop_assert_eq!(problem.cost_ns(&solution.choices), Some(solution.cost_ns));
        }
    }
}

#[test]
fn a_value_is_converted_once_for_all_who_want_the_same_layout() {
    let choice = |inputs: &[u16], outputs: &[u16]| Choice {
        cost_ns: 1.0,
        inputs: inputs.iter().map(|&l| LayoutId(l)).collect(),
        outputs: outputs.iter().map(|&l| LayoutId(l)).collect(),
    };
    let problem = Problem {
        subgraphs: vec![
            vec![choice(&[], &[0])],
            vec![choice(&[1], &[])],
            vec![choice(&[1], &[]), choice(&[2], &[])],
        ],
        values: vec![Value {
            producer: port(0, 0),
            consumers: vec![port(1, 0), port(2, 0), End::Fixed(LayoutId(1))],
            conversion_ns: vec![vec![0.0, 10.0, 4.0]; 3],
        }],
    };
    let costs: Vec<f64> = compose(&problem, 9, MAX_ENTRIES)
        .unwrap()
        .solutions
        .iter()
        .map(|s| s.cost_ns)
        .collect();
    assert_eq!(costs, [13.0, 17.0]);
}

/// `n_blocks` blocks of three subgraphs, each with a skip over two of them.
fn residual_net(n_blocks: usize, n_choices: usize, rng: &mut ChaCha8Rng) -> Problem {
    let mut values: Vec<(Option<usize>, Vec<Option<usize>>)> = vec![(None, vec![Some(0)])];
    for block in 0..n_blocks {
        let first = 3 * block;
        values.push((Some(first), vec![Some(first + 1), Some(first + 3)]));
        values.push((Some(first + 1), vec![Some(first + 2)]));
        values.push((Some(first + 2), vec![Some(first + 3)]));
    }
    values.push((Some(3 * n_blocks), vec![None]));
    let values: Vec<(Option<usize>, &[Option<usize>])> = values
        .iter()
        .map(|(producer, consumers)| (*producer, &consumers[..]))
        .collect();
    problem(3 * n_blocks + 1, n_choices, 4, &values, rng)
}

#[test]
fn a_hundred_subgraphs_with_residuals_are_solved_exactly_within_a_tenth_of_the_limit() {
    let problem = residual_net(33, 12, &mut ChaCha8Rng::seed_from_u64(5));
    let composition = compose(&problem, 8, MAX_ENTRIES / 10).unwrap();
    assert_eq!(composition.method, Method::Exact);
    let costs: Vec<f64> = composition.solutions.iter().map(|s| s.cost_ns).collect();
    assert_eq!(costs.len(), 8);
    assert!(costs.is_sorted());
    assert_eq!(compose(&problem, 8, MAX_ENTRIES).unwrap(), composition);
}

#[test]
fn many_equally_good_solutions_do_not_slow_the_search_down() {
    let mut problem = residual_net(33, 6, &mut ChaCha8Rng::seed_from_u64(5));
    for choice in problem.subgraphs.iter_mut().flatten() {
        choice.cost_ns = 0.1;
        choice
            .inputs
            .iter_mut()
            .chain(&mut choice.outputs)
            .for_each(|l| *l = LayoutId(0));
    }
    let composition = compose(&problem, 20, MAX_ENTRIES).unwrap();
    assert_eq!(composition.solutions.len(), 20);
}

#[test]
fn an_infeasible_part_is_noticed_before_the_rest_is_searched() {
    let mut problem = residual_net(33, 6, &mut ChaCha8Rng::seed_from_u64(5));
    for choice in &mut problem.subgraphs[0] {
        choice.cost_ns = f64::INFINITY;
    }
    let composition = compose(&problem, 20, MAX_ENTRIES).unwrap();
    assert_eq!(composition.solutions, []);
    let unconnected = Choice {
        cost_ns: f64::INFINITY,
        inputs: vec![],
        outputs: vec![],
    };
    let mut problem = residual_net(33, 6, &mut ChaCha8Rng::seed_from_u64(5));
    problem.subgraphs.insert(100, vec![unconnected]);
    let composition = compose(&problem, 20, MAX_ENTRIES).unwrap();
    assert_eq!(composition.solutions, []);
}

#[test]
fn parts_come_near_the_optimum() {
    let mut ratios = Vec::new();
    for seed in 0..8 {
        let problem = residual_net(10, 8, &mut ChaCha8Rng::seed_from_u64(seed));
        let exact = compose(&problem, 3, MAX_ENTRIES).unwrap();
        let parts = compose(&problem, 3, 3000).unwrap();
        assert_eq!((exact.method, parts.method), (Method::Exact, Method::Parts));
        for (idx, solution) in parts.solutions.iter().enumerate() {
            assert_eq!(problem.cost_ns(&solution.choices), Some(solution.cost_ns));
            ratios.push(solution.cost_ns / exact.solutions[idx].cost_ns);
        }
    }
    assert_eq!(ratios.len(), 24);
    assert!(
        ratios.iter().all(|ratio| (1.0..1.1).contains(ratio)),
        "{ratios:?}"
    );
    assert!(ratios.iter().sum::<f64>() < 24.0 * 1.03, "{ratios:?}");
}

#[test]
fn problems_that_make_no_sense_are_refused() {
    let good = problem(5, 2, 2, CHAIN, &mut ChaCha8Rng::seed_from_u64(0));
    let check = |change: fn(&mut Problem), expected: &str| {
        let mut problem = good.clone();
        change(&mut problem);
        assert_eq!(
            compose(&problem, 1, MAX_ENTRIES).unwrap_err().to_string(),
            expected
        );
    };
    check(|p| p.subgraphs[3].clear(), "subgraph 3 has no choices");
    check(
        |p| p.subgraphs[4][0].cost_ns = f64::NAN,
        "a cost of subgraph 4 is not a number",
    );
    check(
        |p| p.values[1].conversion_ns[0][1] = f64::NEG_INFINITY,
        "a cost of value 1 is not a number",
    );
    check(
        |p| p.values[0].consumers.push(port(9, 1)),
        "value 0 ends at port 1 of subgraph 9, which does not exist",
    );
    check(
        |p| p.values[0].consumers.push(port(0, 1)),
        "value 0 ends at port 1 of subgraph 0, which does not exist",
    );
    check(
        |p| p.values[4].consumers[0] = End::Fixed(LayoutId(7)),
        "the conversion table of value 4 does not cover LayoutId(7)",
    );
    let nothing = compose(&Problem::default(), 3, MAX_ENTRIES).unwrap();
    assert_eq!(
        nothing.solutions,
        [Solution {
            choices: vec![],
            cost_ns: 0.0
        }]
    );
}
