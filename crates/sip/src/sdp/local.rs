//! What our side wants of a session.

use core::net::{IpAddr, SocketAddr};

use base::{Direction, FormatId, FormatSet};

use super::{Encryption, LocalPassed};

/// Where media goes instead of to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elsewhere {
    /// RTP.
    pub rtp: SocketAddr,
    /// RTCP; `None`: on the port of RTP.
    pub rtcp: Option<SocketAddr>,
}

/// Profiles with feedback (RFC 4585, RFC 5124).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feedback {
    /// Our offers say one; what comes is answered in its own profile.
    Offered,
    /// Offers of others are refused, too.
    Required,
}

/// Our side of a session: from configuration, from the call, and from the port that was leased.
#[derive(Debug, Clone, Copy)]
pub struct Local<'a> {
    /// Formats in order of preference (`allow=`).
    pub formats: FormatSet,
    /// Puts the peer's order before ours when we answer.
    pub prefer_remote: bool,
    /// Sends what we like best of the peer's answer, whatever its order.
    pub own_order: bool,
    /// Answers with the first common format only (`preferred_codec_only`).
    pub single_format: bool,
    /// Offers and accepts telephone-event (RFC 4733).
    pub telephone_event: bool,
    /// Address in `o=` and `c=`.
    pub address: IpAddr,
    /// RTP port; RTCP is one above unless multiplexed.
    pub port: u16,
    /// Whose address stands in `c=` and `m=` instead of ours; `o=` is ours all the same (RFC 3264 §8).
    pub elsewhere: Option<Elsewhere>,
    /// Offers and accepts RTP and RTCP on one port (RFC 5761).
    pub rtcp_mux: bool,
    /// Milliseconds a packet that we ask for and, unless the peer's wish counts, send.
    pub ptime_ms: u8,
    /// The same of formats that have a length of their own (`allow=ulaw:30`).
    pub packets: &'a [(FormatId, u8)],
    /// Sends what the peer asks for in `a=ptime` (`use_ptime`).
    pub use_remote_ptime: bool,
    /// Which way audio may flow as far as we are concerned; `SendOnly` puts the peer on hold.
    pub direction: Direction,
    /// SRTP with keys in the description; `None` is plain RTP.
    pub encryption: Option<Encryption<'a>>,
    /// Profiles with feedback; `None`: our offers are without, and those with it are answered in theirs.
    pub feedback: Option<Feedback>,
    /// A session may do without the audio: the offer has video that is taken.
    pub without_audio: bool,
    /// Our sides of the streams that are passed through, by their slots; further ones are declined.
    pub passed: &'a [LocalPassed<'a>],
    /// User name in `o=`.
    pub owner: &'a str,
    /// Name in `s=`.
    pub session_name: &'a str,
}

impl<'a> Local<'a> {
    /// Milliseconds of a packet of a format that we ask for.
    pub(super) fn ptime_of(&self, format: Option<FormatId>) -> u8 {
        let own = self.packets.iter().find(|(named, _)| Some(*named) == format);
        own.map_or(self.ptime_ms, |(_, ms)| *ms)
    }
    /// Both ways, 20 ms, telephone-event, no RTCP multiplexing, nothing passed through.
    pub fn new(formats: FormatSet, address: IpAddr, port: u16) -> Self {
        Self {
            formats,
            prefer_remote: false,
            own_order: false,
            single_format: false,
            telephone_event: true,
            address,
            port,
            elsewhere: None,
            rtcp_mux: false,
            ptime_ms: 20,
            packets: &[],
            use_remote_ptime: false,
            direction: Direction::SendRecv,
            encryption: None,
            feedback: None,
            without_audio: false,
            passed: &[],
            owner: "-",
            session_name: "Strowger",
        }
    }
}
