//! `followme.conf`: whom `FollowMe()` calls in turn.

use core::time::Duration;
use std::sync::Arc;

use call::followme::{Profile, Profiles, Prompts, Step};
use conf::{File, Finding, Findings, Level, Section, Variable};

use super::kind::{Kind, Millis, Text, YesNo};
use super::{Object as _, Row, Status, options, read_object, read_settings};

/// How long a number rings that has no time of its own, seconds.
const RING: u32 = 25;
/// Longest that one rings: an hour.
const RING_MAX: u32 = 3600;
/// Lines of one profile: nobody has as many telephones.
const STEPS_MAX: usize = 64;
/// Numbers of one line.
const NUMBERS_MAX: usize = 32;
/// Longest wait for a key, milliseconds.
const KEY_WAIT_MAX: u32 = 600_000;

/// A key of a telephone.
pub struct Key;
impl Kind for Key {
    type Value = char;
    fn describe() -> String {
        "one of 0 to 9, * and #".into()
    }
    fn set(value: &mut char, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        let mut symbols = variable.value.chars();
        match (symbols.next(), symbols.next()) {
            (Some(key), None) if key.is_ascii_digit() || "*#".contains(key) => {
                *value = key;
                Ok(())
            }
            _ => {
                let message = format!("{}={} is no key of a telephone", variable.name, variable.value);
                Err(variable.finding(Level::Error, message, "write one of 0 to 9, * and #"))
            }
        }
    }
}

options! {
    /// `[general]` of `followme.conf`: what holds for profiles that do not say it.
    FollowMeGeneral, "followme.conf", "general", IsIgnored;
    featuredigittimeout: Millis<1, KEY_WAIT_MAX> = "5000", "How long a key is waited for when the prompts are over; after that the call is declined.";
    takecall: Key = "1", "Key that takes the call.";
    declinecall: Key = "2", "Key that declines it; the next numbers are called.";
    enable_callee_prompt: YesNo = "yes", "Who answers is asked to take the call; no: the first who answers has it.";
    call_from_prompt also "call-from-prompt": Text = "followme/call-from", "What who answers hears before the caller's recorded name.";
    norecording_prompt also "followme-norecording-prompt": Text = "followme/no-recording", "The same without a name.";
    options_prompt also "followme-options-prompt": Text = "followme/options", "Which keys take and decline the call.";
    hold_prompt as "pls_hold_prompt" also "followme-pls-hold-prompt" also "hold_prompt": Text = "followme/pls-hold-while-try", "What the caller hears before numbers are called.";
    status_prompt also "followme-status-prompt": Text = "followme/status", "What the caller hears before that, with option s.";
    sorry_prompt also "followme-sorry-prompt": Text = "followme/sorry", "What the caller hears when nobody is found, with option n.";
    connecting_prompt also "followme-connecting-prompt": Text = "", "What who takes the call hears before the caller.";
    @recognised {}
}

options! {
    /// A profile of `followme.conf`, which `FollowMe()` names.
    FollowMeProfile, "followme.conf", "profile", IsIgnored;
    musicclass also "musiconhold": Text = "default", "Music that the caller hears meanwhile.";
    music: Text = "", "Another name of musicclass.";
    context: Text = "default", "Context in which the numbers are extensions.";
    takecall: Key = "1", "Key that takes the call. This and what follows is as the section general says where a profile does not.";
    declinecall: Key = "2", "Key that declines it.";
    enable_callee_prompt: YesNo = "yes", "Who answers is asked to take the call.";
    call_from_prompt also "call-from-prompt": Text = "", "What who answers hears before the caller's recorded name.";
    norecording_prompt also "followme-norecording-prompt": Text = "", "The same without a name.";
    options_prompt also "followme-options-prompt": Text = "", "Which keys take and decline the call.";
    hold_prompt as "pls_hold_prompt" also "followme-pls-hold-prompt" also "hold_prompt": Text = "", "What the caller hears before numbers are called.";
    status_prompt also "followme-status-prompt": Text = "", "What the caller hears before that, with option s.";
    sorry_prompt also "followme-sorry-prompt": Text = "", "What the caller hears when nobody is found, with option n.";
    connecting_prompt also "followme-connecting-prompt": Text = "", "What who takes the call hears before the caller.";
    @recognised {}
}

/// `followme.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FollowMe {
    /// Its profiles.
    pub profiles: Arc<Profiles>,
}

impl FollowMe {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let general: FollowMeGeneral = read_settings(file, "general", findings);
        let mut profiles = Profiles::new();
        for section in file.objects().filter(|section| !section.name.eq_ignore_ascii_case("general")) {
            if let Some(profile) = read_profile(section, &general, findings) {
                profiles.insert(section.name.to_string(), profile);
            }
        }
        Self { profiles: Arc::new(profiles) }
    }
}

fn read_profile(section: &Section, general: &FollowMeGeneral, findings: &mut Findings) -> Option<Profile> {
    let mut lines: Vec<(u32, Step)> = Vec::new();
    let own: FollowMeProfile = read_object(section, findings, &mut |_, variable, findings| {
        if !variable.is("number") {
            return false;
        }
        match number(variable, &lines) {
            Ok(line) => lines.push(line),
            Err(finding) => findings.push(finding),
        }
        true
    })?;
    if lines.is_empty() {
        let message = format!("profile [{}] calls nobody", section.name);
        findings.warning(&section.place, message, "add number => 6001,20");
    }
    lines.sort_by_key(|(order, _)| *order);
    let has = |option| own.origin.has(option);
    let text = |option, own: &String, general: &String| if has(option) { own } else { general }.clone();
    let prompts = Prompts {
        call_from: text("call_from_prompt", &own.call_from_prompt, &general.call_from_prompt),
        no_recording: text("norecording_prompt", &own.norecording_prompt, &general.norecording_prompt),
        options: text("options_prompt", &own.options_prompt, &general.options_prompt),
        hold: text("pls_hold_prompt", &own.hold_prompt, &general.hold_prompt),
        status: text("status_prompt", &own.status_prompt, &general.status_prompt),
        sorry: text("sorry_prompt", &own.sorry_prompt, &general.sorry_prompt),
        connecting: text("connecting_prompt", &own.connecting_prompt, &general.connecting_prompt),
    };
    let asks =
        if has("enable_callee_prompt") { own.enable_callee_prompt } else { general.enable_callee_prompt };
    Some(Profile {
        music: if has("music") && !has("musicclass") { own.music } else { own.musicclass },
        context: own.context,
        steps: lines.into_iter().map(|(_, step)| step).collect(),
        take: if own.origin.has("takecall") { own.takecall } else { general.takecall },
        decline: if own.origin.has("declinecall") { own.declinecall } else { general.declinecall },
        key_timeout: general.featuredigittimeout,
        asks,
        prompts,
    })
}

/// `number => 6001[&6002][,timeout[,order]]`, and when it is called. A second line of an order is none, as in the field.
fn number(variable: &Variable, known: &[(u32, Step)]) -> Result<(u32, Step), Finding> {
    let refused = |why: &str, remedy: &str| {
        let message = format!("number={} {why}: it is not called", variable.value);
        Err(variable.finding(Level::Warning, message, remedy))
    };
    let mut parts = variable.value.split(',').map(str::trim);
    let numbers = parts.next().unwrap_or_default().split('&').map(str::trim);
    let numbers: Vec<String> = numbers.filter(|number| !number.is_empty()).map(str::to_owned).collect();
    if numbers.is_empty() || numbers.len() > NUMBERS_MAX {
        return refused(
            &format!("has none or more than {NUMBERS_MAX} numbers"),
            "write number => 6001&6002,20",
        );
    }
    if known.len() >= STEPS_MAX {
        return refused(&format!("is more than the {STEPS_MAX}th line"), "remove lines");
    }
    let whole = |text: Option<&str>, otherwise: u32| match text {
        None | Some("") => Some(otherwise),
        Some(text) => text.parse::<u32>().ok(),
    };
    let next = u32::try_from(known.len()).unwrap_or(u32::MAX).saturating_add(1);
    let (Some(timeout), Some(order), None) = (
        whole(parts.next(), RING).filter(|seconds| (1..=RING_MAX).contains(seconds)),
        whole(parts.next(), next).filter(|order| *order > 0),
        parts.next(),
    ) else {
        return refused(
            "has a time or a place that is none",
            "write number => 6001,20,1: seconds, and its place from 1",
        );
    };
    if known.iter().any(|(other, _)| *other == order) {
        let remedy = "give it another place, or join the lines' numbers by &";
        return refused(&format!("has the place {order} of a line above"), remedy);
    }
    Ok((order, Step { numbers, timeout: Duration::from_secs(timeout.into()) }))
}

/// Rows of the manual.
pub(crate) fn rows() -> Vec<Row> {
    let number = Row {
        file: "followme.conf",
        section: "profile",
        name: "number",
        kind: "extension[&extension][,seconds[,order]]; lines add up".to_owned(),
        default: "",
        doc: "Numbers that are called at once, for so many seconds (25); lines in turn, or by their order from 1.",
        status: Status::Supported,
    };
    [FollowMeGeneral::rows(), vec![number], FollowMeProfile::rows()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Profiles, Vec<String>) {
        let mut findings = Findings::new();
        let source = conf::Memory::new().with("followme.conf", text);
        let file = conf::load(&source, "followme.conf", conf::Options::default(), &mut findings).unwrap();
        let read = FollowMe::read(&file, &mut findings);
        let said = findings.iter().map(|finding| finding.message.clone()).collect();
        ((*read.profiles).clone(), said)
    }
    fn step(numbers: &[&str], seconds: u64) -> Step {
        let numbers = numbers.iter().map(|number| (*number).to_owned()).collect();
        Step { numbers, timeout: Duration::from_secs(seconds) }
    }

    #[test]
    fn without_another_line_a_profile_is_as_the_field_has_it() {
        let (profiles, said) = read("[ann]\nnumber => 6001\n");
        let expected = Profile { steps: vec![step(&["6001"], 25)], ..Profile::default() };
        assert_eq!((profiles.get("ann"), said), (Some(&expected), Vec::new()));
    }

    #[test]
    fn a_profile_says_what_general_does_not_say_for_it() {
        let (profiles, said) = read(
            "[general]\nfeaturedigittimeout=>3000\ntakecall=>4\ndeclinecall=>5\nenable_callee_prompt=>false\n\
             call_from_prompt=>a\nnorecording_prompt=>b\noptions_prompt=>c\nhold_prompt=>d\nstatus_prompt=>e\n\
             sorry_prompt=>f\nconnecting_prompt=>g\n\
             [general-only]\nnumber=>1\n\
             [own]\nmusicclass=>jazz\ncontext=>out\ntakecall=>*\ndeclinecall=>#\nenable_callee_prompt=>yes\n\
             call-from-prompt=>h\nfollowme-norecording-prompt=>i\nfollowme-options-prompt=>j\nfollowme-pls-hold-prompt=>k\n\
             followme-status-prompt=>l\nfollowme-sorry-prompt=>m\nconnecting_prompt=>\nnumber=>1\n\
             [other]\nmusic=>rock\nnumber=>1\n[older]\nmusiconhold=>folk\nnumber=>1\n",
        );
        assert_eq!(said, [""; 0]);
        let words = |of: &Prompts| {
            [&of.call_from, &of.no_recording, &of.options, &of.hold, &of.status, &of.sorry, &of.connecting]
                .map(String::as_str)
                .concat()
        };
        let shown = |name: &str| {
            let of = &profiles[name];
            let keys = format!("{}{} {} {}", of.take, of.decline, of.asks, of.key_timeout.as_millis());
            format!("{} {} {keys} {}", of.music, of.context, words(&of.prompts))
        };
        assert_eq!(shown("general-only"), "default default 45 false 3000 abcdefg");
        assert_eq!(shown("own"), "jazz out *# true 3000 hijklm");
        assert!(shown("other").starts_with("rock ") && shown("older").starts_with("folk "));
    }

    #[test]
    fn numbers_are_called_in_the_order_of_their_lines_or_of_their_places() {
        for (lines, expected) in [
            (&["6001,15", "6002&6003,20"][..], vec![step(&["6001"], 15), step(&["6002", "6003"], 20)]),
            (&["3,10,3", "1,10,1", "2,,2"], vec![step(&["1"], 10), step(&["2"], 25), step(&["3"], 10)]),
        ] {
            let text: String = lines.iter().map(|line| format!("number => {line}\n")).collect();
            let (profiles, said) = read(&format!("[ann]\n{text}"));
            assert_eq!((&profiles["ann"].steps, said), (&expected, Vec::new()), "{lines:?}");
        }
    }

    #[test]
    fn what_cannot_be_called_is_said_and_left_out() {
        for (text, expected) in [
            ("number=>", "has none or more"),
            ("number=>1,soon", "a time or a place that is none"),
            ("number=>1,0", "a time or a place that is none"),
            ("number=>1,20,0", "a time or a place that is none"),
            ("number=>1,20,1,9", "a time or a place that is none"),
            ("takecall=>12", "no key of a telephone"),
            ("nummer=>1", "nummer"),
            ("", "calls nobody"),
        ] {
            let (profiles, said) = read(&format!("[ann]\n{text}\n"));
            assert!(said.iter().any(|line| line.contains(expected)), "{text}: {said:?}");
            assert!(profiles["ann"].steps.is_empty(), "{text}");
        }
        let (profiles, said) = read("[ann]\nnumber=>1,20,1\nnumber=>2,20,1\n");
        assert_eq!(profiles["ann"].steps, [step(&["1"], 20)]);
        assert!(said[0].contains("the place 1 of a line above"), "{said:?}");
    }
}
