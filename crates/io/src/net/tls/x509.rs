//! The few fields of a certificate that the verifying library leaves alone: key usage, and how long a certificate that
//! is trusted by itself may be (RFC 5280 §4.1.2.5, §4.2.1.3).
//!
//! Reads DER; whatever is not well formed is "nothing there" for the caller, who refuses.

/// Key usage `digitalSignature`: the first bit (RFC 5280 §4.2.1.3).
pub(super) const DIGITAL_SIGNATURE: u8 = 0x80;
/// Key usage `keyCertSign`.
pub(super) const KEY_CERT_SIGN: u8 = 0x04;

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// 2.5.29.15.
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];

/// Takes one value apart: its tag, its content, what follows.
fn value(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        // Lengths without a length, and such that no certificate has.
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

fn expect(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    value(der).filter(|(found, ..)| *found == tag).map(|(_, content, rest)| (content, rest))
}

/// What follows the serial number: signature, issuer, validity, ... of the part that is signed.
fn after_serial(certificate: &[u8]) -> Option<&[u8]> {
    let (whole, _) = expect(certificate, SEQUENCE)?;
    let (signed, _) = expect(whole, SEQUENCE)?;
    let (tag, _, rest) = value(signed)?;
    let rest = if tag == VERSION { value(rest)?.2 } else { rest };
    Some(rest)
}

/// The first byte of the key usage: `Ok(None)` when the certificate has none, `Err` when it cannot be read.
pub(super) fn key_usage(certificate: &[u8]) -> Result<Option<u8>, ()> {
    // Signature, issuer, validity, subject, key.
    let mut rest = after_serial(certificate).ok_or(())?;
    for _ in 0..5 {
        rest = value(rest).ok_or(())?.2;
    }
    while !rest.is_empty() {
        let (tag, content, next) = value(rest).ok_or(())?;
        rest = next;
        if tag != EXTENSIONS {
            continue;
        }
        let (mut list, _) = expect(content, SEQUENCE).ok_or(())?;
        while !list.is_empty() {
            let (extension, next) = expect(list, SEQUENCE).ok_or(())?;
            list = next;
            let (name, tail) = expect(extension, OBJECT).ok_or(())?;
            if name == KEY_USAGE {
                return usage(tail).map(Some).ok_or(());
            }
        }
    }
    Ok(None)
}

/// The bits, after the flag that says whether they are critical.
fn usage(tail: &[u8]) -> Option<u8> {
    let (tag, content, rest) = value(tail)?;
    let content = if tag == OCTET_STRING { content } else { expect(rest, OCTET_STRING)?.0 };
    let (bits, _) = expect(content, BIT_STRING)?;
    // The byte before the bits counts those at the end that mean nothing.
    bits.get(1).copied()
}

/// From when to when a certificate is valid, seconds since 1970.
pub(super) fn validity(certificate: &[u8]) -> Option<(u64, u64)> {
    let mut rest = after_serial(certificate)?;
    for _ in 0..2 {
        rest = value(rest)?.2;
    }
    let (dates, _) = expect(rest, SEQUENCE)?;
    let (tag, from, rest) = value(dates)?;
    let from = time(tag, from)?;
    let (tag, until, _) = value(rest)?;
    Some((from, time(tag, until)?))
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` (RFC 5280 §4.1.2.5).
fn time(tag: u8, text: &[u8]) -> Option<u64> {
    let digits = text.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |from: usize, to: usize| {
        let digits = digits.get(from..to)?;
        Some(digits.iter().fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0')))
    };
    let (year, at) = match (tag, digits.len()) {
        (UTC_TIME, 12) => {
            let short = number(0, 2)?;
            (if short < 50 { 2000 + short } else { 1900 + short }, 2)
        }
        (GENERALIZED_TIME, 14) => (number(0, 4)?, 4),
        _ => return None,
    };
    let (month, day) = (number(at, at + 2)?, number(at + 2, at + 4)?);
    let (hour, minute, second) = (number(at + 4, at + 6)?, number(at + 6, at + 8)?, number(at + 8, at + 10)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 {
        return None;
    }
    Some(days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar; years are counted from March, so that the leap day is last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year / 4 - year / 100 + year / 400;
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    (year * 365 + leaps + (month * 153 + 2) / 5 + day - 1) - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc5280_4_1_2_5_dates_are_read_in_both_forms() {
        for (tag, text, expected) in [
            (UTC_TIME, &b"700101000000Z"[..], Some(0)),
            (UTC_TIME, b"260228235959Z", Some(1_772_323_199)),
            (UTC_TIME, b"240229120000Z", Some(1_709_208_000)),
            (GENERALIZED_TIME, b"20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, b"99991231235959Z", Some(253_402_300_799)),
            (UTC_TIME, b"500101000000Z", None),
            (UTC_TIME, b"261301000000Z", None),
            (UTC_TIME, b"2601010000Z", None),
            (GENERALIZED_TIME, b"20260101000000+0100", None),
            (UTC_TIME, b"26010100000xZ", None),
        ] {
            assert_eq!(time(tag, text), expected, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn a_certificate_cut_anywhere_is_refused_and_never_read_past_its_end() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["pbx.example".into()]).unwrap();
        params.key_usages = vec![rcgen::KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key).unwrap();
        let der = certificate.der();
        assert_eq!(key_usage(der), Ok(Some(DIGITAL_SIGNATURE)));
        let (from, until) = validity(der).unwrap();
        assert!(from < until);
        for end in 0..der.len() {
            assert_eq!(key_usage(&der[..end]), Err(()), "cut at {end}");
            assert_eq!(validity(&der[..end]), None, "cut at {end}");
        }
        for length in [0x80, 0x85, 0xff] {
            assert_eq!(value(&[SEQUENCE, length, 1, 1, 1, 1, 1, 1]), None);
        }
    }
}
