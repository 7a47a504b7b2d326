//! Encodings: Base64, URI, quotes, key pads, SPRINTF.

use std::fmt::Write as _;

use super::{Answer, arg, reader, required};
use crate::args::split_args;
use crate::env::{Env, Fault};
use crate::registry::FunctionRow;
use crate::rights::Reach;

pub(super) const ROWS: &[FunctionRow] = &[
    reader("BASE64_ENCODE", Reach::PLAIN, "BASE64_ENCODE(text)", "Encodes in Base64.", base64_encode),
    reader("BASE64_DECODE", Reach::PLAIN, "BASE64_DECODE(text)", "Decodes Base64.", base64_decode),
    reader("URIENCODE", Reach::PLAIN, "URIENCODE(data)", "Escapes what a URI may not hold.", uriencode),
    reader("URIDECODE", Reach::PLAIN, "URIDECODE(data)", "Takes URI escapes out.", uridecode),
    reader("QUOTE", Reach::PLAIN, "QUOTE(text)", "Puts text in quotes, inner ones escaped.", quote),
    reader("CSV_QUOTE", Reach::PLAIN, "CSV_QUOTE(text)", "Quotes text for a CSV file.", csv_quote),
    reader(
        "KEYPADHASH",
        Reach::PLAIN,
        "KEYPADHASH(text)",
        "Turns letters into the digits of their keys.",
        keypadhash,
    ),
    reader("SPRINTF", Reach::PLAIN, "SPRINTF(format,arg1[,…])", "Formats as C's printf does.", sprintf),
];

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64_encode(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    out.push_str(&base64_of(args));
    Ok(())
}

/// Text in Base64 (RFC 4648 §4).
pub fn base64_of(text: &str) -> String {
    base64_of_bytes(text.as_bytes())
}

pub(super) fn base64_of_bytes(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let index = usize::try_from(group >> (18 - 6 * at) & 63).unwrap_or(0);
            let symbol = BASE64.get(index).copied().unwrap_or(b'=');
            out.push(if at <= chunk.len() { char::from(symbol) } else { '=' });
        }
    }
    out
}

fn base64_decode(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    out.push_str(&text_of_base64(args).ok_or(Fault::new("the text is not Base64"))?);
    Ok(())
}

/// The text that Base64 stands for; blanks and padding are left out.
pub fn text_of_base64(coded: &str) -> Option<String> {
    bytes_of_base64(coded).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn bytes_of_base64(coded: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut group, mut bits) = (0u32, 0u32);
    for symbol in coded.bytes().filter(|symbol| !symbol.is_ascii_whitespace() && *symbol != b'=') {
        let value = BASE64.iter().position(|&known| known == symbol).and_then(|at| u32::try_from(at).ok());
        group = group << 6 | value?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(group >> bits & 0xff).unwrap_or(0));
        }
    }
    Some(bytes)
}

fn uriencode(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    for byte in args.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    Ok(())
}

fn uridecode(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let mut bytes = Vec::with_capacity(args.len());
    let mut rest = args.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = (byte == b'%')
            .then(|| after.get(..2).and_then(|pair| std::str::from_utf8(pair).ok()))
            .flatten()
            .filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match escaped {
            Some(value) => {
                bytes.push(value);
                rest = after.get(2..).unwrap_or(&[]);
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    out.push_str(&String::from_utf8_lossy(&bytes));
    Ok(())
}

fn quote(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    out.push('"');
    for symbol in args.chars() {
        if matches!(symbol, '"' | '\\') {
            out.push('\\');
        }
        out.push(symbol);
    }
    out.push('"');
    Ok(())
}

fn csv_quote(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    out.push('"');
    out.push_str(&args.replace('"', "\"\""));
    out.push('"');
    Ok(())
}

fn keypadhash(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    for symbol in args.chars() {
        match symbol.to_ascii_uppercase() {
            'A'..='C' => out.push('2'),
            'D'..='F' => out.push('3'),
            'G'..='I' => out.push('4'),
            'J'..='L' => out.push('5'),
            'M'..='O' => out.push('6'),
            'P'..='S' => out.push('7'),
            'T'..='V' => out.push('8'),
            'W'..='Z' => out.push('9'),
            '1' => out.push('1'),
            '0' => out.push('0'),
            digit @ '2'..='9' => out.push(digit),
            _ => {}
        }
    }
    Ok(())
}

/// Widest field SPRINTF() pads to, characters.
const FIELD_WIDTH_MAX: usize = 1_024;

/// One conversion of a printf format: flags, width, precision, letter.
struct Conversion {
    left: bool,
    zeros: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    letter: char,
}

impl Conversion {
    /// Reads what follows `%`.
    fn parse(symbols: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Self, Fault> {
        let mut conversion = Self {
            left: false,
            zeros: false,
            plus: false,
            space: false,
            alternate: false,
            width: 0,
            precision: None,
            letter: '%',
        };
        while let Some(symbol) = symbols.peek() {
            match symbol {
                '-' => conversion.left = true,
                '0' => conversion.zeros = true,
                '+' => conversion.plus = true,
                ' ' => conversion.space = true,
                '#' => conversion.alternate = true,
                _ => break,
            }
            symbols.next();
        }
        let number = |symbols: &mut std::iter::Peekable<std::str::Chars<'_>>| {
            let mut value = 0usize;
            while let Some(digit) = symbols.peek().and_then(|symbol| symbol.to_digit(10)) {
                value = value.saturating_mul(10).saturating_add(usize::try_from(digit).unwrap_or(0));
                symbols.next();
            }
            value.min(FIELD_WIDTH_MAX)
        };
        conversion.width = number(symbols);
        if symbols.next_if_eq(&'.').is_some() {
            conversion.precision = Some(number(symbols));
        }
        while symbols.next_if(|symbol| matches!(symbol, 'l' | 'h' | 'q' | 'L' | 'j' | 'z' | 't')).is_some() {}
        conversion.letter = symbols.next().ok_or(Fault::new("the format ends within a conversion"))?;
        Ok(conversion)
    }
    fn signed(&self, negative: bool, digits: String) -> (String, String) {
        let sign = match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            _ => "",
        };
        (sign.to_owned(), digits)
    }
    fn write(&self, text: &str, out: &mut String) -> Answer {
        let bad = || Fault::new(format!("`{text}` is no number for %{}", self.letter));
        let integer = || crate::template::leading_integer(text).0.ok_or_else(bad);
        let float = || text.trim().parse::<f64>().map_err(|_| bad());
        let precision = self.precision.unwrap_or(6);
        let (prefix, body) = match self.letter {
            'd' | 'i' => {
                let value = integer()?;
                self.signed(value < 0, value.unsigned_abs().to_string())
            }
            'u' => (String::new(), integer()?.to_string()),
            'x' => ((if self.alternate { "0x" } else { "" }).to_owned(), format!("{:x}", integer()?)),
            'X' => ((if self.alternate { "0X" } else { "" }).to_owned(), format!("{:X}", integer()?)),
            'o' => ((if self.alternate { "0" } else { "" }).to_owned(), format!("{:o}", integer()?)),
            'c' => (String::new(), text.chars().next().map(String::from).unwrap_or_default()),
            's' => {
                let kept = self.precision.unwrap_or(usize::MAX);
                (String::new(), text.chars().take(kept).collect())
            }
            'f' | 'F' => {
                let value = float()?;
                self.signed(value.is_sign_negative(), format!("{:.precision$}", value.abs()))
            }
            'e' | 'E' => {
                let value = float()?;
                let body = scientific(value.abs(), precision, self.letter);
                self.signed(value.is_sign_negative(), body)
            }
            'g' | 'G' => {
                let value = float()?;
                let mut body = String::new();
                crate::num::Float::from_f64(value.abs()).write(&mut body);
                self.signed(value.is_sign_negative(), body)
            }
            other => return Err(Fault::new(format!("the format letter {other} is not supported"))),
        };
        let numeric = !matches!(self.letter, 'c' | 's');
        let fill = self.width.saturating_sub(prefix.chars().count() + body.chars().count());
        let pad = |symbol: char| std::iter::repeat_n(symbol, fill);
        if self.left {
            out.push_str(&prefix);
            out.push_str(&body);
            out.extend(pad(' '));
        } else if self.zeros && numeric {
            out.push_str(&prefix);
            out.extend(pad('0'));
            out.push_str(&body);
        } else {
            out.extend(pad(' '));
            out.push_str(&prefix);
            out.push_str(&body);
        }
        Ok(())
    }
}

/// C's `%e`: at least two digits of exponent.
fn scientific(value: f64, precision: usize, letter: char) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}{letter}{sign}{digits:0>2}")
}

fn sprintf(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let args = split_args(args);
    let format = required(&args, 0, "the format")?;
    let mut next = 1;
    let mut symbols = format.chars().peekable();
    while let Some(symbol) = symbols.next() {
        if symbol != '%' {
            out.push(symbol);
            continue;
        }
        if symbols.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let conversion = Conversion::parse(&mut symbols)?;
        if next >= args.len() {
            return Err(Fault::new("there are fewer arguments than conversions"));
        }
        conversion.write(arg(&args, next), out)?;
        next += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testenv::TestEnv;

    #[test]
    fn encodings_and_formats() {
        let mut env = TestEnv::new();
        for (text, expected) in [
            // RFC 4648 §10
            ("${BASE64_ENCODE(f)}${BASE64_ENCODE(fo)}${BASE64_ENCODE(foobar)}", "Zg==Zm8=Zm9vYmFy"),
            ("${BASE64_DECODE(Zm9vYmE=)}", "fooba"),
            ("${URIENCODE(a b&c~d)}", "a%20b%26c~d"),
            ("${URIDECODE(a%20b%26c%zz%)}", "a b&c%zz%"),
            (r#"${QUOTE(a "b" c)}"#, r#""a \"b\" c""#),
            (r#"${CSV_QUOTE(a "b" c)}"#, r#""a ""b"" c""#),
            ("${KEYPADHASH(Asterisk)}", "27837475"),
            ("${SPRINTF(%05d|%-5s|%5s|%x,42,ab,cd,255)}", "00042|ab   |   cd|ff"),
            ("${SPRINTF(%.2f %+d %%,3.14159,7)}", "3.14 +7 %"),
            ("${SPRINTF(%e,12345.678)}", "1.234568e+04"),
            ("${SPRINTF(%d)}", ""),
        ] {
            assert_eq!(env.expand(text), expected, "{text}");
        }
    }
}
