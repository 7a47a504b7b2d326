//! `iax.conf` in the words of the IAX2 driver.

use core::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use call::PartyId;
use driver::iax::{Access, Common, Config, Host, Peer, Registration, Transfer, User};
use iax2::Secret;
use iax2::frame::{Auth, DATAGRAM_BYTES_MAX, Media};
use iax2::machine::{Encrypt, Lines, Priority, TokenRule, TrunkSettings};
use store::Snapshot;
use store::config::iax::{
    AmaFlags, CodecPriority, ConnectedLine, IaxPeer, Methods, Register, RequireToken, Transfer as Leaves,
};

use super::{list, marking};

/// Seconds that we ask for when we register elsewhere, as chan_iax2 does.
const REFRESH_SECONDS: u16 = 60;
/// The context of calls for which nothing else is written.
const CONTEXT: &str = "default";

/// The IAX2 driver's configuration.
pub(crate) fn iax_config(snapshot: &Snapshot) -> Config {
    let iax = &snapshot.iax;
    let general = &iax.general;
    Config {
        binds: if iax.enabled { iax.addresses() } else { Vec::new() },
        marking: marking(general.tos, general.cos),
        users: iax
            .users
            .iter()
            .map(|(name, of)| (Rc::from(name.as_str()), Rc::new(iax_user(name, of, general.maxjitterbuffer))))
            .collect(),
        peers: iax
            .peers
            .iter()
            .map(|(name, of)| {
                let mut peer = iax_peer(name, of, general.maxjitterbuffer, general.srvlookup);
                peer.is_friend = iax.users.contains_key(name);
                (Rc::from(name.as_str()), Rc::new(peer))
            })
            .collect(),
        registrations: iax
            .registrations
            .iter()
            .map(|of| Rc::new(registration(of, general.auth.plaintext)))
            .collect(),
        defaults: common(&iax.defaults(), general.maxjitterbuffer),
        srv_lookup: general.srvlookup,
        reg_context: general.regcontext.clone(),
        lease_min: seconds(general.minregexpire),
        lease_max: seconds(general.maxregexpire),
        autokill: general.autokill,
        shrink_caller_id: general.shrinkcallerid,
        delay_reject: general.delayreject,
        auth_debug: general.authdebug,
        mailbox_detail: general.mailboxdetail,
        token_optional: general.calltokenoptional.iter().map(store::config::acl::Net::parts).collect(),
        numbers_of_address: general.maxcallnumbers,
        number_ranges: iax.limits.iter().map(|(net, most)| (net.parts(), *most)).collect(),
        numbers_without_token: general.maxcallnumbers_nonvalidated,
        keys: crate::keys::load(&snapshot.asterisk.directories.astkeydir),
        trunk: TrunkSettings {
            every: general.trunkfreq,
            bytes_max: match general.trunkmtu {
                // As long as a datagram may be: whether it is cut is left to the network.
                0 => DATAGRAM_BYTES_MAX,
                bytes => usize::try_from(bytes).unwrap_or(DATAGRAM_BYTES_MAX),
            },
            stamped: general.trunktimestamps,
        },
        ..Config::default()
    }
}

fn seconds(duration: core::time::Duration) -> u16 {
    u16::try_from(duration.as_secs()).unwrap_or(u16::MAX)
}

fn secret(of: &store::config::Secret) -> Option<Secret> {
    (!of.is_empty()).then(|| Secret::new(of.expose().as_bytes()))
}

fn said(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Keys are separated by colons.
fn keys(text: &str) -> Vec<String> {
    text.split(':').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn methods(of: Methods) -> Auth {
    let each = [(of.plaintext, Auth::PLAINTEXT), (of.md5, Auth::MD5), (of.rsa, Auth::RSA)];
    each.iter().filter(|(wanted, _)| *wanted).fold(Auth(0), |all, (_, one)| all.with(*one))
}

fn caller(from: &IaxPeer) -> PartyId {
    let mut caller = PartyId::parse(&from.callerid);
    if let Some(name) = said(&from.fullname) {
        caller.name = Some(name);
    }
    if let Some(number) = said(&from.cid_number) {
        caller.number = Some(number);
    }
    caller
}

fn common(from: &IaxPeer, jitter: core::time::Duration) -> Common {
    let access = from.access.clone();
    Common {
        is_realtime: false,
        keys_stay: !from.keyrotate,
        formats: from.allow.formats,
        video: from.allow.video.iter().filter(|format| Media::of_video(*format).is_some()).collect(),
        priority: match from.codecpriority {
            CodecPriority::Host => Priority::Host,
            CodecPriority::Caller => Priority::Caller,
            CodecPriority::Disabled => Priority::Disabled,
            CodecPriority::ReqOnly => Priority::ReqOnly,
        },
        auth: methods(from.auth),
        encrypt: match (from.forceencryption.on(), from.encryption.on()) {
            (true, _) => Encrypt::Required,
            (false, true) => Encrypt::Wanted,
            (false, false) => Encrypt::No,
        },
        transfer: match from.transfer {
            Leaves::Yes => Transfer::Yes,
            Leaves::No => Transfer::No,
            Leaves::MediaOnly => Transfer::MediaOnly,
        },
        trunk: from.trunk,
        jitter: Some(jitter),
        token: match from.requirecalltoken {
            RequireToken::Yes => TokenRule::Yes,
            RequireToken::Auto => TokenRule::Auto,
            RequireToken::No => TokenRule::No,
        },
        numbers_max: (from.maxcallnumbers > 0).then_some(from.maxcallnumbers),
        language: from.language.clone(),
        music_class: from.mohinterpret.clone(),
        music_suggested: from.mohsuggest.clone(),
        account: from.accountcode.clone(),
        caller: caller(from),
        presentation: None,
        set_var: from.setvar.clone(),
        access: (!access.is_empty()).then(|| Rc::new(move |ip| access.allows(ip)) as Access),
        lines: Lines {
            send: matches!(from.connectedline, ConnectedLine::Yes | ConnectedLine::Send),
            take: matches!(from.connectedline, ConnectedLine::Yes | ConnectedLine::Receive),
        },
        challenges_max: from.maxauthreq,
        source: from.sourceaddress.map(|source| SocketAddr::new(source.ip, source.port.unwrap_or(0))),
        parking_lot: from.parkinglot.clone(),
        immediate: from.immediate,
        evens_out: from.forcejitterbuffer,
    }
}

pub(crate) fn iax_user(name: &str, from: &IaxPeer, jitter: core::time::Duration) -> User {
    let contexts = if from.context.is_empty() { vec![CONTEXT.to_owned()] } else { from.context.clone() };
    User {
        name: name.into(),
        contexts,
        secret: secret(&from.secret),
        secret_in: said(&from.dbsecret),
        keys: keys(&from.inkeys),
        common: common(from, jitter),
        ama_flags: match from.amaflags {
            AmaFlags::Default => None,
            AmaFlags::Documentation => Some(call::AmaFlags::Documentation),
            AmaFlags::Billing => Some(call::AmaFlags::Billing),
            AmaFlags::Omit => Some(call::AmaFlags::Omit),
        },
    }
}

fn host(from: &IaxPeer, srv: bool) -> Host {
    let known = |text: &str| text.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, from.port));
    match from.host.as_str() {
        _ if from.is_dynamic() => Host::Dynamic(known(&from.defaultip)),
        "" => known(&from.defaultip).map_or(Host::Nowhere, Host::Fixed),
        name => known(name).map_or_else(|| Host::Named(name.to_owned(), from.port, srv), Host::Fixed),
    }
}

pub(crate) fn iax_peer(name: &str, from: &IaxPeer, jitter: core::time::Duration, srv: bool) -> Peer {
    Peer {
        name: name.into(),
        host: host(from, srv),
        seen: None,
        username: from.username.clone(),
        secret: secret(&from.secret),
        secret_in: said(&from.dbsecret),
        keys: keys(&from.inkeys),
        own_key: from.outkey.clone(),
        contexts: from.context.clone(),
        context: from.peercontext.clone(),
        extensions: from.regexten.clone(),
        qualify: from.qualify,
        qualify_every: from.qualifyfreqok,
        qualify_every_down: from.qualifyfreqnotok,
        qualify_smooth: from.qualifysmoothing,
        mailboxes: list(std::slice::from_ref(&from.mailbox)),
        send_ani: from.sendani,
        is_friend: false,
        common: common(from, jitter),
    }
}

fn registration(from: &Register, plaintext: bool) -> Registration {
    let place = match from.host.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, from.port).to_string(),
        Err(_) => format!("{}:{}", from.host, from.port),
    };
    Registration {
        host: from.host.clone(),
        port: from.port,
        username: from.username.clone(),
        secret: secret(&from.secret),
        key: from.outkey.clone().unwrap_or_default(),
        refresh: REFRESH_SECONDS,
        plaintext,
        place,
    }
}

#[cfg(test)]
mod tests;
