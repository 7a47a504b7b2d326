//! Mailboxes as managers see them.

use call::voicemail::{BoxName, Folder, Info};

use super::*;
use crate::testing::mailboxes;

fn put(desk: &Desk, id: &str) {
    let of = BoxName::parse("6001@default").unwrap();
    let info = Info {
        id: id.into(),
        caller_id: "\"Bob\" <6002>".into(),
        time: 1_795_262_400,
        duration: 7,
        ..Info::default()
    };
    desk.world.mail(|mail| mail.put(&of, Folder::INBOX, info));
}

/// Sends an action whose answer a story says.
fn told(desk: &mut Desk, headers: &str) -> String {
    assert_eq!(desk.act(1, headers), "", "{headers}");
    let soon = desk.world.now().as_millis() + 1;
    desk.pass_to(soon);
    desk.sent(1)
}

#[test]
fn mailboxes_are_listed_and_their_messages_moved_removed_and_sent_on() {
    let mut desk = Desk::new("voicemail");
    desk.world.settings(mailboxes);
    desk.login(1, "all");
    ["a", "b", "c"].iter().for_each(|id| put(&desk, id));
    let refreshed = told(&mut desk, "VoicemailRefresh|ActionID: 9");
    assert_eq!(refreshed, "Response: Success\r\nActionID: 9\r\nMessage: Refresh sent\r\n\r\n");
    let text = desk.act(1, "VoicemailUsersList|ActionID: 1");
    let list = messages(&text);
    assert_eq!(list.len(), 4);
    for (name, value) in [
        ("Event", "VoicemailUserEntry"),
        ("VMContext", "default"),
        ("VoiceMailbox", "6001"),
        ("Fullname", "Alice"),
        ("Email", "alice@example.com"),
        ("NewMessageCount", "3"),
        ("OldMessageCount", "0"),
    ] {
        assert_eq!(field(&list[1], name), Some(value), "{name}");
    }
    assert!(!text.contains("1234"), "no PIN is told: {text}");
    let one = desk.act(1, "VoicemailUserStatus|Context: default|Mailbox: 6002");
    assert!(one.contains("Event: VoicemailUserDetail\r\n") && one.contains("Fullname: Bob\r\n"), "{one}");
    let none = desk.act(1, "VoicemailUserStatus|Context: x|Mailbox: 6001");
    assert_eq!(none, "Response: Success\r\nMessage: There is no voicemail user of the given info.\r\n\r\n");
    let of = "Context: default|Mailbox: 6001|Folder: INBOX";
    for (action, expected) in [
        (format!("VoicemailMove|{of}|ID: a|ToFolder: Old"), "Message move successful"),
        (format!("VoicemailMove|{of}|ID: a|ToFolder: Old"), "There is no such message"),
        (format!("VoicemailRemove|{of}|ID: b"), "Message remove successful"),
        (
            format!("VoicemailForward|{of}|ID: c|ToContext: default|ToMailbox: 6002|ToFolder: INBOX"),
            "Message forward successful",
        ),
    ] {
        let answer = told(&mut desk, &action);
        assert!(answer.contains(&format!("Message: {expected}\r\n")), "{action}: {answer}");
    }
    for (action, expected) in [
        (
            "VoicemailRemove|Context: default|Mailbox: ../x|Folder: INBOX|ID: b",
            "Could not find voicemail user",
        ),
        ("VoicemailRemove|Context: default|Mailbox: 6001|Folder: ../x|ID: b", "There is no folder '../x'"),
        ("VoicemailRemove|Context: default|Mailbox: 6001|Folder: INBOX", "ID not specified"),
    ] {
        assert_eq!(
            desk.act(1, action),
            format!("Response: Error\r\nMessage: {expected}\r\n\r\n"),
            "{action}"
        );
    }
    let text = told(&mut desk, "VoicemailBoxSummary|Context: default|Mailbox: 6001");
    let list = messages(&text);
    let seen: Vec<_> = list.iter().filter_map(|m| field(m, "Folder").zip(field(m, "ID"))).collect();
    assert_eq!(seen, [("INBOX", "c"), ("Old", "a")]);
    assert_eq!(field(&list[1], "CallerID"), Some("\"Bob\" <6002>"));
    assert_eq!(field(list.last().unwrap(), "ListItems"), Some("2"));
    let counted = desk.act(1, "MailboxCount|Mailbox: 6001@default");
    assert!(counted.contains("NewMessages: 1\r\nOldMessages: 1\r\n"), "{counted}");
    let counted = desk.act(1, "MailboxStatus|Mailbox: 6002");
    assert!(counted.contains("Waiting: 1\r\n"), "{counted}");
}
