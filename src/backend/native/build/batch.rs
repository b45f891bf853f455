//! Kernels that are compiled in one rustc call.

use std::fmt::Write as _;

use crate::backend::native::program::KernelSource;
use crate::digest::{Digest, Encoder};

/// A kernel to compile.
pub(super) type Named<'a> = (&'a str, &'a KernelSource);

/// Returns the source of a crate that defines the kernels under their names.
pub(super) fn source(kernels: &[Named<'_>]) -> String {
    let mut text = String::from("#![no_std]\n#![allow(warnings)]\n");
    for (symbol, kernel) in kernels {
        let exported = kernel.source.replace(
            &format!("pub unsafe extern \"C\" fn {symbol}"),
            &format!("#[no_mangle]\npub unsafe extern \"C\" fn {symbol}"),
        );
        let _ = writeln!(text, "mod m_{symbol} {{\n{exported}\n}}");
    }
    text
}

/// Returns a name for the object of these kernels.
pub(super) fn digest(kernels: &[Named<'_>]) -> Digest {
    let mut encoder = Encoder::new("metainfer object v1");
    for (_, kernel) in kernels {
        encoder.digest(&kernel.digest);
    }
    encoder.finish()
}

/// Splits kernels into `n` batches of about equal size.
pub(super) fn split<'a>(mut kernels: Vec<Named<'a>>, n: usize) -> Vec<Vec<Named<'a>>> {
    kernels.sort_by_key(|(symbol, kernel)| (std::cmp::Reverse(kernel.source.len()), *symbol));
    let mut batches: Vec<(usize, Vec<Named<'a>>)> = vec![(0, Vec::new()); n.max(1)];
    for kernel in kernels {
        if let Some(batch) = batches.iter_mut().min_by_key(|(size, _)| *size) {
            batch.0 += kernel.1.source.len();
            batch.1.push(kernel);
        }
    }
    batches
        .into_iter()
        .map(|(_, batch)| batch)
        .filter(|batch| !batch.is_empty())
        .collect()
}
