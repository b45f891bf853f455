//! One case from its file to a verdict.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use anyhow::Result;
use metainfer::backend::native::Native;
use metainfer::backend::native::program::Program;
use metainfer::backend::{Artifact, Backend, BackendError};
use metainfer::graph::{Graph, InferError, Partition, ValueId, partition};
use metainfer::onnx::{self, LoadOptions, LoadedModel, Problem};
use metainfer::space::Mapping;

use super::bind::bind;
use super::cache::{self, Cache};
use super::compare::difference;
use super::runner::Runner;
use super::subsets;
use super::suite::Case;
use super::values::{self, Values};
use super::verdict::{Form, Stage, Verdict};

/// What cases are tried with.
pub(super) struct Bench<'a> {
    /// The backend.
    pub(super) native: &'a Native,
    /// What it built before.
    pub(super) cache: &'a Cache,
    /// Runs what it builds.
    pub(super) runner: Runner,
    /// A file for models with bound inputs.
    pub(super) scratch: PathBuf,
}

/// A model that can be built, or that loading computed as a whole.
struct Ready {
    graph: Graph,
    partition: Partition,
    /// `None` if all outputs are constants.
    program: Option<Program>,
}

/// Why a model is not ready.
struct Obstacle {
    kind: ObstacleKind,
    reason: String,
}

#[derive(Clone, Copy, PartialEq)]
enum ObstacleKind {
    /// A shape depends on the elements of something that is no constant, or on there being none.
    DataDependent,
    /// Loading refuses it.
    Unsupported,
    /// The backend has no kernel.
    NoKernel,
    /// A valid model is taken for a broken one, or something panics.
    Broken(Stage),
}

/// The inputs of a case, in the order in which the model has them.
type Inputs = Vec<(String, Values)>;
/// Outputs by name.
type Outputs = BTreeMap<String, Values>;

impl Bench<'_> {
    /// Tries a case on all its data.
    ///
    /// # Errors
    /// Only if files of the case cannot be read or written.
    pub(super) fn judge(&mut self, case: &Case) -> Result<Verdict> {
        if let Some(reason) = &case.not_covered {
            return Ok(Verdict::not_covered(Stage::Data, reason));
        }
        let mut verdict = Verdict::passed(Form::default());
        for set in 0..case.sets {
            verdict = self.judge_set(case, set)?;
            if verdict.reason.is_some() {
                break;
            }
        }
        Ok(verdict)
    }

    fn judge_set(&mut self, case: &Case, set: usize) -> Result<Verdict> {
        let model = fs::read(case.model())?;
        let mut inputs = values::read(&case.inputs_file(set))?;
        let inputs: Inputs = case
            .inputs
            .iter()
            .filter_map(|name| inputs.remove_entry(name))
            .collect();
        let expected = values::read(&case.outputs_file(set))?;
        let (ready, mut form) = match self.open(&model, &inputs)? {
            Ok(opened) => opened,
            Err(Obstacle { kind, reason }) => {
                return Ok(match kind {
                    ObstacleKind::Broken(stage) => Verdict::failed(stage, reason, Form::default()),
                    ObstacleKind::NoKernel => Verdict::not_covered(Stage::Build, reason),
                    _ => Verdict::not_covered(Stage::Load, reason),
                });
            }
        };
        let actual = if let Some(program) = &ready.program {
            let artifact = match self.build(&ready, program) {
                Ok(artifact) => artifact,
                Err(error) => {
                    return Ok(Verdict::failed(Stage::Build, format!("{error:#}"), form));
                }
            };
            let is_right = |actual: &Outputs| wrong(case, actual, &expected).is_none();
            match self.runner.run(&artifact, &case.inputs_file(set), is_right) {
                Ok(actual) => actual,
                Err(reason) => return Ok(Verdict::failed(Stage::Run, reason, form)),
            }
        } else {
            form.is_folded = true;
            constants(&ready.graph)
        };
        Ok(match wrong(case, &actual, &expected) {
            Some(reason) => Verdict::failed(Stage::Compare, reason, form),
            None => Verdict::passed(form),
        })
    }

    /// Gets a model ready with as few inputs bound as will do.
    ///
    /// Nothing is bound at first. Where a shape depends on elements, the fewest inputs are bound
    /// that give it one; where the backend has no kernel then, the fewest with which it has one,
    /// as long as something is left for the kernel to do.
    fn open(&self, model: &[u8], inputs: &Inputs) -> Result<Result<(Ready, Form), Obstacle>> {
        let mut shapes = Vec::new();
        let mut opened = self.attempt(model, inputs, &shapes)?;
        if is(&opened, ObstacleKind::DataDependent) {
            for bound in subsets::larger(inputs.len(), &shapes) {
                let attempt = self.attempt(model, inputs, &bound)?;
                if !is(&attempt, ObstacleKind::DataDependent) {
                    (shapes, opened) = (bound, attempt);
                    break;
                }
            }
        }
        let mut all = shapes.clone();
        if is(&opened, ObstacleKind::NoKernel) {
            for bound in subsets::larger(inputs.len(), &shapes) {
                let attempt = self.attempt(model, inputs, &bound)?;
                let runs =
                    |ready: &Ready| ready.program.is_some() && !ready.graph.inputs.is_empty();
                if attempt.as_ref().is_ok_and(runs) {
                    (all, opened) = (bound, attempt);
                    break;
                }
            }
        }
        let names = |chosen: &mut dyn Iterator<Item = usize>| {
            chosen.map(|idx| inputs[idx].0.clone()).collect::<Vec<_>>()
        };
        let form = Form {
            shape_inputs: names(&mut shapes.iter().copied()),
            weight_inputs: names(&mut all.iter().copied().filter(|idx| !shapes.contains(idx))),
            is_folded: false,
        };
        Ok(opened.map(|ready| (ready, form)))
    }

    /// Gets a model ready with some inputs bound to the case's data.
    fn attempt(
        &self,
        model: &[u8],
        inputs: &Inputs,
        bound: &[usize],
    ) -> Result<Result<Ready, Obstacle>> {
        let values: Vec<(&str, &Values)> = bound
            .iter()
            .map(|&idx| (inputs[idx].0.as_str(), &inputs[idx].1))
            .collect();
        fs::write(&self.scratch, bind(model, &values)?)?;
        let open = inputs.iter().enumerate();
        let open = open.filter(|(idx, _)| !bound.contains(idx));
        let options = LoadOptions {
            input_shapes: open
                .map(|(_, (name, values))| (name.clone(), values.shape.clone()))
                .collect(),
        };
        let attempt = || {
            let later: Vec<&str> = inputs
                .iter()
                .skip(1)
                .map(|(name, _)| name.as_str())
                .collect();
            self.ready(&options, &later)
        };
        Ok(
            catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|panic| {
                Err(Obstacle {
                    kind: ObstacleKind::Broken(Stage::Load),
                    reason: format!("panics: {}", text_of(&*panic)),
                })
            }),
        )
    }

    /// Loads the model in the file and assembles its program; `later` are the inputs after the first.
    fn ready(&self, options: &LoadOptions, later: &[&str]) -> Result<Ready, Obstacle> {
        let LoadedModel { graph, .. } =
            onnx::load(&self.scratch, options).map_err(|error| Obstacle {
                kind: kind_of(&error.problem, later),
                reason: chain(&*error.problem),
            })?;
        let partition = partition(&graph);
        let is_constant = |id: &ValueId| graph.constant(*id).is_some();
        if graph.outputs.iter().all(is_constant) {
            return Ok(Ready {
                graph,
                partition,
                program: None,
            });
        }
        let program = match self
            .native
            .program(&graph, &partition, None, &Mapping::default())
        {
            Ok(Ok(program)) => program,
            Ok(Err(failure)) => {
                return Err(Obstacle {
                    kind: ObstacleKind::Broken(Stage::Build),
                    reason: failure.message,
                });
            }
            Err(BackendError::NotCovered { missing, .. }) => {
                return Err(Obstacle {
                    kind: ObstacleKind::NoKernel,
                    reason: missing.join("; "),
                });
            }
            Err(error) => {
                return Err(Obstacle {
                    kind: ObstacleKind::Broken(Stage::Build),
                    reason: chain(&error),
                });
            }
        };
        Ok(Ready {
            graph,
            partition,
            program: Some(program),
        })
    }

    fn build(&self, ready: &Ready, program: &Program) -> Result<Artifact> {
        if let Some(artifact) = self.cache.find(program) {
            return Ok(artifact);
        }
        let prepared = self.native.prepare(&ready.graph, &ready.partition)?;
        let built = cache::build(
            &*prepared,
            &self.native.default_options(),
            ready.partition.subgraphs.len(),
        )?;
        self.cache.keep(program, &built)
    }
}

/// Says which outputs are wrong, and how.
fn wrong(case: &Case, actual: &Outputs, expected: &Outputs) -> Option<String> {
    let wrong = expected.iter().filter_map(|(name, expected)| {
        let difference = match actual.get(name) {
            Some(actual) => difference(actual, expected, case.tolerance())?,
            None => "is missing".to_owned(),
        };
        Some(format!("`{name}` {difference}"))
    });
    let wrong: Vec<String> = wrong.collect();
    (!wrong.is_empty()).then(|| wrong.join("; "))
}

fn constants(graph: &Graph) -> Outputs {
    let outputs = graph.outputs.iter().filter_map(|&id| {
        let tensor = graph.constant(id)?;
        Some((graph.value(id).name.clone(), tensor.into()))
    });
    outputs.collect()
}

fn is<T>(result: &Result<T, Obstacle>, kind: ObstacleKind) -> bool {
    result.as_ref().is_err_and(|obstacle| obstacle.kind == kind)
}

/// Tells what is not supported from what is taken for broken: the suite's models are valid. Of the
/// inputs that have no elements, those after the first say what is to be done (no axes, a type).
fn kind_of(problem: &Problem, later: &[&str]) -> ObstacleKind {
    match problem {
        Problem::ZeroSized { value, .. } if later.contains(&value.as_str()) => {
            ObstacleKind::DataDependent
        }
        Problem::Mismatch {
            source: InferError::DataDependent(_),
            ..
        } => ObstacleKind::DataDependent,
        Problem::UnsupportedOperator { detail, .. } if detail.contains("depends on the data") => {
            ObstacleKind::DataDependent
        }
        Problem::UnsupportedOperator { .. }
        | Problem::UnsupportedType { .. }
        | Problem::Opset { .. }
        | Problem::ZeroSized { .. } => ObstacleKind::Unsupported,
        _ => ObstacleKind::Broken(Stage::Load),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// Returns what a panic says.
fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use metainfer::backend::native::NativeOptions;
    use metainfer::device::Isa;
    use metainfer::graph::{DType, Node, Shape, Value};

    use super::*;

    /// Gets a model of a chain of operators ready, of which the first one reads all inputs; says
    /// which were bound, and whether there is a program.
    fn check(operators: &[&str], inputs: &[(&str, Values)]) -> (Form, bool) {
        let dir = tempfile::tempdir().unwrap();
        let native = Native::open(&NativeOptions {
            isa: Isa::Portable,
            threads: 1,
            rustc: "rustc".into(),
            dir: dir.path().join("native"),
            opt_level: 1,
            timeout: std::time::Duration::from_mins(1),
            templates: BTreeMap::new(),
        })
        .unwrap();
        let bench = Bench {
            native: &native,
            cache: &Cache::open(&native).unwrap(),
            runner: Runner::new(dir.path().join("outputs")).unwrap(),
            scratch: dir.path().join("model.onnx"),
        };
        let inputs: Inputs = inputs
            .iter()
            .map(|(name, values)| ((*name).to_owned(), values.clone()))
            .collect();
        let model = model(operators, &inputs);
        let Ok((ready, form)) = bench.open(&model, &inputs).unwrap() else {
            panic!("not ready");
        };
        (form, ready.program.is_some())
    }

    fn model(operators: &[&str], inputs: &Inputs) -> Vec<u8> {
        let mut graph = Graph {
            name: String::new(),
            opset: 14,
            values: Vec::new(),
            nodes: Vec::new(),
            inputs: (0..inputs.len()).map(ValueId).collect(),
            outputs: vec![ValueId(inputs.len() + operators.len() - 1)],
        };
        let mut value = |name: String, dtype, dims: &[usize]| {
            graph.values.push(Value {
                name,
                dtype,
                shape: Shape(dims.to_vec()),
                data: None,
            });
        };
        for (name, values) in inputs {
            value(name.clone(), values.dtype, &values.shape);
        }
        let mut read: Vec<_> = (0..inputs.len()).map(|idx| Some(ValueId(idx))).collect();
        for (idx, op) in operators.iter().enumerate() {
            value(format!("y{idx}"), DType::F32, &[]);
            let written = vec![Some(ValueId(inputs.len() + idx))];
            graph.nodes.push(Node {
                name: String::new(),
                op: (*op).to_owned(),
                domain: String::new(),
                attributes: BTreeMap::new(),
                inputs: std::mem::replace(&mut read, written.clone()),
                outputs: written,
            });
        }
        onnx::encode(&graph).unwrap()
    }

    fn f32s(shape: &[usize], numbers: &[f32]) -> Values {
        Values {
            dtype: DType::F32,
            shape: shape.to_vec(),
            bytes: numbers.iter().flat_map(|n| n.to_le_bytes()).collect(),
        }
    }

    #[test]
    fn only_inputs_that_shapes_depend_on_are_bound() {
        let shape = Values {
            dtype: DType::I64,
            shape: vec![2],
            bytes: [3_i64, 2].iter().flat_map(|n| n.to_le_bytes()).collect(),
        };
        let (form, has_program) = check(
            &["Reshape", "Relu"],
            &[("x", f32s(&[2, 3], &[1.0; 6])), ("shape", shape)],
        );
        assert_eq!(form.shape_inputs, ["shape"]);
        assert!(form.weight_inputs.is_empty() && has_program);
    }

    #[test]
    fn an_input_of_no_elements_is_known_without_being_bound() {
        let axes = Values {
            dtype: DType::I64,
            shape: vec![0],
            bytes: Vec::new(),
        };
        let later = [("x", f32s(&[2, 3], &[1.0; 6])), ("axes", axes)];
        let (form, _) = check(&["Unsqueeze", "Relu"], &later);
        assert!(form.shape_inputs.is_empty());
        let empty = Problem::ZeroSized {
            value: "x".to_owned(),
            shape: Shape(vec![0]),
        };
        let is_refused = kind_of(&empty, &["axes"]) == ObstacleKind::Unsupported;
        assert!(is_refused);
    }

    #[test]
    fn nothing_is_bound_where_nothing_must_be() {
        let x = f32s(&[2, 3], &[1.0; 6]);
        let (form, has_program) = check(&["Add", "Relu"], &[("a", x.clone()), ("b", x)]);
        assert_eq!(form, Form::default());
        assert!(has_program);
    }

    #[test]
    fn a_model_without_a_shape_otherwise_is_computed_as_a_whole() {
        let bounds = [("start", 1.0), ("limit", 5.0), ("delta", 2.0)];
        let inputs = bounds.map(|(name, number)| (name, f32s(&[], &[number])));
        let (form, has_program) = check(&["Range", "Relu"], &inputs);
        assert_eq!(form.shape_inputs, ["start", "limit", "delta"]);
        assert!(!has_program);
    }

    #[test]
    fn outputs_are_missing_wrong_or_right() {
        let case = Case::default();
        let outputs = |number| Outputs::from([("y".to_owned(), f32s(&[1], &[number]))]);
        assert_eq!(wrong(&case, &outputs(1.0), &outputs(1.0)), None);
        let missing = wrong(&case, &Outputs::new(), &outputs(1.0)).unwrap();
        assert_eq!(missing, "`y` is missing");
        assert!(wrong(&case, &outputs(2.0), &outputs(1.0)).is_some());
    }
}
