//! Lines for the system's log: datagrams on a unix socket, as syslog(3) writes them.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use super::{Escaped, Line, kind};
use crate::config::logger::LogLevel;
use crate::date::{Zone, format};

/// Longest datagram, bytes: daemons cut longer ones (RFC 3164 §4.1 asks for 1024, they take eight times that).
const DATAGRAM_BYTES_MAX: usize = 8 * 1024;

/// How long a batch of lines waits for a daemon whose socket is full: Linux queues ten datagrams, and one that runs
/// takes them within a millisecond.
const DAEMON_WITHIN: Duration = Duration::from_millis(200);

/// The facilities that syslog.FACILITY may name, and their numbers (RFC 5424 §6.2.1).
pub(crate) const FACILITIES: [(&str, u8); 20] = [
    ("kern", 0),
    ("user", 1),
    ("mail", 2),
    ("daemon", 3),
    ("auth", 4),
    ("syslog", 5),
    ("lpr", 6),
    ("news", 7),
    ("uucp", 8),
    ("cron", 9),
    ("authpriv", 10),
    ("ftp", 11),
    ("local0", 16),
    ("local1", 17),
    ("local2", 18),
    ("local3", 19),
    ("local4", 20),
    ("local5", 21),
    ("local6", 22),
    ("local7", 23),
];

/// The severity of a level (RFC 5424 §6.2.1).
fn severity(level: LogLevel) -> u8 {
    match level {
        LogLevel::Error => 3,
        LogLevel::Warning => 4,
        LogLevel::Notice | LogLevel::Security => 5,
        LogLevel::Debug | LogLevel::Verbose | LogLevel::Dtmf | LogLevel::Fax => 7,
    }
}

/// One line as a datagram: the daemon knows our name from its tag, and the time in its own words.
pub(super) fn datagram(line: &Line, facility: u8, zone: &Zone, process: u32, text: &str) -> Vec<u8> {
    let level = kind(line.level);
    let priority = u32::from(facility) * 8 + u32::from(severity(level));
    let date = format(line.at_micros, zone, "%b %e %T");
    let mut out = format!("<{priority}>{date} asterisk[{process}]: {}", Escaped(text.trim_end_matches('\n')));
    if out.len() > DATAGRAM_BYTES_MAX {
        out.truncate(out.floor_char_boundary(DATAGRAM_BYTES_MAX));
    }
    out.into_bytes()
}

/// The way to the daemon; it is tried anew when the daemon was not there.
#[derive(Debug, Default)]
pub(super) struct Syslog {
    socket: Option<UnixDatagram>,
}

impl Syslog {
    /// Sends datagrams; how many of them were not taken, and why.
    pub(super) fn send(&mut self, path: &Path, datagrams: &[Vec<u8>]) -> (u64, io::Result<()>) {
        for (sent, datagram) in datagrams.iter().enumerate() {
            if let Err(why) = self.send_one(path, datagram) {
                self.socket = None;
                // One that does not keep up has had its time; one that is not there will not come in between.
                return ((datagrams.len() - sent) as u64, Err(why));
            }
        }
        (0, Ok(()))
    }
    fn send_one(&mut self, path: &Path, datagram: &[u8]) -> io::Result<()> {
        if let Some(socket) = &self.socket {
            match socket.send(datagram) {
                Ok(_) => return Ok(()),
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Err(why),
                // It was started again, perhaps.
                Err(_) => self.socket = None,
            }
        }
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(DAEMON_WITHIN))?;
        socket.connect(path)?;
        socket.send(datagram)?;
        self.socket = Some(socket);
        Ok(())
    }
}
