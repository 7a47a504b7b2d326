//! A caller waits: the machine's orders are carried out, and what happens is told to it.

use core::time::Duration;
use std::rc::Rc;

use ::queue::{Exit, Handling, Input, Offer, Order, Refusal};
use base::{Cause, ChannelId, Digit, Instant};
use call::{Chan, ChanEvent, Leg, Level, Location, Stop};

use super::voice::{Background, Voice};
use super::{Asked, talk};
use crate::dial::{legs, notice_end, notice_state, status_of, write_time};
use crate::pbx::Place;
use crate::{Call, Flow, Outcome};

/// How waiting ended.
pub(super) enum Out {
    /// They talked; this is what comes of it.
    Ended(Outcome),
    /// The caller's story must stop.
    Stopped(Stop),
    /// The queue let it go.
    Left(Exit),
    /// It dialled itself out.
    Key(Place),
    /// It pressed the key that hangs up.
    HungUp,
}

/// A member's phone that is being called.
pub(super) struct Ringing {
    pub(super) interface: Rc<str>,
    pub(super) name: Rc<str>,
    pub(super) leg: Leg,
}

/// Times that one attempt may be forwarded; ends loops of phones that forward to each other.
const FORWARDS_MAX: u32 = 16;
/// Longest number that leads out of a queue.
const EXIT_DIGITS_MAX: usize = 32;

pub(super) struct Waiting<'a> {
    pub(super) call: &'a Call,
    pub(super) asked: &'a Asked,
    pub(super) handling: Handling,
    pub(super) voice: Voice,
    legs: Vec<Ringing>,
    digits: String,
    forwards: u32,
    /// When the caller has joined.
    joined: Instant,
    /// Where the caller was when it last waited.
    place: Option<usize>,
}

/// What watchers see on a member's leg.
pub(super) const APP_QUEUE: &str = "AppQueue";

impl<'a> Waiting<'a> {
    pub(super) fn new(call: &'a Call, asked: &'a Asked) -> Self {
        let handling =
            call.chan.core(|core| core.queues.get(&asked.queue).map(|q| q.settings.handling.clone()));
        let handling = handling.unwrap_or_default();
        let class = asked.options.music.clone().unwrap_or_else(|| handling.music_class.clone());
        let background = match () {
            () if asked.rings_first.is_some() => Background::Silence,
            () if asked.options.ring => Background::Ringing,
            () => Background::Music(class),
        };
        let voice = Voice::new(&call.chan, background);
        let joined = call.chan.now();
        Self {
            call,
            asked,
            handling,
            voice,
            legs: Vec::new(),
            digits: String::new(),
            forwards: 0,
            joined,
            place: None,
        }
    }
    /// How it ended, and whether the variables of the queue are to be set once more.
    pub(super) async fn run(mut self) -> (Out, bool) {
        let out = match self.wait().await {
            Ok(out) => out,
            Err(stop) => {
                self.voice.hush();
                self.let_be(self.cancel_cause(), "CANCEL");
                self.abandons();
                self.leaves(Exit::Abandoned);
                Out::Stopped(stop)
            }
        };
        (out, self.handling.set_queue_var)
    }
    /// The caller goes without having talked to anybody.
    fn abandons(&self) {
        self.write_unanswered();
        self.call.set("ABANDONED", "TRUE");
        if self.handling.set_queue_var {
            super::set_queue_variables(self.call, &self.asked.queue);
        }
    }
    /// Tells the queue that the caller goes by itself.
    fn leaves(&self, exit: Exit) {
        let position = self.position();
        self.tell(Input::Left(exit));
        self.write_position(position);
    }
    /// Where the caller is in the queue.
    pub(super) fn position(&self) -> Option<usize> {
        let id = self.call.chan.id();
        self.call.chan.core(|core| {
            let (queue, _) = core.queues.caller(id)?;
            queue.callers().iter().position(|caller| caller.channel == id).map(|place| place + 1)
        })
    }
    pub(super) fn write_position(&self, position: Option<usize>) {
        if let Some(position) = position {
            self.call.set("QUEUEPOSITION", &position.to_string());
        }
    }
    /// How long the caller has waited, in whole seconds as the queue counts.
    pub(super) fn write_wait(&self) {
        let waited = self.call.chan.now().since(self.joined).as_secs();
        write_time(self.call, "QUEUEWAIT", Some(Duration::from_secs(waited)));
    }
    /// How long it was called for, until now, and how long it talked.
    pub(super) fn write_talk(&self, talked: Duration) {
        write_time(self.call, "ANSWEREDTIME", Some(talked));
        write_time(self.call, "DIALEDTIME", Some(self.call.chan.now().since(self.joined)));
    }
    fn write_unanswered(&self) {
        self.write_wait();
        write_time(self.call, "DIALEDTIME", Some(self.call.chan.now().since(self.joined)));
        write_time(self.call, "ANSWEREDTIME", Some(Duration::ZERO));
    }
    async fn wait(&mut self) -> Result<Out, Stop> {
        let caller = self.call.chan.clone();
        self.voice.start().await?;
        loop {
            while let Some(order) = caller.core(|core| core.queue_order(caller.id())) {
                if let Some(exit) = self.obey(order).await? {
                    return Ok(Out::Left(exit));
                }
            }
            self.place = self.position();
            let mut ids = vec![caller.id()];
            ids.extend(self.legs.iter().map(|ringing| ringing.leg.chan().id()));
            let Some((id, heard)) = Chan::any(caller.shard(), &ids, None).await else { continue };
            let out = match heard {
                Err(stop) if id == caller.id() => return Err(stop),
                Ok(event) if id == caller.id() => self.caller_event(event).await?,
                heard => self.leg_event(id, heard).await?,
            };
            if let Some(out) = out {
                return Ok(out);
            }
        }
    }
    pub(super) fn tell(&self, input: Input) -> bool {
        let id = self.call.chan.id();
        self.call.chan.core(|core| core.with_queues(|queues, now, out| queues.input(id, input, now, out)))
    }

    async fn obey(&mut self, order: Order) -> Result<Option<Exit>, Stop> {
        match order {
            Order::Ring(offers) => {
                for offer in offers {
                    self.ring(&offer).await?;
                }
                self.show_one().await;
            }
            Order::LetBe => {
                self.let_be(self.cancel_cause(), "NOANSWER");
                self.background().await?;
            }
            // Nobody listens yet.
            Order::Say(_) if self.asked.rings_first.is_some() => _ = self.tell(Input::Heard),
            Order::Say(said) => {
                if !self.voice.say(&said).await? {
                    self.tell(Input::Heard);
                }
            }
            Order::Bounds(bounds) => {
                let text = |bound: Option<u32>| bound.map(|bound| bound.to_string()).unwrap_or_default();
                self.call.set("QUEUE_MAX_PENALTY", &text(bounds.max));
                self.call.set("QUEUE_MIN_PENALTY", &text(bounds.min));
                self.call.set("QUEUE_RAISE_PENALTY", &text(bounds.raise));
            }
            Order::Skills(skills) => self.call.set("QUEUE_SKILLS", &skills.to_string()),
            Order::Leave(exit) => {
                self.let_be(self.cancel_cause(), "CANCEL");
                self.abandons();
                self.write_position(self.place);
                return Ok(Some(exit));
            }
        }
        Ok(None)
    }
    fn cancel_cause(&self) -> Cause {
        if self.asked.options.answered_elsewhere { Cause::ANSWERED_ELSEWHERE } else { Cause::NONE }
    }
    /// What is heard when nothing is said, as long as no phone rings or as none has to.
    async fn background(&mut self) -> Result<(), Stop> {
        let hears = self.asked.rings_first.is_none();
        if hears && self.asked.options.ring_when_ringing && !self.asked.options.ring {
            let class = self.asked.options.music.clone().unwrap_or_else(|| self.handling.music_class.clone());
            self.voice.change(Background::Music(class)).await?;
        }
        Ok(())
    }

    /// Calls one member.
    async fn ring(&mut self, offer: &Offer) -> Result<(), Stop> {
        let call = self.call;
        let leg = match self.request(&offer.interface).await? {
            Ok(leg) => leg,
            Err(_) => {
                self.refuse(&offer.interface, Refusal::NoChannel);
                return Ok(());
            }
        };
        let routine = self.asked.options.callee_routine.as_deref();
        if let Some(routine) = routine.and_then(|place| crate::dial::routine(call, place)) {
            let callee = Call::new(leg.chan().clone());
            if call.chan.while_up(callee.gosub(&routine)).await? != Ok(Flow::Continue) {
                self.refuse(&offer.interface, Refusal::NoChannel);
                return Ok(());
            }
        }
        self.begin(offer.interface.clone(), offer.name.clone(), &offer.interface, leg);
        Ok(())
    }
    /// A channel for a phone, of which a database may have to tell first.
    async fn request(&self, target: &str) -> Result<Result<Leg, Cause>, Stop> {
        let caller = &self.call.chan;
        if let Some((tech, resource)) = target.split_once('/') {
            caller.while_up(caller.shard().look_up(tech, resource)).await?;
        }
        let party = caller.with(|c| c.caller.clone())?;
        legs::request_leg(self.call, target, party, None, APP_QUEUE)
    }
    fn begin(&mut self, interface: Rc<str>, name: Rc<str>, target: &str, leg: Leg) {
        let channel = leg.chan().id();
        if !self.tell(Input::Calling { interface: interface.clone(), channel }) {
            // The queue has decided otherwise meanwhile.
            return leg.end(Cause::NONE);
        }
        match legs::begin_as(self.call, &leg, target, target) {
            Ok(()) => self.legs.push(Ringing { interface, name, leg }),
            Err(cause) => {
                leg.end(cause);
                self.refuse(&interface, refusal_of(cause));
            }
        }
    }
    fn refuse(&self, interface: &Rc<str>, refusal: Refusal) {
        self.tell(Input::Refused { interface: interface.clone(), refusal });
    }
    fn end_leg(&self, leg: Leg, cause: Cause) {
        notice_end(&self.call.chan, &leg, "CANCEL", None);
        leg.end(cause);
    }
    /// Lets all phones be that ring: how it came out, and that they are called no more.
    pub(super) fn let_be(&mut self, cause: Cause, status: &'static str) {
        self.forwards = 0;
        self.tell_legs(status);
        for ringing in std::mem::take(&mut self.legs) {
            self.end_leg(ringing.leg, cause);
        }
    }
    fn tell_legs(&self, status: &'static str) {
        for ringing in &self.legs {
            notice_end(&self.call.chan, &ringing.leg, status, None);
        }
    }
    /// The caller's side learns who rings when only one does, unless it is not to.
    async fn show_one(&self) {
        if let ([ringing], false) = (self.legs.as_slice(), self.asked.options.ignore_parties) {
            let party = ringing.leg.chan().with(|c| c.caller.clone()).unwrap_or_default();
            self.call.chan.connect_line(party).await;
        }
    }

    async fn caller_event(&mut self, event: ChanEvent) -> Result<Option<Out>, Stop> {
        match event {
            ChanEvent::Played { play, .. } => {
                let is_over = self.voice.played(play).await?;
                if is_over {
                    self.tell(Input::Heard);
                }
            }
            ChanEvent::Digit { digit, .. } => return Ok(self.pressed(digit)),
            _ => {}
        }
        Ok(None)
    }
    /// A digit that leads out of the queue, or may become part of a number that does.
    fn pressed(&mut self, digit: Digit) -> Option<Out> {
        if self.asked.options.caller_rights.disconnect && digit.to_char() == '*' && !self.legs.is_empty() {
            self.let_be(self.cancel_cause(), "CANCEL");
            self.abandons();
            self.leaves(Exit::Abandoned);
            return Some(Out::HungUp);
        }
        let context = self.handling.context.clone();
        if context.is_empty() {
            return None;
        }
        if self.digits.len() >= EXIT_DIGITS_MAX {
            self.digits.clear();
        }
        self.digits.push(digit.to_char());
        if self.call.exists(&context, &self.digits) {
            let exten = std::mem::take(&mut self.digits);
            let to = Location { context: context.clone(), exten: exten.clone(), priority: 0 };
            // The phones see it there already.
            let from = self.call.chan.with(|c| std::mem::replace(&mut c.location, to.clone()));
            self.let_be(self.cancel_cause(), "CANCEL");
            let _ = self.call.chan.with(|c| c.location = from.unwrap_or_else(|_| to.clone()));
            self.write_unanswered();
            let _ = self.call.chan.with(|c| c.location = to);
            let (application, data) = ("Queue", self.call.run.data.borrow().clone());
            self.call.chan.core(|core| {
                core.notice_of(self.call.chan.id(), |channel| call::Notice::NewExten {
                    channel,
                    application,
                    data,
                });
            });
            self.voice.hush();
            self.leaves(Exit::Key(exten.clone()));
            return Some(Out::Key(Place::find(self.call, &context, &exten, 1)));
        }
        if !self.call.can_match(&context, &self.digits) {
            self.digits.clear();
        }
        None
    }

    async fn leg_event(
        &mut self,
        id: ChannelId,
        heard: Result<ChanEvent, Stop>,
    ) -> Result<Option<Out>, Stop> {
        let Some(at) = self.legs.iter().position(|ringing| ringing.leg.chan().id() == id) else {
            return Ok(None);
        };
        match heard {
            Err(Stop::Goto) => {
                let _ = Chan::new(self.call.chan.shard().clone(), id).with(|c| c.goto = None);
                self.call.log(Level::Warning, "a phone that still rings cannot be redirected");
            }
            Err(Stop::Hangup | Stop::AbsoluteTimeout) => {
                let Ringing { interface, leg, .. } = self.legs.remove(at);
                let cause = leg.chan().with(|c| c.hangup).ok().flatten().unwrap_or(Cause::NORMAL_CLEARING);
                notice_end(&self.call.chan, &leg, status_of(cause), None);
                self.call.note_leg(leg.chan());
                leg.end(cause);
                if self.legs.is_empty() {
                    self.background().await?;
                }
                self.refuse(&interface, refusal_of(cause));
            }
            Ok(ChanEvent::Answered) => return self.answered(at).await,
            Ok(ChanEvent::Forwarded(target)) => self.forward(at, &target).await?,
            Ok(ChanEvent::Ringing) => {
                notice_state(&self.call.chan, id, "RINGING");
                if self.asked.options.ring_when_ringing {
                    self.voice.change(Background::Ringing).await?;
                }
            }
            Ok(ChanEvent::Progress) => notice_state(&self.call.chan, id, "PROGRESS"),
            Ok(ChanEvent::Proceeding) => notice_state(&self.call.chan, id, "PROCEEDING"),
            Ok(_) => {}
        }
        Ok(None)
    }
    /// The phone sends the call elsewhere: another takes its place for the same member.
    async fn forward(&mut self, at: usize, target: &str) -> Result<(), Stop> {
        let Ringing { interface, name, leg } = self.legs.remove(at);
        notice_end(&self.call.chan, &leg, "CANCEL", Some(target));
        leg.end(Cause::NORMAL_CLEARING);
        self.forwards += 1;
        if self.asked.options.ignore_forwards || self.forwards > FORWARDS_MAX {
            self.refuse(&interface, Refusal::Declined);
            return Ok(());
        }
        match self.request(target).await? {
            Ok(leg) => self.begin(interface, name, target, leg),
            Err(_) => self.refuse(&interface, Refusal::Unavailable),
        }
        Ok(())
    }
    async fn answered(&mut self, at: usize) -> Result<Option<Out>, Stop> {
        let ringing = self.legs.remove(at);
        if !self.tell(Input::Answered { interface: ringing.interface.clone() }) {
            self.end_leg(ringing.leg, Cause::NONE);
            return Ok(None);
        }
        notice_end(&self.call.chan, &ringing.leg, "ANSWER", None);
        if !self.legs.is_empty() {
            self.tell_legs("CANCEL");
            if !self.asked.options.ignore_parties {
                let party = ringing.leg.chan().with(|c| c.caller.clone()).unwrap_or_default();
                self.call.chan.connect_line(party).await;
            }
            for other in std::mem::take(&mut self.legs) {
                self.end_leg(other.leg, Cause::ANSWERED_ELSEWHERE);
            }
        }
        self.voice.only_background().await?;
        self.background().await?;
        talk::converse(self, ringing).await
    }
}

fn refusal_of(cause: Cause) -> Refusal {
    match status_of(cause) {
        "BUSY" => Refusal::Busy,
        "CONGESTION" | "CHANUNAVAIL" => Refusal::Unavailable,
        _ => Refusal::Declined,
    }
}
