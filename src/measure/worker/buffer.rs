//! Memory that kernels work on.
#![expect(
    unsafe_code,
    reason = "kernels need memory of an alignment that no safe container promises"
)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::slice;

use super::refusal::Refusal;
use crate::label::Outcome;

/// Alignment: a page, so that a buffer lies the same in the cache sets each time.
const ALIGNMENT: usize = 4096;

/// Zeroed bytes behind the end, which vector loads may touch.
const SLACK: usize = 4096;

/// Zeroed memory, aligned to a page.
#[derive(Debug)]
pub(super) struct Buffer {
    start: NonNull<u8>,
    n_bytes: usize,
    layout: Layout,
}

impl Buffer {
    /// Allocates zeroed memory.
    pub(super) fn zeroed(n_bytes: usize) -> Result<Self, Refusal> {
        let refusal = || Refusal {
            outcome: Outcome::OutOfMemory,
            message: format!("cannot allocate {n_bytes} bytes"),
        };
        let size = n_bytes.checked_add(SLACK).ok_or_else(refusal)?;
        let layout = Layout::from_size_align(size, ALIGNMENT).map_err(|_| refusal())?;
        // SAFETY: the size is at least `SLACK`, so it is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        Ok(Self {
            start: NonNull::new(start).ok_or_else(refusal)?,
            n_bytes,
            layout,
        })
    }

    /// Allocates a copy of bytes.
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
        // SAFETY: as for `bytes`; the alignment suffices and every pattern of bits is an f32.
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
        // SAFETY: allocated with this layout, and freed only here.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
