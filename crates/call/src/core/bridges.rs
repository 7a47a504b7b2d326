//! The slab of bridges: who is in which.

use base::{BridgeId, ChannelId};

use super::{Advance, Core};
use crate::{CelKind, Notice};

pub(crate) struct Bridge {
    generation: u32,
    pub(crate) members: Vec<ChannelId>,
    pub(crate) alive: bool,
    /// Two talk in it and nobody else; whether their digits are waited for.
    pub(crate) pair: Option<bool>,
}

impl Core {
    pub(crate) fn bridge_create(&mut self, creator: &'static str) -> BridgeId {
        let slot = self.free_bridges.pop().unwrap_or_else(|| {
            self.bridges.push(Bridge { generation: 0, members: Vec::new(), alive: false, pair: None });
            u32::try_from(self.bridges.len() - 1).unwrap_or(u32::MAX)
        });
        let generation = self.bridges.get_mut(slot as usize).map_or(0, |bridge| {
            (bridge.alive, bridge.pair) = (true, None);
            bridge.generation
        });
        let bridge = BridgeId::new(slot, generation);
        self.notice(|_| Some(Notice::BridgeCreate { bridge, creator }));
        bridge
    }
    pub(crate) fn bridge_enter(&mut self, bridge: BridgeId, id: ChannelId) {
        let Some(entry) = self.bridge_mut(bridge) else { return };
        entry.members.push(id);
        let count = entry.members.len();
        if let Some(channel) = self.get_mut(id) {
            channel.bridge = Some(bridge);
        }
        self.regroup(id);
        self.note_talk(id, false);
        self.advance(id, Advance::Connected);
        self.notice_of(id, |channel| Notice::BridgeEnter { bridge, count, channel });
        self.link_bridge(bridge);
        self.log_bridge(CelKind::BridgeEnter, bridge, id);
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
        let before = entry.members.len();
        entry.members.retain(|member| *member != id);
        let count = entry.members.len();
        if count == before {
            return; // it was taken out before
        }
        if let Some(channel) = self.get_mut(id) {
            channel.bridge = None;
        }
        self.note_talk(id, true);
        self.regroup(id);
        self.notice_of(id, |channel| Notice::BridgeLeave { bridge, count, channel });
        self.log_bridge(CelKind::BridgeExit, bridge, id);
        self.hold_changes(bridge, id);
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
        if let Some(entry) = self.bridge_mut(bridge) {
            entry.alive = false;
            entry.generation = entry.generation.wrapping_add(1);
            entry.members.clear();
            self.free_bridges.push(bridge.slot);
            self.notice(|_| Some(Notice::BridgeDestroy { bridge }));
        }
    }
    /// Whether digits are waited for in a bridge of two; `None` for any other bridge.
    pub(crate) fn bridge_pair(&self, bridge: BridgeId) -> Option<bool> {
        self.bridges
            .get(bridge.slot as usize)
            .filter(|b| b.alive && b.generation == bridge.generation)
            .and_then(|b| b.pair)
    }
    pub(crate) fn bridge_mut(&mut self, bridge: BridgeId) -> Option<&mut Bridge> {
        self.bridges.get_mut(bridge.slot as usize).filter(|b| b.alive && b.generation == bridge.generation)
    }
    /// The bridge that a channel is in, and how many are in it.
    pub fn bridge_with(&self, id: ChannelId) -> Option<(BridgeId, usize)> {
        let bridge = self.get(id)?.bridge?;
        Some((bridge, self.bridge_members(bridge).len()))
    }
    /// Channels in a bridge.
    pub fn bridge_members(&self, bridge: BridgeId) -> &[ChannelId] {
        self.bridges
            .get(bridge.slot as usize)
            .filter(|b| b.alive && b.generation == bridge.generation)
            .map_or(&[], |b| &b.members)
    }
    /// All bridges.
    pub fn bridges(&self) -> impl Iterator<Item = (BridgeId, &[ChannelId])> {
        self.bridges.iter().enumerate().filter(|(_, b)| b.alive).map(|(slot, b)| {
            (BridgeId::new(u32::try_from(slot).unwrap_or(u32::MAX), b.generation), b.members.as_slice())
        })
    }
}
