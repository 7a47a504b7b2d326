//! Finished call records as sites want them: text with `${CDR(…)}` in it, and the fields of the manager's event.
//!
//! There is no channel any more. A pattern reads the record, global variables, the database and every function that
//! needs no channel.

use std::sync::Arc;

use call::{Cdr, Core};
use dialplan::{
    Builtin, Calendar, ChannelFunction, Env, Fault, FileFacts, Inherit, Near, Offset, Program, Template, Var,
    Wall,
};

use crate::env::{CoreCalendar, loudness, process_builtin};
use crate::functions::record::{date, field};

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
        template.expand(&mut Scope { core, record, place, depth: 0 }, &mut out);
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

/// A record as templates see it.
struct Scope<'a> {
    core: &'a mut Core,
    record: &'a Cdr,
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
    Fault::new("there is no channel any more when a call record is written")
}

impl Env for Scope<'_> {
    fn program(&self) -> Arc<Program> {
        self.core.program.clone()
    }
    fn depth(&mut self) -> &mut u32 {
        &mut self.depth
    }
    fn builtin(&self, which: Builtin, out: &mut String) -> bool {
        process_builtin(self.core, which, out).unwrap_or(false)
    }
    fn variable(&self, _: Var<'_>, _: &mut String) -> bool {
        false
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
        if function != ChannelFunction::Cdr {
            return Err(no_channel());
        }
        let wall = &self.core.services.wall;
        field(self.record, true, args, &|at| wall.offset(at, "").seconds, out);
        Ok(())
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
