//! Carrying out step after step, until something other than the next step is due.

use std::sync::Arc;

use base::Digit;
use call::{CelKind, Level, Notice, Stop};
use dialplan::{
    Asks, Destination, Inherit, Kind, Nested, Program, Ready, Scratch, Step, SubCall, Var, Written,
};

use super::{Frame, FrameKind, Place};
use crate::env::Scope;
use crate::{AppRow, Call, Flow, Outcome, Run};

/// Steps one call may take before others get their turn: a quarter of a millisecond's worth.
const STEPS_PER_TURN: u32 = 500;

/// Gosub and Macro calls that one channel may have open: far above any recursion in use.
const FRAMES_MAX: usize = 1024;

/// Why the steps stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// There is no step at this place.
    NoStep,
    /// A digit was pressed.
    Digit(Digit),
    /// The number is incomplete.
    Incomplete,
    /// An application ended the call.
    Hangup,
    /// The story must stop.
    Stopped(Stop),
    /// The routine that was run has returned.
    Returned,
}

/// When steps stop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Until {
    /// Stop when fewer frames than this are open.
    pub(crate) frames: usize,
    /// Go on although the call has ended (`h`, hang-up handlers).
    pub(crate) after_end: bool,
}

/// What one step asks of the loop, as far as it could be carried out without waiting.
enum Done {
    Flow(Outcome),
    Story(&'static AppRow, Written),
}

impl Call {
    /// Takes steps from where the run stands. They are the site's own text, whoever has sent the call there.
    pub(crate) async fn steps(&self, until: Until) -> Left {
        let before = self.run.rights.replace(dialplan::Rights::ALL);
        let left = self.take_steps(until).await;
        self.run.rights.set(before);
        left
    }
    async fn take_steps(&self, until: Until) -> Left {
        let table = crate::table::applications();
        let mut scratch = Scratch::default();
        let mut program: Arc<Program> = self.chan.core(|core| core.program.clone());
        let mut taken = 0;
        loop {
            let stale = self.chan.core(|core| {
                if !Arc::ptr_eq(&core.program, &program) {
                    program = core.program.clone();
                }
                self.run.place.borrow().as_ref().is_some_and(|place| place.is_stale(&program))
            });
            if stale {
                let fresh = self.here().again(self);
                self.stand_at(fresh);
            }
            let at = self.run.place.borrow().as_ref().and_then(Place::step);
            let rowed = self.run.place.borrow().as_ref().and_then(Place::rowed);
            let step = at.and_then(|at| match &rowed {
                Some(extension) => extension.steps.get(usize::try_from(at.index).ok()?),
                None => program.step(at),
            });
            let Some(step) = step else {
                match self.rows_here(until.after_end).await {
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(stop) => {
                        self.settle();
                        return Left::Stopped(stop);
                    }
                }
                if self.leave_macro() {
                    continue;
                }
                self.settle_unless_over();
                return Left::NoStep;
            };
            if let Some(asks) = step.asks()
                && let Err(stop) = self.ask_for(asks, &step.args, until.after_end).await
            {
                self.settle();
                return Left::Stopped(stop);
            }
            let outcome = match self.take(table, &program, step, &mut scratch) {
                Done::Flow(outcome) => outcome,
                Done::Story(row, args) => {
                    taken = 0;
                    self.run_story(row, args).await
                }
            };
            if self.has_writes()
                && let Err(stop) = self.write_rows(until.after_end).await
            {
                self.settle();
                return Left::Stopped(stop);
            }
            match outcome {
                Ok(Flow::Continue) => self.advance(),
                Ok(Flow::Jumped) => {
                    if self.run.stack.borrow().len() < until.frames {
                        return Left::Returned;
                    }
                    self.leave_macros_jumped_out_of();
                }
                Ok(Flow::Hangup) => {
                    self.settle();
                    return Left::Hangup;
                }
                Ok(Flow::Digit(digit)) => return Left::Digit(digit),
                Ok(Flow::Incomplete) => return Left::Incomplete,
                Err(stop) => {
                    self.settle();
                    return Left::Stopped(stop);
                }
            }
            if !until.after_end
                && let Err(stop) = self.chan.check()
            {
                self.settle();
                return Left::Stopped(stop);
            }
            taken += 1;
            if taken >= STEPS_PER_TURN {
                taken = 0;
                self.settle();
                self.chan.pause().await;
            }
        }
    }

    /// Asks others for what the functions that a step spells out will answer.
    async fn ask_for(&self, asks: Asks, args: &str, after_end: bool) -> Result<(), Stop> {
        // First: what comes of it may be a part of what the others are asked.
        if asks.rows {
            self.fetch_rows(args, after_end).await?;
        }
        if asks.shell {
            self.run_shell_calls(args).await?;
        }
        if asks.services {
            self.fetch_services(args, after_end).await?;
        }
        if asks.numbers {
            self.fetch_enum(args, after_end).await?;
        }
        if asks.web {
            self.fetch_pages(args, after_end).await?;
        }
        if asks.quality {
            self.chan.refresh_quality(after_end).await?;
        }
        // Last: what is free now is free when the arguments are expanded.
        if asks.locks {
            self.wait_for_locks(args, after_end).await?;
        }
        Ok(())
    }

    async fn run_story(&self, row: &'static AppRow, args: Written) -> Outcome {
        self.settle();
        let before = self.app_begins(row);
        let outcome = match row.run {
            Run::Now(now) => now(self, &args.text),
            Run::Story(story) => story(self.clone(), args.text).await,
            Run::Command(story) => story(self.clone(), args).await,
        };
        if let Some(before) = before {
            self.app_ends(row, before);
        }
        self.chan.core(|core| core.show_own_app(self.chan.id()));
        outcome
    }

    /// Tells channel event logging of an application that it keeps track of; the one that it runs in.
    fn app_begins(&self, row: &AppRow) -> Option<&'static str> {
        let id = self.chan.id();
        self.chan.core(|core| {
            let tracked = core.settings.cel.as_ref().is_some_and(|cel| cel.has_app(row.name));
            if tracked {
                self.settle_in(core);
                core.log_event(CelKind::AppStart, id, |_| Vec::new());
            }
            let told = tracked.then(|| core.get_mut(id)).flatten().map(|channel| &mut channel.told_app);
            told.map(|told| std::mem::replace(told, row.name))
        })
    }
    /// The same of its end, with the application that the event is about although others may have run inside.
    fn app_ends(&self, row: &AppRow, before: &'static str) {
        let id = self.chan.id();
        self.chan.core(|core| {
            let told = core.get_mut(id).map(|channel| std::mem::replace(&mut channel.told_app, before));
            // Who is here may have come into the place of another, for whom it is over.
            if told == Some(row.name) {
                core.log_event_with(CelKind::AppEnd, id, |_, event| event.app = row.name);
            }
        });
    }

    fn advance(&self) {
        if let Some(place) = &mut *self.run.place.borrow_mut() {
            let next = place.priority().saturating_add(1);
            place.set_priority(next);
        }
    }

    /// Carries one step out, or says which story has to.
    fn take(
        &self,
        table: &'static [&'static AppRow],
        program: &Program,
        step: &Step,
        scratch: &mut Scratch,
    ) -> Done {
        let row = step.app.and_then(|app| table.get(usize::from(app.0)).copied()).filter(|row| self.has(row));
        let Some(row) = row else {
            return Done::Flow(self.unknown_app(&step.name, Some(&step.place.to_string())));
        };
        self.run.app.set(row.name);
        let loud = self.chan.core(|core| core.watched || core.services.log.enabled(Level::Verbose(3)));
        let mut scope = Scope::new(self);
        let mut whole = String::new();
        // While somebody watches, the step's whole text is shown, so it is substituted whole; the outcome is the same.
        let shown = loud && !matches!(step.kind(), Kind::Plain | Kind::Set) && !step.commands();
        let ready = match step.app.filter(|_| shown) {
            Some(app) => {
                step.template().expand(&mut scope, &mut whole);
                program.interpret(&mut scope, app, &whole)
            }
            None => step.prepare(&mut scope, scratch),
        };
        match &ready {
            Ready::Set { value, .. } => {
                let mut data = self.run.data.borrow_mut();
                data.clear();
                data.push_str(step.set_prefix().unwrap_or_default());
                data.push_str(value);
            }
            Ready::Run(text) => self.enter_app(row.name, text),
            Ready::Command(written) => self.enter_app(row.name, &written.text),
            Ready::Goto(_) | Ready::Gosub(_) | Ready::Exec(_) | Ready::Bad(_) => {
                self.enter_app(row.name, if shown { &whole } else { &step.args });
            }
        }
        self.run.unsettled.set(true);
        if loud {
            self.announce(row);
        }
        self.carry_out(table, program, row, ready)
    }

    fn carry_out(
        &self,
        table: &'static [&'static AppRow],
        program: &Program,
        row: &'static AppRow,
        ready: Ready<'_>,
    ) -> Done {
        let is_story = match &ready {
            Ready::Run(_) => !matches!(row.run, Run::Now(_)),
            Ready::Command(_) | Ready::Exec(Some(_)) => true,
            _ => false,
        };
        let before = if is_story { None } else { self.app_begins(row) };
        let outcome = match ready {
            Ready::Set { target, value } => {
                target.assign(&mut Scope::new(self), value);
                Ok(Flow::Continue)
            }
            Ready::Run(text) => match row.run {
                Run::Now(now) => now(self, text),
                Run::Story(_) | Run::Command(_) => {
                    return Done::Story(row, Written { text: text.to_owned(), values: None });
                }
            },
            Ready::Command(written) => return Done::Story(row, written),
            Ready::Goto(None) | Ready::Gosub(None) | Ready::Exec(None) => Ok(Flow::Continue),
            Ready::Goto(Some(to)) => self.jump(&to),
            Ready::Gosub(Some(sub)) => self.enter_gosub(&sub),
            Ready::Exec(Some(nested)) => return self.carry_out_nested(table, program, nested),
            Ready::Bad(why) => {
                self.log(Level::Warning, &why);
                Ok(Flow::Continue)
            }
        };
        if let Some(before) = before {
            self.app_ends(row, before);
        }
        Done::Flow(outcome)
    }
    fn carry_out_nested(
        &self,
        table: &'static [&'static AppRow],
        program: &Program,
        nested: Nested<'_>,
    ) -> Done {
        let found = nested.app.and_then(|app| Some((app, table.get(usize::from(app.0)).copied()?)));
        let Some((app, row)) = found.filter(|(_, row)| self.has(row)) else {
            return Done::Flow(self.unknown_app(nested.name, None));
        };
        self.enter_app(row.name, &nested.args);
        if nested.values.is_some() {
            return Done::Story(row, Written { text: nested.args.into_owned(), values: nested.values });
        }
        let ready = program.interpret(&mut Scope::new(self), app, &nested.args);
        self.carry_out(table, program, row, ready)
    }
    /// Runs an application by its id with arguments that are expanded already.
    pub(crate) fn perform(
        &self,
        row: &'static AppRow,
        args: &str,
    ) -> crate::call_ctx::CallFuture<'static, Outcome> {
        let program = self.chan.core(|core| core.program.clone());
        let done = match program.apps().lookup(row.name) {
            Some(app) => {
                let nested = Nested { app: Some(app), name: row.name, args: args.into(), values: None };
                self.carry_out_nested(crate::table::applications(), &program, nested)
            }
            // The dialplan in force was made without these applications; what they do with their text is the same.
            None => {
                let program = crate::table::no_dialplan();
                let app = program.apps().lookup(row.name);
                let nested = Nested { app, name: row.name, args: args.into(), values: None };
                self.carry_out_nested(crate::table::applications(), &program, nested)
            }
        };
        let call = self.clone();
        Box::pin(async move {
            match done {
                Done::Flow(outcome) => outcome,
                Done::Story(row, args) => call.run_story(row, args).await,
            }
        })
    }
    fn has(&self, row: &AppRow) -> bool {
        self.chan
            .core(|core| core.settings.disabled_modules.is_empty() || core.settings.has_module(row.module))
    }
    fn unknown_app(&self, name: &str, written: Option<&str>) -> Outcome {
        // Watchers go on seeing the step before.
        self.chan.core(|core| core.keep_shown(self.chan.id()));
        let at = written.map(|place| format!(" ({place})")).unwrap_or_default();
        self.chan.log(Level::Error, "pbx", &format!("No application '{name}'{at}; the call ends"));
        Ok(Flow::Hangup)
    }
    /// Tells watchers and the log of a step that is about to be taken.
    fn announce(&self, row: &'static AppRow) {
        let data = self.run.data.borrow().clone();
        self.chan.core(|core| {
            self.settle_in(core);
            let id = self.chan.id();
            if core.services.log.enabled(Level::Verbose(3))
                && let Some(c) = core.get(id)
            {
                let at = &c.location;
                let line = format!(
                    "Executing [{}@{}:{}] {}(\"{}\", \"{data}\") in new stack",
                    at.exten, at.context, at.priority, row.name, c.name
                );
                let call = Some(c.call_number);
                core.services.log.line_of_call(call, Level::Verbose(3), "pbx", &line);
            }
            let told = core.get_mut(id).and_then(|c| c.told_place.take_if(|told| *told == c.location));
            if let Some(channel) = core.get_mut(id) {
                channel.told_step = Some(channel.location.priority);
            }
            if told.is_none() {
                core.seen_anew(id);
                core.notice_of(id, |channel| Notice::NewExten { channel, application: row.name, data });
            }
        });
    }

    /// Goto: a label must exist, a place without a step is left to the loop.
    fn jump(&self, to: &Destination) -> Outcome {
        let mut place = self.run.place.borrow_mut();
        // Within the extension nothing has to be looked up or counted.
        if let (Some(here), None, None) = (&mut *place, &to.context, &to.exten)
            && let Some(priority) = here.priority_of(&to.place)
        {
            here.set_priority(priority);
            return Ok(Flow::Jumped);
        }
        drop(place);
        match self.here().toward(self, to) {
            Ok(there) => {
                self.stand_at(there);
                Ok(Flow::Jumped)
            }
            Err(why) => {
                self.log(Level::Error, &why.to_string());
                Ok(Flow::Hangup)
            }
        }
    }

    /// Gosub: goes there; Return comes back to the priority after this one.
    pub(crate) fn enter_gosub(&self, sub: &SubCall<'_>) -> Outcome {
        let here = self.here();
        let there = match here.toward(self, &sub.destination) {
            // A table is asked when the call stands there.
            Ok(there) if there.step().is_some() || self.may_have_rows(&there) => there,
            Ok(there) => {
                let at = there.location();
                let text = format!(
                    "Attempt to reach a non-existent destination for gosub: (Context:{}, Extension:{}, Priority:{})",
                    at.context, at.exten, at.priority
                );
                self.log(Level::Error, &text);
                return Ok(Flow::Hangup);
            }
            Err(why) => {
                self.log(Level::Error, &why.to_string());
                return Ok(Flow::Hangup);
            }
        };
        let args: Vec<String> = sub.args.iter().map(|arg| dialplan::args::unquote(arg)).collect();
        if !self.open_frame(Some(here), FrameKind::Gosub, &args) {
            return Ok(Flow::Hangup);
        }
        self.stand_at(there);
        Ok(Flow::Jumped)
    }

    /// Opens a frame and binds ARG1 to ARGn and ARGC in it; arguments of the caller do not show through.
    pub(crate) fn open_frame(&self, back: Option<Place>, kind: FrameKind, args: &[String]) -> bool {
        if self.run.stack.borrow().len() >= FRAMES_MAX {
            self.log(Level::Error, "too many routines call each other; the call ends");
            return false;
        }
        let outer = self.get("ARGC").and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
        let _ = self.chan.with(|c| c.vars.push_frame());
        self.run.stack.borrow_mut().push(Frame { back, kind });
        for (index, arg) in args.iter().enumerate() {
            self.bind(&format!("ARG{}", index + 1), arg);
        }
        for index in args.len()..outer.min(dialplan::args::ARGUMENTS_MAX) {
            self.bind(&format!("ARG{}", index + 1), "");
        }
        self.bind("ARGC", &args.len().to_string());
        true
    }
    pub(crate) fn bind(&self, name: &str, value: &str) {
        let program = self.chan.core(|core| core.program.clone());
        let known = program.symbols().lookup(name);
        self.set_local_var(known.as_ref().map_or(Var::named(name), |known| known.as_var()), value);
    }
    /// Closes the innermost frame with what it bound, which watchers are told, the latest first.
    pub(crate) fn close_frame(&self) -> Option<Frame> {
        let frame = self.run.stack.borrow_mut().pop()?;
        for name in self.chan.with(|c| c.vars.pop_frame()).unwrap_or_default().iter().rev() {
            self.tell_var(name, "");
        }
        Some(frame)
    }
    /// Return(value).
    pub(crate) fn return_with(&self, value: &str) -> Outcome {
        let Some(frame) = self.close_frame() else {
            self.log(Level::Error, "Return without Gosub: stack is empty; the call ends");
            return Ok(Flow::Hangup);
        };
        self.set_var(Var::named("GOSUB_RETVAL"), value, Inherit::Never);
        self.go_back(frame);
        Ok(Flow::Jumped)
    }
    /// Stands after the step that opened the frame.
    fn go_back(&self, frame: Frame) {
        if let Some(mut back) = frame.back {
            let next = back.priority().saturating_add(1);
            back.set_priority(next);
            self.stand_at(back);
        }
    }
    /// A macro that has no more steps, or is left by MacroExit, comes back; `false` when none is running.
    pub(crate) fn leave_macro(&self) -> bool {
        let innermost_is_macro =
            matches!(self.run.stack.borrow().last(), Some(Frame { kind: FrameKind::Macro(_), .. }));
        if !innermost_is_macro {
            return false;
        }
        let offset =
            self.get("MACRO_OFFSET").and_then(|offset| offset.trim().parse::<u32>().ok()).unwrap_or(0);
        let Some(frame) = self.close_frame() else { return false };
        self.go_back(frame);
        if offset > 0
            && let Some(place) = &mut *self.run.place.borrow_mut()
        {
            let mut further = place.clone();
            further.set_priority(place.priority().saturating_add(offset));
            if further.step().is_some() {
                *place = further;
            }
        }
        true
    }
    /// A Goto out of a macro's context ends the macro without coming back.
    fn leave_macros_jumped_out_of(&self) {
        if self.run.stack.borrow().is_empty() {
            return;
        }
        loop {
            let jumped_out = {
                let (stack, place) = (self.run.stack.borrow(), self.run.place.borrow());
                match (stack.last(), &*place) {
                    (Some(Frame { kind: FrameKind::Macro(context), .. }), Some(place)) => {
                        **context != *place.context()
                    }
                    _ => false,
                }
            };
            if !jumped_out {
                return;
            }
            self.close_frame();
        }
    }
}
