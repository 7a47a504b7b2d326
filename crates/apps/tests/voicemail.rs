//! Mailboxes: what callers leave, what owners hear.

mod common;

use std::sync::Arc;
use std::time::Duration;

use call::LinkWant;
use call::voicemail::{Account, BoxName, BoxRules, Counts, Folder, Greeting, Info, Voicemail};
use common::{BYE, at_rest, call, lines, noted, warnings, world};
use sim::{Act, World};

fn of(name: &str) -> BoxName {
    BoxName::parse(name).unwrap()
}

/// What most mailboxes of these tests obey.
fn rules() -> BoxRules {
    BoxRules {
        maxmsg: 100,
        moveheard: true,
        mailcmd: "/usr/sbin/sendmail -t".into(),
        serveremail: "pbx@example.com".into(),
        fromstring: "PBX".into(),
        emailsubject: "New message ${VM_MSGNUM} in mailbox ${VM_MAILBOX}".into(),
        emailbody: "Dear ${VM_NAME}: ${VM_DUR} from ${VM_CALLERID}.".into(),
        emaildateformat: "%F".into(),
        pagersubject: "New VM".into(),
        pagerbody: "${VM_CIDNUM}".into(),
        ..BoxRules::default()
    }
}

fn account(name: &str, pin: &str, rules: BoxRules) -> (BoxName, Arc<Account>) {
    let account = Account {
        name: of(name),
        pin: pin.into(),
        pin_is_fixed: false,
        full_name: "Alice Smith".into(),
        emails: Vec::new(),
        pager: String::new(),
        rules: Arc::new(rules),
        is_row: false,
    };
    (of(name), Arc::new(account))
}

fn mailed(name: &str, rules: BoxRules) -> (BoxName, Arc<Account>) {
    let (name, account) = account(name, "1234", rules);
    let emails = vec!["alice@example.com".to_owned(), "two@example.com".to_owned()];
    (name, Arc::new(Account { emails, pager: "pager@example.com".into(), ..(*account).clone() }))
}

/// A site with mailboxes 6001 (PIN 1234) and 6002 (PIN 99).
fn site(dialplan: &str, change: impl FnOnce(&mut BoxRules), more: impl FnOnce(&mut Voicemail)) -> World {
    let mut world = world(&format!("[default]\n{dialplan}\n"));
    let mut own = rules();
    change(&mut own);
    let mut voicemail = Voicemail {
        accounts: [account("6001", "1234", own), account("6002", "99", rules())].into(),
        ..Voicemail::default()
    };
    more(&mut voicemail);
    world.settings(|settings| settings.voicemail = Arc::new(voicemail));
    world.mail(|mail| mail.recorded_secs = 5);
    world.watch();
    world
}

fn plain(dialplan: &str) -> World {
    site(dialplan, |_| {}, |_| {})
}

/// What the caller heard, in order.
fn heard(world: &World) -> Vec<String> {
    let said = lines(world, "hears");
    said.iter().filter_map(|line| Some(line.split_once("hears ")?.1.to_owned())).collect()
}

fn in_this_order(heard: &[String], wanted: &[&str]) {
    let mut rest = heard.iter();
    for word in wanted {
        assert!(rest.any(|said| said == word), "{word} is not, or not there, in {heard:?}");
    }
}

/// Digits, each so long after the one before it.
fn typed(digits: &str, from: u64, each: u64) -> Vec<(u64, Act)> {
    digits.chars().zip(0u64..).map(|(digit, nth)| (from + each * nth, Act::Press(digit))).collect()
}

fn run(mut world: World, acts: &[(u64, Act)]) -> World {
    call(&mut world, "1", acts);
    world.run();
    at_rest(&world, "voicemail");
    world
}

fn put(world: &mut World, folder: Folder, id: &str, caller: &str) {
    let info = Info {
        id: id.into(),
        caller_id: caller.into(),
        time: 1_795_262_400,
        duration: 61,
        urgent: folder == Folder::URGENT,
        ..Info::default()
    };
    world.mail(|mail| mail.put(&of("6001"), folder, info));
}

fn ids(world: &World, folder: Folder) -> String {
    world.mail(|mail| mail.ids(&of("6001"), folder).join(" "))
}

const LEAVE: &str =
    "exten => 1,1,VoiceMail(6001,u)\n same => n,NoOp(${VMSTATUS})\nexten => h,1,NoOp(h ${VMSTATUS})";

#[test]
fn a_message_is_kept_whether_the_caller_ends_it_or_hangs_up() {
    for (name, acts, expected) in [
        ("by #", vec![(12_000, Act::Press('#'))], vec!["SUCCESS", "h SUCCESS"]),
        ("by hanging up", vec![(12_000, BYE)], vec!["h SUCCESS"]),
        ("hangs up during the greeting", vec![(1000, BYE)], vec!["h FAILED"]),
    ] {
        let world = run(plain(LEAVE), &acts);
        assert_eq!(noted(&world), expected, "{name}");
        let kept = expected.contains(&"h SUCCESS");
        let (count, lamp) =
            (world.mail(|mail| mail.ids(&of("6001"), Folder::INBOX).len()), &world.shard.core);
        assert_eq!(count, usize::from(kept), "{name}");
        let new = lamp.borrow().mailbox("6001").unwrap_or_default().new;
        assert_eq!(new, u32::from(kept), "{name}");
        if kept {
            let message = world.mail(|mail| mail.folders[&(of("6001"), Folder::INBOX)][0].info.clone());
            assert_eq!(message.caller_id, "\"Alice\" <6001>");
            assert_eq!(
                (message.exten.as_str(), message.context.as_str(), message.priority),
                ("1", "default", 1)
            );
            assert_eq!((message.duration, message.rdnis.as_str()), (5, "unknown"));
        }
    }
}

#[test]
fn greetings_are_the_owners_or_made_up() {
    let made_up =
        ["vm-theperson", "digits/6", "digits/0", "digits/0", "digits/1", "vm-isunavail", "vm-intro", "beep"];
    let busy =
        ["vm-theperson", "digits/6", "digits/0", "digits/0", "digits/1", "vm-isonphone", "vm-intro", "beep"];
    for (options, greetings, expected) in [
        ("u", &[][..], &made_up[..]),
        ("b", &[], &busy),
        ("", &[], &["vm-intro", "beep"]),
        ("s", &[], &["beep"]),
        ("us", &[Greeting::Unavailable], &["unavail of 6001@default", "beep"]),
        ("bS", &[Greeting::Busy], &["busy of 6001@default", "beep"]),
        ("uS", &[Greeting::Name], &["greet of 6001@default", "vm-isunavail", "vm-intro", "beep"]),
        ("u", &[Greeting::Temporary, Greeting::Unavailable], &["temp of 6001@default", "vm-intro", "beep"]),
        ("st()", &[], &[]),
        ("st(ding)", &[], &["ding"]),
    ] {
        let mut world = plain(&format!("exten => 1,1,VoiceMail(6001,{options})"));
        greetings.iter().for_each(|greeting| world.greeting(&of("6001"), *greeting));
        let world = run(world, &[(15_000, BYE)]);
        assert_eq!(heard(&world), expected, "{options} {greetings:?}");
    }
}

#[test]
fn keys_lead_out_of_a_greeting_where_there_is_somewhere_to_go() {
    let exits = "\nexten => o,1,NoOp(operator ${VMSTATUS})\nexten => a,1,NoOp(star ${VMSTATUS})\nexten => 7,1,NoOp(seven)\n[away]\nexten => a,1,NoOp(away)\nexten => 8,1,NoOp(eight)";
    let dialplan = |options: &str| {
        format!("exten => 1,1,VoiceMail(6001,{options})\n same => n,NoOp(${{VMSTATUS}}){exits}")
    };
    for (options, operator, exit, keys, expected) in [
        ("u", true, "", "0", "operator USEREXIT"),
        ("u", false, "", "0", "SUCCESS"),
        ("u", true, "", "*", "star USEREXIT"),
        ("u", true, "away", "*", "away"),
        ("ud", true, "", "7", "seven"),
        ("ud(away)", true, "", "8", "eight"),
        ("u", true, "", "7", "SUCCESS"),
    ] {
        let change = |rules: &mut BoxRules| {
            rules.operator = operator;
            rules.exitcontext = exit.into();
        };
        let mut acts = typed(keys, 1500, 100);
        acts.push((12_000, Act::Press('#')));
        let world = run(site(&dialplan(options), change, |_| {}), &acts);
        assert_eq!(noted(&world), [expected], "{options} {keys}");
    }
}

#[test]
fn nobody_is_told_that_a_message_is_kept_when_it_is_not() {
    let ends = [(12_000, Act::Press('#'))];
    let short = run(site(LEAVE, |rules| rules.minsecs = 6, |_| {}), &ends);
    assert_eq!(
        (noted(&short)[0].as_str(), heard(&short).last().unwrap().as_str()),
        ("FAILED", "vm-tooshort")
    );
    let full = run(site(LEAVE, |rules| rules.maxmsg = 0, |_| {}), &ends);
    assert_eq!(
        (noted(&full)[0].as_str(), heard(&full).last().unwrap().as_str()),
        ("FAILED", "vm-mailboxfull")
    );
    let world = plain(LEAVE);
    world.mail(|mail| mail.full_disk = true);
    let world = run(world, &ends);
    assert_eq!(
        (noted(&world)[0].as_str(), heard(&world).last().unwrap().as_str()),
        ("FAILED", "an-error-has-occurred")
    );
    assert!(!heard(&world).contains(&"auth-thankyou".to_owned()));
    let unknown = run(plain("exten => 1,1,VoiceMail(../../etc@default)\n same => n,NoOp(${VMSTATUS})"), &[]);
    assert_eq!(noted(&unknown), ["FAILED"]);
    assert!(warnings(&unknown)[0].contains("No entry in voicemail config file for '../../etc@default'"));
}

#[test]
fn what_was_left_may_be_heard_recorded_anew_and_marked() {
    let reviewing = |rules: &mut BoxRules| (rules.review, rules.operator) = (true, true);
    // The message ends after 12 s; each answer stops the question.
    let acts = |keys: &str| [vec![(12_000, Act::Press('#'))], typed(keys, 12_500, 3000)].concat();
    for (keys, folder, kept, words) in [
        ("1", Folder::INBOX, 1, &["vm-review", "vm-msgsaved"][..]),
        ("21", Folder::INBOX, 1, &["vm-reviewing", "what was recorded", "vm-review", "vm-msgsaved"]),
        ("41", Folder::URGENT, 1, &["vm-marked-urgent", "vm-review", "vm-msgsaved"]),
        ("441", Folder::INBOX, 1, &["vm-marked-nonurgent", "vm-msgsaved"]),
        ("3#1", Folder::INBOX, 1, &["vm-rerecording", "beep", "vm-review", "vm-msgsaved"]),
        ("01", Folder::INBOX, 1, &["vm-saveoper", "vm-msgsaved"]),
        ("02", Folder::INBOX, 0, &["vm-saveoper", "vm-deleted"]),
    ] {
        let dialplan = format!("{LEAVE}\nexten => o,1,NoOp(operator)");
        let world = run(site(&dialplan, reviewing, |_| {}), &acts(keys));
        in_this_order(&heard(&world), words);
        assert_eq!(world.mail(|mail| mail.ids(&of("6001"), folder).len()), kept, "{keys}");
    }
    // Who hangs up has said what he wanted to say.
    let world = run(site(LEAVE, reviewing, |_| {}), &[(12_000, Act::Press('#')), (13_000, BYE)]);
    assert_eq!(noted(&world), ["h SUCCESS"]);
}

#[test]
fn silence_and_the_longest_time_end_a_message() {
    let world = run(
        site(LEAVE, |_| {}, |voicemail| voicemail.max_silence = Some(Duration::from_secs(3))),
        &[(14_000, Act::Silence(3000))],
    );
    assert_eq!(noted(&world)[0], "SUCCESS");
    let world = run(site(LEAVE, |rules| rules.maxsecs = 10, |_| {}), &[]);
    assert_eq!(noted(&world)[0], "SUCCESS");
    assert_eq!(heard(&world).last().unwrap(), "auth-thankyou");
}

#[test]
fn several_mailboxes_get_a_message_and_owners_a_letter_a_page_and_a_program() {
    let dialplan = "exten => 1,1,VoiceMail(6001&6002&7,s)\n same => n,NoOp(${VMSTATUS} ${VM_NAME})";
    let with_mail = |voicemail: &mut Voicemail| {
        let rules = BoxRules { attach: true, delete: true, ..rules() };
        voicemail.accounts.extend([mailed("6001", rules)]);
        voicemail.extern_notify = "/opt/notify -x".into();
    };
    let world = run(site(dialplan, |_| {}, with_mail), &[(5000, Act::Press('#'))]);
    assert_eq!(noted(&world), ["SUCCESS "], "no variable stays behind");
    assert_eq!(world.mail(|mail| mail.ids(&of("6002"), Folder::INBOX).len()), 1);
    assert_eq!(
        world.mail(|mail| mail.ids(&of("6001"), Folder::INBOX).len()),
        0,
        "what was mailed is deleted"
    );
    let letters = world.mail(|mail| mail.letters.clone());
    assert_eq!(letters.len(), 2);
    assert_eq!(letters[0].to, ["alice@example.com", "two@example.com"]);
    assert_eq!(letters[0].subject, "New message 1 in mailbox 6001");
    assert_eq!(letters[0].body, "Dear Alice Smith: 0:05 from \"Alice\" <6001>.");
    assert_eq!((letters[0].from.as_str(), letters[0].from_name.as_str()), ("pbx@example.com", "PBX"));
    assert_eq!(letters[0].attach.as_ref().unwrap().format, "wav");
    assert_eq!(
        (letters[1].to.clone(), letters[1].body.as_str()),
        (vec!["pager@example.com".to_owned()], "6001")
    );
    assert!(letters[1].attach.is_none());
    let started: Vec<Vec<String>> = world
        .wanted_links()
        .into_iter()
        .filter_map(|want| match want {
            LinkWant::Program { path, args, .. } if path == "/bin/sh" => Some(args[1..].to_vec()),
            _ => None,
        })
        .collect();
    let mail = "( /usr/sbin/sendmail -t ) <\"$1\"; rm -f -- \"$1\"";
    let notify = "exec </dev/null >/dev/null\n/opt/notify -x \"$@\"";
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let with = |script: &str, rest: &str| [vec![script.to_owned()], words(rest)].concat();
    assert_eq!(
        started,
        [
            with(notify, "sh default 6002 1 0 0"),
            with(mail, "sh /letters/1"),
            with(mail, "sh /letters/2"),
            with(notify, "sh default 6001 0 0 0"),
        ]
    );
}

const MAIN: &str =
    "exten => 1,1,VoiceMailMain(6001@default)\n same => n,NoOp(goes on)\nexten => a,1,NoOp(star)";

#[test]
fn a_pin_opens_a_mailbox_and_three_wrong_ones_or_an_unknown_mailbox_end_alike() {
    let open = run(plain(MAIN), &typed("1234##", 500, 300));
    in_this_order(&heard(&open), &["vm-password", "vm-youhave", "vm-goodbye"]);
    assert_eq!(noted(&open), ["goes on"]);
    let refused = |dialplan: &str, digits: &str| {
        let world = run(plain(dialplan), &typed(digits, 500, 300));
        assert_eq!(noted(&world), [""; 0], "{dialplan}");
        heard(&world)
    };
    let asked = "exten => 1,1,VoiceMailMain()";
    let wrong = refused(asked, "6001#1#6001#2#6001#3#6001#4#");
    assert_eq!(
        wrong,
        refused(asked, "7777#1#7777#2#7777#3#7777#4#"),
        "an unknown mailbox sounds like a wrong PIN"
    );
    in_this_order(&wrong, &["vm-login", "vm-password", "vm-incorrect-mailbox", "vm-incorrect", "vm-goodbye"]);
    assert_eq!(refused(MAIN, "1#2#3#4#"), refused("exten => 1,1,VoiceMailMain(7777@default)", "1#2#3#4#"));
    let star = run(plain(MAIN), &typed("*#", 500, 300));
    assert_eq!(noted(&star), ["star"]);
    let elsewhere = "exten => 1,1,Goto(away,1,1)\n[away]\nexten => 1,1,VoiceMailMain(6001@default)\nexten => a,1,NoOp(away)";
    assert_eq!(noted(&run(plain(elsewhere), &typed("*#", 500, 300))), ["away"]);
    let prefix = run(plain("exten => 1,1,VoiceMailMain(60,p)"), &typed("01#1234##", 500, 300));
    in_this_order(&heard(&prefix), &["vm-login", "vm-password", "vm-youhave"]);
    let trusted = run(plain("exten => 1,1,VoiceMailMain(6001,s)"), &typed("#", 500, 300));
    assert_eq!(heard(&trusted)[0], "vm-youhave");
    let anybody = site(MAIN, |_| {}, |voicemail| voicemail.accounts.extend([account("6001", "", rules())]));
    assert_eq!(heard(&run(anybody, &typed("#", 500, 300)))[0], "vm-youhave");
}

/// An owner with messages a (of bob), b (of nobody) and o (old) who does this; each key when all was said.
fn owner(keys: &str, change: impl FnOnce(&mut BoxRules)) -> World {
    let mut world = site(
        "exten => 1,1,VoiceMailMain(6001,s)\n same => n,NoOp(goes on)\n[out]\nexten => _X.,1,NoOp(calls ${EXTEN})",
        change,
        |voicemail| {
            voicemail.sounds.newpassword = "new-pin".into();
        },
    );
    put(&mut world, Folder::INBOX, "a", "\"Bob\" <6002>");
    put(&mut world, Folder::INBOX, "b", "Unknown");
    put(&mut world, Folder::OLD, "o", "6002");
    ["message a", "message b"].iter().for_each(|name| world.clip(name, Duration::from_secs(5)));
    let (mut acts, mut at, mut before) = (Vec::new(), 9000, ' ');
    for key in keys.chars() {
        acts.push((at, Act::Press(key)));
        // What asks for another key does not wait for long.
        let asks = before != key && "239".contains(key);
        (at, before) = (at + if asks { 4000 } else { 20_000 }, key);
    }
    // Whoever waits for more hangs up in the end.
    acts.push((at + 10_000, BYE));
    run(world, &acts)
}

#[test]
fn messages_are_heard_deleted_saved_and_walked_through() {
    for (keys, inbox, old, words) in [
        (
            "#",
            "a b",
            "o",
            &[
                "vm-youhave",
                "digits/2",
                "vm-INBOX",
                "vm-and",
                "digits/1",
                "vm-Old",
                "vm-message",
                "vm-goodbye",
            ][..],
        ),
        ("1#", "b", "o a", &["vm-first", "vm-message", "message a"]),
        ("17#", "b", "o", &["message a", "vm-deleted", "vm-advopts", "vm-goodbye"]),
        ("177#", "b", "o a", &["vm-deleted", "vm-undeleted"]),
        ("16#", "", "o a b", &["message a", "vm-last", "vm-message", "message b"]),
        ("166#", "", "o a b", &["message b", "vm-nomore"]),
        ("164#", "", "o a b", &["message a", "message b", "message a"]),
        ("4#", "a b", "o", &["vm-nomore"]),
        ("15#", "b", "o a", &["message a", "message a"]),
        ("191#", "b", "o a", &["vm-savefolder", "vm-press", "digits/1", "vm-savedto", "vm-Old"]),
        ("19##", "b", "o a", &["vm-savefolder", "vm-goodbye"]),
        (
            "21#",
            "a b",
            "o",
            &["vm-changeto", "vm-press", "digits/0", "vm-youhave", "digits/1", "vm-Old", "vm-message"],
        ),
        ("2117#", "a b", "", &["message o", "vm-deleted"]),
        ("1*#", "b", "o a", &["message a", "vm-helpexit"]),
        (
            "133#",
            "b",
            "o a",
            &["vm-tohearenv", "vm-starmain", "vm-from", "digits/6", "vm-duration", "digits/2", "vm-minutes"],
        ),
    ] {
        let world = owner(keys, |_| {});
        let heard = heard(&world);
        in_this_order(&heard, words);
        assert_eq!(
            (ids(&world, Folder::INBOX), ids(&world, Folder::OLD)),
            (inbox.into(), old.into()),
            "{keys} {heard:?}"
        );
    }
    let lamp = owner("17#", |_| {});
    assert_eq!(lamp.shard.core.borrow().mailbox("6001").map(|all| (all.new, all.old)), Some((1, 1)));
    let work = owner("192#", |_| {});
    assert_eq!(ids(&work, Folder::WORK), "a");
    // Without a word, whoever hangs up has heard what he has heard.
    let world = owner("17", |_| {});
    assert_eq!((ids(&world, Folder::INBOX).as_str(), noted(&world).len()), ("b", 0));
}

#[test]
fn rules_change_what_is_said_and_where_the_menu_goes_on() {
    let next = owner("17#", |rules| rules.nextaftercmd = true);
    in_this_order(&heard(&next), &["vm-deleted", "vm-last", "message b"]);
    let wraps = owner("4#", |rules| rules.messagewrap = true);
    in_this_order(&heard(&wraps), &["vm-last", "message b"]);
    let stays = owner("1#", |rules| rules.moveheard = false);
    assert_eq!(ids(&stays, Folder::INBOX), "a b");
    let keeps = owner("17#", |rules| rules.backupdeleted = 5);
    assert_eq!(ids(&keeps, Folder::DELETED), "a");
    let says = owner("1#", |rules| (rules.saycid, rules.sayduration, rules.saydurationm) = (true, true, 1));
    in_this_order(
        &heard(&says),
        &["vm-from", "vm-from-phonenumber", "digits/6", "vm-duration", "digits/2", "vm-minutes", "message a"],
    );
    let brief = owner("1#", |rules| (rules.sayduration, rules.saydurationm) = (true, 2));
    assert!(!heard(&brief).contains(&"vm-duration".to_owned()));
}

#[test]
fn an_owner_calls_back_dials_and_sends_messages() {
    let calls_back = owner("132", |rules| rules.callback = "out".into());
    assert_eq!(noted(&calls_back), ["calls 6002"]);
    assert_eq!(ids(&calls_back, Folder::OLD), "o a", "what was heard before is so");
    let forwarded = |keys: &[(u64, &str)]| {
        let mut world = plain("exten => 1,1,VoiceMailMain(6001,s)");
        put(&mut world, Folder::INBOX, "a", "\"Bob\" <6002>");
        let mut acts: Vec<(u64, Act)> = keys.iter().flat_map(|(at, keys)| typed(keys, *at, 300)).collect();
        acts.push((90_000, BYE));
        let world = run(world, &acts);
        world.mail(|mail| mail.folders.get(&(of("6002"), Folder::INBOX)).cloned().unwrap_or_default())
    };
    let whole = forwarded(&[(500, "1"), (9000, "8"), (11_000, "6002#"), (14_000, "2")]);
    assert_eq!(
        (whole.len(), whole[0].info.duration, whole[0].info.caller_id.as_str()),
        (1, 61, "\"Bob\" <6002>")
    );
    let with_words = forwarded(&[(500, "1"), (9000, "8"), (11_000, "6002#"), (14_000, "1"), (20_000, "#")]);
    assert_eq!(with_words[0].info.duration, 66);
    let invalid = forwarded(&[(500, "1"), (9000, "8"), (11_000, "7777#"), (16_000, "#")]);
    assert!(invalid.is_empty());
}

#[test]
fn with_usedirectory_a_message_is_forwarded_by_number_or_by_name() {
    let forwarded = |keys: &[(u64, &str)]| {
        let dialplan = "exten => 1,1,VoiceMailMain(6001,s)\nexten => o,1,NoOp(elsewhere)";
        let mut world = site(dialplan, |_| {}, |voicemail| voicemail.use_directory = true);
        put(&mut world, Folder::INBOX, "a", "\"Bob\" <6002>");
        let mut acts: Vec<(u64, Act)> = keys.iter().flat_map(|(at, keys)| typed(keys, *at, 300)).collect();
        acts.push((90_000, BYE));
        let world = run(world, &acts);
        let got = world.mail(|mail| mail.folders.get(&(of("6002"), Folder::INBOX)).map_or(0, Vec::len));
        in_this_order(&heard(&world), &["vm-forward"]);
        assert!(noted(&world).is_empty(), "no key leads out of the mailbox");
        got
    };
    let begin = [(500, "1"), (9000, "8")];
    for (name, keys, got) in [
        ("by number", &[(12_000, "1"), (15_000, "6002#"), (19_000, "2")][..], 1),
        // Both are called Smith; the second one is 6002.
        ("by name", &[(12_000, "2"), (16_000, "764"), (20_000, "*"), (24_000, "1"), (28_000, "2")], 1),
        ("nobody of that name", &[(12_000, "2"), (16_000, "999"), (24_000, "#")], 0),
        ("the operator of the directory", &[(12_000, "2"), (16_000, "0")], 0),
        ("neither", &[(12_000, "*")], 0),
        ("other keys", &[(12_000, "7"), (15_000, "8"), (18_000, "9"), (21_000, "1")], 0),
    ] {
        assert_eq!(forwarded(&[&begin, keys].concat()), got, "{name}");
    }
}

#[test]
fn an_owner_is_not_told_that_what_could_not_be_recorded_is_sent_or_kept() {
    for (name, keys, good) in [
        (
            "words before a message",
            vec![(500, "1"), (9000, "8"), (11_000, "6002#"), (14_000, "1"), (25_000, "#")],
            "vm-msgsent",
        ),
        ("a greeting", vec![(500, "0"), (3000, "1"), (9500, "1")], "vm-msgsaved"),
    ] {
        let mut world = plain("exten => 1,1,VoiceMailMain(6001,s)");
        world.break_recordings();
        put(&mut world, Folder::INBOX, "a", "\"Bob\" <6002>");
        let mut acts: Vec<(u64, Act)> = keys.iter().flat_map(|(at, keys)| typed(keys, *at, 300)).collect();
        acts.push((90_000, BYE));
        let world = run(world, &acts);
        in_this_order(&heard(&world), &["beep", "an-error-has-occurred"]);
        assert!(!heard(&world).contains(&good.to_owned()), "{name}: {:?}", heard(&world));
        let sent = world.mail(|mail| mail.folders.contains_key(&(of("6002"), Folder::INBOX)));
        let greeted = world.mail(|mail| mail.greetings.contains_key(&(of("6001"), "unavail")));
        assert!(!sent && !greeted, "{name}");
    }
}

#[test]
fn a_full_mailbox_among_others_takes_nothing_from_them() {
    let mut world = site(
        "exten => 1,1,VoiceMailMain(6001,s)",
        |_| {},
        |voicemail| {
            let full = account("6002", "99", BoxRules { maxmsg: 0, ..rules() });
            voicemail.accounts.extend([full, account("6003", "99", rules())]);
        },
    );
    put(&mut world, Folder::INBOX, "a", "\"Bob\" <6002>");
    // 6002, which is full, and 6003.
    let keys = [(500, "1"), (9000, "8"), (11_000, "6002*6003#"), (16_000, "1"), (23_000, "#")];
    let mut acts: Vec<(u64, Act)> = keys.iter().flat_map(|(at, keys)| typed(keys, *at, 300)).collect();
    acts.push((90_000, BYE));
    let world = run(world, &acts);
    in_this_order(&heard(&world), &["beep", "vm-mailboxfull"]);
    let count =
        |name: &str| world.mail(|mail| mail.folders.get(&(of(name), Folder::INBOX)).map_or(0, Vec::len));
    assert_eq!((count("6002"), count("6003")), (0, 1), "{:?}", heard(&world));
}

#[test]
fn recordings_are_made_as_loud_as_g_says() {
    for (option, expected) in [("", 0), ("g(6)", 2), ("g(-6)", 2), ("g(0)", 0), ("g(loud)", 0)] {
        let world = run(
            plain(&format!("exten => 1,1,VoiceMail(6001,{option})")),
            &[(12_000, Act::Press('#')), (20_000, BYE)],
        );
        // Before it, and back after it.
        assert_eq!(lines(&world, "is made heard").len(), expected, "{option}: {:#?}", world.transcript());
    }
}

#[test]
fn greetings_and_the_pin_are_changed_by_their_owner() {
    let steps = |keys: &[(u64, &str)], change: fn(&mut Voicemail)| {
        let world = site("exten => 1,1,VoiceMailMain(6001,s)", |_| {}, change);
        let mut acts: Vec<(u64, Act)> = keys.iter().flat_map(|(at, keys)| typed(keys, *at, 300)).collect();
        acts.push((120_000, BYE));
        run(world, &acts)
    };
    let has = |world: &World, file: &'static str| {
        world.mail(|mail| mail.greetings.contains_key(&(of("6001"), file)))
    };
    for (key, file) in [("1", "unavail"), ("2", "busy"), ("3", "greet")] {
        let world = steps(&[(500, "0"), (3000, key), (8000, "#"), (9500, "1")], |_| {});
        assert!(has(&world, file), "{file} {:?}", heard(&world));
        in_this_order(&heard(&world), &["vm-options", "beep", "vm-review", "vm-msgsaved", "vm-options"]);
    }
    let temporary = steps(
        &[(500, "0"), (3000, "4"), (4000, "1"), (8000, "#"), (9500, "1"), (13_000, "4"), (14_000, "2")],
        |_| {},
    );
    in_this_order(
        &heard(&temporary),
        &["vm-tempgreeting", "vm-rec-temp", "vm-msgsaved", "vm-tempgreeting2", "vm-tempremoved"],
    );
    assert!(!has(&temporary, "temp"));
    let unsure = steps(&[(500, "0"), (3000, "1"), (8000, "#"), (9500, "*")], |_| {});
    assert!(!has(&unsure, "unavail"), "nothing changes unless he says so");
    let pin = |keys: &[(u64, &str)], change: fn(&mut Voicemail)| {
        let world = steps(keys, change);
        (world.mail(|mail| mail.pins.get(&of("6001")).cloned()), heard(&world))
    };
    let (kept, said) = pin(&[(500, "0"), (3000, "5"), (4500, "4711#"), (7000, "4711#")], |_| {});
    assert_eq!(kept.as_deref(), Some("4711"));
    in_this_order(&said, &["vm-newpassword", "vm-reenterpassword", "vm-passchanged"]);
    let (kept, said) = pin(&[(500, "0"), (3000, "5"), (4500, "4711#"), (7000, "4712#")], |_| {});
    assert_eq!(kept, None);
    in_this_order(&said, &["vm-reenterpassword", "vm-mismatch", "vm-pls-try-again"]);
    let (kept, said) =
        pin(&[(500, "0"), (3000, "5"), (4500, "471#")], |voicemail| voicemail.min_password = 4);
    assert_eq!(kept, None);
    in_this_order(&said, &["vm-newpassword", "vm-invalid-password"]);
}

#[test]
fn a_new_owner_sets_up_what_he_has_to() {
    let change = |rules: &mut BoxRules| (rules.forcename, rules.forcegreetings) = (true, false);
    let new = |voicemail: &mut Voicemail| {
        let (name, known) = account("6001", "6001", (*voicemail.accounts[&of("6001")].rules).clone());
        voicemail.accounts.insert(name, known);
    };
    let world = site("exten => 1,1,VoiceMailMain(6001,s)", change, new);
    let acts = [
        typed("99#", 1500, 300),
        typed("99#", 4000, 300),
        typed("#", 9500, 300),
        typed("1", 11_000, 300),
        typed("#", 14_000, 1),
    ]
    .concat();
    let world = run(world, &acts);
    in_this_order(
        &heard(&world),
        &["vm-newuser", "vm-newpassword", "vm-passchanged", "vm-rec-name", "vm-msgsaved", "vm-youhave"],
    );
    assert!(world.mail(|mail| mail.greetings.contains_key(&(of("6001"), "greet"))));
}

#[test]
fn dialplans_ask_what_is_in_mailboxes() {
    let show = "exten => 1,1,NoOp(${VM_INFO(6001@default,fullname)} ${VM_INFO(6001,count)} ${VM_INFO(6001,exists)} ${VM_INFO(7,exists)})\n \
                same => n,NoOp(${VMCOUNT(6001@default&6002)} ${VMCOUNT(6001,Old)} ${MAILBOX_EXISTS(6001)}${MAILBOX_EXISTS(../x)})";
    let world = plain(show);
    let counts = Counts { urgent: 1, new: 2, old: 3 };
    world.shard.core.borrow_mut().mail_counted(&of("6001"), counts);
    let world = run(world, &[]);
    assert_eq!(noted(&world), ["Alice Smith 2 1 0", "2 3 10"]);
}

#[test]
fn one_message_is_played_by_its_id_and_owners_are_named_and_known() {
    let mut world = plain(
        "exten => 1,1,VoiceMailPlayMsg(6001@default,o)\n same => n,NoOp(${VOICEMAIL_PLAYBACKSTATUS})\n same => n,VoiceMailPlayMsg(6001,x)\n same => n,NoOp(${VOICEMAIL_PLAYBACKSTATUS})\n same => n,VMSayName(6001)",
    );
    put(&mut world, Folder::OLD, "o", "6002");
    world.greeting(&of("6001"), Greeting::Name);
    let world = run(world, &[]);
    assert_eq!(noted(&world), ["SUCCESS", "FAILED"]);
    assert_eq!(heard(&world), ["message o", "greet of 6001@default"]);
    let known = run(
        plain("exten => 1,1,VMAuthenticate(@default)\n same => n,NoOp(${AUTH_MAILBOX}@${AUTH_CONTEXT})"),
        &typed("6002#99#", 500, 300),
    );
    assert_eq!(noted(&known), ["6002@"]);
}

#[test]
fn keys_move_about_in_a_message_and_end_it() {
    for (keys, expected) in [
        (&[(8000, "#")][..], &["message a", "message a from 7000 ms"][..]),
        (&[(8000, "*")], &["message a", "message a from 1000 ms"]),
        (&[(8000, "0"), (12_000, "0")], &["message a", "message a from 4000 ms"]),
        (&[(8000, "2")], &["message a", "message a"]),
        (&[(8000, "7")], &["message a", "vm-deleted"]),
        (&[(8000, "6")], &["message a", "vm-nomore"]),
    ] {
        let mut world = plain("exten => 1,1,VoiceMailMain(6001,s)");
        put(&mut world, Folder::INBOX, "a", "Unknown");
        world.clip("message a", Duration::from_secs(30));
        // It begins at 4 s: two words come before it.
        let mut acts = vec![(2000, Act::Press('1'))];
        acts.extend(keys.iter().flat_map(|(at, key)| typed(key, *at, 1)));
        acts.push((120_000, BYE));
        in_this_order(&heard(&run(world, &acts)), expected);
    }
}

#[test]
fn urgent_messages_come_first_among_the_new_ones() {
    let mut world = plain("exten => 1,1,VoiceMailMain(6001,s)");
    put(&mut world, Folder::INBOX, "a", "Unknown");
    put(&mut world, Folder::URGENT, "u", "Unknown");
    let acts = [typed("16", 9000, 20_000), typed("#", 49_000, 1)].concat();
    let world = run(world, &acts);
    let words = [
        "digits/1",
        "vm-Urgent",
        "vm-and",
        "digits/1",
        "vm-INBOX",
        "vm-Urgent",
        "vm-first",
        "message u",
        "message a",
    ];
    in_this_order(&heard(&world), &words);
    let left = (ids(&world, Folder::URGENT), ids(&world, Folder::INBOX), ids(&world, Folder::OLD));
    assert_eq!(left, (String::new(), String::new(), "u a".to_owned()));
    assert_eq!(world.shard.core.borrow().urgent_messages("6001"), 0);
}
