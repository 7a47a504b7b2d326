//! Two channels talking: joined in the media plane, watched by one story.

use core::pin::Pin;
use core::time::Duration;
use std::collections::VecDeque;
use std::rc::Rc;

use base::{BridgeId, ChannelId, Command, Instant, PlayId};

use crate::keys::{Keys, Pressed, Pressing, Stroke};
use crate::{BridgeUse, Chan, ChanEvent, Core, Indication, Level, Prompt, Shard, Stop};

/// Names of the sounds that say how much time is left.
pub type SayRemaining = Rc<dyn Fn(Duration) -> Vec<String>>;

/// Warnings before a bridge's limit (`L(x:y:z)`).
#[derive(Clone)]
pub struct Warnings {
    /// How long before the limit the first one comes; zero: there is none.
    pub before: Duration,
    /// How often again; zero: once.
    pub every: Duration,
    /// What is said, given the time that is left.
    pub say: SayRemaining,
    /// Whether the first party hears it.
    pub to_a: bool,
    /// Whether the second party hears it.
    pub to_b: bool,
}

impl Default for Warnings {
    /// None.
    fn default() -> Self {
        let say: SayRemaining = Rc::new(|_| Vec::new());
        Self { before: Duration::ZERO, every: Duration::ZERO, say, to_a: false, to_b: false }
    }
}

/// Somebody pressed a code.
pub struct Keyed {
    /// Who.
    pub chan: Chan,
    /// Whom it talks to.
    pub other: Chan,
    /// [`Key::meaning`](crate::Key::meaning).
    pub meaning: usize,
}

/// What becomes of a conversation once a key was acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterKey {
    /// It goes on.
    Talk,
    /// Who pressed the key ends it.
    Disconnect,
}

/// Acts on keys. An error is why the story of who pressed it must stop.
pub type OnKey = Rc<dyn Fn(Keyed) -> Pin<Box<dyn Future<Output = Result<AfterKey, Stop>>>>>;

/// The variable that names a sound which a channel hears in the next bridge that it comes to.
pub const PLAY_SOUND: &str = "BRIDGE_PLAY_SOUND";

/// How long two may talk, and which keys mean something meanwhile.
#[derive(Clone, Default)]
pub struct BridgeLimits {
    /// Longest time from the join; `None`: no limit.
    pub duration: Option<Duration>,
    /// Warnings before the limit.
    pub warnings: Warnings,
    /// Keys of the first and of the second party.
    pub keys: [Keys; 2],
    /// Who acts on them; without it every key ends the conversation.
    pub on_key: Option<OnKey>,
    /// Each of the two learns who the other is once both are there.
    pub introduces: bool,
    /// The first party is in this bridge already; it learns who the second is when that has come, and is answered.
    pub within: Option<BridgeId>,
    /// Called once both are there and, where that is to be, answered.
    pub on_join: Option<Rc<dyn Fn()>>,
    /// Called when they cease to talk, while both are still there.
    pub on_end: Option<Rc<dyn Fn(BridgeEnd)>>,
}

/// Why two stopped talking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BridgeEnd {
    /// This one's story must stop.
    Stopped(ChannelId, Stop),
    /// This one ended it by a key.
    Disconnected(ChannelId),
    /// The limit was reached.
    Limit,
}

/// One learns who the other is.
async fn introduce(to: &Chan, whom: &Chan) {
    if let Ok(party) = whom.with(|c| c.caller.clone()) {
        to.connect_line(party).await;
    }
}

/// Bridges `a` and `b` until one ends, is sent elsewhere, or the limit is reached.
///
/// Digits that the media worker has not passed on itself are sent on; hold gives the other music. Neither channel is
/// hung up here. `b` is there first, then `a`.
pub async fn bridge_pair(a: &Chan, b: &Chan, limits: BridgeLimits) -> BridgeEnd {
    let shard = a.shard().clone();
    if let (Ok(Some((_, from))), Ok(Some((_, to)))) = (a.stream(), b.stream())
        && !shard.core.borrow().settings.coded.leads(from, to)
    {
        // Silence that nobody explains would be worse than an end.
        let text = format!(
            "no path to translate from {} ({from}) to {} ({to}): one of the formats can only be passed through; allow \
             ulaw or alaw for both",
            a.name(),
            b.name()
        );
        a.log(Level::Warning, "bridge", &text);
        return BridgeEnd::Disconnected(a.id());
    }
    let [keys_a, keys_b] = &limits.keys;
    let _joined =
        Joined::new(&shard, [a.id(), b.id()], [keys_a, keys_b].map(|k| !k.keys.is_empty()), limits.within);
    if limits.introduces || limits.within.is_some() {
        introduce(a, b).await;
    }
    if limits.introduces {
        introduce(b, a).await;
    }
    if limits.within.is_some() {
        // Whether it has gone meanwhile is found out below.
        let _ = a.answer();
        a.core(|core| core.bridge_of_changed(a.id()));
    }
    if let Some(on_join) = &limits.on_join {
        on_join();
    }
    let end = talk(&shard, [a, b], &limits).await;
    if let Some(on_end) = &limits.on_end {
        on_end(end);
    }
    end
}

/// What the two do until they cease to talk.
async fn talk(shard: &Rc<Shard>, [a, b]: [&Chan; 2], limits: &BridgeLimits) -> BridgeEnd {
    let [keys_a, keys_b] = &limits.keys;
    let mut clock = LimitClock::new(a.now(), limits);
    let (mut first, mut second) = (Party::new(a, keys_a), Party::new(b, keys_b));
    // Who holds while it comes here goes on holding: the other one hears so as if it had begun just now.
    let held = |party: &Party<'_>| party.chan.with(|c| c.held) == Ok(true);
    if held(&second) {
        // Who has gone meanwhile is found out below.
        let _ = pass_on(ChanEvent::Hold, &second, &mut first).await;
    }
    if held(&first) {
        let _ = pass_on(ChanEvent::Hold, &first, &mut second).await;
    }
    for party in [&mut first, &mut second] {
        // What is to be heard once it has come here: of a call that it has taken, for one.
        if let Ok(Some(sound)) = party.chan.with(|c| c.vars.remove(dialplan::Var::named(PLAY_SOUND))) {
            let _ = party.say(&[sound]).await;
        }
    }
    loop {
        let deadline = [clock.next, first.pressing.deadline(), second.pressing.deadline()];
        let heard = Chan::any(shard, &[a.id(), b.id()], deadline.into_iter().flatten().min()).await;
        let now = a.now();
        let Some((id, heard)) = heard else {
            let is_late = |party: &Party| party.pressing.deadline().is_some_and(|at| at <= now);
            let ended = if is_late(&first) {
                let pressed = first.pressing.timeout(first.keys);
                first.pressed(pressed, &mut second, limits).await
            } else if is_late(&second) {
                let pressed = second.pressing.timeout(second.keys);
                second.pressed(pressed, &mut first, limits).await
            } else {
                warn(&mut clock, limits, [&mut first, &mut second]).await
            };
            match ended {
                Ok(()) => continue,
                Err(end) => return end,
            }
        };
        let (own, other) = if id == a.id() { (&mut first, &mut second) } else { (&mut second, &mut first) };
        let ended = match heard {
            Err(stop) => Err(BridgeEnd::Stopped(id, stop)),
            Ok(ChanEvent::Digit { digit, duration_ms, relayed }) => {
                let stroke = Stroke { digit, duration_ms, relayed };
                let pressed = own.pressing.stroke(own.keys, stroke, now);
                own.pressed(pressed, other, limits).await
            }
            Ok(ChanEvent::Played { play, .. }) => {
                if own.played(play) && own.warned {
                    own.warned = false;
                    clock.said(now, limits);
                    own.chan.core(|core| core.bridge_told_anew(own.chan.id()));
                }
                Ok(())
            }
            Ok(event) => {
                pass_on(event, own, other).await.map_err(|stop| BridgeEnd::Stopped(other.chan.id(), stop))
            }
        };
        if let Err(end) = ended {
            return end;
        }
    }
}

/// The next warning, or the end.
async fn warn(
    clock: &mut LimitClock,
    limits: &BridgeLimits,
    parties: [&mut Party<'_>; 2],
) -> Result<(), BridgeEnd> {
    let now = parties[0].chan.now();
    let Some(left) = clock.advance(now) else {
        // Who was called leaves first.
        parties[1].chan.core(|core| core.goes_first(parties[1].chan.id()));
        return Err(BridgeEnd::Limit);
    };
    let names = (limits.warnings.say)(left);
    let mut is_heard = false;
    for (party, wanted) in parties.into_iter().zip([limits.warnings.to_a, limits.warnings.to_b]) {
        if wanted && !names.is_empty() {
            party.say(&names).await.map_err(|stop| BridgeEnd::Stopped(party.chan.id(), stop))?;
            party.warned = party.playing.is_some();
            is_heard |= party.warned;
            party.chan.core(|core| core.bridge_told_anew(party.chan.id()));
        }
    }
    if !is_heard {
        clock.said(now, limits);
    }
    Ok(())
}

/// What one party did, told to the other.
async fn pass_on(event: ChanEvent, own: &Party<'_>, other: &mut Party<'_>) -> Result<(), Stop> {
    match event {
        ChanEvent::Hold if other.hears_music => {}
        ChanEvent::Hold => {
            other.chan.indicate(&Indication::Hold);
            if other.chan.with(|c| c.passes_hold || c.keeps_holds)? {
                return Ok(());
            }
            let class = other.music_class(own.chan);
            other.hears_music = other.chan.start_music(&class).await?;
        }
        ChanEvent::Unhold => {
            other.end_music();
            other.chan.indicate(&Indication::Unhold);
        }
        ChanEvent::ConnectedLine(party) => other.chan.connect_line(*party).await,
        ChanEvent::Redirecting(redirecting) => other.chan.redirect_line(*redirecting).await,
        ChanEvent::Charge(advice) => other.chan.advise_charge(&advice),
        ChanEvent::Text(text) => {
            let other = other.chan;
            other.shard().with_tech(other.id(), |tech, core| tech.pass_text(core, other.id(), &text));
        }
        _ => {}
    }
    Ok(())
}

/// One of the two, with what it is made to hear beside the other.
struct Party<'a> {
    chan: &'a Chan,
    keys: &'a Keys,
    pressing: Pressing,
    hears_music: bool,
    playing: Option<PlayId>,
    to_play: VecDeque<Prompt>,
    /// What it is made to hear is a warning.
    warned: bool,
}

impl<'a> Party<'a> {
    fn new(chan: &'a Chan, keys: &'a Keys) -> Self {
        let (pressing, to_play) = (Pressing::default(), VecDeque::new());
        Self { chan, keys, pressing, hears_music: false, playing: None, to_play, warned: false }
    }
    /// What has come of its digits: they go on to the other one, or mean something.
    async fn pressed(
        &mut self,
        pressed: Pressed,
        other: &mut Party<'_>,
        limits: &BridgeLimits,
    ) -> Result<(), BridgeEnd> {
        let key = match pressed {
            Pressed::Wait => return Ok(()),
            Pressed::PassOn(strokes) => {
                for stroke in strokes {
                    match stroke.relayed {
                        true => other.chan.tell_passed(stroke.digit, stroke.duration_ms),
                        false => other.chan.pass_digit(stroke.digit, stroke.duration_ms),
                    }
                }
                return Ok(());
            }
            Pressed::Key(key) => key,
        };
        let (Some(key), Some(act)) = (self.keys.keys.get(key), &limits.on_key) else {
            return Err(BridgeEnd::Disconnected(self.chan.id()));
        };
        let stopped = |party: &Party, stop| BridgeEnd::Stopped(party.chan.id(), stop);
        let keyed = Keyed { chan: self.chan.clone(), other: other.chan.clone(), meaning: key.meaning };
        let after = other.chan.while_up(act(keyed)).await;
        let after = after.map_err(|stop| stopped(other, stop))?.map_err(|stop| stopped(self, stop))?;
        // It may have been sent elsewhere just now.
        other.chan.check().map_err(|stop| stopped(other, stop))?;
        match after {
            AfterKey::Talk => Ok(()),
            AfterKey::Disconnect => Err(BridgeEnd::Disconnected(self.chan.id())),
        }
    }
    /// The class it hears while `holder` holds it: its own when it has one, else what the holder suggests, or has itself.
    fn music_class(&self, holder: &Chan) -> String {
        let class = |chan: &Chan| chan.with(|c| c.music_class.clone()).unwrap_or_default();
        let own = class(self.chan);
        if !own.is_empty() && own != DEFAULT_MUSIC {
            return own;
        }
        let suggested = holder.with(|c| c.music_suggested.clone()).unwrap_or_default();
        if suggested.is_empty() { class(holder) } else { suggested }
    }
    fn end_music(&mut self) {
        if std::mem::take(&mut self.hears_music) {
            self.chan.stop_music();
        }
    }
    /// Says these sounds one after the other; who hears music is left alone.
    async fn say(&mut self, names: &[String]) -> Result<(), Stop> {
        if self.hears_music {
            return Ok(());
        }
        for name in names {
            self.to_play.extend(self.chan.clip(name).await?);
        }
        if self.playing.is_none() {
            self.play_next();
        }
        Ok(())
    }
    fn play_next(&mut self) {
        self.playing = self.to_play.pop_front().map(|clip| self.chan.start_clip(clip, 0));
    }
    /// One sound is over; `true` when that was the last.
    fn played(&mut self, play: PlayId) -> bool {
        if self.playing != Some(play) {
            return false;
        }
        self.play_next();
        self.playing.is_none()
    }
}

impl Drop for Party<'_> {
    fn drop(&mut self) {
        self.end_music();
        if self.playing.is_some() {
            self.chan.stop_sound();
        }
    }
}

/// The class of channels that were given none.
const DEFAULT_MUSIC: &str = "default";

/// When the next warning or the end is due.
struct LimitClock {
    end: Option<Instant>,
    next: Option<Instant>,
}

impl LimitClock {
    fn new(start: Instant, limits: &BridgeLimits) -> Self {
        let end = limits.duration.map(|limit| start + limit);
        let warning = limits.duration.zip(Some(limits.warnings.before).filter(|b| !b.is_zero()));
        let next = warning.map(|(limit, before)| start + limit.saturating_sub(before)).or(end);
        Self { end, next }
    }
    /// Goes past `next`; the time that is left, `None` when that was the end.
    fn advance(&mut self, now: Instant) -> Option<Duration> {
        let end = self.end.filter(|end| *end > now)?;
        // It is said first.
        self.next = Some(end);
        Some(end - now)
    }
    /// A warning has been said to its end: the next one is due that much later.
    fn said(&mut self, now: Instant, limits: &BridgeLimits) {
        let again = (!limits.warnings.every.is_zero()).then(|| now + limits.warnings.every);
        self.next = [again, self.end].into_iter().flatten().min();
    }
}

/// A channel is alone in the bridge of a call, until somebody comes or its story ends.
pub struct Awaiting {
    shard: Rc<Shard>,
    bridge: BridgeId,
    id: ChannelId,
}

impl Awaiting {
    /// Makes the bridge; nobody is in it.
    pub fn new(chan: &Chan) -> Self {
        let shard = chan.shard().clone();
        let bridge = shard.core.borrow_mut().bridge_create(BridgeUse::Call, "", None);
        Self { shard, bridge, id: chan.id() }
    }
    /// The channel comes to it.
    pub fn enter(&self) {
        self.shard.core.borrow_mut().bridge_enter(self.bridge, self.id);
    }
    /// For [`BridgeLimits::within`].
    pub fn bridge(&self) -> BridgeId {
        self.bridge
    }
}

impl Drop for Awaiting {
    fn drop(&mut self) {
        // The end of a conversation has done that before.
        let mut core = self.shard.core.borrow_mut();
        core.bridge_leave(self.bridge, self.id);
        core.bridge_destroy(self.bridge);
    }
}

/// The join, undone when dropped, however the story ends.
struct Joined {
    shard: Rc<Shard>,
    bridge: BridgeId,
    a: ChannelId,
    b: ChannelId,
}

impl Joined {
    /// `keyed`: whose digits are listened to.
    fn new(shard: &Rc<Shard>, [a, b]: [ChannelId; 2], keyed: [bool; 2], within: Option<BridgeId>) -> Self {
        let mut core = shard.core.borrow_mut();
        let bridge = within.unwrap_or_else(|| core.bridge_create(BridgeUse::Call, "", None));
        core.bridge_pairs(bridge, keyed.contains(&true));
        if let Some(entry) = core.bridge_mut(bridge).filter(|_| within.is_some()) {
            // Watchers see an agent's call so, whatever keys it has.
            entry.joins_natively = true;
        }
        // Who was asked for is there first, then who has asked.
        core.bridge_enter(bridge, b);
        if within.is_none() {
            core.bridge_enter(bridge, a);
        }
        for (id, keyed) in [a, b].into_iter().zip(keyed) {
            core.keep_digits(id, keyed);
            let rings = core.get_mut(id).is_some_and(|c| std::mem::take(&mut c.rings_inside));
            if let Some(stream) = core.get(id).and_then(|c| c.stream).filter(|_| rings) {
                core.media(Command::StopPlay { stream });
            }
        }
        core.join_streams(a, b);
        Self { shard: shard.clone(), bridge, a, b }
    }
}

/// What a channel in a bridge that ends is about to do: 0 go on, 1 go elsewhere, 2 end.
fn rank_of(core: &Core, id: ChannelId) -> u8 {
    match core.get(id) {
        Some(channel) if channel.hangup.is_none() => u8::from(channel.goto.is_some()),
        _ => 2,
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let mut core = self.shard.core.borrow_mut();
        // Parting one parts both; the first may be gone already.
        if !core.part_streams(self.a) {
            core.part_streams(self.b);
        }
        for id in [self.a, self.b] {
            core.keep_digits(id, false);
        }
        if core.bridge_mut(self.bridge).is_some_and(|entry| entry.is_kept) {
            return; // they are on their way to where more can talk
        }
        // Who ended it, or was sent elsewhere, goes first, but for who has sent it.
        let second_goes = match core.first_to_leave(self.bridge) {
            Some(first) => first == self.b,
            None => rank_of(&core, self.b) > rank_of(&core, self.a),
        };
        let (first, second) = if second_goes { (self.b, self.a) } else { (self.a, self.b) };
        let by = core.get(first).map(|channel| channel.hangup_by.clone()).unwrap_or_default();
        if let Some(other) = core.get_mut(second).filter(|other| other.hangup_by.is_empty()) {
            other.hangup_by = by;
        }
        core.bridge_leave(self.bridge, first);
        if rank_of(&core, second) == 1 {
            // Whoever is sent on is alone there before it goes.
            core.bridge_is_left(self.bridge);
        }
        core.bridge_leave(self.bridge, second);
        core.bridge_destroy(self.bridge);
    }
}
