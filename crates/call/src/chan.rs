//! A story's handle on a channel: what it can do, and how it waits.

use core::time::Duration;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::dns::{Question, Records};
use base::{Cause, ChannelId, Clip, Command, Digit, FormatId, Instant, PlayEnd, StreamId};

use crate::channel::EVENTS_MAX;
use crate::{
    Advance, ChanEvent, ChanState, Channel, ClipAnswer, ClipWant, Core, DnsAnswer, Elsewhere, Indication,
    Level, MusicAnswer, Notice, Prompt, Shard, Steer,
};

/// Why a story must stop what it does: `?` carries it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The call has ended.
    Hangup,
    /// Somebody sent the channel elsewhere; [`Channel::goto`] says where.
    Goto,
    /// `TIMEOUT(absolute)` has passed.
    AbsoluteTimeout,
}

/// How playing came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// To its end.
    Finished,
    /// The caller pressed one of the digits that stop it; bytes of the clip played so far.
    Interrupted(Digit, usize),
    /// There is no such sound, or it cannot be played on this channel; it was logged.
    Failed,
}

/// How a sound came out that is [steered](Chan::play_steered), and bytes of the clip played so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steered {
    /// To its end.
    Finished(usize),
    /// The caller pressed one of the digits that were named.
    Pressed(Digit, usize),
    /// Somebody else steered.
    Asked(Steer, usize),
    /// It cannot be played on this channel.
    Failed,
}

/// What stopped a sound.
#[derive(Clone, Copy)]
enum Stopped {
    By(Digit),
    From(Steer),
}

/// Shortest digit that is sent, milliseconds: what detectors everywhere hear.
pub const DIGIT_MIN_MS: u16 = 80;
/// How long a worker is waited for that is asked for totals: several of its longest ticks.
const QUALITY_WAIT: Duration = Duration::from_millis(100);
/// Longest digit that is sent, milliseconds.
pub const DIGIT_MAX_MS: u16 = 6000;

/// A channel as a story holds it. Cheap to clone; does not keep the channel alive.
#[derive(Clone)]
pub struct Chan {
    shard: Rc<Shard>,
    id: ChannelId,
}

impl Chan {
    /// A handle on `id`.
    pub fn new(shard: Rc<Shard>, id: ChannelId) -> Self {
        Self { shard, id }
    }
    /// The channel's id.
    pub fn id(&self) -> ChannelId {
        self.id
    }
    /// The shard it lives on.
    pub fn shard(&self) -> &Rc<Shard> {
        &self.shard
    }
    /// Looks at the channel; `Err(Hangup)` when it is gone.
    pub fn with<R>(&self, look: impl FnOnce(&mut Channel) -> R) -> Result<R, Stop> {
        self.shard.core.borrow_mut().get_mut(self.id).map(look).ok_or(Stop::Hangup)
    }
    /// Looks at the whole core. Never call back into a `Chan` or the shard from inside.
    pub fn core<R>(&self, look: impl FnOnce(&mut Core) -> R) -> R {
        look(&mut self.shard.core.borrow_mut())
    }
    /// Its name; empty when gone.
    pub fn name(&self) -> Rc<str> {
        self.with(|c| c.name.clone()).unwrap_or_else(|_| Rc::from(""))
    }
    /// Its state; `Down` when gone.
    pub fn state(&self) -> ChanState {
        self.with(|c| c.state).unwrap_or_default()
    }
    /// Monotonic time of this turn.
    pub fn now(&self) -> Instant {
        self.shard.core.borrow().now
    }
    /// Whether the call goes on: the reason to stop, if there is one.
    pub fn check(&self) -> Result<(), Stop> {
        let core = self.shard.core.borrow();
        let channel = core.get(self.id).ok_or(Stop::Hangup)?;
        stop_of(channel, core.now).map_or(Ok(()), Err)
    }
    /// Logs a line about this channel.
    pub fn log(&self, level: Level, place: &str, text: &str) {
        let mut core = self.shard.core.borrow_mut();
        if core.services.log.enabled(level) {
            let of = core.get(self.id).map(|c| (c.name.clone(), c.call_number));
            let (name, call) = of.map_or((Default::default(), None), |(name, call)| (name, Some(call)));
            core.services.log.line_of_call(call, level, place, &format!("{name}: {text}"));
        }
    }

    /// Answers; nothing when it is up.
    pub fn answer(&self) -> Result<(), Stop> {
        self.check()?;
        self.shard.answer(self.id);
        Ok(())
    }
    /// What is still to be agreed on with this party may be chosen so that nothing is transcoded towards another.
    pub fn suit(&self, other: ChannelId) {
        let formats = |channel: &crate::Channel| {
            core::iter::once(channel.format).chain(channel.formats.iter()).collect()
        };
        let formats = self.core(|core| core.get(other).map(formats));
        if let Some(formats) = formats {
            self.shard.with_tech(self.id, |tech, core| tech.suit(core, self.id, other, formats));
        }
    }
    /// Tells the other side.
    pub fn indicate(&self, indication: &Indication) {
        self.shard.indicate(self.id, indication);
    }
    /// Asks for the end of the call with this cause; the story notices at its next step.
    pub fn hangup(&self, cause: Cause) {
        self.shard.core.borrow_mut().request_hangup(self.id, cause);
    }

    /// Waits for the next event, or until `deadline` (`Ok(None)`). What happened before the end of the call is
    /// delivered before `Err`.
    pub fn event(&self, deadline: Option<Instant>) -> impl Future<Output = Result<Option<ChanEvent>, Stop>> {
        let wait = Wait { shard: self.shard.clone(), ids: vec![self.id], deadline };
        async move {
            match wait.await {
                Woken::Event(_, event) => Ok(Some(event)),
                Woken::Stopped(_, stop) => Err(stop),
                Woken::Deadline => Ok(None),
            }
        }
    }
    /// Waits for the next event or end of any of `channels`, or until `deadline` (`None`).
    ///
    /// The end of a channel is reported each time as long as it is in the list: take it out.
    pub fn any(
        shard: &Rc<Shard>,
        channels: &[ChannelId],
        deadline: Option<Instant>,
    ) -> impl Future<Output = Option<(ChannelId, Result<ChanEvent, Stop>)>> + use<> {
        let wait = Wait { shard: shard.clone(), ids: channels.to_vec(), deadline };
        async move {
            match wait.await {
                Woken::Event(id, event) => Some((id, Ok(event))),
                Woken::Stopped(id, stop) => Some((id, Err(stop))),
                Woken::Deadline => None,
            }
        }
    }
    /// Takes channels out of the stories that have them, which let go without ending them. `None` when one of them ended
    /// first, was sent elsewhere, or was not let go of before `deadline`; those that were let go of are hung up then.
    pub async fn take_all(shard: &Rc<Shard>, ids: &[ChannelId], deadline: Instant) -> Option<Vec<Leg>> {
        let mut taken: Vec<Leg> = Vec::new();
        let mut asked = false;
        let all = std::future::poll_fn(|_| {
            let mut core = shard.core.borrow_mut();
            let mut exec = shard.exec.borrow_mut();
            let Some(current) = exec.current() else { return Poll::Ready(false) };
            let own = Some(Elsewhere::Story(current));
            let mut lost = core.now >= deadline;
            for &id in ids {
                if taken.iter().any(|leg| leg.chan().id() == id) {
                    continue;
                }
                let Some(channel) = core.get_mut(id) else {
                    lost = true;
                    continue;
                };
                if !asked {
                    channel.wanted = false;
                    // All are asked before any of their stories runs: one that lets go might end the other.
                    if channel.hangup.is_some() || channel.goto.is_some() {
                        lost = true;
                        continue;
                    }
                    channel.goto = own.clone();
                    let waiter = channel.waiter;
                    core.woken.extend(waiter);
                } else if channel.keeper == Some(current) {
                    channel.keeper = None;
                    channel.waiter = None;
                    taken.push(Leg::new(shard.clone(), id));
                } else if channel.goto != own {
                    lost = true;
                }
            }
            asked = true;
            let done = lost || taken.len() == ids.len();
            if lost {
                for &id in ids {
                    if let Some(channel) = core.get_mut(id).filter(|channel| channel.goto == own) {
                        channel.goto = None;
                    }
                }
            }
            exec.set_deadline((!done).then_some(deadline));
            if done { Poll::Ready(!lost) } else { Poll::Pending }
        })
        .await;
        all.then_some(taken)
    }
    /// Carries on `story`, which waits for another channel, as long as this one goes on; dropped when it does not.
    pub async fn while_up<T>(&self, story: impl Future<Output = T>) -> Result<T, Stop> {
        let mut story = std::pin::pin!(story);
        std::future::poll_fn(move |context| {
            if let Poll::Ready(done) = story.as_mut().poll(context) {
                return Poll::Ready(Ok(done));
            }
            let mut exec = self.shard.exec.borrow_mut();
            let mut core = self.shard.core.borrow_mut();
            let now = core.now;
            let Some(channel) = core.get_mut(self.id) else { return Poll::Ready(Err(Stop::Hangup)) };
            channel.waiter = exec.current();
            if let Some(stop) = stop_of(channel, now) {
                return Poll::Ready(Err(stop));
            }
            // What the story waits for knows nothing of this channel's own time limit.
            exec.bring_deadline_forward(channel.absolute_deadline);
            Poll::Pending
        })
        .await
    }
    /// Waits until `enough` says so of an event, or `deadline`. Digits and what else is heard meanwhile stay for whoever
    /// listens next.
    pub async fn wait_keeping(
        &self,
        deadline: Instant,
        mut enough: impl FnMut(&ChanEvent) -> bool,
    ) -> Result<(), Stop> {
        let mut kept = Kept { chan: self, events: Vec::new() };
        while let Some(event) = self.event(Some(deadline)).await? {
            let stop = enough(&event);
            if kept.events.len() < EVENTS_MAX {
                kept.events.push(event);
            }
            if stop {
                break;
            }
        }
        Ok(())
    }
    /// Goes on in the next turn, after datagrams, deadlines and other stories; for loops that might not wait otherwise.
    pub async fn pause(&self) {
        let mut yielded = false;
        std::future::poll_fn(|_| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            let current = self.shard.exec.borrow().current();
            self.shard.core.borrow_mut().paused.extend(current);
            Poll::Pending
        })
        .await;
    }
    /// Waits, dropping digits and other events.
    pub async fn wait(&self, duration: Duration) -> Result<(), Stop> {
        let deadline = self.now() + duration;
        while self.event(Some(deadline)).await?.is_some() {}
        Ok(())
    }
    /// Waits for a digit at most `timeout`; `None` when none came. A digit counts when it ends.
    pub async fn digit(&self, timeout: Duration) -> Result<Option<Digit>, Stop> {
        let deadline = self.now() + timeout;
        loop {
            match self.event(Some(deadline)).await? {
                Some(ChanEvent::Digit { digit, .. }) => return Ok(Some(digit)),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// The media stream and its format; `None` before the driver has opened one.
    pub fn stream(&self) -> Result<Option<(StreamId, FormatId)>, Stop> {
        self.with(|c| c.stream.map(|s| (s, c.format)))
    }
    /// Sends a media command made for this channel's stream; nothing without one.
    pub fn media(&self, command: impl FnOnce(StreamId) -> Command) {
        let mut core = self.shard.core.borrow_mut();
        if let Some(stream) = core.get(self.id).and_then(|c| c.stream) {
            core.media(command(stream));
        }
    }
    /// The sound `name` in the channel's language and format; `None` (and a log line) when there is none.
    pub async fn clip(&self, name: &str) -> Result<Option<Prompt>, Stop> {
        let (format, language) = self.with(|c| (c.format, c.language.clone()))?;
        let clip = self.clip_in(name, format).await?;
        let want = ClipWant { name: name.to_owned(), language, format };
        Ok(clip.map(|clip| self.core(|core| Prompt::named(clip, &want, core))))
    }
    /// The sound `name` in the channel's language and another format, by its name; see [`Chan::clip`].
    pub async fn prompt_in(&self, name: &str, format: FormatId) -> Result<Option<Prompt>, Stop> {
        let language = self.with(|c| c.language.clone())?;
        let clip = self.clip_in(name, format).await?;
        let want = ClipWant { name: name.to_owned(), language, format };
        Ok(clip.map(|clip| self.core(|core| Prompt::named(clip, &want, core))))
    }
    /// The sound `name` in the channel's language and another format; see [`Chan::clip`].
    pub async fn clip_in(&self, name: &str, format: FormatId) -> Result<Option<Arc<Clip>>, Stop> {
        match self.ask_library(name, format).await? {
            ClipAnswer::Ready(clip) => Ok(Some(clip)),
            ClipAnswer::Missing(looked) => {
                self.log(
                    Level::Warning,
                    "file",
                    &format!("File {name} does not exist in any format ({looked})"),
                );
                Ok(None)
            }
            ClipAnswer::Loading => Ok(None),
        }
    }
    /// Whether there is a sound `name` for this channel; its absence is not logged.
    pub async fn has_clip(&self, name: &str) -> Result<bool, Stop> {
        let format = self.with(|c| c.format)?;
        Ok(matches!(self.ask_library(name, format).await?, ClipAnswer::Ready(_)))
    }
    async fn ask_library(&self, name: &str, format: FormatId) -> Result<ClipAnswer, Stop> {
        let want = self.with(|c| ClipWant { name: name.to_owned(), language: c.language.clone(), format })?;
        std::future::poll_fn(|_| {
            let mut core = self.shard.core.borrow_mut();
            let answer = core.services.library.clip(&want);
            self.unless_loading(&mut core, matches!(answer, ClipAnswer::Loading), answer)
        })
        .await
    }
    fn unless_loading<T>(&self, core: &mut Core, loading: bool, answer: T) -> Poll<Result<T, Stop>> {
        if !loading {
            return Poll::Ready(Ok(answer));
        }
        let current = self.shard.exec.borrow().current();
        let now = core.now;
        let Some(channel) = core.get_mut(self.id) else { return Poll::Ready(Err(Stop::Hangup)) };
        if let Some(stop) = stop_of(channel, now) {
            return Poll::Ready(Err(stop));
        }
        channel.waiter = current;
        core.library_waiters.extend(current);
        Poll::Pending
    }
    /// Brings [`Channel::quality`] up to date; at once when there is no stream. With `after_end` the end of the call stops
    /// nothing.
    pub async fn refresh_quality(&self, after_end: bool) -> Result<(), Stop> {
        if self.stream()?.is_none() {
            return Ok(());
        }
        let deadline = self.now() + QUALITY_WAIT;
        self.with(|c| c.asked_quality = true)?;
        self.media(|stream| Command::Stats { stream });
        std::future::poll_fn(|_| {
            let mut core = self.shard.core.borrow_mut();
            let mut exec = self.shard.exec.borrow_mut();
            let now = core.now;
            let Some(channel) = core.get_mut(self.id) else { return Poll::Ready(Err(Stop::Hangup)) };
            let done = match stop_of(channel, now).filter(|_| !after_end) {
                _ if !channel.asked_quality || deadline <= now => Ok(()),
                Some(stop) => Err(stop),
                None => {
                    channel.waiter = exec.current();
                    exec.set_deadline(Some(deadline));
                    return Poll::Pending;
                }
            };
            exec.set_deadline(None);
            Poll::Ready(done)
        })
        .await
    }
    /// What the DNS says; `None` when no server answered before `deadline`. With `after_end` the end of the
    /// call, which is over anyway, stops nothing.
    pub fn dns<'a>(
        &'a self,
        question: &'a Question,
        deadline: Instant,
        after_end: bool,
    ) -> impl Future<Output = Result<Option<Records>, Stop>> + 'a {
        std::future::poll_fn(move |_| {
            let mut core = self.shard.core.borrow_mut();
            let mut exec = self.shard.exec.borrow_mut();
            let now = core.now;
            let answer = core.services.outside.dns(question);
            let Some(channel) = core.get_mut(self.id) else { return Poll::Ready(Err(Stop::Hangup)) };
            let done = match (answer, stop_of(channel, now).filter(|_| !after_end)) {
                (DnsAnswer::Ready(records), _) => Ok(Some(records)),
                (DnsAnswer::Loading, Some(stop)) => Err(stop),
                (DnsAnswer::Loading, None) if now < deadline => {
                    channel.waiter = exec.current();
                    let absolute = channel.absolute_deadline.filter(|_| !after_end);
                    exec.set_deadline([Some(deadline), absolute].into_iter().flatten().min());
                    if let Some(current) = exec.current().filter(|id| !core.outside_waiters.contains(id)) {
                        core.outside_waiters.push(current);
                    }
                    return Poll::Pending;
                }
                (DnsAnswer::Failed | DnsAnswer::Loading, _) => Ok(None),
            };
            exec.set_deadline(None);
            Poll::Ready(done)
        })
    }
    /// Starts a clip at `offset` bytes without waiting; its end comes as [`ChanEvent::Played`] with this id.
    pub fn start_clip(&self, prompt: impl Into<Prompt>, offset: usize) -> base::PlayId {
        let prompt = prompt.into();
        let play = self.core(|core| {
            let play = core.next_play(self.id);
            core.prompt_begins(self.id, play, &prompt);
            play
        });
        let clip = prompt.clip().clone();
        self.media(|stream| Command::Play { stream, play, clip, offset });
        play
    }
    /// Plays a sound to its end, or until one of the digits of `stop_on` is pressed; other digits are dropped.
    pub async fn play(&self, name: &str, stop_on: &str) -> Result<Heard, Stop> {
        match self.clip(name).await? {
            Some(clip) => self.play_clip(clip, 0, stop_on).await,
            None => Ok(Heard::Failed),
        }
    }
    /// Plays a clip from `offset` bytes; see [`Chan::play`].
    pub async fn play_clip(
        &self,
        clip: impl Into<Prompt>,
        offset: usize,
        stop_on: &str,
    ) -> Result<Heard, Stop> {
        Ok(match self.sound(clip.into(), offset, stop_on, false).await? {
            Steered::Pressed(digit, offset) => Heard::Interrupted(digit, offset),
            Steered::Finished(_) | Steered::Asked(..) => Heard::Finished,
            Steered::Failed => Heard::Failed,
        })
    }
    /// Plays a clip from `offset` bytes until one of the digits is pressed or [`ChanEvent::Steer`] comes.
    pub async fn play_steered(
        &self,
        clip: impl Into<Prompt>,
        offset: usize,
        digits: &str,
    ) -> Result<Steered, Stop> {
        self.with(|c| c.steers = true)?;
        let heard = self.sound(clip.into(), offset, digits, true).await;
        let _ = self.with(|c| c.steers = false);
        heard
    }
    /// What is heard is over, as channel event logging has it.
    pub fn end_prompt(&self) {
        self.core(|core| core.prompt_ends(self.id, None));
    }
    async fn sound(
        &self,
        clip: Prompt,
        offset: usize,
        stop_on: &str,
        steered: bool,
    ) -> Result<Steered, Stop> {
        self.check()?;
        if self.stream()?.is_none() {
            return Ok(Steered::Failed);
        }
        self.core(|core| core.advance(self.id, Advance::Connected));
        let wanted = self.start_clip(clip, offset);
        let playing = PlayGuard(self);
        let mut stopped = None;
        // Digits that follow the one that stops the sound belong to whoever reads the number.
        let mut following = Kept { chan: self, events: Vec::new() };
        loop {
            match self.event(None).await? {
                Some(ChanEvent::Played { play, end, offset }) if play == wanted => {
                    std::mem::forget(playing);
                    return Ok(match (stopped, end) {
                        (Some(Stopped::By(digit)), _) => Steered::Pressed(digit, offset),
                        (Some(Stopped::From(steer)), _) => Steered::Asked(steer, offset),
                        (None, PlayEnd::Failed) => Steered::Failed,
                        (None, PlayEnd::Finished | PlayEnd::Stopped) => Steered::Finished(offset),
                    });
                }
                Some(ChanEvent::Digit { digit, .. })
                    if stopped.is_none() && stop_on.contains(digit.to_char()) =>
                {
                    stopped = Some(Stopped::By(digit));
                    self.media(|stream| Command::StopPlay { stream });
                }
                Some(ChanEvent::Steer(steer)) if steered && stopped.is_none() => {
                    stopped = Some(Stopped::From(steer));
                    self.media(|stream| Command::StopPlay { stream });
                }
                Some(event @ (ChanEvent::Digit { .. } | ChanEvent::Steer(_))) if stopped.is_some() => {
                    following.events.push(event);
                }
                _ => {}
            }
        }
    }
    /// Plays a looping tone until [`Chan::stop_sound`]; `false` when it is not known.
    pub fn start_tone(&self, tone: &str) -> bool {
        let mut core = self.shard.core.borrow_mut();
        let Some((zone, format)) = core.get(self.id).map(|c| (c.tone_zone.clone(), c.format)) else {
            return false;
        };
        let Some(clip) = core.services.library.tone(&zone, tone, format) else { return false };
        drop(core);
        self.start_clip(clip, 0);
        true
    }
    /// Ends playing, music or tone.
    pub fn stop_sound(&self) {
        self.media(|stream| Command::StopPlay { stream });
        self.core(|core| core.prompt_ends(self.id, None));
    }
    /// Starts music on hold of `class` (empty: the channel's own, which goes first when the dialplan chose it) until
    /// [`Chan::stop_music`]; `false` without such a class.
    pub async fn start_music(&self, class: &str) -> Result<bool, Stop> {
        let named_first = self.core(|core| core.settings.named_music_first);
        let (class, format) = self.with(|c| {
            let is_own = class.is_empty() || c.music_chosen && !named_first;
            let class = if is_own { c.music_class.clone() } else { class.to_owned() };
            (class, c.format)
        })?;
        let named = if class.is_empty() { "default" } else { &class };
        let waits = self.state() != ChanState::Up;
        if waits && self.core(|core| core.settings.music_when_answered.contains(named)) {
            return Ok(false);
        }
        let mut answer = self.music(&class, format).await?;
        if matches!(answer, MusicAnswer::Missing) {
            // It may have become a row of a database since.
            self.while_up(self.shard.ask_rows_again()).await?;
            answer = self.music(&class, format).await?;
        }
        if !self.core(|core| core.play_music(self.id, &class, answer)) {
            let line = format!("Music on hold class '{class}' has nothing to play");
            self.log(Level::Warning, "res_musiconhold", &line);
            return Ok(false);
        }
        self.core(|core| core.music_begins(self.id, class));
        Ok(true)
    }
    async fn music(&self, class: &str, format: base::FormatId) -> Result<MusicAnswer, Stop> {
        std::future::poll_fn(|_| {
            let mut core = self.shard.core.borrow_mut();
            let answer = core.services.library.music(class, format);
            self.unless_loading(&mut core, matches!(answer, MusicAnswer::Loading), answer)
        })
        .await
    }
    /// Ends music on hold.
    pub fn stop_music(&self) {
        self.stop_sound();
        self.core(|core| core.music_ends(self.id));
    }
    /// Sends a digit on that another channel heard, for as long as it lasted there.
    pub fn pass_digit(&self, digit: Digit, duration_ms: u32) {
        let longest = u32::from(DIGIT_MAX_MS);
        let duration_ms = u16::try_from(duration_ms.min(longest)).unwrap_or(DIGIT_MAX_MS);
        self.send_digit(digit, duration_ms);
        self.tell_passed(digit, u32::from(duration_ms));
    }
    /// Tells watchers that a digit has been passed on, by us or by the media plane; nobody hears of those of a native pair.
    pub(crate) fn tell_passed(&self, digit: Digit, duration_ms: u32) {
        // That of an inband one ends with its tone.
        let is_inband = self.with(|c| c.rtp_digits == Some(base::DtmfMode::Inband)) == Ok(true);
        let duration_ms = duration_ms.clamp(u32::from(DIGIT_MIN_MS), u32::from(DIGIT_MAX_MS));
        let end = Some(duration_ms).filter(|_| !is_inband);
        self.core(|core| {
            if core.is_in_native_pair(self.id) {
                return;
            }
            for duration_ms in [Some(None), end.map(Some)].into_iter().flatten() {
                core.notice_of(self.id, |channel| Notice::Dtmf {
                    channel,
                    digit,
                    duration_ms,
                    received: false,
                });
            }
            if end.is_some() {
                core.log_digit(self.id, digit, duration_ms);
            }
        });
    }
    /// Sends a digit by signalling or media, as the technology says; its length is brought to 80 to 6000 ms.
    pub fn send_digit(&self, digit: Digit, duration_ms: u16) {
        let duration_ms = duration_ms.clamp(DIGIT_MIN_MS, DIGIT_MAX_MS);
        let sent =
            self.shard.with_tech(self.id, |tech, core| tech.send_digit(core, self.id, digit, duration_ms));
        if sent == Some(false) {
            self.media(|stream| Command::SendDigit { stream, digit, duration_ms });
        }
    }
}

/// Events that were heard too early; given back, before what came since, when dropped.
struct Kept<'a> {
    chan: &'a Chan,
    events: Vec<ChanEvent>,
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        let _ = self.chan.with(|c| {
            for event in self.events.drain(..).rev() {
                c.events.push_front(event);
            }
        });
    }
}

/// Stops the sound when the story leaves `play_clip` early.
struct PlayGuard<'a>(&'a Chan);

impl Drop for PlayGuard<'_> {
    fn drop(&mut self) {
        self.0.stop_sound();
    }
}

/// An outgoing channel that is hung up when its story lets go of it.
pub struct Leg {
    chan: Chan,
    kept: bool,
}

impl Leg {
    /// Takes charge of `id`.
    pub fn new(shard: Rc<Shard>, id: ChannelId) -> Self {
        Self { chan: Chan::new(shard, id), kept: false }
    }
    /// The channel.
    pub fn chan(&self) -> &Chan {
        &self.chan
    }
    /// Hands the channel on: whoever calls this ends it.
    pub fn keep(mut self) -> Chan {
        self.kept = true;
        self.chan.clone()
    }
    /// Ends it with this cause.
    pub fn end(self, cause: Cause) {
        self.chan.shard.finish(self.chan.id, cause);
    }
}

impl Drop for Leg {
    fn drop(&mut self) {
        if !self.kept {
            self.chan.shard.finish(self.chan.id, Cause::NORMAL_CLEARING);
        }
    }
}

pub(crate) fn stop_of(channel: &Channel, now: Instant) -> Option<Stop> {
    if channel.hangup.is_some() {
        Some(Stop::Hangup)
    } else if channel.goto.is_some() {
        Some(Stop::Goto)
    } else if channel.absolute_deadline.is_some_and(|at| at <= now) {
        Some(Stop::AbsoluteTimeout)
    } else {
        None
    }
}

enum Woken {
    Event(ChannelId, ChanEvent),
    Stopped(ChannelId, Stop),
    Deadline,
}

struct Wait {
    shard: Rc<Shard>,
    ids: Vec<ChannelId>,
    deadline: Option<Instant>,
}

impl Future for Wait {
    type Output = Woken;
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Woken> {
        let mut core = self.shard.core.borrow_mut();
        let mut exec = self.shard.exec.borrow_mut();
        let (now, current) = (core.now, exec.current());
        let mut deadline = self.deadline;
        for &id in &self.ids {
            let Some(channel) = core.get_mut(id) else {
                return Poll::Ready(Woken::Stopped(id, Stop::Hangup));
            };
            if let Some(event) = channel.events.pop_front() {
                return Poll::Ready(Woken::Event(id, event));
            }
            if let Some(stop) = stop_of(channel, now) {
                return Poll::Ready(Woken::Stopped(id, stop));
            }
            channel.waiter = current;
            deadline = [deadline, channel.absolute_deadline].into_iter().flatten().min();
        }
        if self.deadline.is_some_and(|at| at <= now) {
            exec.set_deadline(None);
            return Poll::Ready(Woken::Deadline);
        }
        exec.set_deadline(deadline);
        Poll::Pending
    }
}
