//! What an application gets: the channel, its variables and functions, and its place in the dialplan.

pub mod args;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use base::Cause;
use call::{Chan, Level, Notice};
use dialplan::{Builtin, Inherit, Rights, Var};

use crate::Outcome;
use crate::env::Scope;
use crate::pbx::{Frame, FrameKind, Place};

/// Work on a call that may wait.
pub type CallFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Why a place in the dialplan cannot be gone to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSuchPlace(pub String);

impl std::fmt::Display for NoSuchPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A channel with what a dialplan knows of it. Cheap to clone; clones share the run's state.
///
/// Also good on a channel that runs no dialplan: variables, functions and [`Call::gosub`] work there alike.
#[derive(Clone)]
pub struct Call {
    /// The channel.
    pub chan: Chan,
    pub(crate) run: Rc<RunState>,
}

/// What a run keeps between steps. The channel's own `location`, `app` and `app_data` are brought up to date from it
/// before anybody else can look, see [`Call::settle`].
#[derive(Default)]
pub(crate) struct RunState {
    /// Where the run stands; `None` when no dialplan runs through this handle.
    pub(crate) place: RefCell<Option<Place>>,
    /// Gosub and Macro frames, innermost last.
    pub(crate) stack: RefCell<Vec<Frame>>,
    /// What text that is evaluated through this handle may touch; the steps of the dialplan have all rights.
    pub(crate) rights: Cell<Rights>,
    /// Application of the step that runs.
    pub(crate) app: Cell<&'static str>,
    /// Its expanded arguments.
    pub(crate) data: RefCell<String>,
    /// Whether the channel does not yet show what `place`, `app` and `data` say.
    pub(crate) unsettled: Cell<bool>,
    /// Routines that run beside the call's own story (hang-up handlers, Dial's U and b): they leave no trace in its record.
    pub(crate) routines: Cell<u32>,
    /// The call has ended: `h` and the hang-up handlers run.
    pub(crate) ended: Cell<bool>,
    /// Set by a failed `If`: the `ElseIf` that is gone to decides, instead of ending the taken branch.
    pub(crate) undecided: Cell<bool>,
    /// What `EXCEPTION()` says.
    pub(crate) exception: RefCell<Option<Exception>>,
    /// What the DNS said for the calls of `ENUMLOOKUP()` in the step that runs.
    pub(crate) fetched: RefCell<Vec<crate::functions::enumlookup::Fetched>>,
    /// What `ENUMQUERY()` found, by its ids.
    pub(crate) numbers: RefCell<Vec<(u64, Vec<String>)>>,
    /// What came of the calls of `CURL()` in the step that runs.
    pub(crate) pages: RefCell<Vec<crate::functions::web::Fetched>>,
    /// What `CURLOPT()` was told.
    pub(crate) web: RefCell<crate::functions::web::Options>,
    /// What the DNS said of services (`SRVRESULT()`).
    pub(crate) served: RefCell<Vec<crate::functions::service::Served>>,
    /// What databases have given to the step that runs, and what they are to be told after it.
    pub(crate) rows: RefCell<crate::functions::rows::Asked>,
    /// A table that was asked for an extension last did not answer.
    pub(crate) unanswered: Cell<bool>,
    /// What the commands of the calls of `SHELL()` in the step that runs have written.
    pub(crate) wrote: RefCell<Vec<crate::functions::shell::Wrote>>,
}

/// What was raised, and where (`EXCEPTION()`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Exception {
    pub(crate) reason: String,
    pub(crate) context: String,
    pub(crate) exten: String,
    pub(crate) priority: u32,
}

impl Call {
    /// A handle on a channel, with a run of its own.
    pub fn new(chan: Chan) -> Self {
        Self { chan, run: Rc::default() }
    }

    /// The same for somebody whose text may touch only so much; every clone is bound by it.
    #[must_use]
    pub fn with_rights(self, rights: Rights) -> Self {
        self.run.rights.set(rights);
        self
    }
    /// A handle on another channel, for whoever has this one.
    pub(crate) fn beside(&self, id: base::ChannelId) -> Self {
        Self::new(Chan::new(self.chan.shard().clone(), id)).with_rights(self.run.rights.get())
    }
    /// Reads `${name}`: built-in, channel variable or global; `None` when there is none of them.
    pub fn get(&self, name: &str) -> Option<String> {
        let mut value = String::new();
        dialplan::template::read_named(&Scope::new(self), name, &mut value).then_some(value)
    }
    /// Sets a channel variable; `_` and `__` before the name as in `Set`. Watchers hear of it.
    ///
    /// `HANGUPCAUSE`, which no variable can hide, sets the cause that the call ends with unless another is given.
    pub fn set(&self, name: &str, value: &str) {
        if name == "HANGUPCAUSE" {
            self.set_cause(Cause(value.parse().unwrap_or_default()));
            return;
        }
        let (inherit, name) = Inherit::strip(name);
        let program = self.chan.core(|core| core.program.clone());
        let known = program.symbols().lookup(name);
        self.set_var(known.as_ref().map_or(Var::named(name), |known| known.as_var()), value, inherit);
    }
    /// Takes a channel variable away.
    pub fn unset(&self, name: &str) {
        let _ = self.chan.with(|c| c.vars.remove(Var::named(name)));
    }
    /// Sets a global variable. Watchers hear of it.
    pub fn set_global(&self, name: &str, value: &str) {
        self.set_global_var(Var::named(name), value);
    }
    /// What `Set(target=value)` does: a variable, or a function when `target` ends in `)`.
    pub fn assign(&self, target: &str, value: &str) -> bool {
        dialplan::set_by_name(&mut Scope::new(self), target, value)
    }
    /// What the function call `NAME(arguments)` answers; the arguments are taken as they are, without expansion.
    pub fn read(&self, function_call: &str) -> String {
        let mut out = String::new();
        dialplan::template::read_call(&mut Scope::new(self), function_call, &mut out);
        out
    }
    /// The same; `None` where the function is none, may not be read, or has nothing to answer.
    pub fn read_if_can(&self, function_call: &str) -> Option<String> {
        let mut out = String::new();
        dialplan::template::read_call(&mut Scope::new(self), function_call, &mut out).then_some(out)
    }
    /// Expands `${…}` and `$[…]`.
    pub fn expand(&self, text: &str) -> String {
        let mut out = String::new();
        dialplan::expand_text(&mut Scope::new(self), text, &mut out);
        out
    }
    /// The same of text that belongs to an extension, which `${EXTEN}` and `${CONTEXT}` in it name.
    pub fn expand_at(&self, context: &str, exten: &str, text: &str) -> String {
        let mut out = String::new();
        dialplan::expand_text(&mut Scope::at(self, context, exten), text, &mut out);
        out
    }
    /// Writes a log line about this channel, from the application that runs.
    pub fn log(&self, level: Level, text: &str) {
        let app = self.run.app.get();
        self.chan.log(level, if app.is_empty() { "pbx" } else { app }, text);
    }
    /// The Q.850 cause of the last leg that this channel dialled: `${HANGUPCAUSE}`, and what an unexplained end of the
    /// call tells the caller.
    pub fn set_cause(&self, cause: Cause) {
        let _ = self.chan.with(|c| c.last_cause = cause);
    }
    /// Keeps how a dialled channel ended, for `HANGUPCAUSE(channel,tech|ast)` and `HANGUPCAUSE_KEYS()`.
    pub fn note_hangup(&self, channel: &str, cause: Cause, tech_text: &str) {
        let _ = self.chan.with(|c| {
            c.last_cause = cause;
            c.hangup_causes.retain(|known| known.0 != channel);
            if c.hangup_causes.len() >= HANGUP_CAUSES_MAX {
                c.hangup_causes.remove(0);
            }
            c.hangup_causes.push((channel.to_owned(), cause, tech_text.to_owned()));
        });
    }

    /// Keeps how a leg that has ended did so; nothing while it goes on.
    pub(crate) fn note_leg(&self, leg: &Chan) {
        let ended = leg.with(|c| c.hangup.map(|cause| (c.name.to_string(), cause, c.hangup_source.clone())));
        if let Ok(Some((name, cause, tech_text))) = ended {
            self.note_hangup(&name, cause, &tech_text);
        }
    }

    /// Runs an application by name, any case, with arguments that are expanded already; `None` when there is no such
    /// application, or its module is switched off.
    pub fn run_app(&self, name: &str, args: &str) -> CallFuture<'static, Option<Outcome>> {
        let (call, args) = (self.clone(), args.to_owned());
        let row = crate::table::lookup(name)
            .filter(|row| self.chan.core(|core| core.settings.has_module(row.module)));
        Box::pin(async move { Some(call.perform(row?, &args).await) })
    }

    pub(crate) fn set_var(&self, var: Var<'_>, value: &str, inherit: Inherit) {
        let fitted = self.chan.core(|core| {
            let id = self.chan.id();
            let Some(channel) = core.get_mut(id) else { return true };
            if !channel.vars.set(var, value, inherit) {
                return false;
            }
            self.notice_var(core, Some(id), &format!("{}{}", inherit.prefix(), var.name), value);
            true
        });
        if !fitted {
            self.log(Level::Error, &format!("variable {} was not set: the channel holds too many", var.name));
        }
    }
    pub(crate) fn set_local_var(&self, var: Var<'_>, value: &str) {
        self.chan.core(|core| {
            let id = self.chan.id();
            let Some(channel) = core.get_mut(id) else { return };
            channel.vars.set_local(var, value);
            let in_macro =
                matches!(self.run.stack.borrow().last(), Some(Frame { kind: FrameKind::Macro(_), .. }));
            let name = if in_macro { var.name.to_owned() } else { format!("LOCAL({})", var.name) };
            self.notice_var(core, Some(id), &name, value);
        });
    }
    pub(crate) fn set_global_var(&self, var: Var<'_>, value: &str) {
        self.chan.core(|core| {
            core.globals.set(var, value, Inherit::Never);
            self.notice_var(core, None, var.name, value);
        });
    }
    /// Tells watchers of a variable that somebody else has set on the channel.
    pub(crate) fn tell_var(&self, name: &str, value: &str) {
        self.chan.core(|core| self.notice_var(core, Some(self.chan.id()), name, value));
    }
    fn notice_var(&self, core: &mut call::Core, id: Option<base::ChannelId>, name: &str, value: &str) {
        if core.watched {
            if !self.run.ended.get() {
                self.settle_in(core);
            }
            core.notice(|core| {
                Some(Notice::VarSet {
                    channel: id.and_then(|id| core.snapshot(id)),
                    variable: name.to_owned(),
                    value: value.to_owned(),
                })
            });
        }
    }
    /// The application that runs is `name`; the channel shows it once the run is settled.
    pub(crate) fn enter_app(&self, name: &'static str, data: &str) {
        self.run.app.set(name);
        let mut kept = self.run.data.borrow_mut();
        kept.clear();
        kept.push_str(data);
        drop(kept);
        self.run.unsettled.set(true);
        if self.chan.core(|core| core.cdr_waits(self.chan.id())) {
            self.settle();
        }
    }
    /// Writes place, application and arguments into the channel, where everybody can see them.
    pub(crate) fn settle(&self) {
        if self.run.unsettled.get() {
            self.chan.core(|core| self.settle_in(core));
        }
    }
    /// The same between two steps; once the call is over watchers see it where its last step was.
    pub(crate) fn settle_unless_over(&self) {
        if !(self.run.ended.get() && self.chan.core(|core| core.watched)) {
            self.settle();
        }
    }
    pub(crate) fn settle_in(&self, core: &mut call::Core) {
        if !self.run.unsettled.replace(false) {
            return;
        }
        let Some(channel) = core.get_mut(self.chan.id()) else { return };
        if let Some(place) = &*self.run.place.borrow() {
            let before = &channel.location;
            if before.exten != place.exten() || before.context != place.context() {
                channel.last_place.clone_from(before);
            }
            let shown = &mut channel.location;
            overwrite(&mut shown.context, place.context());
            overwrite(&mut shown.exten, place.exten());
            shown.priority = place.priority();
        }
        let data = self.run.data.borrow();
        channel.app = self.run.app.get();
        overwrite(&mut channel.app_data, &data);
        channel.cdr.in_routine = self.run.routines.get() > 0;
        if !channel.cdr.in_routine && !channel.app.is_empty() {
            let begins = channel.hangup.is_none() || self.run.ended.get();
            core.cdr_step(self.chan.id(), begins);
        }
    }
    /// Appends a built-in of the running step; false when it is not one that the run knows.
    pub(crate) fn place_builtin(&self, which: Builtin, out: &mut String) -> bool {
        use std::fmt::Write as _;
        let place = self.run.place.borrow();
        let Some(place) = &*place else { return false };
        match which {
            Builtin::Exten => out.push_str(place.exten()),
            Builtin::Context => out.push_str(place.context()),
            Builtin::Priority => drop(write!(out, "{}", place.priority())),
            _ => return false,
        }
        true
    }
}

/// Ends of dialled channels that one channel remembers: more than any Dial list in use has legs.
const HANGUP_CAUSES_MAX: usize = 64;

/// Copies text only when it differs; keeps the allocation.
fn overwrite(kept: &mut String, text: &str) {
    if kept != text {
        kept.clear();
        kept.push_str(text);
    }
}
