//! What public dialplans use most, as it was counted, is there; what is not is named here with its reason.

use std::collections::BTreeSet;
use std::path::Path;

/// Applications of the counted sets that are not there.
const NO_APPLICATIONS: &[(&str, &str)] = &[
    ("addqueuemember", "queues"),
    ("amd", "answering machines are not told apart"),
    ("backgrounddetect", "speech is not listened for"),
    ("celgenuserevent", "channel event records"),
    ("chanspy", "spying"),
    ("directory", "voicemail"),
    ("macroreturn", "is in a sample, and no application: a macro ends with its context or MacroExit"),
    ("meetme", "conferences of the older kind"),
    ("meetmeadmin", "conferences of the older kind"),
    ("minivmappmess", "voicemail"),
    ("minivmdelete", "voicemail"),
    ("minivmgreet", "voicemail"),
    ("minivmnotify", "voicemail"),
    ("minivmrecord", "voicemail"),
    ("page", "paging"),
    ("queue", "queues"),
    ("removequeuemember", "queues"),
    ("stasis", "the REST interface"),
    ("voicemail", "voicemail"),
    ("voicemailmain", "voicemail"),
];

/// Functions of the counted sets that are not there.
const NO_FUNCTIONS: &[(&str, &str)] = &[
    ("AST_CONFIG", "configuration files are not read by calls"),
    ("AUDIOHOOK_INHERIT", "has no effect since transfers keep what listens to a channel"),
    ("CONFBRIDGE", "conference profiles made by the dialplan"),
    ("CONFBRIDGE_INFO", "conferences"),
    ("CURL", "HTTP clients"),
    ("CURLOPT", "HTTP clients"),
    ("FAXOPT", "fax"),
    ("GEOLOC_PROFILE", "geolocation"),
    ("IAXVAR", "IAX2"),
    ("JITTERBUFFER", "every stream has a jitter buffer that fits itself"),
    ("MINIVMACCOUNT", "voicemail"),
    ("MINIVMCOUNTER", "voicemail"),
    ("QUEUE_MEMBER", "queues"),
    ("RECORDING_INFO", "is no function of Asterisk"),
    ("SRVRESULT", "service records"),
    ("STIR_SHAKEN", "signed identities"),
    ("TALK_DETECT", "speech is not listened for"),
    ("TONE_DETECT", "tones are not listened for"),
    ("VMCOUNT", "voicemail"),
];

/// The names that a line of the counts lists after its mark.
fn counted<'t>(counts: &'t str, mark: &str) -> impl Iterator<Item = &'t str> {
    let line = counts.lines().find_map(|line| line.strip_prefix(mark)).expect(mark);
    line.split_whitespace()
}

#[test]
fn what_dialplans_use_most_is_there_or_named_with_its_reason() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/specs/usage-counts.md");
    let Ok(counts) = std::fs::read_to_string(&path) else {
        println!("skipped: {} is not there", path.display());
        return;
    };
    let section = |from: &str, to: &str| {
        let rest = counts.split_once(from).expect(from).1;
        rest.split_once(to).expect(to).0.replace("**", "")
    };
    let head = section("## 1 Smallest sets", "## 2 Applications");
    let (apps, functions) = head.split_once("90 % functions").expect("functions");
    let functions = format!("90 % functions{functions}");
    let tables = apps::table::tables();
    for (text, marks, there, named) in [
        (
            apps,
            ["90 % apps (21): ", "+13 for 95 %: ", "+42 for 99 %: "],
            &(|name: &str| apps::table::lookup(name).is_some()) as &dyn Fn(&str) -> bool,
            NO_APPLICATIONS,
        ),
        (
            &functions,
            ["90 % functions (37): ", "+17 for 95 %: ", "+36 for 99 %: "],
            &|name: &str| tables.functions.lookup(name).is_some(),
            NO_FUNCTIONS,
        ),
    ] {
        let missing: BTreeSet<&str> =
            marks.iter().flat_map(|mark| counted(text, mark)).filter(|name| !there(name)).collect();
        let named: BTreeSet<&str> = named.iter().map(|(name, _)| *name).collect();
        assert_eq!(missing, named, "missing in the program, and named here");
    }
}
