//! On which worker each room is mixed, and who is in it: all members of a room live where it is.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use base::{Command, MemberSettings, RoomId, RoomSettings, StreamId};

/// How a stream is in a room: enough to enter it again on another worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stay {
    pub(super) room: RoomId,
    pub(super) mixing: RoomSettings,
    pub(super) member: MemberSettings,
}

impl Stay {
    pub(super) const fn enter(self, stream: StreamId) -> Command {
        Command::Enter { stream, room: self.room, mixing: self.mixing, member: self.member }
    }
}

/// The rooms of all workers.
#[derive(Debug, Default)]
pub(super) struct Rooms(BTreeMap<RoomId, Vec<StreamId>>);

impl Rooms {
    /// Somebody who is in it already, and so lives where it is mixed.
    pub(super) fn resident(&self, room: RoomId) -> Option<StreamId> {
        self.members(room).first().copied()
    }
    pub(super) fn members(&self, room: RoomId) -> &[StreamId] {
        self.0.get(&room).map_or(&[], Vec::as_slice)
    }
    pub(super) fn enter(&mut self, room: RoomId, stream: StreamId) {
        let members = self.0.entry(room).or_default();
        if !members.contains(&stream) {
            members.push(stream);
        }
    }
    pub(super) fn leave(&mut self, room: RoomId, stream: StreamId) {
        if let Some(members) = self.0.get_mut(&room) {
            members.retain(|member| *member != stream);
            if members.is_empty() {
                self.0.remove(&room);
            }
        }
    }
}
