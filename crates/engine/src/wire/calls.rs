//! What the call core reads: its settings, what this system is called, and who is banned when.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::BTreeMap;
use std::rc::Rc;

use base::Coded;
use call::transactions::TransactionRules;
use call::{BanRules, Directories, Settings};
use store::Snapshot;

/// What this system is called.
pub(crate) fn system_name(snapshot: &Snapshot) -> String {
    let options = &snapshot.asterisk.options;
    match (options.autosystemname, options.systemname.as_str()) {
        (true, "") => io::process::host_name(),
        (_, name) => name.to_owned(),
    }
}

/// The call core's settings.
pub(crate) fn settings(snapshot: &Snapshot, coded: Coded) -> Settings {
    let options = &snapshot.asterisk.options;
    let general = &snapshot.cdr.general;
    Settings {
        coded,
        system_name: system_name(snapshot),
        entity_id: options.entityid.clone(),
        language: options.defaultlanguage.clone(),
        country: snapshot.tones.general.country.clone(),
        directories: directories(snapshot),
        transmit_silence: options.transmit_silence,
        named_music_first: !snapshot.music.general.preferchannelclass,
        cdr_enabled: general.enable,
        cdr_unanswered: general.unanswered,
        cdr_congestion: general.congestion,
        cdr_cancel: general.canceldispositionenabled,
        cdr_end_before_h: general.endbeforehexten,
        cel: snapshot.cel.settings().map(Rc::new),
        cdr_on_request: !general.channeldefaultenabled,
        cdr_initiated_seconds: general.initiatedseconds,
        cdr_ignore_dialling: general.ignoredialchanges,
        disabled_modules: snapshot.modules.disabled().clone(),
        live_dangerously: options.live_dangerously,
        conferences: snapshot.confbridge.profiles.clone(),
        meeting_rooms: snapshot.meetme.rooms.clone(),
        bookings: call::conference::Bookings {
            has_rows: !snapshot.realtime.families.of("meetme").is_empty(),
            ..snapshot.meetme.bookings.clone()
        },
        follow_me: snapshot.followme.profiles.clone(),
        features: Rc::new(snapshot.features.clone()),
        music_when_answered: {
            let only = snapshot.music.classes.iter().filter(|(_, class)| class.answeredonly);
            Rc::new(only.map(|(name, _)| name.clone()).collect())
        },
        music_keys: Rc::new(snapshot.music.keys()),
        machines: snapshot.amd.machines(),
        transactions: Rc::new(transaction_rules(snapshot)),
        voicemail: snapshot.voicemail.voicemail.clone(),
        minivm: snapshot.minivm.clone(),
    }
}

/// Databases that the dialplan can name, and what holds for transactions in them. Of two with a name the class of
/// `res_odbc.conf` is meant, which comes first.
fn transaction_rules(snapshot: &Snapshot) -> BTreeMap<String, TransactionRules> {
    let mut rules = BTreeMap::new();
    for ((_, name), of) in &snapshot.realtime.databases {
        let own = TransactionRules { isolation: of.isolation, forcecommit: of.forcecommit };
        rules.entry(name.clone()).or_insert(own);
    }
    rules
}

/// Who is banned when.
pub(crate) fn ban_rules(snapshot: &Snapshot) -> BanRules {
    let bans = &snapshot.asterisk.bans;
    if !bans.enabled {
        return BanRules::default();
    }
    let own = [(IpAddr::V4(Ipv4Addr::LOCALHOST), 8), (IpAddr::V6(Ipv6Addr::LOCALHOST), 128)];
    let own = own.into_iter().filter(|_| !bans.loopback);
    BanRules {
        per_user: bans.maxretry,
        per_address: bans.maxretry_address,
        span: bans.findtime,
        first: bans.bantime,
        longest: bans.maxbantime.max(bans.bantime),
        allowed: bans.ignoreip.iter().map(|net| net.parts()).chain(own).collect(),
    }
}

fn directories(snapshot: &Snapshot) -> Directories {
    let from = &snapshot.asterisk.directories;
    let rows = [
        ("etc", &from.astetcdir),
        ("mod", &from.astmoddir),
        ("varlib", &from.astvarlibdir),
        ("db", &from.astdbdir),
        ("key", &from.astkeydir),
        ("data", &from.astdatadir),
        ("agi", &from.astagidir),
        ("spool", &from.astspooldir),
        ("run", &from.astrundir),
        ("log", &from.astlogdir),
        ("sbin", &from.astsbindir),
        ("cache", &from.astcachedir),
    ];
    Directories(rows.into_iter().map(|(name, path)| (name.to_owned(), path.display().to_string())).collect())
}
