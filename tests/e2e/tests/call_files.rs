//! Call files: what is put into the spool's `outgoing` is dialled, and what came of it is written down.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use e2e::{Phone, Server, Site, wait};

const DIALPLAN: &str = "
[test]
exten => talk,1,NoOp()
 same => n(here),Set(DB(file/talk)=${what} ${CALLERID(num)} ${CHANNEL(accountcode)})
 same => n,Hangup()
";

fn server(name: &str) -> Server {
    Server::start(Site::new(name).phone_with("bob", "allow=ulaw\n").dialplan(DIALPLAN))
}

fn folder(server: &Server, name: &str) -> PathBuf {
    server.site.place.join("spool").join(name)
}

/// Moves a file into the spool whole.
fn put(server: &Server, name: &str, text: &str, due: Option<SystemTime>) {
    let part = server.site.place.write(&format!("{name}.part"), text);
    if let Some(due) = due {
        fs::File::options()
            .append(true)
            .open(&part)
            .and_then(|file| file.set_modified(due))
            .expect("its time");
    }
    wait::until_true("the spool is there", || folder(server, "outgoing").is_dir());
    fs::rename(part, folder(server, "outgoing").join(name)).expect("it is moved");
}

/// The archived file, once it is there.
fn archived(server: &Server, name: &str) -> String {
    wait::until("it is archived", || fs::read_to_string(folder(server, "outgoing_done").join(name)).ok())
}

#[test]
fn a_file_is_a_call_that_goes_on_in_the_dialplan_or_in_an_application() {
    let server = server("call-files");
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.must_register();
    let text = "Channel: PJSIP/bob\nCallerid: \"Spool\" <4711>\nAccount: acc\nContext: test\nExtension: talk\nPriority: here\n\
                Set: what=set\nArchive: yes\nWaitTime: 30\n";
    put(&server, "one", text, None);
    let invite = bob.ring();
    assert!(invite.header("From").is_some_and(|from| from.contains("4711")));
    bob.take(&invite);
    assert_eq!(server.database("file", "talk"), "set 4711 acc");
    assert!(archived(&server, "one").ends_with("Status: Completed\n"));
    bob.until_hung_up();

    put(&server, "two", "Channel: PJSIP/bob\nApplication: Hangup\n", None);
    let invite = bob.ring();
    bob.take(&invite);
    bob.until_hung_up();
    wait::until_true("it is gone", || !folder(&server, "outgoing").join("two").exists());
    assert!(!folder(&server, "outgoing_done").join("two").exists());
    server.until_idle();
}

#[test]
fn a_call_that_fails_is_tried_again_as_often_as_the_file_says() {
    let server = server("call-files-again");
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.must_register();
    let text = "Channel: PJSIP/bob\nApplication: Hangup\nMaxRetries: 1\nRetryTime: 1\nArchive: yes\n";
    put(&server, "again", text, None);
    for _ in 0..2 {
        let invite = bob.ring();
        bob.refuse(&invite, 486, "Busy Here");
    }
    let text = archived(&server, "again");
    assert!(text.ends_with("Status: Expired\n"), "{text}");
    assert_eq!((text.matches("StartRetry: ").count(), text.matches("EndRetry: ").count()), (2, 1), "{text}");
    put(&server, "wrong", "Channel: PJSIP/bob\n", None);
    wait::until_true("it is said", || server.log().contains("neither an Application nor a Context"));
    server.until_idle();
}

#[test]
fn a_file_whose_time_has_not_come_waits() {
    let server = server("call-files-later");
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.must_register();
    let later = SystemTime::now() + Duration::from_secs(1000);
    put(&server, "later", "Channel: PJSIP/bob\nApplication: Hangup\n", Some(later));
    put(&server, "now", "Channel: PJSIP/bob\nApplication: Hangup\n", None);
    let invite = bob.ring();
    bob.take(&invite);
    bob.until_hung_up();
    wait::until_true("the one is gone", || !folder(&server, "outgoing").join("now").exists());
    assert!(folder(&server, "outgoing").join("later").exists());
    server.until_idle();
}
