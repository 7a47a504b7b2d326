//! A stay in a conference: what a member hears besides the others, and what ends it.

use std::collections::VecDeque;

use base::{ChannelId, Digit, Instant};
use call::conference::{Entered, Leaving, Member};
use call::{Chan, ChanEvent, Key, Keys, Pressed, Pressing, Stop, Stroke};

use super::{Ended, Visit};
use crate::features;

/// Digits that wait while a prompt is heard that they do not end: a whole code, and one more.
const PENDING_MAX: usize = 2 * call::CODE_MAX;

/// One member's stay.
pub(super) struct Stay<'a> {
    pub(super) visit: &'a Visit<'a>,
    pub(super) chan: &'a Chan,
    /// When its time is over.
    until: Option<Instant>,
    /// When it has waited long enough for a marked member.
    patience: Option<Instant>,
    /// The end of the conference that it was told of.
    told_end: Option<Instant>,
    /// It waits for a marked member, as far as it was told.
    waits: bool,
    /// It hears music.
    music: bool,
    keys: Keys,
    pressing: Pressing,
    pending: VecDeque<Stroke>,
    /// Steps of its volumes: how loud the others are for it, and it for them.
    pub(super) listening: i8,
    pub(super) talking: i8,
}

/// Where a member stands in its conference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    leaves: Option<Leaving>,
    waits: bool,
    is_alone: bool,
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        self.hush();
    }
}

impl<'a> Stay<'a> {
    pub(super) fn new(visit: &'a Visit<'a>, entered: Entered) -> Self {
        let chan = &visit.call.chan;
        let codes = visit.menu.keys.iter().enumerate();
        let keys = codes.filter_map(|(at, (digits, _))| Key::new(digits, at)).collect();
        let seconds = core::time::Duration::from_secs(u64::from(visit.user.timeout));
        let limit = Some(seconds).filter(|limit| !limit.is_zero());
        let patience = visit.extras.patience.filter(|_| entered.waits);
        let until = [limit, visit.extras.limit].into_iter().flatten().min().map(|limit| chan.now() + limit);
        Self {
            visit,
            chan,
            until,
            patience: patience.map(|patience| chan.now() + patience),
            told_end: None,
            waits: entered.waits,
            music: false,
            keys: Keys { keys, timeout: features::of(chan).code_timeout },
            pressing: Pressing::default(),
            pending: VecDeque::new(),
            listening: 0,
            talking: 0,
        }
    }
    /// What a member hears before it comes in.
    pub(super) async fn welcome(&mut self, entered: Entered) -> Result<Option<Ended>, Stop> {
        let Visit { bridge, user, .. } = self.visit;
        let sounds = &bridge.sounds;
        if entered.begins && !user.is_quiet {
            let lasts = self.visit.announce_names(std::slice::from_ref(&sounds.begin)).await?;
            self.wait(lasts).await?;
        }
        let mut names = Vec::new();
        if !user.announcement.is_empty() {
            names.push(user.announcement.clone());
        }
        let others = entered.active.saturating_sub(1);
        if !user.is_quiet {
            match () {
                () if entered.waits => names.push(sounds.wait_for_leader.clone()),
                () if others == 0 && user.hears_that_it_is_alone => names.push(sounds.only_person.clone()),
                () => {}
            }
        }
        if user.hears_count && !entered.waits && others > 0 {
            names.extend(self.visit.count(others).await?);
        }
        let tells = |from: u32| others > 0 && entered.active >= from as usize;
        if !entered.waits && user.tells_count_from.is_some_and(tells) {
            self.visit.announce_count(others).await?;
        }
        self.hear(&names, false).await?;
        if self.ended().is_none() {
            self.settle().await?;
        }
        Ok(self.ended())
    }
    /// Waits while the others hear something, until its stay is over.
    async fn wait(&mut self, lasts: core::time::Duration) -> Result<(), Stop> {
        let end = self.chan.now() + lasts;
        while self.chan.now() < end && self.ended().is_none() {
            let deadline = self.until.map_or(end, |until| until.min(end));
            if let Some(event) = self.chan.event(Some(deadline)).await? {
                self.note(&event);
            }
        }
        Ok(())
    }
    /// Stays until something ends it.
    pub(super) async fn run(&mut self) -> Result<Ended, Stop> {
        loop {
            if let Some(ended) = self.ended() {
                return Ok(ended);
            }
            self.settle().await?;
            if let Some(stroke) = self.pending.pop_front() {
                let pressed = self.pressing.stroke(&self.keys, stroke, self.chan.now());
                if let Some(ended) = self.pressed(pressed).await? {
                    return Ok(ended);
                }
                continue;
            }
            let end = self.tell_end().await?;
            let deadlines = [self.until, self.patience, self.pressing.deadline(), end];
            let deadline = deadlines.into_iter().flatten().min();
            match self.chan.event(deadline).await? {
                Some(event) => self.note(&event),
                None => {
                    let now = self.chan.now();
                    if self.pressing.deadline().is_some_and(|at| at <= now) {
                        let pressed = self.pressing.timeout(&self.keys);
                        if let Some(ended) = self.pressed(pressed).await? {
                            return Ok(ended);
                        }
                    }
                }
            }
        }
    }
    /// When the conference ends, and how long before that it is told.
    fn end(&self) -> Option<(Instant, core::time::Duration)> {
        self.chan.core(|core| {
            let end = core.conferences.of(self.chan.id())?.ends?;
            Some((end, core.settings.bookings.end_alert))
        })
    }
    /// Tells that the conference ends soon; when there is more to tell, or it ends.
    async fn tell_end(&mut self) -> Result<Option<Instant>, Stop> {
        let Some((end, before)) = self.end() else { return Ok(None) };
        let left = end.since(self.chan.now());
        if self.told_end == Some(end) || before.is_zero() {
            return Ok(Some(end));
        }
        if left > before {
            return Ok(Some(self.chan.now() + (left - before)));
        }
        self.told_end = Some(end);
        let minutes = i64::try_from(left.as_secs().div_ceil(60)).unwrap_or(i64::MAX);
        let mut names = vec!["conf-will-end-in".to_owned()];
        names.extend(crate::say::number_words(self.chan, minutes).await?);
        names.push("minutes".to_owned());
        self.hear(&names, false).await?;
        Ok(Some(end))
    }
    fn place(&self) -> Option<Place> {
        self.chan.core(|core| {
            let member = core.conferences.member(self.chan.id())?;
            let is_alone = core.conferences.of(self.chan.id()).is_none_or(|c| c.active() <= 1);
            Some(Place { leaves: member.leaves, waits: member.waits, is_alone })
        })
    }
    /// Whether its stay is over.
    pub(super) fn ended(&self) -> Option<Ended> {
        let Some(place) = self.place() else { return Some(Ended::Kicked) };
        let now = self.chan.now();
        let is_over = |until: Option<Instant>| until.is_some_and(|until| until <= now);
        match place.leaves {
            Some(Leaving::Kicked) => Some(Ended::Kicked),
            Some(Leaving::Marked) => Some(Ended::Marked),
            None => {
                let end = self.end().map(|(end, _)| end);
                (is_over(self.until) || is_over(end) || (place.waits && is_over(self.patience)))
                    .then_some(Ended::Timeout)
            }
        }
    }
    /// Lets it hear what it is to hear as things are.
    async fn settle(&mut self) -> Result<(), Stop> {
        let Visit { bridge, user, .. } = self.visit;
        while let Some(place) = self.place().filter(|place| place.leaves.is_none()) {
            if place.waits == self.waits {
                let wants = user.has_music && (place.waits || place.is_alone);
                if !wants {
                    self.hush();
                } else if !self.music {
                    self.music = true;
                    self.chan.start_music(&user.music_class).await?;
                }
                break;
            }
            self.waits = place.waits;
            self.patience = None;
            if place.waits && !user.is_quiet {
                self.hear(std::slice::from_ref(&bridge.sounds.leader_has_left), false).await?;
            }
        }
        Ok(())
    }
    /// Ends its music.
    pub(super) fn hush(&mut self) {
        if std::mem::take(&mut self.music) {
            self.chan.stop_music();
        }
    }
    fn note(&mut self, event: &ChanEvent) {
        match event {
            ChanEvent::Digit { digit, duration_ms, relayed } if self.pending.len() < PENDING_MAX => {
                let (digit, duration_ms, relayed) = (*digit, *duration_ms, *relayed);
                self.pending.push_back(Stroke { digit, duration_ms, relayed });
            }
            ChanEvent::Text(text) if !self.waits && !self.visit.user.seat.refuses_texts => {
                self.pass_text(text)
            }
            _ => {}
        }
    }
    /// Sends a text to the others.
    fn pass_text(&self, text: &call::Text) {
        for other in self.others(|member| !member.seat.refuses_texts) {
            self.chan.shard().with_tech(other, |tech, core| tech.pass_text(core, other, text));
        }
    }
    /// Plays sounds to this member, one after the other, until its stay is over; with `digits_end`, or until a digit, which
    /// is given back.
    pub(super) async fn hear(&mut self, names: &[String], digits_end: bool) -> Result<Option<Digit>, Stop> {
        for name in names.iter().filter(|name| !name.is_empty()) {
            let Some(clip) = self.chan.clip(name).await? else { continue };
            self.hush();
            let played = self.chan.start_clip(clip, 0);
            loop {
                match self.chan.event(self.until).await? {
                    Some(ChanEvent::Played { play, .. }) if play == played => break,
                    Some(ChanEvent::Digit { digit, .. }) if digits_end => {
                        self.chan.stop_sound();
                        return Ok(Some(digit));
                    }
                    Some(event) => self.note(&event),
                    None => {}
                }
                if self.ended().is_some() {
                    self.chan.stop_sound();
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }
    /// What has been pressed is a key, or meant for the others.
    async fn pressed(&mut self, pressed: Pressed) -> Result<Option<Ended>, Stop> {
        let mut pressed = pressed;
        loop {
            match pressed {
                Pressed::Wait => return Ok(None),
                Pressed::PassOn(strokes) => {
                    if let Some(digit) = self.exit(&strokes) {
                        return Ok(Some(Ended::Exit(digit)));
                    }
                    if self.visit.user.passes_digits {
                        self.pass_on(&strokes);
                    }
                    return Ok(None);
                }
                Pressed::Key(at) => {
                    let Some((digits, actions)) =
                        self.keys.keys.get(at).and_then(|key| self.visit.menu.keys.get(key.meaning))
                    else {
                        return Ok(None);
                    };
                    let mut next = None;
                    for action in actions {
                        match self.act(action).await? {
                            super::keys::Did::Done => {}
                            super::keys::Did::Ended(ended) => return Ok(Some(ended)),
                            super::keys::Did::GoesOn(digit) => {
                                next = Some(digit);
                                break;
                            }
                        }
                        if let Some(ended) = self.ended() {
                            return Ok(Some(ended));
                        }
                    }
                    let Some(digit) = next else { return Ok(None) };
                    pressed = self.go_on(digits, digit);
                }
            }
        }
    }
    /// A digit came while a prompt was heard that belongs to `digits`: it may go on what was pressed, or begin anew.
    fn go_on(&mut self, digits: &str, digit: Digit) -> Pressed {
        let now = self.chan.now();
        let stroke = |digit| Stroke { digit, duration_ms: u32::from(call::DIGIT_MIN_MS), relayed: false };
        let longer = format!("{digits}{}", digit.to_char());
        let continues = self.visit.menu.keys.iter().any(|(known, _)| known.starts_with(&longer));
        let mut pressed = Pressed::Wait;
        let before = digits.chars().filter(|_| continues).filter_map(Digit::from_char);
        for digit in before.chain([digit]) {
            pressed = self.pressing.stroke(&self.keys, stroke(digit), now);
        }
        pressed
    }
    /// The digit that leads out, when this is one.
    fn exit(&self, strokes: &[Stroke]) -> Option<char> {
        let context = self.visit.extras.exit.as_deref()?;
        let [stroke] = strokes else { return None };
        let digit = stroke.digit.to_char();
        self.visit.call.exists(context, &digit.to_string()).then_some(digit)
    }
    /// The other members who do not wait and of whom this is true.
    fn others(&self, is_meant: impl Fn(&Member) -> bool) -> Vec<ChannelId> {
        let own = self.chan.id();
        let is_other = |member: &&Member| member.channel != own && !member.waits && is_meant(member);
        self.chan.core(|core| {
            let members = core.conferences.of(own).into_iter().flat_map(|conference| &conference.members);
            members.filter(is_other).map(|member| member.channel).collect()
        })
    }
    /// Lets the others hear digits.
    fn pass_on(&self, strokes: &[Stroke]) {
        for other in self.others(|_| true) {
            let other = Chan::new(self.chan.shard().clone(), other);
            for stroke in strokes {
                other.pass_digit(stroke.digit, stroke.duration_ms);
            }
        }
    }
}
