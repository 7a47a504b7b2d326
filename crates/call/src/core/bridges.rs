//! The slab of bridges: who is in which, and what watchers and dialplans are told of it.

use std::rc::Rc;

use base::{BridgeId, ChannelId};
use dialplan::{Inherit, Var};

use super::{Advance, Core};
use crate::{BridgeSnapshot, BridgeUse, CelKind, Notice, bridge_name};

/// Most names in `BRIDGEPEER`, as in the field.
const PEERS_MAX: usize = 10;

pub(crate) struct Bridge {
    generation: u32,
    pub(crate) members: Vec<ChannelId>,
    pub(crate) alive: bool,
    /// Two talk in it and nobody else; whether their digits are waited for.
    pub(crate) pair: Option<bool>,
    /// What it is for.
    used_for: BridgeUse,
    /// Its name; empty: it has none.
    name: Rc<str>,
    /// Its id, as every interface shows it.
    uid: Rc<str>,
    /// How its channels are joined, in the field's word.
    technology: &'static str,
}

impl Core {
    /// Makes a bridge. `uid` is its id when a program gives it one.
    pub(crate) fn bridge_create(&mut self, used_for: BridgeUse, name: &str, uid: Option<&str>) -> BridgeId {
        let slot = self.free_bridges.pop().unwrap_or_else(|| {
            self.bridges.push(Bridge {
                generation: 0,
                members: Vec::new(),
                alive: false,
                pair: None,
                used_for,
                name: Rc::from(""),
                uid: Rc::from(""),
                technology: used_for.technology(0),
            });
            u32::try_from(self.bridges.len() - 1).unwrap_or(u32::MAX)
        });
        let Some(entry) = self.bridges.get_mut(slot as usize) else { return BridgeId::new(slot, 0) };
        let bridge = BridgeId::new(slot, entry.generation);
        (entry.alive, entry.pair, entry.used_for) = (true, None, used_for);
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
            count: entry.members.len(),
        })
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
            (Some(false), &[a, b]) if self.is_native_pair(a, b) => "native_rtp",
            (Some(_), members) => entry.used_for.technology(members.len().min(2)),
            (None, members) => entry.used_for.technology(members.len()),
        };
        let Some(entry) = self.bridge_mut(bridge) else { return false };
        std::mem::replace(&mut entry.technology, technology) != technology
    }
    /// Whether a channel and another one hear each other without anybody between them, so that nobody hears of digits.
    pub(crate) fn is_in_native_pair(&self, id: ChannelId) -> bool {
        let bridge = self.get(id).and_then(|channel| channel.bridge);
        bridge
            .and_then(|bridge| self.bridge_entry(bridge))
            .is_some_and(|entry| entry.technology == "native_rtp")
    }
    fn is_native_pair(&self, a: ChannelId, b: ChannelId) -> bool {
        let (Some(one), Some(two)) = (self.get(a), self.get(b)) else { return false };
        let digits = |channel: &crate::Channel| channel.rtp_digits.map(|mode| core::mem::discriminant(&mode));
        digits(one).is_some()
            && digits(one) == digits(two)
            && one.format == two.format
            && !self.is_overheard(a)
            && !self.is_overheard(b)
    }
    /// What is in a bridge, or who listens to it, has changed: its channels are told whom they talk to (`BRIDGEPEER`), as
    /// often as the field does, which begins anew with another technology.
    pub(crate) fn bridge_changed(&mut self, bridge: BridgeId) {
        self.tell_peers(bridge);
        if self.bridge_chooses(bridge) && self.bridge_members(bridge).len() == 2 {
            self.tell_peers(bridge);
            self.tell_peers(bridge);
        }
    }
    /// The same for the bridge that a channel is in, if it is in one.
    pub(crate) fn bridge_of_changed(&mut self, id: ChannelId) {
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
    pub(super) fn tell_peers(&mut self, bridge: BridgeId) {
        let Some(entry) = self.bridge_mut(bridge) else { return };
        if entry.technology == "holding_bridge" || entry.members.len() < 2 {
            return;
        }
        let members = entry.members.clone();
        for id in &members {
            let others = members.iter().filter(|other| *other != id).filter_map(|other| self.get(*other));
            let mut names = String::new();
            let mut call = Rc::from("");
            for other in others.take(PEERS_MAX) {
                if !names.is_empty() {
                    names.push(',');
                }
                names.push_str(&other.name);
                call = other.call_id.clone();
            }
            if members.len() > 2 {
                call = Rc::from("");
            }
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
        for name in ["BLINDTRANSFER", "ATTENDEDTRANSFER"] {
            let is_set =
                |channel: &crate::Channel| channel.vars.get_name(name).is_some_and(|by| !by.is_empty());
            if self.get(id).is_some_and(is_set) {
                self.set_variable(id, name, "");
            }
        }
    }
    /// A channel talks to nobody any more.
    pub(crate) fn forget_peers(&mut self, id: ChannelId) {
        self.set_unless_empty(id, "BRIDGEPEER", "");
        self.set_unless_empty(id, "BRIDGEPVTCALLID", "");
    }
    pub(crate) fn bridge_enter(&mut self, bridge: BridgeId, id: ChannelId) {
        let Some(entry) = self.bridge_mut(bridge) else { return };
        entry.members.push(id);
        let count = entry.members.len();
        self.entries = self.entries.wrapping_add(1);
        if let Some(channel) = self.get_mut(id) {
            channel.bridge = Some(bridge);
        }
        self.regroup(id);
        self.note_talk(id, false);
        self.advance(id, Advance::Connected);
        if count > 2 {
            self.bridge_chooses(bridge);
        }
        self.link_bridge(bridge);
        self.notice(|core| {
            Some(Notice::BridgeEnter {
                bridge: core.bridge_snapshot(bridge)?,
                channel: core.snapshot(id)?,
                instead_of: None,
            })
        });
        self.forget_transfer(id);
        self.log_bridge(CelKind::BridgeEnter, bridge, id);
        self.bridge_changed(bridge);
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
        let members = entry.members.clone();
        entry.members.retain(|member| *member != id);
        // With the first of two the other one, too, talks to nobody.
        self.forget_peers(id);
        if let [a, b] = members.as_slice() {
            self.forget_peers(if *a == id { *b } else { *a });
        }
        if let Some(channel) = self.get_mut(id) {
            channel.bridge = None;
        }
        self.note_talk(id, true);
        self.regroup(id);
        self.notice(|core| {
            Some(Notice::BridgeLeave { bridge: core.bridge_snapshot(bridge)?, channel: core.snapshot(id)? })
        });
        self.log_bridge(CelKind::BridgeExit, bridge, id);
        if members.len() > 2 {
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
    /// Channels in a bridge.
    pub fn bridge_members(&self, bridge: BridgeId) -> &[ChannelId] {
        self.bridge_entry(bridge).map_or(&[], |entry| &entry.members)
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
