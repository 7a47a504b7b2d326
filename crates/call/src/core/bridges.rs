//! The slab of bridges: who is in which, and what watchers and dialplans are told of it.

use std::rc::Rc;

use base::{BridgeId, ChannelId, Instant};
use dialplan::{Inherit, Var};

use super::{Advance, Core};
use crate::conference::VideoSeen;
use crate::{BridgeSnapshot, BridgeUse, CelKind, Notice, VideoChoice, bridge_name};

/// The variable with the name of the channel that sent the call on to this one.
pub const FORWARDER_NAME: &str = "FORWARDERNAME";

/// Somebody in a bridge who is no channel here.
pub(crate) struct BridgeGuest {
    pub(crate) name: Rc<str>,
    /// By which it is as old as channels are.
    pub(crate) uniqueid: Rc<str>,
}

/// Most names in `BRIDGEPEER`, as in the field.
const PEERS_MAX: usize = 10;

pub(crate) struct Bridge {
    generation: u32,
    pub(crate) members: Vec<ChannelId>,
    /// Names of those in it that are no channels here: who announces, records or plays music.
    guests: Vec<BridgeGuest>,
    pub(crate) alive: bool,
    /// It goes on when the two who talk in it are taken out of their story: more come.
    pub(crate) is_kept: bool,
    /// Two talk in it and nobody else; whether their digits are waited for.
    pub(crate) pair: Option<bool>,
    /// The two may be a native pair although their digits are waited for.
    pub(crate) joins_natively: bool,
    /// A guest has just left two who may be a native pair again in a moment.
    settles: bool,
    /// What it is for.
    used_for: BridgeUse,
    /// Its name; empty: it has none.
    name: Rc<str>,
    /// Its id, as every interface shows it.
    uid: Rc<str>,
    /// How its channels are joined, in the field's word.
    technology: &'static str,
    /// How whose video is seen has been chosen in it, where its use does not say.
    seen: Option<VideoSeen>,
    /// UNIQUEID of who is seen.
    source: Option<Rc<str>>,
    created: Instant,
    /// Who leaves before the other one when it ends: it has sent that one elsewhere.
    leaves_first: Option<ChannelId>,
}

impl Bridge {
    /// How many are in it.
    fn all(&self) -> usize {
        self.members.len() + self.guests.len()
    }
}

impl Core {
    /// Makes a bridge. `uid` is its id when a program gives it one.
    pub(crate) fn bridge_create(&mut self, used_for: BridgeUse, name: &str, uid: Option<&str>) -> BridgeId {
        let slot = self.free_bridges.pop().unwrap_or_else(|| {
            self.bridges.push(Bridge {
                generation: 0,
                members: Vec::new(),
                guests: Vec::new(),
                alive: false,
                is_kept: false,
                pair: None,
                joins_natively: false,
                settles: false,
                used_for,
                name: Rc::from(""),
                uid: Rc::from(""),
                technology: used_for.technology(0),
                seen: None,
                source: None,
                created: Instant::ZERO,
                leaves_first: None,
            });
            u32::try_from(self.bridges.len() - 1).unwrap_or(u32::MAX)
        });
        let now = self.now;
        let Some(entry) = self.bridges.get_mut(slot as usize) else { return BridgeId::new(slot, 0) };
        let bridge = BridgeId::new(slot, entry.generation);
        entry.created = now;
        (entry.alive, entry.is_kept, entry.pair, entry.used_for) = (true, false, None, used_for);
        (entry.joins_natively, entry.settles, entry.leaves_first) = (false, false, None);
        entry.guests.clear();
        (entry.seen, entry.source) = (None, None);
        entry.technology = used_for.technology(0);
        entry.name = name.into();
        entry.uid = uid.map_or_else(|| bridge_name(bridge).into(), Rc::from);
        self.notice(|core| Some(Notice::BridgeCreate { bridge: core.bridge_snapshot(bridge)? }));
        bridge
    }
    /// A bridge as it is, for a notice.
    pub fn bridge_snapshot(&self, bridge: BridgeId) -> Option<BridgeSnapshot> {
        let entry = self.bridge_entry(bridge)?;
        Some(BridgeSnapshot {
            id: bridge,
            uid: entry.uid.clone(),
            used_for: entry.used_for,
            technology: entry.technology,
            name: entry.name.clone(),
            count: entry.all(),
            video_mode: entry.seen.map_or(entry.used_for.video_mode(), VideoSeen::spell),
            video_source: entry.source.clone(),
        })
    }
    /// How whose video is seen in a bridge of programs is chosen anew.
    pub(crate) fn bridge_sees(&mut self, bridge: BridgeId, seen: VideoChoice) {
        if let Some(BridgeUse::Program { video, .. }) =
            self.bridge_mut(bridge).map(|entry| &mut entry.used_for)
        {
            *video = seen;
        }
    }
    /// How whose video is seen is chosen in a conference.
    pub(crate) fn bridge_shows(&mut self, bridge: BridgeId, seen: VideoSeen, source: Option<Rc<str>>) {
        if let Some(entry) = self.bridge_mut(bridge) {
            (entry.seen, entry.source) = (Some(seen), source);
        }
    }
    /// The bridge of this id, as [`BridgeSnapshot::uid`] has it.
    pub fn bridge_by_uid(&self, uid: &str) -> Option<BridgeId> {
        self.alive_bridges().find(|(_, entry)| *entry.uid == *uid).map(|(id, _)| id)
    }
    /// Chooses how the channels of a bridge are joined: two that carry RTP and share format and kind of digits, and of which
    /// nobody listens to anything, are a native pair in the field's words. `true`: it is another one from here on.
    fn bridge_chooses(&mut self, bridge: BridgeId) -> bool {
        let Some(entry) = self.bridge_entry(bridge) else { return false };
        let technology = match (entry.pair, entry.members.as_slice()) {
            _ if !entry.guests.is_empty() || entry.used_for.sees_all() => {
                entry.used_for.technology(entry.all())
            }
            (Some(waits), &[a, b]) if (!waits || entry.joins_natively) && self.is_native_pair(a, b) => {
                "native_rtp"
            }
            (Some(_), members) => entry.used_for.technology(members.len().min(2)),
            (None, members) => entry.used_for.technology(members.len()),
        };
        let Some(entry) = self.bridge_mut(bridge) else { return false };
        std::mem::replace(&mut entry.technology, technology) != technology
    }
    /// Whether a channel and another one hear each other without anybody between them, so that nobody hears of digits.
    pub(crate) fn is_in_native_pair(&self, id: ChannelId) -> bool {
        let bridge = self.get(id).and_then(|channel| channel.bridge);
        bridge.and_then(|bridge| self.bridge_entry(bridge)).is_some_and(|entry| {
            let waits = entry.used_for == BridgeUse::Call && entry.pair != Some(false);
            entry.technology == "native_rtp" && !waits
        })
    }
    fn is_native_pair(&self, a: ChannelId, b: ChannelId) -> bool {
        let (Some(one), Some(two)) = (self.get(a), self.get(b)) else { return false };
        let digits = |channel: &crate::Channel| channel.rtp_digits.map(|mode| core::mem::discriminant(&mode));
        digits(one).is_some()
            && digits(one) == digits(two)
            && one.format == two.format
            && !one.engaged.is_busy_beside_room()
            && !two.engaged.is_busy_beside_room()
    }
    /// What is in a bridge, or who listens to it, has changed: its channels are told whom they talk to (`BRIDGEPEER`), as
    /// often as the field does, which begins anew with another technology.
    pub(crate) fn bridge_changed(&mut self, bridge: BridgeId) {
        self.tell_peers(bridge);
        self.bridge_rechosen(bridge);
    }
    /// How the channels of a bridge are joined is chosen anew; with another technology they are told twice more.
    pub(crate) fn bridge_rechosen(&mut self, bridge: BridgeId) {
        if !self.bridge_chooses(bridge) {
            return;
        }
        // Those whom a guest has left are joined once: what they listened to besides ends a moment later.
        let settles = self.bridge_mut(bridge).is_some_and(|entry| {
            std::mem::replace(&mut entry.settles, false) && entry.technology == "native_rtp"
        });
        if !settles {
            self.tell_peers(bridge);
            self.tell_peers(bridge);
        }
    }
    /// One of a native pair hears something here: both are told whom they talk to, as when that is over.
    pub(crate) fn bridge_told_anew(&mut self, id: ChannelId) {
        if self.is_in_native_pair(id)
            && let Some(bridge) = self.get(id).and_then(|channel| channel.bridge)
        {
            self.tell_peers(bridge);
        }
    }
    /// Somebody comes to a bridge who is no channel here, and is seen by its name.
    pub(crate) fn guest_enters(&mut self, bridge: BridgeId, guest: BridgeGuest) {
        if let Some(entry) = self.bridge_mut(bridge) {
            entry.guests.push(guest);
            entry.settles = false;
            self.bridge_changed(bridge);
        }
    }
    /// It leaves.
    pub(crate) fn guest_leaves(&mut self, bridge: BridgeId, name: &str) {
        if let Some(entry) = self.bridge_mut(bridge) {
            entry.guests.retain(|guest| *guest.name != *name);
            self.bridge_changed(bridge);
            if let Some(entry) = self.bridge_mut(bridge) {
                entry.settles = entry.guests.is_empty() && entry.members.len() == 2;
            }
        }
    }
    /// The same for the bridge that a channel is in, if it is in one: its media was agreed on anew, for one.
    pub fn bridge_of_changed(&mut self, id: ChannelId) {
        if let Some(bridge) = self.get(id).and_then(|channel| channel.bridge) {
            self.bridge_changed(bridge);
        }
    }
    /// The same after one has taken the place of another, whose technology is nobody's any more.
    pub(crate) fn bridge_changed_anew(&mut self, bridge: BridgeId) {
        if let Some(entry) = self.bridge_mut(bridge) {
            entry.technology = entry.used_for.technology(entry.members.len());
        }
        self.bridge_changed(bridge);
    }
    /// One of two has left a bridge for good, and the other one is about to.
    pub(crate) fn bridge_is_left(&mut self, bridge: BridgeId) {
        if let Some(entry) = self.bridge_mut(bridge) {
            entry.technology = entry.used_for.technology(1);
        }
    }
    /// The bridge that a channel is in, for a notice.
    pub fn bridge_around(&self, id: ChannelId) -> Option<BridgeSnapshot> {
        self.bridge_snapshot(self.get(id)?.bridge?)
    }
    /// A party's media was agreed upon anew: all in its bridge are told whom they talk to, once more when the format is another,
    /// as the bridge is made anew for it. Hold and its end tell it by themselves.
    pub fn media_renewed(&mut self, id: ChannelId, is_hold: bool, is_other_format: bool) {
        let Some(bridge) = self.get(id).and_then(|channel| channel.bridge) else { return };
        for _ in 0..usize::from(!is_hold) + 2 * usize::from(is_other_format) {
            self.tell_peers(bridge);
        }
    }
    pub(super) fn tell_peers(&mut self, bridge: BridgeId) {
        let Some(entry) = self.bridge_mut(bridge) else { return };
        let all = entry.all();
        if entry.technology == "holding_bridge" || all < 2 {
            return;
        }
        let members = entry.members.clone();
        let guests: Vec<Rc<str>> = entry.guests.iter().map(|guest| guest.name.clone()).collect();
        for id in &members {
            let others = members.iter().filter(|other| *other != id).filter_map(|other| self.get(*other));
            let others: Vec<_> = others.map(|other| (other.name.clone(), other.call_id.clone())).collect();
            let call = match others.as_slice() {
                [(_, call)] if all == 2 => call.clone(),
                _ => Rc::from(""),
            };
            let mut names = guests.clone();
            names.extend(others.into_iter().map(|(name, _)| name));
            names.truncate(PEERS_MAX);
            let names = names.join(",");
            self.set_variable(*id, "BRIDGEPEER", &names);
            self.set_unless_empty(*id, "BRIDGEPVTCALLID", &call);
        }
    }
    /// Sets a variable of a channel; an empty value takes it away, and is not told when there was none.
    fn set_unless_empty(&mut self, id: ChannelId, name: &str, value: &str) {
        let has = self.get(id).is_some_and(|channel| channel.vars.get_name(name).is_some());
        if has || !value.is_empty() {
            self.set_variable(id, name, value);
        }
    }
    /// Sets a variable of a channel and tells watchers; an empty value takes it away.
    pub fn set_variable(&mut self, id: ChannelId, name: &str, value: &str) {
        let Some(channel) = self.get_mut(id) else { return };
        let (inherit, bare) = Inherit::strip(name);
        if value.is_empty() {
            channel.vars.remove(Var::named(bare));
        } else {
            channel.vars.set(Var::named(bare), value, inherit);
        }
        self.notice(|core| {
            Some(Notice::VarSet {
                channel: Some(core.snapshot(id)?),
                variable: name.to_owned(),
                value: value.to_owned(),
            })
        });
    }
    /// Whoever was sent to somebody has arrived: who sent it is of no use any more.
    pub(crate) fn forget_transfer(&mut self, id: ChannelId) {
        for name in ["BLINDTRANSFER", "ATTENDEDTRANSFER", FORWARDER_NAME] {
            let is_set =
                |channel: &crate::Channel| channel.vars.get_name(name).is_some_and(|by| !by.is_empty());
            if self.get(id).is_some_and(is_set) {
                self.set_variable(id, name, "");
            }
        }
    }
    /// A channel has sent whom it talks to elsewhere: it talks to nobody any more, and leaves first.
    pub fn leave_first(&mut self, id: ChannelId) {
        self.forget_peers(id);
        self.goes_first(id);
    }
    /// A channel leaves its bridge before the other one, when that ends.
    pub(crate) fn goes_first(&mut self, id: ChannelId) {
        let bridge = self.get(id).and_then(|channel| channel.bridge);
        if let Some(entry) = bridge.and_then(|bridge| self.bridge_mut(bridge)) {
            entry.leaves_first = Some(id);
        }
    }
    /// Who is to leave a bridge before the other one, if that is said.
    pub(crate) fn first_to_leave(&self, bridge: BridgeId) -> Option<ChannelId> {
        self.bridge_entry(bridge).and_then(|entry| entry.leaves_first)
    }
    /// A channel talks to nobody any more.
    pub(crate) fn forget_peers(&mut self, id: ChannelId) {
        self.set_unless_empty(id, "BRIDGEPEER", "");
        self.set_unless_empty(id, "BRIDGEPVTCALLID", "");
    }
    pub(crate) fn bridge_enter(&mut self, bridge: BridgeId, id: ChannelId) {
        self.show_changes(id);
        let Some(entry) = self.bridge_mut(bridge) else { return };
        entry.members.push(id);
        let count = entry.members.len();
        self.entries = self.entries.wrapping_add(1);
        if let Some(channel) = self.get_mut(id) {
            channel.bridge = Some(bridge);
        }
        self.regroup(id);
        if !self.bridge_holds(bridge) {
            self.cdr_enter(bridge, id);
        }
        self.advance(id, Advance::Connected);
        let is_another = count > 2 && self.bridge_chooses(bridge);
        if self.bridge_entry(bridge).is_some_and(|entry| entry.used_for != BridgeUse::Conference) {
            self.link_bridge(bridge);
        }
        self.notice(|core| {
            Some(Notice::BridgeEnter {
                bridge: core.bridge_snapshot(bridge)?,
                channel: core.snapshot(id)?,
                instead_of: None,
            })
        });
        self.forget_transfer(id);
        self.log_bridge(CelKind::BridgeEnter, bridge, id);
        self.stasis_entered(bridge, id);
        self.bridge_changed(bridge);
        if is_another {
            self.tell_peers(bridge);
            self.tell_peers(bridge);
        }
        self.hold_changes(bridge, id);
    }
    /// Somebody has come to a bridge or left it: who is held there is another one.
    fn hold_changes(&mut self, bridge: BridgeId, id: ChannelId) {
        let holds = |core: &Self, id| core.get(id).is_some_and(|channel| channel.held);
        if holds(self, id) || self.bridge_members(bridge).iter().any(|member| holds(self, *member)) {
            self.touch_device(id);
            self.touch_bridge(bridge);
        }
    }
    /// Whether the other one in a bridge of two has put this channel on hold.
    pub fn is_on_hold(&self, id: ChannelId) -> bool {
        let members =
            self.get(id).and_then(|channel| channel.bridge).map(|bridge| self.bridge_members(bridge));
        match members {
            Some(&[a, b]) => self.get(if a == id { b } else { a }).is_some_and(|other| other.held),
            _ => false,
        }
    }
    pub(crate) fn bridge_leave(&mut self, bridge: BridgeId, id: ChannelId) {
        let Some(entry) = self.bridge_mut(bridge) else { return };
        if !entry.members.contains(&id) {
            return; // it was taken out before
        }
        let before = entry.all();
        let members = entry.members.clone();
        entry.members.retain(|member| *member != id);
        let is_of_call = entry.used_for == BridgeUse::Call;
        // With the first of two the other one, too, talks to nobody: such a call is over.
        self.forget_peers(id);
        if let ([a, b], true) = (members.as_slice(), is_of_call) {
            self.forget_peers(if *a == id { *b } else { *a });
        }
        if let Some(channel) = self.get_mut(id) {
            channel.bridge = None;
        }
        if !self.bridge_holds(bridge) {
            self.cdr_leave(bridge, id);
        }
        self.regroup(id);
        self.notice(|core| {
            Some(Notice::BridgeLeave { bridge: core.bridge_snapshot(bridge)?, channel: core.snapshot(id)? })
        });
        self.log_bridge(CelKind::BridgeExit, bridge, id);
        if before > 2 {
            self.bridge_changed(bridge);
        }
        self.hold_changes(bridge, id);
    }
    /// Two bridges change what they are called; who is in them stays.
    pub(crate) fn exchange_bridges(&mut self, a: BridgeId, b: BridgeId) {
        let named = |core: &mut Self, id| {
            core.bridge_mut(id).map(|entry| (entry.uid.clone(), entry.name.clone(), entry.technology))
        };
        let (Some(first), Some(second)) = (named(self, a), named(self, b)) else { return };
        for (id, (uid, name, technology)) in [(a, second), (b, first)] {
            if let Some(entry) = self.bridge_mut(id) {
                (entry.uid, entry.name, entry.technology) = (uid, name, technology);
            }
        }
    }
    /// Takes a channel out of a bridge; whoever calls this tells watchers.
    pub(crate) fn forget_member(&mut self, bridge: BridgeId, id: ChannelId) {
        if let Some(entry) = self.bridge_mut(bridge) {
            entry.members.retain(|member| *member != id);
        }
        if let Some(channel) = self.get_mut(id) {
            channel.bridge = None;
        }
        self.regroup(id);
        self.hold_changes(bridge, id);
    }
    pub(crate) fn bridge_destroy(&mut self, bridge: BridgeId) {
        let Some(mut shown) = self.bridge_snapshot(bridge) else { return };
        shown.count = 0;
        if let Some(entry) = self.bridge_mut(bridge) {
            entry.alive = false;
            entry.generation = entry.generation.wrapping_add(1);
            entry.members.clear();
            self.free_bridges.push(bridge.slot);
            self.notice(|_| Some(Notice::BridgeDestroy { bridge: shown }));
        }
    }
    /// The bridge in which channels wait, which is made when it is not there.
    pub fn hold_open(&mut self, used_for: BridgeUse, name: &str) -> BridgeId {
        let found =
            self.alive_bridges().find(|(_, entry)| entry.used_for == used_for && *entry.name == *name);
        match found.map(|(bridge, _)| bridge) {
            Some(bridge) => bridge,
            None => self.bridge_create(used_for, name, None),
        }
    }
    /// A channel waits with others, each for somebody: watchers see them in a bridge, which is made for the first. They talk
    /// to nobody there, so it is not the bridge of the channel.
    pub fn hold_enter(&mut self, used_for: BridgeUse, name: &str, id: ChannelId) {
        let bridge = self.hold_open(used_for, name);
        let Some(entry) = self.bridge_mut(bridge).filter(|entry| !entry.members.contains(&id)) else {
            return;
        };
        entry.members.push(id);
        self.notice(|core| {
            Some(Notice::BridgeEnter {
                bridge: core.bridge_snapshot(bridge)?,
                channel: core.snapshot(id)?,
                instead_of: None,
            })
        });
        self.log_bridge(CelKind::BridgeEnter, bridge, id);
        self.forget_transfer(id);
    }
    /// It waits there no more. The bridges of agents and of parking lots stay.
    pub fn hold_leave(&mut self, id: ChannelId) {
        let waits = |entry: &Bridge| {
            matches!(entry.used_for, BridgeUse::Agents | BridgeUse::Parking | BridgeUse::Waiting)
                && entry.members.contains(&id)
        };
        let Some(bridge) = self.alive_bridges().find(|(_, entry)| waits(entry)).map(|(bridge, _)| bridge)
        else {
            return;
        };
        let Some(entry) = self.bridge_mut(bridge) else { return };
        entry.members.retain(|member| *member != id);
        let is_over = entry.members.is_empty() && entry.used_for == BridgeUse::Waiting;
        self.notice(|core| {
            Some(Notice::BridgeLeave { bridge: core.bridge_snapshot(bridge)?, channel: core.snapshot(id)? })
        });
        self.log_bridge(CelKind::BridgeExit, bridge, id);
        if is_over {
            self.bridge_destroy(bridge);
        }
    }
    /// Whether those who are in a bridge wait there and do not talk to each other.
    pub(crate) fn bridge_holds(&self, bridge: BridgeId) -> bool {
        self.bridge_entry(bridge).is_none_or(|entry| entry.technology == "holding_bridge")
    }
    /// The bridge that two talk in goes on with them when their story lets go of them; whether it is one.
    pub fn bridge_keep(&mut self, id: ChannelId, kept: bool) -> Option<BridgeId> {
        let bridge = self.get(id)?.bridge?;
        let entry = self.bridge_mut(bridge).filter(|entry| entry.used_for == BridgeUse::Call)?;
        entry.is_kept = kept;
        Some(bridge)
    }
    /// Whether digits are waited for in a bridge of two; `None` for any other bridge.
    pub(crate) fn bridge_pair(&self, bridge: BridgeId) -> Option<bool> {
        self.bridge_entry(bridge).and_then(|entry| entry.pair)
    }
    fn bridge_entry(&self, bridge: BridgeId) -> Option<&Bridge> {
        self.bridges.get(bridge.slot as usize).filter(|b| b.alive && b.generation == bridge.generation)
    }
    pub(crate) fn bridge_mut(&mut self, bridge: BridgeId) -> Option<&mut Bridge> {
        self.bridges.get_mut(bridge.slot as usize).filter(|b| b.alive && b.generation == bridge.generation)
    }
    /// Those in it who are no channels.
    pub(crate) fn bridge_guests(&self, bridge: BridgeId) -> &[BridgeGuest] {
        self.bridge_entry(bridge).map_or(&[], |entry| &entry.guests)
    }
    /// Names of those in it who are no channels: who announces, records or plays music.
    pub fn bridge_guest_names(&self, bridge: BridgeId) -> impl Iterator<Item = &str> {
        self.bridge_guests(bridge).iter().map(|guest| &*guest.name)
    }
    /// Channels in a bridge.
    pub fn bridge_members(&self, bridge: BridgeId) -> &[ChannelId] {
        self.bridge_entry(bridge).map_or(&[], |entry| &entry.members)
    }
    /// Its name, empty when it has none, and since when it is there.
    pub fn bridge_since(&self, bridge: BridgeId) -> Option<(Rc<str>, Instant)> {
        self.bridge_entry(bridge).map(|entry| (entry.name.clone(), entry.created))
    }
    /// UNIQUEIDs of the channels in a bridge, in the order in which they came.
    pub fn bridge_uniqueids(&self, bridge: BridgeId) -> Vec<Rc<str>> {
        let members = self.bridge_members(bridge).iter().filter_map(|id| self.get(*id));
        members.map(|channel| channel.uniqueid.clone()).collect()
    }
    /// All bridges.
    pub fn bridges(&self) -> impl Iterator<Item = (BridgeId, &[ChannelId])> {
        self.alive_bridges().map(|(id, entry)| (id, entry.members.as_slice()))
    }
    fn alive_bridges(&self) -> impl Iterator<Item = (BridgeId, &Bridge)> {
        self.bridges.iter().enumerate().filter(|(_, entry)| entry.alive).map(|(slot, entry)| {
            (BridgeId::new(u32::try_from(slot).unwrap_or(u32::MAX), entry.generation), entry)
        })
    }
}
