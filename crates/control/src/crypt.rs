//! Passwords as crypt(3) keeps them: `$6$` (SHA-512), `$5$` (SHA-256) and `$1$` (MD5), by the published descriptions of
//! these schemes.

use md5::{Digest, Md5};
use sha2::{Sha256, Sha512};
use subtle::ConstantTimeEq as _;

/// Symbols in which the digest is written.
const SYMBOLS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Rounds when the password names none.
const ROUNDS: usize = 5_000;
/// Rounds of MD5.
const MD5_ROUNDS: usize = 1_000;
/// Fewest rounds that the scheme takes.
const ROUNDS_MIN: usize = 1_000;
/// Most rounds: some 50 ms of the thread that serves calls; a password with more is refused when it is read.
const ROUNDS_MAX: usize = 100_000;
/// Symbols of a salt that count.
const SALT_MAX: usize = 16;
/// Longest password that is tried, bytes: the work grows with it.
const PASSWORD_MAX: usize = 256;

/// The order in which the bytes of a SHA-512 digest are written, three at a time.
const ORDER_512: [[usize; 3]; 21] = [
    [0, 21, 42],
    [22, 43, 1],
    [44, 2, 23],
    [3, 24, 45],
    [25, 46, 4],
    [47, 5, 26],
    [6, 27, 48],
    [28, 49, 7],
    [50, 8, 29],
    [9, 30, 51],
    [31, 52, 10],
    [53, 11, 32],
    [12, 33, 54],
    [34, 55, 13],
    [56, 14, 35],
    [15, 36, 57],
    [37, 58, 16],
    [59, 17, 38],
    [18, 39, 60],
    [40, 61, 19],
    [62, 20, 41],
];
/// The same of a SHA-256 digest.
const ORDER_256: [[usize; 3]; 10] = [
    [0, 10, 20],
    [21, 1, 11],
    [12, 22, 2],
    [3, 13, 23],
    [24, 4, 14],
    [15, 25, 5],
    [6, 16, 26],
    [27, 7, 17],
    [18, 28, 8],
    [9, 19, 29],
];
/// The same of an MD5 digest.
const ORDER_MD5: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];

/// Whether a password is the one that `hash` was made of; never for what is no such text.
pub(crate) fn matches(password: &str, hash: &str) -> bool {
    let made = hashed(password, hash);
    made.is_some_and(|made| bool::from(made.as_bytes().ct_eq(hash.as_bytes())))
}

/// A password with this salt, as crypt(3) writes it with SHA-512.
pub(crate) fn made(password: &str, salt: &str) -> Option<String> {
    hashed(password, &format!("$6${salt}$"))
}

struct Parsed<'a> {
    scheme: u8,
    rounds: Option<usize>,
    salt: &'a str,
}

fn parsed(hash: &str) -> Option<Parsed<'_>> {
    let rest = hash.strip_prefix('$')?;
    let (scheme, rest) = rest.split_once('$')?;
    let scheme = match scheme {
        "1" => 1,
        "5" => 5,
        "6" => 6,
        _ => return None,
    };
    let (rounds, rest) = match rest.strip_prefix("rounds=") {
        Some(rest) if scheme != 1 => {
            let (rounds, rest) = rest.split_once('$')?;
            let rounds: usize = rounds.parse().ok()?;
            (Some(rounds.max(ROUNDS_MIN)).filter(|rounds| *rounds <= ROUNDS_MAX), rest)
        }
        _ => (Some(ROUNDS), rest),
    };
    let salt = rest.split('$').next()?;
    let longest = if scheme == 1 { 8 } else { SALT_MAX };
    let salt = salt.get(..salt.len().min(longest))?;
    let written = hash.contains("$rounds=");
    Some(Parsed { scheme, rounds: Some(rounds?).filter(|_| written), salt })
}

fn hashed(password: &str, hash: &str) -> Option<String> {
    let Parsed { scheme, rounds, salt } = parsed(hash)?;
    let password = password.as_bytes();
    if password.len() > PASSWORD_MAX {
        return None;
    }
    let named = rounds.map(|rounds| format!("rounds={rounds}$")).unwrap_or_default();
    let rounds = rounds.unwrap_or(ROUNDS);
    let mut out = format!("${scheme}${named}{salt}$");
    match scheme {
        6 => {
            let digest = sha_crypt::<Sha512>(password, salt.as_bytes(), rounds);
            write(&digest, &ORDER_512, &mut out);
            tail(&[0, 0, at(&digest, 63)], 2, &mut out);
        }
        5 => {
            let digest = sha_crypt::<Sha256>(password, salt.as_bytes(), rounds);
            write(&digest, &ORDER_256, &mut out);
            tail(&[0, at(&digest, 31), at(&digest, 30)], 3, &mut out);
        }
        _ => {
            let digest = md5_crypt(password, salt.as_bytes());
            write(&digest, &ORDER_MD5, &mut out);
            tail(&[0, 0, at(&digest, 11)], 2, &mut out);
        }
    }
    Some(out)
}

fn at(digest: &[u8], index: usize) -> u8 {
    digest.get(index).copied().unwrap_or(0)
}

fn write(digest: &[u8], order: &[[usize; 3]], out: &mut String) {
    for triple in order {
        tail(&triple.map(|index| at(digest, index)), 4, out);
    }
}

/// Three bytes, the first the highest, as so many symbols, the lowest six bits first.
fn tail(bytes: &[u8; 3], symbols: usize, out: &mut String) {
    let mut value = bytes.iter().fold(0_usize, |value, byte| value << 8 | usize::from(*byte));
    for _ in 0..symbols {
        out.push(SYMBOLS.get(value & 63).copied().map_or('.', char::from));
        value >>= 6;
    }
}

/// `length` bytes of a digest, again and again.
fn repeated(digest: &[u8], length: usize) -> Vec<u8> {
    digest.iter().copied().cycle().take(length).collect()
}

fn sha_crypt<D: Digest>(password: &[u8], salt: &[u8], rounds: usize) -> Vec<u8> {
    let b = D::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut a = D::new().chain_update(password).chain_update(salt);
    a.update(repeated(&b, password.len()));
    let mut bits = password.len();
    while bits > 0 {
        if bits & 1 == 1 {
            a.update(&b)
        } else {
            a.update(password)
        }
        bits >>= 1;
    }
    let mut digest = a.finalize().to_vec();
    let mut dp = D::new();
    (0..password.len()).for_each(|_| dp.update(password));
    let p = repeated(&dp.finalize(), password.len());
    let mut ds = D::new();
    (0..16 + usize::from(at(&digest, 0))).for_each(|_| ds.update(salt));
    let s = repeated(&ds.finalize(), salt.len());
    for round in 0..rounds {
        let mut c = D::new();
        if round % 2 == 1 {
            c.update(&p)
        } else {
            c.update(&digest)
        }
        if round % 3 != 0 {
            c.update(&s);
        }
        if round % 7 != 0 {
            c.update(&p);
        }
        if round % 2 == 1 {
            c.update(&digest)
        } else {
            c.update(&p)
        }
        digest = c.finalize().to_vec();
    }
    digest
}

fn md5_crypt(password: &[u8], salt: &[u8]) -> Vec<u8> {
    let b = Md5::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut a = Md5::new().chain_update(password).chain_update(b"$1$").chain_update(salt);
    a.update(repeated(&b, password.len()));
    let mut bits = password.len();
    while bits > 0 {
        if bits & 1 == 1 {
            a.update([0])
        } else {
            a.update(password.get(..1).unwrap_or_default())
        }
        bits >>= 1;
    }
    let mut digest = a.finalize().to_vec();
    for round in 0..MD5_ROUNDS {
        let mut c = Md5::new();
        if round % 2 == 1 {
            c.update(password)
        } else {
            c.update(&digest)
        }
        if round % 3 != 0 {
            c.update(salt);
        }
        if round % 7 != 0 {
            c.update(password);
        }
        if round % 2 == 1 {
            c.update(&digest)
        } else {
            c.update(password)
        }
        digest = c.finalize().to_vec();
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_match_what_crypt_has_made_of_them() {
        for (password, hash) in [
            (
                "Hello world!",
                "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1",
            ),
            ("Hello world!", "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"),
            (
                "Hello world!",
                "$6$rounds=10000$saltstringsaltst$OW1/O6BYHV6BcXZu8QVeXbDWra3Oeqh0sbHbbMCVNSnCM/UrjmM0Dp8vOuZeHBy/YTBmSK6H9qs/y3RnOaw5v.",
            ),
            ("password", "$1$xyz$cEUv8aN9ehjhMXG/kSFnM1"),
        ] {
            assert_eq!(hashed(password, hash).as_deref(), Some(hash));
            assert!(matches(password, hash), "{hash}");
            assert!(!matches("password ", hash), "{hash}");
        }
        assert_eq!(made("a", "salt").map(|made| made.len()), Some("$6$salt$".len() + 86));
    }

    #[test]
    fn what_is_no_hash_matches_nothing() {
        for hash in
            ["", "plain", "$6$", "$9$salt$abc", "$6$rounds=x$salt$a", "$6$rounds=999999999$salt$a", "$$$"]
        {
            assert!(!matches("plain", hash) && !matches("", hash), "{hash}");
        }
    }
}
