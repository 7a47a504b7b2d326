//! Channels: who talks, and ending, sending on and placing calls.

use std::fmt::Write as _;
use std::rc::Rc;

use apps::originate::{Originate, Placed, Then, originate};
use base::{Cause, ChannelId};
use call::{Chan, Channel, Core, Level, Location};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::text::{clean, clock, or, s};
use super::{Ask, Cli, Row, Said, show, verb};
use crate::ami::capability;

/// What a leg that an application dialled shows as its application.
const DIALLED: (&str, &str) = ("AppDial", "(Outgoing Line)");

pub(super) const ROWS: &[Row] = &[
    show(
        "core show channels [concise|verbose|count]",
        "Lists channels, and counts calls.",
        "channels [name context exten priority state application data caller_number caller_name \
         connected_number connected_name account peer_account ama_flags seconds bridge uniqueid linkedid] \
         active_channels active_calls calls_processed",
        Cli::core_show_channels,
    )
    .also(&["show channels [concise|verbose|count]"])
    .detail(
        "concise: 14 fields a line, parted by '!': channel, context, extension, priority, state, application, data,\n\
         caller number, account, peer account, AMA flags, seconds, bridge, UNIQUEID. A '!' inside a field becomes '?'.",
    ),
    show(
        "core show channel <channel>",
        "Shows everything about one channel; its UNIQUEID names it too.",
        "name technology uniqueid linkedid state state_code caller_number caller_name connected_number connected_name dnid \
         language native_formats format seconds bridge context exten priority application data account peer_account hold \
         variables [name value]",
        Cli::core_show_channel,
    )
    .also(&["show channel <channel>"]),
    show(
        "core show calls [uptime]",
        "Counts calls: those that are up, and those that entered the dialplan since the start.",
        "active_calls calls_processed uptime_seconds",
        Cli::core_show_calls,
    ),
    show(
        "core show hanguphandlers <channel|all>",
        "Lists the routines that run when a channel ends, the next to run first.",
        "channels [channel handlers]",
        Cli::core_show_handlers,
    ),
    verb(
        "channel request hangup <channel|all>",
        "Asks one channel, or all of them, to hang up.",
        Cli::channel_request_hangup,
    )
    .also(&["soft hangup <channel|all>", "hangup request <channel|all>"]),
    verb(
        "channel redirect <channel> <place>",
        "Sends a channel that runs in the dialplan to [[context,]exten,]priority.",
        Cli::channel_redirect,
    ),
    verb(
        "channel originate <dial> application <application> [<data...>]",
        "Calls TECHNOLOGY/RESOURCE and runs an application on the answered channel.",
        Cli::channel_originate,
    )
    .detail("The command does not wait for the answer; a call that fails is a warning in the log.")
    .also(&["originate <dial> application <application> [<data...>]"]),
    verb(
        "channel originate <dial> extension [<exten@context>]",
        "Calls TECHNOLOGY/RESOURCE and runs the dialplan from there: s@default unless told otherwise.",
        Cli::channel_originate,
    )
    .also(&["originate <dial> extension [<exten@context>]"]),
];

fn shown_app(channel: &Channel) -> (&str, &str) {
    match (channel.app, channel.outgoing && !channel.has_pbx) {
        ("", true) => DIALLED,
        (app, _) => (app, &channel.app_data),
    }
}

fn seconds(core: &Core, channel: &Channel) -> u64 {
    core.now.since(channel.created).as_secs()
}

/// Its bridge by the name that events have for it.
fn bridge_of(channel: &Channel) -> String {
    channel.bridge.map(call::bridge_name).unwrap_or_default()
}

fn counts(core: &Core, limit: u32, out: &mut String) {
    let (channels, calls) = (core.channel_count(), core.call_count());
    let _ = writeln!(out, "{channels} active channel{}", s(channels));
    if limit > 0 {
        let share = calls as f64 * 100.0 / f64::from(limit);
        let _ = writeln!(
            out,
            "{calls} of {limit} max active call{} ({share:5.2}% of capacity)",
            s(limit as usize)
        );
    } else {
        let _ = writeln!(out, "{calls} active call{}", s(calls));
    }
    let plural = s(usize::try_from(core.calls_processed).unwrap_or(usize::MAX));
    let _ = writeln!(out, "{} call{plural} processed", core.calls_processed);
}

fn concise(core: &Core, channel: &Channel, out: &mut String) {
    // A fixed number of fields is what readers rely on.
    let field = |text: &str| clean(text).replace('!', "?");
    let (app, data) = shown_app(channel);
    let Location { context, exten, priority } = &channel.location;
    let _ = writeln!(
        out,
        "{}!{}!{}!{priority}!{}!{}!{}!{}!{}!{}!{}!{}!{}!{}",
        field(&channel.name),
        field(context),
        field(exten),
        channel.state.name(),
        or(app, "(None)"),
        field(data),
        field(channel.caller.number()),
        field(&channel.account),
        field(&channel.peer_account),
        channel.cdr.ama_flags as u8,
        seconds(core, channel),
        bridge_of(channel),
        field(&channel.uniqueid),
    );
}

fn verbose(core: &Core, channel: &Channel, out: &mut String) {
    let (app, data) = shown_app(channel);
    let _ = writeln!(
        out,
        "{:<80.80} {:<24.24} {:<24.24} {:>4} {:<7.7} {:<12.12} {:<25.25} {:<15.15} {:>8.8} {:<11.11} {:<11.11} {:<20.20}",
        clean(&channel.name),
        clean(&channel.location.context),
        clean(&channel.location.exten),
        channel.location.priority,
        channel.state.name(),
        or(app, "(None)"),
        clean(data),
        clean(channel.caller.number()),
        clock(core.now.since(channel.created)),
        clean(&channel.account),
        clean(&channel.peer_account),
        bridge_of(channel),
    );
}

fn plain(channel: &Channel, out: &mut String) {
    let Location { context, exten, priority } = &channel.location;
    let location = if context.is_empty() || exten.is_empty() {
        "(None)".to_owned()
    } else {
        format!("{exten}@{context}:{priority}")
    };
    let (app, data) = shown_app(channel);
    let running = if app.is_empty() { "(None)".to_owned() } else { format!("{app}({data})") };
    let _ = writeln!(
        out,
        "{:<64.64} {:<32.32} {:<7.7} {:<30.30}",
        clean(&channel.name),
        clean(&location),
        channel.state.name(),
        clean(&running),
    );
}

/// One channel in the list. Borrowed and written straight out: with tens of thousands of channels a tree of values would
/// keep the calls waiting.
#[derive(Serialize)]
struct ChannelRow<'a> {
    name: &'a str,
    context: &'a str,
    exten: &'a str,
    priority: u32,
    state: &'static str,
    application: &'a str,
    data: &'a str,
    caller_number: &'a str,
    caller_name: &'a str,
    connected_number: &'a str,
    connected_name: &'a str,
    account: &'a str,
    peer_account: &'a str,
    ama_flags: &'static str,
    seconds: u64,
    bridge: String,
    uniqueid: &'a str,
    linkedid: &'a str,
}

impl<'a> ChannelRow<'a> {
    fn of(core: &Core, channel: &'a Channel) -> Self {
        let (application, data) = shown_app(channel);
        Self {
            name: &channel.name,
            context: &channel.location.context,
            exten: &channel.location.exten,
            priority: channel.location.priority,
            state: channel.state.name(),
            application,
            data,
            caller_number: channel.caller.number(),
            caller_name: channel.caller.name(),
            connected_number: channel.connected.number(),
            connected_name: channel.connected.name(),
            account: &channel.account,
            peer_account: &channel.peer_account,
            ama_flags: channel.cdr.ama_flags.name(),
            seconds: seconds(core, channel),
            bridge: bridge_of(channel),
            uniqueid: &channel.uniqueid,
            linkedid: &channel.linkedid,
        }
    }
}

/// Every channel, each made when it is written.
struct ChannelRows<'a> {
    core: &'a Core,
    /// Counted only.
    none: bool,
}

impl Serialize for ChannelRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = self.core.channels().filter(|_| !self.none);
        serializer.collect_seq(shown.map(|channel| ChannelRow::of(self.core, channel)))
    }
}

/// `core show channels` as data.
#[derive(Serialize)]
struct ChannelList<'a> {
    channels: ChannelRows<'a>,
    active_channels: usize,
    active_calls: usize,
    calls_processed: u64,
}

fn variables(channel: &Channel) -> impl Iterator<Item = (String, &str)> {
    channel.vars.iter().map(|(inherit, name, value)| (format!("{}{name}", inherit.prefix()), value))
}

fn formats(channel: &Channel) -> Vec<&'static str> {
    channel.formats.iter().map(|format| format.name()).collect()
}

fn one_as_json(core: &Core, channel: &Channel) -> Value {
    let (app, data) = shown_app(channel);
    let variables: Vec<Value> =
        variables(channel).map(|(name, value)| json!({ "name": name, "value": value })).collect();
    json!({
        "name": &*channel.name,
        "technology": technology(channel),
        "uniqueid": &*channel.uniqueid,
        "linkedid": &*channel.linkedid,
        "state": channel.state.name(),
        "state_code": channel.state as u8,
        "caller_number": channel.caller.number(),
        "caller_name": channel.caller.name(),
        "connected_number": channel.connected.number(),
        "connected_name": channel.connected.name(),
        "dnid": channel.dialed,
        "language": channel.language,
        "native_formats": formats(channel),
        "format": channel.format.name(),
        "seconds": seconds(core, channel),
        "bridge": bridge_of(channel),
        "context": channel.location.context,
        "exten": channel.location.exten,
        "priority": channel.location.priority,
        "application": app,
        "data": data,
        "account": channel.account,
        "peer_account": channel.peer_account,
        "hold": channel.held,
        "variables": variables,
    })
}

fn technology(channel: &Channel) -> &str {
    channel.name.split_once('/').map_or("", |(technology, _)| technology)
}

fn one(core: &Core, channel: &Channel, record: &str) -> String {
    let (app, data) = shown_app(channel);
    let elapsed = seconds(core, channel);
    let hangup_in = channel.absolute_deadline.map_or(0, |at| at.since(core.now).as_secs());
    let mut out = String::from(" -- General --\n");
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(out, "{name:>15}: {}", clean(value));
    };
    line("Name", &channel.name);
    line("Type", technology(channel));
    line("UniqueID", &channel.uniqueid);
    line("LinkedID", &channel.linkedid);
    if !channel.tenant.is_empty() {
        line("TenantID", &channel.tenant);
    }
    line("Caller ID", or(channel.caller.number(), "(N/A)"));
    line("Caller ID Name", or(channel.caller.name(), "(N/A)"));
    line("Connected Line ID", or(channel.connected.number(), "(N/A)"));
    line("Connected Line ID Name", or(channel.connected.name(), "(N/A)"));
    line("Eff. Connected Line ID", or(channel.connected.number(), "(N/A)"));
    line("Eff. Connected Line ID Name", or(channel.connected.name(), "(N/A)"));
    line("DNID Digits", channel.dialed.as_deref().unwrap_or("(N/A)"));
    line("Language", &channel.language);
    line("State", &format!("{} ({})", channel.state.name(), channel.state as u8));
    line("NativeFormats", &format!("({})", formats(channel).join("|")));
    line("WriteFormat", channel.format.name());
    line("ReadFormat", channel.format.name());
    // Channels speak one format: what is coded on the way to another is the worker's.
    line("WriteTranscode", "No ");
    line("ReadTranscode", "No ");
    line("Time to Hangup", &hangup_in.to_string());
    line("Elapsed Time", &format!("{}h{}m{}s", elapsed / 3_600, elapsed / 60 % 60, elapsed % 60));
    line("Bridge ID", or(&bridge_of(channel), "(Not bridged)"));
    out.push_str(" --   PBX   --\n");
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(out, "{name:>15}: {}", clean(value));
    };
    line("Context", &channel.location.context);
    line("Extension", &channel.location.exten);
    line("Priority", &channel.location.priority.to_string());
    line("Call Group", &channel.pickup.call.bits().to_string());
    line("Pickup Group", &channel.pickup.pickup.bits().to_string());
    line("Application", or(app, "(N/A)"));
    line("Data", or(data, "(Empty)"));
    line("Call Identifier", &format!("[C-{:08x}]", channel.call_number));
    out.push_str("      Variables:\n");
    // The newest first.
    let known: Vec<_> = channel.vars.iter().collect();
    for (_, name, value) in known.into_iter().rev() {
        let _ = writeln!(out, "{}={}", clean(name), clean(value));
    }
    out.push_str(record);
    let format = channel.format.name();
    let _ = writeln!(
        out,
        "\n -- Streams --\nName: audio-0\n    Type: audio\n    State: sendrecv\n    Group: -1\n    Formats: ({format})\n    Metadata:"
    );
    out
}

/// Fields of a call record as `core show channel` has them, where they are not empty.
const RECORD_FIELDS: [&str; 19] = [
    "clid",
    "src",
    "dst",
    "dcontext",
    "channel",
    "dstchannel",
    "lastapp",
    "lastdata",
    "start",
    "answer",
    "end",
    "duration",
    "billsec",
    "disposition",
    "amaflags",
    "accountcode",
    "uniqueid",
    "linkedid",
    "userfield",
];

/// The record of a channel, by its fields with raw values.
fn record_of(call: &apps::Call) -> String {
    let mut out = String::new();
    let dialed = call.chan.with(|c| c.dialed.as_deref().unwrap_or_default().to_owned()).unwrap_or_default();
    let read = |field: &str| (field.to_owned(), call.read(&format!("CDR({field},u)")));
    let fields = RECORD_FIELDS.iter().chain(&["sequence"]).map(|field| read(field));
    for (field, value) in std::iter::once(("dnid".to_owned(), dialed)).chain(fields) {
        if !value.is_empty() {
            let _ = writeln!(out, "level 1: {field}={}", clean(&value));
        }
    }
    if out.is_empty() { out } else { format!("  CDR Variables:\n{out}") }
}

/// A dial string that nobody can call, said before anything is tried.
fn bad_target(cli: &Cli, dial: &str) -> Option<String> {
    match dial.split_once('/') {
        None | Some((_, "")) => Some(format!("'{dial}' is no TECHNOLOGY/RESOURCE to call\n")),
        Some((tech, _)) if cli.site.shard.tech_named(tech).is_none() => {
            Some(format!("There is no channel technology '{tech}'\n"))
        }
        Some(_) => None,
    }
}

impl Cli {
    pub(super) fn channel_names(&self) -> Vec<String> {
        self.site.shard.core.borrow().channels().map(|channel| channel.name.to_string()).collect()
    }

    fn core_show_channels(&self, ask: &mut Ask<'_>) -> Said {
        let core = &*self.site.shard.core.borrow();
        let limit = core.admission.limits().max_calls;
        let choice = ask.choice();
        let text = || {
            let mut out = String::new();
            match choice {
                Some("concise") => {
                    core.channels().for_each(|channel| concise(core, channel, &mut out));
                    return out;
                }
                Some("verbose") => {
                    let _ = writeln!(
                        out,
                        "{:<80.80} {:<24.24} {:<24.24} {:>4} {:<7.7} {:<12.12} {:<25.25} {:<15.15} {:>8.8} {:<11.11} {:<11.11} {:<20.20}",
                        "Channel",
                        "Context",
                        "Extension",
                        "Prio",
                        "State",
                        "Application",
                        "Data",
                        "CallerID",
                        "Duration",
                        "Accountcode",
                        "PeerAccount",
                        "BridgeID",
                    );
                    core.channels().for_each(|channel| verbose(core, channel, &mut out));
                }
                Some(_) => {}
                None => {
                    let _ = writeln!(
                        out,
                        "{:<64} {:<32} {:<7} {:<30}",
                        "Channel", "Location", "State", "Application(Data)"
                    );
                    core.channels().for_each(|channel| plain(channel, &mut out));
                }
            }
            counts(core, limit, &mut out);
            out
        };
        let data = || ChannelList {
            channels: ChannelRows { core, none: choice == Some("count") },
            active_channels: core.channel_count(),
            active_calls: core.call_count(),
            calls_processed: core.calls_processed,
        };
        ask.show(data, text)
    }

    fn core_show_channel(&self, ask: &mut Ask<'_>) -> Said {
        let shard = &self.site.shard;
        let found = shard.core.borrow().by_name(ask.need("channel"));
        let record = found.map(|id| record_of(&apps::Call::new(Chan::new(shard.clone(), id))));
        let core = &*shard.core.borrow();
        match found.and_then(|id| core.get(id)) {
            Some(channel) => ask.show(
                || one_as_json(core, channel),
                || one(core, channel, record.as_deref().unwrap_or_default()),
            ),
            None => Said::failed(format!("{} is not a known channel\n", clean(ask.need("channel")))),
        }
    }

    fn core_show_handlers(&self, ask: &mut Ask<'_>) -> Said {
        let core = &*self.site.shard.core.borrow();
        let name = ask.need("channel|all");
        let chosen: Vec<&Channel> = match name {
            "all" => core.channels().collect(),
            name => match core.by_name(name).and_then(|id| core.get(id)) {
                Some(channel) => vec![channel],
                None => return Said::failed(format!("{} is not a known channel\n", clean(name))),
            },
        };
        // The one that runs first stands beside the name.
        let rows = || {
            chosen.iter().flat_map(|channel| {
                let name = |at: usize| if at == 0 { &*channel.name } else { "" };
                channel
                    .hangup_handlers
                    .iter()
                    .rev()
                    .enumerate()
                    .map(move |(at, handler)| (name(at), &**handler))
            })
        };
        let text = || {
            let mut out = format!("{:<30} Handler\n", "Channel");
            for (name, handler) in rows() {
                let _ = writeln!(out, "{:<30} {}", clean(name), clean(handler));
            }
            out
        };
        let data = || {
            let handlers = |channel: &&Channel| {
                let newest_first: Vec<&String> = channel.hangup_handlers.iter().rev().collect();
                json!({ "channel": &*channel.name, "handlers": newest_first })
            };
            json!({ "channels": chosen.iter().map(handlers).collect::<Vec<_>>() })
        };
        ask.show(data, text)
    }

    fn core_show_calls(&self, ask: &mut Ask<'_>) -> Said {
        let core = &*self.site.shard.core.borrow();
        let uptime = core.now.since(self.site.started);
        let text = || {
            let calls = core.call_count();
            let processed = core.calls_processed;
            let plural = s(usize::try_from(processed).unwrap_or(usize::MAX));
            let mut out = format!("{calls} active call{}\n{processed} call{plural} processed\n", s(calls));
            if ask.choice().is_some() {
                let _ = writeln!(out, "System uptime: {}", super::text::span(uptime));
            }
            out
        };
        let data = || {
            json!({
                "active_calls": core.call_count(),
                "calls_processed": core.calls_processed,
                "uptime_seconds": uptime.as_secs(),
            })
        };
        ask.show(data, text)
    }

    fn channel_request_hangup(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("channel|all");
        let core = &mut *self.site.shard.core.borrow_mut();
        let ids: Vec<(ChannelId, Rc<str>)> = if name.eq_ignore_ascii_case("all") {
            core.channels().map(|channel| (channel.id, channel.name.clone())).collect()
        } else {
            let found = core.by_name(name).and_then(|id| core.get(id));
            match found {
                Some(channel) => vec![(channel.id, channel.name.clone())],
                None => return Said::failed(format!("{} is not a known channel\n", clean(name))),
            }
        };
        let mut out = String::new();
        for (id, name) in ids {
            core.soft_hangup(id, Cause::NORMAL_CLEARING, call::SoftHangup::Explicit);
            let _ = writeln!(out, "Requested Hangup on channel '{}'", clean(&name));
        }
        Said::Done(out)
    }

    fn channel_redirect(&self, ask: &mut Ask<'_>) -> Said {
        let (name, place) = (ask.need("channel"), ask.need("place"));
        let shard = &self.site.shard;
        let found = {
            let core = shard.core.borrow();
            core.by_name(name).and_then(|id| core.get(id)).map(|channel| (channel.id, channel.has_pbx))
        };
        let Some((id, has_pbx)) = found else {
            return Said::failed(format!("Channel '{}' not found\n", clean(name)));
        };
        if !has_pbx {
            return Said::failed(format!(
                "Channel '{}' runs no dialplan and cannot be redirected\n",
                clean(name)
            ));
        }
        let call = apps::Call::new(Chan::new(shard.clone(), id));
        match call.resolve(place) {
            Ok(to) if !call.exists(&to.context, &to.exten) => {
                let (exten, context) = (clean(&to.exten), clean(&to.context));
                Said::failed(format!(
                    "Channel '{}' was not redirected: there is no extension {exten}@{context}\n",
                    clean(name)
                ))
            }
            Ok(location) => {
                shard.core.borrow_mut().request_goto(id, location);
                Said::done(format!("Channel '{}' successfully redirected to {}\n", clean(name), clean(place)))
            }
            Err(why) => Said::failed(format!("Channel '{}' was not redirected: {why}\n", clean(name))),
        }
    }

    fn channel_originate(&self, ask: &mut Ask<'_>) -> Said {
        let target = ask.need("dial").to_owned();
        if let Some(why) = bad_target(self, &target) {
            return Said::Failed(why);
        }
        let then = match ask.arg("application") {
            Some(name) => {
                let Some(row) = apps::table::lookup(name) else {
                    return Said::failed(format!("There is no application '{}'\n", clean(name)));
                };
                if !ask.may_reach_outside && !capability::is_plain_application(row.name) {
                    return Said::refused(super::OUTSIDE);
                }
                Then::App { name: row.name.to_owned(), data: ask.arg("data").unwrap_or_default().to_owned() }
            }
            None => {
                let place = ask.arg("exten@context").unwrap_or("s@default");
                let (exten, context) = place.split_once('@').unwrap_or((place, "default"));
                let (exten, context) = (or(exten, "s"), or(context, "default"));
                Then::Exten(Location { context: context.to_owned(), exten: exten.to_owned(), priority: 1 })
            }
        };
        let (shard, name) = (self.site.shard.clone(), target.clone());
        let wanted = Originate { target, then, rights: ask.rights, ..Originate::default() };
        let log = shard.clone();
        let done = move |placed: Placed| {
            let why = match placed {
                Placed::Answered => return,
                Placed::TimedOut => "nobody answered".to_owned(),
                Placed::Refused(cause) => format!("{} ({})", cause.text(), cause.0),
            };
            let text = format!("the call to {name} that was originated failed: {why}");
            log.core.borrow_mut().log(Level::Warning, "res_clioriginate", &text);
        };
        if originate(&shard, wanted, done) {
            Said::done("")
        } else {
            Said::refused("There is no room for another call\n")
        }
    }
}
