//! `meetme.conf`: rooms of `MeetMe()`, each with its PINs.

use std::sync::Arc;

use call::conference::{Pins, Rooms};
use conf::{File, Findings, Level, Section, Variable};

use super::{Recognised, Row, Status, suggestion};

/// What `[general]` may say, none of which is obeyed.
const GENERAL: &[(&str, &str, Status)] = &[
    ("audiobuffers", "*", Status::Ignored("there is a jitter buffer for each call")),
    ("schedule", "no", Status::Later("conferences have no times")),
    ("logmembercount", "no", Status::Later("no database has the number of members")),
    ("fuzzystart", "*", Status::Later("conferences have no times")),
    ("earlyalert", "*", Status::Later("conferences have no times")),
    ("endalert", "*", Status::Later("conferences have no times")),
    ("extendby", "*", Status::Later("conferences have no times")),
    ("rtupdate", "*", Status::Later("no database has the number of members")),
];

/// `meetme.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MeetMe {
    /// Its rooms.
    pub rooms: Arc<Rooms>,
}

impl MeetMe {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let mut rooms = Rooms::new();
        for section in file.objects() {
            match section.name.to_ascii_lowercase().as_str() {
                "general" => read_general(section, findings),
                "rooms" => read_rooms(section, &mut rooms, findings),
                _ => {
                    let message = format!("[{}] is no section of meetme.conf and is skipped", section.name);
                    findings.warning(&section.place, message, "rooms are lines of [rooms]");
                }
            }
        }
        Self { rooms: Arc::new(rooms) }
    }
}

fn read_general(section: &Section, findings: &mut Findings) {
    for variable in section.variables.iter().filter(|variable| !variable.name.starts_with('@')) {
        match GENERAL.iter().find(|(name, ..)| variable.is(name)) {
            Some(&(name, harmless, status)) => Recognised { name, harmless, status }.tell(variable, findings),
            None => {
                let names: Vec<_> = GENERAL.iter().map(|(name, ..)| *name).collect();
                let message = format!("general has no option `{}`; the line is ignored", variable.name);
                findings.push(variable.finding(Level::Warning, message, suggestion(&variable.name, &names)));
            }
        }
    }
}

fn read_rooms(section: &Section, rooms: &mut Rooms, findings: &mut Findings) {
    for variable in &section.variables {
        if !variable.is("conf") {
            let message = format!("[rooms] has no option `{}`; the line is ignored", variable.name);
            findings.push(variable.finding(Level::Warning, message, "write conf => number[,pin[,adminpin]]"));
            continue;
        }
        if let Some((number, pins)) = room(variable, findings) {
            rooms.insert(number, pins);
        }
    }
}

/// `conf => number[,pin[,adminpin]]`.
fn room(variable: &Variable, findings: &mut Findings) -> Option<(String, Pins)> {
    let mut parts = variable.value.split([',', '|']).map(|part| part.trim().to_owned());
    let number = parts.next().filter(|number| !number.is_empty());
    let pins = Pins { user: parts.next().unwrap_or_default(), admin: parts.next().unwrap_or_default() };
    let can_be_typed = |pin: &str| pin.chars().all(|c| c.is_ascii_digit() || c == '*');
    let remedy = "write conf => number[,pin[,adminpin]]";
    let Some(number) = number else {
        findings.push(variable.finding(
            Level::Warning,
            "a room without a number is skipped".to_owned(),
            remedy,
        ));
        return None;
    };
    if !can_be_typed(&pins.user) || !can_be_typed(&pins.admin) {
        let message = format!("a PIN of room {number} cannot be typed on a phone: the room is skipped");
        findings.push(variable.finding(Level::Error, message, "use digits"));
        return None;
    }
    Some((number, pins))
}

/// Rows of the manual.
pub(crate) fn rows() -> Vec<Row> {
    let row = |section, name, kind: &str, doc, status| Row {
        file: "meetme.conf",
        section,
        name,
        kind: kind.to_owned(),
        default: "",
        doc,
        status,
    };
    let doc = "A room of MeetMe(); who types the second PIN is an administrator.";
    let mut rows = vec![row("rooms", "conf", "number,pin,adminpin; lines add up", doc, Status::Supported)];
    rows.extend(GENERAL.iter().map(|(name, _, status)| row("general", *name, "", "", *status)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_have_pins_for_everybody_and_for_administrators() {
        let mut findings = Findings::new();
        let text = "[general]\naudiobuffers=32\nschedule=yes\n[rooms]\nconf => 100\nconf => 200,12\nconf => 300,12,34\n\
                    conf => 400,,34\nconf =>\nconf => 500,secret\nroom => 600\n[other]\n";
        let source = conf::Memory::new().with("meetme.conf", text);
        let file = conf::load(&source, "meetme.conf", conf::Options::default(), &mut findings).unwrap();
        let read = MeetMe::read(&file, &mut findings);
        let pins = |user: &str, admin: &str| Pins { user: user.to_owned(), admin: admin.to_owned() };
        let expected = [
            ("100", pins("", "")),
            ("200", pins("12", "")),
            ("300", pins("12", "34")),
            ("400", pins("", "34")),
        ];
        assert_eq!(*read.rooms, expected.map(|(number, pins)| (number.to_owned(), pins)).into());
        let said: Vec<_> = findings.iter().map(|finding| finding.message.as_str()).collect();
        for words in ["schedule=yes", "without a number", "a PIN of room 500", "no option `room`", "[other]"]
        {
            assert!(said.iter().any(|line| line.contains(words)), "{words}: {said:?}");
        }
        assert_eq!(said.len(), 5, "{said:?}");
    }
}
