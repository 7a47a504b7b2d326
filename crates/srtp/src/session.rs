//! Both directions of a stream, and what happens to them when keys change.

use base::SrtpKeys;

use crate::Refused;
use crate::direction::Direction;

/// Seals what a stream sends and opens what it receives.
pub struct Session {
    keys: SrtpKeys,
    sending: Direction,
    receiving: Direction,
    /// The receiving side under the key before this one, until the first packet under the new one came: what was on its
    /// way when the keys changed is not lost.
    before: Option<Box<Direction>>,
}

impl core::fmt::Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Session").field("suite", &self.keys.suite).finish_non_exhaustive()
    }
}

impl Session {
    /// A session whose rollover counters begin at zero; `None` when a secret does not fit the suite.
    pub fn new(keys: &SrtpKeys) -> Option<Self> {
        Some(Self {
            sending: Direction::new(keys.suite, &keys.send, true)?,
            receiving: Direction::new(keys.suite, &keys.receive, keys.replay_protection)?,
            before: None,
            keys: keys.clone(),
        })
    }
    /// Goes on under these keys. A direction whose key is the same goes on as it is, with its rollover counters and its
    /// replay window; one whose key differs begins anew. Nothing changes when a secret does not fit the suite.
    pub fn rekey(&mut self, keys: &SrtpKeys) -> Option<()> {
        let same_suite = keys.suite == self.keys.suite;
        let sends_on = same_suite && keys.send == self.keys.send;
        let sending = if sends_on { None } else { Some(Direction::new(keys.suite, &keys.send, true)?) };
        if same_suite && keys.receive == self.keys.receive {
            self.receiving.set_replay_protection(keys.replay_protection);
        } else {
            let fresh = Direction::new(keys.suite, &keys.receive, keys.replay_protection)?;
            let before = core::mem::replace(&mut self.receiving, fresh);
            // A key that was never used is not worth waiting for; the one before it may still be in use.
            if !before.sources.is_empty() || self.before.is_none() {
                self.before = Some(Box::new(before));
            }
        }
        if let Some(sending) = sending {
            self.sending = sending;
        }
        self.keys = keys.clone();
        Some(())
    }
    /// The keys it works with.
    pub const fn keys(&self) -> &SrtpKeys {
        &self.keys
    }
    /// Seals the RTP packet that fills the first `length` bytes of the buffer, in place; gives its new length, at most
    /// [`RTP_TRAILER_MAX`](crate::RTP_TRAILER_MAX) more. When it is refused the buffer is as it was.
    pub fn seal_rtp(&mut self, buffer: &mut [u8], length: usize) -> Result<usize, Refused> {
        self.sending.seal_rtp(buffer, length)
    }
    /// Opens an RTP packet in place; gives its new length. When it is refused the packet and the session are as they
    /// were.
    pub fn open_rtp(&mut self, packet: &mut [u8]) -> Result<usize, Refused> {
        let Some(before) = &mut self.before else { return self.receiving.open_rtp(packet, None) };
        let ssrc = crate::packet::rtp(packet)?.ssrc;
        let opened = self.receiving.open_rtp(packet, before.sources.highest_rtp(ssrc));
        match opened {
            Ok(_) => self.before = None,
            Err(_) => return before.open_rtp(packet, None),
        }
        opened
    }
    /// Seals the RTCP compound that fills the first `length` bytes of the buffer, in place; gives its new length, at most
    /// [`RTCP_TRAILER_MAX`](crate::RTCP_TRAILER_MAX) more. When it is refused the buffer is as it was.
    pub fn seal_rtcp(&mut self, buffer: &mut [u8], length: usize) -> Result<usize, Refused> {
        self.sending.seal_rtcp(buffer, length)
    }
    /// Opens an RTCP compound in place; gives its new length. When it is refused the compound and the session are as
    /// they were.
    pub fn open_rtcp(&mut self, packet: &mut [u8]) -> Result<usize, Refused> {
        let opened = self.receiving.open_rtcp(packet);
        match &mut self.before {
            Some(before) if opened.is_err() => before.open_rtcp(packet),
            _ => opened,
        }
    }
}
