//! `confbridge.conf`: profiles of conferences and of those who take part, and menus. What the options mean stands in
//! `call::conference`, where `CONFBRIDGE()` finds them, too.

use std::sync::Arc;

use call::conference::{
    BRIDGE_ROWS, BridgeProfile, Field, Menu, OptionRow, Profiles, SFU, SOUND_ROWS, USER_ROWS, UserProfile,
};
use conf::{File, Findings, Level, Section, Variable};

use super::{Recognised, Row, Status, suggestion};

/// `confbridge.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfBridge {
    /// What a dialplan can name.
    pub profiles: Arc<Profiles>,
}

impl ConfBridge {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let mut profiles = Profiles::default();
        for section in file.objects().filter(|section| !is_reserved(&section.name)) {
            let kind = section.variables.iter().rfind(|variable| variable.is("type"));
            let name = section.name.to_string();
            match kind.map(|kind| kind.value.to_ascii_lowercase()).as_deref() {
                Some("bridge") => {
                    let base = inherited(section, findings, |of| profiles.bridges.get(of).cloned());
                    let mut profile = base.map_or_else(BridgeProfile::default, |of| (*of).clone());
                    profile.name.clone_from(&name);
                    apply(section, &[BRIDGE_ROWS, SOUND_ROWS], "bridge", &mut profile, findings);
                    profiles.bridges.insert(name, Arc::new(profile));
                }
                Some("user") => {
                    let base = inherited(section, findings, |of| profiles.users.get(of).cloned());
                    let mut profile = base.map_or_else(UserProfile::default, |of| (*of).clone());
                    profile.name.clone_from(&name);
                    if apply(section, &[USER_ROWS], "user", &mut profile, findings) {
                        profiles.users.insert(name, Arc::new(profile));
                    }
                }
                Some("menu") => {
                    let base = inherited(section, findings, |of| profiles.menus.get(of).cloned());
                    let mut menu = base.map_or_else(Menu::default, |of| (*of).clone());
                    menu.name.clone_from(&name);
                    read_menu(section, &mut menu, findings);
                    profiles.menus.insert(name, Arc::new(menu));
                }
                _ => {
                    let message = format!("[{name}] has no type and is skipped");
                    findings.warning(&section.place, message, "write type=bridge, type=user or type=menu");
                }
            }
        }
        Self { profiles: Arc::new(profiles) }
    }
}

fn is_reserved(name: &str) -> bool {
    ["general", "global"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn is_structure(variable: &Variable) -> bool {
    variable.is("type") || variable.is("template") || variable.name.starts_with('@')
}

/// The profile that `template=` names, which has to come before.
fn inherited<T>(section: &Section, findings: &mut Findings, find: impl Fn(&str) -> Option<T>) -> Option<T> {
    let named = section.variables.iter().rfind(|variable| variable.is("template"))?;
    let found = find(&named.value);
    if found.is_none() {
        let message =
            format!("template={} names no profile of this type above [{}]", named.value, section.name);
        findings.push(named.finding(Level::Warning, message, "put the template before it"));
    }
    found
}

/// Applies the lines of a section; false when a line has no sense without which nobody may be let in.
fn apply<P: Clone + Default>(
    section: &Section,
    tables: &[&'static [OptionRow<P>]],
    kind: &str,
    profile: &mut P,
    findings: &mut Findings,
) -> bool {
    let rows = || tables.iter().copied().flatten();
    for variable in section.variables.iter().filter(|variable| !is_structure(variable)) {
        let Some(row) = rows().find(|row| variable.is(row.name)) else {
            let names: Vec<_> = rows().map(|row| row.name).collect();
            let message = format!("{kind} has no option `{}`; the line is ignored", variable.name);
            findings.push(variable.finding(Level::Warning, message, suggestion(&variable.name, &names)));
            continue;
        };
        if let Field::Not(harmless, ..) = row.field {
            Recognised { name: row.name, harmless, status: status(row) }.tell(variable, findings);
        } else if !row.set(profile, &variable.value) {
            let message = format!(
                "{}={} is none of: {}; the line is ignored",
                variable.name,
                variable.value,
                row.kind()
            );
            let remedy = format!("write {}={}", row.name, row.default);
            findings.push(variable.finding(Level::Warning, message, remedy));
        } else if row.name == "video_mode" && variable.value.eq_ignore_ascii_case(SFU) {
            let message = "video_mode=sfu is obeyed as follow_talker: a member sees one other at a time";
            findings.push(variable.finding(Level::Warning, message, "write video_mode=follow_talker"));
        } else if row.name == "pin" && !is_pin(&variable.value) {
            let message = format!(
                "the PIN of [{}] cannot be typed on a phone: nobody can enter with this profile, which is skipped",
                section.name
            );
            findings.push(variable.finding(Level::Error, message, "use digits"));
            return false;
        }
    }
    true
}

fn is_pin(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || c == '*')
}

fn read_menu(section: &Section, menu: &mut Menu, findings: &mut Findings) {
    for variable in section.variables.iter().filter(|variable| !is_structure(variable)) {
        if let Err(why) = menu.set(&variable.name, &variable.value) {
            let message = format!("menu [{}]: {why}; the line is ignored", section.name);
            findings.push(variable.finding(Level::Warning, message, "docs/conferences.md lists the actions"));
        }
    }
    for (digits, actions) in &menu.keys {
        for action in actions {
            if let Some(why) = action.is_without_effect() {
                let message =
                    format!("menu [{}]: {digits}={} has no effect: {why}", section.name, action.spell());
                findings.note(&section.place, message, "leave it out");
            }
        }
    }
}

fn status<P>(row: &OptionRow<P>) -> Status {
    match row.field {
        Field::Not(_, true, instead) => Status::Later(instead),
        Field::Not(_, false, why) => Status::Ignored(why),
        _ => Status::Supported,
    }
}

/// Rows of the manual.
pub(crate) fn rows() -> Vec<Row> {
    fn of<P: Clone + Default>(
        section: &'static str,
        rows: &'static [OptionRow<P>],
    ) -> impl Iterator<Item = Row> {
        rows.iter().map(move |row| Row {
            file: "confbridge.conf",
            section,
            name: row.name,
            kind: row.kind(),
            default: row.default,
            doc: row.doc,
            status: status(row),
        })
    }
    let structure = |section, name, kind: &str, default, doc| Row {
        file: "confbridge.conf",
        section,
        name,
        kind: kind.to_owned(),
        default,
        doc,
        status: Status::Supported,
    };
    let template = |section| {
        structure(
            section,
            "template",
            "name",
            "",
            "A profile of this type above whose options hold unless they are said anew.",
        )
    };
    let mut all = vec![structure("bridge", "type", "bridge", "bridge", "bridge."), template("bridge")];
    all.extend(of("bridge", BRIDGE_ROWS));
    all.extend(of("bridge", SOUND_ROWS));
    all.extend([structure("user", "type", "user", "user", "user."), template("user")]);
    all.extend(of("user", USER_ROWS));
    all.extend([
        structure("menu", "type", "menu", "menu", "menu."),
        template("menu"),
        structure(
            "menu",
            "DIGITS",
            "actions, comma separated",
            "",
            "What these digits do in a conference, in turn; [conferences](conferences.md#menus) lists the actions.",
        ),
    ]);
    all
}

#[cfg(test)]
mod tests {
    use base::{MemberSettings, RoomSettings, RoomVideo, SampleRate};
    use call::conference::{Action, Seat};

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
             max_speakers=3\nsound_join=ding\n[gated]\ntype=user\nstartmuted=yes\ndsp_drop_silence=yes\n\
             dsp_silence_threshold=500\nagc_level=2000\nadmin=yes\nquiet=yes\nmarked=yes\n",
        );
        assert_eq!(said, [""; 0]);
        let bridge = read.profiles.bridge("wide").unwrap();
        let mixing = RoomSettings {
            interval_ms: 10,
            rate_max: Some(SampleRate(16_000)),
            speakers_max: 3,
            ..RoomSettings::default()
        };
        assert_eq!((bridge.mixing(), bridge.members_max, bridge.sounds.join.as_str()), (mixing, 5, "ding"));
        let user = read.profiles.user("gated").unwrap();
        let mixing = MemberSettings {
            muted: true,
            drop_silence: true,
            level: 2000,
            silence_ms: 500,
            ..MemberSettings::default()
        };
        let seat = Seat { mixing, is_admin: true, is_marked: true, ..Seat::default() };
        assert_eq!((user.seat, user.is_quiet), (seat, true));
        assert_eq!(read.profiles.user("").unwrap().seat, Seat::default(), "the defaults are always there");
        assert_eq!(read.profiles.bridge("default_bridge").unwrap().members_max, 0);
        assert_eq!((read.profiles.bridge("narrow"), read.profiles.menu("")), (None, None));
    }

    #[test]
    fn templates_are_gone_on_from_and_the_default_profiles_can_be_said_anew() {
        let (read, said) = read(
            "[default_user]\ntype=user\nquiet=yes\n[base]\ntype=user\npin=12\nmarked=yes\n\
             [chief]\ntype=user\ntemplate=base\nadmin=yes\npin=99\n[lost]\ntype=user\ntemplate=gone\n\
             [keys]\ntype=menu\n1=toggle_mute\n2=no_op\n[more]\ntype=menu\ntemplate=keys\n2=leave_conference,no_op\n",
        );
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("template=gone"));
        let chief = read.profiles.user("chief").unwrap();
        assert_eq!((chief.pin.as_str(), chief.seat.is_marked, chief.seat.is_admin), ("99", true, true));
        assert!(read.profiles.user("").unwrap().is_quiet);
        let menu = read.profiles.menu("more").unwrap();
        assert_eq!(
            menu.keys,
            [("1".to_owned(), vec![Action::ToggleMute]), ("2".to_owned(), vec![Action::Leave, Action::NoOp])]
        );
    }

    #[test]
    fn what_is_not_obeyed_is_said_and_a_pin_that_cannot_be_typed_keeps_everyone_out() {
        let (read, said) = read(
            "[guarded]\ntype=user\npin=secret\n[odd]\ntype=bridge\ninternal_sample_rate=fast\nvideo_mode=sfu\n\
             [keys]\ntype=menu\n1=dance\nx=no_op\n2=toggle_binaural\n[what]\nadmin=yes\n\
             [soft]\ntype=user\ndenoise=yes\nmarket=yes\njitterbuffer=yes\n",
        );
        assert_eq!(read.profiles.user("guarded"), None);
        let video = RoomVideo { tells_speaker: true, ..RoomVideo::default() };
        let mixing = RoomSettings { video, ..RoomSettings::default() };
        assert_eq!(read.profiles.bridge("odd").unwrap().mixing(), mixing);
        let expected = [
            "PIN of [guarded]",
            "internal_sample_rate=fast",
            "video_mode=sfu",
            "no action 'dance'",
            "'x' cannot be pressed",
            "toggle_binaural has no effect",
            "[what] has no type",
            "denoise=yes",
            "no option `market`",
        ];
        for words in expected {
            assert!(said.iter().any(|line| line.contains(words)), "{words}: {said:?}");
        }
        assert_eq!(said.len(), expected.len(), "{said:?}");
    }
}
