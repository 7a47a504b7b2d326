//! What is written down of a message, as the field writes it (`msgNNNN.txt`).

use std::fmt::Write as _;

use call::voicemail::Info;

/// Reads a file's text; what it does not say stays empty, and what else it says stays in the file.
pub(super) fn parse(text: &[u8]) -> Info {
    let text = String::from_utf8_lossy(text);
    let mut info = Info::default();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(';')) {
        let Some((name, value)) = line.split_once('=') else { continue };
        let (name, value) = (name.trim(), value.trim());
        let text = |into: &mut String| value.clone_into(into);
        match name {
            "origmailbox" => text(&mut info.orig_mailbox),
            "context" => text(&mut info.context),
            "exten" => text(&mut info.exten),
            "rdnis" => text(&mut info.rdnis),
            "priority" => info.priority = value.parse().unwrap_or_default(),
            "callerchan" => text(&mut info.channel),
            "callerid" => text(&mut info.caller_id),
            "origdate" => text(&mut info.date),
            "origtime" => info.time = value.parse().unwrap_or_default(),
            "category" => text(&mut info.category),
            "msg_id" => text(&mut info.id),
            "flag" => info.urgent = value.eq_ignore_ascii_case("urgent"),
            "duration" => info.duration = value.parse().unwrap_or_default(),
            _ => {}
        }
    }
    info
}

/// A value that is a line and nothing more, whatever a caller calls himself.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A new message's text.
pub(super) fn text(info: &Info) -> Vec<u8> {
    let mut out = String::from(";\n; Message Information file\n;\n[message]\n");
    for (name, value) in [
        ("origmailbox", &info.orig_mailbox),
        ("context", &info.context),
        ("exten", &info.exten),
        ("rdnis", &info.rdnis),
        ("priority", &info.priority.to_string()),
        ("callerchan", &info.channel),
        ("callerid", &info.caller_id),
        ("origdate", &info.date),
        ("origtime", &info.time.to_string()),
        ("category", &info.category),
        ("msg_id", &info.id),
        ("flag", &if info.urgent { "Urgent" } else { "" }.to_owned()),
        ("duration", &info.duration.to_string()),
    ] {
        let _ = writeln!(out, "{name}={}", line(value));
    }
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_no_caller_writes_a_line_of_his_own() {
        let info = Info {
            orig_mailbox: "6001".into(),
            context: "default".into(),
            exten: "6001".into(),
            rdnis: "unknown".into(),
            priority: 2,
            channel: "PJSIP/bob-00000001".into(),
            caller_id: "\"Bob\nduration=9999\" <6002>".into(),
            date: "Sat Nov 21 12:00:00 PM UTC 2026".into(),
            time: 1_795_262_400,
            category: String::new(),
            id: "1795262400-00000001".into(),
            urgent: true,
            duration: 7,
        };
        let read = parse(&text(&info));
        assert_eq!(read, Info { caller_id: "\"Bob duration=9999\" <6002>".into(), ..info });
    }

    #[test]
    fn texts_of_other_writers_are_read_as_far_as_they_go() {
        let old = b";\n; Message Information file\n;\n[message]\norigmailbox=1234\ncontext=macro-vm\nmacrocontext=from-internal\n\
                    exten=s-NOANSWER\npriority=2\ncallerchan=SIP/4-1\ncallerid=4\norigdate=Tue Jan 02 03:04:05 PM UTC 2018\n\
                    origtime=1514905445\ncategory=\nduration=12\n";
        let info = parse(old);
        assert_eq!((info.orig_mailbox.as_str(), info.time, info.duration), ("1234", 1_514_905_445, 12));
        assert_eq!((info.id.as_str(), info.urgent), ("", false));
        assert_eq!(parse(b"\xff\xfe nonsense"), Info::default());
    }
}
