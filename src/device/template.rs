//! Device profiles as files: reading them, and the ones shipped with the tool.

use super::{DeviceProfile, Isa};

/// A text that is not a device profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The text is not TOML, or a key is missing, unknown or of the wrong type.
    #[error("line {line}: {message}")]
    Syntax {
        /// Line of the fault, from 1.
        line: usize,
        /// What is wrong, naming the key.
        message: String,
    },
    /// A key has a value that no device has.
    #[error("`{key}` must be {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

const TEMPLATES: [(Isa, &str); 6] = [
    (
        Isa::Portable,
        include_str!("../../templates/devices/portable.toml"),
    ),
    (
        Isa::X86V2,
        include_str!("../../templates/devices/x86-64-v2.toml"),
    ),
    (
        Isa::X86V3,
        include_str!("../../templates/devices/x86-64-v3.toml"),
    ),
    (
        Isa::X86V4,
        include_str!("../../templates/devices/x86-64-v4.toml"),
    ),
    (
        Isa::X86V4Vnni,
        include_str!("../../templates/devices/x86-64-v4-vnni.toml"),
    ),
    (
        Isa::Neon,
        include_str!("../../templates/devices/aarch64-neon.toml"),
    ),
];

/// Reads a device profile.
///
/// # Errors
/// [`ProfileError`] naming the line or the key.
pub fn parse(text: &str) -> Result<DeviceProfile, ProfileError> {
    let profile: DeviceProfile = toml_edit::de::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start).min(text.len());
        ProfileError::Syntax {
            line: text.get(..offset).unwrap_or(text).matches('\n').count() + 1,
            message: error.message().trim().to_owned(),
        }
    })?;
    check(&profile)?;
    Ok(profile)
}

/// Returns the profiles shipped with the tool, one for each instruction set, weakest first.
pub fn shipped() -> Vec<DeviceProfile> {
    TEMPLATES
        .iter()
        .filter_map(|(_, text)| parse(text).ok())
        .collect()
}

fn check(profile: &DeviceProfile) -> Result<(), ProfileError> {
    let value = |key, expected| ProfileError::Value { key, expected };
    if profile.name.trim().is_empty() {
        return Err(value("name", "a word"));
    }
    if profile.l1d_bytes == 0 {
        return Err(value("l1d-bytes", "at least 1"));
    }
    if profile.threads == 0 {
        return Err(value("threads", "at least 1"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_profile_parses_and_is_named_after_its_instruction_set() {
        let profiles = shipped();
        assert_eq!(profiles.len(), Isa::ALL.len());
        for (profile, isa) in profiles.iter().zip(Isa::ALL) {
            assert_eq!(profile.isa, isa);
            assert_eq!(profile.name, isa.name());
        }
    }

    #[test]
    fn parse_names_an_unknown_key_and_its_line() {
        let text = TEMPLATES[0].1.replace("l2-bytes", "l2-byte");
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.starts_with("line 7: "), "{error}");
        assert!(error.contains("`l2-byte`"), "{error}");
    }

    #[test]
    fn parse_names_a_missing_key() {
        let text = TEMPLATES[0].1.replace("l2-bytes = 262144\n", "");
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains("`l2-bytes`"), "{error}");
    }

    #[test]
    fn parse_refuses_no_threads() {
        let text = TEMPLATES[0].1.replace("threads = 1", "threads = 0");
        assert_eq!(
            parse(&text).unwrap_err().to_string(),
            "`threads` must be at least 1"
        );
    }
}
