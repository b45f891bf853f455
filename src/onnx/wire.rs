//! A bounded reader of the protobuf wire format over bytes in memory.
//!
//! Every length is checked against what is left of the enclosing message, nothing is copied and
//! nothing is allocated, so hostile bytes cost neither memory nor a panic. `rten-onnx` has a
//! reader too, but it allocates what a length field says, and refuses the packed form of repeated
//! attribute fields that proto3 writers produce.

/// What is left of one message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

/// The value of a field, by wire type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Payload<'a> {
    /// A variable-length integer.
    Varint(u64),
    /// Eight bytes.
    Fixed64([u8; 8]),
    /// A string, bytes, a message or packed numbers.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32([u8; 4]),
}

/// Bytes that do not follow the wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum WireError {
    /// A field reaches beyond the end of its message.
    #[error("field {number} needs {needed} bytes, {left} are left")]
    Overrun {
        /// Field number.
        number: u64,
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that are left.
        left: usize,
    },
    /// A number or tag is not well-formed.
    #[error("a tag or number is not well-formed")]
    Malformed,
    /// A field has another wire type than its schema says.
    #[error("field {0} has the wrong type")]
    Type(u64),
    /// Text is not UTF-8.
    #[error("field {0} is not UTF-8 text")]
    Utf8(u64),
}

impl<'a> Reader<'a> {
    /// Starts reading a message.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Reads the next field, or `None` at the end of the message.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Payload<'a>)>, WireError> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = tag >> 3;
        let payload = match tag & 7 {
            0 => Payload::Varint(self.varint()?),
            1 => Payload::Fixed64(self.array(number)?),
            2 => {
                let len = self.varint()?;
                Payload::Bytes(self.take(number, len)?)
            }
            5 => Payload::Fixed32(self.array(number)?),
            _ => return Err(WireError::Malformed),
        };
        if number == 0 {
            return Err(WireError::Malformed);
        }
        Ok(Some((number, payload)))
    }

    fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0u64;
        for (idx, &byte) in self.bytes.iter().take(10).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if idx == 9 && bits > 1 {
                return Err(WireError::Malformed);
            }
            value |= bits << (7 * idx);
            if byte & 0x80 == 0 {
                self.bytes = &self.bytes[idx + 1..];
                return Ok(value);
            }
        }
        Err(WireError::Malformed)
    }

    fn take(&mut self, number: u64, needed: u64) -> Result<&'a [u8], WireError> {
        let left = self.bytes.len();
        let overrun = WireError::Overrun {
            number,
            needed,
            left,
        };
        let len = usize::try_from(needed).map_err(|_| overrun)?;
        let (head, tail) = self.bytes.split_at_checked(len).ok_or(overrun)?;
        self.bytes = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, number: u64) -> Result<[u8; N], WireError> {
        let bytes = self.take(number, N as u64)?;
        bytes.try_into().map_err(|_| WireError::Malformed)
    }
}

impl<'a> Payload<'a> {
    /// Returns a string, bytes or message.
    pub(super) fn bytes(self, number: u64) -> Result<&'a [u8], WireError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(WireError::Type(number)),
        }
    }

    /// Returns text.
    pub(super) fn text(self, number: u64) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.bytes(number)?).map_err(|_| WireError::Utf8(number))
    }

    /// Returns an integer: negative ones are two's complement in 64 bits.
    pub(super) fn int(self, number: u64) -> Result<i64, WireError> {
        match self {
            Self::Varint(value) => Ok(value as i64),
            _ => Err(WireError::Type(number)),
        }
    }

    /// Returns a float.
    pub(super) fn float(self, number: u64) -> Result<f32, WireError> {
        match self {
            Self::Fixed32(bytes) => Ok(f32::from_le_bytes(bytes)),
            _ => Err(WireError::Type(number)),
        }
    }

    /// Appends one integer, or many in packed form.
    pub(super) fn ints(self, number: u64, into: &mut Vec<i64>) -> Result<(), WireError> {
        if let Self::Bytes(bytes) = self {
            let mut packed = Reader::new(bytes);
            while !packed.bytes.is_empty() {
                into.push(packed.varint()? as i64);
            }
            return Ok(());
        }
        into.push(self.int(number)?);
        Ok(())
    }

    /// Appends one float, or many in packed form.
    pub(super) fn floats(self, number: u64, into: &mut Vec<f32>) -> Result<(), WireError> {
        if let Self::Bytes(bytes) = self {
            let (chunks, rest) = bytes.as_chunks::<4>();
            into.extend(chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)));
            return if rest.is_empty() {
                Ok(())
            } else {
                Err(WireError::Type(number))
            };
        }
        into.push(self.float(number)?);
        Ok(())
    }

    /// Appends one double, or many in packed form.
    pub(super) fn doubles(self, number: u64, into: &mut Vec<f64>) -> Result<(), WireError> {
        match self {
            Self::Fixed64(bytes) => into.push(f64::from_le_bytes(bytes)),
            Self::Bytes(bytes) => {
                let (chunks, rest) = bytes.as_chunks::<8>();
                if !rest.is_empty() {
                    return Err(WireError::Type(number));
                }
                into.extend(chunks.iter().map(|chunk| f64::from_le_bytes(*chunk)));
            }
            _ => return Err(WireError::Type(number)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_beyond_the_end_are_refused_without_allocating() {
        let mut bytes = vec![0x3a];
        bytes.extend([0xff; 9]);
        bytes.push(0x01);
        assert_eq!(
            Reader::new(&bytes).next(),
            Err(WireError::Overrun {
                number: 7,
                needed: u64::MAX,
                left: 0
            })
        );
    }

    #[test]
    fn packed_and_unpacked_numbers_read_the_same() {
        let read = |bytes: &[u8]| {
            let mut reader = Reader::new(bytes);
            let mut ints = Vec::new();
            while let Some((number, payload)) = reader.next().unwrap() {
                payload.ints(number, &mut ints).unwrap();
            }
            ints
        };
        assert_eq!(read(&[0x40, 1, 0x40, 0xac, 0x02]), [1, 300]);
        assert_eq!(read(&[0x42, 3, 1, 0xac, 0x02]), [1, 300]);
    }

    #[test]
    fn varints_over_64_bits_are_refused() {
        let mut bytes = vec![0x08];
        bytes.extend([0xff; 10]);
        assert_eq!(Reader::new(&bytes).next(), Err(WireError::Malformed));
    }
}
