//! AES_ENCRYPT, AES_DECRYPT and ICONV.
//!
//! The cipher is what the field made it: AES with a key of 16 letters, each block for itself. It hides text from a glance and
//! from nobody else; it is here because sites have such texts in their databases.

use aes::Aes128;
use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockDecrypt as _, BlockEncrypt as _, KeyInit as _};

use super::codes::{base64_of_bytes, bytes_of_base64};
use super::{Answer, head_and_rest, reader};
use crate::env::{Env, Fault};
use crate::registry::FunctionRow;
use crate::rights::Reach;

pub(super) const ROWS: &[FunctionRow] = &[
    reader(
        "AES_ENCRYPT",
        Reach::PLAIN,
        "AES_ENCRYPT(key,string)",
        "Enciphers text by AES with a key of 16 characters, in Base64.",
        encrypt,
    ),
    reader(
        "AES_DECRYPT",
        Reach::PLAIN,
        "AES_DECRYPT(key,string)",
        "Deciphers what AES_ENCRYPT() gave.",
        decrypt,
    ),
    reader(
        "ICONV",
        Reach::PLAIN,
        "ICONV(in-charset,out-charset,string)",
        "Brings text to the characters of another set; behind it //TRANSLIT writes others as ?, and //IGNORE leaves them out.",
        iconv,
    ),
];

/// Bytes of a key, and of a block.
const BLOCK: usize = 16;

fn cipher(args: &str) -> Result<(Aes128, &str), Fault> {
    let (key, text) = head_and_rest(args);
    let key = key.trim();
    if key.len() != BLOCK {
        return Err(Fault::new(format!("the key has {} characters, not {BLOCK}", key.len())));
    }
    let cipher = Aes128::new_from_slice(key.as_bytes()).map_err(|_| Fault::new("the key is unusable"))?;
    if text.is_empty() {
        return Err(Fault::new("the text is missing"));
    }
    Ok((cipher, text))
}

fn encrypt(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let (cipher, text) = cipher(args)?;
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    for block in bytes.chunks_exact_mut(BLOCK) {
        cipher.encrypt_block(GenericArray::from_mut_slice(block));
    }
    out.push_str(&base64_of_bytes(&bytes));
    Ok(())
}

fn decrypt(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let (cipher, text) = cipher(args)?;
    let mut bytes = bytes_of_base64(text).ok_or(Fault::new("the text is not Base64"))?;
    if !bytes.len().is_multiple_of(BLOCK) {
        return Err(Fault::new(format!("the text is no whole number of blocks of {BLOCK} bytes")));
    }
    for block in bytes.chunks_exact_mut(BLOCK) {
        cipher.decrypt_block(GenericArray::from_mut_slice(block));
    }
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    out.push_str(&String::from_utf8_lossy(bytes.get(..end).unwrap_or(&bytes)));
    Ok(())
}

/// A set of characters, of the names that iconv knows.
fn holds(set: &str) -> Option<fn(char) -> bool> {
    let name: String =
        set.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    Some(match name.as_str() {
        "utf8" | "utf16" | "utf16le" | "utf16be" | "utf32" | "ucs4" => |_| true,
        "ascii" | "usascii" | "ansix341968" | "iso646us" => |symbol| symbol.is_ascii(),
        "latin1" | "iso88591" => |symbol| u32::from(symbol) < 0x100,
        "latin9" | "iso885915" => |symbol| symbol == '€' || u32::from(symbol) < 0x100 && symbol != '¤',
        _ => return None,
    })
}

/// Text is Unicode wherever it stands here, so what a conversion does is to leave what the other set has.
fn iconv(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    let (from, rest) = head_and_rest(args);
    let (to, text) = head_and_rest(rest);
    let (to, manner) = to.trim().split_once("//").unwrap_or((to.trim(), ""));
    let from = from.trim().split("//").next().unwrap_or_default();
    if from.is_empty() || to.is_empty() {
        return Err(Fault::new("takes two sets of characters and a text"));
    }
    let unknown = |set: &str| Fault::new(format!("the set of characters `{set}` is not known"));
    holds(from).ok_or_else(|| unknown(from))?;
    let fits = holds(to).ok_or_else(|| unknown(to))?;
    let manner = manner.to_ascii_uppercase();
    for symbol in text.chars() {
        if fits(symbol) {
            out.push(symbol);
        } else if manner.contains("TRANSLIT") {
            out.push('?');
        } else if !manner.contains("IGNORE") {
            return Err(Fault::new(format!(
                "`{symbol}` is not in {to}; end its name with //TRANSLIT or //IGNORE"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testenv::TestEnv;

    #[test]
    fn texts_are_enciphered_as_openssl_does_with_aes_128_in_ecb() {
        let mut env = TestEnv::new();
        for (call, expected) in [
            ("AES_ENCRYPT(Strowger was 1st,exchange for all)", "n+jrTL7gwuHX3nlLpOmshw=="),
            ("AES_DECRYPT(Strowger was 1st,n+jrTL7gwuHX3nlLpOmshw==)", "exchange for all"),
            (
                "AES_DECRYPT(0123456789abcdef,${AES_ENCRYPT(0123456789abcdef,a, b and more than one block)})",
                "a, b and more than one block",
            ),
            ("AES_DECRYPT(0123456789abcdef,${AES_ENCRYPT(0123456789abcdef,Grüße)})", "Grüße"),
        ] {
            assert_eq!(env.expand(&format!("${{{call}}}")), expected, "{call}");
        }
        for (call, why) in [
            ("AES_ENCRYPT(short,text)", "5 characters, not 16"),
            ("AES_ENCRYPT(0123456789abcdef)", "the text is missing"),
            ("AES_DECRYPT(0123456789abcdef,%%%)", "not Base64"),
            ("AES_DECRYPT(0123456789abcdef,YWJj)", "no whole number of blocks"),
        ] {
            env.logs.clear();
            assert_eq!(env.expand(&format!("${{{call}}}")), "", "{call}");
            assert!(env.logs.iter().any(|line| line.contains(why)), "{call}: {:?}", env.logs);
        }
    }

    #[test]
    fn text_is_brought_to_the_characters_of_a_set() {
        let mut env = TestEnv::new();
        for (call, expected) in [
            ("ICONV(iso-8859-1,utf-8,Grüße)", "Grüße"),
            ("ICONV(utf-8,ISO_8859-1,Grüße)", "Grüße"),
            ("ICONV(utf-8,us-ascii//TRANSLIT,Grüße, all)", "Gr??e, all"),
            ("ICONV(utf-8,ascii//IGNORE,Grüße)", "Gre"),
            ("ICONV(utf-8,latin9,5 €)", "5 €"),
            ("ICONV(utf-8,latin1//translit,5 €)", "5 ?"),
        ] {
            assert_eq!(env.expand(&format!("${{{call}}}")), expected, "{call}");
        }
        for (call, why) in [
            ("ICONV(utf-8,ascii,ü)", "is not in ascii"),
            ("ICONV(utf-8,klingon,x)", "`klingon` is not known"),
            ("ICONV(klingon,utf-8,x)", "`klingon` is not known"),
            ("ICONV(utf-8)", "takes two sets"),
        ] {
            env.logs.clear();
            assert_eq!(env.expand(&format!("${{{call}}}")), "", "{call}");
            assert!(env.logs.iter().any(|line| line.contains(why)), "{call}: {:?}", env.logs);
        }
    }
}
