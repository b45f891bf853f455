//! Programs of the native backend, as text that stands alone.

use std::fmt::Write as _;

use super::Program;
use crate::backend::native::program;

impl Program {
    /// Takes over a program of the native backend, for a model and a target with these names.
    pub fn from_native(
        model: &str,
        target: &str,
        opt_level: &str,
        program: &program::Program,
    ) -> Self {
        Self {
            model: model.to_owned(),
            target: target.to_owned(),
            source: source(program),
            isa: program.isa,
            features: program.features.iter().cloned().collect(),
            opt_level: opt_level.to_owned(),
            threads: program.threads,
            arena_bytes: program.arena_bytes,
            fills: program.fills.clone(),
            weights: program.weights.clone(),
            inputs: program.inputs.clone(),
            outputs: program.outputs.clone(),
        }
    }
}

/// Renders a module for each kernel, and a function that calls them in order, or as much of it as
/// each of several threads does.
fn source(program: &program::Program) -> String {
    let is_shared = program.threads > 1;
    let (import, parameters) = if is_shared {
        (
            "use std::thread::yield_now as let_others_go;\n",
            ", thread: usize, barrier: &crate::barrier::Barrier",
        )
    } else {
        ("", "")
    };
    let mut text = format!(
        "use core::ffi::c_void;\n{import}\n\
         pub(crate) unsafe fn run(inputs: *const *const c_void, outputs: *const *mut c_void, \
         a: *mut u8, w: *const u8{parameters}) {{\n    \
         let inputs = inputs.cast::<*const u8>();\n    \
         let outputs = outputs.cast::<*mut u8>();\n",
    );
    for step in &program.steps {
        let symbol = &step.symbol;
        let _ = writeln!(text, "    // {}", step.name.escape_debug());
        let function = format!("{symbol}::{symbol}");
        let call = if is_shared {
            step.turn(&function, program.threads)
        } else {
            format!("{};", step.call(&function))
        };
        let _ = writeln!(text, "    {call}");
    }
    text.push_str("}\n");
    for (symbol, kernel) in &program.kernels {
        let _ = writeln!(text, "\nmod {symbol} {{\n{}}}", kernel.source);
    }
    text
}
