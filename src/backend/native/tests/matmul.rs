//! Products of matrices of f32: every mapping of the space gives what the definition gives.

use std::collections::{BTreeMap, BTreeSet};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::kernels::{Bench, apply, isas};
use super::shares::{check_threads, divide};
use crate::backend::native::kernels::Share;
use crate::backend::native::space::{Spaces, default_mapping, shared};
use crate::backend::native::spec::{Epilogue, Kind, MatMul, Matrix, Operation, Source};
use crate::device::{Isa, probe};
use crate::graph::{Tensor, ValueId};
use crate::space::Mapping;

/// A product to be made, and where its right operand and what is added are from.
#[derive(Debug, Clone)]
struct Case {
    /// Matrices, rows, inner extent, columns.
    extents: [usize; 4],
    right: Right,
    is_added: bool,
    has_residual: bool,
}

#[derive(Debug, Clone, Copy)]
struct Right {
    is_known: bool,
    /// Whether it is stored `[n, k]`.
    is_transposed: bool,
}

fn cases() -> Vec<Case> {
    let case = |extents, kind: usize| Case {
        extents,
        right: Right {
            is_known: kind.is_multiple_of(2),
            is_transposed: kind.is_multiple_of(3),
        },
        is_added: kind.is_multiple_of(4),
        has_residual: kind.is_multiple_of(5),
    };
    vec![
        case([1, 1, 1, 1], 1),
        case([1, 1, 70, 37], 2),
        case([1, 17, 130, 48], 4),
        case([1, 40, 65, 33], 20),
        case([1, 40, 300, 32], 1),
        case([3, 9, 20, 64], 1),
        case([2, 13, 130, 20], 3),
        case([2, 5, 7, 100], 5),
        case([2, 3, 530, 16], 6),
    ]
}

impl Case {
    /// Returns the product of operands that are not there yet.
    fn product(&self) -> MatMul {
        let [matrices, m, k, n] = self.extents;
        let matrix = |row, column, next| Matrix {
            row,
            column,
            batch: vec![next],
        };
        let (row, column) = if self.right.is_transposed {
            (1, k)
        } else {
            (n, 1)
        };
        MatMul {
            extents: [m, k, n],
            batch: vec![matrices],
            lhs: matrix(k, 1, m * k),
            rhs: matrix(row, column, if self.right.is_known { 0 } else { k * n }),
            result: matrix(n, 1, m * n),
            addend: self.is_added.then(|| (matrix(0, 1, 0), 0.5)),
            alpha: if self.is_added { 1.25 } else { 1.0 },
            epilogue: if self.has_residual {
                vec![Epilogue::AddTensor, Epilogue::Silu]
            } else {
                vec![Epilogue::Relu]
            },
            operands: vec![Source::Value(ValueId(0)); 2],
            output: ValueId(1),
            quantized: None,
        }
    }

    /// Adds the product with random operands, and what it must give.
    fn add(&self, bench: &mut Bench, mapping: &Mapping) {
        let [matrices, m, k, n] = self.extents;
        let mut matmul = self.product();
        let x = bench.input([matrices, m, k]);
        let a = bench.data(x).to_vec();
        let (right, b) = if self.right.is_known {
            let b = bench.numbers(k * n);
            (Source::Constant(Tensor::from_f32(b.clone()).into()), b)
        } else {
            let right = bench.input([matrices, k, n]);
            (Source::Value(right), bench.data(right).to_vec())
        };
        matmul.operands = vec![Source::Value(x), right];
        let added = bench.numbers(n);
        if self.is_added {
            let row = Tensor::from_f32(added.clone());
            matmul.operands.push(Source::Constant(row.into()));
        }
        let residual = self.has_residual.then(|| bench.input([matrices, m, n]));
        matmul.operands.extend(residual.map(Source::Value));
        let mut results = Vec::new();
        for (i, row, column) in (0..matrices)
            .flat_map(|i| (0..m).flat_map(move |row| (0..n).map(move |column| (i, row, column))))
        {
            let b = &b[i * matmul.rhs.batch[0]..];
            let terms = (0..k).map(|at| {
                let right = b[at * matmul.rhs.row + column * matmul.rhs.column];
                f64::from(a[(i * m + row) * k + at]) * f64::from(right)
            });
            let mut v = terms.sum::<f64>() as f32 * matmul.alpha;
            if self.is_added {
                v += 0.5 * added[column];
            }
            let other = residual.map(|id| bench.data(id)[results.len()]);
            let steps = matmul.epilogue.iter();
            results.push(steps.fold(v, |v, step| apply(step, v, other)));
        }
        let y = bench.value([matrices, m, n]);
        matmul.output = y;
        bench.output(y, results);
        bench.push(Kind::MatMul(matmul), x, y, mapping.clone());
    }
}

fn operation(matmul: MatMul) -> Operation {
    Operation {
        subgraph: 0,
        name: "test".to_owned(),
        kind: Kind::MatMul(matmul),
        x: ValueId(0),
        y: ValueId(1),
    }
}

/// Adds each case with some mappings of its space. Among all of them is each value of what is not a
/// number of the tile.
fn products(isa: Isa, threads: usize) -> Bench {
    let spaces = Spaces::new(&BTreeMap::new(), threads).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(isa as u64);
    let mut bench = Bench::new();
    let mut count = 0;
    let mut seen = BTreeSet::new();
    for case in cases() {
        let space = spaces.of(isa, &operation(case.product()));
        let space = space.unwrap().unwrap();
        let mut mappings = vec![space.sample(&mut rng).unwrap()];
        for param in space.params() {
            let is_choice = ["depth", "order", "right", "unroll", "share"].contains(&&*param.name);
            for value in param.values.iter().filter(|_| is_choice) {
                count += 1;
                if seen.insert((param.name.clone(), value.clone())) || count % 3 == 0 {
                    let fixed = space.fixed(&[(&*param.name, value.clone())]).unwrap();
                    mappings.extend(fixed.sample(&mut rng));
                }
            }
        }
        for mapping in mappings {
            assert_eq!(space.is_valid(&mapping), Ok(()));
            case.add(&mut bench, &mapping);
        }
    }
    bench
}

#[test]
fn mappings_of_the_space_give_what_the_definition_gives() {
    for isa in isas() {
        products(isa, 1).check(isa);
    }
}

#[test]
fn products_in_parts_and_on_threads_give_what_one_call_gives() {
    let isa = probe::host().isa;
    let bench = products(isa, 2);
    for share in [Share::Rows, Share::Channels] {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let mut program = bench.assemble_shared(isa, share).unwrap();
        assert!(divide(&mut program, &mut rng) >= 20);
        bench.check_program(isa, &program);
    }
    let mut large = Bench::new();
    let case = Case {
        extents: [1, 96, 128, 160],
        right: Right {
            is_known: true,
            is_transposed: false,
        },
        is_added: true,
        has_residual: false,
    };
    for word in ["rows", "channels"] {
        let untuned = default_mapping(isa, &operation(case.product()));
        case.add(&mut large, &untuned.with("share", word));
    }
    check_threads(&large, 2);
}

#[test]
fn untuned_products_are_in_the_space() {
    let check = |isa: Isa, threads, extents| {
        let case = Case {
            extents,
            right: Right {
                is_known: extents[3].is_multiple_of(3),
                is_transposed: false,
            },
            is_added: false,
            has_residual: false,
        };
        let operation = operation(case.product());
        let spaces = Spaces::new(&BTreeMap::new(), threads).unwrap();
        let space = spaces.of(isa, &operation).unwrap().unwrap();
        let mapping = shared(threads, &operation, default_mapping(isa, &operation));
        let valid = space.is_valid(&mapping);
        assert_eq!(valid, Ok(()), "{isa} {extents:?}: {mapping}");
    };
    for isa in Isa::ALL {
        for m in [1, 2, 3, 7, 13, 40, 128] {
            for n in [1, 3, 5, 16, 33, 64, 80, 100, 384] {
                check(isa, 1, [1, m, 40, n]);
            }
        }
        check(isa, 2, [12, 128, 1536, 384]);
    }
}

#[test]
fn products_without_elements_have_nothing_to_choose() {
    let spaces = Spaces::new(&BTreeMap::new(), 1).unwrap();
    for extents in [[1, 0, 3, 4], [1, 2, 0, 4], [1, 2, 3, 0]] {
        let case = Case {
            extents,
            right: Right {
                is_known: false,
                is_transposed: false,
            },
            is_added: false,
            has_residual: false,
        };
        let operation = operation(case.product());
        for isa in Isa::ALL {
            let space = spaces.of(isa, &operation).unwrap();
            assert!(space.is_none(), "{isa} {extents:?}");
            let untuned = shared(2, &operation, default_mapping(isa, &operation));
            assert_eq!(untuned, Mapping::default());
        }
    }
    // What is summed over nothing is zero.
    let mut bench = Bench::new();
    let case = Case {
        extents: [1, 2, 0, 5],
        right: Right {
            is_known: false,
            is_transposed: false,
        },
        is_added: true,
        has_residual: false,
    };
    case.add(&mut bench, &Mapping::default());
    bench.check(Isa::Portable);
}
