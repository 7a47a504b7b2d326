//! RSA keys of IAX2, files of `astkeydir/keys`: `NAME.pub` says who signs to us, and with `NAME.key` we sign (RFC 5456
//! §8.6.16; PKCS #1 1.5 over SHA-1, in base 64, as the field does it). Threads of their own do it ([`pool`]).

pub(crate) mod pool;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use base::hash::{Key, Randomness};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use driver::iax::{KeyAnswer, KeyKind, KeyRow, KeySet, KeyWork, Keys};
use md5::{Digest as _, Md5};
use rsa::pkcs1::{DecodeRsaPrivateKey as _, DecodeRsaPublicKey as _};
use rsa::pkcs8::{DecodePrivateKey as _, DecodePublicKey as _};
use rsa::rand_core::{TryCryptoRng, TryRng};
use rsa::traits::PublicKeyParts as _;
use rsa::{Pkcs1v15Sign, RsaPrivateKey, RsaPublicKey};
use sha1::{Digest as _, Sha1};

/// The folder below `astkeydir`.
const FOLDER: &str = "keys";
/// Longest file that is read, bytes.
const FILE_BYTES_MAX: u64 = 16 * 1024;
/// The shortest key that proves anything, bits.
const BITS_MIN: u32 = 1024;
/// The longest whose signature fits an element in base 64, bits: 255 octets hold 189 of a signature (RFC 5456 §8.6).
const BITS_MAX: u32 = 189 * 8;

/// Randomness by which a private key's arithmetic is blinded, from 128 bits of the system's for each signature.
struct Blinding(Randomness);

impl Blinding {
    fn new() -> Option<Self> {
        let mut seed = [0; 16];
        getrandom::fill(&mut seed).ok()?;
        Some(Self(Randomness::new(Key::new(u128::from_le_bytes(seed)))))
    }
}

impl TryRng for Blinding {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.next() as u32)
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next())
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            for (byte, random) in chunk.iter_mut().zip(self.0.next().to_le_bytes()) {
                *byte = random;
            }
        }
        Ok(())
    }
}

impl TryCryptoRng for Blinding {}

/// Why a file gives no key, as the console says it.
type Refused = &'static str;

const UNREADABLE: Refused = "[Not a key]";
const LOCKED: Refused = "[Needs Passcode]";
const SHORT: Refused = "[Shorter than 1024 bits]";
const LONG: Refused = "[Longer than 1512 bits]";

fn fits<T>(key: T, bits: impl Fn(&T) -> u32) -> Result<T, Refused> {
    match bits(&key) {
        ..BITS_MIN => Err(SHORT),
        BITS_MIN..=BITS_MAX => Ok(key),
        _ => Err(LONG),
    }
}

fn public(pem: &str) -> Result<RsaPublicKey, Refused> {
    let key = RsaPublicKey::from_public_key_pem(pem).ok();
    let key = key.or_else(|| RsaPublicKey::from_pkcs1_pem(pem).ok()).ok_or(UNREADABLE)?;
    fits(key, |key| key.n().bits())
}

fn private(pem: &str) -> Result<RsaPrivateKey, Refused> {
    if pem.contains("ENCRYPTED") {
        return Err(LOCKED);
    }
    let key = RsaPrivateKey::from_pkcs1_pem(pem).ok();
    let key = key.or_else(|| RsaPrivateKey::from_pkcs8_pem(pem).ok()).ok_or(UNREADABLE)?;
    fits(key, |key| key.n().bits())
}

fn hashed(challenge: &[u8]) -> Vec<u8> {
    Sha1::digest(challenge).to_vec()
}

fn check(key: &RsaPublicKey, challenge: &[u8], signature: &[u8]) -> bool {
    let Ok(signature) = STANDARD.decode(signature) else { return false };
    key.verify(Pkcs1v15Sign::new::<Sha1>(), &hashed(challenge), &signature).is_ok()
}

fn sign(key: &RsaPrivateKey, challenge: &[u8]) -> Option<Vec<u8>> {
    let signature =
        key.sign_with_rng(&mut Blinding::new()?, Pkcs1v15Sign::new::<Sha1>(), &hashed(challenge)).ok()?;
    Some(STANDARD.encode(signature).into_bytes())
}

/// The keys that were read.
#[derive(Default)]
struct Files {
    publics: BTreeMap<String, RsaPublicKey>,
    privates: BTreeMap<String, RsaPrivateKey>,
}

impl KeySet for Files {
    fn work(&self, work: &KeyWork) -> KeyAnswer {
        match work {
            KeyWork::Check { keys, challenge, signature } => {
                let known = keys.iter().filter_map(|name| self.publics.get(name));
                // All of them, so that it takes the same whichever was right.
                KeyAnswer::Checked(known.fold(false, |right, key| right | check(key, challenge, signature)))
            }
            KeyWork::Sign { key, challenge } => {
                KeyAnswer::Signed(self.privates.get(key).and_then(|key| sign(key, challenge)))
            }
        }
    }
}

/// Reads the keys below `astkeydir`. A folder or a file that is not there gives none.
pub(crate) fn load(astkeydir: &Path) -> Keys {
    let (mut files, mut rows) = (Files::default(), Vec::new());
    let entries = fs::read_dir(astkeydir.join(FOLDER)).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let kind = match path.extension().and_then(|ending| ending.to_str()) {
            Some("pub") => KeyKind::Public,
            Some("key") => KeyKind::Private,
            _ => continue,
        };
        let Some(name) = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned) else { continue };
        let fits = fs::metadata(&path).is_ok_and(|data| data.is_file() && data.len() <= FILE_BYTES_MAX);
        let text = if fits { fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
        let status = match kind {
            KeyKind::Public => public(&text).map(|key| _ = files.publics.insert(name.clone(), key)),
            KeyKind::Private => private(&text).map(|key| _ = files.privates.insert(name.clone(), key)),
        };
        let sum = Md5::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        rows.push(KeyRow { name, kind, status: status.err().unwrap_or("[Loaded]"), sum });
    }
    rows.sort_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind)));
    Keys { set: Some(Arc::new(files)), rows: rows.into() }
}

#[cfg(test)]
mod tests;
