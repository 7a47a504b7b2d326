//! `register =>` lines.

use crate::config::{Secret, host_and_port};
use conf::Place;

/// The port of IAX2 (RFC 5456 §8.1).
pub const PORT: u16 = 4569;

/// A registration of ours elsewhere: `user[:secret]@host[:port]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    /// Our user there.
    pub username: String,
    /// Its password; empty when there is none.
    pub secret: Secret,
    /// A key in place of the password: `user:[key]@host`.
    pub outkey: Option<String>,
    /// The registrar: name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Where it was written.
    pub place: Place,
}

impl Register {
    /// Takes a line apart, and says what stands behind the host, with its `/` or `?`; `None` when it has no user or no
    /// host. IAX2 tells a registrar no extension (RFC 5456 §6.1), so that nothing has a meaning there.
    pub(super) fn parse<'a>(text: &'a str, place: &Place) -> Option<(Self, &'a str)> {
        // Passwords may hold an @, hosts never do.
        let (who, at) = text.trim().rsplit_once('@')?;
        let (at, behind) = at.split_at(at.find(['?', '/']).unwrap_or(at.len()));
        let at = at.trim();
        let (username, secret) = who.split_once(':').unwrap_or((who, ""));
        let (host, port) = host_and_port(at, PORT)?;
        if username.trim().is_empty() {
            return None;
        }
        let secret = secret.trim();
        let outkey =
            secret.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).filter(|key| !key.is_empty());
        let register = Self {
            username: username.trim().to_owned(),
            secret: if outkey.is_some() { Secret::default() } else { Secret::new(secret) },
            outkey: outkey.map(str::to_owned),
            host,
            port,
            place: place.clone(),
        };
        Some((register, behind))
    }
}
