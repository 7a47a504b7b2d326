//! Option letters of applications, by the constants that their own code reads them with.

/// Application, which argument its letters are, and the letters.
pub(super) const LETTERS: &[(&str, usize, &str)] = &[
    ("Authenticate", 1, "adjmr"),
    ("BackGround", 1, "snmp"),
    ("Bridge", 1, "FhHkKLnpStTwWx"),
    ("ChanIsAvail", 1, "ajst"),
    ("ChanSpy", 1, crate::spy::OPTIONS),
    ("Directory", 2, "abceflmnps"),
    ("ExtenSpy", 1, crate::spy::OPTIONS),
    ("FollowMe", 1, "abBdIlNns"),
    ("Originate", 6, "acnv"),
    ("Page", 1, "AbBdinqrs"),
    ("Park", 1, "rRsct"),
    ("Queue", 1, crate::queue::LETTERS),
    ("Read", 3, "sintoe"),
    ("VoiceMail", 1, "bdegPsStuU"),
    ("VoiceMailMain", 1, "agps"),
    ("VMAuthenticate", 1, "s"),
];
