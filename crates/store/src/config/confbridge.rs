//! `confbridge.conf`: profiles of conferences and of those who take part.

use std::collections::BTreeMap;

use base::{MemberSettings, RoomSettings, SampleRate};
use call::conference::{BridgeProfile, Profiles, Seat, UserProfile};
use conf::{File, Findings, Section};

use super::kind::{Int, Text, YesNo};
use super::{options, read_object};

options! {
    /// A section with `type=bridge`.
    Bridge, "confbridge.conf", "bridge", IsIgnored;
    kind as "type": Text = "bridge", "bridge.";
    mixing_interval: Int<10, 80> = "20", "Milliseconds between two mixes: 10, 20, 40 or 80.";
    internal_sample_rate: Text = "auto", "The highest rate that is mixed, in hertz; auto: that of the members.";
    maximum_sample_rate: Text = "none", "The highest rate that auto may come to, in hertz; none: no limit.";
    max_members: Int<0, 4096> = "0", "Most members; 0: no limit.";
    max_speakers: Int<0, 255> = "0", "Most members who are heard at once, the loudest; 0: all. Not in Asterisk.";
    record_conference: YesNo = "no", "Record the conference.",
        Later "no" "conferences are not recorded";
    video_mode: Text = "none", "Whose video is seen.",
        Later "none" "conferences have no video";
    language: Text = "en", "Language of announcements.",
        Later "*" "announcements are in the language of each member";
    @recognised {
        "record_file" "*" Later "conferences are not recorded";
        "record_file_append" "*" Later "conferences are not recorded";
        "record_options" "*" Later "conferences are not recorded";
        "record_command" "*" Later "conferences are not recorded";
        "regcontext" "*" Later "no extension is made";
        "remb_behavior" "*" Later "conferences have no video";
        "enable_events" "no" Later "talkers are told to managers only";
    }
}

options! {
    /// A section with `type=user`.
    User, "confbridge.conf", "user", IsIgnored;
    kind as "type": Text = "user", "user.";
    admin: YesNo = "no", "It may enter a locked conference, and is no participant where those are muted or sent out.";
    startmuted: YesNo = "no", "It is not heard until somebody lets it.";
    quiet: YesNo = "no", "Nobody hears a sound when it comes and goes.";
    announce_only_user: YesNo = "yes", "It is told when it is alone.";
    talk_detection_events: YesNo = "no", "Managers are told when it begins and ceases to talk.";
    dsp_drop_silence: YesNo = "no", "Noise gate: what is no talking is not heard by the others.";
    dsp_talking_threshold: Int<1, 32_767> = "160", "Mean amplitude from which on it talks.";
    dsp_silence_threshold: Int<20, 600_000> = "2500", "Milliseconds below it after which it does not.";
    agc_level: Int<0, 32_767> = "0",
        "Automatic gain: the mean amplitude that its voice is brought to, such as 2000; 0: as it is. Not in Asterisk.";
    marked: YesNo = "no", "It is a marked user.",
        Later "no" "there are no marked users";
    wait_marked: YesNo = "no", "It waits for a marked user.",
        Later "no" "it enters at once";
    end_marked: YesNo = "no", "It leaves with the last marked user.",
        Later "no" "it stays";
    pin: Text = "", "Digits to enter with.",
        Later "" "nobody can enter with this profile";
    music_on_hold_when_empty: YesNo = "no", "Music while it is alone.",
        Later "no" "it hears nothing";
    announce_join_leave: YesNo = "no", "Names are recorded and announced.",
        Later "no" "names are not announced";
    announce_user_count: YesNo = "no", "It is told how many there are.",
        Later "no" "it is not told";
    denoise: YesNo = "no", "Noise reduction.",
        Later "no" "sound is not denoised";
    @recognised {
        "music_on_hold_class" "*" Later "it hears nothing while it is alone";
        "announce_user_count_all" "no" Later "it is not told";
        "announce_join_leave_review" "no" Later "names are not announced";
        "announcement" "*" Later "it is not played";
        "dtmf_passthrough" "no" Later "digits are not passed on";
        "jitterbuffer" "*" Ignored "there is always one";
        "template" "*" Later "the template is not read";
        "timeout" "0" Later "there is no limit";
        "echo_events" "*" Later "events of itself are told to nobody";
        "text_messaging" "*" Later "texts are not passed on";
        "send_events" "no" Later "events are not sent in the call";
        "hear_own_join_sound" "yes" Later "it hears its own join sound";
    }
}

/// `confbridge.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfBridge {
    /// What a dialplan can name.
    pub profiles: Profiles,
}

impl ConfBridge {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let (mut bridges, mut users) = (BTreeMap::new(), BTreeMap::new());
        for section in file.objects().filter(|section| !section.name.eq_ignore_ascii_case("general")) {
            let kind = section.variables.iter().rfind(|variable| variable.name.eq_ignore_ascii_case("type"));
            match kind.map(|kind| kind.value.to_ascii_lowercase()).as_deref() {
                Some("bridge") => {
                    if let Some(bridge) = read_object::<Bridge>(section, findings, &mut |_, _, _| false) {
                        bridges.insert(section.name.to_string(), bridge_profile(section, &bridge, findings));
                    }
                }
                Some("user") => {
                    if let Some(user) = read_object::<User>(section, findings, &mut |_, _, _| false)
                        && let Some(profile) = user_profile(section, &user, findings)
                    {
                        users.insert(section.name.to_string(), profile);
                    }
                }
                Some("menu") => {
                    let message = format!("the menu '{}' is not read: digits do nothing", section.name);
                    findings.warning(&section.place, message, "tell callers to hang up to leave");
                }
                _ => {
                    let message = format!("[{}] has no type and is skipped", section.name);
                    findings.warning(&section.place, message, "write type=bridge or type=user");
                }
            }
        }
        Self { profiles: Profiles { bridges, users } }
    }
}

/// A rate, when it is a number that can be mixed.
fn rate(
    section: &Section,
    option: &str,
    text: &str,
    none: &str,
    findings: &mut Findings,
) -> Option<SampleRate> {
    let text = text.trim();
    if text.eq_ignore_ascii_case(none) {
        return None;
    }
    let found = text.parse().ok().filter(|hertz| (8_000..=192_000).contains(hertz)).map(SampleRate);
    if found.is_none() {
        let message = format!("{option}={text} is no sample rate; {none} holds");
        findings.warning(&section.place, message, "write 8000, 16000, 24000, 32000, 44100 or 48000");
    }
    found
}

fn bridge_profile(section: &Section, bridge: &Bridge, findings: &mut Findings) -> BridgeProfile {
    let fixed = rate(section, "internal_sample_rate", &bridge.internal_sample_rate, "auto", findings);
    let most = rate(section, "maximum_sample_rate", &bridge.maximum_sample_rate, "none", findings);
    let mixing = RoomSettings {
        interval_ms: bridge.mixing_interval as u8,
        rate_max: [fixed, most].into_iter().flatten().min_by_key(|rate| rate.0),
        speakers_max: bridge.max_speakers as u8,
    };
    BridgeProfile { mixing, members_max: bridge.max_members as usize }
}

/// `None` for a profile that would let in whom it must keep out.
fn user_profile(section: &Section, user: &User, findings: &mut Findings) -> Option<UserProfile> {
    if !user.pin.is_empty() {
        let message = format!(
            "the user profile '{}' asks for a PIN, which is not asked for yet; it is skipped",
            section.name
        );
        findings.error(&section.place, message, "ask with Authenticate() or Read() before ConfBridge()");
        return None;
    }
    let mixing = MemberSettings {
        muted: user.startmuted,
        drop_silence: user.dsp_drop_silence,
        level: user.agc_level as u16,
        talking_threshold: user.dsp_talking_threshold as u16,
        silence_ms: user.dsp_silence_threshold,
        ..MemberSettings::default()
    };
    Some(UserProfile {
        seat: Seat { mixing, is_admin: user.admin, tells_talking: user.talk_detection_events },
        hears_that_it_is_alone: user.announce_only_user && !user.quiet,
        is_quiet: user.quiet,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (ConfBridge, Vec<String>) {
        let mut findings = Findings::new();
        let source = conf::Memory::new().with("confbridge.conf", text);
        let file = conf::load(&source, "confbridge.conf", conf::Options::default(), &mut findings).unwrap();
        let read = ConfBridge::read(&file, &mut findings);
        (read, findings.iter().map(|finding| finding.message.clone()).collect())
    }

    #[test]
    fn profiles_say_how_a_room_mixes_and_how_members_take_part() {
        let (read, said) = read(
            "[general]\n[wide]\ntype=bridge\nmixing_interval=10\ninternal_sample_rate=16000\nmax_members=5\n\
             max_speakers=3\n[gated]\ntype=user\nstartmuted=yes\ndsp_drop_silence=yes\ndsp_silence_threshold=500\n\
             agc_level=2000\nadmin=yes\nquiet=yes\n",
        );
        assert_eq!(said, [""; 0]);
        let bridge = read.profiles.bridge("wide").unwrap();
        let mixing = RoomSettings { interval_ms: 10, rate_max: Some(SampleRate(16_000)), speakers_max: 3 };
        assert_eq!(bridge, BridgeProfile { mixing, members_max: 5 });
        let user = read.profiles.user("gated").unwrap();
        let mixing = MemberSettings {
            muted: true,
            drop_silence: true,
            level: 2000,
            silence_ms: 500,
            ..MemberSettings::default()
        };
        assert_eq!(user.seat, Seat { mixing, is_admin: true, tells_talking: false });
        assert!(user.is_quiet && !user.hears_that_it_is_alone);
        assert_eq!(read.profiles.user(""), Some(UserProfile::default()), "the defaults are always there");
        assert_eq!(read.profiles.bridge("default_bridge"), Some(BridgeProfile::default()));
        assert_eq!(read.profiles.bridge("narrow"), None);
    }

    #[test]
    fn what_is_not_obeyed_is_said_and_a_pin_keeps_everyone_out() {
        let (read, said) = read(
            "[guarded]\ntype=user\npin=1234\n[odd]\ntype=bridge\ninternal_sample_rate=fast\n\
             [keys]\ntype=menu\n1=toggle_mute\n[what]\nadmin=yes\n[waits]\ntype=user\nwait_marked=yes\n",
        );
        assert_eq!(read.profiles.user("guarded"), None);
        assert_eq!(read.profiles.bridge("odd"), Some(BridgeProfile::default()));
        let expected =
            ["PIN", "internal_sample_rate=fast", "menu 'keys'", "[what] has no type", "wait_marked"];
        for words in expected {
            assert!(said.iter().any(|line| line.contains(words)), "{words}: {said:?}");
        }
    }
}
