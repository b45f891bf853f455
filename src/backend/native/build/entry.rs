//! The source of the library's entry point: the calls of a program, with a counter around each.

use std::fmt::Write as _;

use crate::backend::native::program::Program;

/// Reads the counter that steps are timed with.
const TICKS: &str = r#"
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn ticks() -> u64 { core::arch::x86_64::_mm_lfence(); core::arch::x86_64::_rdtsc() }
#[cfg(not(target_arch = "x86_64"))]
#[repr(C)]
struct Timespec { s: i64, ns: i64 }
#[cfg(not(target_arch = "x86_64"))]
extern "C" { fn clock_gettime(clock: i32, time: *mut Timespec) -> i32; }
#[cfg(not(target_arch = "x86_64"))]
unsafe fn ticks() -> u64 { let mut t = Timespec { s: 0, ns: 0 }; clock_gettime(1, &mut t); (t.s * 1_000_000_000 + t.ns) as u64 }
"#;

/// Where the threads of a program wait.
const BARRIER: &str = include_str!("../../../../templates/threads/barrier.rs");

/// What they do while they wait long.
const LET_OTHERS_GO: &str = "extern \"C\" { fn sched_yield() -> i32; }\n\
    fn let_others_go() { unsafe { sched_yield(); } }\n";

/// Renders the entry point.
pub(super) fn source(program: &Program) -> String {
    let is_shared = program.threads > 1;
    let mut text = String::from("#![no_std]\n#![allow(warnings)]\n");
    text.push_str("#[panic_handler]\nfn panic(_: &core::panic::PanicInfo) -> ! { loop {} }\n");
    // Parts of the compiler's own library refer to it, and nothing here unwinds.
    text.push_str("#[no_mangle]\nextern \"C\" fn rust_eh_personality() {}\n");
    text.push_str("extern \"C\" {\n");
    for (symbol, kernel) in &program.kernels {
        let parameters = kernel.parameters.iter().enumerate();
        let parameters: Vec<String> = parameters.map(|(i, ty)| format!("p{i}: {ty}")).collect();
        let _ = writeln!(text, "    fn {symbol}({});", parameters.join(", "));
    }
    text.push_str("}\n");
    text.push_str(TICKS);
    let parameters = if is_shared {
        // Inner documentation is for the head of a file.
        let barrier = BARRIER.replace("//!", "//");
        let _ = writeln!(text, "mod barrier {{\n{barrier}}}");
        text.push_str(LET_OTHERS_GO);
        ", thread: usize, barrier: &barrier::Barrier"
    } else {
        ""
    };
    let _ = write!(
        text,
        "#[no_mangle]\npub unsafe extern \"C\" fn metainfer_steps(inputs: *const *const u8, \
         outputs: *const *mut u8, a: *mut u8, w: *const u8, first: usize, last: usize, \
         t: *mut u64{parameters}) {{\n    let mut i = first;\n    while i < last {{\n        \
         if !t.is_null() {{ *t.add(i) = ticks(); }}\n        match i {{\n",
    );
    for (idx, step) in program.steps.iter().enumerate() {
        let call = if is_shared {
            let turn = step.turn(&step.symbol, program.threads);
            format!("{{ {turn} }}")
        } else {
            format!("{},", step.call(&step.symbol))
        };
        let _ = writeln!(text, "            {idx} => {call}");
    }
    // The time of the last step ends when all threads have done their part of it.
    let wait = if is_shared {
        format!("barrier.wait({}, let_others_go);\n    ", program.threads)
    } else {
        String::new()
    };
    let _ = write!(
        text,
        "            _ => {{}}\n        }}\n        i += 1;\n    }}\n    \
         {wait}if !t.is_null() {{ *t.add(last) = ticks(); }}\n}}\n",
    );
    text
}
