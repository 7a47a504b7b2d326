//! Profiles of confbridge.conf: how conferences run, and how somebody takes part.
//!
//! An option is one row: what reads the file, what `CONFBRIDGE()` sets and the manual go by the same table.

use std::ops::RangeInclusive;
use std::time::Duration;

use base::{Combined, Estimates, RoomSettings, RoomVideo, SampleRate};

use super::{Seat, VideoMode};

/// A bridge profile: how a conference runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BridgeProfile {
    /// Name of its section; that of its template when a dialplan made it.
    pub name: String,
    /// How the room is mixed.
    pub mixing: RoomSettings,
    /// Whose video is seen.
    pub video: VideoMode,
    /// Senders of video are told of a rate that is fixed.
    pub forces_bitrate: bool,
    /// That rate, bits a second.
    pub bitrate: u32,
    /// The rate that is mixed at, as the profile says; `None`: that of the members.
    pub rate: Option<SampleRate>,
    /// The rate that `rate` may come to; `None`: no limit.
    pub rate_max: Option<SampleRate>,
    /// Most members besides administrators; 0: no limit.
    pub members_max: u32,
    /// The conference is recorded from its first member to its last.
    pub records: bool,
    /// Where to; empty: a name of its own.
    pub record_file: String,
    /// The name gets the time at which the conference began.
    pub record_file_timestamp: bool,
    /// A recording that begins again goes on in its file.
    pub record_file_append: bool,
    /// Options of MixMonitor for the recording.
    pub record_options: String,
    /// Run when the recording is complete.
    pub record_command: String,
    /// Language of what all hear; empty: that of who enters.
    pub language: String,
    /// Context in which an extension is there as long as the conference; empty: none.
    pub register_in: String,
    /// Members who want to know are told what happens, by documents in their calls.
    pub tells_members: bool,
    /// What is heard when.
    pub sounds: Sounds,
}

impl Default for BridgeProfile {
    fn default() -> Self {
        Self {
            name: String::new(),
            mixing: RoomSettings::default(),
            video: VideoMode::default(),
            forces_bitrate: false,
            bitrate: 0,
            rate: None,
            rate_max: None,
            members_max: 0,
            records: false,
            record_file: String::new(),
            record_file_timestamp: true,
            record_file_append: true,
            record_options: String::new(),
            record_command: String::new(),
            language: String::new(),
            register_in: String::new(),
            tells_members: false,
            sounds: Sounds::default(),
        }
    }
}

impl BridgeProfile {
    /// How the room is mixed, with the rates of the profile.
    pub fn mixing(&self) -> RoomSettings {
        let rate_max = [self.rate, self.rate_max].into_iter().flatten().min_by_key(|rate| rate.0);
        let forced = self.forces_bitrate.then_some(self.bitrate);
        let estimates = Estimates { forced, ..self.mixing.video.estimates };
        let tells_speaker = self.video != VideoMode::None;
        let video = RoomVideo { tells_speaker, estimates, ..self.mixing.video };
        RoomSettings { rate_max, video, ..self.mixing }
    }
}

/// Rooms of meetme.conf, by number.
pub type Rooms = std::collections::BTreeMap<String, Pins>;

/// What meetme.conf says of rooms that are rows of a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bookings {
    /// There is a family `meetme`.
    pub has_rows: bool,
    /// Rows hold between their starttime and endtime only.
    pub schedule: bool,
    /// How much earlier somebody may enter (`fuzzystart`).
    pub early: Duration,
    /// Who comes this much earlier is told that it has not begun (`earlyalert`).
    pub early_alert: Duration,
    /// How long before the end all are told (`endalert`); zero: they are not.
    pub end_alert: Duration,
    /// By how much an administrator puts the end off (`extendby`).
    pub extend_by: Duration,
    /// The row says how many are there.
    pub counts: bool,
}

/// Digits to enter a room with; empty: none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pins {
    /// As somebody.
    pub user: String,
    /// As an administrator.
    pub admin: String,
}

/// A user profile: how somebody takes part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserProfile {
    /// Name of its section; that of its template when a dialplan made it.
    pub name: String,
    /// What it is and may do.
    pub seat: Seat,
    /// It hears music while it is alone or waits.
    pub has_music: bool,
    /// Class of that music; empty: that of its channel.
    pub music_class: String,
    /// Nobody hears a sound when it comes and goes.
    pub is_quiet: bool,
    /// It hears the sound of its own coming.
    pub hears_own_join: bool,
    /// It is told how many there are.
    pub hears_count: bool,
    /// All are told how many there are when it has come, from so many members on.
    pub tells_count_from: Option<u32>,
    /// It is told when it is alone.
    pub hears_that_it_is_alone: bool,
    /// Its name is recorded, and all hear it when it comes and goes.
    pub tells_name: bool,
    /// It may hear its name before.
    pub reviews_name: bool,
    /// Digits to enter with.
    pub pin: String,
    /// Sound that it hears when it has entered.
    pub announcement: String,
    /// Digits that are no key of its menu are sent to the others.
    pub passes_digits: bool,
    /// Seconds after which it is sent out; 0: never.
    pub timeout: u32,
    /// It is answered when it enters.
    pub answers: bool,
}

impl Default for UserProfile {
    fn default() -> Self {
        Self {
            name: String::new(),
            seat: Seat::default(),
            has_music: false,
            music_class: String::new(),
            is_quiet: false,
            hears_own_join: true,
            hears_count: false,
            tells_count_from: None,
            hears_that_it_is_alone: true,
            tells_name: false,
            reviews_name: false,
            pin: String::new(),
            announcement: String::new(),
            passes_digits: false,
            timeout: 0,
            answers: true,
        }
    }
}

/// How the text of an option becomes what a profile says.
pub enum Field<P> {
    /// Yes or no.
    Flag(fn(&mut P) -> &mut bool),
    /// A whole number in a range.
    Number(fn(&mut P) -> &mut u32, RangeInclusive<u32>),
    /// Any text.
    Text(fn(&mut P) -> &mut String),
    /// Something else: what may be written, how it is set (false: it is not taken) and shown.
    Other(&'static str, fn(&mut P, &str) -> bool, fn(&P) -> String),
    /// It is known to Asterisk and not obeyed. Values that ask for what happens anyway, separated by commas, of which the
    /// first is Asterisk's default (`*`: all of them do), whether it may be obeyed some day, and what happens instead.
    Not(&'static str, bool, &'static str),
}

/// One option of a profile.
pub struct OptionRow<P: 'static> {
    /// Its name.
    pub name: &'static str,
    /// How it is set.
    pub field: Field<P>,
    /// What holds when nothing is said.
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
}

impl<P: Clone + Default> OptionRow<P> {
    /// What may be written.
    pub fn kind(&self) -> String {
        match &self.field {
            Field::Flag(_) => "yes, no".to_owned(),
            Field::Number(_, range) => format!("number {} to {}", range.start(), range.end()),
            Field::Text(_) => "text".to_owned(),
            Field::Other(kind, ..) => (*kind).to_owned(),
            Field::Not(..) => String::new(),
        }
    }
    /// What a profile says.
    pub fn show(&self, profile: &P) -> String {
        let mut profile = profile.clone();
        match &self.field {
            Field::Flag(of) => if *of(&mut profile) { "yes" } else { "no" }.to_owned(),
            Field::Number(of, _) => of(&mut profile).to_string(),
            Field::Text(of) => of(&mut profile).clone(),
            Field::Other(_, _, show) => show(&profile),
            Field::Not(..) => String::new(),
        }
    }
    /// Lets a profile say something else; false when the text is none of [`OptionRow::kind`].
    pub fn set(&self, profile: &mut P, text: &str) -> bool {
        let text = text.trim();
        match &self.field {
            Field::Flag(of) => flag(text).map(|on| *of(profile) = on).is_some(),
            Field::Number(of, range) => {
                let number = text.parse().ok().filter(|number| range.contains(number));
                number.map(|number| *of(profile) = number).is_some()
            }
            Field::Text(of) => {
                text.clone_into(of(profile));
                true
            }
            Field::Other(_, set, _) => set(profile, text),
            Field::Not(..) => true,
        }
    }
}

/// Yes or no, as configuration files say it.
fn flag(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    match () {
        () if is(&["yes", "true", "y", "t", "1", "on"]) => Some(true),
        () if is(&["no", "false", "n", "f", "0", "off"]) => Some(false),
        () => None,
    }
}

/// The row of an option, any case.
pub fn row<P>(rows: &'static [OptionRow<P>], name: &str) -> Option<&'static OptionRow<P>> {
    rows.iter().find(|row| row.name.eq_ignore_ascii_case(name.trim()))
}

/// A rate that can be mixed, or the word for none.
fn set_rate(of: &mut Option<SampleRate>, text: &str, none: &str) -> bool {
    if text.eq_ignore_ascii_case(none) {
        *of = None;
        return true;
    }
    let hertz = text.parse().ok().filter(|hertz| (8_000..=192_000).contains(hertz));
    hertz.map(|hertz| *of = Some(SampleRate(hertz))).is_some()
}

fn show_rate(rate: Option<SampleRate>, none: &str) -> String {
    rate.map_or(none.to_owned(), |rate| rate.0.to_string())
}

/// Rows of options: name, field, default, meaning.
macro_rules! rows {
    ($($name:expr => $field:expr => $default:literal, $doc:literal;)*) => {
        &[$(OptionRow { name: $name, field: $field, default: $default, doc: $doc },)*]
    };
}

/// Options of a bridge profile but for its sounds.
pub const BRIDGE_ROWS: &[OptionRow<BridgeProfile>] = rows! {
    "max_members" => Field::Number(|p| &mut p.members_max, 0..=4096) => "0",
        "With so many members nobody but administrators may enter; 0: no limit.";
    "max_speakers" => Field::Other("number 0 to 255", set_speakers, |p| p.mixing.speakers_max.to_string()) => "0",
        "Most members who are heard at once, the loudest; 0: all. Not in Asterisk.";
    "mixing_interval" => Field::Other("10, 20, 40, 80", set_interval, |p| p.mixing.interval_ms.to_string()) => "20",
        "Milliseconds between two mixes.";
    "internal_sample_rate" => Field::Other("auto, a rate in hertz", |p, text| set_rate(&mut p.rate, text, "auto"), |p| show_rate(p.rate, "auto")) => "auto",
        "The highest rate that is mixed; auto: that of the members.";
    "maximum_sample_rate" => Field::Other("none, a rate in hertz", |p, text| set_rate(&mut p.rate_max, text, "none"), |p| show_rate(p.rate_max, "none")) => "none",
        "The highest rate that auto may come to; none: no limit.";
    "record_conference" => Field::Flag(|p| &mut p.records) => "no",
        "The conference is recorded, from its first member to its last.";
    "record_file" => Field::Text(|p| &mut p.record_file) => "",
        "File of the recording, below monitor in the spool directory unless it is absolute; empty: confbridge-NAME-TIME.wav.";
    "record_file_append" => Field::Flag(|p| &mut p.record_file_append) => "yes",
        "Recording that begins again in the same conference goes on in its file; else each has one of its own.";
    "record_file_timestamp" => Field::Flag(|p| &mut p.record_file_timestamp) => "yes",
        "The time at which recording began is a part of the name.";
    "record_options" => Field::Text(|p| &mut p.record_options) => "",
        "Options of MixMonitor; of them only a (go on after what is there) has an effect on a conference.";
    "record_command" => Field::Text(|p| &mut p.record_command) => "",
        "Command that is run when the recording is complete; ^{MIXMONITOR_FILENAME} and ^{CONFBRIDGE_NAME} stand for the file and the conference.";
    "language" => Field::Text(|p| &mut p.language) => "",
        "Language of what all hear; empty: that of the member it is about.";
    "video_mode" => Field::Other("none, follow_talker, last_marked, first_marked", set_video, |p| p.video.spell().to_owned()) => "none",
        "Whose video is seen by all others: nobody's, that of who leads the talk, or of the marked member who came last or first. See [conferences.md](conferences.md#video).";
    "video_update_discard" => Field::Number(|p| &mut p.mixing.video.pause_ms, 0..=3_600_000) => "2000",
        "Milliseconds in which a sender of video is asked for a whole picture once at most; never more often than every 100.";
    "remb_send_interval" => Field::Number(|p| &mut p.mixing.video.estimates.interval_ms, 0..=3_600_000) => "0",
        "Milliseconds between two estimates (REMB) that a sender of video gets of those who see it, at least; 0: it gets none.";
    "remb_behavior" => Field::Other("average, lowest, highest, average_all, lowest_all, highest_all, force", set_estimate, show_estimate) => "average",
        "What is made of the estimates of those who see a sender, with _all of those who see anybody; force: remb_estimated_bitrate is told.";
    "remb_estimated_bitrate" => Field::Number(|p| &mut p.bitrate, 0..=u32::MAX) => "0",
        "Bits a second that remb_behavior=force tells.";
    "binaural_active" => Field::Not("no", true, "all voices come from the middle") => "", "";
    "regcontext" => Field::Text(|p| &mut p.register_in) => "",
        "Context in which an extension of the conference's name is there as long as the conference.";
    "enable_events" => Field::Flag(|p| &mut p.tells_members) => "no",
        "Members with send_events are told what happens, by documents of JSON in their calls. See [conferences.md](conferences.md#events-in-the-call).";
};

/// The value of `video_mode` by which everybody would see everybody; it is obeyed as `follow_talker`.
pub const SFU: &str = "sfu";

fn set_video(profile: &mut BridgeProfile, text: &str) -> bool {
    let text = if text.eq_ignore_ascii_case(SFU) { VideoMode::FollowTalker.spell() } else { text };
    let found = VideoMode::SPELT.into_iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    found.map(|(_, mode)| profile.video = mode).is_some()
}

/// Values of `remb_behavior`: what it is called, how estimates are brought to one, and whether all count.
const ESTIMATES: [(&str, Combined, bool); 6] = [
    ("average", Combined::Average, false),
    ("lowest", Combined::Lowest, false),
    ("highest", Combined::Highest, false),
    ("average_all", Combined::Average, true),
    ("lowest_all", Combined::Lowest, true),
    ("highest_all", Combined::Highest, true),
];

fn set_estimate(profile: &mut BridgeProfile, text: &str) -> bool {
    profile.forces_bitrate = text.eq_ignore_ascii_case("force");
    let found = ESTIMATES.into_iter().find(|(word, ..)| word.eq_ignore_ascii_case(text));
    if let Some((_, combined, of_all)) = found {
        let estimates = &mut profile.mixing.video.estimates;
        (estimates.combined, estimates.of_all) = (combined, of_all);
    }
    found.is_some() || profile.forces_bitrate
}

fn show_estimate(profile: &BridgeProfile) -> String {
    let estimates = profile.mixing.video.estimates;
    let is_it = |(_, combined, of_all): &(&str, Combined, bool)| {
        (*combined, *of_all) == (estimates.combined, estimates.of_all)
    };
    let word = ESTIMATES.iter().find(|row| is_it(row)).map_or("average", |(word, ..)| word);
    if profile.forces_bitrate { "force" } else { word }.to_owned()
}

fn set_speakers(profile: &mut BridgeProfile, text: &str) -> bool {
    text.parse().map(|most| profile.mixing.speakers_max = most).is_ok()
}

fn set_interval(profile: &mut BridgeProfile, text: &str) -> bool {
    let interval = text.parse().ok().filter(|ms| [10, 20, 40, 80].contains(ms));
    interval.map(|ms| profile.mixing.interval_ms = ms).is_some()
}

/// Options of a user profile.
pub const USER_ROWS: &[OptionRow<UserProfile>] = rows! {
    "admin" => Field::Flag(|p| &mut p.seat.is_admin) => "no",
        "It may enter a locked or full conference, may use keys of administrators, and is no participant where those are muted or sent out.";
    "marked" => Field::Flag(|p| &mut p.seat.is_marked) => "no", "It is one of those whom others may wait for.";
    "startmuted" => Field::Flag(|p| &mut p.seat.mixing.muted) => "no", "It is not heard until somebody lets it.";
    "wait_marked" => Field::Flag(|p| &mut p.seat.waits_marked) => "no",
        "It neither hears nor is heard until a marked user is there.";
    "end_marked" => Field::Flag(|p| &mut p.seat.ends_marked) => "no", "It leaves with the last marked user.";
    "end_marked_any" => Field::Flag(|p| &mut p.seat.ends_marked_any) => "no", "It leaves with any marked user.";
    "music_on_hold_when_empty" => Field::Flag(|p| &mut p.has_music) => "no", "It hears music while it is alone or waits.";
    "music_on_hold_class" => Field::Text(|p| &mut p.music_class) => "", "Class of that music; empty: that of its channel.";
    "quiet" => Field::Flag(|p| &mut p.is_quiet) => "no", "Nobody hears a sound when it comes and goes, nor does it.";
    "hear_own_join_sound" => Field::Flag(|p| &mut p.hears_own_join) => "yes", "It hears the sound of its own coming as the others do.";
    "announce_user_count" => Field::Flag(|p| &mut p.hears_count) => "no", "It is told how many others there are.";
    "announce_user_count_all" => Field::Other("yes, no, a number", set_count_all, show_count_all) => "no",
        "All are told how many there are when it has come; a number: only when there are more than so many.";
    "announce_only_user" => Field::Flag(|p| &mut p.hears_that_it_is_alone) => "yes", "It is told when it is alone.";
    "announce_join_leave" => Field::Flag(|p| &mut p.tells_name) => "no",
        "It is asked for its name, which all hear when it comes and goes.";
    "announce_join_leave_review" => Field::Other("yes, no", set_review, |p| yes_no(p.reviews_name)) => "no",
        "The same, and it may hear its name and say it again before.";
    "announcement" => Field::Text(|p| &mut p.announcement) => "", "Sound that it hears when it has entered.";
    "pin" => Field::Text(|p| &mut p.pin) => "", "Digits to enter with.";
    "timeout" => Field::Number(|p| &mut p.timeout, 0..=31_536_000) => "0", "Seconds after which it is sent out; 0: never.";
    "answer_channel" => Field::Flag(|p| &mut p.answers) => "yes", "Its channel is answered when it enters.";
    "dtmf_passthrough" => Field::Flag(|p| &mut p.passes_digits) => "no",
        "Digits that are no key of its menu are sent to the others.";
    "talk_detection_events" => Field::Flag(|p| &mut p.seat.tells_talking) => "no",
        "Managers are told when it begins and ceases to talk, and so are members who are told what happens.";
    "dsp_drop_silence" => Field::Flag(|p| &mut p.seat.mixing.drop_silence) => "no",
        "Noise gate: what is no talking is not heard by the others.";
    "dsp_talking_threshold" => Field::Other("number 1 to 32767", set_threshold, |p| p.seat.mixing.talking_threshold.to_string()) => "160",
        "Mean amplitude from which on it talks.";
    "dsp_silence_threshold" => Field::Number(|p| &mut p.seat.mixing.silence_ms, 20..=600_000) => "2500",
        "Milliseconds below it after which it does not.";
    "agc_level" => Field::Other("number 0 to 32767", set_level, |p| p.seat.mixing.level.to_string()) => "0",
        "Automatic gain: the mean amplitude that its voice is brought to, such as 2000; 0: as it is. Not in Asterisk.";
    "denoise" => Field::Not("no", true, "sound is not denoised") => "", "";
    "jitterbuffer" => Field::Not("*", false, "there is always one") => "", "";
    "text_messaging" => Field::Other("yes, no", set_texts, |p| yes_no(!p.seat.refuses_texts)) => "yes",
        "Texts of others reach it, and its texts them; without them it is not told what happens either.";
    "send_events" => Field::Flag(|p| &mut p.seat.reads_events) => "no",
        "It is told what happens, where the bridge profile has enable_events.";
    "echo_events" => Field::Other("yes, no", set_echo, |p| yes_no(!p.seat.misses_own_events)) => "yes",
        "It is told what it does itself as well: that it has come, talks, is muted.";
};

fn yes_no(on: bool) -> String {
    if on { "yes" } else { "no" }.to_owned()
}

fn set_review(profile: &mut UserProfile, text: &str) -> bool {
    let Some(on) = flag(text) else { return false };
    profile.reviews_name = on;
    profile.tells_name |= on;
    true
}

fn set_texts(profile: &mut UserProfile, text: &str) -> bool {
    flag(text).map(|on| profile.seat.refuses_texts = !on).is_some()
}

fn set_echo(profile: &mut UserProfile, text: &str) -> bool {
    flag(text).map(|on| profile.seat.misses_own_events = !on).is_some()
}

fn set_threshold(profile: &mut UserProfile, text: &str) -> bool {
    let level = text.parse().ok().filter(|level| (1..=32_767).contains(level));
    level.map(|level| profile.seat.mixing.talking_threshold = level).is_some()
}

fn set_level(profile: &mut UserProfile, text: &str) -> bool {
    let level = text.parse().ok().filter(|level| (0..=32_767).contains(level));
    level.map(|level| profile.seat.mixing.level = level).is_some()
}

fn set_count_all(profile: &mut UserProfile, text: &str) -> bool {
    let from = match (flag(text), text.parse::<u32>()) {
        (Some(on), _) => on.then_some(0),
        (None, Ok(number)) => Some(number.saturating_add(1)),
        (None, Err(_)) => return false,
    };
    profile.tells_count_from = from;
    true
}

fn show_count_all(profile: &UserProfile) -> String {
    match profile.tells_count_from {
        None => "no".to_owned(),
        Some(0) => "yes".to_owned(),
        Some(from) => (from - 1).to_string(),
    }
}

/// The sounds of a conference, each with its option.
macro_rules! sounds {
    ($($field:ident $default:literal $doc:literal;)*) => {
        /// What is heard when. An empty name: nothing.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Sounds {
            $(#[doc = $doc] pub $field: String,)*
        }
        impl Default for Sounds {
            fn default() -> Self {
                Self { $($field: $default.to_owned(),)* }
            }
        }
        /// Options of a bridge profile that name its sounds.
        pub const SOUND_ROWS: &[OptionRow<BridgeProfile>] = rows! {
            $(concat!("sound_", stringify!($field)) => Field::Text(|p| &mut p.sounds.$field) => $default, $doc;)*
        };
    };
}
sounds! {
    has_joined "conf-hasjoin" "After the name of somebody who has come.";
    has_left "conf-hasleft" "After the name of somebody who has left.";
    kicked "conf-kicked" "Who is sent out hears it.";
    muted "conf-muted" "A member hears it when its key has muted it.";
    unmuted "conf-unmuted" "And when it is heard again.";
    binaural_on "confbridge-binaural-on" "Not played: there is no binaural sound.";
    binaural_off "confbridge-binaural-off" "Not played: there is no binaural sound.";
    only_person "conf-onlyperson" "Who is alone hears it.";
    only_one "conf-onlyone" "There is one other.";
    there_are "conf-thereare" "Before the number of others.";
    other_in_party "conf-otherinparty" "After the number of others.";
    place_into_conference "conf-placeintoconf" "Not played: who waited hears that the conference begins.";
    begin "confbridge-conf-begin" "All hear it when the first marked user has come.";
    wait_for_leader "conf-waitforleader" "Who waits for a marked user hears it.";
    leader_has_left "conf-leaderhasleft" "All hear it when the last marked user has left.";
    get_pin "conf-getpin" "Asks for the PIN.";
    invalid_pin "conf-invalidpin" "The PIN is wrong.";
    locked "conf-locked" "The conference is locked or full.";
    locked_now "conf-lockednow" "The administrator's key has locked it.";
    unlocked_now "conf-unlockednow" "And has opened it.";
    error_menu "conf-errormenu" "A key is not for this member, or cannot do what it is for.";
    join "confbridge-join" "All hear it when somebody has come.";
    leave "confbridge-leave" "All hear it when somebody has left.";
    participants_muted "conf-now-muted" "All hear it when an administrator's key has muted the participants.";
    participants_unmuted "conf-now-unmuted" "And when they are heard again.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_takes_what_it_shows_and_refuses_what_is_none_of_its_kind() {
        let bridge = BridgeProfile::default();
        for row in BRIDGE_ROWS.iter().chain(SOUND_ROWS).filter(|row| !matches!(row.field, Field::Not(..))) {
            let mut other = bridge.clone();
            assert_eq!(row.show(&bridge), row.default, "{}", row.name);
            assert!(row.set(&mut other, row.default), "{}", row.name);
            assert_eq!(other, bridge, "{}", row.name);
        }
        let user = UserProfile::default();
        for row in USER_ROWS.iter().filter(|row| !matches!(row.field, Field::Not(..))) {
            let mut other = user.clone();
            assert_eq!(row.show(&user), row.default, "{}", row.name);
            assert!(row.set(&mut other, row.default), "{}", row.name);
            assert_eq!(other, user, "{}", row.name);
            let takes_all = matches!(row.field, Field::Text(_));
            assert_eq!(row.set(&mut other, "perhaps"), takes_all, "{}", row.name);
        }
    }

    #[test]
    fn counts_for_all_may_begin_with_a_number_of_members() {
        let mut user = UserProfile::default();
        for (text, from, shown) in
            [("yes", Some(0), "yes"), ("no", None, "no"), ("1", Some(0), "yes"), ("5", Some(6), "5")]
        {
            assert!(set_count_all(&mut user, text));
            assert_eq!((user.tells_count_from, show_count_all(&user)), (from, shown.to_owned()), "{text}");
        }
    }

    #[test]
    fn the_lower_of_two_rates_is_the_highest_that_is_mixed() {
        let mut bridge = BridgeProfile::default();
        for (name, text, expected) in [
            ("maximum_sample_rate", "32000", Some(32_000)),
            ("internal_sample_rate", "16000", Some(16_000)),
            ("internal_sample_rate", "auto", Some(32_000)),
            ("maximum_sample_rate", "none", None),
        ] {
            assert!(row(BRIDGE_ROWS, name).is_some_and(|row| row.set(&mut bridge, text)), "{name}");
            assert_eq!(bridge.mixing().rate_max.map(|rate| rate.0), expected, "{name}={text}");
        }
    }
}
