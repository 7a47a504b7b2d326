//! Base64 (RFC 4648 §4).

/// Bytes in base64, padded.
pub(crate) fn encode(bytes: &[u8]) -> String {
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |n: usize| u32::from(group.get(n).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for n in 0..4 {
            let symbol = SYMBOLS[(bits >> (18 - 6 * n)) as usize % 64];
            out.push(if n <= group.len() { char::from(symbol) } else { '=' });
        }
    }
    out
}

/// Bytes of base64 without its padding; `None` when a digit is none, or one is left over.
pub(crate) fn decode(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let mut bytes = Vec::with_capacity(digits.len());
    for group in digits.chunks(4) {
        let mut bits = 0_u32;
        for digit in group {
            bits = bits << 6 | u32::from(value(*digit)?);
        }
        if group.len() == 1 {
            return None;
        }
        bits <<= 6 * (4 - group.len());
        let [_, a, b, c] = bits.to_be_bytes();
        bytes.extend([a, b, c].into_iter().take(group.len() * 6 / 8));
    }
    Some(bytes)
}
