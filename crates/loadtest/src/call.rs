//! One side of one call: its ports, its session, and the packets that it sends.

use std::net::{IpAddr, SocketAddr};

use base::{FormatId, Instant, MAX_RX_PAYLOADS, RxPayload};
use io::media::WireLeg;
use rtp::Header;
use sip::sdp::{Negotiated, Negotiator};

use crate::reception::Reception;
use crate::tone::Sound;

/// Where a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The INVITE is out.
    Calling,
    /// We have given it up before it was answered.
    Canceling,
    /// Answered.
    Up,
    /// We have said BYE.
    Ending,
}

/// A call.
#[derive(Debug)]
pub struct Call {
    /// Calls that came in are those of callees.
    pub is_callee: bool,
    /// Which call of its kind it is, from 0.
    pub number: u64,
    /// Tells packets of this call from those of an earlier one in the same place.
    pub generation: u32,
    /// Where it is.
    pub phase: Phase,
    /// Our address.
    pub ip: IpAddr,
    /// Our ports.
    pub leg: WireLeg,
    /// Offer and answer.
    pub negotiator: Negotiator,
    /// When it began.
    pub began: Instant,
    /// When it was answered.
    pub up_at: Instant,
    /// Audio, once it is agreed on.
    pub talk: Option<Talk>,
}

/// The audio of a call.
#[derive(Debug)]
pub struct Talk {
    /// Where packets go.
    pub to: SocketAddr,
    /// What they are.
    pub format: FormatId,
    /// Milliseconds of each.
    pub packet_ms: u8,
    receives: [Option<RxPayload>; MAX_RX_PAYLOADS],
    /// What is spoken.
    pub sound: Sound,
    next: usize,
    header: Header,
    step: u32,
    /// Packets that went out.
    pub sent: u64,
    /// What arrives.
    pub reception: Reception,
    /// Number of its probe while it is listened to.
    pub probe: Option<u32>,
    /// The tone that it ought to hear, once that is known.
    pub tone: Option<usize>,
    /// The last time it heard something else.
    pub suspect: bool,
}

impl Talk {
    /// Audio as it was agreed on; `None` when there is nowhere to send it. `sound` is what is spoken, in the first format.
    pub fn new(agreed: &Negotiated, sound: Sound, random: u64) -> Option<Self> {
        let send = agreed.primary()?;
        let step = send.format.rtp_clock() / 1000 * u32::from(agreed.ptime_ms);
        Some(Self {
            to: agreed.remote?,
            format: send.format,
            packet_ms: agreed.ptime_ms,
            receives: agreed.receive,
            next: (random >> 48) as usize % sound.len().max(1),
            sound,
            header: Header {
                payload_type: send.payload,
                marker: true,
                sequence: (random >> 32) as u16,
                timestamp: random as u32,
                ssrc: (random >> 16) as u32,
            },
            step,
            sent: 0,
            reception: Reception::default(),
            probe: None,
            tone: None,
            suspect: false,
        })
    }

    /// Writes the next packet; 0 bytes when there is nothing to say in this format.
    pub fn write(&mut self, packet: &mut [u8]) -> usize {
        let Some(payload) = self.sound.get(self.next) else { return 0 };
        self.next = (self.next + 1) % self.sound.len();
        let length = rtp::HEADER_BYTES + payload.len();
        let Some((head, rest)) =
            packet.get_mut(..length).and_then(|room| room.split_first_chunk_mut::<{ rtp::HEADER_BYTES }>())
        else {
            return 0;
        };
        *head = rtp::write(&self.header);
        rest.copy_from_slice(payload);
        self.header.marker = false;
        self.header.sequence = self.header.sequence.wrapping_add(1);
        self.header.timestamp = self.header.timestamp.wrapping_add(self.step);
        self.sent += 1;
        length
    }

    /// The format of a payload type that was agreed on.
    pub fn received_format(&self, payload_type: u8) -> Option<FormatId> {
        self.receives.iter().flatten().find_map(|receives| match *receives {
            RxPayload::Audio(number, format) if number == payload_type => Some(format),
            _ => None,
        })
    }

    /// Speaks something else from the next packet on.
    pub fn speak(&mut self, sound: Sound) {
        self.next %= sound.len().max(1);
        self.sound = sound;
    }
}
