//! Every option that the tables call supported reaches the driver, and changes it the way its row says.

use std::collections::BTreeSet;
use std::fs;

use base::FormatId;
use store::Where;
use store::config::{Status, manual};

use super::*;

/// What the driver gets for this file.
fn config(text: &str) -> Config {
    use std::sync::atomic::{AtomicU32, Ordering};
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("strowger-wire-iax-{}-{serial}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in [
        ("extensions.conf", "[default]\n"),
        ("iax.conf", text),
        ("acl.conf", "[office]\ndeny=0.0.0.0/0.0.0.0\npermit=10.0.0.0/8\n"),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
    let snapshot = Snapshot::load(&Where::Dir(folder.clone())).unwrap().0;
    fs::remove_dir_all(&folder).ok();
    iax_config(&snapshot)
}

fn formats(common: &Common) -> String {
    common.formats.iter().take(3).map(FormatId::name).collect::<Vec<_>>().join(",")
}

fn video(common: &Common) -> String {
    common.video.iter().map(FormatId::name).collect::<Vec<_>>().join(",")
}

fn lines(common: &Common) -> String {
    match (common.lines.send, common.lines.take) {
        (true, true) => "send receive",
        (true, false) => "send",
        (false, true) => "receive",
        (false, false) => "no",
    }
    .to_owned()
}

fn ama_flags(user: &User) -> String {
    user.ama_flags.map(|flags| flags.name().to_owned()).unwrap_or_default()
}

fn lets_in(common: &Common, address: &str) -> bool {
    common.access.as_ref().is_none_or(|access| access(address.parse().unwrap()))
}

/// An option of `[general]`, a value, and what the driver has of it without and with the line.
type GeneralRow = (&'static str, &'static str, fn(&Config) -> String, &'static str, &'static str);

const GENERAL: &[GeneralRow] = &[
    ("bindaddr", "127.0.0.1:5036", |c| format!("{:?}", c.binds), "[0.0.0.0:4569]", "[127.0.0.1:5036]"),
    ("bindport", "5036", |c| format!("{:?}", c.binds), "[0.0.0.0:4569]", "[0.0.0.0:5036]"),
    ("port", "5036", |c| format!("{:?}", c.binds), "[0.0.0.0:4569]", "[0.0.0.0:5036]"),
    ("accountcode", "a", |c| c.defaults.account.clone(), "", "a"),
    ("amaflags", "billing", |c| ama_flags(&c.users["u"]), "", "BILLING"),
    ("autokill", "yes", |c| format!("{:?}", c.autokill), "None", "Some(2s)"),
    ("autokill", "750", |c| format!("{:?}", c.autokill), "None", "Some(750ms)"),
    ("shrinkcallerid", "no", |c| c.shrink_caller_id.to_string(), "true", "false"),
    ("forcejitterbuffer", "yes", |c| c.peers["p"].common.evens_out.to_string(), "false", "true"),
    ("language", "de", |c| c.users["u"].common.language.clone(), "", "de"),
    ("parkinglot", "lot", |c| c.users["u"].common.parking_lot.clone(), "", "lot"),
    ("mohinterpret", "m", |c| c.peers["p"].common.music_class.clone(), "default", "m"),
    ("mohsuggest", "m", |c| c.peers["p"].common.music_suggested.clone(), "", "m"),
    ("bandwidth", "low", |c| formats(&c.defaults), "ulaw,alaw,gsm", "gsm,ilbc30,speex"),
    ("allow", "!all,g722", |c| formats(&c.defaults), "ulaw,alaw,gsm", "g722"),
    ("disallow", "ulaw", |c| formats(&c.users["u"].common), "ulaw,alaw,gsm", "alaw,gsm,g722"),
    ("codecpriority", "caller", |c| format!("{:?}", c.defaults.priority), "Host", "Caller"),
    ("auth", "md5,rsa", |c| c.users["u"].common.auth.0.to_string(), "2", "6"),
    ("transfer", "mediaonly", |c| format!("{:?}", c.peers["p"].common.transfer), "Yes", "MediaOnly"),
    ("encryption", "yes", |c| format!("{:?}", c.peers["p"].common.encrypt), "No", "Wanted"),
    ("forceencryption", "yes", |c| format!("{:?}", c.users["u"].common.encrypt), "No", "Required"),
    ("keyrotate", "no", |c| c.users["u"].common.keys_stay.to_string(), "false", "true"),
    ("maxjitterbuffer", "200", |c| format!("{:?}", c.defaults.jitter), "Some(1s)", "Some(200ms)"),
    ("trunkfreq", "30", |c| format!("{:?}", c.trunk.every), "20ms", "30ms"),
    ("trunkmtu", "0", |c| c.trunk.bytes_max.to_string(), "1240", "1472"),
    ("trunkmtu", "500", |c| c.trunk.bytes_max.to_string(), "1240", "500"),
    ("trunktimestamps", "no", |c| c.trunk.stamped.to_string(), "true", "false"),
    ("minregexpire", "90", |c| format!("{} {}", c.lease_min, c.lease_max), "60 60", "90 90"),
    ("maxregexpire", "3600", |c| format!("{} {}", c.lease_min, c.lease_max), "60 60", "60 3600"),
    ("register", "us:s@192.0.2.1", |c| c.registrations.len().to_string(), "0", "1"),
    ("maxcallnumbers", "16", |c| c.numbers_of_address.to_string(), "2048", "16"),
    ("maxcallnumbers_nonvalidated", "16", |c| c.numbers_without_token.to_string(), "8192", "16"),
    ("calltokenoptional", "10.0.0.0/8", |c| format!("{:?}", c.token_optional), "[]", "[(10.0.0.0, 8)]"),
    ("requirecalltoken", "auto", |c| format!("{:?}", c.users["u"].common.token), "Yes", "Auto"),
    ("callerid", "\"A\" <1>", |c| format!("{:?}", c.users["u"].common.caller.number), "None", "Some(\"1\")"),
    ("regcontext", "reg", |c| c.reg_context.clone(), "", "reg"),
    ("delayreject", "yes", |c| c.delay_reject.to_string(), "false", "true"),
    ("srvlookup", "yes", |c| c.srv_lookup.to_string(), "false", "true"),
    ("maxauthreq", "7", |c| c.users["u"].common.challenges_max.to_string(), "3", "7"),
    ("connectedline", "send", |c| lines(&c.users["u"].common), "no", "send"),
    ("tos", "ef", |c| c.marking.tos.to_string(), "0", "184"),
    ("cos", "5", |c| c.marking.priority.to_string(), "0", "5"),
];

#[test]
fn every_supported_option_of_general_reaches_the_driver() {
    let sections = "[u]\ntype=user\n[p]\ntype=peer\nhost=192.0.2.1\n";
    let plain = config(&format!("[general]\n{sections}"));
    for (option, value, show, without, with) in GENERAL {
        assert_eq!(show(&plain), *without, "{option}");
        let written = config(&format!("[general]\n{option}={value}\n{sections}"));
        assert_eq!(show(&written), *with, "{option}={value}");
    }
    // Those of databases are `iax_rows`' own.
    let rows = ["rtcachefriends", "rtupdate", "rtautoclear", "rtignoreregexpire", "rtsavesysname"];
    covered("general", GENERAL.iter().map(|row| row.0), &rows);
}

/// An option of a friend, a value, and what the driver has of it without and with the line.
type FriendRow = (&'static str, &'static str, fn(&User, &Peer) -> String, &'static str, &'static str);

const FRIEND: &[FriendRow] = &[
    ("username", "us", |_, p| p.username.clone(), "f", "us"),
    (
        "secret",
        "s",
        |u, p| format!("{:?} {:?}", u.secret, p.secret),
        "None None",
        "Some(Secret) Some(Secret)",
    ),
    (
        "dbsecret",
        "far/key",
        |u, p| format!("{:?} {:?}", u.secret_in, p.secret_in),
        "None None",
        "Some(\"far/key\") Some(\"far/key\")",
    ),
    ("mailbox", "1,2@x", |_, p| p.mailboxes.join(" "), "", "1 2@x"),
    ("regexten", "100&200", |_, p| p.extensions.clone(), "", "100&200"),
    ("inkeys", "a:b", |u, p| format!("{:?} {:?}", u.keys, p.keys), "[] []", "[\"a\", \"b\"] [\"a\", \"b\"]"),
    ("outkey", "a", |_, p| p.own_key.clone(), "", "a"),
    ("outkeys", "a", |_, p| p.own_key.clone(), "", "a"),
    ("maxauthreq", "7", |u, _| u.common.challenges_max.to_string(), "3", "7"),
    ("qualifysmoothing", "yes", |_, p| p.qualify_smooth.to_string(), "false", "true"),
    ("sourceaddress", "192.0.2.9", |_, p| format!("{:?}", p.common.source), "None", "Some(192.0.2.9:0)"),
    (
        "sourceaddress",
        "192.0.2.9:5036",
        |_, p| format!("{:?}", p.common.source),
        "None",
        "Some(192.0.2.9:5036)",
    ),
    ("auth", "plaintext,md5", |u, _| u.common.auth.0.to_string(), "2", "3"),
    ("host", "dynamic", |_, p| format!("{:?}", p.host), "Nowhere", "Dynamic(None)"),
    ("host", "192.0.2.1", |_, p| format!("{:?}", p.host), "Nowhere", "Fixed(192.0.2.1:4569)"),
    ("host", "a.example", |_, p| format!("{:?}", p.host), "Nowhere", "Named(\"a.example\", 4569, false)"),
    ("host", "::1\nport=5036", |_, p| format!("{:?}", p.host), "Nowhere", "Fixed([::1]:5036)"),
    (
        "port",
        "5036\nhost=a.example",
        |_, p| format!("{:?}", p.host),
        "Nowhere",
        "Named(\"a.example\", 5036, false)",
    ),
    (
        "defaultip",
        "192.0.2.9\nhost=dynamic",
        |_, p| format!("{:?}", p.host),
        "Nowhere",
        "Dynamic(Some(192.0.2.9:4569))",
    ),
    ("context", "a\ncontext=b", |u, _| u.contexts.join(" "), "default", "a b"),
    ("context", "a\ncontext=b", |_, p| p.contexts.join(" "), "", "a b"),
    ("peercontext", "there", |_, p| p.context.clone(), "", "there"),
    (
        "permit",
        "10.0.0.0/8\npermit=!0.0.0.0/0",
        |u, _| lets_in(&u.common, "192.0.2.1").to_string(),
        "true",
        "false",
    ),
    ("deny", "0.0.0.0/0", |_, p| lets_in(&p.common, "192.0.2.1").to_string(), "true", "false"),
    ("acl", "office", |u, _| lets_in(&u.common, "192.0.2.1").to_string(), "true", "false"),
    ("allow", "!all,gsm", |u, _| formats(&u.common), "ulaw,alaw,gsm", "gsm"),
    ("allow", "h264,vp9", |_, p| video(&p.common), "", "h264"),
    ("disallow", "ulaw", |_, p| formats(&p.common), "ulaw,alaw,gsm", "alaw,gsm,g722"),
    ("codecpriority", "reqonly", |u, _| format!("{:?}", u.common.priority), "Host", "ReqOnly"),
    ("codecpriority", "disabled", |u, _| format!("{:?}", u.common.priority), "Host", "Disabled"),
    ("qualify", "yes", |_, p| format!("{:?}", p.qualify), "None", "Some(2s)"),
    ("qualifyfreqok", "30000", |_, p| format!("{:?}", p.qualify_every), "60s", "30s"),
    ("qualifyfreqnotok", "5000", |_, p| format!("{:?}", p.qualify_every_down), "10s", "5s"),
    ("trunk", "yes", |u, p| format!("{} {}", u.common.trunk, p.common.trunk), "false false", "true true"),
    ("transfer", "no", |u, _| format!("{:?}", u.common.transfer), "Yes", "No"),
    ("encryption", "aes128", |_, p| format!("{:?}", p.common.encrypt), "No", "Wanted"),
    ("forceencryption", "yes", |_, p| format!("{:?}", p.common.encrypt), "No", "Required"),
    ("keyrotate", "no", |_, p| p.common.keys_stay.to_string(), "false", "true"),
    ("requirecalltoken", "no", |u, _| format!("{:?}", u.common.token), "Yes", "No"),
    ("maxcallnumbers", "512", |_, p| format!("{:?}", p.common.numbers_max), "None", "Some(512)"),
    ("connectedline", "yes", |_, p| lines(&p.common), "no", "send receive"),
    ("connectedline", "receive", |u, _| lines(&u.common), "no", "receive"),
    ("callerid", "\"A\" <1>", |u, _| format!("{:?}", u.common.caller.name), "None", "Some(\"A\")"),
    ("fullname", "B\ncallerid=A <1>", |u, _| format!("{:?}", u.common.caller.name), "None", "Some(\"B\")"),
    (
        "cid_number",
        "2\ncallerid=A <1>",
        |u, _| format!("{:?}", u.common.caller.number),
        "None",
        "Some(\"2\")",
    ),
    ("sendani", "yes", |_, p| p.send_ani.to_string(), "false", "true"),
    ("setvar", "A=b", |u, _| format!("{:?}", u.common.set_var), "[]", "[(\"A\", \"b\")]"),
    ("accountcode", "a", |u, _| u.common.account.clone(), "", "a"),
    ("amaflags", "omit", |u, _| ama_flags(u), "", "OMIT"),
    ("amaflags", "documentation", |u, _| ama_flags(u), "", "DOCUMENTATION"),
    ("forcejitterbuffer", "yes", |u, _| u.common.evens_out.to_string(), "false", "true"),
    ("language", "de", |u, _| u.common.language.clone(), "", "de"),
    ("mohinterpret", "m", |u, _| u.common.music_class.clone(), "default", "m"),
    ("mohsuggest", "m", |_, p| p.common.music_suggested.clone(), "", "m"),
    ("immediate", "yes", |u, _| u.common.immediate.to_string(), "false", "true"),
    (
        "parkinglot",
        "lot",
        |u, p| format!("{} {}", u.common.parking_lot, p.common.parking_lot),
        " ",
        "lot lot",
    ),
];

#[test]
fn every_supported_option_of_a_section_reaches_the_driver() {
    let shown =
        |config: &Config, show: fn(&User, &Peer) -> String| show(&config.users["f"], &config.peers["f"]);
    let plain = config("[general]\n[f]\ntype=friend\n");
    assert!(plain.peers["f"].is_friend);
    for (option, value, show, without, with) in FRIEND {
        assert_eq!(shown(&plain, *show), *without, "{option}");
        let written = config(&format!("[general]\n[f]\ntype=friend\n{option}={value}\n"));
        assert_eq!(shown(&written, *show), *with, "{option}={value}");
    }
    covered("user, peer, friend", FRIEND.iter().map(|row| row.0), &["type", "description"]);
}

/// Each supported option of a section is among `tested`, or in `elsewhere` with a test or a use of its own.
fn covered(section: &str, tested: impl Iterator<Item = &'static str>, elsewhere: &[&'static str]) {
    let tested: BTreeSet<&str> = tested.chain(elsewhere.iter().copied()).collect();
    let rows = manual();
    let supported: BTreeSet<&str> = rows
        .iter()
        .filter(|row| (row.file, row.section, row.status) == ("iax.conf", section, Status::Supported))
        .map(|row| row.name)
        .collect();
    let missing: Vec<_> = supported.difference(&tested).collect();
    assert!(missing.is_empty(), "options that are called supported and not looked at: {missing:?}");
}

#[test]
fn without_the_file_nothing_listens_and_a_peer_calls_nobody_a_friend() {
    let folder = std::env::temp_dir().join(format!("strowger-wire-no-iax-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let snapshot = Snapshot::load(&Where::Dir(folder.clone())).unwrap().0;
    fs::remove_dir_all(&folder).ok();
    assert!(iax_config(&snapshot).binds.is_empty());
    let config = config("[general]\n[p]\ntype=peer\nhost=192.0.2.1\n[u]\ntype=user\n");
    assert!(
        !config.peers["p"].is_friend && !config.users.contains_key("p") && !config.peers.contains_key("u")
    );
}

#[test]
fn registrations_and_limits_come_in_the_order_of_their_lines() {
    let config = config(
        "[general]\nauth=md5,plaintext\nregister => a:s@a.example\nregister => b:[key]@[2001:db8::1]:5036\n\
         [callnumberlimits]\n10.1.0.0/16 = 4000\n10.0.0.0/8 = 24\n",
    );
    let told: Vec<String> = config
        .registrations
        .iter()
        .map(|of| format!("{} {} {:?} {} {}", of.username, of.place, of.secret, of.key, of.plaintext))
        .collect();
    assert_eq!(told, ["a a.example:4569 Some(Secret)  true", "b [2001:db8::1]:5036 None key true"]);
    let limits: Vec<String> =
        config.number_ranges.iter().map(|((net, bits), most)| format!("{net}/{bits} {most}")).collect();
    assert_eq!(limits, ["10.1.0.0/16 4000", "10.0.0.0/8 24"]);
}
