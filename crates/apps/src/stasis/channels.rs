//! What programs ask of channels. Ids are UNIQUEIDs. But for [`hangup`] and what reads, all want a channel that a program has;
//! where that is not so they say `Conflict`, and `NotFound` where there is none.

use core::time::Duration;
use std::rc::Rc;

use base::{Cause, ChannelId, Command};
use call::stasis::{Digits, IfExists, LiveRecording, Order, Playback, StasisError, Target, WORKS_MAX, Work};
use call::{Chan, ChanState, Indication, Location, Quality, Shard, Transferring};
use dialplan::Rights;

use super::media;
use super::origin::check_app;
use crate::Call;

/// Most digits of one order.
const DIGITS_MAX: usize = 256;
/// Longest pause between digits, and longest digit, milliseconds.
const PAUSE_MS_MAX: u32 = 60_000;
/// Longest text that names something, bytes.
const NAME_BYTES_MAX: usize = 256;
/// Most variables that are told with one channel.
const TOLD_MAX: usize = 64;

/// Which way a channel is muted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// What its party says.
    In,
    /// What its party hears.
    Out,
    /// Both.
    #[default]
    Both,
}

impl Direction {
    /// Of its word.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "in" => Self::In,
            "out" => Self::Out,
            "both" | "" => Self::Both,
            _ => return None,
        })
    }
}

/// Where a channel goes on in the dialplan. All `None`: at the next priority.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Continue {
    /// Context; `None`: where it is.
    pub context: Option<String>,
    /// Extension; `None`: where it is.
    pub extension: Option<String>,
    /// Priority; `None`: 1 when one of the others is given.
    pub priority: Option<u32>,
    /// Label; goes before the priority.
    pub label: Option<String>,
}

/// What is to be played.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Playing {
    /// Addresses, one after the other.
    pub media: Vec<String>,
    /// Language; empty: that of who hears it.
    pub language: String,
    /// Milliseconds into the first where it begins.
    pub offset_ms: u64,
    /// Milliseconds that forward and reverse move by; `None`: 3000.
    pub skip_ms: Option<u64>,
    /// Its id; `None` makes one.
    pub id: Option<String>,
}

impl Playing {
    /// Keeps it for who is to hear it.
    pub(super) fn keep(self, core: &mut call::Core, target: Target) -> Result<Playback, StasisError> {
        media::check(&self.media)?;
        let is_long = |text: &str| text.len() > NAME_BYTES_MAX || text.chars().any(char::is_control);
        if is_long(&self.language) || self.id.as_deref().is_some_and(|id| id.is_empty() || is_long(id)) {
            return Err(StasisError::BadRequest("an id or a language is too long".into()));
        }
        let id = self.id.unwrap_or_else(|| core.stasis_new_id());
        let mut playback = Playback::new(id.into(), target, self.media);
        playback.language = match (self.language.is_empty(), &playback.target) {
            (false, _) => self.language,
            (true, Target::Channel(uniqueid)) => {
                let channel = core.stasis_channel(uniqueid).ok().and_then(|id| core.get(id));
                channel.map_or_else(|| core.settings.language.clone(), |channel| channel.language.clone())
            }
            (true, Target::Bridge(_)) => core.settings.language.clone(),
        };
        playback.offset_ms = self.offset_ms;
        playback.skip_ms = self.skip_ms.unwrap_or(playback.skip_ms);
        core.stasis_add_playback(playback)
    }
}

/// What is to be recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording {
    /// Its name, which may have folders.
    pub name: String,
    /// Its format, as files end: `wav`.
    pub format: String,
    /// Longest recording; zero: no limit.
    pub longest: Duration,
    /// Silence that ends it; zero: none does.
    pub max_silence: Duration,
    /// What happens when the file is there.
    pub if_exists: IfExists,
    /// A beep comes first.
    pub beep: bool,
    /// Digits that end it: `none`, `any`, `*` or `#`.
    pub terminate_on: String,
}

impl Recording {
    /// Its format, as files end.
    ///
    /// Errors: none that is known (`Unprocessable`).
    pub(super) fn format_of(&self, core: &call::Core) -> Result<String, StasisError> {
        let format = crate::monitor::extension(&self.format);
        let is_word = !format.is_empty() && format.chars().all(|c| c.is_ascii_alphanumeric());
        if !is_word || !core.services.recorder.knows(format) {
            return Err(StasisError::Unprocessable("The format specified is unknown on this system".into()));
        }
        Ok(format.to_owned())
    }
    /// Keeps it for who is recorded.
    pub(super) fn keep(self, core: &mut call::Core, target: Target) -> Result<LiveRecording, StasisError> {
        let path = media::recording_path(core, &self.name)?;
        let terminate_on = match self.terminate_on.as_str() {
            "" | "none" => "",
            "any" => "0123456789*#ABCD",
            "*" => "*",
            "#" => "#",
            _ => return Err(StasisError::BadRequest("terminateOn is none, any, * or #".into())),
        };
        let format = self.format_of(core)?;
        if self.if_exists == IfExists::Fail && !core.services.recorder.is_free(&path, &format) {
            return Err(StasisError::Conflict("Recording already exists and can not be overwritten".into()));
        }
        let mut recording = LiveRecording::new(self.name.into(), format, target);
        recording.longest = Some(self.longest).filter(|longest| !longest.is_zero());
        recording.max_silence = Some(self.max_silence).filter(|silence| !silence.is_zero());
        recording.if_exists = self.if_exists;
        recording.beep = self.beep;
        recording.terminate_on = terminate_on.to_owned();
        core.stasis_add_recording(recording.clone())?;
        Ok(recording)
    }
}

fn visitor(shard: &Shard, channel: &str) -> Result<ChannelId, StasisError> {
    shard.core.borrow().stasis_visitor(channel)
}

fn order(shard: &Shard, channel: &str, order: Order) -> Result<(), StasisError> {
    let mut core = shard.core.borrow_mut();
    let id = core.stasis_visitor(channel)?;
    core.stasis_order(id, order)
}

/// Answers; nothing when it is up.
pub fn answer(shard: &Rc<Shard>, channel: &str) -> Result<(), StasisError> {
    let id = visitor(shard, channel)?;
    shard.answer(id);
    Ok(())
}

/// Hangs any channel up, whoever has it. `reason` is a word (`normal`, `busy`); `code` a Q.850 cause that goes before it.
///
/// Errors: no such channel (`NotFound`), no such reason (`BadRequest`).
pub fn hangup(
    shard: &Rc<Shard>,
    channel: &str,
    reason: Option<&str>,
    code: Option<&str>,
) -> Result<(), StasisError> {
    let mut core = shard.core.borrow_mut();
    let id = core.stasis_channel(channel)?;
    let is_said = |text: Option<&str>| text.is_some_and(|text| !text.is_empty());
    if is_said(reason) && is_said(code) {
        return Err(StasisError::BadRequest("The reason and reason_code can't both be specified".into()));
    }
    let cause = match (code.filter(|code| !code.is_empty()), reason) {
        (Some(code), _) => code.parse().ok().filter(|code| *code <= 127).map(Cause),
        (None, reason) => Some(match reason.unwrap_or("normal") {
            "" | "normal" => Cause(16),
            "busy" => Cause(17),
            "congestion" => Cause(34),
            "no_answer" => Cause(19),
            "timeout" => Cause(102),
            "rejected" => Cause(21),
            "unallocated" => Cause(1),
            "normal_unspecified" => Cause(31),
            "number_incomplete" => Cause(28),
            "codec_mismatch" => Cause(58),
            "interworking" => Cause(127),
            "failure" => Cause(38),
            "answered_elsewhere" => Cause(26),
            _ => return Err(StasisError::BadRequest("Invalid Reason".into())),
        }),
    };
    let cause = cause.ok_or_else(|| StasisError::BadRequest("Invalid Reason Code".into()))?;
    core.soft_hangup(id, cause, call::SoftHangup::Explicit);
    Ok(())
}

/// Lets a channel go on in the dialplan.
///
/// Errors besides: no such label (`NotFound`).
pub fn continue_in_dialplan(shard: &Rc<Shard>, channel: &str, to: &Continue) -> Result<(), StasisError> {
    let mut core = shard.core.borrow_mut();
    let id = core.stasis_visitor(channel)?;
    if *to == Continue::default() {
        return core.stasis_order(id, Order::Continue);
    }
    let here = core.get(id).map(|channel| channel.location.clone()).unwrap_or_default();
    let given = |text: &Option<String>, here: &str| {
        text.clone().filter(|text| !text.is_empty()).unwrap_or(here.to_owned())
    };
    let (context, exten) = (given(&to.context, &here.context), given(&to.extension, &here.exten));
    let priority = match to.label.as_deref().filter(|label| !label.is_empty()) {
        Some(label) => match label.parse() {
            Ok(priority) => priority,
            Err(_) => crate::priority_of_label(&core, &context, &exten, label)
                .ok_or_else(|| StasisError::NotFound("Requested label not found".into()))?,
        },
        None => to.priority.unwrap_or(1).max(1),
    };
    core.leave_for(id, Location { context, exten, priority });
    Ok(())
}

/// Gives a channel to another program. That it is not there the first one hears by an event, and keeps the channel.
pub fn move_to(shard: &Rc<Shard>, channel: &str, app: &str, told: Vec<String>) -> Result<(), StasisError> {
    check_app(app, &told)?;
    order(shard, channel, Order::Move(app.into(), told))
}

/// Sends the other side elsewhere (`PJSIP/6002`): it is told to call there by itself.
///
/// Errors besides: no technology or resource, another technology than the channel's or one that cannot (`Unprocessable`).
pub fn redirect(shard: &Rc<Shard>, channel: &str, endpoint: &str) -> Result<(), StasisError> {
    let id = visitor(shard, channel)?;
    let bad = || StasisError::Unprocessable("Endpoint parameter does not contain tech/resource".into());
    let (tech, resource) = endpoint.split_once('/').ok_or_else(bad)?;
    if tech.is_empty() || resource.is_empty() || resource.chars().any(char::is_control) {
        return Err(bad());
    }
    let own = shard.with_tech(id, |own, _| own.names().iter().any(|name| name.eq_ignore_ascii_case(tech)));
    if own != Some(true) {
        return Err(StasisError::Unprocessable(
            "Endpoint technology does not match channel technology".into(),
        ));
    }
    match shard.with_tech(id, |own, core| own.transfer(core, id, resource)) {
        Some(Transferring::Begun) => Ok(()),
        Some(Transferring::Failed | Transferring::Unsupported) | None => {
            Err(StasisError::Unprocessable("the channel cannot be redirected".into()))
        }
    }
}

/// Tells the other side that it rings, or that it does no more; one that is up hears a tone.
pub fn ring(shard: &Rc<Shard>, channel: &str, rings: bool) -> Result<(), StasisError> {
    let id = visitor(shard, channel)?;
    let chan = Chan::new(shard.clone(), id);
    match (rings, chan.state() == ChanState::Up) {
        (true, true) => drop(chan.start_tone("ring")),
        (true, false) => chan.indicate(&Indication::Ringing),
        (false, true) => chan.stop_sound(),
        // What a phone was told it cannot be untold; it rings until something else comes.
        (false, false) => {}
    }
    Ok(())
}

/// Sends digits: 0-9 * # A-D, `w` half a second, `W` a second. Pauses and lengths are brought into their bounds.
///
/// What else is among them is left out. Errors besides: no digits, or too many (`BadRequest`).
pub fn send_digits(shard: &Rc<Shard>, channel: &str, digits: Digits) -> Result<(), StasisError> {
    let known = |symbol: &char| base::Digit::from_char(*symbol).is_some() || "wW".contains(*symbol);
    if digits.digits.is_empty() || digits.digits.len() > DIGITS_MAX {
        return Err(StasisError::BadRequest("DTMF is required".into()));
    }
    let longest = Duration::from_millis(u64::from(PAUSE_MS_MAX));
    let digits = Digits {
        digits: digits.digits.chars().filter(known).collect(),
        before: digits.before.min(longest),
        between: digits.between.min(longest),
        after: digits.after.min(longest),
        duration_ms: digits.duration_ms.clamp(call::DIGIT_MIN_MS, call::DIGIT_MAX_MS),
    };
    order(shard, channel, Order::Work(Work::Digits(digits)))
}

/// Lets no sound through, or lets it through again.
pub fn mute(shard: &Rc<Shard>, channel: &str, direction: Direction, muted: bool) -> Result<(), StasisError> {
    let mut core = shard.core.borrow_mut();
    let id = core.stasis_visitor(channel)?;
    let (heard, sent) = match direction {
        Direction::In => (Some(muted), None),
        Direction::Out => (None, Some(muted)),
        Direction::Both => (Some(muted), Some(muted)),
    };
    match core.mute(id, heard, sent) {
        true => Ok(()),
        false => Err(StasisError::Unprocessable("the channel has no media".into())),
    }
}

/// Holds the other side, or does no more.
pub fn hold(shard: &Rc<Shard>, channel: &str, holds: bool) -> Result<(), StasisError> {
    let id = visitor(shard, channel)?;
    shard.indicate(id, if holds { &Indication::Hold } else { &Indication::Unhold });
    // A phone that is not told so hears music instead.
    let is_told =
        shard.core.borrow().get(id).is_some_and(|channel| channel.passes_hold || channel.keeps_holds);
    match is_told {
        true => Ok(()),
        false => order(shard, channel, if holds { Order::Music(String::new()) } else { Order::NoMusic }),
    }
}

/// Plays music of a class while nothing else is played (`Some`; an empty one is the channel's own), or none more.
pub fn music(shard: &Rc<Shard>, channel: &str, class: Option<&str>) -> Result<(), StasisError> {
    if class.is_some_and(|class| class.len() > NAME_BYTES_MAX) {
        return Err(StasisError::BadRequest("mohClass is too long".into()));
    }
    order(shard, channel, class.map_or(Order::NoMusic, |class| Order::Music(class.to_owned())))
}

/// Sends silence while nothing else is heard, or nothing.
pub fn silence(shard: &Rc<Shard>, channel: &str, on: bool) -> Result<(), StasisError> {
    let mut core = shard.core.borrow_mut();
    let id = core.stasis_visitor(channel)?;
    let on = on || core.settings.transmit_silence;
    if let Some(stream) = core.get(id).and_then(|channel| channel.stream) {
        core.media(Command::FillSilence { stream, on });
    }
    Ok(())
}

/// Plays when what is before it is over.
///
/// Errors besides: nothing to be played (`BadRequest`), too much waits (`Internal`).
pub fn play(shard: &Rc<Shard>, channel: &str, wanted: Playing) -> Result<Playback, StasisError> {
    let mut core = shard.core.borrow_mut();
    let id = core.stasis_visitor(channel)?;
    let playback = wanted.keep(&mut core, Target::Channel(channel.into()))?;
    let ordered = core.stasis_order(id, Order::Work(Work::Play(playback.key.clone())));
    if ordered.is_err() {
        core.stasis_end_playback(&playback.key, call::stasis::PlaybackState::Failed);
    }
    ordered.map(|()| playback)
}

/// Records when what is before it is over.
///
/// Errors besides: a bad name (`BadRequest`), an unknown format (`Unprocessable`), the file is there or being written, or
/// the channel talks to others (`Conflict`), too much waits (`Internal`).
pub fn record(shard: &Rc<Shard>, channel: &str, wanted: Recording) -> Result<LiveRecording, StasisError> {
    let mut core = shard.core.borrow_mut();
    let id = core.stasis_visitor(channel)?;
    if core.stasis_bridge_of(id).is_some() {
        return Err(StasisError::Conflict("Cannot record channel while in bridge".into()));
    }
    let recording = wanted.keep(&mut core, Target::Channel(channel.into()))?;
    let ordered = core.stasis_order(id, Order::Work(Work::Record(recording.name.clone())));
    if let Err(why) = &ordered {
        let state = call::stasis::RecordingState::Failed;
        core.stasis_end_recording(&recording.name, state, why.text(), Duration::ZERO);
    }
    debug_assert!(core.stasis.recordings().count() <= call::stasis::RECORDINGS_MAX.max(WORKS_MAX));
    ordered.map(|()| recording)
}

/// Refuses a name that is none.
fn named(name: &str) -> Result<(), StasisError> {
    match name.is_empty() || name.len() > NAME_BYTES_MAX * 4 {
        true => Err(StasisError::BadRequest("Variable name is required".into())),
        false => Ok(()),
    }
}

/// A channel's variable or function, read with these rights.
///
/// Errors besides: there is no such variable (`NotFound`), the function is none or may not be read (`Internal`).
pub fn channel_variable(
    shard: &Rc<Shard>,
    channel: &str,
    name: &str,
    rights: Rights,
) -> Result<String, StasisError> {
    let id = visitor(shard, channel)?;
    named(name)?;
    let call = Call::new(Chan::new(shard.clone(), id)).with_rights(rights);
    if name.ends_with(')') {
        let found = call.read_if_can(name);
        return found.ok_or_else(|| StasisError::Internal("Unable to read provided function".into()));
    }
    call.get(name).ok_or_else(|| StasisError::NotFound("Provided variable was not found".into()))
}

/// Sets a channel's variable, or writes a function, with these rights; what may not be written so is logged and left.
/// `is_told` says whether it is told with the channel from here on; `None`: as before.
pub fn set_channel_variable(
    shard: &Rc<Shard>,
    channel: &str,
    (name, value): (&str, &str),
    is_told: Option<bool>,
    rights: Rights,
) -> Result<(), StasisError> {
    let id = visitor(shard, channel)?;
    named(name)?;
    tell_with(&mut shard.core.borrow_mut(), id, name, is_told);
    let call = Call::new(Chan::new(shard.clone(), id)).with_rights(rights);
    if name.ends_with(')') {
        call.assign(name, value);
    } else {
        call.set(name, value);
    }
    Ok(())
}

/// A variable is told with its channel from here on, or no more.
pub(super) fn tell_with(core: &mut call::Core, id: ChannelId, name: &str, is_told: Option<bool>) {
    let (Some(channel), Some(is_told)) = (core.get_mut(id), is_told) else { return };
    let name = name.trim_start_matches('_');
    if !is_told {
        channel.reported.remove(name);
    } else if channel.reported.len() < TOLD_MAX {
        channel.reported.insert(name.to_owned());
    }
}

/// What is known of a channel's RTP: the totals of the last report or answer; newer ones are asked for and will be known
/// the next time.
///
/// Errors: no such channel (`NotFound`), it has no RTP (`Forbidden`).
pub fn rtp_statistics(shard: &Rc<Shard>, channel: &str) -> Result<Quality, StasisError> {
    let mut core = shard.core.borrow_mut();
    let id = core.stasis_channel(channel)?;
    let found = core.get(id).filter(|channel| channel.rtp_digits.is_some());
    let found = found.map(|channel| (channel.stream, channel.quality.as_deref().copied()));
    let Some((Some(stream), known)) = found else {
        return Err(StasisError::Forbidden("RTP not found".into()));
    };
    core.media(Command::Stats { stream });
    Ok(known.unwrap_or_default())
}
