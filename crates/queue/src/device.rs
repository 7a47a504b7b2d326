//! Device states, in the words hints and queues use.

/// What a device is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceState {
    /// Nobody knows.
    #[default]
    Unknown,
    /// Registered or reachable, no call.
    NotInUse,
    /// On a call.
    InUse,
    /// On as many calls as it may be.
    Busy,
    /// There is no such device.
    Invalid,
    /// Configured, but not reachable.
    Unavailable,
    /// Being called.
    Ringing,
    /// On a call and being called.
    RingInUse,
    /// All its calls are on hold.
    OnHold,
}

impl DeviceState {
    /// The word `DEVICE_STATE()` returns.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::NotInUse => "NOT_INUSE",
            Self::InUse => "INUSE",
            Self::Busy => "BUSY",
            Self::Invalid => "INVALID",
            Self::Unavailable => "UNAVAILABLE",
            Self::Ringing => "RINGING",
            Self::RingInUse => "RINGINUSE",
            Self::OnHold => "ONHOLD",
        }
    }
    /// The words `core show hints` and people use.
    pub fn text(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::NotInUse => "Not in use",
            Self::InUse => "In use",
            Self::Busy => "Busy",
            Self::Invalid => "Invalid",
            Self::Unavailable => "Unavailable",
            Self::Ringing => "Ringing",
            Self::RingInUse => "Ring+Inuse",
            Self::OnHold => "On Hold",
        }
    }
    /// Parses the word of `name` (any case); `None` for others.
    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::Unknown,
            Self::NotInUse,
            Self::InUse,
            Self::Busy,
            Self::Invalid,
            Self::Unavailable,
            Self::Ringing,
            Self::RingInUse,
            Self::OnHold,
        ]
        .into_iter()
        .find(|state| state.name().eq_ignore_ascii_case(word.trim()))
    }
    /// The state of one extension from those of its devices: ringing and busy ones win over idle, idle over unreachable.
    pub fn combine(states: impl IntoIterator<Item = Self>) -> Self {
        let (mut any, mut in_use, mut ringing, mut all_busy, mut all_hold) =
            (false, false, false, true, true);
        let (mut all_unavailable, mut all_free) = (true, true);
        for state in states.into_iter().filter(|s| *s != Self::Unknown) {
            any = true;
            in_use |= matches!(state, Self::InUse | Self::RingInUse | Self::Busy | Self::OnHold);
            ringing |= matches!(state, Self::Ringing | Self::RingInUse);
            all_busy &= state == Self::Busy;
            all_hold &= state == Self::OnHold;
            all_unavailable &= matches!(state, Self::Unavailable | Self::Invalid);
            all_free &= matches!(state, Self::NotInUse | Self::Unavailable | Self::Invalid);
        }
        match () {
            () if !any => Self::Unknown,
            () if all_hold => Self::OnHold,
            () if all_busy => Self::Busy,
            () if all_unavailable => Self::Unavailable,
            () if ringing && in_use => Self::RingInUse,
            () if ringing => Self::Ringing,
            () if in_use => Self::InUse,
            () if all_free => Self::NotInUse,
            () => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DeviceState::{self, *};

    #[test]
    fn an_extension_is_what_its_devices_are_together() {
        for (states, expected) in [
            (vec![], Unknown),
            (vec![NotInUse, Unavailable], NotInUse),
            (vec![InUse, NotInUse], InUse),
            (vec![Ringing, NotInUse], Ringing),
            (vec![Ringing, InUse], RingInUse),
            (vec![Unavailable, Unavailable], Unavailable),
            (vec![Busy, Busy], Busy),
            (vec![OnHold], OnHold),
            (vec![Busy, NotInUse], InUse),
        ] {
            assert_eq!(DeviceState::combine(states.clone()), expected, "{states:?}");
        }
    }
}
