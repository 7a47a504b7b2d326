//! The legs of a Dial while they ring, and what the caller hears meanwhile.

use core::time::Duration;

use base::{Cause, ChannelId, Command, Instant};
use call::{Chan, ChanEvent, Indication, Leg, Level, Notice, PartyId, Request, Stop};

use super::{DialOptions, Status, notice_end, ring_back, stopped};
use crate::Call;

/// How ringing ended.
pub(crate) enum Called {
    Answered(Leg),
    Refused(Status),
    CallerStopped(Stop),
    CallerHungUpWithKey,
}

/// Times for the result variables.
pub(crate) struct Times {
    pub(crate) dialed: Duration,
    pub(crate) ringing: Option<Duration>,
    pub(crate) progress: Option<Duration>,
}

struct Entry {
    leg: Leg,
    target: String,
}

/// Everything that rings.
pub(crate) struct Ringing<'a> {
    call: &'a Call,
    options: &'a DialOptions,
    legs: Vec<Entry>,
    started: Instant,
    ringing_at: Option<Instant>,
    progress_at: Option<Instant>,
    refusals: Vec<Cause>,
    early_audio: bool,
    /// What was dialled to reach the leg that answered: `6001` of `PJSIP/6001`.
    pub(crate) answered_number: String,
}

impl<'a> Ringing<'a> {
    pub(crate) fn new(call: &'a Call, options: &'a DialOptions) -> Self {
        Self {
            call,
            options,
            legs: Vec::new(),
            started: call.chan.now(),
            ringing_at: None,
            progress_at: None,
            refusals: Vec::new(),
            early_audio: false,
            answered_number: String::new(),
        }
    }

    /// Makes the channel for one destination and prepares it; a refusal is counted, not an error.
    pub(crate) async fn request(&mut self, target: &str) -> Result<(), Stop> {
        let caller = &self.call.chan;
        let Some((tech, resource)) = target.split_once('/') else {
            self.call.log(
                Level::Warning,
                &format!("Dial argument takes format (technology/resource), not '{target}'"),
            );
            self.refusals.push(Cause::CHAN_NOT_IMPLEMENTED);
            return Ok(());
        };
        let (formats, presented) = caller.with(|c| (c.formats, c.caller.clone()))?;
        let presented = self.presented(presented);
        let request = Request {
            resource: resource.to_owned(),
            requestor: Some(caller.id()),
            caller: Some(presented.clone()),
            formats,
            variables: Vec::new(),
        };
        match caller.shard().request(tech, &request) {
            Ok(id) => {
                let leg = Leg::new(caller.shard().clone(), id);
                hand_down(caller, &leg, presented)?;
                if let Some(routine) = &self.options.callee_routine {
                    let callee = Call::new(leg.chan().clone());
                    let outcome = caller.while_up(callee.gosub(routine)).await?;
                    if outcome.is_err() {
                        self.refusals.push(Cause::NORMAL_CLEARING);
                        return Ok(());
                    }
                }
                self.legs.push(Entry { leg, target: target.to_owned() });
            }
            Err(cause) => {
                let text = cause.text();
                let line = format!("Unable to create channel for '{target}': cause {} - {text}", cause.0);
                self.call.log(Level::Notice, &line);
                self.note_refusal(cause);
            }
        }
        Ok(())
    }
    /// The caller id that legs show: the caller's, or what options `f` and `o` say.
    fn presented(&self, own: PartyId) -> PartyId {
        match (&self.options.force_caller_id, &self.options.original_caller_id) {
            (Some(text), _) if !text.is_empty() => PartyId::parse(text),
            (Some(_), _) => {
                let here = self.call.chan.with(|c| c.location.exten.clone()).unwrap_or_default();
                PartyId { number: Some(here), ..PartyId::default() }
            }
            (None, Some(text)) if !text.is_empty() => PartyId::parse(text),
            _ => own,
        }
    }
    fn note_refusal(&mut self, cause: Cause) {
        self.refusals.push(cause);
        let _ = self.call.chan.with(|c| c.last_cause = cause);
    }

    /// From here on the caller's record names this extension, wherever the dialplan goes after it.
    pub(crate) fn freeze_record(&self) {
        let _ = self.call.chan.with(|c| {
            let at = (c.location.exten.clone(), c.location.context.clone());
            c.cdr.dialed.get_or_insert(at);
        });
    }

    /// Starts every call and what the caller hears.
    pub(crate) fn call_all(&mut self) {
        let caller = self.call.chan.clone();
        self.started = caller.now();
        for Entry { leg, target } in std::mem::take(&mut self.legs) {
            let id = leg.chan().id();
            let called = caller.shard().with_tech(id, |tech, core| tech.call(core, id));
            let dial_string = target.split_once('/').map_or("", |(_, resource)| resource).to_owned();
            caller.core(|core| {
                core.notice(|core| {
                    let dest = core.snapshot(id)?;
                    Some(Notice::DialBegin { caller: core.snapshot(caller.id()), dest, dial_string })
                });
            });
            match called {
                Some(Ok(())) => {
                    self.call.log(Level::Verbose(3), &format!("Called {target}"));
                    self.legs.push(Entry { leg, target });
                }
                Some(Err(cause)) => {
                    notice_end(&caller, &leg, Status::of_cause(cause).name());
                    self.note_refusal(cause);
                    leg.end(cause);
                }
                None => self.note_refusal(Cause::NORMAL_TEMPORARY_FAILURE),
            }
        }
    }

    /// Waits for the first answer, the last refusal, the timeout or the caller.
    pub(crate) async fn wait(&mut self, timeout: Duration) -> Called {
        let caller = self.call.chan.clone();
        if let Err(stop) = self.start_sound().await {
            return stopped(stop);
        }
        let deadline = self.started + timeout;
        while !self.legs.is_empty() {
            let mut ids = vec![caller.id()];
            ids.extend(self.legs.iter().map(|entry| entry.leg.chan().id()));
            let Some((id, heard)) = Chan::any(caller.shard(), &ids, Some(deadline)).await else {
                self.cancel(Cause::NORMAL_CLEARING, "NOANSWER");
                return Called::Refused(Status::NoAnswer);
            };
            if id == caller.id() {
                match heard {
                    Err(stop) => {
                        self.cancel(Cause::NORMAL_CLEARING, "CANCEL");
                        return stopped(stop);
                    }
                    Ok(ChanEvent::Digit { digit, .. })
                        if self.options.caller_hangs_up && digit.to_char() == '*' =>
                    {
                        self.cancel(Cause::NORMAL_CLEARING, "CANCEL");
                        return Called::CallerHungUpWithKey;
                    }
                    Ok(_) => {}
                }
            } else if let Some(called) = self.leg_event(id, heard) {
                return called;
            }
        }
        self.silence();
        Called::Refused(self.verdict())
    }

    async fn start_sound(&self) -> Result<(), Stop> {
        let caller = &self.call.chan;
        if self.legs.is_empty() {
            return caller.check();
        }
        if let Some(class) = &self.options.music {
            if caller.state() != call::ChanState::Up {
                caller.indicate(&Indication::Progress);
            }
            caller.start_music(class).await?;
        } else if let Some(tone) = &self.options.ring {
            ring_back(caller, tone);
        } else if self.options.ring_until_audio {
            ring_back(caller, "");
        }
        Ok(())
    }

    fn leg_event(&mut self, id: ChannelId, heard: Result<ChanEvent, Stop>) -> Option<Called> {
        let at = self.legs.iter().position(|entry| entry.leg.chan().id() == id)?;
        match heard {
            Err(_) => {
                let entry = self.legs.remove(at);
                let cause =
                    entry.leg.chan().with(|c| c.hangup).ok().flatten().unwrap_or(Cause::NORMAL_CLEARING);
                self.call.log(
                    Level::Verbose(3),
                    &format!("{} is {}", entry.target, Status::of_cause(cause).name()),
                );
                notice_end(&self.call.chan, &entry.leg, Status::of_cause(cause).name());
                self.call.note_leg(entry.leg.chan());
                self.note_refusal(cause);
                entry.leg.end(cause);
                None
            }
            Ok(ChanEvent::Answered) => {
                let entry = self.legs.remove(at);
                notice_end(&self.call.chan, &entry.leg, Status::Answer.name());
                self.cancel(Cause::ANSWERED_ELSEWHERE, "CANCEL");
                self.silence();
                self.answered_number =
                    entry.target.split_once('/').map_or("", |(_, number)| number).to_owned();
                self.call.log(Level::Verbose(3), &format!("{} answered", entry.leg.chan().name()));
                Some(Called::Answered(entry.leg))
            }
            Ok(ChanEvent::Ringing) => {
                let first = self.ringing_at.is_none();
                self.ringing_at.get_or_insert(self.call.chan.now());
                self.state(id, "RINGING");
                let quiet = self.options.music.is_none() && self.options.ring.is_none() && !self.early_audio;
                if first && quiet {
                    ring_back(&self.call.chan, "");
                }
                None
            }
            Ok(ChanEvent::Progress) => {
                self.progress_at.get_or_insert(self.call.chan.now());
                self.state(id, "PROGRESS");
                self.early_audio(id);
                None
            }
            Ok(ChanEvent::Proceeding) => {
                self.state(id, "PROCEEDING");
                None
            }
            Ok(_) => None,
        }
    }
    fn state(&self, id: ChannelId, status: &'static str) {
        let caller = self.call.chan.id();
        self.call.chan.core(|core| {
            core.notice(|core| {
                Some(Notice::DialState { caller: core.snapshot(caller), dest: core.snapshot(id)?, status })
            });
        });
    }
    /// With a single leg the caller hears what it sends before the answer, unless options make the sound.
    fn early_audio(&mut self, id: ChannelId) {
        if self.legs.len() != 1
            || self.early_audio
            || self.options.music.is_some()
            || self.options.ring.is_some()
        {
            return;
        }
        self.early_audio = true;
        let caller = &self.call.chan;
        if self.options.ring_until_audio {
            caller.stop_sound();
        }
        if caller.state() != call::ChanState::Up {
            caller.indicate(&Indication::Progress);
        }
        caller.core(|core| {
            let streams =
                core.get(caller.id()).and_then(|c| c.stream).zip(core.get(id).and_then(|c| c.stream));
            if let Some((a, b)) = streams {
                core.media(Command::Join { a, b });
            }
        });
    }
    /// Ends every leg that is left.
    fn cancel(&mut self, cause: Cause, status: &'static str) {
        for entry in self.legs.drain(..) {
            notice_end(&self.call.chan, &entry.leg, status);
            entry.leg.end(cause);
        }
        self.silence();
    }
    fn silence(&mut self) {
        let caller = &self.call.chan;
        if self.options.music.is_some() {
            caller.stop_music();
        } else if caller.state() == call::ChanState::Up {
            caller.stop_sound();
        }
        if std::mem::take(&mut self.early_audio) {
            caller.media(|stream| Command::Part { stream });
        }
    }
    /// When all have refused: busy says most, then congestion, then that nobody could be reached.
    fn verdict(&self) -> Status {
        let statuses: Vec<Status> = self.refusals.iter().map(|cause| Status::of_cause(*cause)).collect();
        [Status::Busy, Status::Congestion, Status::NoAnswer]
            .into_iter()
            .find(|status| statuses.contains(status))
            .unwrap_or(Status::ChanUnavail)
    }
    pub(crate) fn times(&self) -> Times {
        let now = self.call.chan.now();
        let until = |at: Instant| at.since(self.started);
        Times {
            dialed: until(now),
            ringing: self.ringing_at.map(until),
            progress: self.progress_at.map(until),
        }
    }
}

/// Gives a leg what it inherits from its caller.
fn hand_down(caller: &Chan, leg: &Leg, presented: PartyId) -> Result<(), Stop> {
    let (vars, language, music, account, exten, redirecting) = caller.with(|c| {
        let exten = c.location.exten.clone();
        let redirecting = c.redirecting.clone();
        (c.vars.inherited(), c.language.clone(), c.music_class.clone(), c.account.clone(), exten, redirecting)
    })?;
    leg.chan().with(|c| {
        c.vars = vars;
        c.language = language;
        c.music_class = music;
        c.peer_account = account;
        c.connected = presented;
        c.redirecting = redirecting;
        if c.caller.number.is_none() {
            c.caller.number = Some(exten);
        }
    })
}
