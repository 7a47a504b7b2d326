//! Voicemail with phones: what is said is heard again, lamps, letters, mailboxes of another program, kills.

use std::fs;
use std::path::PathBuf;

use e2e::{Phone, Server, Site, Speak, wait};

/// What the phones and the prompts sound like.
const MESSAGE: f64 = 440.0;
const PASSWORD: f64 = 1000.0;
const MENU: f64 = 750.0;

const DIALPLAN: &str = "
[test]
exten => leave,1,VoiceMail(6001@default,s)
 same => n,Set(DB(left/now)=${VMSTATUS})
 same => n,Hangup()
exten => both,1,VoiceMail(6001&6002,s)
exten => box,1,VoiceMailMain(6001@default)
 same => n,Hangup()
exten => count,1,Set(DB(count/now)=${VMCOUNT(6001)} ${VMCOUNT(6001,Old)})
 same => n,Hangup()
exten => h,1,Set(DB(left/status)=${VMSTATUS})
";

fn site(name: &str, general: &str, lines: &str) -> Site {
    let mut site = Site::new(name)
        .phone_with("alice", "allow=ulaw\nmailboxes=6001@default\n")
        .phone_with("bob", "allow=ulaw\n")
        .prompt("vm-password", PASSWORD, 1.0)
        .dialplan(DIALPLAN)
        .add("voicemail.conf", &format!("[general]\nformat=wav|gsm\n{general}\n[default]\n{lines}\n"));
    // Short words, so that the test need not listen to all of a menu.
    for word in
        ["vm-opts", "vm-onefor", "vm-advopts", "vm-repeat", "vm-delete", "vm-toforward", "vm-savemessage"]
    {
        site = site.prompt(word, MENU, 0.3);
    }
    site
}

fn inbox(server: &Server) -> PathBuf {
    server.site.place.join("spool/voicemail/default/6001/INBOX")
}

fn files(folder: &PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

/// Takes NOTIFYs until one says this.
fn lamp(phone: &mut Phone, waiting: &str, counts: &str) {
    loop {
        let notify = phone.expect("NOTIFY");
        phone.respond(&notify, 200, "OK", false);
        let text = notify.text();
        if text.contains(&format!("Messages-Waiting: {waiting}")) {
            assert!(text.contains(&format!("Voice-Message: {counts}")), "{text}");
            return;
        }
    }
}

/// Says something for two seconds, after the beep.
fn speak(phone: &Phone) {
    wait::until_true("the beep", || phone.media.heard().sounding() > 100);
    phone.media.speak(Speak::Tone(MESSAGE));
    let before = phone.media.sent();
    wait::until_true("it has talked for two seconds", || phone.media.sent() >= before + 110);
}

/// Bob leaves a message.
fn leave(server: &Server) {
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.media.speak(Speak::Silence);
    bob.must_call("leave");
    speak(&bob);
    bob.hang_up();
    server.until_idle();
}

/// Alice is asked for her PIN, and types it.
fn log_in(server: &Server, alice: &mut Phone, pin: &str) {
    alice.media.forget();
    alice.media.speak(Speak::Silence);
    alice.must_call("box");
    wait::until_true("it asks for the PIN", || alice.media.heard().tone(PASSWORD) >= 500);
    press(alice, pin);
    let _ = server;
}

fn press(phone: &Phone, digits: &str) {
    phone.media.type_digits(digits);
    wait::until_true("all is typed", || phone.media.typed());
}

#[test]
fn a_message_lights_the_lamp_is_heard_by_pin_and_deleted() {
    let server = Server::start(site("voicemail-main", "", "6001 => 1234,Alice\n6002 => 99,Bob"));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_register();
    leave(&server);
    assert_eq!(server.database("left", "status"), "SUCCESS");
    lamp(&mut alice, "yes", "1/0");
    assert_eq!(files(&inbox(&server)), ["msg0000.gsm", "msg0000.txt", "msg0000.wav"]);
    let text = fs::read_to_string(inbox(&server).join("msg0000.txt")).unwrap();
    for line in
        ["[message]", "origmailbox=6001", "callerid=\"Phone bob\" <bob>", "context=test", "exten=leave"]
    {
        assert!(text.lines().any(|own| own == line), "{line}: {text}");
    }
    log_in(&server, &mut alice, "1234#1");
    alice.media.forget();
    wait::until_true("the message", || alice.media.heard().tone(MESSAGE) >= 1500);
    wait::until_true("what may be done with it", || alice.media.heard().tone(MENU) >= 200);
    press(&alice, "7#");
    alice.until_hung_up();
    lamp(&mut alice, "no", "0/0");
    assert_eq!(files(&inbox(&server)), [""; 0]);
    server.until_idle();
}

#[test]
fn a_wrong_pin_opens_nothing() {
    let server = Server::start(site("voicemail-pin", "maxlogins=2", "6001 => 1234,Alice"));
    leave(&server);
    let mut alice = Phone::new(server.site.sip, "alice");
    log_in(&server, &mut alice, "4321#");
    wait::until_true("it asks again", || alice.media.heard().tone(PASSWORD) >= 1200);
    press(&alice, "12345#");
    alice.until_hung_up();
    assert_eq!(alice.media.heard().tone(MESSAGE), 0);
    assert_eq!(files(&inbox(&server)).len(), 3);
    server.until_logged(&["wrong mailbox or PIN", "6001"]);
}

#[test]
fn a_mailbox_that_asterisk_wrote_opens() {
    let site = site("voicemail-layout", "", "6001 => 1234,Alice");
    let home = site.place.join("spool/voicemail/default/6001/INBOX");
    fs::create_dir_all(&home).unwrap();
    let text = ";\n; Message Information file\n;\n[message]\norigmailbox=6001\ncontext=from-internal\nmacrocontext=\n\
                exten=6001\nrdnis=unknown\npriority=3\ncallerchan=SIP/6002-0000002a\ncallerid=\"Bob\" <6002>\n\
                origdate=Tue Jan  2 03:04:05 PM UTC 2018\norigtime=1514905445\ncategory=\nmsg_id=1514905445-00000001\n\
                flag=\nduration=3\n";
    fs::write(home.join("msg0000.txt"), text).unwrap();
    let sound = e2e::tone::wav(8000, 1, &e2e::tone::sine(8000, MESSAGE, 3.0));
    fs::write(home.join("msg0000.wav"), &sound).unwrap();
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_register();
    lamp(&mut alice, "yes", "1/0");
    log_in(&server, &mut alice, "1234#1");
    alice.media.forget();
    wait::until_true("the message", || alice.media.heard().tone(MESSAGE) >= 2500);
    alice.hang_up();
    lamp(&mut alice, "no", "0/1");
    let old = server.site.place.join("spool/voicemail/default/6001/Old");
    assert_eq!(fs::read_to_string(old.join("msg0000.txt")).unwrap(), text, "unchanged");
    assert_eq!(fs::read(old.join("msg0000.wav")).unwrap(), sound);
}

#[test]
fn a_letter_with_the_message_goes_to_the_mail_program() {
    let site = site("voicemail-mail", "", "");
    let (letter, told) = (site.place.join("letter"), site.place.join("told"));
    let script =
        site.place.write("mail.sh", format!("cat >'{0}.new' && mv '{0}.new' '{0}'\n", letter.display()));
    let notify = site.place.write("notify.sh", format!("echo \"$@\" >>'{}'\n", told.display()));
    let conf = format!(
        "[general]\nformat=wav\nattach=yes\nserveremail=pbx@example.com\nfromstring=The PBX\nmailcmd=/bin/sh {}\n\
         externnotify=/bin/sh {}\nemailsubject=Message ${{VM_MSGNUM}} from ${{VM_CIDNAME}}\n\
         emailbody=Dear ${{VM_NAME}},\\nthere is a message in ${{VM_MAILBOX}}.\\n\n[default]\n6001 => 1234,Alice,alice@example.com\n",
        script.display(),
        notify.display()
    );
    let mut site = site;
    site.rewrite("voicemail.conf", &conf);
    let server = Server::start(site);
    leave(&server);
    wait::until_true("the letter", || letter.exists());
    let text = fs::read_to_string(&letter).unwrap();
    for part in [
        "To: \"Alice\" <alice@example.com>",
        "From: \"The PBX\" <pbx@example.com>",
        "Subject: Message 1 from Phone bob",
        "Dear Alice,",
        "there is a message in 6001.",
        "audio/x-wav",
        "msg0000.wav",
    ] {
        assert!(text.contains(part), "{part}: {}", &text[..text.len().min(3000)]);
    }
    wait::until_true("the program is told", || {
        fs::read_to_string(&told).is_ok_and(|text| text == "default 6001 1 0 0\n")
    });
    let letters = server.site.place.join("spool/tmp");
    wait::until_true("nothing is left of it", || files(&letters).is_empty());
}

#[test]
fn a_kill_while_a_message_is_left_costs_none_that_was_kept() {
    let mut server = Server::start(site("voicemail-kill", "", "6001 => 1234,Alice"));
    for kept in 1..=3 {
        leave(&server);
        assert_eq!(files(&inbox(&server)).len(), kept * 3);
        let mut bob = Phone::new(server.site.sip, "bob");
        bob.media.speak(Speak::Silence);
        bob.must_call("leave");
        speak(&bob);
        server.kill_and_restart();
        let mut alice = Phone::new(server.site.sip, "alice");
        wait::until_true("all are counted", || {
            alice.begin("count");
            alice.outcome();
            server.database_now("count", "now").as_deref() == Some(&*format!("{kept} 0"))
        });
        assert_eq!(files(&inbox(&server)).len(), kept * 3);
    }
}
