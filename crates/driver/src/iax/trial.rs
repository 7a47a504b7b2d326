//! What an administrator tries while calls go on: a network that loses frames (`iax2 test losspct`), and another length of
//! trunks (`iax2 set mtu`).

use std::rc::Rc;

use ::iax2::frame::DATAGRAM_BYTES_MAX;

use super::IaxDriver;

/// The shortest datagram of trunks that may be set: a frame of G.711 of the usual length with its header.
pub const TRUNK_MTU_LEAST: usize = 172;
/// The longest: no datagram of IAX2 is longer here.
pub const TRUNK_MTU_MOST: usize = DATAGRAM_BYTES_MAX;
/// What holds where nothing is written.
pub const TRUNK_MTU_DEFAULT: usize = 1240;

/// Frames that are thrown away, for tests.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trial {
    /// Of a hundred datagrams that come so many are lost.
    percent: u8,
    /// Datagrams that were.
    pub(super) thrown_away: u64,
}

impl IaxDriver {
    /// Of a hundred datagrams that come so many are thrown away from here on; 0 takes them all.
    pub fn set_loss(&mut self, percent: u8) {
        self.trial.percent = percent.min(100);
    }
    /// Whether the next datagram is lost on a network that only a test has.
    pub(super) fn throws_away(&mut self) -> bool {
        let percent = u64::from(self.trial.percent);
        let lost = percent > 0 && self.random.below(100) < percent;
        self.trial.thrown_away += u64::from(lost);
        lost
    }
    /// The longest datagram of trunks, bytes (`trunkmtu`), until a configuration says otherwise. What it was.
    pub fn set_trunk_mtu(&mut self, bytes_max: usize) -> usize {
        let trunk = &mut Rc::make_mut(&mut self.config).trunk;
        let before = core::mem::replace(&mut trunk.bytes_max, bytes_max);
        let trunk = *trunk;
        for socket in self.sockets.iter_mut().flatten() {
            socket.machine.set_trunk(trunk);
        }
        before
    }
}
