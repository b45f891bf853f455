//! Headers of arrays, looked at before they are believed.
//!
//! A header is a literal of Python. The reader of arrays parses it by recursion and multiplies the
//! dimensions that it states, so that one which nests too deep or states too much would end the tool.

use std::io::{self, Chain, Cursor, Read};

/// Bytes that a header may have; those of `NumPy` have 128.
const MAX_HEADER: usize = 8 << 10;

/// How deep brackets may be nested; those of arrays of numbers are two deep.
const MAX_DEPTH: usize = 8;

/// Returns all of an array again if its header is in order.
pub(super) fn checked<R: Read>(mut array: R) -> io::Result<Chain<Cursor<Vec<u8>>, R>> {
    let invalid = |message: &str| io::Error::new(io::ErrorKind::InvalidData, message);
    // Magic number, version, and the number of bytes that follow.
    let mut header = vec![0; 8];
    array.read_exact(&mut header)?;
    let width = if header[6] == 1 { 2 } else { 4 };
    let mut size = [0; 4];
    array.read_exact(&mut size[..width])?;
    header.extend_from_slice(&size[..width]);
    let len = u32::from_le_bytes(size) as usize;
    if len > MAX_HEADER {
        return Err(invalid("its header is too long for an array of numbers"));
    }
    let start = header.len();
    header.resize(start + len, 0);
    array.read_exact(&mut header[start..])?;
    let text = &header[start..];
    if depth(text) > MAX_DEPTH {
        return Err(invalid("its header is nested too deep"));
    }
    if product(text).is_none() {
        return Err(invalid(
            "its header states more elements than can be counted",
        ));
    }
    Ok(Cursor::new(header).chain(array))
}

/// Returns how deep brackets are nested.
fn depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    for byte in text {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Returns the product of all numbers but zeros, which bounds that of any dimensions among them;
/// `None` if it does not fit.
fn product(text: &[u8]) -> Option<u64> {
    let numbers = text.split(|byte| !byte.is_ascii_digit());
    numbers
        .filter(|digits| digits.iter().any(|&digit| digit != b'0'))
        .try_fold(1u64, |product, digits| {
            let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
            product.checked_mul(number)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_do_not_hide_what_is_too_large() {
        assert_eq!(product(b"'<f4', (0, 3, 00, 5)"), Some(60));
        assert_eq!(product(b"(0, 9223372036854775808, 2)"), None);
        assert_eq!(product(b"(99999999999999999999,)"), None);
    }

    #[test]
    fn depth_is_that_of_the_deepest() {
        assert_eq!(depth(b"{'shape': (2, 3), 'descr': [('a', '<f4')]}"), 3);
        assert_eq!(depth(b"))((("), 3);
    }
}
