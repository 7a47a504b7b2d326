//! Voice of several calls to one remote in one datagram (RFC 5456 §7.1, §8.1.3.2).

use super::out::Out;
use super::state::{Core, Timer};
use crate::frame::{
    DATAGRAM_BYTES_MAX, Entry, Mini, TRUNK_ENTRY_BYTES, TRUNK_HEADER_BYTES, write_trunk_entry,
    write_trunk_header,
};
use crate::token::address_bytes;
use base::hash::Key;
use base::{Instant, Place, Scheduled};
use core::net::SocketAddr;
use core::time::Duration;

/// A trunk without voice for so long is forgotten.
const IDLE: Duration = Duration::from_secs(5);

/// How voice of several calls is sent together.
#[derive(Debug, Clone, Copy)]
pub struct TrunkSettings {
    /// Voice waits so long for that of other calls (`trunkfreq`).
    pub every: Duration,
    /// Longest datagram, bytes (`trunkmtu`).
    pub bytes_max: usize,
    /// Whether each call's voice has its timestamp (`trunktimestamps`).
    pub stamped: bool,
}

impl Default for TrunkSettings {
    fn default() -> Self {
        Self { every: Duration::from_millis(20), bytes_max: 1240, stamped: true }
    }
}

/// Voice that waits to be sent to one remote.
#[derive(Debug)]
pub(super) struct TrunkOut {
    to: SocketAddr,
    born: Instant,
    /// Entries; the header is made when they are sent.
    bytes: Vec<u8>,
    /// When they are sent; or, when it is idle, when the trunk is forgotten.
    at: Instant,
    /// Whether there was nothing to send the last time. While voice flows one deadline follows the other.
    idle: bool,
    scheduled: Scheduled,
}

impl TrunkOut {
    fn flush(&mut self, now: Instant, stamped: bool, out: &mut Out) {
        if self.bytes.is_empty() {
            return;
        }
        let timestamp = (now - self.born).as_millis() as u32;
        out.datagram(self.to, |buffer| {
            write_trunk_header(timestamp, stamped, buffer);
            buffer.extend_from_slice(&self.bytes);
        });
        self.bytes.clear();
    }
}

impl Core {
    fn trunk_name(to: SocketAddr) -> u128 {
        // Trunks are only to peers that a driver chose, so nobody outside can make names meet.
        Key::new(0).digest(&[&address_bytes(to)])
    }

    /// The trunk to a remote, as it is or new; `None` when there are too many.
    fn trunk_to(&mut self, now: Instant, to: SocketAddr) -> Option<Place> {
        let name = Self::trunk_name(to);
        if let Some(place) = self.trunk_of.get(&name) {
            return Some(*place);
        }
        let at = now + self.settings.trunk.every;
        let (bytes, scheduled) = (Vec::new(), Scheduled::default());
        let trunk = TrunkOut { to, born: now, bytes, at, idle: true, scheduled };
        let place = self.trunks.insert_with(|_| trunk)?;
        self.trunk_of.insert(name, place);
        Some(place)
    }

    /// Adds voice to what goes to a remote, and sends it when it is full. `known` is where a call found the trunk before.
    pub(super) fn trunk(
        &mut self,
        now: Instant,
        to: SocketAddr,
        frame: &Mini<'_>,
        known: &mut Option<Place>,
        out: &mut Out,
    ) {
        let (settings, data) = (self.settings.trunk, frame.data);
        let bytes_max = settings.bytes_max.min(DATAGRAM_BYTES_MAX);
        let fits = TRUNK_HEADER_BYTES + TRUNK_ENTRY_BYTES + data.len() <= bytes_max;
        *known = known
            .filter(|place| self.trunks.get(*place).is_some_and(|trunk| trunk.to == to))
            .or_else(|| self.trunk_to(now, to));
        let trunk = known.and_then(|place| Some((place, self.trunks.get_mut(place)?)));
        let Some((place, trunk)) = trunk.filter(|_| fits) else {
            // Alone, it needs no trunk.
            return out.datagram(to, |buffer| frame.write(buffer));
        };
        if TRUNK_HEADER_BYTES + trunk.bytes.len() + TRUNK_ENTRY_BYTES + data.len() > bytes_max {
            trunk.flush(now, settings.stamped, out);
        }
        if trunk.idle {
            trunk.idle = false;
            trunk.at = now + settings.every;
            self.deadlines.schedule(Timer::Trunk(place), &mut trunk.scheduled, Some(trunk.at));
        }
        let timestamp = settings.stamped.then_some(frame.timestamp);
        write_trunk_entry(&Entry { source: frame.source, timestamp, data }, &mut trunk.bytes);
    }

    pub(super) fn trunk_due(&mut self, place: Place, fired: Instant, now: Instant, out: &mut Out) {
        let Some(trunk) = self.trunks.get_mut(place) else { return };
        trunk.scheduled.fired(fired);
        if trunk.at <= now {
            match (trunk.bytes.is_empty(), trunk.idle) {
                (false, _) => {
                    trunk.flush(now, self.settings.trunk.stamped, out);
                    trunk.at = now + self.settings.trunk.every;
                }
                (true, false) => {
                    trunk.idle = true;
                    trunk.at = now + IDLE;
                }
                (true, true) => {
                    let name = Self::trunk_name(trunk.to);
                    self.trunk_of.remove(&name);
                    self.trunks.remove(place);
                    return;
                }
            }
        }
        self.deadlines.schedule(Timer::Trunk(place), &mut trunk.scheduled, Some(trunk.at));
    }
}
