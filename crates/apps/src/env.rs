//! The channel as templates and functions of the dialplan see it.

use std::sync::Arc;

use dialplan::{
    Builtin, Calendar, ChannelFunction, Env, Fault, FileFacts, Inherit, Near, Offset, Program, Rights,
    Standing, Statement, Var, Wall,
};

use crate::Call;

/// One expansion on a call.
pub(crate) struct Scope<'a> {
    call: &'a Call,
    /// The place of the text, when it is not that where the call stands.
    place: Option<Standing>,
    rights: Rights,
    depth: u32,
    /// Bytes of work so far.
    spent: usize,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(call: &'a Call) -> Self {
        Self { call, place: None, rights: call.run.rights.get(), depth: 0, spent: 0 }
    }
    /// The same for text that belongs to an extension, a hint: it is the site's own, whoever asks.
    pub(crate) fn at(call: &'a Call, context: &str, exten: &str) -> Self {
        let place = Standing { context: context.into(), exten: exten.into(), priority: None };
        Self { call, place: Some(place), rights: Rights::ALL, depth: 0, spent: 0 }
    }
}

impl Calendar for Scope<'_> {
    fn wall(&self) -> Wall {
        let micros = self.call.chan.core(|core| core.services.wall.now_micros());
        let rest = u32::try_from(micros.rem_euclid(1_000_000)).unwrap_or(0);
        Wall { seconds: micros.div_euclid(1_000_000), micros: rest }
    }
    fn offset(&self, at: i64, zone: &str) -> Offset {
        self.call.chan.core(|core| core.services.wall.offset(at, zone))
    }
    fn registered(&self, context: &str, exten: &str) -> Near {
        self.call.chan.core(|core| core.registered.near(context, exten))
    }
}

impl Env for Scope<'_> {
    fn program(&self) -> Arc<Program> {
        self.call.chan.core(|core| core.program.clone())
    }
    fn rights(&self) -> Rights {
        self.rights
    }
    fn spend(&mut self, bytes: usize) -> bool {
        const MOST: usize = dialplan::template::EVALUATION_BYTES_MAX;
        let before = self.spent;
        self.spent = before.saturating_add(bytes);
        if before <= MOST && self.spent > MOST {
            self.call
                .log(call::Level::Warning, "the evaluation takes too much work: the rest of it stays empty");
        }
        before <= MOST
    }
    fn depth(&mut self) -> &mut u32 {
        &mut self.depth
    }

    fn builtin(&self, which: Builtin, out: &mut String) -> bool {
        if self.place.as_ref().is_some_and(|place| place.builtin(which, out)) {
            return true;
        }
        if matches!(which, Builtin::Hint | Builtin::Hintname) {
            let at = self.call.here().location();
            if let Some((devices, name)) = self.call.hint_of(&at.context, &at.exten) {
                match which == Builtin::Hint {
                    true => out.push_str(&crate::hints::hint_text(&devices, &name)),
                    false => out.push_str(&name),
                }
            }
            return true;
        }
        self.call.place_builtin(which, out)
            || self.call.chan.core(|core| builtin(core, self.call, which, out))
    }
    fn stand_at(&mut self, place: Option<Standing>) -> Option<Standing> {
        std::mem::replace(&mut self.place, place)
    }
    fn variable(&self, var: Var<'_>, out: &mut String) -> bool {
        let read = self.call.chan.with(|c| c.vars.get(var).map(|value| out.push_str(value)).is_some());
        read == Ok(true)
    }
    fn set_variable(&mut self, var: Var<'_>, value: &str, inherit: Inherit) {
        if !self.rights.sets {
            return;
        }
        self.call.set_var(var, value, inherit);
    }
    fn set_local(&mut self, var: Var<'_>, value: &str) {
        if !self.rights.sets {
            return;
        }
        self.call.set_local_var(var, value);
    }
    fn remove_variable(&mut self, var: Var<'_>) {
        if !self.rights.sets {
            return;
        }
        let _ = self.call.chan.with(|c| c.vars.remove(var));
    }
    fn variable_names(&self, each: &mut dyn FnMut(&str)) {
        let names: Vec<String> = self
            .call
            .chan
            .with(|c| c.vars.iter().map(|(_, name, _)| name.to_owned()).collect())
            .unwrap_or_default();
        names.iter().for_each(|name| each(name));
    }
    fn global(&self, var: Var<'_>, out: &mut String) -> bool {
        self.call.chan.core(|core| core.globals.get(var).map(|value| out.push_str(value)).is_some())
    }
    fn set_global(&mut self, var: Var<'_>, value: &str) {
        if !self.rights.sets {
            return;
        }
        self.call.set_global_var(var, value);
    }
    fn remove_global(&mut self, var: Var<'_>) {
        if self.rights.sets {
            self.call.chan.core(|core| core.globals.remove(var));
        }
    }

    fn random(&mut self) -> u64 {
        self.call.chan.core(call::Core::random)
    }
    fn log(&mut self, level: dialplan::Level, text: &str) {
        self.call.log(loudness(level), text);
    }

    fn db_get(&self, family: &str, key: &str, out: &mut String) -> bool {
        let value = self.call.chan.core(|core| core.services.db.get(family, key));
        value.map(|value| out.push_str(&value)).is_some()
    }
    fn db_put(&mut self, family: &str, key: &str, value: &str) -> bool {
        let stored = self.call.chan.core(|core| core.services.db.put(family, key, value));
        if stored && family.eq_ignore_ascii_case("CustomDevstate") {
            self.call.chan.core(|core| core.touched_devices.push(format!("Custom:{key}")));
        }
        stored
    }
    fn db_delete(&mut self, family: &str, key: &str) -> bool {
        self.call.chan.core(|core| core.services.db.delete(family, key))
    }
    fn db_keys(&self, prefix: &str, each: &mut dyn FnMut(&str)) {
        let prefix = prefix.trim_matches('/');
        let prefix = if prefix.is_empty() { String::new() } else { format!("/{prefix}") };
        let found = self.call.chan.core(|core| core.services.db.list(&prefix));
        found.iter().for_each(|(path, _)| each(path));
    }

    fn channel_read(&mut self, function: ChannelFunction, args: &str, out: &mut String) -> Result<(), Fault> {
        crate::functions::read(self.call, function, args, out)
    }
    fn channel_write(&mut self, function: ChannelFunction, args: &str, value: &str) -> Result<(), Fault> {
        crate::functions::write(self.call, function, args, value)
    }
    fn statement_read(
        &mut self,
        name: &str,
        function: &Arc<Statement>,
        args: &str,
        out: &mut String,
    ) -> Result<(), Fault> {
        crate::functions::rows::read_statement(self.call, name, function, args, out)
    }
    fn statement_write(&mut self, function: &Arc<Statement>, args: &str, value: &str) -> Result<(), Fault> {
        crate::functions::rows::write_statement(self.call, function, args, value)
    }
    fn shared(&self, channel: &str, name: &str, out: &mut String) -> bool {
        self.call.chan.core(|core| {
            let id = if channel.is_empty() { Some(self.call.chan.id()) } else { core.by_name(channel) };
            let value = id.and_then(|id| core.get(id)).and_then(|c| c.shared.get(Var::named(name)));
            value.map(|value| out.push_str(value)).is_some()
        })
    }
    fn set_shared(&mut self, channel: &str, name: &str, value: &str) -> bool {
        self.call.chan.core(|core| {
            let id = if channel.is_empty() { Some(self.call.chan.id()) } else { core.by_name(channel) };
            let Some(channel) = id.and_then(|id| core.get_mut(id)) else { return false };
            let fitted = channel.shared.set(Var::named(name), value, Inherit::Never);
            if let Some(id) = id.filter(|_| fitted) {
                let (variable, value) = (format!("SHARED({name})"), value.to_owned());
                core.notice_of(id, |channel| call::Notice::VarSet {
                    channel: Some(channel),
                    variable,
                    value,
                });
            }
            fitted
        })
    }
    fn caller_number(&self, out: &mut String) -> bool {
        let read =
            self.call.chan.with(|c| c.caller.number.as_deref().map(|number| out.push_str(number)).is_some());
        read == Ok(true)
    }
    fn file_facts(&self, path: &str) -> Option<FileFacts> {
        let path = self.spooled(path);
        let may = self.rights.outside;
        may.then(|| self.call.chan.core(|core| core.services.outside.file_facts(&path))).flatten()
    }
    fn file_text(&self, path: &str) -> Option<String> {
        let path = self.spooled(path);
        let most = dialplan::template::EXPAND_BYTES_MAX;
        let may = self.rights.outside;
        may.then(|| self.call.chan.core(|core| core.services.outside.file_text(&path, most))).flatten()
    }
    fn enum_lookup(&mut self, args: &str, out: &mut String) -> Result<(), Fault> {
        crate::functions::enumlookup::read(self.call, args, out)
    }
    fn environment(&self, name: &str) -> Option<String> {
        let may = self.rights.outside;
        may.then(|| self.call.chan.core(|core| core.services.outside.environment(name))).flatten()
    }
}

impl Scope<'_> {
    /// A relative path begins at the spool, not where the process happened to start.
    fn spooled(&self, path: &str) -> String {
        if path.starts_with('/') {
            return path.to_owned();
        }
        let spool = self.call.chan.core(|core| core.settings.directories.0.get("spool").cloned());
        format!("{}/{path}", spool.unwrap_or_default())
    }
}

/// Built-ins of the whole process; `None` for those of a channel.
pub(crate) fn process_builtin(core: &call::Core, which: Builtin, out: &mut String) -> Option<bool> {
    use std::fmt::Write as _;
    let directory = |name: &str, out: &mut String| {
        let found = core.settings.directories.0.get(name);
        Some(found.map(|path| out.push_str(path)).is_some())
    };
    match which {
        Builtin::Epoch => {
            let _ = write!(out, "{}", core.services.wall.now_micros().div_euclid(1_000_000));
        }
        Builtin::Systemname => out.push_str(&core.settings.system_name),
        Builtin::Entityid => out.push_str(&core.settings.entity_id),
        Builtin::Astetcdir => return directory("etc", out),
        Builtin::Astmoddir => return directory("mod", out),
        Builtin::Astvarlibdir => return directory("varlib", out),
        Builtin::Astdbdir => return directory("db", out),
        Builtin::Astkeydir => return directory("key", out),
        Builtin::Astdatadir => return directory("data", out),
        Builtin::Astagidir => return directory("agi", out),
        Builtin::Astspooldir => return directory("spool", out),
        Builtin::Astrundir => return directory("run", out),
        Builtin::Astlogdir => return directory("log", out),
        Builtin::Astsbindir => return directory("sbin", out),
        _ => return None,
    }
    Some(true)
}

/// Built-ins that do not depend on the run.
fn builtin(core: &mut call::Core, call: &Call, which: Builtin, out: &mut String) -> bool {
    use std::fmt::Write as _;
    if let Some(known) = process_builtin(core, which, out) {
        return known;
    }
    let id = call.chan.id();
    let Some(channel) = core.get(id) else { return false };
    match which {
        Builtin::Exten => out.push_str(&channel.location.exten),
        Builtin::Context => out.push_str(&channel.location.context),
        Builtin::Priority => drop(write!(out, "{}", channel.location.priority)),
        Builtin::Channel => out.push_str(&channel.name),
        Builtin::Uniqueid => out.push_str(&channel.uniqueid),
        Builtin::Hangupcause => {
            let _ = write!(out, "{}", channel.hangup.unwrap_or(channel.last_cause).0);
        }
        Builtin::Callingpres => drop(write!(out, "{}", channel.caller.number_presentation.code())),
        Builtin::Callingani2 => drop(write!(out, "{}", channel.ani2)),
        Builtin::Callington | Builtin::Callingtns => out.push('0'),
        _ => return false,
    }
    true
}

/// How loud a line of the dialplan's is in the log.
pub(crate) fn loudness(level: dialplan::Level) -> call::Level {
    match level {
        dialplan::Level::Debug => call::Level::Debug(1),
        dialplan::Level::Notice => call::Level::Notice,
        dialplan::Level::Warning => call::Level::Warning,
        dialplan::Level::Error => call::Level::Error,
    }
}

/// The core's clock as the dialplan's calendar.
pub(crate) struct CoreCalendar<'a>(pub(crate) &'a call::Core);

impl Calendar for CoreCalendar<'_> {
    fn wall(&self) -> Wall {
        let micros = self.0.services.wall.now_micros();
        Wall {
            seconds: micros.div_euclid(1_000_000),
            micros: u32::try_from(micros.rem_euclid(1_000_000)).unwrap_or(0),
        }
    }
    fn offset(&self, at: i64, zone: &str) -> Offset {
        self.0.services.wall.offset(at, zone)
    }
    fn registered(&self, context: &str, exten: &str) -> Near {
        self.0.registered.near(context, exten)
    }
}

/// The priority of a label in an extension, for whoever has no channel there yet.
pub fn priority_of_label(core: &call::Core, context: &str, exten: &str, label: &str) -> Option<u32> {
    let query = dialplan::Query { context: core.program.context_id(context)?, exten, caller: "" };
    let route = core.program.route(query, &CoreCalendar(core));
    let step = core.program.at_label(&route, core.program.label_id(label)?)?;
    core.program.step(step).map(|step| step.priority)
}

/// Characters that part the arguments of Dial and others from each other, and destinations from options.
pub(crate) const SEPARATORS: [char; 10] = ['&', '/', '@', '|', ',', '{', '}', '[', ']', '\\'];

/// Whether the dialplan in force has a number that somebody outside asks for; for [`call::Core::reach`].
///
/// A number with a separator (`SEPARATORS`) in it is there only when an extension has exactly this name. Taken by a
/// pattern it would be handed on as `${EXTEN}`, and the caller could name phones and trunks of his own choice.
pub fn reach(core: &call::Core, context: &str, exten: &str, caller: &str) -> call::Reach {
    let Some(context) = core.program.context_id(context) else { return call::Reach::None };
    let query = dialplan::Query { context, exten, caller };
    let calendar = CoreCalendar(core);
    let found = core.program.find(query, 1, &calendar);
    let named = found.and_then(|step| core.program.extension(step.extension));
    let separator = exten.chars().find(|c| SEPARATORS.contains(c));
    if let Some(separator) = separator.filter(|_| !named.is_some_and(|found| found.pattern.is_literal())) {
        call::Reach::Separator(separator)
    } else if named.is_some() {
        call::Reach::Whole
    } else if has_switch(core, query, &calendar) {
        // Nobody knows yet; the call's story asks the switch, and ends the call where it has no such number.
        call::Reach::Whole
    } else if core.program.can_match(query, &calendar) {
        call::Reach::Partial
    } else {
        call::Reach::None
    }
}

/// Whether a number of a context may be elsewhere; `s` is at no other site, but may be in a table.
fn has_switch(core: &call::Core, query: dialplan::Query<'_>, calendar: &CoreCalendar<'_>) -> bool {
    let rows = || core.settings.has_module(crate::pbx::ROWS_MODULE);
    core.program.switches(query, calendar).iter().any(|(_, switch)| match switch.is_rowed() {
        true => rows(),
        false => query.exten != "s" && switch.engine.eq_ignore_ascii_case("IAX2"),
    })
}
