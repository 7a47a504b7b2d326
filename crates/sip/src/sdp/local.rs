//! What our side wants of a session.

use core::net::IpAddr;

use base::{Direction, FormatSet};

use super::Encryption;

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
    /// Offers and accepts RTP and RTCP on one port (RFC 5761).
    pub rtcp_mux: bool,
    /// Milliseconds a packet that we ask for and, unless the peer's wish counts, send.
    pub ptime_ms: u8,
    /// Sends what the peer asks for in `a=ptime` (`use_ptime`).
    pub use_remote_ptime: bool,
    /// Which way audio may flow as far as we are concerned; `SendOnly` puts the peer on hold.
    pub direction: Direction,
    /// SRTP with keys in the description; `None` is plain RTP.
    pub encryption: Option<Encryption<'a>>,
    /// User name in `o=`.
    pub owner: &'a str,
    /// Name in `s=`.
    pub session_name: &'a str,
}

impl<'a> Local<'a> {
    /// Both ways, 20 ms, telephone-event, no RTCP multiplexing.
    pub fn new(formats: FormatSet, address: IpAddr, port: u16) -> Self {
        Self {
            formats,
            prefer_remote: false,
            own_order: false,
            single_format: false,
            telephone_event: true,
            address,
            port,
            rtcp_mux: false,
            ptime_ms: 20,
            use_remote_ptime: false,
            direction: Direction::SendRecv,
            encryption: None,
            owner: "-",
            session_name: "Strowger",
        }
    }
}
