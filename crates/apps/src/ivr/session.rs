//! The conversation: commands in, events out, and sounds one after the other.

use std::collections::VecDeque;
use std::pin::pin;
use std::task::Poll;

use base::{Instant, PlayEnd, PlayId};
use call::{ChanEvent, ChanState, Level, LinkId, LinkNews, Prompt, Stop};

use super::SOUNDS_MAX;
use super::protocol::{Command, Lines, event};
use crate::agi::{AFTER_END_MAX, COMMANDS_PER_TURN, LINE_BYTES_MAX};
use crate::{Call, Flow, Outcome};

/// What the options say of the end of the call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Habits {
    /// The other side is told of it, and goes on.
    pub(super) ignores_end: bool,
    /// It is not looked for.
    pub(super) is_dead: bool,
}

/// What comes next.
enum Next {
    Line(String),
    /// Something happened to the call.
    Event(ChanEvent),
    /// The call has ended or goes elsewhere.
    Stopped(Stop),
    /// The other side is gone, for this reason.
    Gone(String),
}

/// What was heard of first.
enum First {
    News(Option<LinkNews>),
    Call(Result<Option<ChanEvent>, Stop>),
}

/// A conversation on a call.
pub(super) struct Session {
    call: Call,
    link: LinkId,
    habits: Habits,
    /// What the command P tells.
    parameters: String,
    lines: Lines,
    /// What is heard.
    playing: Option<(PlayId, String)>,
    /// And what after it.
    waiting: VecDeque<(String, Prompt)>,
    /// A digit ends all that.
    auto_clear: bool,
    /// The call has ended.
    stopped: bool,
    /// How long the other side may go on then.
    patience: Option<Instant>,
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.playing.is_some() {
            self.call.chan.stop_sound();
        }
        self.call.chan.core(|core| core.close_link(self.link));
    }
}

impl Session {
    pub(super) fn new(call: Call, link: LinkId, habits: Habits, parameters: String) -> Self {
        Self {
            stopped: call.chan.check().is_err(),
            call,
            link,
            habits,
            parameters,
            lines: Lines::default(),
            playing: None,
            waiting: VecDeque::new(),
            auto_clear: false,
            patience: None,
        }
    }

    /// Talks until either side has said its last.
    pub(super) async fn run(mut self, name: &str) -> Outcome {
        let mut in_a_row = 0;
        loop {
            match self.next().await {
                Next::Line(line) => {
                    if let Some(flow) = self.carry_out(&line).await {
                        return Ok(flow);
                    }
                    in_a_row += 1;
                    if in_a_row >= COMMANDS_PER_TURN {
                        in_a_row = 0;
                        self.call.chan.pause().await;
                    }
                }
                Next::Event(event) => self.heard(&event),
                Next::Stopped(stop) => {
                    let goes_on = stop == Stop::Hangup && (self.habits.ignores_end || self.habits.is_dead);
                    if !goes_on {
                        self.say('H', None);
                        return Err(stop);
                    }
                    if !self.habits.is_dead {
                        self.say('I', Some("HANGUP"));
                    }
                    self.stopped = true;
                    self.playing = None;
                    self.waiting.clear();
                }
                Next::Gone(why) => {
                    self.call.log(Level::Warning, &format!("{name}: {why}; the call is ended"));
                    return Ok(Flow::Hangup);
                }
            }
        }
    }

    /// Tells the other side of something.
    fn say(&self, tag: char, data: Option<&str>) {
        self.call.chan.core(|core| {
            let seconds = core.services.wall.now_micros().div_euclid(1_000_000);
            core.services.links.send(self.link, event(tag, seconds, data).into_bytes());
        });
    }

    /// What comes next. What happens to the call is looked at first, so that who says much hears of it.
    async fn next(&mut self) -> Next {
        let chan = self.call.chan.clone();
        if !self.stopped {
            match chan.event(Some(chan.now())).await {
                Ok(Some(event)) => return Next::Event(event),
                Ok(None) => {}
                Err(stop) => return Next::Stopped(stop),
            }
        }
        loop {
            match self.lines.next(LINE_BYTES_MAX) {
                Ok(Some(line)) => return Next::Line(line),
                Ok(None) => {}
                Err(()) => return Next::Gone(format!("a line of more than {LINE_BYTES_MAX} bytes")),
            }
            let first = match self.stopped {
                true => {
                    let deadline = *self.patience.get_or_insert(chan.now() + AFTER_END_MAX);
                    First::News(chan.link_news(self.link, Some(deadline)).await)
                }
                false => self.first().await,
            };
            match first {
                First::News(Some(LinkNews::Bytes(bytes))) => self.lines.push(&bytes),
                First::News(Some(LinkNews::End | LinkNews::Exited(_))) => {
                    return Next::Gone("it has ended".to_owned());
                }
                First::News(Some(LinkNews::Failed { why, .. })) => return Next::Gone(why),
                First::News(Some(LinkNews::Open { .. } | LinkNews::Page { .. } | LinkNews::Rows(_))) => {}
                First::News(None) => {
                    return Next::Gone("it goes on for too long after the end of the call".to_owned());
                }
                First::Call(Ok(Some(event))) => return Next::Event(event),
                First::Call(Ok(None)) => {}
                First::Call(Err(stop)) => return Next::Stopped(stop),
            }
        }
    }
    /// Waits for the other side and for the call.
    async fn first(&self) -> First {
        let chan = &self.call.chan;
        let mut news = pin!(chan.link_news(self.link, None));
        let mut event = pin!(chan.event(None));
        std::future::poll_fn(|context| {
            if let Poll::Ready(news) = news.as_mut().poll(context) {
                return Poll::Ready(First::News(news));
            }
            // Asked last: it is what knows of the call's own time limit.
            event.as_mut().poll(context).map(First::Call)
        })
        .await
    }

    /// Something happened to the call.
    fn heard(&mut self, what: &ChanEvent) {
        match what {
            ChanEvent::Digit { digit, .. } if "0123456789ABCD*#".contains(digit.to_char()) => {
                self.say(digit.to_char(), None);
                if self.auto_clear {
                    self.interrupt();
                }
            }
            ChanEvent::Played { play, end, .. } => {
                let Some((_, name)) = self.playing.take_if(|(own, _)| own == play) else { return };
                match end {
                    PlayEnd::Finished => self.say('F', Some(&name)),
                    PlayEnd::Failed => self.say('Z', Some(&name)),
                    PlayEnd::Stopped => {}
                }
                self.play_next();
            }
            _ => {}
        }
    }
    /// Ends what is heard, and tells of it and of what will not be heard.
    fn interrupt(&mut self) {
        let Some(_) = self.playing.take() else { return };
        self.say('T', None);
        for (name, _) in std::mem::take(&mut self.waiting) {
            self.say('D', Some(&name));
        }
        self.call.chan.stop_sound();
    }
    fn play_next(&mut self) {
        if self.playing.is_none()
            && let Some((name, clip)) = self.waiting.pop_front()
        {
            self.playing = Some((self.call.chan.start_clip(clip, 0), name));
        }
    }

    /// Does what a line says; what the application gives back when it was the last.
    async fn carry_out(&mut self, line: &str) -> Option<Flow> {
        let chan = self.call.chan.clone();
        match Command::parse(line) {
            None => self.say('Z', Some(line)),
            Some(Command::Play(name)) => self.add(name, true).await,
            Some(Command::Append(name)) => self.add(name, false).await,
            Some(Command::Interrupt) => self.interrupt(),
            Some(Command::Exit(why)) => {
                self.call.log(Level::Notice, &format!("Exiting: {why}"));
                self.say('E', None);
                return Some(Flow::Continue);
            }
            Some(Command::HangUp(why)) => {
                self.call.log(Level::Notice, &format!("Hanging up: {why}"));
                self.say('H', None);
                return Some(Flow::Hangup);
            }
            Some(Command::AutoClear(on)) => self.auto_clear = on,
            Some(Command::Answer) => {
                if self.stopped || chan.state() != ChanState::Up && chan.answer().is_err() {
                    self.say('Z', Some("ANSWER_FAILED"));
                }
            }
            Some(Command::Set(pairs)) => {
                for (name, value) in pairs {
                    self.call.assign(&name, &value);
                }
            }
            Some(Command::Get(names)) => {
                let read = |name: &String| format!("{name}={}", self.call.get(name).unwrap_or_default());
                self.say('G', Some(&names.iter().map(read).collect::<Vec<_>>().join(",")));
            }
            Some(Command::Log(text)) => self.call.log(Level::Notice, &text),
            Some(Command::Parameters) => self.say('P', Some(&self.parameters)),
        }
        None
    }
    /// Adds a sound to what is heard, or lets it be heard at once; `Z` when there is none.
    async fn add(&mut self, name: String, first: bool) {
        let has_room = first || self.waiting.len() < SOUNDS_MAX;
        let speaks = self.call.chan.with(|channel| channel.stream.is_some()) == Ok(true);
        if !has_room || !speaks || self.stopped {
            return self.say('Z', Some(&name));
        }
        // The end of the call is heard of by who asks next.
        let Ok(Some(clip)) = self.call.chan.clip(&name).await else { return self.say('Z', Some(&name)) };
        if first {
            self.interrupt();
        }
        self.waiting.push_back((name, clip));
        self.play_next();
    }
}
