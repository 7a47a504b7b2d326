//! Option letters of applications, by the constants that their own code reads them with.

use crate::{
    bridging, directory, followme, gate, hear, listen, originate, page, parking, playback, queue, spy,
    voicemail,
};

/// Application, which argument its letters are, and the letters.
pub(super) const LETTERS: &[(&str, usize, &str)] = &[
    ("Authenticate", 1, gate::AUTHENTICATE_OPTIONS),
    ("BackGround", 1, playback::BACKGROUND_OPTIONS),
    ("Bridge", 1, bridging::BRIDGE_OPTIONS),
    ("ChanIsAvail", 1, gate::CHAN_IS_AVAIL_OPTIONS),
    ("ChanSpy", 1, spy::OPTIONS),
    ("Directory", 2, directory::OPTIONS),
    ("ExtenSpy", 1, spy::OPTIONS),
    ("FollowMe", 1, followme::OPTIONS),
    ("Originate", 6, originate::OPTIONS),
    ("Page", 1, page::OPTIONS),
    ("Park", 1, parking::PARK_OPTIONS),
    ("Queue", 1, queue::LETTERS),
    ("Read", 3, listen::READ_OPTIONS),
    ("VoiceMail", 1, voicemail::VOICEMAIL_OPTIONS),
    ("VoiceMailMain", 1, voicemail::MAIN_OPTIONS),
    ("WaitForTone", 4, hear::WAIT_FOR_TONE_OPTIONS),
    ("VMAuthenticate", 1, voicemail::AUTHENTICATE_OPTIONS),
];
