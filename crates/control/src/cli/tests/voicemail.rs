//! Mailboxes on the console.

use super::*;
use crate::testing::mailboxes;

#[test]
fn mailboxes_and_zones_are_listed() {
    let mut desk = Desk::new("voicemail");
    assert_eq!(desk.text("voicemail show users"), "There are no voicemail users currently defined\n");
    assert_eq!(desk.text("voicemail show zones"), "There are no voicemail zones currently defined\n");
    desk.world.settings(mailboxes);
    let name = call::voicemail::BoxName::parse("6001").unwrap();
    let counts = call::voicemail::Counts { urgent: 1, new: 2, old: 3 };
    desk.world.shard.core.borrow_mut().mail_counted(&name, counts);
    assert_eq!(
        desk.lines("voicemail show users"),
        [
            "Context    Mbox  User                      Zone       NewMsg",
            "default    6001  Alice                     berlin          3",
            "default    6002  Bob                                       0",
            "2 voicemail users configured.",
        ]
    );
    assert_eq!(desk.lines("voicemail show users for default").len(), 4);
    assert_eq!(desk.run("voicemail show users for x").0, "No such voicemail context \"x\"\n");
    let users = desk.json("voicemail show users");
    assert_eq!(users["users"][0]["new"], 3);
    assert_eq!(users["users"][0]["urgent"], 1);
    let one = desk.json("voicemail show mailbox 6001@default");
    assert_eq!((&one["name"], &one["old"]), (&"Alice".into(), &3.into()));
    assert_eq!(desk.run("voicemail show mailbox ../x").0, "Could not find voicemail user ../x\n");
    let zones = desk.lines("voicemail show zones");
    assert_eq!(zones[1], "berlin          Europe/Berlin        'vm-received' Q");
    assert!(!desk.text("voicemail show mailbox 6001").contains("1234"), "no PIN is shown");
}
