//! Frames in the log (`iax2 set debug`).

use core::net::{IpAddr, SocketAddr};

use ::iax2::frame::{Datagram, Full, Kind, parse};
use call::{Core, Level};

use super::IaxDriver;

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

impl Trace {
    /// The line of a frame that leaves, if it is to be told.
    pub(super) fn sent_line(self, to: SocketAddr, bytes: &[u8]) -> Option<String> {
        self.tells(to).then(|| line(true, to, bytes)).flatten()
    }
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
        self.trace = trace;
    }
    pub(super) fn note_received(&self, core: &mut Core, from: SocketAddr, bytes: &[u8]) {
        if let Some(line) = self.trace.tells(from).then(|| line(false, from, bytes)).flatten() {
            core.log(Level::Verbose(0), "chan_iax2", &line);
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
}
