//! MiniVM: each application and function, its arguments, its status and what it leaves behind.

mod common;

use std::sync::Arc;

use call::voicemail::{Account, BoxName, BoxRules, MiniOwner, MiniTemplate, MiniVm, Voicemail};
use call::{Directories, LinkWant};
use common::{BYE, at_rest, call, lines, noted, warnings, world};
use sim::{Act, World};

fn of(address: &str) -> BoxName {
    let (user, domain) = address.split_once('@').unwrap();
    BoxName::new(user, domain).unwrap()
}

/// A site with the account alice@example.com.
fn site(dialplan: &str) -> World {
    let mut world = world(&format!("[default]\n{dialplan}\n"));
    let rules = Arc::new(BoxRules {
        mailcmd: "/usr/sbin/sendmail -t".into(),
        serveremail: "pbx@example.com".into(),
        fromstring: "PBX".into(),
        minsecs: 2,
        maxsecs: 30,
        attachfmt: "gsm".into(),
        tz: "berlin".into(),
        language: "de".into(),
        ..BoxRules::default()
    });
    let alice = Account {
        name: of("alice@example.com"),
        pin: "1234".into(),
        pin_is_fixed: true,
        full_name: "Alice Smith".into(),
        emails: vec!["a.smith@example.com".into()],
        pager: "pager@example.com".into(),
        rules: rules.clone(),
        is_row: false,
    };
    let owner = MiniOwner {
        email_template: "short".into(),
        account_code: "4711".into(),
        extern_notify: "/opt/own -x".into(),
        variables: vec![("COLOUR".into(), "blue".into())],
        ..MiniOwner::default()
    };
    let letter = |subject: &str, body: &str, attach| MiniTemplate {
        subject: subject.into(),
        body: body.into(),
        attach,
        date_format: "%F".into(),
        ..MiniTemplate::default()
    };
    let templates = [
        (
            "dated",
            MiniTemplate {
                date_format: "%A, %d. %B %Y, %H:%M".into(),
                locale: "de_DE".into(),
                ..letter("Datum", "${MVM_DATE}", false)
            },
        ),
        (
            "email-default",
            letter("From ${MVM_CIDNUM}", "${MVM_NAME}: ${MVM_DUR} on ${MVM_DATE} (${MVM_COUNTER})", true),
        ),
        ("pager-default", letter("New", "${MVM_USERNAME} at ${MVM_DOMAIN}", false)),
        ("short", letter("Short", "${MVM_CALLERID}", true)),
    ];
    let mini = MiniVm {
        voicemail: Arc::new(Voicemail {
            accounts: [(alice.name.clone(), Arc::new(alice.clone()))].into(),
            aliases: [(of("al@example.com"), alice.name.clone())].into(),
            extern_notify: "/opt/general".into(),
            rules,
            ..Voicemail::default()
        }),
        owners: [(alice.name, owner)].into(),
        log_file: "minivm.log".into(),
        templates: templates.into_iter().map(|(name, letter)| (name.to_owned(), letter)).collect(),
    };
    world.settings(|settings| {
        settings.minivm = Arc::new(mini);
        let directories = [("spool", "/spool"), ("log", "/var/log/pbx")];
        settings.directories = Directories(directories.map(|(of, at)| (of.to_owned(), at.to_owned())).into());
    });
    world.mail(|mail| mail.recorded_secs = 5);
    world.watch();
    world
}

fn run(dialplan: &str, acts: &[(u64, Act)]) -> World {
    let mut world = site(dialplan);
    call(&mut world, "1", acts);
    world.run();
    at_rest(&world, dialplan);
    world
}

#[test]
fn a_message_is_recorded_mailed_and_removed_by_steps_of_the_dialplan() {
    let plan = "exten => 1,1,MinivmGreet(alice@example.com,u)\n same => n,NoOp(${MVM_GREET_STATUS})
 same => n,MinivmRecord(alice@example.com,0*)\n same => n,NoOp(${MVM_RECORD_STATUS} ${MVM_DURATION} ${MVM_FORMAT})
 same => n,Set(MVM_COUNTER=${MINIVMCOUNTER(alice@example.com:messages:i)})
 same => n,MinivmNotify(alice@example.com)\n same => n,NoOp(${MVM_NOTIFY_STATUS})
 same => n,MinivmDelete()\n same => n,NoOp(${MVM_DELETE_STATUS})";
    let world = run(plan, &[(20_000, Act::Press('#'))]);
    let said = noted(&world);
    assert_eq!(said[0], "SUCCESS", "{:?}", warnings(&world));
    assert!(said[1].starts_with("SUCCESS ") && said[1].ends_with(" wav"), "{said:?}");
    assert_eq!(said[2..], ["SUCCESS", "SUCCESS"], "{:?}", warnings(&world));
    let letters = world.mail(|mail| mail.letters.clone());
    assert_eq!(letters.len(), 2, "a letter and a page");
    let letter = &letters[0];
    assert_eq!(letter.to, ["a.smith@example.com"]);
    assert_eq!((letter.subject.as_str(), letter.body.as_str()), ("Short", "\"Alice\" <6001>"));
    assert_eq!((letter.from_name.as_str(), letter.from.as_str()), ("PBX", "pbx@example.com"));
    let file = letter.file.as_ref().unwrap().display().to_string();
    assert!(
        file.starts_with("/spool/voicemail/example.com/alice/tmp/rec-") && file.ends_with(".wav"),
        "{file}"
    );
    let page = &letters[1];
    assert_eq!((page.to[0].as_str(), page.body.as_str()), ("pager@example.com", "alice at example.com"));
    assert!(page.file.is_none(), "a page takes nothing along");
    let programs =
        world.wanted_links().into_iter().filter(|want| matches!(want, LinkWant::Program { .. })).count();
    assert_eq!(programs, 3, "the mail program is started for each, and one is told");
}

#[test]
fn who_hangs_up_has_said_what_he_wanted_and_h_goes_on_with_it() {
    let plan = "exten => 1,1,MinivmRecord(carol@elsewhere.example)
exten => h,1,NoOp(${MVM_RECORD_STATUS})\n same => n,MinivmNotify(carol@elsewhere.example,email-default)
 same => n,NoOp(${MVM_NOTIFY_STATUS})";
    let world = run(plan, &[(9000, BYE)]);
    assert_eq!(noted(&world), ["SUCCESS", "SUCCESS"], "{:?}", warnings(&world));
    let letters = world.mail(|mail| mail.letters.clone());
    assert_eq!(letters[0].to, ["carol@elsewhere.example"], "who has no account is written to all the same");
    assert_eq!(letters[0].subject, "From 6001");
}

#[test]
fn keys_lead_to_the_operator_and_away_and_short_messages_are_not_kept() {
    for (name, plan, acts, expected) in [
        (
            "o",
            "exten => 1,1,MinivmRecord(alice@example.com,0)\nexten => o,1,NoOp(operator ${MVM_RECORD_STATUS})",
            vec![(6000, Act::Press('0'))],
            vec!["operator USEREXIT"],
        ),
        (
            "a",
            "exten => 1,1,MinivmRecord(alice@example.com,*)\nexten => a,1,NoOp(away ${MVM_RECORD_STATUS})",
            vec![(6000, Act::Press('*'))],
            vec!["away USEREXIT"],
        ),
        (
            "o while the greeting plays",
            "exten => 1,1,MinivmGreet(alice@example.com,b)\nexten => o,1,NoOp(operator ${MVM_GREET_STATUS})",
            vec![(500, Act::Press('0'))],
            vec!["operator USEREXIT"],
        ),
        (
            "too short",
            "exten => 1,1,MinivmRecord(alice@example.com)\n same => n,NoOp(${MVM_RECORD_STATUS}${MVM_FILENAME})",
            vec![(1500, Act::Press('#'))],
            vec!["FAILED"],
        ),
        (
            "no address",
            "exten => 1,1,MinivmRecord(alice)\n same => n,NoOp(${MVM_RECORD_STATUS})\n same => n,MinivmGreet()\n \
             same => n,NoOp(${MVM_GREET_STATUS})\n same => n,MinivmNotify(../x@y)\n same => n,NoOp(${MVM_NOTIFY_STATUS})\n \
             same => n,MinivmAccMess(alice)\n same => n,NoOp(${MVM_ACCMESS_STATUS})",
            vec![],
            vec!["FAILED", "FAILED", "FAILED", "FAILED"],
        ),
        (
            "another file",
            "exten => 1,1,MinivmDelete(/etc/passwd)\n same => n,NoOp(${MVM_DELETE_STATUS})\n \
             same => n,MinivmDelete(/spool/voicemail/example.com/alice/tmp/../../../rec-1)\n same => n,NoOp(${MVM_DELETE_STATUS})\n \
             same => n,MinivmDelete()\n same => n,NoOp(${MVM_DELETE_STATUS})",
            vec![],
            vec!["FAILED", "FAILED", "FAILED"],
        ),
        (
            "no such greeting",
            "exten => 1,1,MinivmAccMess(alice@example.com,x)\n same => n,NoOp(${MVM_ACCMESS_STATUS})",
            vec![],
            vec!["FAILED"],
        ),
    ] {
        let world = run(plan, &acts);
        assert_eq!(noted(&world), expected, "{name}: {:?}", warnings(&world));
    }
}

#[test]
fn a_letter_takes_no_file_along_that_is_no_recording() {
    let plan = "exten => 1,1,Set(MVM_FILENAME=/etc/passwd)\n same => n,MinivmNotify(alice@example.com,short)";
    let world = run(plan, &[]);
    let letters = world.mail(|mail| mail.letters.clone());
    assert!(letters.iter().all(|letter| letter.file.is_none()));
    assert!(warnings(&world).iter().any(|line| line.contains("is no recording")), "{:?}", warnings(&world));
}

#[test]
fn a_date_is_in_the_words_of_the_template_and_what_is_attached_in_the_format_of_the_account() {
    let plan = "exten => 1,1,MinivmNotify(alice@example.com,dated)";
    let letters = run(plan, &[]).mail(|mail| mail.letters.clone());
    assert_eq!(letters[0].body, "Samstag, 21. November 2026, 12:00");
    assert_eq!(letters[0].file_format, "gsm");
}

#[test]
fn each_recording_is_a_line_of_the_log_file_whether_it_is_kept_or_not() {
    let plan =
        "exten => 1,1,MinivmRecord(alice@example.com)\n same => n,MinivmRecord(carol@elsewhere.example)";
    let world = run(plan, &[(6000, Act::Press('#')), (7500, Act::Press('#'))]);
    let notes = world.mail(|mail| mail.notes.clone());
    let start = |user: &str, priority: u32| {
        format!(
            "/var/log/pbx/minivm.log: {user}:default:1:{priority}:SIM/6001-00000000:\"Alice\" <6001>:Sat Nov 21 "
        )
    };
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].starts_with(&start("alice:example.com", 1)), "{notes:?}");
    assert!(notes[0].ends_with(":OK:4711"), "{notes:?}");
    assert!(notes[1].starts_with(&start("carol:elsewhere.example", 2)), "{notes:?}");
    assert!(notes[1].ends_with(":IGNORED:"), "{notes:?}");
}

#[test]
fn the_program_of_the_account_is_told_else_the_general_one() {
    for (address, program, rest) in [
        ("alice@example.com", "/opt/own -x", ["alice", "example.com", "6001", "Alice"]),
        ("carol@elsewhere.example", "/opt/general", ["carol", "elsewhere.example", "6001", "Alice"]),
    ] {
        let world = run(&format!("exten => 1,1,MinivmNotify({address})"), &[]);
        let told: Vec<Vec<String>> = world
            .wanted_links()
            .into_iter()
            .filter_map(|want| match want {
                LinkWant::Program { args, .. } => Some(args),
                _ => None,
            })
            .filter(|args| args.iter().any(|arg| arg.contains(program)))
            .collect();
        assert_eq!(told.len(), 1, "{address}");
        assert!(told[0].ends_with(&rest.map(str::to_owned)), "{address}: {told:?}");
    }
}

#[test]
fn a_greeting_is_recorded_and_heard_by_the_next_caller() {
    let plan = "exten => 1,1,MinivmAccMess(alice@example.com,t)\n same => n,NoOp(${MVM_ACCMESS_STATUS})
 same => n,MinivmGreet(alice@example.com,s)\n same => n,NoOp(${MVM_GREET_STATUS})";
    let world = run(plan, &[(6000, Act::Press('#')), (8000, Act::Press('1'))]);
    assert_eq!(noted(&world), ["SUCCESS", "SUCCESS"], "{:?}", warnings(&world));
    let heard = lines(&world, "hears").join("\n");
    assert!(heard.contains("vm-rec-temp") && heard.contains("vm-msgsaved"), "{heard}");
    assert!(!heard.contains("vm-intro"), "option s: {heard}");
}

#[test]
fn accounts_and_counters_are_read_and_counted() {
    for (text, expected) in [
        ("${MINIVMACCOUNT(alice@example.com:hasaccount)}${MINIVMACCOUNT(bob@example.com:hasaccount)}", "10"),
        ("${MINIVMACCOUNT(al@example.com:fullname)}", "Alice Smith"),
        ("${MINIVMACCOUNT(alice@example.com:email)}", "a.smith@example.com"),
        ("${MINIVMACCOUNT(bob@example.com:email)}", "bob@example.com"),
        ("${MINIVMACCOUNT(alice@example.com:pager)}", "pager@example.com"),
        (
            "${MINIVMACCOUNT(alice@example.com:etemplate)}|${MINIVMACCOUNT(alice@example.com:ptemplate)}",
            "short|",
        ),
        ("${MINIVMACCOUNT(alice@example.com:accountcode)}", "4711"),
        ("${MINIVMACCOUNT(alice@example.com:pincode)}", "1234"),
        ("${MINIVMACCOUNT(alice@example.com:timezone)}", "berlin"),
        ("${MINIVMACCOUNT(alice@example.com:language)}", "de"),
        ("${MINIVMACCOUNT(alice@example.com:path)}", "/spool/voicemail/example.com/alice"),
        ("${MINIVMACCOUNT(alice@example.com:colour)}${MINIVMACCOUNT(alice@example.com:size)}", "blue"),
        ("${MINIVMACCOUNT(alice:path)}${MINIVMACCOUNT(alice@example.com)}", ""),
        (
            "${MINIVMCOUNTER(example.com:n)} ${MINIVMCOUNTER(example.com:n:i)} ${MINIVMCOUNTER(example.com:n:i)} ${MINIVMCOUNTER(example.com:n:d)}",
            "0 1 2 1",
        ),
        ("${MINIVMCOUNTER(alice@example.com:n:i)} ${MINIVMCOUNTER(example.com:n)}", "1 0"),
        (
            "${MINIVMCOUNTER(example.com)}${MINIVMCOUNTER(example.com:n:x)}${MINIVMCOUNTER(example.com:a/b)}",
            "",
        ),
    ] {
        let world = run(&format!("exten => 1,1,NoOp(>{text}<)"), &[]);
        assert_eq!(noted(&world), [format!(">{expected}<")], "{text}: {:?}", warnings(&world));
    }
    let plan = "exten => 1,1,Set(MINIVMCOUNTER(example.com:n:s)=10)\n same => n,Set(MINIVMCOUNTER(example.com:n:i)=5)
 same => n,Set(MINIVMCOUNTER(example.com:n:d)=3)\n same => n,Set(MINIVMCOUNTER(example.com:n)=x)
 same => n,NoOp(${MINIVMCOUNTER(example.com:n)})";
    let world = run(plan, &[]);
    assert_eq!(noted(&world), ["12"]);
    assert!(warnings(&world).iter().any(|line| line.contains("'x' is no number")));
}

#[test]
fn lamps_are_told_what_the_dialplan_says() {
    let world = run(
        "exten => 1,1,MinivmMWI(alice@example.com,1,2,3)\n same => n,MinivmMWI(alice@example.com,1)",
        &[],
    );
    let mailbox = world.shard.core.borrow().mailbox("alice@example.com").unwrap();
    assert_eq!((mailbox.new, mailbox.old), (3, 3), "urgent ones are new, too");
    assert!(warnings(&world).iter().any(|line| line.contains("wants user@domain and the numbers")));
}
