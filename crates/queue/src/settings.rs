//! How a queue behaves: what queues.conf says of it.

use core::time::Duration;
use std::sync::Arc;

use crate::{SkillChange, Skills};

/// Who is called next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Strategy {
    /// All who are free, at once.
    #[default]
    RingAll,
    /// Who has been without a call from the queue for longest.
    LeastRecent,
    /// Who has had the fewest calls from the queue.
    FewestCalls,
    /// Anybody.
    Random,
    /// In turn; the next call begins after the one who was called last.
    RoundRobinMemory,
    /// As `RoundRobinMemory`, in the order of the configuration.
    RoundRobinOrdered,
    /// In the order of the configuration, from the first for each caller.
    Linear,
    /// Anybody, those of a low penalty more often.
    WeightedRandom,
}

impl Strategy {
    /// All of them with their words in queues.conf.
    pub const WORDS: [(&'static str, Self); 8] = [
        ("ringall", Self::RingAll),
        ("leastrecent", Self::LeastRecent),
        ("fewestcalls", Self::FewestCalls),
        ("random", Self::Random),
        ("rrmemory", Self::RoundRobinMemory),
        ("rrordered", Self::RoundRobinOrdered),
        ("linear", Self::Linear),
        ("wrandom", Self::WeightedRandom),
    ];
    /// The word of queues.conf.
    pub fn name(self) -> &'static str {
        Self::WORDS.iter().find(|(_, strategy)| *strategy == self).map_or("", |(word, _)| word)
    }
}

/// Whether a member who does not answer is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Autopause {
    /// No.
    #[default]
    No,
    /// In the queue that called it.
    Yes,
    /// In all of its queues.
    All,
}

/// What makes a member count as absent, for `joinempty` and `leavewhenempty`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Absence {
    /// Paused.
    pub paused: bool,
    /// Its penalty is out of the caller's bounds.
    pub penalty: bool,
    /// On a call.
    pub in_use: bool,
    /// Being called.
    pub ringing: bool,
    /// Configured and not reachable.
    pub unavailable: bool,
    /// There is no such device.
    pub invalid: bool,
    /// Nobody knows what its device does.
    pub unknown: bool,
    /// It had a call less than its wrap-up time ago.
    pub wrapup: bool,
    /// It lacks a skill that the caller needs.
    pub skill: bool,
}

impl Absence {
    /// `loose`: members count unless there is no such device.
    pub const LOOSE: Self = Self { penalty: true, invalid: true, ..Self::NONE };
    /// What `joinempty=no` and `leavewhenempty=yes` mean: paused ones do not count either.
    pub const PAUSED: Self = Self { paused: true, ..Self::LOOSE };
    /// `strict`: nor do those who cannot be reached.
    pub const STRICT: Self = Self { unavailable: true, ..Self::PAUSED };
    const NONE: Self = Self {
        paused: false,
        penalty: false,
        in_use: false,
        ringing: false,
        unavailable: false,
        invalid: false,
        unknown: false,
        wrapup: false,
        skill: false,
    };
    /// Whether the queue is never called empty.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
    /// Reads a list of conditions. `joins`: for `joinempty`, where `no` asks for members; else `yes` does. `Err` names the
    /// word that is none.
    pub fn parse(text: &str, joins: bool) -> Result<Self, &str> {
        let mut absence = Self::NONE;
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let truth = match word.to_ascii_lowercase().as_str() {
                "yes" | "true" | "y" | "t" | "1" | "on" => Some(true),
                "no" | "false" | "n" | "f" | "0" | "off" => Some(false),
                _ => None,
            };
            match word.to_ascii_lowercase().as_str() {
                _ if truth == Some(joins) => absence = Self::NONE,
                _ if truth.is_some() => absence = Self::PAUSED,
                "loose" => absence = Self::LOOSE,
                "strict" => absence = Self::STRICT,
                "paused" => absence.paused = true,
                "penalty" => absence.penalty = true,
                "inuse" => absence.in_use = true,
                "ringing" => absence.ringing = true,
                "unavailable" => absence.unavailable = true,
                "invalid" => absence.invalid = true,
                "unknown" => absence.unknown = true,
                "wrapup" => absence.wrapup = true,
                "skill" => absence.skill = true,
                _ => return Err(word),
            }
        }
        Ok(absence)
    }
}

/// Whether callers hear their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TellPosition {
    /// Always.
    #[default]
    Yes,
    /// Never.
    No,
    /// While it is not beyond the limit.
    Limit,
    /// Beyond the limit they hear that there are more than that.
    More,
}

/// Whether callers hear how long it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TellHold {
    /// No.
    #[default]
    No,
    /// With each place.
    Yes,
    /// The first time.
    Once,
}

/// Names of the sounds that callers and members hear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sounds {
    /// "Your call is first in line."
    pub you_are_next: Arc<str>,
    /// "There are".
    pub there_are: Arc<str>,
    /// "calls waiting."
    pub calls_waiting: Arc<str>,
    /// "There are more than".
    pub quantity_before: Arc<str>,
    /// "callers waiting."
    pub quantity_after: Arc<str>,
    /// "The estimated hold time is".
    pub hold_time: Arc<str>,
    /// "minute".
    pub minute: Arc<str>,
    /// "minutes".
    pub minutes: Arc<str>,
    /// "seconds".
    pub seconds: Arc<str>,
    /// "Thank you for your patience."
    pub thank_you: Arc<str>,
    /// "Hold time", for members.
    pub report_hold: Arc<str>,
}

impl Default for Sounds {
    /// The field's names.
    fn default() -> Self {
        Self {
            you_are_next: "queue-youarenext".into(),
            there_are: "queue-thereare".into(),
            calls_waiting: "queue-callswaiting".into(),
            quantity_before: "queue-quantity1".into(),
            quantity_after: "queue-quantity2".into(),
            hold_time: "queue-holdtime".into(),
            minute: "queue-minute".into(),
            minutes: "queue-minutes".into(),
            seconds: "queue-seconds".into(),
            thank_you: "queue-thankyou".into(),
            report_hold: "queue-reporthold".into(),
        }
    }
}

/// What waiting callers are told, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcing {
    /// `announce-frequency`: between two announcements of the place; zero: none.
    pub every: Duration,
    /// `min-announce-frequency`: at least this lies between two, though the place has changed.
    pub least: Duration,
    /// `announce-to-first-user`: also while a member is being called for the caller.
    pub to_first: bool,
    /// `announce-position`.
    pub position: TellPosition,
    /// `announce-position-limit`.
    pub position_limit: u32,
    /// `announce-position-only-up`: only a place that is better than the one that was said last.
    pub only_up: bool,
    /// `announce-holdtime`.
    pub hold: TellHold,
    /// `announce-round-seconds`: zero: no seconds are said.
    pub round_seconds: u32,
    /// `periodic-announce`: sounds, one each time.
    pub periodic: Vec<Arc<str>>,
    /// `periodic-announce-frequency`; zero: none.
    pub periodic_every: Duration,
    /// `periodic-announce-startdelay`: before the first; `None`: as between two.
    pub periodic_first: Option<Duration>,
    /// `random-periodic-announce`: any of them, not in turn.
    pub periodic_random: bool,
    /// `relative-periodic-announce`: counted from the end of the last one, not from its beginning.
    pub periodic_relative: bool,
    /// What the sounds are called.
    pub sounds: Sounds,
}

impl Default for Announcing {
    /// What holds when queues.conf says nothing.
    fn default() -> Self {
        Self {
            every: Duration::ZERO,
            least: Duration::from_secs(15),
            to_first: false,
            position: TellPosition::Yes,
            position_limit: 5,
            only_up: false,
            hold: TellHold::No,
            round_seconds: 0,
            periodic: vec!["queue-periodic-announce".into()],
            periodic_every: Duration::ZERO,
            periodic_first: None,
            periodic_random: false,
            periodic_relative: false,
            sounds: Sounds::default(),
        }
    }
}

/// What is done with a call at its beginning and at the member's answer; the machine passes it on to the story.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Handling {
    /// `musicclass`; empty: that of the channel.
    pub music_class: String,
    /// `context`: where a digit leads out of the queue; empty: nowhere.
    pub context: String,
    /// `announce`: what the member hears before the caller.
    pub announce: String,
    /// `reportholdtime`: the member hears how long the caller has waited.
    pub report_hold: bool,
    /// `memberdelay`: silence between the member's answer and the caller.
    pub member_delay: Duration,
    /// `membergosub`: a routine on the member's channel.
    pub member_gosub: String,
    /// `membermacro`: a macro on the member's channel before that.
    pub member_macro: String,
    /// `queue-callerannounce`: what the caller hears before the member.
    pub caller_announce: String,
    /// `setinterfacevar`.
    pub set_interface_var: bool,
    /// `setqueuevar`.
    pub set_queue_var: bool,
    /// `setqueueentryvar`.
    pub set_entry_var: bool,
    /// `monitor-format`: conversations are recorded in these files; empty: they are not.
    pub monitor_format: String,
    /// `monitor-type=MixMonitor`.
    pub mix_monitor: bool,
}

/// One queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `strategy`.
    pub strategy: Strategy,
    /// `timeout`: how long members ring; zero: until they answer.
    pub timeout: Duration,
    /// `retry`: between two attempts for one caller.
    pub retry: Duration,
    /// `timeoutrestart`: a member who is busy begins the time anew.
    pub timeout_restart: bool,
    /// `timeoutpriority=app`: members stop ringing when the caller's own time ends.
    pub app_timeout_first: bool,
    /// `autofill`: several callers are served at once.
    pub autofill: bool,
    /// `weight`: calls of the heavier queue go first where both have a member.
    pub weight: u32,
    /// `wrapuptime`.
    pub wrapup: Duration,
    /// `maxlen`: most callers who wait; 0: no limit.
    pub max_length: u32,
    /// `ringinuse`: members are called who are on a call.
    pub ring_in_use: bool,
    /// `autopause`.
    pub autopause: Autopause,
    /// `autopausedelay`: not so soon after a call.
    pub autopause_delay: Duration,
    /// `autopausebusy`: who is busy, too.
    pub autopause_busy: bool,
    /// `autopauseunavail`: who cannot be reached, too.
    pub autopause_unavailable: bool,
    /// `joinempty`.
    pub join_empty: Absence,
    /// `leavewhenempty`.
    pub leave_when_empty: Absence,
    /// `penaltymemberslimit`: with no more members than this, penalties do not count.
    pub penalty_members_limit: u32,
    /// `servicelevel`.
    pub service_level: Duration,
    /// `defaultrule`.
    pub default_rule: String,
    /// `log-restricted-caller-id`: the log also has the numbers of those who do not want to be known.
    pub log_restricted: bool,
    /// What callers hear.
    pub announcing: Announcing,
    /// What becomes of their calls.
    pub handling: Handling,
}

impl Default for Settings {
    /// What holds when queues.conf says nothing.
    fn default() -> Self {
        Self {
            strategy: Strategy::RingAll,
            timeout: Duration::from_secs(15),
            retry: Duration::from_secs(5),
            timeout_restart: false,
            app_timeout_first: true,
            autofill: true,
            weight: 0,
            wrapup: Duration::ZERO,
            max_length: 0,
            ring_in_use: true,
            autopause: Autopause::No,
            autopause_delay: Duration::ZERO,
            autopause_busy: false,
            autopause_unavailable: false,
            join_empty: Absence::default(),
            leave_when_empty: Absence::default(),
            penalty_members_limit: 0,
            service_level: Duration::ZERO,
            default_rule: String::new(),
            log_restricted: true,
            announcing: Announcing::default(),
            handling: Handling::default(),
        }
    }
}

/// A member as it is added.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewMember {
    /// What is dialled: `PJSIP/6001`.
    pub interface: String,
    /// Its name in logs and events; empty: the interface.
    pub name: String,
    /// Device whose state counts; empty: the interface.
    pub state_interface: String,
    /// Penalty.
    pub penalty: u32,
    /// Paused from the beginning.
    pub paused: bool,
    /// Why.
    pub paused_reason: String,
    /// Its own `ringinuse`.
    pub ring_in_use: Option<bool>,
    /// Its own wrap-up time.
    pub wrapup: Option<Duration>,
    /// Its skills.
    pub skills: Skills,
    /// What its device does, as far as that is known.
    pub state: Option<crate::DeviceState>,
    /// It is a row of a database: its `uniqueid`, empty when the table has none.
    pub row: Option<String>,
}

impl NewMember {
    /// The device whose state counts.
    pub fn device(&self) -> &str {
        if self.state_interface.is_empty() { &self.interface } else { &self.state_interface }
    }
}

/// One queue of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueConfig {
    /// Its name.
    pub name: String,
    /// How it behaves.
    pub settings: Settings,
    /// Its static members, and those that are rows.
    pub members: Vec<NewMember>,
    /// It is a row of a database itself.
    pub is_row: bool,
}

/// Everything that queues.conf and queuerules.conf say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    /// Queues.
    pub queues: Vec<QueueConfig>,
    /// Rules by name.
    pub rules: Vec<(String, Vec<crate::PenaltyChange>)>,
    /// What the same rules change about skills, of those that do.
    pub skill_rules: Vec<(String, Vec<SkillChange>)>,
    /// Settings of all.
    pub general: General,
}

/// `[general]` of queues.conf, as far as the machine obeys it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct General {
    /// `persistentmembers`: dynamic members survive a restart.
    pub persistent_members: bool,
    /// `shared_lastcall`: a call of one queue begins the wrap-up time in all.
    pub shared_last_call: bool,
    /// `force_longest_waiting_caller`: a member's next caller is the one of its queues who waits longest.
    pub longest_waiting_first: bool,
    /// `negative_penalty_invalid` has no meaning for unsigned penalties; `log_unpause_on_reason_change` does.
    pub log_unpause_on_reason_change: bool,
    /// `log-caller-id-name`: the log has callers' names, too.
    pub log_caller_name: bool,
    /// `updatecdr`: call records name the member instead of its channel.
    pub update_cdr: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_lists_of_words_and_yes_and_no_differ_for_joining_and_leaving() {
        for (text, joins, expected) in [
            ("yes", true, Ok(Absence::NONE)),
            ("no", true, Ok(Absence::PAUSED)),
            ("yes", false, Ok(Absence::PAUSED)),
            ("no", false, Ok(Absence::NONE)),
            ("strict", true, Ok(Absence::STRICT)),
            ("loose", false, Ok(Absence::LOOSE)),
            ("", true, Ok(Absence::NONE)),
            ("paused, InUse", true, Ok(Absence { paused: true, in_use: true, ..Absence::NONE })),
            ("wrapup,ringing,unknown", false, {
                Ok(Absence { wrapup: true, ringing: true, unknown: true, ..Absence::NONE })
            }),
            ("skill", true, Ok(Absence { skill: true, ..Absence::NONE })),
            ("paused,asleep", true, Err("asleep")),
        ] {
            assert_eq!(Absence::parse(text, joins), expected, "{text} {joins}");
        }
    }
}
