//! What the hardware is, as data: profiles, instruction sets, fingerprints, targets.
//!
//! Profiles come from `templates/devices/*.toml`, from a user's file, or from probing this
//! machine. Nothing here runs or measures anything except [`probe`], which reads the host.

mod profile;
mod target;
mod template;

pub mod probe;

pub use profile::{DeviceProfile, Isa};
pub use target::{Obstacle, Target, adopt};
pub use template::{ProfileError, parse, shipped};
