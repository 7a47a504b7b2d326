//! The little of DER (X.690) that extensions need which no library knows: a tag, a length and a value after the other.

/// One element: its tag and its value.
pub(crate) type Element<'a> = (u8, &'a [u8]);

/// Splits the first element off; `None` when it is cut short, has a tag of more than one octet or a length that DER does not
/// allow.
pub(crate) fn split(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (&[tag, length], rest) = bytes.split_first_chunk::<2>()?;
    if tag & 0x1f == 0x1f {
        return None;
    }
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81 => {
            let (&length, rest) = rest.split_first()?;
            (length >= 0x80).then_some((usize::from(length), rest))?
        }
        0x82 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            let length = usize::from(u16::from_be_bytes(*length));
            (length > 0xff).then_some((length, rest))?
        }
        // Longer ones than a certificate of ours.
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(length)?;
    Some(((tag, value), rest))
}

/// The value of an element that has this tag and nothing behind it.
pub(crate) fn only(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    let ((found, value), rest) = split(bytes)?;
    (found == tag && rest.is_empty()).then_some(value)
}

/// The elements that stand side by side, as many as `most`; `None` when one is malformed or there are more.
pub(crate) fn all(mut bytes: &[u8], most: usize) -> Option<Vec<Element<'_>>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (element, rest) = split(bytes)?;
        if found.len() == most {
            return None;
        }
        found.push(element);
        bytes = rest;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_split_and_what_der_forbids_is_not() {
        for (name, bytes, expected) in [
            ("short", &[0x04, 2, 1, 2, 9][..], Some(((0x04, &[1, 2][..]), &[9][..]))),
            ("empty", &[0x05, 0], Some(((0x05, &[][..]), &[][..]))),
            ("cut short", &[0x04, 3, 1, 2], None),
            ("no length", &[0x04], None),
            ("no end", &[0x30, 0x80, 0, 0], None),
            ("a long form of a short length", &[0x04, 0x81, 2, 1, 2], None),
            ("a longer form of a short length", &[0x04, 0x82, 0, 2, 1, 2], None),
            ("too long", &[0x04, 0x84, 0, 0, 0, 1, 1], None),
            ("a long tag", &[0x1f, 0x81, 1, 0], None),
        ] {
            assert_eq!(split(bytes), expected, "{name}");
        }
        let mut long = vec![0x04, 0x81, 0x80];
        long.extend([7; 0x80]);
        assert_eq!(only(&long, 0x04).map(<[u8]>::len), Some(0x80));
        assert_eq!(all(&[5, 0, 5, 0, 5, 0], 2), None);
    }
}
