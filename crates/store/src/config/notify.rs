//! `pjsip_notify.conf`: what an administrator may send to a phone by hand, by name (`pjsip send notify`).

use conf::{File, Findings};
use std::collections::BTreeMap;

/// Headers of one NOTIFY, in order; `Content` is a line of its body, `Content-Type` the body's type.
pub type Lines = Vec<(String, String)>;

/// The file as a whole: its sections, each with its lines as they stand. There are no options to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notify {
    /// By name of the section.
    pub kinds: BTreeMap<String, Lines>,
}

impl Notify {
    /// Reads the file. A section without `Event` is said: phones refuse such a NOTIFY.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let mut notify = Self::default();
        for section in file.objects() {
            let lines: Lines = section
                .variables
                .iter()
                .map(|line| (line.name.to_string(), line.value.to_string()))
                .collect();
            if section.value("Event").is_none() {
                let message = format!("[{}] has no Event; phones refuse a NOTIFY without one", section.name);
                findings.warning(&section.place, message, "add a line such as Event=>check-sync");
            }
            notify.kinds.insert(section.name.to_string(), lines);
        }
        notify
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_keep_their_lines_in_order() {
        let text = "[reboot](!)\nEvent=>check-sync\\;reboot=true\n[polycom](reboot)\nContent=>one\nContent=>two\n[odd]\nX-A=>1\n";
        let mut findings = Findings::new();
        let source = conf::Memory::new().with("pjsip_notify.conf", text);
        let file = conf::load(&source, "pjsip_notify.conf", conf::Options::default(), &mut findings).unwrap();
        let notify = Notify::read(&file, &mut findings);
        let line = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(notify.kinds.len(), 2, "a template is no kind");
        assert_eq!(
            notify.kinds["polycom"],
            [line("Event", "check-sync;reboot=true"), line("Content", "one"), line("Content", "two")]
        );
        assert_eq!(findings.iter().count(), 1);
    }
}
