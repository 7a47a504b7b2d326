//! Who asks: users of ari.conf by HTTP Basic, or by `api_key=user:password` in the query.
//!
//! An unknown user, a wrong password, an address that is not permitted and a user who has guessed too often are answered
//! alike, after the same work; the log tells them apart.

use std::net::SocketAddr;

use call::{Attempt, Level, security};
use md5::{Digest as _, Md5};
use sha2::Sha256;
use store::config::ari::{AriUser, PasswordFormat};
use subtle::ConstantTimeEq as _;

use super::AriRequest;
use crate::base64;
use crate::crypt;
use crate::http::form;
use crate::site::Site;

/// What nobody has as a password: compared with when there is no such user.
const NOBODYS: &str = "no user has this password";

/// Somebody who has proved to be a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    pub user: String,
    pub read_only: bool,
    /// By a key in the query, which no page of another site has by chance.
    pub by_key: bool,
}

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denied {
    /// Answered 401, whatever the reason.
    Unknown,
    /// The password is right and the address is not among those of the user.
    Address,
}

/// Name and password that a request brings, and whether by a key.
fn given(request: &AriRequest) -> Option<(String, String, bool)> {
    let cut =
        |text: &str| text.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()));
    if let Some(header) = request.authorization.as_deref() {
        let (scheme, token) = header.split_once(' ')?;
        let bytes = unbased(token.trim()).filter(|_| scheme.eq_ignore_ascii_case("Basic"))?;
        let (user, password) = cut(&String::from_utf8(bytes).ok()?)?;
        return Some((user, password, false));
    }
    let fields = form::fields(&request.query);
    let key = fields.iter().find(|(name, _)| name == "api_key").map(|(_, value)| value.as_str())?;
    let (user, password) = cut(key)?;
    Some((user, password, true))
}

/// Who it is, or why not.
pub(super) fn caller(site: &Site, request: &AriRequest) -> Result<Caller, Denied> {
    let snapshot = site.snapshot.borrow().clone();
    let (name, password, by_key) = given(request).ok_or(Denied::Unknown)?;
    let user = snapshot.ari.users.get(&name);
    // A name that nobody has takes as long as one that somebody has.
    let likely = user.or_else(|| snapshot.ari.users.values().find(|user| is_crypt(user)));
    let matches = match likely.filter(|user| is_crypt(user)) {
        Some(likely) => matches_hash(site, &name, &password, likely.password.expose()),
        None => matches_plain(&password, user.map_or(NOBODYS, |user| user.password.expose())),
    };
    let address = user.is_none_or(|user| user.access.allows(request.peer.ip()));
    let core = site.shard.core.borrow();
    let now = core.now;
    let banned = core.bans.is_user_banned(request.peer.ip(), &name, now);
    let why = match user {
        None => Some("InvalidAccountID"),
        Some(_) if !address => Some("FailedACL"),
        Some(_) if !matches || banned => Some("InvalidPassword"),
        Some(_) => None,
    };
    drop(core);
    if let Some(why) = why {
        tell_denied(site, request.peer, &name, why, banned);
        // Only who knows the password would see the difference; the site decides whether it is to be seen.
        let tells = matches && !banned && site.shard.core.borrow().settings.live_dangerously;
        return Err(if tells && why == "FailedACL" { Denied::Address } else { Denied::Unknown });
    }
    site.shard.core.borrow_mut().bans.succeeded(request.peer.ip(), &name);
    let caller = |AriUser { read_only, .. }: &AriUser| Caller { user: name, read_only: *read_only, by_key };
    user.map(caller).ok_or(Denied::Unknown)
}

fn is_crypt(user: &AriUser) -> bool {
    user.password_format == PasswordFormat::Crypt
}

fn matches_plain(password: &str, expected: &str) -> bool {
    // Hashed first, so that the length of the password does not show either.
    bool::from(Md5::digest(password).ct_eq(&Md5::digest(expected)))
        & bool::from(password.as_bytes().ct_eq(expected.as_bytes()))
}

/// Whether the password is that of a hash. crypt(3) is slow on purpose, so that who has proved it is known again by a quick
/// digest until the configuration is read anew.
fn matches_hash(site: &Site, name: &str, password: &str, hash: &str) -> bool {
    let digest: [u8; 32] =
        Sha256::new().chain_update(hash).chain_update([0]).chain_update(password).finalize().into();
    let known = site.ari.borrow().proved.get(name).copied();
    if known.is_some_and(|known| bool::from(known.ct_eq(&digest))) {
        return true;
    }
    let matches = crypt::matches(password, hash);
    if matches && site.snapshot.borrow().ari.users.contains_key(name) {
        site.ari.borrow_mut().proved.insert(name.to_owned(), digest);
    }
    matches
}

fn tell_denied(site: &Site, peer: SocketAddr, name: &str, event: &'static str, banned: bool) {
    let ip = peer.ip().to_canonical();
    let mut core = site.shard.core.borrow_mut();
    let line = format!("{ip} failed to authenticate as '{}'", security::shown(name));
    if core.tells_of(ip, security::Presence::Shown) {
        core.log(Level::Notice, "ari", &line);
        core.tell_attempt(|_| attempt(event, peer, name));
    }
    // Who is banned already learns nothing by going on, and is not counted for it either.
    if !banned {
        core.password_refused("ARI", ip, name, || crate::ami::is_home(site, ip));
    }
}

/// Somebody who shows who it is.
pub(super) fn attempt(event: &'static str, peer: SocketAddr, name: &str) -> Attempt {
    Attempt {
        event,
        service: "ARI",
        account: name.to_owned(),
        session: String::new(),
        local: String::new(),
        remote: security::address("TCP", peer),
        challenge: String::new(),
        ..Attempt::default()
    }
}

/// Bytes of base64, with or without padding.
fn unbased(text: &str) -> Option<Vec<u8>> {
    base64::decode(text.trim_end_matches('=').as_bytes())
}

#[cfg(test)]
mod tests {
    use super::unbased;

    #[test]
    fn rfc4648_10_vectors_are_read() {
        for (text, bytes) in [
            ("", Some(&b""[..])),
            ("Zg==", Some(b"f")),
            ("Zm8=", Some(b"fo")),
            ("Zm9vYmFy", Some(b"foobar")),
            ("Z", None),
            ("Zm9*", None),
        ] {
            assert_eq!(unbased(text).as_deref(), bytes, "{text}");
        }
    }
}
