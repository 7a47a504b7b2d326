//! Login and Challenge: who may come in, and what the log says of those who may not.
//!
//! Unknown user, wrong secret, wrong key and refused address look alike from outside, in bytes and in the work done; the
//! log tells them apart.

use md5::{Digest as _, Md5};
use std::net::SocketAddr;

use store::config::manager::{Classes, ManagerGeneral, ManagerUser};
use subtle::ConstantTimeEq as _;

use call::security;
use call::{Attempt, Level};

use super::filter::Filters;
use super::packet::{Message, truth};
use super::session::{Login, Stage};
use super::table::{ActionRow, After, Done, Turn, may, must};
use super::web;
use crate::site::Site;

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "Login",
        class: &[],
        synopsis: "Logs a user of manager.conf in.",
        fields: &[
            must("Username", "user of manager.conf"),
            may("Secret", "its secret, for plain login"),
            may("AuthType", "MD5 for login with Key"),
            may("Key", "hexadecimal MD5 of the challenge followed by the secret"),
            may("Events", "on, off, or the classes of events it wants"),
        ],
        run: login,
    },
    ActionRow {
        name: "Challenge",
        class: &[],
        synopsis: "Gives a challenge for login with AuthType MD5; good for one attempt.",
        fields: &[must("AuthType", "MD5")],
        run: challenge,
    },
    ActionRow { name: "Logoff", class: &[], synopsis: "Ends the session.", fields: &[], run: logoff },
];

/// Actions that may be used before login.
pub(super) fn is_for_strangers(row: &ActionRow) -> bool {
    ROWS.iter().any(|own| own.name == row.name)
}

/// The classes that `Events` names; `None` for words that say nothing.
pub(super) fn mask(text: &str) -> Classes {
    match text {
        text if truth(text) => Classes::ALL,
        text => text.split([',', ' ']).filter_map(Classes::named).fold(Classes::NONE, Classes::union),
    }
}

fn challenge(turn: &mut Turn<'_>) -> Done {
    if !turn.need("AuthType")?.eq_ignore_ascii_case("MD5") {
        return Err("Must specify AuthType".into());
    }
    let mut bytes = [0; 8];
    if getrandom::fill(&mut bytes).is_err() {
        return Err("No challenge is to be had".into());
    }
    // Digits alone, as clients have seen for decades.
    let text = u64::from_le_bytes(bytes).to_string();
    turn.session.challenge = Some(text.clone());
    turn.response("Success").field("Challenge", text).end();
    Ok(After::Go)
}

fn logoff(turn: &mut Turn<'_>) -> Done {
    turn.response("Goodbye").field("Message", "Thanks for all the fish.").end();
    Ok(After::Close)
}

/// Why nobody came in; for the log only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denied {
    UnknownUser,
    Address,
    Secret,
    Key,
}

impl Denied {
    /// The security event's name.
    fn event(self) -> &'static str {
        match self {
            Self::UnknownUser => "InvalidAccountID",
            Self::Address => "FailedACL",
            Self::Secret => "InvalidPassword",
            Self::Key => "ChallengeResponseFailed",
        }
    }
}

fn login(turn: &mut Turn<'_>) -> Done {
    if turn.login().is_some() {
        return turn.success("Already authenticated");
    }
    let name = turn.get("Username").unwrap_or_default().to_owned();
    let snapshot = turn.site.snapshot.borrow().clone();
    let challenge = turn.session.challenge.take();
    let user = snapshot.manager.users.get(&name);
    let proved = prove(turn, user, challenge.as_deref());
    if let Err(why) = judged(turn.site, turn.session.peer, &name, proved) {
        tell_denied(turn.site, turn.session.peer, turn.id, &name, why);
        turn.response("Error").field("Message", "Authentication failed").end();
        return Ok(After::Close);
    }
    let Some(user) = user else { return Ok(After::Close) };
    let general = &snapshot.manager.general;
    if turn.again && !(user.allowmultiplelogin && general.allowmultiplelogin) {
        turn.response("Error").field("Message", "Login Already In Use").end();
        return Ok(After::Close);
    }
    let login = entered(&name, user, general, turn.get("Events"));
    Message::response("Success", turn.action.get("ActionID"), &mut turn.out)
        .field("Message", "Authentication accepted")
        .end();
    Ok(After::LoggedIn(Box::new(login)))
}

/// A user who has come in; `events` is what it wants to hear.
pub(super) fn entered(
    name: &str,
    user: &ManagerUser,
    general: &ManagerGeneral,
    events: Option<&str>,
) -> Login {
    Login {
        user: name.to_owned(),
        since: 0,
        read: user.read,
        write: user.write,
        wanted: events.map_or(Classes::ALL, mask),
        filters: filters(user),
        configured_filters: user.eventfilter.len() + user.filters.len(),
        timestamps: user.timestampevents || general.timestampevents,
        variables: user.setvar.clone(),
        is_told: user.displayconnects && general.displayconnects,
    }
}

/// Filters of the configuration; what cannot be read was said when it was loaded and lets nothing more through.
pub(super) fn filters(user: &ManagerUser) -> Filters {
    let mut filters = Filters::default();
    for text in &user.eventfilter {
        if filters.add(text).is_err() {
            // A filter that cannot be read must not widen what a user sees: it holds everything back.
            let _ = filters.add("!^");
        }
    }
    for rule in &user.filters {
        if filters.add_rule(rule.clone()).is_err() {
            let _ = filters.add("!^");
        }
    }
    filters
}

/// Whether the session has proved to be `user`. Does the same work for everybody.
fn prove(turn: &Turn<'_>, user: Option<&ManagerUser>, challenge: Option<&str>) -> Result<(), Denied> {
    let secret = user.map_or("no user has this secret", |user| user.secret.expose());
    let by_key = turn.get("AuthType").is_some_and(|word| word.eq_ignore_ascii_case("MD5"));
    let (given, expected) = if by_key {
        let expected = Md5::new().chain_update(challenge.unwrap_or_default()).chain_update(secret).finalize();
        (turn.get("Key").unwrap_or_default().to_ascii_lowercase(), hex(&expected))
    } else {
        (turn.get("Secret").unwrap_or_default().to_owned(), secret.to_owned())
    };
    // Hashed first, so that the length of the secret does not show either.
    let matches = bool::from(Md5::digest(&given).ct_eq(&Md5::digest(&expected)))
        & bool::from(given.as_bytes().ct_eq(expected.as_bytes()));
    let address = user.is_none_or(|user| user.access.allows(turn.session.peer.ip()));
    match user {
        None => Err(Denied::UnknownUser),
        Some(_) if !address => Err(Denied::Address),
        Some(_) if by_key && (challenge.is_none() || !matches) => Err(Denied::Key),
        Some(_) if !matches => Err(Denied::Secret),
        Some(_) => Ok(()),
    }
}

/// A proof as it counts: a user who has guessed too often from there has proved nothing, and who is right starts anew.
pub(super) fn judged(
    site: &Site,
    peer: SocketAddr,
    name: &str,
    proved: Result<(), Denied>,
) -> Result<(), Denied> {
    let mut core = site.shard.core.borrow_mut();
    let now = core.now;
    proved?;
    if core.bans.is_user_banned(peer.ip(), name, now) {
        return Err(Denied::Secret);
    }
    core.bans.succeeded(peer.ip(), name);
    Ok(())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut out, byte| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Tells the log and watchers who was refused.
pub(super) fn tell_denied(site: &Site, peer: SocketAddr, session: u64, name: &str, why: Denied) {
    let ip = peer.ip().to_canonical();
    let mut core = site.shard.core.borrow_mut();
    let line = format!("{ip} failed to authenticate as '{}'", security::shown(name));
    if core.tells_of(ip, security::Presence::Shown) {
        core.log(Level::Notice, "manager", &line);
        core.tell_attempt(|_| attempt(site, why.event(), peer, session, name));
    }
    core.password_refused("AMI", ip, name, || is_home(site, ip));
}

/// Whether phones are at home where a manager client comes from.
pub(crate) fn is_home(site: &Site, ip: std::net::IpAddr) -> bool {
    site.sip.try_borrow().is_ok_and(|sip| sip.is_home(ip))
}

/// Where managers connect to, as manager.conf names it; nothing of a session over HTTP, which has come elsewhere.
fn local(site: &Site, session: u64) -> String {
    let is_web = session == 0 || session >= web::FIRST;
    let address = site.snapshot.borrow().manager.general.address().filter(|_| !is_web);
    address.map(|address| security::address("TCP", address)).unwrap_or_default()
}

/// Somebody who tries to log in.
pub(super) fn attempt(
    site: &Site,
    event: &'static str,
    peer: SocketAddr,
    session: u64,
    name: &str,
) -> Attempt {
    Attempt {
        event,
        service: "AMI",
        account: name.to_owned(),
        // Clients know it as the address of a session.
        session: format!("{session:#014x}"),
        local: local(site, session),
        remote: security::address("TCP", peer),
        since: Some(0),
        ..Attempt::default()
    }
}

/// Tells watchers of an action that its session may not use, or that there is not.
pub(super) fn tell_refused(turn: &Turn<'_>, event: &'static str) {
    let account = turn.login().map(|login| (login.user.clone(), login.since));
    let (name, since) = account.unwrap_or_default();
    let wanted = turn.get("Action").unwrap_or("NONE");
    let mut core = turn.site.shard.core.borrow_mut();
    // Those who are logged in are no strangers.
    if name.is_empty() && !core.tells_of(turn.session.peer.ip().to_canonical(), security::Presence::Shown) {
        return;
    }
    core.tell_attempt(|_| Attempt {
        request: format!("Action: {wanted}"),
        since: Some(since),
        ..attempt(turn.site, event, turn.session.peer, turn.id, &name)
    });
}

/// Takes what a reload changed for a user who is logged in; `false` when the user is no more.
pub(super) fn refresh(login: &mut Login, snapshot: &store::Snapshot) -> bool {
    let Some(user) = snapshot.manager.users.get(&login.user) else { return false };
    let general = &snapshot.manager.general;
    login.read = user.read;
    login.write = user.write;
    login.timestamps = user.timestampevents || general.timestampevents;
    login.variables.clone_from(&user.setvar);
    login.is_told = user.displayconnects && general.displayconnects;
    let new = filters(user);
    let count = new.len();
    login.filters.replace_first(login.configured_filters, new);
    login.configured_filters = count;
    true
}

/// Whether a session is logged in as this user.
pub(super) fn is(stage: &Stage, user: &str) -> bool {
    matches!(stage, Stage::User(login) if login.user == user)
}
