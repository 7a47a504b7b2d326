//! `meetme.conf`: rooms of `MeetMe()`, each with its PINs.

use std::sync::Arc;
use std::time::Duration;

use call::conference::{Bookings, Pins, Rooms};
use conf::{File, Findings, Level, Section, Variable};

use super::kind::{Int, YesNo};
use super::{Object as _, Origin, Row, Status, options, read_settings};

options! {
    /// `[general]` of `meetme.conf`: what holds for rooms that are rows of a database.
    MeetMeGeneral, "meetme.conf", "general", IsIgnored;
    schedule: YesNo = "no", "Rooms that are rows of a database are there between their starttime and endtime only.";
    fuzzystart: Int<0, 86_400> = "300", "Seconds before starttime from which on one may enter.";
    earlyalert: Int<0, 86_400> = "3600", "Seconds before starttime from which on who comes too early is told that the conference has not started; before that there is no such conference.";
    endalert: Int<0, 86_400> = "120", "Seconds before endtime at which all are told; 0: they are not.";
    extendby: Int<0, 86_400> = "900", "Seconds by which command E of MeetMeAdmin() puts the end off.";
    logmembercount: YesNo = "yes", "Column members of the row says how many are there.";
    rtupdate: YesNo = "yes", "`no`: the row is not written, whatever logmembercount says.";
    @recognised {
        "audiobuffers" "*" Ignored "there is a jitter buffer for each call";
    }
}

/// `meetme.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeetMe {
    /// Its rooms.
    pub rooms: Arc<Rooms>,
    /// What holds for those that are rows.
    pub bookings: Bookings,
}

/// A file without `[general]`.
impl Default for MeetMe {
    fn default() -> Self {
        let general = MeetMeGeneral::blank(Origin::default_of("general"));
        Self { rooms: Arc::default(), bookings: bookings(&general) }
    }
}

fn bookings(general: &MeetMeGeneral) -> Bookings {
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    Bookings {
        has_rows: false,
        schedule: general.schedule,
        early: seconds(general.fuzzystart),
        early_alert: seconds(general.earlyalert),
        end_alert: seconds(general.endalert),
        extend_by: seconds(general.extendby),
        counts: general.logmembercount && general.rtupdate,
    }
}

impl MeetMe {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let mut rooms = Rooms::new();
        for section in file.objects() {
            match section.name.to_ascii_lowercase().as_str() {
                "general" => {}
                "rooms" => read_rooms(section, &mut rooms, findings),
                _ => {
                    let message = format!("[{}] is no section of meetme.conf and is skipped", section.name);
                    findings.warning(&section.place, message, "rooms are lines of [rooms]");
                }
            }
        }
        let general: MeetMeGeneral = read_settings(file, "general", findings);
        Self { rooms: Arc::new(rooms), bookings: bookings(&general) }
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
    rows.extend(MeetMeGeneral::rows());
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
        assert!(read.bookings.schedule && read.bookings.counts);
        assert_eq!((read.bookings.early.as_secs(), MeetMe::default().bookings.schedule), (300, false));
        for words in ["without a number", "a PIN of room 500", "no option `room`", "[other]"] {
            assert!(said.iter().any(|line| line.contains(words)), "{words}: {said:?}");
        }
        assert_eq!(said.len(), 4, "{said:?}");
    }
}
