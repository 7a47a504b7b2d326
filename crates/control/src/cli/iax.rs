//! IAX2: peers, users, registrations, calls and how the network treats them, in the field's columns.

use std::fmt::Write as _;

use driver::iax::{
    ChannelRow, HostNumbers, KeyKind, NetstatRow, Netstats, Numbers, PeerRow, PeerState, RegistryRow, UserRow,
};
use serde_json::{Value, json};
use store::config::iax::{CodecPriority, IaxPeer};

use super::text::{clean, s, yes_no};
use super::{Ask, Cli, Row, Said, show, verb};
use crate::iax::Show;
use crate::site::CacheWish;

/// Addresses that are listed at most.
const HOSTS_MAX: usize = 1000;

const PEER_KEYS: &str =
    "peers [name username host port dynamic trunk encryption status realtime expires channels]";

pub(super) const ROWS: &[Row] = &[
    show("iax2 show peers [like <pattern>]", "Lists IAX2 peers.", PEER_KEYS, Cli::iax_peers)
        .detail("pattern is a regular expression that is looked for in names."),
    show(
        "iax2 show peer <iax-peer>",
        "Shows one IAX2 peer and its options in effect; never its secret.",
        "peers [name username host port dynamic trunk encryption status realtime expires channels options]",
        Cli::iax_peer,
    ),
    show(
        "iax2 show users [like <pattern>]",
        "Lists IAX2 users; never their secrets.",
        "users [name secret auth context restricted codec_priority realtime]",
        Cli::iax_users,
    )
    .detail("pattern is a regular expression that is looked for in names."),
    show(
        "iax2 show registry",
        "Lists registrations of ours at IAX2 servers.",
        "registry [host username perceived refresh state]",
        Cli::iax_registry,
    ),
    show(
        "iax2 show channels",
        "Lists IAX2 calls.",
        "channels [name peer username local_number remote_number sent received lag_ms jitter_ms buffer_ms format encrypted \
         trunk first_message last_message]",
        Cli::iax_channels,
    ),
    show(
        "iax2 show netstats",
        "Shows how the network treats IAX2 calls: as we receive them, and as the other side says it does.",
        "channels [name round_trip_ms local remote first_message last_message]",
        Cli::iax_netstats,
    ),
    show(
        "iax2 show stats",
        "Counts IAX2 datagrams, and those that were dropped by reason.",
        "received sent legs trunks discards",
        Cli::iax_stats,
    ),
    show(
        "iax2 show callnumber usage [<address>]",
        "Shows how many IAX2 call numbers are taken, and by which addresses.",
        "hosts [address used limit] in_use resting own_resting addresses without_token without_token_max of_address_max",
        Cli::iax_numbers,
    )
    .detail("The thousand addresses with most numbers are listed, an IPv6 /64 as one; with an address only that one."),
    show(
        "iax2 show cache",
        "Lists what switches to IAX2 servers said of numbers.",
        "numbers [switch number expires exists more]",
        Cli::iax_cache,
    ),
    show("iax2 show threads", "Tells what serves IAX2.", "threads", |cli, ask| {
        cli.iax(|_| {
            ask.show(|| json!({ "threads": 1 }), || "One thread serves IAX2, SIP and calls.\n".to_owned())
        })
    }),
    show(
        "keys show",
        "Lists the RSA keys by which IAX2 peers prove who they are, and we do.",
        "keys [name type status sum]",
        Cli::iax_keys,
    ),
    verb(
        "keys init",
        "Says which RSA keys are protected by a passcode, and what to do about it; none is asked for.",
        Cli::iax_keys_init,
    ),
    verb(
        "iax2 unregister <iax-peer>",
        "Forgets where an IAX2 peer has registered from.",
        Cli::iax_unregister,
    ),
    verb(
        "iax2 prune realtime <iax-name>",
        "Has a user and peer that rows of a database have made asked for anew; `all`: every one.",
        Cli::iax_prune,
    ),
    verb(
        "iax2 reload",
        "Reads iax.conf again, and everything else with it. Calls and registrations go on.",
        |cli, _| cli.reload_part("chan_iax2", "Module 'chan_iax2.so' reloaded successfully.\n"),
    ),
];

impl Cli {
    /// What IAX2 says, when it is served.
    pub(super) fn iax(&self, answer: impl FnOnce(&mut dyn Show) -> Said) -> Said {
        match self.site.iax_sight.borrow().as_ref() {
            Some(iax) => answer(&mut *iax.borrow_mut()),
            None => Said::failed(self.without_iax()),
        }
    }

    /// Why IAX2 is not served, and what to do.
    fn without_iax(&self) -> &'static str {
        let snapshot = self.site.snapshot.borrow();
        match (snapshot.modules.has_module("chan_iax2"), snapshot.iax.enabled) {
            (false, _) => {
                "IAX2 is not served: modules.conf turns chan_iax2 off; remove that line, then `core reload`\n"
            }
            (true, false) => "IAX2 is not served: there is no iax.conf; write one, then `core reload`\n",
            (true, true) => "IAX2 is not served: no socket is open; see the log for why\n",
        }
    }

    pub(super) fn iax_peer_names(&self) -> Vec<String> {
        self.site.snapshot.borrow().iax.peers.keys().cloned().collect()
    }

    fn iax_peers(&self, ask: &mut Ask<'_>) -> Said {
        let like = match pattern(ask) {
            Ok(like) => like,
            Err(said) => return said,
        };
        self.iax(|iax| {
            let mut rows = iax.peers(None);
            rows.retain(|row| like.as_ref().is_none_or(|like| like.is_match(&row.name)));
            ask.show(
                || json!({ "peers": rows.iter().map(peer_json).collect::<Vec<_>>() }),
                || peers_text(&rows),
            )
        })
    }

    fn iax_peer(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("iax-peer").to_owned();
        self.iax(|iax| {
            let rows = iax.peers(Some(&name));
            let Some(row) = rows.first() else {
                return Said::failed(format!("Peer {} not found.\n", clean(&name)));
            };
            let data = || {
                let mut data = peer_json(row);
                if let Some(object) = data.as_object_mut() {
                    let options =
                        row.options.iter().map(|(name, value)| json!({ "name": name, "value": value }));
                    object.insert("options".to_owned(), options.collect());
                }
                json!({ "peers": [data] })
            };
            ask.show(data, || peer_text(row))
        })
    }

    fn iax_users(&self, ask: &mut Ask<'_>) -> Said {
        let like = match pattern(ask) {
            Ok(like) => like,
            Err(said) => return said,
        };
        let snapshot = self.site.snapshot.borrow();
        let fits = |name: &str| like.as_ref().is_none_or(|like| like.is_match(name));
        let sight = self.site.iax_sight.borrow();
        let of_rows = sight.as_ref().map(|iax| iax.borrow().users_of_rows()).unwrap_or_default();
        let own = snapshot.iax.users.iter().map(|(name, user)| UserLine::of_file(name, user));
        let mut users: Vec<UserLine> = own.chain(of_rows.into_iter().map(UserLine::of_row)).collect();
        users.retain(|user| fits(&user.name));
        let data = || {
            let rows = users.iter().map(|user| {
                json!({
                    "name": user.name, "secret": user.secret, "auth": user.auth, "context": user.context,
                    "restricted": user.restricted, "codec_priority": user.priority, "realtime": user.realtime,
                })
            });
            json!({ "users": rows.collect::<Vec<_>>() })
        };
        ask.show(data, || users_text(&users))
    }

    fn iax_registry(&self, ask: &mut Ask<'_>) -> Said {
        self.iax(|iax| {
            let rows = iax.registry();
            let data = || json!({ "registry": rows.iter().map(registry_json).collect::<Vec<_>>() });
            ask.show(data, || registry_text(&rows))
        })
    }

    fn iax_channels(&self, ask: &mut Ask<'_>) -> Said {
        self.iax(|iax| {
            let rows = iax.channels();
            let data = || json!({ "channels": rows.iter().map(channel_json).collect::<Vec<_>>() });
            ask.show(data, || channels_text(&rows))
        })
    }

    fn iax_netstats(&self, ask: &mut Ask<'_>) -> Said {
        self.iax(|iax| {
            let rows = iax.netstats();
            let data = || {
                let rows = rows.iter().map(|row| {
                    json!({
                        "name": row.channel, "round_trip_ms": millis(row.round_trip),
                        "local": side_json(&row.local), "remote": side_json(&row.remote),
                        "first_message": row.messages[0], "last_message": row.messages[1],
                    })
                });
                json!({ "channels": rows.collect::<Vec<_>>() })
            };
            ask.show(data, || netstats_text(&rows))
        })
    }

    fn iax_stats(&self, ask: &mut Ask<'_>) -> Said {
        self.iax(|iax| {
            let stats = iax.stats();
            let data = || {
                let discards: serde_json::Map<String, Value> =
                    stats.discards.iter().map(|(why, count)| ((*why).to_owned(), json!(count))).collect();
                json!({
                    "received": stats.received, "sent": stats.sent, "legs": stats.legs, "trunks": stats.trunks,
                    "discards": discards,
                })
            };
            let text = || {
                let mut out = String::from("    IAX Statistics\n---------------------\n");
                let _ = writeln!(out, "Datagrams: {} received, {} sent", stats.received, stats.sent);
                let _ = writeln!(out, "Calls, registrations and pokes under way: {}", stats.legs);
                let _ = writeln!(out, "Trunks: {}", stats.trunks);
                let dropped: u64 = stats.discards.iter().map(|(_, count)| count).sum();
                let _ = writeln!(out, "Datagrams dropped: {dropped}");
                for (why, count) in stats.discards.iter().filter(|(_, count)| *count > 0) {
                    let _ = writeln!(out, "    {why}: {count}");
                }
                out
            };
            ask.show(data, text)
        })
    }

    fn iax_numbers(&self, ask: &mut Ask<'_>) -> Said {
        self.iax(|iax| {
            let only = match ask.arg("address").map(str::parse) {
                None => None,
                Some(Ok(address)) => Some(address),
                Some(Err(_)) => {
                    return Said::failed(format!("'{}' is no address\n", clean(ask.need("address"))));
                }
            };
            let (numbers, hosts) = (iax.numbers(), iax.hosts(only, HOSTS_MAX));
            let data = || {
                let rows = hosts
                    .iter()
                    .map(|host| json!({ "address": host.address, "used": host.used, "limit": host.most }));
                json!({
                    "hosts": rows.collect::<Vec<_>>(),
                    "in_use": numbers.shared_in_use, "resting": numbers.shared_resting,
                    "own_resting": numbers.own_resting, "addresses": numbers.hosts,
                    "without_token": numbers.without_token, "without_token_max": numbers.without_token_max,
                    "of_address_max": numbers.of_address_max,
                })
            };
            ask.show(data, || numbers_text(&hosts, only.is_none().then_some(&numbers)))
        })
    }

    fn iax_cache(&self, ask: &mut Ask<'_>) -> Said {
        self.iax(|_| {
            let core = self.site.shard.core.borrow();
            let rows = || {
                core.switches.known(core.now).map(|((switch, number), answer, until)| {
                    // What stands before the host may be a password.
                    let (place, context) = switch.split_once('/').unwrap_or((switch, ""));
                    let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
                    (format!("{host}/{context}"), number, until.since(core.now).as_secs(), answer)
                })
            };
            let data = || {
                let rows = rows().map(|(switch, number, expires, answer)| {
                    json!({
                        "switch": switch, "number": number, "expires": expires, "exists": answer.exists,
                        "more": answer.more,
                    })
                });
                json!({ "numbers": rows.collect::<Vec<_>>() })
            };
            let text = || {
                let line = |cells: [&str; 5]| {
                    let [switch, number, expires, wait, flags] = cells;
                    format!("{switch:<20.20} {number:<12.12} {expires:<9.9} {wait:<8.8} {flags}\n")
                };
                rows().fold(line(["Peer/Context", "Exten", "Exp.", "Wait.", "Flags"]), |out, row| {
                    let (switch, number, expires, answer) = row;
                    let flags = match (answer.exists, answer.more) {
                        (true, true) => "EXISTS|MATCHMORE",
                        (true, false) => "EXISTS",
                        (false, true) => "CANEXIST|MATCHMORE",
                        (false, false) => "NONEXISTENT",
                    };
                    out + &line([&clean(&switch), &clean(number), &expires.to_string(), "0", flags])
                })
            };
            ask.show(data, text)
        })
    }

    fn iax_keys(&self, ask: &mut Ask<'_>) -> Said {
        self.iax(|iax| {
            let rows = iax.keys();
            let kind = |kind| if kind == KeyKind::Public { "PUBLIC" } else { "PRIVATE" };
            let data = || {
                let rows = rows.iter().map(|row| {
                    let status = row.status.trim_matches(['[', ']']);
                    json!({ "name": row.name, "type": kind(row.kind), "status": status, "sum": row.sum })
                });
                json!({ "keys": rows.collect::<Vec<_>>() })
            };
            let text = || {
                let line = |cells: [&str; 4]| {
                    let [name, kind, status, sum] = cells;
                    format!("{name:<18} {kind:<8} {status:<16} {sum:<33}\n")
                };
                let dashes = [
                    "------------------",
                    "--------",
                    "----------------",
                    "--------------------------------",
                ];
                let mut out = line(["Key Name", "Type", "Status", "Sum"]) + &line(dashes);
                for row in &rows {
                    out += &line([&clean(&row.name), kind(row.kind), row.status, &row.sum]);
                }
                let _ = writeln!(out, "{} known RSA key{}.", rows.len(), s(rows.len()));
                out
            };
            ask.show(data, text)
        })
    }

    fn iax_keys_init(&self, _: &mut Ask<'_>) -> Said {
        self.iax(|iax| {
            let rows = iax.keys();
            let locked = rows.iter().filter(|row| row.status == "[Needs Passcode]");
            let remedies: String = locked
                .map(|row| {
                    let name = clean(&row.name);
                    format!(
                        "{name} needs a passcode, which is not asked for here; take it off with\n  openssl rsa -traditional -in {name}.key -out {name}.key\nthen `core reload`\n"
                    )
                })
                .collect();
            match remedies.is_empty() {
                true => Said::done("No key needs a passcode.\n"),
                false => Said::failed(remedies),
            }
        })
    }

    /// Rows of `iaxusers` and `iaxpeers`, which the field forgets; while the database is away what is known serves.
    fn iax_prune(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("iax-name").to_owned();
        let only = Some(name.as_str()).filter(|name| *name != "all");
        let prune = || {
            let caches = ["chan_iax2/iaxusers", "chan_iax2/iaxpeers"];
            let outcomes = caches.map(|cache| self.site.change_cache(cache, only, CacheWish::Expire));
            match (outcomes.contains(&Ok(())), only) {
                (true, Some(name)) => Said::done(format!("{} is asked for anew.\n", clean(name))),
                (true, None) => Said::done("All users and peers of databases are asked for anew.\n"),
                (false, Some(name)) => {
                    Said::failed(format!("There is no row of '{}' in the cache.\n", clean(name)))
                }
                (false, None) => Said::failed("No users and peers of IAX2 lie in a database.\n"),
            }
        };
        self.iax(|_| prune())
    }

    fn iax_unregister(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("iax-peer").to_owned();
        self.iax(|iax| match iax.unregister(&name) {
            true => Said::done(format!("Peer {} unregistered\n", clean(&name))),
            false => Said::failed(format!("Peer {} is not registered\n", clean(&name))),
        })
    }
}

/// The regular expression behind `like`.
fn pattern(ask: &Ask<'_>) -> Result<Option<dialplan::ere::Matcher>, Said> {
    let Some(text) = ask.arg("pattern") else { return Ok(None) };
    dialplan::ere::Matcher::new(text)
        .map(Some)
        .map_err(|_| Said::failed(format!("'{}' is no regular expression\n", clean(text))))
}

fn millis(duration: core::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn host_port(row: &PeerRow) -> (String, u16) {
    row.address.map_or_else(|| ("(null)".to_owned(), 0), |address| (address.ip().to_string(), address.port()))
}

fn peer_json(row: &PeerRow) -> Value {
    json!({
        "name": row.name, "username": row.username, "host": row.address.map(|address| address.ip()),
        "port": row.address.map(|address| address.port()), "dynamic": row.is_dynamic, "trunk": row.trunk,
        "encryption": row.encrypted, "status": row.state.text(), "expires": row.expires,
        "channels": row.channels, "realtime": row.is_realtime,
    })
}

fn peers_text(rows: &[PeerRow]) -> String {
    // As in the lists of chan_sip, only where there is something in it.
    let has_rows = rows.iter().any(|row| row.is_realtime);
    let line = |cells: [&str; 9]| {
        let [name, host, dynamic, mask, port, marks, status, description, realtime] = cells;
        let realtime = if has_rows { format!(" {realtime}") } else { String::new() };
        format!(
            "{name:<15.15}  {host:<40.40} {dynamic}  {mask:<40.40}  {port:<6} {marks:<6}  {status:<11} {description:<32.32}{realtime}\n"
        )
    };
    let mut out =
        line(["Name/Username", "Host", "   ", "Mask", "Port", "", "Status", "Description", "Realtime"]);
    for row in rows {
        let name =
            if row.username.is_empty() { row.name.clone() } else { format!("{}/{}", row.name, row.username) };
        let (host, port) = host_port(row);
        let marks =
            format!("{}{}", if row.trunk { "(T)" } else { "   " }, if row.encrypted { "(E)" } else { "   " });
        let dynamic = if row.is_dynamic { "(D)" } else { "(S)" };
        let description =
            row.options.iter().find(|(name, _)| *name == "description").map_or("", |(_, text)| text);
        out += &line([
            &clean(&name),
            &host,
            dynamic,
            "(null)",
            &port.to_string(),
            &marks,
            &row.state.text(),
            &clean(description),
            if row.is_realtime { "Cached RT" } else { "" },
        ]);
    }
    let count = |wanted: fn(PeerState) -> bool| rows.iter().filter(|row| wanted(row.state)).count();
    let _ = writeln!(
        out,
        "{} iax2 peers [{} online, {} offline, {} unmonitored]",
        rows.len(),
        count(|state| matches!(state, PeerState::Ok(_) | PeerState::Lagged(_))),
        count(|state| matches!(state, PeerState::Unknown | PeerState::Unreachable)),
        count(|state| state == PeerState::Unmonitored),
    );
    out
}

fn peer_text(row: &PeerRow) -> String {
    let (host, port) = host_port(row);
    let mut out = String::from("\n\n");
    let _ = writeln!(out, "  * Name       : {}", clean(&row.name));
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(out, "    {name:<13}: {}", clean(value));
    };
    line("Dynamic", yes_no(row.is_dynamic));
    line("Realtime", if row.is_realtime { "Yes (cached)" } else { "No" });
    line("Trunk", yes_no(row.trunk));
    line("Encryption", yes_no(row.encrypted));
    line("Expire", &row.expires.map_or_else(|| "-1".to_owned(), |seconds| seconds.to_string()));
    line("Addr->IP", &format!("{host} Port {port}"));
    line("Username", &row.username);
    line("Status", &row.state.text());
    line("Channels", &row.channels.join(", "));
    for (name, value) in &row.options {
        line(name, value);
    }
    out + "\n"
}

/// A user of the file or of a row.
struct UserLine {
    name: String,
    /// Whether there is a secret, or a key; the secret itself is for nobody.
    secret: &'static str,
    auth: String,
    context: String,
    restricted: bool,
    priority: &'static str,
    realtime: bool,
}

impl UserLine {
    fn of_file(name: &str, user: &IaxPeer) -> Self {
        let methods = [user.auth.md5, user.auth.rsa, user.auth.plaintext];
        Self {
            name: name.to_owned(),
            secret: secret(!user.secret.is_empty(), !user.inkeys.is_empty()),
            auth: methods_text(methods),
            context: user.context.first().map_or("default", String::as_str).to_owned(),
            restricted: !user.access.is_empty(),
            priority: match user.codecpriority {
                CodecPriority::Host => "Host",
                CodecPriority::Caller => "Caller",
                CodecPriority::Disabled => "Disabled",
                CodecPriority::ReqOnly => "REQ Only",
            },
            realtime: false,
        }
    }
    fn of_row(user: UserRow) -> Self {
        Self {
            secret: secret(user.has_secret, user.has_keys),
            auth: methods_text(user.auth),
            priority: user.priority,
            name: user.name,
            context: user.context,
            restricted: user.restricted,
            realtime: true,
        }
    }
}

const fn secret(has_secret: bool, has_keys: bool) -> &'static str {
    match (has_secret, has_keys) {
        (true, _) => "<Set>",
        (false, true) => "<Key>",
        (false, false) => "-no secret-",
    }
}

fn methods_text(wanted: [bool; 3]) -> String {
    let names = ["md5", "rsa", "plaintext"].into_iter().zip(wanted);
    names.filter(|(_, wanted)| *wanted).map(|(name, _)| name).collect::<Vec<_>>().join(",")
}

fn users_text(users: &[UserLine]) -> String {
    let has_rows = users.iter().any(|user| user.realtime);
    let line = |cells: [&str; 7]| {
        let [name, secret, auth, context, limited, codecs, realtime] = cells;
        let realtime = if has_rows { format!("  {realtime}") } else { String::new() };
        format!(
            "{name:<15.15}  {secret:<20.20}  {auth:<15.15}  {context:<15.15}  {limited:<5.5}  {codecs:<10.10}{realtime}"
        )
        .trim_end()
        .to_owned()
            + "\n"
    };
    let head = line(["Username", "Secret", "Authen", "Def.Context", "A/C", "Codec Pref", "Realtime"]);
    users.iter().fold(head, |out, user| {
        let (name, context) = (clean(&user.name), clean(&user.context));
        let realtime = if user.realtime { "Cached RT" } else { "" };
        let limited = yes_no(user.restricted);
        out + &line([&name, user.secret, &user.auth, &context, limited, user.priority, realtime])
    })
}

fn registry_json(row: &RegistryRow) -> Value {
    json!({
        "host": row.place, "username": row.username, "perceived": row.perceived, "refresh": row.refresh,
        "state": row.state.name(),
    })
}

fn registry_text(rows: &[RegistryRow]) -> String {
    let line = |cells: [&str; 6]| {
        let [host, dns, username, perceived, refresh, state] = cells;
        format!("{host:<45.45}  {dns:<6.6}  {username:<10.10}  {perceived:<45.45} {refresh:>8}  {state}\n")
    };
    let mut out = line(["Host", "dnsmgr", "Username", "Perceived", "Refresh", "State"]);
    for row in rows {
        let perceived =
            row.perceived.map_or_else(|| "<Unregistered>".to_owned(), |address| address.to_string());
        // Names are looked up again by themselves; addresses have none.
        let by_name = row.place.parse::<core::net::SocketAddr>().is_err();
        out += &line([
            &clean(&row.place),
            if by_name { "Y" } else { "N" },
            &clean(&row.username),
            &perceived,
            &row.refresh.to_string(),
            row.state.name(),
        ]);
    }
    let _ = writeln!(out, "{} IAX2 registration{}.", rows.len(), s(rows.len()));
    out
}

fn channel_json(row: &ChannelRow) -> Value {
    json!({
        "name": row.channel, "peer": row.remote, "username": row.username, "local_number": row.numbers.0,
        "remote_number": row.numbers.1, "sent": row.sequence.0, "received": row.sequence.1,
        "lag_ms": row.lag_ms, "jitter_ms": row.jitter_ms, "buffer_ms": row.buffer_ms,
        "first_message": row.messages[0], "last_message": row.messages[1],
        "format": row.format.map(base::FormatId::name), "encrypted": row.encrypted, "trunk": row.trunk,
    })
}

fn channels_text(rows: &[ChannelRow]) -> String {
    let line = |cells: [&str; 11]| {
        let [name, peer, user, ids, sequence, lag, jitter, buffer, format, first, last] = cells;
        format!(
            "{name:<20.20}  {peer:<40.40}  {user:<10.10}  {ids:<11.11}  {sequence:<11.11}  {lag:<7}  {jitter:<6}  {buffer:<6}  \
             {format:<6.6}  {first:<10}  {last}\n"
        )
    };
    let mut out = line([
        "Channel",
        "Peer",
        "Username",
        "ID (Lo/Rem)",
        "Seq (Tx/Rx)",
        "Lag",
        "Jitter",
        "JitBuf",
        "Format",
        "FirstMsg",
        "LastMsg",
    ]);
    for row in rows {
        let marks = [(row.trunk, "(T)"), (row.encrypted, "(E)")];
        let marks: String = marks.iter().filter(|(wanted, _)| *wanted).map(|(_, mark)| *mark).collect();
        let username = if row.username.is_empty() { "(None)" } else { &row.username };
        out += &line([
            &clean(&row.channel),
            &row.remote.ip().to_string(),
            &clean(username),
            &format!("{:05}/{:05}", row.numbers.0, row.numbers.1),
            &format!("{:05}/{:05}", row.sequence.0, row.sequence.1),
            &format!("{:05}ms", row.lag_ms),
            &format!("{:04}ms", row.jitter_ms),
            &format!("{:04}ms", row.buffer_ms),
            row.format.map_or("(None)", base::FormatId::name),
            &row.messages[0],
            // What the field does not say goes last.
            format!("{:<10}  {marks}", row.messages[1]).trim_end(),
        ]);
    }
    let _ = writeln!(out, "{} active IAX channel{}", rows.len(), s(rows.len()));
    out
}

fn side_json(side: &Netstats) -> Value {
    json!({
        "jitter_ms": side.jitter_ms, "delay_ms": side.delay_ms, "lost": side.lost,
        "loss_percent": side.loss_percent, "dropped": side.dropped, "out_of_order": side.out_of_order,
        "received": side.received,
    })
}

fn side_text(side: &Netstats) -> String {
    format!(
        "{:>4} {:>4} {:>5} {:>3} {:>5} {:>4} {:>6}",
        side.jitter_ms,
        side.delay_ms,
        side.lost,
        side.loss_percent,
        side.dropped,
        side.out_of_order,
        side.received / 1000
    )
}

/// The table, for the console and for `IAXnetstats`.
pub(crate) fn netstats_text(rows: &[NetstatRow]) -> String {
    let (local, remote) = ("-------- LOCAL ---------------------", "-------- REMOTE --------------------");
    let mut out = format!("{:24} {local}  {remote}\n", "");
    let side = " Jit  Del  Lost   %  Drop  OOO  Kpkts";
    let _ = writeln!(out, "{:<20.20} {:>4}{side} {side} FirstMsg    LastMsg", "Channel", "RTT");
    for row in rows {
        let _ = writeln!(
            out,
            "{:<20.20} {:>4} {} {} {:<10}  {}",
            clean(&row.channel),
            millis(row.round_trip),
            side_text(&row.local),
            side_text(&row.remote),
            row.messages[0],
            row.messages[1]
        );
    }
    let _ = writeln!(out, "{} active IAX channel{}", rows.len(), s(rows.len()));
    out
}

/// Addresses with call numbers, and, unless one of them is asked for, the totals.
fn numbers_text(hosts: &[HostNumbers], totals: Option<&Numbers>) -> String {
    let mut out = format!("{:<45} {:<12} {:<12}\n", "Address", "Callno Usage", "Callno Limit");
    for host in hosts {
        let address = host.address.to_string();
        let _ = writeln!(out, "{address:<45} {:<12} {:<12}", host.used, host.most);
    }
    let Some(numbers) = totals else { return out };
    out.push('\n');
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<46}: {value}");
    };
    line("Shared call numbers in use", numbers.shared_in_use.to_string());
    line("Shared call numbers at rest", numbers.shared_resting.to_string());
    line("Call numbers of one remote at rest", numbers.own_resting.to_string());
    line("Addresses with call numbers", numbers.hosts.to_string());
    line("Default callno limit of an address", numbers.of_address_max.to_string());
    line("Non-CallToken Validation Callno Limit", numbers.without_token_max.to_string());
    line("Non-CallToken Validated Callno Count", numbers.without_token.to_string());
    out
}
