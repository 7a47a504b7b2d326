//! `features.conf`: what keys do during a conversation.

use std::collections::BTreeMap;

use call::Key;
use call::features::{AppFeature, FeatureMap, Features, PressedBy, RunsOn};
use conf::{File, Finding, Findings, Level, Section, Variable};

use super::kind::{Int, Kind, Millis, Seconds, Text, YesNo};
use super::{options, read_settings};

/// Keys that mean something; empty: none.
pub struct Code;
impl Kind for Code {
    type Value = String;
    fn describe() -> String {
        "1 to 11 of 0-9 * # A-D; empty: none".into()
    }
    fn set(value: &mut String, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        if !is_code(&variable.value) {
            let message = format!("{}={} cannot be pressed on a phone", variable.name, variable.value);
            return Err(variable.finding(Level::Error, message, "write 1 to 11 of 0-9, *, # and A to D"));
        }
        *value = variable.value.to_string();
        Ok(())
    }
}

fn is_code(text: &str) -> bool {
    text.is_empty() || Key::new(text, 0).is_some()
}

options! {
    /// `[general]` of `features.conf`.
    FeaturesGeneral, "features.conf", "general", IsIgnored;
    featuredigittimeout: Millis<1, 60_000> = "1000", "How long the next digit of a code may take.";
    transferdigittimeout: Seconds<1, 3600> = "3", "How long the next digit of the extension that somebody is transferred to may take.";
    transferdialattempts: Int<1, 100> = "3", "How often an extension may be dialled before the transfer is given up.";
    transferannouncesound: Text = "pbx-transfer", "Asks who transfers for the extension.";
    transferretrysound: Text = "pbx-invalid", "There is no such extension; it may be dialled again.";
    transferinvalidsound: Text = "privacy-incorrect", "There is none, and no more attempt.";
    xfersound: Text = "beep", "An attended transfer is done.";
    xferfailsound: Text = "beeperr", "It has failed.";
    atxfernoanswertimeout: Seconds<1, 3600> = "15", "How long the third party of an attended transfer may ring.";
    atxferdropcall: YesNo = "no", "Who transfers and hangs up while it rings is not called back when nobody answers.";
    atxfercallbackretries: Int<0, 100> = "2", "How often it is called back, in turn with the third party.";
    atxferloopdelay: Seconds<0, 3600> = "10", "Pause before the third party is called again.";
    atxferabort: Code = "*1", "Ends the question of an attended transfer; the two talk again.";
    atxfercomplete: Code = "*2", "Completes it without hanging up.";
    atxferswap: Code = "*4", "Changes between the two others.";
    atxferthreeway: Code = "*3", "Lets all three talk; who hangs up leaves the two others.";
    courtesytone: Text = "", "Both hear it when a recording begins or ends by keys.";
    recordingfailsound: Text = "", "A recording could not begin.";
    pickupexten: Text = "*8", "Number that takes a call which rings in a pickup group of the phone; empty: none.";
    pickupsound: Text = "", "Who takes a call hears it before the caller.";
    pickupfailsound: Text = "", "There is no call to take.";
    @recognised {
        "parkext" "*" Ignored "parking has a file of its own, res_parking.conf";
        "findslot" "*" Ignored "parking has a file of its own, res_parking.conf";
        "parkedmusicclass" "*" Ignored "parking has a file of its own, res_parking.conf";
        "comebacktoorigin" "*" Ignored "parking has a file of its own, res_parking.conf";
        "comebackdialtime" "*" Ignored "parking has a file of its own, res_parking.conf";
        "comebackcontext" "*" Ignored "parking has a file of its own, res_parking.conf";
        "parkedplay" "*" Ignored "parking has a file of its own, res_parking.conf";
        "parkedcalltransfers" "*" Ignored "parking has a file of its own, res_parking.conf";
        "parkedcallreparking" "*" Ignored "parking has a file of its own, res_parking.conf";
        "parkedcallhangup" "*" Ignored "parking has a file of its own, res_parking.conf";
        "parkedcallrecording" "*" Ignored "parking has a file of its own, res_parking.conf";
        "adsipark" "*" Ignored "parking has a file of its own, res_parking.conf";
        "parkinghints" "*" Ignored "parking has a file of its own, res_parking.conf";
        "parkext_exclusive" "*" Ignored "parking has a file of its own, res_parking.conf";
        "parkeddynamic" "*" Ignored "parking has a file of its own, res_parking.conf";
        "parkpos" "*" Ignored "parking has a file of its own, res_parking.conf";
        "context" "*" Ignored "parking has a file of its own, res_parking.conf";
        "parkingtime" "*" Ignored "parking has a file of its own, res_parking.conf";
    }
}

options! {
    /// `[featuremap]` of `features.conf`.
    FeatureCodes, "features.conf", "featuremap", IsIgnored;
    blindxfer: Code = "#", "Transfers the other one to an extension (options t and T of Dial).";
    atxfer: Code = "", "The same after asking there.";
    disconnect: Code = "*", "Ends the call (options h and H).";
    automixmon: Code = "", "Begins and ends a recording into one file (options x and X).";
    automon: Code = "", "Begins and ends a recording as Monitor makes one (options w and W).";
    parkcall: Code = "", "Parks the other one (options k and K).";
    @recognised {}
}

/// Rows of the manual.
pub fn rows() -> Vec<super::Row> {
    use super::Object;
    [FeaturesGeneral::rows(), FeatureCodes::rows()].concat()
}

/// Sections that are no groups.
const SECTIONS: [&str; 3] = ["general", "featuremap", "applicationmap"];

/// Reads the file.
pub fn read(file: &File, findings: &mut Findings) -> Features {
    let general: FeaturesGeneral = read_settings(file, "general", findings);
    let map: FeatureCodes = read_settings(file, "featuremap", findings);
    let mut apps = BTreeMap::new();
    for variable in file.section("applicationmap").into_iter().flat_map(|section| &section.variables) {
        match app_feature(variable) {
            Ok(feature) => drop(apps.insert(variable.name.to_string(), feature)),
            Err(finding) => findings.push(finding),
        }
    }
    let is_group = |section: &&Section| !SECTIONS.iter().any(|name| section.name.eq_ignore_ascii_case(name));
    let groups = file.objects().filter(is_group).map(|section| {
        (
            section.name.to_string(),
            section.variables.iter().filter_map(|v| member(v, &apps, findings)).collect(),
        )
    });
    let groups = groups.collect();
    Features {
        code_timeout: general.featuredigittimeout,
        digit_timeout: general.transferdigittimeout,
        attempts: general.transferdialattempts,
        no_answer: general.atxfernoanswertimeout,
        drop_call: general.atxferdropcall,
        callback_retries: general.atxfercallbackretries,
        loop_delay: general.atxferloopdelay,
        abort: general.atxferabort,
        complete: general.atxfercomplete,
        swap: general.atxferswap,
        three_way: general.atxferthreeway,
        done_sound: general.xfersound,
        failed_sound: general.xferfailsound,
        announce_sound: general.transferannouncesound,
        retry_sound: general.transferretrysound,
        invalid_sound: general.transferinvalidsound,
        courtesy_tone: general.courtesytone,
        recording_failed_sound: general.recordingfailsound,
        pickup_exten: general.pickupexten,
        pickup_sound: general.pickupsound,
        pickup_fail_sound: general.pickupfailsound,
        map: FeatureMap {
            blind: map.blindxfer,
            attended: map.atxfer,
            disconnect: map.disconnect,
            mix_monitor: map.automixmon,
            monitor: map.automon,
            park: map.parkcall,
        },
        apps,
        groups,
    }
}

/// `name => keys,activate on[/activated by],application[,arguments[,music class]]`; arguments may stand in parentheses.
fn app_feature(variable: &Variable) -> Result<AppFeature, Finding> {
    let wrong = |why: &str| {
        let message = format!("feature '{}' {why} and is left out", variable.name);
        let remedy =
            "write name => *9,self,Playback(tt-monkeys) or name => *9,peer/caller,Playback,tt-monkeys";
        variable.finding(Level::Warning, message, remedy)
    };
    let mut parts = variable.value.splitn(3, ',').map(str::trim);
    let (code, who, rest) = (parts.next(), parts.next(), parts.next());
    let code = code.filter(|code| !code.is_empty() && is_code(code)).ok_or_else(|| wrong("has no keys"))?;
    let (on, by) = who.map(|who| who.split_once('/').unwrap_or((who, "both"))).unwrap_or_default();
    let runs_on = match on.trim().to_ascii_lowercase().as_str() {
        "self" | "caller" => RunsOn::Own,
        "peer" | "callee" => RunsOn::Peer,
        _ => return Err(wrong("runs neither on self nor on peer")),
    };
    let pressed_by = match by.trim().to_ascii_lowercase().as_str() {
        "caller" => PressedBy::Caller,
        "callee" => PressedBy::Callee,
        "both" => PressedBy::Both,
        _ => return Err(wrong("is for neither caller, callee nor both")),
    };
    let rest = rest.filter(|rest| !rest.is_empty()).ok_or_else(|| wrong("has no application"))?;
    let (app, args, music) = application(rest).ok_or_else(|| wrong("has no closing parenthesis"))?;
    let (app, args, music) = (app.to_owned(), args.to_owned(), music.to_owned());
    Ok(AppFeature { code: code.to_owned(), runs_on, pressed_by, app, args, music })
}

/// Application, arguments and music class; `None` without a closing parenthesis.
fn application(text: &str) -> Option<(&str, &str, &str)> {
    let end = text.find(['(', ',']).unwrap_or(text.len());
    let (app, rest) = text.split_at(end);
    let (args, music) = match rest.strip_prefix('(') {
        Some(inner) => {
            let close = inner.rfind(')')?;
            (&inner[..close], inner[close + 1..].trim_start_matches(','))
        }
        None => {
            let rest = rest.strip_prefix(',').unwrap_or(rest);
            match rest.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
                Some((args, rest)) => (args, rest.trim_start_matches(',')),
                None => rest.rsplit_once(',').unwrap_or((rest, "")),
            }
        }
    };
    Some((app.trim(), args.trim(), music.trim()))
}

/// A feature of a group, with its own code or that of the application map.
fn member(
    variable: &Variable,
    apps: &BTreeMap<String, AppFeature>,
    findings: &mut Findings,
) -> Option<(String, String)> {
    let Some(feature) = apps.get(&*variable.name) else {
        let message = format!("[applicationmap] has no feature '{}'", variable.name);
        findings.warning(&variable.place, message, "add it there or remove the line");
        return None;
    };
    let own = variable.value.trim();
    let code = if own.is_empty() || !is_code(own) { &feature.code } else { own };
    Some((variable.name.to_string(), code.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> (Features, String) {
        let mut findings = Findings::new();
        let source = conf::Memory::new().with("features.conf", text);
        let file = conf::load(&source, "features.conf", conf::Options::default(), &mut findings).unwrap();
        let features = read(&file, &mut findings);
        (features, findings.iter().map(|finding| finding.message.clone()).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn without_a_line_keys_mean_what_they_do_in_the_field() {
        assert_eq!(read_text("[general]\n"), (Features::default(), String::new()));
    }

    #[test]
    fn codes_and_times_are_taken_and_what_cannot_be_pressed_is_not() {
        let (features, said) = read_text(
            "[general]\nfeaturedigittimeout=500\ntransferdigittimeout => 5\natxferabort=*9\n\
             [featuremap]\nblindxfer => #1\natxfer => *2\ndisconnect => *x\nautomixmon =>\n",
        );
        assert_eq!(features.code_timeout.as_millis(), 500);
        assert_eq!((features.digit_timeout.as_secs(), features.abort.as_str()), (5, "*9"));
        let map = &features.map;
        assert_eq!([&map.blind, &map.attended, &map.disconnect, &map.mix_monitor], ["#1", "*2", "*", ""]);
        assert!(said.contains("disconnect=*x cannot be pressed"), "{said}");
    }

    #[test]
    fn features_of_the_application_map_are_read_in_both_spellings() {
        let (features, said) = read_text(
            "[applicationmap]\nplain => #9,peer,Playback,tt-monkeys\nbare => #8,self/caller,MusicOnHold\n\
             round => *5,callee/both,Macro(a,b),jazz\nquoted => *6,self,Set,\"A=1,2\",rock\nlast => *7,peer,Playback,a,b\n\
             off => ,self,NoOp\nwho => 1,nobody,NoOp\nby => 1,self/dog,NoOp\nnone => 1,self\nopen => 1,self,NoOp(x\n\
             [mine]\nplain => 77\nround =>\nghost => 1\n",
        );
        let of = |name: &str| {
            let f = &features.apps[name];
            format!("{} {:?} {:?} {} {} {}", f.code, f.runs_on, f.pressed_by, f.app, f.args, f.music)
        };
        for (name, expected) in [
            ("plain", "#9 Peer Both Playback tt-monkeys "),
            ("bare", "#8 Own Caller MusicOnHold  "),
            ("round", "*5 Peer Both Macro a,b jazz"),
            ("quoted", "*6 Own Both Set A=1,2 rock"),
            ("last", "*7 Peer Both Playback a b"),
        ] {
            assert_eq!(of(name), expected);
        }
        assert_eq!(features.apps.len(), 5);
        let group = &features.groups["mine"];
        assert_eq!(group, &[("plain".to_owned(), "77".to_owned()), ("round".to_owned(), "*5".to_owned())]);
        for why in [
            "'off' has no keys",
            "'who' runs",
            "'by' is for",
            "'none' has no app",
            "'open' has no clos",
            "'ghost'",
        ] {
            assert!(said.contains(why), "{why}: {said}");
        }
    }
}
