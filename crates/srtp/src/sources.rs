//! Where each source of a direction is: the highest index of its packets, in which its rollover counter stands.

use crate::Refused;
use crate::window::Window;

/// Sources of one direction that are told apart. A phone has one, and another after each music or transfer of its own;
/// when more come, the one that was silent longest is forgotten. Only who has the key makes an entry.
pub const SOURCES_MAX: usize = 8;
/// Indices of RTP have 48 bits, 32 of them the rollover counter (RFC 3711 §3.3.1).
const RTP_INDICES: u64 = 1 << 48;
/// Indices of RTCP have 31 bits (RFC 3711 §3.4).
pub(crate) const RTCP_INDICES: u64 = 1 << 31;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Source {
    ssrc: u32,
    /// When it was heard last, in packets of all sources; zero: the entry is free.
    heard: u64,
    rtp: Window,
    rtcp: Window,
}

/// The sources of a direction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Sources {
    table: [Source; SOURCES_MAX],
    /// The entry that was used last; nearly always the one that is wanted.
    last: usize,
    heard: u64,
}

impl Sources {
    fn find(&self, ssrc: u32) -> Option<&Source> {
        let is_it = |source: &&Source| source.ssrc == ssrc && source.heard > 0;
        self.table.get(self.last).filter(is_it).or_else(|| self.table.iter().find(is_it))
    }
    /// Whether nothing was heard.
    pub(crate) const fn is_empty(&self) -> bool {
        self.heard == 0
    }
    /// The highest index of a source's RTP.
    pub(crate) fn highest_rtp(&self, ssrc: u32) -> Option<u64> {
        self.find(ssrc).and_then(|source| source.rtp.highest())
    }
    /// What was seen of a source's RTP.
    pub(crate) fn rtp(&self, ssrc: u32) -> Window {
        self.find(ssrc).map_or_else(Window::default, |source| source.rtp)
    }
    /// What was seen of a source's RTCP.
    pub(crate) fn rtcp(&self, ssrc: u32) -> Window {
        self.find(ssrc).map_or_else(Window::default, |source| source.rtcp)
    }
    /// An authentic packet of RTP.
    pub(crate) fn mark_rtp(&mut self, ssrc: u32, index: u64) {
        self.admit(ssrc).rtp.mark(index);
    }
    /// An authentic compound.
    pub(crate) fn mark_rtcp(&mut self, ssrc: u32, index: u64) {
        self.admit(ssrc).rtcp.mark(index);
    }
    fn admit(&mut self, ssrc: u32) -> &mut Source {
        let is_it = |source: &Source| source.ssrc == ssrc && source.heard > 0;
        self.heard += 1;
        if !self.table.get(self.last).is_some_and(is_it) {
            let known = self.table.iter().position(is_it);
            let at = known.unwrap_or_else(|| self.oldest());
            if let (None, Some(free)) = (known, self.table.get_mut(at)) {
                *free = Source { ssrc, ..Source::default() };
            }
            self.last = at;
        }
        let source = &mut self.table[self.last % SOURCES_MAX];
        source.heard = self.heard;
        source
    }
    /// A free entry, or the one that was silent longest.
    fn oldest(&self) -> usize {
        let by_age = |(_, source): &(usize, &Source)| source.heard;
        self.table.iter().enumerate().min_by_key(by_age).map_or(0, |(at, _)| at)
    }
}

/// The index that a sequence number stands for: the nearest to the highest one (RFC 3711 §3.3.1).
pub(crate) fn index(highest: Option<u64>, sequence: u16) -> Result<u64, Refused> {
    let Some(highest) = highest else { return Ok(sequence.into()) };
    let ahead = sequence.wrapping_sub(highest as u16).cast_signed();
    match highest.checked_add_signed(ahead.into()) {
        None => Err(Refused::TooOld), // from before the first packet
        Some(index) if index >= RTP_INDICES => Err(Refused::KeyUsedUp),
        Some(index) => Ok(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3711, appendix A, in its own words.
    fn as_the_rfc_says(roc: u64, s_l: u16, seq: u16) -> u64 {
        let (wide_l, wide) = (i64::from(s_l), i64::from(seq));
        let v = if s_l < 32_768 {
            if wide - wide_l > 32_768 { roc - 1 } else { roc }
        } else if wide_l - 32_768 > wide {
            roc + 1
        } else {
            roc
        };
        v << 16 | u64::from(seq)
    }

    #[test]
    fn rfc3711_a_the_index_is_guessed_as_the_appendix_does() {
        for s_l in (0..=u16::MAX).step_by(97).chain([0, 1, 32_767, 32_768, 32_769, u16::MAX]) {
            for ahead in (0..=u16::MAX).step_by(89).chain([1, 32_767, 32_769, u16::MAX]) {
                // Exactly half way round is as near in both directions.
                if ahead == 32_768 {
                    continue;
                }
                let seq = s_l.wrapping_add(ahead);
                let expected = as_the_rfc_says(5, s_l, seq);
                assert_eq!(index(Some(5 << 16 | u64::from(s_l)), seq), Ok(expected), "{s_l} {seq}");
            }
        }
        assert_eq!(index(None, 40_000), Ok(40_000));
        assert_eq!(index(Some(3), 65_535), Err(Refused::TooOld));
        assert_eq!(index(Some(RTP_INDICES - 1), 0), Err(Refused::KeyUsedUp));
    }

    #[test]
    fn more_sources_than_there_is_room_for_push_out_the_one_that_was_silent_longest() {
        let mut sources = Sources::default();
        assert!(sources.is_empty());
        for ssrc in 0..SOURCES_MAX as u32 {
            sources.mark_rtp(ssrc, 70_000 + u64::from(ssrc));
        }
        sources.mark_rtcp(0, 1);
        sources.mark_rtp(99, 5);
        let known: Vec<u32> = (0..100).filter(|ssrc| sources.highest_rtp(*ssrc).is_some()).collect();
        assert_eq!(known, [0, 2, 3, 4, 5, 6, 7, 99]);
        assert_eq!((sources.highest_rtp(0), sources.rtcp(0).highest()), (Some(70_000), Some(1)));
    }
}
