//! What is to be loaded, and how.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use base::{FormatId, FormatSet};
use io::media::{IoWish, PortRange};

/// Which way audio goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Media {
    /// Both ways.
    #[default]
    Both,
    /// Packets are sent; what arrives is counted all the same.
    Send,
    /// Nothing is sent but the first packets, by which the other side learns where we are.
    Receive,
    /// No audio: calls are only signalled.
    None,
}

impl Media {
    /// Words of the command line.
    pub const ALL: [(Self, &str); 4] =
        [(Self::Both, "both"), (Self::Send, "send"), (Self::Receive, "receive"), (Self::None, "none")];

    /// The word for it.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(media, _)| *media == self).map_or("", |(_, name)| name)
    }

    /// Whether it goes on sending.
    pub const fn sends(self) -> bool {
        matches!(self, Self::Both | Self::Send)
    }
}

/// What a caller ought to hear.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Hear {
    /// Anything: it is not looked into.
    #[default]
    Anything,
    /// Something that is not silence.
    Sound,
    /// Its own tone, from an echo or from a callee of ours.
    Own,
    /// A tone of so many hertz.
    Hertz(f64),
}

/// All that a run is told.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where the program under load listens, by UDP.
    pub server: SocketAddr,
    /// Where we are: SIP on the first address, audio on all of them in turn.
    pub local: Vec<IpAddr>,
    /// Our port for SIP; 0 for any.
    pub sip_port: u16,
    /// User name: in From and Contact, for the password, and of the callee that registers.
    pub user: String,
    /// Password, for a program that asks.
    pub secret: String,
    /// The number that callers dial; `None` when nobody calls.
    pub number: Option<String>,
    /// Calls that come in are answered.
    pub answers: bool,
    /// Registers first, and stays registered.
    pub registers: bool,
    /// Calls a second that are begun.
    pub rate: f64,
    /// Calls that are begun in all.
    pub calls: u64,
    /// How long a call lasts from its answer on; `None` to the end of the run.
    pub hold: Option<Duration>,
    /// Formats that callers offer, most wanted first.
    pub offers: FormatSet,
    /// Formats that callees accept.
    pub accepts: FormatSet,
    /// Milliseconds a packet that we ask for and send.
    pub packet_ms: u8,
    /// Which way audio goes.
    pub media: Media,
    /// What callers ought to hear.
    pub hear: Hear,
    /// How often each call is listened to.
    pub check_every: Duration,
    /// What moves the packets.
    pub io: IoWish,
    /// Interfaces for AF_XDP.
    pub interfaces: Vec<String>,
    /// Ports for audio.
    pub ports: PortRange,
    /// Which processor to stay on.
    pub processor: Option<usize>,
    /// Ask for real-time priority.
    pub real_time: bool,
    /// Pause between two looks at what has arrived: how exactly arrivals are timed.
    pub look_every: Duration,
}

impl Plan {
    /// One caller of µ-law from `local`, with audio both ways.
    pub fn new(server: SocketAddr, local: IpAddr) -> Self {
        let ulaw: FormatSet = [FormatId::ULAW].into_iter().collect();
        Self {
            server,
            local: vec![local],
            sip_port: 0,
            user: "load".into(),
            secret: String::new(),
            number: None,
            answers: false,
            registers: false,
            rate: 10.0,
            calls: 1,
            hold: None,
            offers: ulaw,
            accepts: ulaw,
            packet_ms: 20,
            media: Media::Both,
            hear: Hear::Anything,
            check_every: Duration::from_secs(5),
            io: IoWish::Auto,
            interfaces: Vec::new(),
            ports: PortRange { first: 32_768, last: 65_535 },
            processor: None,
            real_time: false,
            look_every: Duration::from_micros(250),
        }
    }
}
