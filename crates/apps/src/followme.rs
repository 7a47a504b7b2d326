//! FollowMe: calls the numbers of a profile in turn until somebody takes the call.
//!
//! The caller's story owns all legs. Each that answers hears who calls and which keys there are; the first who presses the
//! one that takes the call is bridged, and all others are hung up.

use core::time::Duration;
use std::collections::VecDeque;

use base::{Cause, ChannelId, Instant, PlayId};
use call::features::Rights;
use call::followme::{Profile, Step};
use call::{BridgeLimits, Chan, ChanEvent, ChanState, Indication, Leg, Level, Prompt, Stop};
use dialplan::Options;

use crate::call_ctx::args;
use crate::dial::{DialOptions, after, legs, notice_end, routine, status_of};
use crate::flow::rows;
use crate::own_name::Name;
use crate::{AppRow, Call, Flow, Outcome, Run, features};

/// Longest name that a caller says.
const NAME_LENGTH: Duration = Duration::from_secs(5);
/// How often one number may send the call on.
const FORWARDS_MAX: u32 = 16;
/// Option letters.
pub(crate) const OPTIONS: &str = "abBdIlNns";

pub(crate) const ROWS: &[AppRow] = rows! {
    "FollowMe" "app_followme" Run::Story(|call, text| Box::pin(async move { follow_me(&call, &text).await })),
        "Calls the numbers of a profile in turn until somebody takes the call.", "FollowMe(followmeid[,options])",
        "Answers, tells the caller to hold, and plays music while it calls the numbers of the profile in followme.conf, line\n\
         by line. Who answers hears that there is a call, presses takecall (1) to have it, or declinecall (2) to let the next\n\
         numbers be called. Who talks then may transfer and record the call by keys, and the caller may record it.\n\n\
         options:\n  \
         a  the caller says a name, which who answers hears.\n  \
         b(ctx^ext^prio(args))  Gosub on each channel before it is called.\n  \
         B(ctx^ext^prio(args))  Gosub on the caller before.\n  \
         d  does not tell the caller to hold.\n  \
         I  the caller is not shown who answers, nor the other way round.\n  \
         l  Local channels of the numbers stay in the call (/n).\n  \
         N  a caller who is not answered stays so until somebody takes the call; a and s have no effect then, and d has.\n  \
         n  tells the caller when nobody was found.\n  \
         s  tells the caller first that the party is not at its desk.\n\n\
         The dialplan goes on when there is no such profile, when nobody takes the call, and when who talked to the caller\n\
         hangs up. Sets ANSWEREDTIME, ANSWEREDTIME_MS, DIALEDTIME and DIALEDTIME_MS, which are empty when nobody did.\n\
         docs/followme.md has a configuration.";
};

/// Variables that tell of the conversation.
const RESULTS: [&str; 4] = ["ANSWEREDTIME", "ANSWEREDTIME_MS", "DIALEDTIME", "DIALEDTIME_MS"];

async fn follow_me(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let (name, options) = (args::nth(&parts, 0), Options::parse(args::nth(&parts, 1), OPTIONS));
    for letter in &options.unknown {
        call.log(Level::Warning, &format!("option {letter}: there is none"));
    }
    for variable in RESULTS {
        call.set(variable, "");
    }
    if name.is_empty() {
        call.log(Level::Warning, "FollowMe requires an argument (followmeid)");
        return Ok(Flow::Hangup);
    }
    let Some(profile) = call.chan.core(|core| core.settings.follow_me.get(name).cloned()) else {
        call.log(Level::Warning, &format!("followme.conf has no profile '{name}'"));
        return Ok(Flow::Continue);
    };
    if let Some(place) = place_of(&options, 'B').and_then(|place| routine(call, &place))
        && call.gosub(&place).await? == Flow::Hangup
    {
        return Ok(Flow::Hangup);
    }
    let mut search = Search { call, profile: &profile, options, name: None, legs: Vec::new() };
    let meanwhile = search.begin().await?;
    let began = call.chan.now();
    let mut found = None;
    for step in &profile.steps {
        found = search.step(step).await?;
        if found.is_some() {
            break;
        }
    }
    drop(meanwhile);
    match found {
        Some(leg) => search.connect(leg, began).await,
        None => search.give_up().await,
    }
}

/// The place that an option names, as Gosub writes it.
fn place_of(options: &Options, letter: char) -> Option<String> {
    options.arg(letter).filter(|_| options.has(letter)).map(|place| place.replace('^', ","))
}

/// What the caller hears while it waits; over when dropped.
struct Meanwhile<'a>(Option<&'a Chan>);

impl Drop for Meanwhile<'_> {
    fn drop(&mut self) {
        if let Some(chan) = self.0 {
            chan.stop_music();
        }
    }
}

/// What somebody who is called does.
enum Stage {
    Rings,
    /// It hears this, and then what is left.
    Hears(PlayId, VecDeque<Prompt>),
    /// It has heard all and may still press a key.
    Decides(Instant),
}

struct Called {
    leg: Leg,
    target: String,
    stage: Stage,
    forwards: u32,
}

struct Search<'a> {
    call: &'a Call,
    profile: &'a Profile,
    options: Options,
    /// What the caller said.
    name: Option<Name>,
    legs: Vec<Called>,
}

impl<'a> Search<'a> {
    /// What comes before the first number is called.
    async fn begin(&mut self) -> Result<Meanwhile<'a>, Stop> {
        let (call, profile) = (self.call, self.profile);
        let (chan, prompts) = (&call.chan, &profile.prompts);
        if self.options.has('N') && chan.state() != ChanState::Up {
            chan.indicate(&Indication::Ringing);
            return Ok(Meanwhile(None));
        }
        call.answer_for_sound().await?;
        if self.options.has('s') {
            self.tell(&prompts.status).await?;
        }
        if self.options.has('a') && profile.asks {
            let name = Name::below(chan, "followme");
            self.tell("vm-rec-name").await?;
            self.name = name.record(call, NAME_LENGTH).await?.then_some(name);
        }
        if !self.options.has('d') {
            self.tell(&prompts.hold).await?;
        }
        let plays = chan.start_music(&profile.music).await?;
        Ok(Meanwhile(plays.then_some(chan)))
    }
    /// Lets the caller hear a prompt.
    async fn tell(&self, prompt: &str) -> Result<(), Stop> {
        if !prompt.is_empty() {
            self.call.chan.play(prompt, "").await?;
        }
        Ok(())
    }

    /// Calls the numbers of a line; who has taken the call, if anybody.
    async fn step(&mut self, step: &Step) -> Result<Option<Leg>, Stop> {
        let caller = &self.call.chan;
        let stays = if self.options.has('l') { "/n" } else { "" };
        for number in &step.numbers {
            self.ring(format!("Local/{number}@{}{stays}", self.profile.context), 0).await?;
        }
        let deadline = caller.now() + step.timeout;
        while !self.legs.is_empty() {
            let mut ids = vec![caller.id()];
            ids.extend(self.legs.iter().map(|called| called.leg.chan().id()));
            let until = self.legs.iter().filter_map(|called| match called.stage {
                Stage::Rings => Some(deadline),
                Stage::Hears(..) => None,
                Stage::Decides(until) => Some(until),
            });
            match Chan::any(caller.shard(), &ids, until.min()).await {
                None => self.give_up_on_late(deadline),
                Some((id, heard)) if id == caller.id() => drop(heard?),
                Some((id, heard)) => {
                    if let Some(winner) = self.leg_event(id, heard).await? {
                        self.end_all("CANCEL", Cause::ANSWERED_ELSEWHERE);
                        return Ok(Some(winner));
                    }
                }
            }
        }
        Ok(None)
    }
    /// Calls one number; one that cannot be called is logged and left out.
    async fn ring(&mut self, target: String, forwards: u32) -> Result<(), Stop> {
        let caller = &self.call.chan;
        if let Some((tech, resource)) = target.split_once('/') {
            caller.while_up(caller.shard().look_up(tech, resource)).await?;
        }
        let own = caller.with(|c| c.caller.clone())?;
        let Ok(leg) = legs::request_leg(self.call, &target, own, None, legs::APP_DIAL)? else {
            return Ok(());
        };
        if let Some(place) = place_of(&self.options, 'b').and_then(|place| routine(self.call, &place)) {
            let callee = Call::new(leg.chan().clone());
            if caller.while_up(callee.gosub(&place)).await? != Ok(Flow::Continue) {
                return Ok(());
            }
        }
        match legs::begin(self.call, &leg, &target) {
            Ok(()) => self.legs.push(Called { leg, target, stage: Stage::Rings, forwards }),
            Err(cause) => leg.end(cause),
        }
        Ok(())
    }
    /// Who rings too long rings no more, and who presses no key has declined.
    fn give_up_on_late(&mut self, deadline: Instant) {
        let now = self.call.chan.now();
        let is_late = |called: &Called| match called.stage {
            Stage::Rings => deadline <= now,
            Stage::Hears(..) => false,
            Stage::Decides(until) => until <= now,
        };
        let (late, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.legs).into_iter().partition(is_late);
        self.legs = rest;
        for called in late {
            self.end(called, "NOANSWER", Cause::NONE);
        }
    }
    fn end(&self, called: Called, status: &'static str, cause: Cause) {
        if matches!(called.stage, Stage::Rings) {
            notice_end(&self.call.chan, &called.leg, status, None);
        }
        called.leg.end(cause);
    }
    fn end_all(&mut self, status: &'static str, cause: Cause) {
        for called in std::mem::take(&mut self.legs) {
            self.end(called, status, cause);
        }
    }

    async fn leg_event(
        &mut self,
        id: ChannelId,
        heard: Result<ChanEvent, Stop>,
    ) -> Result<Option<Leg>, Stop> {
        let Some(at) = self.legs.iter().position(|called| called.leg.chan().id() == id) else {
            return Ok(None);
        };
        let Some(called) = self.legs.get_mut(at) else { return Ok(None) };
        match (heard, &mut called.stage) {
            (Err(_), _) => {
                let called = self.legs.remove(at);
                let cause =
                    called.leg.chan().with(|c| c.hangup).ok().flatten().unwrap_or(Cause::NORMAL_CLEARING);
                self.call.note_leg(called.leg.chan());
                self.end(called, status_of(cause), cause);
            }
            (Ok(ChanEvent::Forwarded(to)), Stage::Rings) => {
                let called = self.legs.remove(at);
                notice_end(&self.call.chan, &called.leg, "CANCEL", Some(&to));
                called.leg.end(Cause::NORMAL_CLEARING);
                if called.forwards < FORWARDS_MAX {
                    self.ring(to, called.forwards + 1).await?;
                }
            }
            (Ok(ChanEvent::Answered), Stage::Rings) => {
                notice_end(&self.call.chan, &called.leg, "ANSWER", None);
                self.call.log(Level::Verbose(3), &format!("{} answered", called.target));
                if !self.profile.asks {
                    return Ok(Some(self.legs.remove(at).leg));
                }
                let chan = called.leg.chan().clone();
                let clips = self.question(&chan).await?;
                self.go_on(at, clips);
            }
            (Ok(ChanEvent::Played { play, .. }), Stage::Hears(own, rest)) if play == *own => {
                let rest = std::mem::take(rest);
                self.go_on(at, rest);
            }
            (Ok(ChanEvent::Digit { digit, .. }), Stage::Hears(..) | Stage::Decides(_)) => {
                let key = digit.to_char();
                if key == self.profile.take {
                    let leg = self.legs.remove(at).leg;
                    leg.chan().stop_sound();
                    return Ok(Some(leg));
                }
                if key == self.profile.decline {
                    self.call.log(Level::Verbose(3), &format!("{} declined the call", called.target));
                    let called = self.legs.remove(at);
                    called.leg.end(Cause::NORMAL_CLEARING);
                }
            }
            (Ok(_), _) => {}
        }
        Ok(None)
    }
    /// What who answers hears: who calls, and which keys there are. What is not there is logged and left out.
    async fn question(&self, chan: &Chan) -> Result<VecDeque<Prompt>, Stop> {
        let prompts = &self.profile.prompts;
        let who: &[&str] = match &self.name {
            Some(name) => &[&prompts.call_from, name.path()],
            None => &[&prompts.no_recording],
        };
        let mut clips = VecDeque::new();
        for file in who.iter().copied().chain([prompts.options.as_str()]).filter(|file| !file.is_empty()) {
            // Who is gone by now is told of later.
            clips.extend(self.call.chan.while_up(chan.clip(file)).await?.ok().flatten());
        }
        Ok(clips)
    }
    /// Lets who has answered hear what is next, or waits for its key.
    fn go_on(&mut self, at: usize, mut clips: VecDeque<Prompt>) {
        let until = self.call.chan.now() + self.profile.key_timeout;
        let Some(called) = self.legs.get_mut(at) else { return };
        called.stage = match clips.pop_front() {
            Some(clip) => Stage::Hears(called.leg.chan().start_clip(clip, 0), clips),
            None => Stage::Decides(until),
        };
    }

    /// The two talk.
    async fn connect(&mut self, leg: Leg, began: Instant) -> Outcome {
        let (call, caller) = (self.call, &self.call.chan);
        let connecting = &self.profile.prompts.connecting;
        if !connecting.is_empty() && caller.while_up(leg.chan().play(connecting, "")).await?.is_err() {
            call.note_leg(leg.chan());
            return Ok(Flow::Continue);
        }
        after::note_peer(call, leg.chan())?;
        call.set_cause(Cause::NORMAL_CLEARING);
        let _ = leg.chan().with(|c| c.last_cause = Cause::NORMAL_CLEARING);
        caller.suit(leg.chan().id());
        caller.answer()?;
        if !self.options.has('I') {
            let (own, other) = (
                caller.with(|c| c.caller.clone())?,
                leg.chan().with(|c| c.caller.clone()).unwrap_or_default(),
            );
            leg.chan().connect_line(own).await;
            caller.connect_line(other).await;
        }
        let of_caller = Rights { monitor: true, ..Rights::default() };
        let of_callee = Rights { transfer: true, ..of_caller };
        let parties = [(caller, Some(of_caller)), (leg.chan(), Some(of_callee))];
        let since = caller.now();
        let end = features::converse(parties, BridgeLimits::default()).await;
        let (talked, whole) = (caller.now().since(since), caller.now().since(began));
        for (variable, value) in RESULTS.into_iter().zip([
            u128::from(talked.as_secs()),
            talked.as_millis(),
            u128::from(whole.as_secs()),
            whole.as_millis(),
        ]) {
            call.set(variable, &value.to_string());
        }
        after::after_talk(call, &DialOptions { go_on: true, ..DialOptions::default() }, leg, end).await
    }
    /// Nobody was found.
    async fn give_up(&self) -> Outcome {
        if self.options.has('n') && !self.profile.prompts.sorry.is_empty() {
            self.call.answer_for_sound().await?;
            self.tell(&self.profile.prompts.sorry).await?;
        }
        Ok(Flow::Continue)
    }
}

impl Drop for Search<'_> {
    /// Whoever still rings hears that the caller is gone.
    fn drop(&mut self) {
        if !self.legs.is_empty() {
            self.end_all("CANCEL", legs::parting_cause(self.call, Cause::NONE));
        }
    }
}
