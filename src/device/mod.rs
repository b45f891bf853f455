//! What the hardware is, as data: profiles, instruction sets, fingerprints.
//!
//! Profiles come from `templates/devices/*.toml`, from a user's file, or from probing this
//! machine. Nothing here runs or measures anything except `probe`, which reads the host.

mod profile;

pub use profile::{DeviceProfile, Isa};
