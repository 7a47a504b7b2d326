//! What a worker's time goes into. The worker has no clock: it says where it is, and the back-end may look at one.

/// A part of a worker's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Commands, events, what lies around a tick.
    Control,
    /// Datagrams are taken, judged and, in a relay, rewritten.
    Receive,
    /// Visits of streams: timers, jitter buffers, prompts, digits.
    Jitter,
    /// Coded frames become samples.
    Decode,
    /// Samples are resampled, mixed, listened to and recorded.
    Mix,
    /// Samples become coded frames.
    Encode,
    /// Packets are encrypted and decrypted, authenticated and verified.
    Seal,
    /// Packets go to the kernel.
    Send,
}

impl Phase {
    /// Every phase, in the order of a tick.
    pub const ALL: [Self; 8] = [
        Self::Control,
        Self::Receive,
        Self::Jitter,
        Self::Decode,
        Self::Mix,
        Self::Encode,
        Self::Seal,
        Self::Send,
    ];

    /// One word for tables and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Receive => "receive",
            Self::Jitter => "jitter",
            Self::Decode => "decode",
            Self::Mix => "mix",
            Self::Encode => "encode",
            Self::Seal => "seal",
            Self::Send => "send",
        }
    }
}
