//! What kernels call outside of their own library.
#![expect(unsafe_code, reason = "the C library's functions are loaded here")]

use std::sync::OnceLock;

#[cfg(unix)]
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

/// Names under which systems keep the C library's mathematics, where it is a library of its own.
#[cfg(unix)]
const NAMES: [&str; 2] = ["libm.so.6", "libm.so"];

/// Makes the C library's mathematical functions known to all libraries that are loaded later, as
/// kernels are linked without any library. Where there is none of its own, they are known already.
pub fn load_math_library() {
    #[cfg(unix)]
    {
        static LOADED: OnceLock<Option<Library>> = OnceLock::new();
        LOADED.get_or_init(|| {
            NAMES.iter().find_map(|name| {
                // SAFETY: the system's own library, whose initialisers are those of the C library.
                unsafe { Library::open(Some(*name), RTLD_NOW | RTLD_GLOBAL) }.ok()
            })
        });
    }
}
