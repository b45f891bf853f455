//! The loop: the only place where the parts meet.

mod cancel;
mod request;

pub use cancel::{Cancellation, Canceller};
pub use request::Request;
