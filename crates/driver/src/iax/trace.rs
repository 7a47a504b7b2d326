//! Frames, trunks and jitter buffers in the log (`iax2 set debug`).

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use ::iax2::frame::{Datagram, Full, Kind, parse};
use base::Instant;
use call::{Core, Level};

use super::{IaxDriver, NetstatRow};

/// How often the jitter buffers of calls are told.
const JITTER_EVERY: Duration = Duration::from_secs(1);
/// Calls whose jitter buffers are told each time: of thousands nobody reads the lines, and the log would take the time of
/// their voice.
const JITTER_CALLS_MAX: usize = 100;

/// Which frames are told in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trace {
    /// None.
    #[default]
    Off,
    /// All.
    All,
    /// Those from and to this address.
    Of(IpAddr),
}

/// A full frame in a line; the others are voice, and too many. What elements say is left out: passwords are among them.
fn line(from_us: bool, remote: SocketAddr, bytes: &[u8]) -> Option<String> {
    let Ok(Datagram::Full(Full { source, dest, again, timestamp, oseq, iseq, kind, data })) = parse(bytes)
    else {
        return None;
    };
    let what = match kind {
        Kind::Iax(command) if !command.name().is_empty() => command.name().to_owned(),
        Kind::Control(control) if !control.name().is_empty() => format!("CONTROL {}", control.name()),
        other => format!("{other:?}"),
    };
    let (way, again) = (if from_us { "Tx" } else { "Rx" }, if again { " again" } else { "" });
    let length = data.len();
    Some(format!(
        "{way}-Frame {remote} {what}{again}: {source}->{dest} at {timestamp} ms, oseq {oseq}, iseq {iseq}, {length} bytes"
    ))
}

/// A datagram of a trunk in a line.
fn trunk_line(from_us: bool, remote: SocketAddr, bytes: &[u8]) -> Option<String> {
    let Ok(Datagram::Trunk(trunk)) = parse(bytes) else { return None };
    let (way, at, length) = (if from_us { "Tx" } else { "Rx" }, trunk.timestamp, bytes.len());
    let calls = trunk.entries.count();
    let plural = if calls == 1 { "" } else { "s" };
    Some(format!("{way}-Trunk {remote} at {at} ms: {calls} call{plural}, {length} bytes"))
}

/// The jitter buffer of a call in a line.
fn jitter_line(row: &NetstatRow) -> String {
    let seen = &row.local;
    format!(
        "Jitter buffer of {}: waits {} ms, jitter {} ms, {} received, {} lost, {} too late, {} out of order",
        row.channel, seen.delay_ms, seen.jitter_ms, seen.received, seen.lost, seen.dropped, seen.out_of_order
    )
}

/// What is told in the log.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Told {
    frames: Trace,
    trunks: bool,
    /// When the jitter buffers of calls are told next; `None`: they are not.
    jitter_at: Option<Instant>,
}

impl Told {
    /// Whether datagrams are told as they come.
    pub(super) fn is_any(&self) -> bool {
        self.trunks || self.frames != Trace::Off
    }
    /// The line of a datagram that leaves, if it is to be told.
    pub(super) fn sent_line(self, to: SocketAddr, bytes: &[u8]) -> Option<String> {
        self.line(true, to, bytes)
    }
    /// When somebody is next to be told something.
    pub(super) fn deadline(self) -> Option<Instant> {
        self.jitter_at
    }
    fn line(self, from_us: bool, remote: SocketAddr, bytes: &[u8]) -> Option<String> {
        let frame = self.frames.tells(remote).then(|| line(from_us, remote, bytes)).flatten();
        frame.or_else(|| self.trunks.then(|| trunk_line(from_us, remote, bytes)).flatten())
    }
}

impl Trace {
    fn tells(self, remote: SocketAddr) -> bool {
        match self {
            Self::Off => false,
            Self::All => true,
            Self::Of(address) => remote.ip().to_canonical() == address.to_canonical(),
        }
    }
}

impl IaxDriver {
    /// Says which frames are told in the log.
    pub fn set_trace(&mut self, trace: Trace) {
        self.told.frames = trace;
    }
    /// Says whether datagrams of trunks are told in the log.
    pub fn set_trunk_trace(&mut self, on: bool) {
        self.told.trunks = on;
    }
    /// Says whether the jitter buffers of calls are told in the log, once a second.
    pub fn set_jitter_trace(&mut self, on: bool, now: Instant) {
        self.told.jitter_at = on.then_some(now);
    }
    pub(super) fn note_received(&self, core: &mut Core, from: SocketAddr, bytes: &[u8]) {
        if let Some(line) = self.told.line(false, from, bytes) {
            core.log(Level::Verbose(0), "chan_iax2", &line);
        }
    }
    /// Tells the jitter buffers when it is time, as the media plane said last that they are, and asks it how they are.
    pub(super) fn tell_jitter(&mut self, core: &mut Core) {
        if self.told.jitter_at.is_none_or(|at| core.now < at) {
            return;
        }
        self.told.jitter_at = Some(core.now + JITTER_EVERY);
        let lines: Vec<String> =
            self.netstats(core).take(JITTER_CALLS_MAX).map(|row| jitter_line(&row)).collect();
        for line in lines {
            core.log(Level::Verbose(0), "chan_iax2", &line);
        }
        let places: Vec<_> = self.legs.values().filter_map(|leg| leg.place).take(JITTER_CALLS_MAX).collect();
        for at in places {
            if let Some(stream) = self.voices.of_leg(at).map(|voice| voice.stream) {
                core.services.media.command(base::Command::Stats { stream });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_frames_are_told_without_what_they_say_and_voice_is_not() {
        // A REGREQ with a password in the clear.
        let frame = [0x80, 2, 0, 0, 0, 0, 0, 3, 0, 0, 6, 13, 7, 2, b'p', b'w'];
        let remote = "192.0.2.1:4569".parse().unwrap();
        let told = line(true, remote, &frame).unwrap();
        assert_eq!(told, "Tx-Frame 192.0.2.1:4569 REGREQ: 2->0 at 3 ms, oseq 0, iseq 0, 4 bytes");
        assert_eq!(line(false, remote, &[0, 2, 0, 20, 0xff]), None);
    }

    #[test]
    fn rfc5456_8_1_3_2_trunks_are_told_only_where_they_are_asked_for_and_by_their_calls() {
        let voice = [0xff; 3];
        let mut trunk = Vec::new();
        ::iax2::frame::write_trunk_header(40, true, &mut trunk);
        for source in [16_384, 16_385] {
            let entry = ::iax2::frame::Entry { source, timestamp: Some(40), data: &voice };
            assert!(::iax2::frame::write_trunk_entry(&entry, &mut trunk));
        }
        let remote = "192.0.2.1:4569".parse().unwrap();
        let mini: &[u8] = &[0, 2, 0, 20, 0xff];
        let both = "Rx-Trunk 192.0.2.1:4569 at 40 ms: 2 calls, 26 bytes";
        for (name, frames, trunks, bytes, told) in [
            ("nothing", Trace::Off, false, &trunk[..], None),
            ("frames", Trace::All, false, &trunk, None),
            ("trunks", Trace::Off, true, &trunk, Some(both)),
            ("both", Trace::All, true, &trunk, Some(both)),
            ("voice of one call", Trace::All, true, mini, None),
            ("a trunk that ends in its header", Trace::Off, true, &trunk[..6], None),
        ] {
            let told_here = Told { frames, trunks, jitter_at: None }.line(false, remote, bytes);
            assert_eq!(told_here.as_deref(), told, "{name}");
        }
    }
}
