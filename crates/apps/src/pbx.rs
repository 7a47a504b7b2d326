//! The run loop: a channel's way through the dialplan, from its first step to its hang-up handlers.

mod digits;
mod place;
mod rows;
mod steps;
mod switch;

use std::future::Future;
use std::rc::Rc;

use base::{Cause, ChannelId};
use call::{Advance, Chan, Elsewhere, HandlerChange, Leg, Level, Location, Notice, Shard, SoftHangup, Stop};

pub(crate) use place::Place;
pub(crate) use rows::MODULE as ROWS_MODULE;
pub(crate) use steps::{Left, Until};

use crate::call_ctx::{CallFuture, Exception};
use crate::functions::is_left_untold;
use crate::{Call, Flow, Outcome};

/// How much later than its caller a party is let go, where something of the dialplan runs after the caller's end: that
/// begins by asking the media plane how good the call was.
const BEHIND_CALLER: core::time::Duration = core::time::Duration::from_millis(10);
/// How long busy and congestion tones sound when an extension has run out (`autofallthrough`).
const FALLTHROUGH_TONE_SECS: u64 = 10;

/// A routine or macro that is running.
pub(crate) struct Frame {
    /// The step that called it; `None` when it was run from outside the dialplan.
    pub(crate) back: Option<Place>,
    pub(crate) kind: FrameKind,
}

pub(crate) enum FrameKind {
    Gosub,
    /// Run by an application ([`Call::gosub`]); nothing to go back to.
    Routine,
    /// Its context.
    Macro(Rc<str>),
}

/// What the loop does next.
enum Next {
    Go,
    End,
    /// Another story has asked for the channel.
    Leave,
}

/// Starts the dialplan on a channel at `location` (priority 0 counts as 1). `false`: no room; the channel is ended.
pub fn start(shard: &Rc<Shard>, id: ChannelId, location: Location) -> bool {
    start_story(shard, id, location, run(Chan::new(shard.clone(), id)))
}

/// The same with work in place of the dialplan, of whose end nobody hears as of that of a dialplan; a channel that is sent
/// elsewhere goes on there.
pub(crate) fn start_without_dialplan(
    shard: &Rc<Shard>,
    id: ChannelId,
    location: Location,
    work: impl FnOnce(Call) -> CallFuture<'static, ()> + 'static,
) -> bool {
    let chan = Chan::new(shard.clone(), id);
    start_story(shard, id, location, async move {
        let call = Call::new(chan);
        work(call.clone()).await;
        let_go_of_app(Leg::new(call.chan.shard().clone(), id));
    })
}

fn start_story(
    shard: &Rc<Shard>,
    id: ChannelId,
    location: Location,
    story: impl Future<Output = ()> + 'static,
) -> bool {
    if let Some(channel) = shard.core.borrow_mut().get_mut(id) {
        channel.location = location;
    }
    // Counted when it starts, not when it is first polled, so that admission sees it at once.
    shard.core.borrow_mut().enter_pbx(id);
    let started = shard.spawn(Some(id), story);
    if !started {
        shard.finish(id, Cause::SWITCH_CONGESTION);
    }
    started
}

/// Runs the dialplan on a channel from its location to its end, and ends the channel.
pub async fn run(chan: Chan) {
    let (shard, id) = (chan.shard().clone(), chan.id());
    shard.core.borrow_mut().enter_pbx(id);
    let call = Call::new(chan);
    call.begin().await;
    if call.talk().await {
        return shard.core.borrow_mut().hand_over(id);
    }
    call.after_end(true).await;
    let cause = call.end_cause();
    shard.finish(id, cause);
}

/// A leg becomes a call of its own.
pub(crate) fn start_leg(leg: Leg, location: Location) {
    let chan = leg.keep();
    start(chan.shard(), chan.id(), location);
}

/// Lets go of a leg: to where somebody else sent it, else to `back`, else to its end. One that has run a dialplan runs
/// what that has for the end.
pub(crate) fn let_go(leg: Leg, back: Option<Location>) {
    let_go_after(leg, back, true);
}

/// The same of one that ran an application and no dialplan, of whose end there is nothing to tell.
/// The same of a party whose caller has hung up and ends first, as its dialplan does that has little to do after the end.
pub(crate) fn let_go_behind(caller: &Call, leg: Leg) {
    let (shard, id) = (leg.chan().shard().clone(), leg.chan().id());
    let pause = caller.hears_of_its_end().then_some(BEHIND_CALLER);
    let chan = leg.keep();
    let behind = async move {
        if let Some(pause) = pause {
            // Hung up itself meanwhile: all the better.
            let _ = chan.wait(pause).await;
        }
        let_go(Leg::new(chan.shard().clone(), chan.id()), None);
    };
    if !shard.spawn(Some(id), behind) {
        let_go(Leg::new(shard, id), None);
    }
}
pub(crate) fn let_go_of_app(leg: Leg) {
    let_go_after(leg, None, false);
}

/// Whether there is a step at a place, or may be one.
fn leads_on(chan: &Chan, at: &Location) -> bool {
    let call = Call::new(chan.clone());
    let place = Place::find(&call, &at.context, &at.exten, at.priority);
    place.step().is_some() || call.may_have_rows(&place) || !call.exists(&at.context, &at.exten)
}

fn let_go_after(leg: Leg, back: Option<Location>, had_dialplan: bool) {
    let sent = leg.chan().with(|c| (c.hangup.is_none(), c.goto.clone(), c.has_pbx));
    // An agent goes back to waiting for calls.
    let back = leg.chan().core(|core| core.agent_place(leg.chan().id())).or(back);
    match sent {
        Ok((true, Some(Elsewhere::Story(_)), _)) => {
            let chan = leg.keep();
            chan.core(|core| core.hand_over(chan.id()));
        }
        Ok((true, Some(Elsewhere::Dialplan(location)), _)) => {
            let _ = leg.chan().with(|c| c.goto = None);
            leg.chan().core(|core| core.agent_gone(leg.chan().id()));
            start_leg(leg, location);
        }
        Ok((true, None, _)) if back.as_ref().is_some_and(|back| leads_on(leg.chan(), back)) => {
            start_leg(leg, back.unwrap_or_default());
        }
        Ok((_, _, true)) => {
            let had_dialplan = had_dialplan && back.is_none();
            let chan = leg.keep();
            let (shard, id) = (chan.shard().clone(), chan.id());
            let leaving = async move {
                let call = Call::new(chan);
                call.after_end(had_dialplan).await;
                call.chan.shard().finish(call.chan.id(), call.end_cause());
            };
            if !shard.spawn(Some(id), leaving) {
                shard.finish(id, Cause::SWITCH_CONGESTION);
            }
        }
        Ok(_) | Err(_) => {
            let id = leg.chan().id();
            leg.chan().core(|core| {
                core.all_sounds_end(id);
                core.show_own_app(id);
            });
            leg.end(Cause::NORMAL_CLEARING);
        }
    }
}

/// Runs extension `h` of `context` on a channel that runs no dialplan (Dial's option `e`).
pub async fn run_hangup_extension(chan: &Chan, context: String) {
    let call = Call::new(chan.clone());
    if let Some(place) = call.look_special(&context, "h").await {
        call.stand_at(place);
        call.run.routines.set(1);
        call.steps(Until { frames: 0, after_end: true }).await;
    }
}

impl Call {
    /// Stands at the channel's location, or where the field falls back to: `s`, then `s` of `default`.
    async fn begin(&self) {
        let assigned = self.chan.with(|c| std::mem::take(&mut c.assigned)).unwrap_or_default();
        for (function, value) in assigned {
            if !self.assign(&function, &value) {
                let line = format!("set_var: '{function}' cannot be written");
                self.chan.log(Level::Warning, "pbx", &line);
            }
        }
        let at = self.chan.with(|c| c.location.clone()).unwrap_or_default();
        let exten = if at.exten.is_empty() { "s" } else { &at.exten };
        let mut place = Place::find(self, &at.context, exten, at.priority.max(1));
        if place.step().is_none()
            && !self.exists(&at.context, exten)
            && exten != "s"
            && self.exists(&at.context, "s")
            && !self.may_be_elsewhere(&at.context)
        {
            self.chan.log(
                Level::Verbose(2),
                "pbx",
                &format!(
                    "Starting at {},{exten},{} failed so falling back to exten 's'",
                    at.context, at.priority
                ),
            );
            place = Place::find(self, &at.context, "s", 1);
        }
        if self.chan.core(|core| core.program.context_id(&at.context).is_none())
            && self.exists("default", "s")
        {
            self.chan.log(Level::Verbose(2), "pbx", "Still failing so falling back to context 'default'");
            place = Place::find(self, "default", "s", 1);
        }
        self.stand_at(place);
    }

    /// `true` when another story has asked for the channel.
    async fn talk(&self) -> bool {
        loop {
            let left = self.steps(Until { frames: 0, after_end: false }).await;
            let next = match left {
                Left::Hangup | Left::Returned => Next::End,
                Left::Stopped(stop) => self.resume(stop).await,
                Left::Digit(digit) => self.collect(String::from(digit.to_char()), true).await,
                Left::Incomplete => self.incomplete().await,
                Left::NoStep => self.ran_out().await,
            };
            if !matches!(next, Next::Go) {
                self.settle();
                return matches!(next, Next::Leave);
            }
        }
    }

    /// Goes on after a stop that is not the end: where somebody else sent the call, or at `T`.
    async fn resume(&self, stop: Stop) -> Next {
        match stop {
            Stop::Hangup => Next::End,
            Stop::Goto => {
                let sent = self.chan.with(|c| c.goto.take_if(|to| matches!(to, Elsewhere::Dialplan(_))));
                let to = match sent {
                    Ok(Some(Elsewhere::Dialplan(to))) => to,
                    Ok(None) if self.chan.with(|c| c.goto.is_some()) == Ok(true) => return Next::Leave,
                    Ok(_) | Err(_) => return Next::Go,
                };
                let place = Place::find(self, &to.context, &to.exten, to.priority.max(1));
                if place.step().is_none() && self.is_dead_end(&to).await {
                    return Next::End;
                }
                self.stand_at(place);
                self.settle();
                Next::Go
            }
            Stop::AbsoluteTimeout => {
                let _ = self.chan.with(|c| c.absolute_deadline = None);
                self.catch("T", "ABSOLUTETIMEOUT", |_| {}).await
            }
        }
    }
    /// Whether a call that is sent to an extension that is not there ends where it stands: the context is its own and has
    /// neither `i` nor `e`.
    async fn is_dead_end(&self, to: &Location) -> bool {
        let is_near = to.context == self.context() && !self.exists(&to.context, &to.exten);
        is_near
            && !self.may_be_elsewhere(&to.context)
            && self.look_special(&to.context, "i").await.is_none()
            && self.look_special(&to.context, "e").await.is_none()
    }
    /// Goes to a special extension, else to `e` with an exception, else ends. `prepare` runs before the former.
    async fn catch(&self, special: &str, reason: &str, prepare: impl FnOnce(&Self)) -> Next {
        let context = self.context();
        if let Some(place) = self.look_special(&context, special).await {
            prepare(self);
            self.stand_at(place);
            return Next::Go;
        }
        if self.look_special(&context, "e").await.is_some() {
            self.raise(reason);
            return Next::Go;
        }
        Next::End
    }
    /// Keeps an exception and goes to `e`.
    pub(crate) fn raise(&self, reason: &str) {
        let at = self.here().location();
        self.stand_at(Place::find(self, &at.context, "e", 1));
        *self.run.exception.borrow_mut() = Some(Exception {
            reason: reason.to_owned(),
            context: at.context,
            exten: at.exten,
            priority: at.priority,
        });
    }
    /// There is no such extension: `i`, else `e`, else the end. The end as well when nobody could say whether there is.
    async fn invalid(&self, dialled: &str) -> Next {
        if self.is_unanswered() {
            return Next::End;
        }
        let here = self.here().location();
        let next = self.catch("i", "INVALID", |call| call.set("INVALID_EXTEN", dialled)).await;
        if matches!(next, Next::End) {
            let text = format!(
                "sent to invalid extension but no invalid handler: context,exten,priority={},{dialled},{}",
                here.context, here.priority
            );
            self.chan.log(Level::Warning, "pbx", &text);
        }
        next
    }
    /// No step at this place.
    async fn ran_out(&self) -> Next {
        let here = self.here();
        let at = here.location();
        if !self.exists(&at.context, &at.exten) && !here.has_rows() {
            return match self.switched(&at.context, &at.exten).await {
                Err(stop) => self.resume(stop).await,
                Ok(Some(next)) => next,
                Ok(None) => self.invalid(&at.exten).await,
            };
        }
        if self.chan.core(|core| core.program.general().autofallthrough) {
            return self.fall_through().await;
        }
        self.collect(String::new(), false).await
    }
    /// `autofallthrough`: the call ends as its last Dial did.
    async fn fall_through(&self) -> Next {
        let status = self.get("DIALSTATUS").unwrap_or_else(|| "UNKNOWN".to_owned());
        self.chan.log(Level::Verbose(3), "pbx", &format!("Auto fallthrough, status is '{status}'"));
        let (tone, cause) = match status.as_str() {
            "BUSY" => ("busy", Cause::USER_BUSY),
            "CONGESTION" | "CHANUNAVAIL" => ("congestion", Cause::NORMAL_CIRCUIT_CONGESTION),
            _ => return Next::End,
        };
        self.run.unsettled.set(true);
        self.settle();
        // What the caller is told is what the dialplan saw, not how the last leg put it.
        let _ = self.chan.with(|c| c.last_cause = cause);
        match self
            .refuse_with(tone, cause, Some(core::time::Duration::from_secs(FALLTHROUGH_TONE_SECS)))
            .await
        {
            Err(stop) => self.resume(stop).await,
            Ok(()) => Next::End,
        }
    }
    /// Refuses a caller who was not answered; one who was hears the tone, for `limit` or until he hangs up.
    pub(crate) async fn refuse_with(
        &self,
        tone: &str,
        cause: Cause,
        limit: Option<core::time::Duration>,
    ) -> Result<(), Stop> {
        let up = self.chan.state() == call::ChanState::Up;
        self.chan.with(|c| {
            // The cause of the leg that failed says more than the tone's own.
            if c.last_cause == Cause::NONE || c.last_cause == Cause::NORMAL_CLEARING {
                c.last_cause = cause;
            }
        })?;
        if !up {
            let status = if tone == "busy" { 486 } else { 503 };
            let cause = self.chan.with(|c| c.last_cause)?;
            self.chan.core(|core| core.end_refused(self.chan.id(), cause, status));
            return Ok(());
        }
        self.chan.core(|core| core.advance(self.chan.id(), Advance::Failed(cause)));
        self.chan.start_tone(tone);
        let waited = match limit {
            Some(limit) => self.chan.wait(limit).await,
            None => loop {
                if let Err(stop) = self.chan.event(None).await {
                    break Err(stop);
                }
            },
        };
        self.chan.stop_sound();
        waited
    }

    /// `h`, then the hang-up handlers, the last pushed first; `had_dialplan`: watchers hear that it is over.
    async fn after_end(&self, had_dialplan: bool) {
        let cause = self.end_cause();
        if self.chan.with(|c| c.hangup.get_or_insert(cause).0).is_err() {
            return;
        }
        let context = self.context();
        self.settle();
        let id = self.chan.id();
        self.chan.core(|core| {
            core.all_sounds_end(id);
            if had_dialplan {
                // What it ran last is seen on it once more.
                core.notice_of(id, |mut channel| {
                    if !self.run.app.get().is_empty() {
                        channel.app = self.run.app.get();
                        channel.app_data.clone_from(&self.run.data.borrow());
                    }
                    Notice::SoftHangup { channel, by: SoftHangup::DialplanOver }
                });
            }
            core.show_own_app(id);
        });
        self.freeze_record();
        self.run.ended.set(true);
        // Of a call that we end it is known when the channel goes.
        if self.hears_of_its_end()
            && is_left_untold(&self.chan)
            && self.chan.refresh_quality(true).await.is_ok()
        {
            self.note_quality();
        }
        if let Some(place) = self.look_special(&context, "h").await {
            self.stand_at(place);
            self.steps(Until { frames: 0, after_end: true }).await;
        }
        while let Some(handler) = self.chan.with(|c| c.hangup_handlers.pop()).ok().flatten() {
            self.tell_handler(HandlerChange::Run, handler.clone());
            let outcome = self.routine(&handler, true, true).await;
            if outcome.is_err() {
                self.log(Level::Debug(1), &format!("hang-up handler {handler} was cut short"));
            }
        }
        // It stands where its last step has left it, and no application runs on it any more.
        self.chan.core(|core| {
            core.cdr_over(id);
            core.tell_quality(id);
        });
        self.run.unsettled.set(true);
        self.settle();
        self.chan.core(|core| core.show_own_app(self.chan.id()));
    }
    /// Tells watchers what became of a hang-up handler.
    pub(crate) fn tell_handler(&self, change: HandlerChange, handler: String) {
        let id = self.chan.id();
        self.chan
            .core(|core| core.notice_of(id, |channel| Notice::HangupHandler { channel, change, handler }));
    }
    /// Whether any of the dialplan runs after the end of the call: `h`, or a hang-up handler.
    pub(crate) fn hears_of_its_end(&self) -> bool {
        let context = self.context();
        // A table may have one; it is asked when the call has ended.
        self.exists(&context, "h")
            || self.has_rows(&context)
            || self.chan.with(|c| !c.hangup_handlers.is_empty()) == Ok(true)
    }
    /// Nothing of what runs after the end is in the record, unless that is wanted.
    fn freeze_record(&self) {
        self.chan.core(|core| {
            if core.settings.cdr_end_before_h {
                core.cdr_over(self.chan.id());
            }
        });
    }
    fn end_cause(&self) -> Cause {
        self.chan.with(|c| c.hangup.unwrap_or(c.last_cause)).unwrap_or_default()
    }

    /// Runs a routine, `[[context,]exten,]priority[(arg1,…)]`, to its Return on this channel, then stands where it
    /// stood. `Continue` when it returned; `Hangup` when it ended the call or could not be found.
    pub fn gosub(&self, target: &str) -> CallFuture<'static, Outcome> {
        let (call, target) = (self.clone(), target.to_owned());
        Box::pin(async move {
            let after_end = call.run.ended.get();
            call.routine(&target, after_end, true).await
        })
    }
    /// The same for what may end without Return: it comes back all the same.
    pub(crate) fn excursion(&self, target: &str) -> CallFuture<'static, Outcome> {
        let (call, target) = (self.clone(), target.to_owned());
        Box::pin(async move {
            let after_end = call.run.ended.get();
            call.routine(&target, after_end, false).await
        })
    }
    /// Runs a macro; a name that there is not is logged, and the call goes on without it.
    pub(crate) fn run_macro(&self, name: &str, arguments: &str) -> CallFuture<'static, Outcome> {
        let place = format!("macro-{},s,1", name.trim());
        match crate::dial::routine(self, &format!("{place}({arguments})")) {
            Some(target) => self.excursion(&target),
            None => Box::pin(async { Ok(Flow::Continue) }),
        }
    }
    async fn routine(&self, target: &str, after_end: bool, returns: bool) -> Outcome {
        let (place, args, _) = dialplan::args::split_app(target);
        let args = if args.is_empty() { Vec::new() } else { dialplan::split_args(args) };
        let there = match self.place_of(place) {
            Ok(there) => Ok(self.fill(there, after_end).await?),
            Err(why) => Err(why),
        };
        let there = match there {
            Ok(there) if there.step().is_some() => there,
            Ok(_) => {
                self.log(Level::Error, &format!("there is no routine at '{place}'"));
                return Ok(Flow::Hangup);
            }
            Err(why) => {
                self.log(Level::Error, &format!("routine '{place}': {why}"));
                return Ok(Flow::Hangup);
            }
        };
        self.settle_unless_over();
        let before = self.run.place.borrow().clone();
        let (app, data) = (self.run.app.get(), self.run.data.borrow().clone());
        let frames = self.run.stack.borrow().len();
        let kind = match there.context() {
            context if !returns && context.starts_with("macro-") => FrameKind::Macro(context.into()),
            _ => FrameKind::Routine,
        };
        if !self.open_frame(None, kind, &args) {
            return Ok(Flow::Hangup);
        }
        self.run.routines.set(self.run.routines.get() + 1);
        let shown = self.chan.with(|c| (c.location.clone(), c.app, c.app_data.clone())).unwrap_or_default();
        self.stand_at(there);
        let until = Until { frames: frames + 1, after_end };
        let left = Box::pin(self.steps(until)).await;
        while self.run.stack.borrow().len() > frames {
            self.close_frame();
        }
        self.settle_unless_over();
        self.run.routines.set(self.run.routines.get() - 1);
        let runs_dialplan = before.is_some();
        *self.run.place.borrow_mut() = before;
        self.enter_app(app, &data);
        if runs_dialplan {
            self.settle_unless_over();
        } else {
            self.run.unsettled.set(false);
            self.chan.core(|core| {
                core.keep_shown(self.chan.id());
                let Some(channel) = core.get_mut(self.chan.id()) else { return };
                (channel.location, channel.app, channel.app_data) = shown;
            });
        }
        match left {
            Left::Returned => Ok(Flow::Continue),
            Left::Stopped(stop) => Err(stop),
            Left::Hangup => Ok(Flow::Hangup),
            Left::NoStep | Left::Digit(_) | Left::Incomplete => {
                if returns {
                    self.log(Level::Warning, &format!("routine '{target}' ended without Return"));
                }
                Ok(Flow::Continue)
            }
        }
    }
}
