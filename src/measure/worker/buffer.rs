//! Memory that kernels work on.
#![expect(
    unsafe_code,
    reason = "kernels need pages of their own, which no safe container promises"
)]

use std::ptr::{self, NonNull};
use std::slice;

use super::refusal::Refusal;
use crate::backend::HUGE_PAGES_FROM;

/// Zeroed bytes behind the end, which vector loads may touch.
const SLACK: usize = 4096;

/// Zeroed memory that starts at a page.
///
/// It comes from the system, not from the allocator: an allocator hands out the pages again that
/// were just given back to it, and always the same ones to the same user.
#[derive(Debug)]
pub(super) struct Buffer {
    start: NonNull<u8>,
    n_bytes: usize,
    n_mapped: usize,
    is_arena: bool,
}

impl Buffer {
    /// Takes zeroed memory.
    pub(super) fn zeroed(n_bytes: usize) -> Result<Self, Refusal> {
        Self::new(n_bytes, false)
    }

    /// Takes zeroed memory for the values of a run, on pages as a deployed model has them: huge ones
    /// from [`HUGE_PAGES_FROM`] on.
    pub(super) fn arena(n_bytes: usize) -> Result<Self, Refusal> {
        Self::new(n_bytes, true)
    }

    fn new(n_bytes: usize, is_arena: bool) -> Result<Self, Refusal> {
        let refusal = || Refusal::out_of_memory(format!("cannot allocate {n_bytes} bytes"));
        let n_mapped = n_bytes.checked_add(SLACK).ok_or_else(refusal)?;
        // SAFETY: asks for new memory, so nothing that exists is touched.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                n_mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(refusal());
        }
        #[cfg(target_os = "linux")]
        if is_arena && n_bytes >= HUGE_PAGES_FROM {
            // SAFETY: advice on memory that is ours; a system that does not take it says so, and
            // the pages are small.
            unsafe { libc::madvise(start, n_mapped, libc::MADV_HUGEPAGE) };
        }
        Ok(Self {
            start: NonNull::new(start.cast()).ok_or_else(refusal)?,
            n_bytes,
            n_mapped,
            is_arena,
        })
    }

    /// Takes memory of the same kind on other pages, with what is in this one.
    pub(super) fn moved(&self) -> Result<Self, Refusal> {
        let mut buffer = Self::new(self.n_bytes, self.is_arena)?;
        buffer.bytes_mut().copy_from_slice(self.bytes());
        Ok(buffer)
    }

    /// Takes memory with a copy of bytes.
    pub(super) fn copy_of(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut buffer = Self::zeroed(bytes.len())?;
        buffer.bytes_mut().copy_from_slice(bytes);
        Ok(buffer)
    }

    pub(super) fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is ours, initialised, and at least `n_bytes` long.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.n_bytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`, and `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.n_bytes) }
    }

    /// The memory as numbers; a rest of less than four bytes is left out.
    pub(super) fn f32s(&self) -> &[f32] {
        // SAFETY: as for `bytes`; a page is aligned for f32, and every pattern of bits is one.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.n_bytes / 4) }
    }

    /// The memory as numbers; a rest of less than four bytes is left out.
    pub(super) fn f32s_mut(&mut self) -> &mut [f32] {
        // SAFETY: as for `f32s`, and `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.n_bytes / 4) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and unmapped only here.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.n_mapped) };
    }
}
