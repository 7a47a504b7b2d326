//! What devices do on other servers that tell us, and what of our own such servers and compositors want to be told.
//!
//! Drivers hear of other servers and tell them; they know no hint. Whoever runs the dialplan looks after hints and devices,
//! and knows no server.

use std::collections::BTreeMap;

use crate::{Core, DeviceState, Watched};

/// Devices of other servers of which states are kept: the phones of the largest site, ten times over. Beyond that no new
/// ones are taken.
pub const DEVICES_MAX: usize = 100_000;
/// Longest name of a device that is kept, bytes.
pub const DEVICE_BYTES_MAX: usize = 128;

/// States of devices, by who told them.
#[derive(Debug, Default)]
pub struct OtherServers {
    /// By lower-case name.
    devices: BTreeMap<String, Told>,
}

#[derive(Debug)]
struct Told {
    /// As it was written first.
    name: String,
    states: BTreeMap<u64, DeviceState>,
}

impl OtherServers {
    /// A server says what a device does there; `None` takes back what it said. Whether that changes anything.
    fn told(&mut self, device: &str, teller: u64, state: Option<DeviceState>) -> bool {
        let key = device.to_ascii_lowercase();
        // Who knows nothing of a device says nothing of it.
        let state = state.filter(|state| is_known(*state));
        let Some(state) = state else {
            let Some(told) = self.devices.get_mut(&key) else { return false };
            let gone = told.states.remove(&teller).is_some();
            if told.states.is_empty() {
                self.devices.remove(&key);
            }
            return gone;
        };
        let is_full = self.devices.len() >= DEVICES_MAX && !self.devices.contains_key(&key);
        if is_full || device.len() > DEVICE_BYTES_MAX {
            return false;
        }
        let told = self
            .devices
            .entry(key)
            .or_insert_with(|| Told { name: device.to_owned(), states: BTreeMap::new() });
        told.states.insert(teller, state) != Some(state)
    }
    /// Takes back all that a server said; the devices of which it said something.
    fn forget(&mut self, teller: u64) -> Vec<String> {
        let of = |told: &&Told| told.states.contains_key(&teller);
        let names: Vec<String> = self.devices.values().filter(of).map(|told| told.name.clone()).collect();
        for name in &names {
            self.told(name, teller, None);
        }
        names
    }
    /// What a device of which `own` is known here does on all servers. It may be unknown here, because it is a phone of
    /// theirs; and where it cannot be reached does not matter while it can be reached elsewhere.
    fn with(&self, device: &str, own: DeviceState) -> DeviceState {
        if self.devices.is_empty() {
            return own;
        }
        let Some(told) = self.devices.get(&device.to_ascii_lowercase()) else { return own };
        let all = || told.states.values().copied().chain(is_known(own).then_some(own));
        let is_reachable = |state: &DeviceState| *state != DeviceState::Unavailable;
        match all().any(|state| is_reachable(&state)) {
            true => DeviceState::combine(all().filter(is_reachable)),
            false => DeviceState::Unavailable,
        }
    }
}

fn is_known(state: DeviceState) -> bool {
    !matches!(state, DeviceState::Invalid | DeviceState::Unknown)
}

/// What is to be told to others. Nothing is gathered while nobody wants it.
#[derive(Debug, Default)]
pub struct Outward {
    /// States of extensions are wanted.
    pub wants_extensions: bool,
    /// States of devices are wanted.
    pub wants_devices: bool,
    /// The states of all extensions are wanted, changed or not; whoever looks after them takes this back.
    pub wants_all: bool,
    /// Extensions and their states, in the order of changes; `None`: the hint is gone.
    pub extensions: Vec<(Watched, Option<DeviceState>)>,
    /// Own devices and their states, in the order of changes.
    pub devices: Vec<(String, DeviceState)>,
}

impl Core {
    /// A server (`teller` is the driver's number for it) says what a device does there.
    pub fn told_of_device(&mut self, device: &str, teller: u64, state: DeviceState) {
        if self.others.told(device, teller, Some(state)) {
            self.touched_devices.push(device.to_owned());
        }
    }
    /// A server is not believed any more: what it said of devices counts no longer.
    pub fn forget_teller(&mut self, teller: u64) {
        let devices = self.others.forget(teller);
        self.touched_devices.extend(devices);
    }
    /// The state of a device of which `own` is known here, together with what other servers say of it.
    pub fn with_elsewhere(&self, device: &str, own: DeviceState) -> DeviceState {
        self.others.with(device, own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DeviceState::*;

    #[test]
    fn what_a_device_does_is_what_it_does_on_all_servers() {
        let mut others = OtherServers::default();
        for (name, own, told, expected) in [
            ("nobody says anything", NotInUse, vec![], NotInUse),
            ("a phone of another server", Invalid, vec![(1, InUse)], InUse),
            ("one registered with both", NotInUse, vec![(1, InUse)], InUse),
            ("two servers", Unknown, vec![(1, NotInUse), (2, Ringing)], Ringing),
            ("it is reachable somewhere", Unavailable, vec![(1, NotInUse)], NotInUse),
            ("it is registered here only", Busy, vec![(1, Unavailable)], Busy),
            ("it is registered there only", Unavailable, vec![(1, OnHold), (2, Unavailable)], OnHold),
            ("it is reachable nowhere", Unavailable, vec![(1, Unavailable)], Unavailable),
        ] {
            for (teller, state) in &told {
                assert!(others.told("PJSIP/6001", *teller, Some(*state)), "{name}");
                assert!(!others.told("pjsip/6001", *teller, Some(*state)), "{name}: the same again");
            }
            assert_eq!(others.with("pjsip/6001", own), expected, "{name}");
            assert!(others.forget(9).is_empty(), "{name}: somebody else");
            for (teller, _) in &told {
                assert_eq!(others.forget(*teller), ["PJSIP/6001"], "{name}");
            }
            assert_eq!(others.with("PJSIP/6001", own), own, "{name}: it is forgotten");
            assert!(others.devices.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_server_that_knows_nothing_of_a_device_says_nothing_of_it() {
        let mut others = OtherServers::default();
        assert!(!others.told("PJSIP/1", 1, Some(Invalid)));
        assert!(others.told("PJSIP/1", 1, Some(Busy)));
        assert!(others.told("PJSIP/1", 1, Some(Unknown)), "what it said before is over");
        assert!(others.devices.is_empty());
    }

    #[test]
    fn what_servers_say_takes_no_more_room_than_it_may() {
        let mut others = OtherServers::default();
        assert!(!others.told(&"x".repeat(DEVICE_BYTES_MAX + 1), 1, Some(InUse)), "a name too long");
        for device in 0..DEVICES_MAX {
            assert!(others.told(&device.to_string(), 1, Some(InUse)));
        }
        assert!(!others.told("one more", 1, Some(InUse)));
        assert!(others.told("7", 1, Some(NotInUse)), "what is there may change");
    }
}
