//! Mailboxes on the console.

use super::*;
use crate::testing::mailboxes;

#[test]
fn accounts_letters_and_rules_of_minivm_are_listed() {
    let mut desk = Desk::new("minivm");
    assert_eq!(desk.text("minivm list accounts"), "There are no voicemail users currently defined\n");
    assert_eq!(desk.text("minivm list templates"), "There are no message templates defined\n");
    assert_eq!(desk.text("minivm list zones"), "There are no voicemail zones currently defined\n");
    let text = "[general]\nserveremail=pbx@example.com\n[zonemessages]\nberlin=Europe/Berlin|Q\n\
        [template-sv]\nsubject=Hej ${MVM_NAME}\nattachmedia=no\n\
        [alice@example.com]\nfullname=Alice\netemplate=sv\ntimezone=berlin\npincode=4711\n";
    let folder = crate::testing::Folder::new("cli-minivm-conf");
    for (name, text) in [("asterisk.conf", ""), ("extensions.conf", "[default]\n"), ("minivm.conf", text)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    *desk.cli.site.snapshot.borrow_mut() = Snapshot::load(&Where::Dir(folder.to_path_buf())).unwrap().0;
    assert_eq!(
        desk.lines("minivm list accounts")[1],
        "alice@example.com            sv              -               berlin     Alice"
    );
    assert_eq!(desk.json("minivm list accounts")["accounts"][0]["email_template"], "sv");
    let templates = desk.lines("minivm list templates");
    assert!(
        templates.iter().any(|line| line == "sv                 No     Hej ${MVM_NAME}"),
        "{templates:?}"
    );
    assert!(desk.text("minivm list zones").contains("Europe/Berlin"));
    assert!(desk.text("minivm show settings").contains("pbx@example.com"));
    assert!(!desk.text("minivm list accounts").contains("4711"), "no PIN is shown");
}

#[test]
fn mailboxes_and_zones_are_listed() {
    let mut desk = Desk::new("voicemail");
    assert_eq!(
        desk.run("voicemail show users"),
        (
            "There are no voicemail users currently defined\nCommand 'voicemail show users' failed.\n".into(),
            1
        )
    );
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
