//! Channels that the field's server makes for itself in bridges of programs: who announces, who plays music, who records.
//! Here nobody but their names is needed: watchers see them in `BRIDGEPEER`, as devices, and in channel events.

use std::rc::Rc;

use crate::core::BridgeGuest;
use crate::{Cel, CelKind, Core, DeviceState, Extras, Notice};

/// What a guest is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestKind {
    /// It plays sounds.
    Announcer,
    /// It plays music.
    Music,
    /// It writes down what is said.
    Recorder,
}

impl GuestKind {
    fn device(self) -> &'static str {
        match self {
            Self::Announcer => "Announcer/ARI",
            Self::Music => "Announcer/ARI_MOH",
            Self::Recorder => "Recorder/ARI",
        }
    }
}

/// A guest in a bridge.
#[derive(Debug)]
pub(super) struct Guest {
    kind: GuestKind,
    /// Its name, without the half.
    name: String,
    uniqueid: Rc<str>,
}

impl Core {
    /// A guest comes to a bridge; nothing when one of its kind is there.
    pub(super) fn stasis_guest_comes(&mut self, id: &str, kind: GuestKind) {
        let is_there = |bridge: &super::ProgramBridge| bridge.guests.iter().any(|guest| guest.kind == kind);
        if self.stasis.bridges.get(id).is_none_or(is_there) {
            return;
        }
        let (serial, wall) = (self.next_serial(), self.services.wall.now_micros());
        let uniqueid: Rc<str> = self.next_uniqueid(wall).into();
        let Some(bridge) = self.stasis.bridges.get_mut(id) else { return };
        let name = format!("{}-{serial:08x}", kind.device());
        let (core, other_half) = (bridge.core, format!("{name};2"));
        bridge.guests.push(Guest { kind, name, uniqueid: uniqueid.clone() });
        self.guest_enters(core, BridgeGuest { name: other_half.into(), uniqueid });
        self.stasis_guest_is(kind, DeviceState::InUse);
    }
    /// It leaves.
    pub(super) fn stasis_guest_goes(&mut self, id: &str, kind: GuestKind) {
        let Some(bridge) = self.stasis.bridges.get_mut(id) else { return };
        let Some(at) = bridge.guests.iter().position(|guest| guest.kind == kind) else { return };
        let (core, guest) = (bridge.core, bridge.guests.remove(at));
        self.guest_leaves(core, &format!("{};2", guest.name));
        self.stasis_guest_is(kind, DeviceState::Unknown);
    }
    fn stasis_guest_is(&mut self, kind: GuestKind, state: DeviceState) {
        self.notice(|_| {
            Some(Notice::DeviceStateChange { device: kind.device().to_owned(), state: state.name() })
        });
    }
    /// Tells channel event logging of what a guest does.
    pub fn stasis_guest_logs(&mut self, id: &str, kind: GuestKind, event: CelKind, extra: Extras) {
        if !self.keeps(event) {
            return;
        }
        let time = self.services.wall.now_micros();
        let Some(bridge) = self.stasis.bridges.get(id) else { return };
        let Some(guest) = bridge.guests.iter().find(|guest| guest.kind == kind) else { return };
        let name = format!("{};1", guest.name);
        let uniqueid = guest.uniqueid.clone();
        self.log_cel(Cel { extra, ..Cel::of_guest(event, time, name.into(), uniqueid) });
    }
}
