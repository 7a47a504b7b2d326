//! What the administrator set: the settings of calls, and how answering machines are told from people.

use std::rc::Rc;

use base::Coded;

use crate::Directories;

/// What the administrator set and the call core reads. Replaced whole by a reload.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Formats that are coded here; the others only pass through.
    pub coded: Coded,
    /// `systemname`: prefix of UNIQUEID.
    pub system_name: String,
    /// `entityid`.
    pub entity_id: String,
    /// `defaultlanguage`.
    pub language: String,
    /// `country` of indications.conf.
    pub country: String,
    /// Directories.
    pub directories: Directories,
    /// `transmit_silence`: an answered call that has nothing to hear is sent silence.
    pub transmit_silence: bool,
    /// `preferchannelclass=no`: music that an application names goes before what the dialplan chose for the channel.
    pub named_music_first: bool,
    /// Call records: written at all.
    pub cdr_enabled: bool,
    /// `unanswered`: call records also for calls that nobody answered and that had no second party.
    pub cdr_unanswered: bool,
    /// `congestion=yes`: disposition CONGESTION exists.
    pub cdr_congestion: bool,
    /// `canceldispositionenabled=yes`: disposition CANCEL exists.
    pub cdr_cancel: bool,
    /// `channeldefaultenabled=no`: only channels whose dialplan asks for records have them.
    pub cdr_on_request: bool,
    /// `initiatedseconds`: what is billed is rounded up to a whole second.
    pub cdr_initiated_seconds: bool,
    /// `ignoredialchanges`: dialling begins no other record.
    pub cdr_ignore_dialling: bool,
    /// `endbeforehexten`: the record ends before `h` runs.
    pub cdr_end_before_h: bool,
    /// Channel event logging; `None`: there is none.
    pub cel: Option<Rc<crate::CelSettings>>,
    /// Capabilities switched off by `noload` in modules.conf, by module name without `.so`.
    pub disabled_modules: std::collections::BTreeSet<String>,
    /// `live_dangerously`.
    pub live_dangerously: bool,
    /// Profiles of confbridge.conf.
    pub conferences: std::sync::Arc<crate::conference::Profiles>,
    /// Rooms of meetme.conf.
    pub meeting_rooms: std::sync::Arc<crate::conference::Rooms>,
    /// What meetme.conf says of rooms that are rows.
    pub bookings: crate::conference::Bookings,
    /// Profiles of followme.conf.
    pub follow_me: std::sync::Arc<crate::followme::Profiles>,
    /// features.conf.
    pub features: Rc<crate::features::Features>,
    /// Classes of music that nobody hears who is not answered (`answeredonly`).
    pub music_when_answered: Rc<std::collections::BTreeSet<String>>,
    /// Keys by which who hears music chooses its class (`digit`).
    pub music_keys: Rc<std::collections::BTreeMap<char, String>>,
    /// How answering machines are told from people, where a dialplan does not say.
    pub machines: MachineSettings,
    /// Databases that transactions can be in, by their names.
    pub transactions: Rc<std::collections::BTreeMap<String, crate::transactions::TransactionRules>>,
    /// Mailboxes and their rules.
    pub voicemail: std::sync::Arc<crate::voicemail::Voicemail>,
    /// Accounts that have no menus.
    pub minivm: std::sync::Arc<crate::voicemail::MiniVm>,
}

/// How an answering machine is told from somebody who answers; times in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineSettings {
    /// Longest silence before a greeting.
    pub initial_silence_ms: u32,
    /// Longest greeting.
    pub greeting_ms: u32,
    /// Silence after a greeting that people leave.
    pub after_greeting_silence_ms: u32,
    /// After this it is not sure.
    pub total_ms: u32,
    /// Shortest sound that is a word.
    pub word_min_ms: u32,
    /// Shortest silence that parts words.
    pub between_words_ms: u32,
    /// Words by which it is a machine.
    pub words_max: u32,
    /// Mean absolute amplitude from which on it is sound.
    pub silence_threshold: u32,
    /// Longest word.
    pub word_max_ms: u32,
    /// Sound that is played meanwhile; empty: none.
    pub audio_file: String,
}

impl Default for MachineSettings {
    /// The field's.
    fn default() -> Self {
        Self {
            initial_silence_ms: 2500,
            greeting_ms: 1500,
            after_greeting_silence_ms: 800,
            total_ms: 5000,
            word_min_ms: 100,
            between_words_ms: 50,
            words_max: 2,
            silence_threshold: 256,
            word_max_ms: 5000,
            audio_file: String::new(),
        }
    }
}

impl Settings {
    /// Whether `module` (`app_dial`) was not switched off.
    pub fn has_module(&self, module: &str) -> bool {
        !self.disabled_modules.contains(module)
    }
}
