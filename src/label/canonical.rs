//! Canonical bytes of records: compact JSON, the version first, then fields as declared.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Implausible;

/// A record that has canonical bytes.
pub(super) trait Record: Serialize + DeserializeOwned {
    /// What the record is, for messages and the domain of its digest.
    const NAME: &'static str;
    /// Version of the fields. Any change of them, an addition too, makes a new version with a
    /// decode function of its own.
    const VERSION: u32;

    /// Checks what the types cannot.
    fn check(&self) -> Result<(), Implausible>;
}

/// Bytes that are not a record that can be used.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Written by a newer release.
    #[error("the {record} has version {found}, this release reads up to {known}")]
    Newer {
        /// What the record is.
        record: &'static str,
        /// Its version.
        found: u32,
        /// The newest one that can be read.
        known: u32,
    },
    /// Not a record of this version at all.
    #[error("the {record} cannot be decoded")]
    Malformed {
        /// What the record is.
        record: &'static str,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The same content has other canonical bytes, and so another id.
    #[error("the {record} is not in its canonical form")]
    NotCanonical {
        /// What the record is.
        record: &'static str,
    },
    /// Figures that cannot be true.
    #[error("the {record} is not plausible")]
    Implausible {
        /// What the record is.
        record: &'static str,
        /// What cannot be true.
        source: Implausible,
    },
}

#[derive(Deserialize)]
struct Probe {
    version: u32,
}

/// Returns the canonical bytes of a record.
pub(super) fn encode<R: Record>(record: &R) -> Vec<u8> {
    let fields = serde_json::to_vec(record)
        .expect("records have string keys only and serialise without failure");
    let mut bytes = format!("{{\"version\":{},", R::VERSION).into_bytes();
    bytes.extend_from_slice(&fields[1..]);
    bytes
}

/// Reads canonical bytes.
pub(super) fn decode<R: Record>(bytes: &[u8]) -> Result<R, DecodeError> {
    let record = R::NAME;
    let malformed = |source| DecodeError::Malformed { record, source };
    let Probe { version } = serde_json::from_slice(bytes).map_err(malformed)?;
    if version > R::VERSION {
        return Err(DecodeError::Newer {
            record,
            found: version,
            known: R::VERSION,
        });
    }
    let decoded: R = serde_json::from_slice(bytes).map_err(malformed)?;
    // This also refuses unknown fields and version 0, which does not exist.
    if encode(&decoded) != bytes {
        return Err(DecodeError::NotCanonical { record });
    }
    match decoded.check() {
        Ok(()) => Ok(decoded),
        Err(source) => Err(DecodeError::Implausible { record, source }),
    }
}
