//! Finished call records and channel events as sites want them: text with `${CDR(…)}` or `${eventtype}` in it, and the
//! fields of the manager's events.
//!
//! There is no channel any more. A pattern reads the record or the event, global variables, the database and every
//! function that needs no channel.

use std::sync::Arc;

use call::{Cdr, Cel, CelKind, Core};
use dialplan::{
    Builtin, Calendar, ChannelFunction, Env, Fault, FileFacts, Inherit, Near, Offset, Program, Template, Var,
    Wall,
};

use crate::env::{CoreCalendar, loudness, process_builtin};
pub use crate::functions::record::date;
use crate::functions::record::field;

/// Text of a configuration file that every record fills in: `${CSV_QUOTE(${CDR(src)})},${CDR(billsec)}`.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    compiled: Option<(Arc<Program>, Arc<Template>)>,
}

impl Pattern {
    /// A pattern of this text.
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), compiled: None }
    }
    /// What the pattern is for this record. `place` names it in the log when it cannot be had.
    pub fn fill(&mut self, core: &mut Core, record: &Cdr, place: &str) -> String {
        let template = self.template(&core.program);
        let mut out = String::new();
        template.expand(&mut Scope { core, record: Written::Call(record), place, depth: 0 }, &mut out);
        out
    }
    /// What the pattern is for this event, whose time is written so.
    pub fn fill_event(&mut self, core: &mut Core, (event, time): (&Cel, &str), place: &str) -> String {
        let template = self.template(&core.program);
        let mut out = String::new();
        template.expand(&mut Scope { core, record: Written::Event(event, time), place, depth: 0 }, &mut out);
        out
    }
    /// Names are those of the program in force, which a reload replaces.
    fn template(&mut self, program: &Arc<Program>) -> Arc<Template> {
        match &self.compiled {
            Some((of, template)) if Arc::ptr_eq(of, program) => template.clone(),
            _ => {
                let template =
                    Arc::new(Template::compile(&self.text, program.symbols(), program.functions()));
                self.compiled = Some((program.clone(), template.clone()));
                template
            }
        }
    }
}

/// The fields of the manager's `Cdr` event, in its order.
pub fn event_fields(core: &Core, record: &Cdr) -> Vec<(&'static str, String)> {
    let zone = |wall| core.services.wall.offset(wall, "").seconds;
    let when = |wall: Option<i64>| wall.map(|wall| date(wall, &zone)).unwrap_or_default();
    vec![
        ("AccountCode", record.account.clone()),
        ("Source", record.src.clone()),
        ("Destination", record.dst.clone()),
        ("DestinationContext", record.dcontext.clone()),
        ("CallerID", record.clid.clone()),
        ("Channel", record.channel.clone()),
        ("DestinationChannel", record.dst_channel.clone()),
        ("LastApplication", record.last_app.clone()),
        ("LastData", record.last_data.clone()),
        ("StartTime", when(Some(record.start))),
        ("AnswerTime", when(record.answer)),
        ("EndTime", when(Some(record.end))),
        ("Duration", record.duration.as_secs().to_string()),
        ("BillableSeconds", record.billed.to_string()),
        ("Disposition", record.disposition.name().to_owned()),
        ("AMAFlags", record.ama_flags.name().to_owned()),
        ("UniqueID", record.uniqueid.clone()),
        ("UserField", record.user_field.clone()),
    ]
}

/// A record's field as `CDR(name)` gives it.
pub fn cdr_field(core: &Core, record: &Cdr, name: &str) -> String {
    let mut out = String::new();
    field(record, true, name, &|wall| core.services.wall.offset(wall, "").seconds, &mut out);
    out
}

/// The same with times in UTC.
pub fn cdr_field_utc(record: &Cdr, name: &str) -> String {
    let mut out = String::new();
    field(record, true, name, &|_| 0, &mut out);
    out
}

/// Names of the variables that the dialplan has given a record, in small letters.
pub fn own_fields(record: &Cdr) -> Vec<String> {
    record.custom.iter().map(|(name, _)| name.to_ascii_lowercase()).collect()
}

/// Fields of a channel event that every table may have as columns, in the field's names.
pub const EVENT_FIELDS: [&str; 21] = [
    "eventtype",
    "eventtime",
    "userdeftype",
    "cid_name",
    "cid_num",
    "cid_ani",
    "cid_rdnis",
    "cid_dnid",
    "exten",
    "context",
    "channame",
    "appname",
    "appdata",
    "amaflags",
    "accountcode",
    "peeraccount",
    "uniqueid",
    "linkedid",
    "userfield",
    "peer",
    "extra",
];

/// A field of an event by its column; nothing for `eventtime`, which each place writes in its own way.
pub fn event_field(event: &Cel, name: &str) -> String {
    match name {
        "eventtype" => event.kind.name().to_owned(),
        "eventenum" => (event.kind as u8).to_string(),
        "userdeftype" => event.user_defined.clone(),
        "cid_name" => event.cid_name.clone(),
        "cid_num" => event.cid_num.clone(),
        "cid_ani" => event.cid_ani.clone(),
        "cid_rdnis" => event.cid_rdnis.clone(),
        "cid_dnid" => event.cid_dnid.clone(),
        "exten" => event.exten.clone(),
        "context" => event.context.clone(),
        "channame" => event.channel.to_string(),
        "appname" => event.app.to_owned(),
        "appdata" => event.app_data.clone(),
        "amaflags" => (event.ama_flags as u8).to_string(),
        "accountcode" => event.account.clone(),
        "peeraccount" => event.peer_account.clone(),
        "uniqueid" => event.uniqueid.to_string(),
        "linkedid" => event.linkedid.to_string(),
        "tenantid" => event.tenant.to_string(),
        "userfield" => event.user_field.clone(),
        "peer" => event.peer.clone(),
        "extra" => event.extra_json(),
        _ => String::new(),
    }
}

/// The fields of the manager's `CEL` event, in its order. `named`: an event that the dialplan made has the name that it
/// gave.
pub fn cel_fields(event: &Cel, time: &str, named: bool) -> Vec<(&'static str, String)> {
    let own = named && event.kind == CelKind::UserDefined;
    let kind = if own { event.user_defined.clone() } else { event.kind.name().to_owned() };
    let plain = |name: &str| event_field(event, name);
    // It is not told of channels that have none.
    let tenant = Some(("TenantID", plain("tenantid"))).filter(|(_, tenant)| !tenant.is_empty());
    let mut fields = vec![
        ("EventName", kind),
        ("AccountCode", plain("accountcode")),
        ("CallerIDnum", plain("cid_num")),
        ("CallerIDname", plain("cid_name")),
        ("CallerIDani", plain("cid_ani")),
        ("CallerIDrdnis", plain("cid_rdnis")),
        ("CallerIDdnid", plain("cid_dnid")),
        ("Exten", plain("exten")),
        ("Context", plain("context")),
        ("Channel", plain("channame")),
        ("Application", plain("appname")),
        ("AppData", plain("appdata")),
        ("EventTime", time.to_owned()),
        ("AMAFlags", event.ama_flags.name().to_owned()),
        ("UniqueID", plain("uniqueid")),
        ("LinkedID", plain("linkedid")),
    ];
    fields.extend(tenant);
    fields.extend([
        ("Userfield", plain("userfield")),
        ("Peer", plain("peer")),
        ("PeerAccount", plain("peeraccount")),
        ("Extra", plain("extra")),
    ]);
    fields
}

/// What a function of channels says of an event: `CALLERID(num)`, `CHANNEL(appname)`.
fn event_item(event: &Cel, function: ChannelFunction, item: &str) -> Option<String> {
    let item = item.split(',').next().unwrap_or_default().trim().to_ascii_lowercase();
    let column = match (function, item.as_str()) {
        (ChannelFunction::Callerid, "num" | "number") => "cid_num",
        (ChannelFunction::Callerid, "name") => "cid_name",
        (ChannelFunction::Callerid, "ani" | "ani-num") => "cid_ani",
        (ChannelFunction::Callerid, "rdnis") => "cid_rdnis",
        (ChannelFunction::Callerid, "dnid") => "cid_dnid",
        (ChannelFunction::Channel, "name" | "channame") => "channame",
        (ChannelFunction::Channel, "peer" | "bridgepeer") => "peer",
        (
            ChannelFunction::Channel,
            own @ ("exten" | "context" | "appname" | "appdata" | "amaflags" | "accountcode" | "peeraccount"
            | "uniqueid" | "linkedid" | "userfield"),
        ) => own,
        _ => return None,
    };
    Some(event_field(event, column))
}

/// What templates are filled with.
#[derive(Clone, Copy)]
enum Written<'a> {
    Call(&'a Cdr),
    /// With its time.
    Event(&'a Cel, &'a str),
}

/// A record or an event as templates see it.
struct Scope<'a> {
    core: &'a mut Core,
    record: Written<'a>,
    place: &'a str,
    depth: u32,
}

impl Calendar for Scope<'_> {
    fn wall(&self) -> Wall {
        CoreCalendar(self.core).wall()
    }
    fn offset(&self, at: i64, zone: &str) -> Offset {
        CoreCalendar(self.core).offset(at, zone)
    }
    fn registered(&self, context: &str, exten: &str) -> Near {
        self.core.registered.near(context, exten)
    }
}

/// Why a function of channels cannot answer.
fn no_channel() -> Fault {
    Fault::new("there is no channel any more when a record is written")
}

impl Env for Scope<'_> {
    fn program(&self) -> Arc<Program> {
        self.core.program.clone()
    }
    fn depth(&mut self) -> &mut u32 {
        &mut self.depth
    }
    fn builtin(&self, which: Builtin, out: &mut String) -> bool {
        if let Some(known) = process_builtin(self.core, which, out) {
            return known;
        }
        let Written::Event(event, _) = self.record else { return false };
        let value = match which {
            Builtin::Exten => &event.exten,
            Builtin::Context => &event.context,
            Builtin::Channel => &*event.channel,
            Builtin::Uniqueid => &*event.uniqueid,
            _ => return false,
        };
        out.push_str(value);
        true
    }
    fn variable(&self, var: Var<'_>, out: &mut String) -> bool {
        let Written::Event(event, time) = self.record else { return false };
        match var.name {
            "eventtime" => out.push_str(time),
            "eventtype" | "eventenum" | "userdeftype" => out.push_str(&event_field(event, var.name)),
            "eventextra" => out.push_str(&event.extra_json()),
            "BRIDGEPEER" => out.push_str(&event.peer),
            _ => return false,
        }
        true
    }
    fn set_variable(&mut self, _: Var<'_>, _: &str, _: Inherit) {}
    fn set_local(&mut self, _: Var<'_>, _: &str) {}
    fn remove_variable(&mut self, _: Var<'_>) {}
    fn variable_names(&self, _: &mut dyn FnMut(&str)) {}
    fn global(&self, var: Var<'_>, out: &mut String) -> bool {
        self.core.globals.get(var).map(|value| out.push_str(value)).is_some()
    }
    fn set_global(&mut self, var: Var<'_>, value: &str) {
        self.core.globals.set(var, value, Inherit::Never);
    }
    fn remove_global(&mut self, _: Var<'_>) {}
    fn random(&mut self) -> u64 {
        self.core.random()
    }
    fn log(&mut self, level: dialplan::Level, text: &str) {
        self.core.log(loudness(level), self.place, text);
    }
    fn db_get(&self, family: &str, key: &str, out: &mut String) -> bool {
        self.core.services.db.get(family, key).map(|value| out.push_str(&value)).is_some()
    }
    fn db_put(&mut self, family: &str, key: &str, value: &str) -> bool {
        self.core.services.db.put(family, key, value)
    }
    fn db_delete(&mut self, family: &str, key: &str) -> bool {
        self.core.services.db.delete(family, key)
    }
    fn db_keys(&self, prefix: &str, each: &mut dyn FnMut(&str)) {
        let prefix = prefix.trim_matches('/');
        let prefix = if prefix.is_empty() { String::new() } else { format!("/{prefix}") };
        self.core.services.db.list(&prefix).iter().for_each(|(path, _)| each(path));
    }
    fn channel_read(&mut self, function: ChannelFunction, args: &str, out: &mut String) -> Result<(), Fault> {
        match self.record {
            Written::Call(record) if function == ChannelFunction::Cdr => {
                let wall = &self.core.services.wall;
                field(record, true, args, &|at| wall.offset(at, "").seconds, out);
                Ok(())
            }
            Written::Event(event, _) => {
                let item = event_item(event, function, args).ok_or_else(no_channel)?;
                out.push_str(&item);
                Ok(())
            }
            Written::Call(_) => Err(no_channel()),
        }
    }
    fn channel_write(&mut self, _: ChannelFunction, _: &str, _: &str) -> Result<(), Fault> {
        Err(no_channel())
    }
    fn file_facts(&self, path: &str) -> Option<FileFacts> {
        self.core.services.outside.file_facts(path)
    }
    fn file_text(&self, path: &str) -> Option<String> {
        self.core.services.outside.file_text(path, dialplan::template::EXPAND_BYTES_MAX)
    }
    fn environment(&self, name: &str) -> Option<String> {
        self.core.services.outside.environment(name)
    }
}
