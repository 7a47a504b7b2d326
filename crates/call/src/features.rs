//! What keys do during a conversation: the data of features.conf, and who may use what.

use core::time::Duration;
use std::collections::BTreeMap;

/// What one party of a conversation may do with keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rights {
    /// Transfer the other one (`t` and `T` of Dial).
    pub transfer: bool,
    /// End the call (`h`, `H`).
    pub disconnect: bool,
    /// Record into one file (`x`, `X`).
    pub mix_monitor: bool,
    /// Record as Monitor does (`w`, `W`).
    pub monitor: bool,
    /// Park the other one (`k`, `K`).
    pub park: bool,
}

impl Rights {
    /// Both these rights and others.
    #[must_use]
    pub fn with(self, others: Self) -> Self {
        Self {
            transfer: self.transfer || others.transfer,
            disconnect: self.disconnect || others.disconnect,
            mix_monitor: self.mix_monitor || others.mix_monitor,
            monitor: self.monitor || others.monitor,
            park: self.park || others.park,
        }
    }
}

/// Codes of `[featuremap]`; an empty one is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureMap {
    /// `blindxfer`.
    pub blind: String,
    /// `atxfer`.
    pub attended: String,
    /// `disconnect`.
    pub disconnect: String,
    /// `automixmon`.
    pub mix_monitor: String,
    /// `automon`.
    pub monitor: String,
    /// `parkcall`.
    pub park: String,
}

impl Default for FeatureMap {
    /// The field's.
    fn default() -> Self {
        Self {
            blind: "#".to_owned(),
            attended: String::new(),
            disconnect: "*".to_owned(),
            mix_monitor: String::new(),
            monitor: String::new(),
            park: String::new(),
        }
    }
}

/// Whose channel the application of a feature runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunsOn {
    /// That of who pressed the keys.
    Own,
    /// That of the other one.
    Peer,
}

/// Who of a conversation may use a feature of the application map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PressedBy {
    /// Both.
    Both,
    /// Who called.
    Caller,
    /// Who was called.
    Callee,
}

/// A feature of `[applicationmap]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppFeature {
    /// Its code.
    pub code: String,
    /// Whose channel the application runs on.
    pub runs_on: RunsOn,
    /// Who may use it.
    pub pressed_by: PressedBy,
    /// Application.
    pub app: String,
    /// Its arguments.
    pub args: String,
    /// Music that the other one hears meanwhile; empty: its own class.
    pub music: String,
}

/// features.conf. A channel has one of its own when its dialplan has changed something by `FEATURE()`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features {
    /// `featuredigittimeout`: how long the next digit of a code may take.
    pub code_timeout: Duration,
    /// `transferdigittimeout`: how long the next digit of a destination may take.
    pub digit_timeout: Duration,
    /// `transferdialattempts`.
    pub attempts: u32,
    /// `atxfernoanswertimeout`: how long the third party may ring.
    pub no_answer: Duration,
    /// `atxferdropcall`: who transfers and hangs up while it rings is not called back.
    pub drop_call: bool,
    /// `atxfercallbackretries`: how often that one is called back.
    pub callback_retries: u32,
    /// `atxferloopdelay`: pause before the third party is called again.
    pub loop_delay: Duration,
    /// `atxferabort`.
    pub abort: String,
    /// `atxfercomplete`.
    pub complete: String,
    /// `atxferswap`.
    pub swap: String,
    /// `atxferthreeway`.
    pub three_way: String,
    /// `xfersound`: heard when an attended transfer is done.
    pub done_sound: String,
    /// `xferfailsound`: heard when one has failed.
    pub failed_sound: String,
    /// `transferannouncesound`.
    pub announce_sound: String,
    /// `transferretrysound`.
    pub retry_sound: String,
    /// `transferinvalidsound`.
    pub invalid_sound: String,
    /// `courtesytone`: heard when a recording begins or ends.
    pub courtesy_tone: String,
    /// `recordingfailsound`.
    pub recording_failed_sound: String,
    /// `pickupexten`: who dials it takes a call that rings in its groups.
    pub pickup_exten: String,
    /// `pickupsound`: heard before that.
    pub pickup_sound: String,
    /// `pickupfailsound`: there is no such call.
    pub pickup_fail_sound: String,
    /// `[featuremap]`.
    pub map: FeatureMap,
    /// `[applicationmap]` by name.
    pub apps: BTreeMap<String, AppFeature>,
    /// Groups of features by name: names of [`Features::apps`] with the code they have there.
    pub groups: BTreeMap<String, Vec<(String, String)>>,
}

impl Default for Features {
    /// The field's.
    fn default() -> Self {
        let text = |text: &str| text.to_owned();
        Self {
            code_timeout: Duration::from_secs(1),
            digit_timeout: Duration::from_secs(3),
            attempts: 3,
            no_answer: Duration::from_secs(15),
            drop_call: false,
            callback_retries: 2,
            loop_delay: Duration::from_secs(10),
            abort: text("*1"),
            complete: text("*2"),
            swap: text("*4"),
            three_way: text("*3"),
            done_sound: text("beep"),
            failed_sound: text("beeperr"),
            announce_sound: text("pbx-transfer"),
            retry_sound: text("pbx-invalid"),
            invalid_sound: text("privacy-incorrect"),
            courtesy_tone: String::new(),
            recording_failed_sound: String::new(),
            pickup_exten: text("*8"),
            pickup_sound: String::new(),
            pickup_fail_sound: String::new(),
            map: FeatureMap::default(),
            apps: BTreeMap::new(),
            groups: BTreeMap::new(),
        }
    }
}

impl Features {
    /// The code of a feature of `[featuremap]` or `[applicationmap]`, any case; `None` when there is none.
    pub fn code_of(&self, name: &str) -> Option<&str> {
        let map = &self.map;
        let built_in = [
            ("blindxfer", &map.blind),
            ("atxfer", &map.attended),
            ("disconnect", &map.disconnect),
            ("automixmon", &map.mix_monitor),
            ("automon", &map.monitor),
            ("parkcall", &map.park),
        ];
        let found = built_in.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let own = || self.apps.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let code = found.map(|(_, code)| code).or_else(|| own().map(|(_, app)| &app.code));
        code.map(String::as_str).filter(|code| !code.is_empty())
    }
}
