//! Why a packet was thrown away: counted words, never text (logged only as totals).

macro_rules! discards {
    ($($name:ident $word:literal $doc:literal;)*) => {
        /// Why a packet was thrown away.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Discard { $(#[doc = $doc] $name,)* }
        impl Discard {
            /// Every reason, in the order of [`DiscardCounts`].
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
            /// The word under which metrics and the console show it.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

discards! {
    TooShort "too_short" "Shorter than its own header says (RFC 3550 §5.1).";
    BadVersion "bad_version" "The version is not 2.";
    BadPadding "bad_padding" "The padding count is zero or exceeds the payload.";
    NoPayload "no_payload" "A header without a payload.";
    UnknownPayload "unknown_payload" "A payload type that was not negotiated.";
    WrongSource "wrong_source" "A source that the latch refuses.";
    BadSequence "bad_sequence" "A sequence jump that its source has not confirmed (RFC 3550 A.1).";
    Duplicate "duplicate" "The same packet again.";
    Late "late" "Audio for a moment that has been played.";
    Overflow "overflow" "The jitter buffer or a bounded queue was full.";
    Muted "muted" "The plan's direction says that nothing is to be received.";
    BadEvent "bad_event" "A telephone-event that is too short or names no digit (RFC 4733 §2.3).";
    BadRtcp "bad_rtcp" "A compound packet that RFC 3550 A.2 refuses.";
    UnknownStream "unknown_stream" "For a stream that is gone.";
    WrongFormat "wrong_format" "A negotiated format that the bridge was not planned for; it is re-planned.";
    Malformed "malformed" "Audio that its codec cannot read, whole or in part: it is concealed or left out.";
    NotAuthentic "not_authentic" "SRTP whose tag is wrong: not from the holder of the key, or damaged (RFC 3711 §3.3).";
    Replayed "replayed" "SRTP that came before, or older than the replay window (RFC 3711 §3.3.2).";
    NotSealed "not_sealed" "A packet that could not be sealed: its number was used, or its key is used up (RFC 3711 §9.2).";
    SendFailed "send_failed" "The kernel did not take the packet.";
}

/// How often each [`Discard`] happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiscardCounts([u64; Discard::ALL.len()]);

impl DiscardCounts {
    /// Counts one.
    pub fn count(&mut self, why: Discard) {
        self.add(why, 1);
    }
    /// Counts so many.
    pub fn add(&mut self, why: Discard, count: u64) {
        if let Some(slot) = self.0.get_mut(why as usize) {
            *slot += count;
        }
    }
    /// How often `why` happened.
    pub fn of(&self, why: Discard) -> u64 {
        self.0.get(why as usize).copied().unwrap_or(0)
    }
    /// All reasons with their counts, in the order of [`Discard::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Discard, u64)> + '_ {
        Discard::ALL.iter().copied().zip(self.0)
    }
    /// Sum over all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}
