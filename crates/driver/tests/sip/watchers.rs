//! SUBSCRIBE and NOTIFY: lamps, presence, message waiting.

use core::time::Duration;
use std::rc::Rc;

use ::sip::OwnedMessage;
use base::Instant;
use call::{DeviceState, Mailbox, Watched};
use driver::sip::{KeptSubscription, SubscriptionChange};

use crate::lab::{Lab, aor, body, change, change_aor, endpoint, header, line, site, tcp, udp};
use crate::phone::Phone;

const LAMP: &str = "sip:600@strowger";

fn lamp() -> Rc<Watched> {
    Rc::new(Watched { context: "phones".to_owned(), exten: "600".to_owned() })
}

/// The state of the watched extension becomes this.
fn tell(lab: &mut Lab, state: Option<DeviceState>) {
    lab.with(|_, core| core.board.tell(&lamp(), state));
}

/// What the next NOTIFY says: its Subscription-State and dialog state; answered 200.
#[track_caller]
fn next_notify(lab: &mut Lab, phone: &Phone) -> (String, String) {
    let notify = lab.sent();
    assert_eq!(line(&notify), "NOTIFY");
    phone.respond(lab, &notify, 200, "", "");
    (header(&notify, "Subscription-State"), state_in(&notify))
}

fn state_in(notify: &OwnedMessage) -> String {
    let text = body(notify);
    let state = text.split("<state>").nth(1).and_then(|rest| rest.split("</state>").next());
    state.unwrap_or_default().to_owned()
}

/// Subscribes and takes in the first NOTIFY.
#[track_caller]
fn watch(lab: &mut Lab, phone: &mut Phone, expires: u32) -> OwnedMessage {
    let headers = format!("Event: dialog\r\nAccept: application/dialog-info+xml\r\nExpires: {expires}\r\n");
    let accepted = phone.ask(lab, "SUBSCRIBE", LAMP, &headers, "");
    assert_eq!(line(&accepted), "200", "{}", body(&accepted));
    phone.learn(&accepted);
    accepted
}

#[test]
fn rfc6665_4_2_1_a_lamp_is_accepted_told_at_once_and_at_each_change() {
    let mut lab = Lab::new(site());
    let mut alice = Phone::new("alice");
    let accepted = watch(&mut lab, &mut alice, 600);
    assert_eq!(header(&accepted, "Expires"), "600");
    assert_eq!(header(&accepted, "Contact"), "<sip:192.0.2.1:5060>");
    assert_eq!(header(&accepted, "Supported"), "100rel, timer, replaces, norefersub");
    assert_eq!(lab.lines(), [""; 0], "the state is told when it is known");
    tell(&mut lab, Some(DeviceState::NotInUse));
    let first = lab.sent();
    assert_eq!(header(&first, "Event"), "dialog");
    assert_eq!(header(&first, "Content-Type"), "application/dialog-info+xml");
    assert!(
        body(&first).contains("version=\"0\" state=\"full\" entity=\"sip:600@strowger\""),
        "{}",
        body(&first)
    );
    tell(&mut lab, Some(DeviceState::Ringing));
    tell(&mut lab, Some(DeviceState::InUse));
    assert_eq!(lab.lines(), [""; 0], "one NOTIFY is out at a time");
    alice.respond(&mut lab, &first, 200, "", "");
    let second = lab.sent();
    assert!(body(&second).contains("version=\"1\""), "{}", body(&second));
    assert_eq!(state_in(&second), "confirmed", "what changed meanwhile is told as it is then");
    alice.respond(&mut lab, &second, 200, "", "");
    // The watcher leaves.
    alice.inside_proved(&mut lab, "SUBSCRIBE", "Event: dialog\r\nExpires: 0\r\n", "");
    assert_eq!(line(&lab.sent()), "200");
    assert_eq!(next_notify(&mut lab, &alice), ("terminated".to_owned(), "confirmed".to_owned()));
    lab.rest();
}

#[test]
fn rfc6665_4_4_3_a_fetch_is_told_the_state_and_ends() {
    let mut lab = Lab::new(site());
    let mut alice = Phone::new("alice");
    // Nobody has looked at the hint before.
    assert_eq!(header(&watch(&mut lab, &mut alice, 0), "Expires"), "0");
    assert_eq!(lab.lines(), [""; 0], "the state is told when it is known");
    tell(&mut lab, Some(DeviceState::InUse));
    let end = "terminated".to_owned();
    assert_eq!(next_notify(&mut lab, &alice), (end.clone(), "confirmed".to_owned()));
    lab.rest();
    // An extension without a hint has nothing to tell.
    let mut alice = alice.call_again();
    watch(&mut lab, &mut alice, 0);
    tell(&mut lab, None);
    assert_eq!(next_notify(&mut lab, &alice), (end, String::new()));
    lab.rest();
}

#[test]
fn rfc6665_4_2_2_without_a_refresh_it_ends_and_with_one_it_goes_on() {
    let mut lab = Lab::new(site());
    let mut alice = Phone::new("alice");
    watch(&mut lab, &mut alice, 100);
    tell(&mut lab, Some(DeviceState::NotInUse));
    assert_eq!(next_notify(&mut lab, &alice).0, "active;expires=100");
    lab.pass(Duration::from_secs(90));
    alice.inside_proved(&mut lab, "SUBSCRIBE", "Event: dialog\r\nExpires: 100\r\n", "");
    assert_eq!(line(&lab.sent()), "200");
    assert_eq!(next_notify(&mut lab, &alice).0, "active;expires=100");
    lab.pass(Duration::from_secs(99));
    assert_eq!(lab.lines(), [""; 0]);
    lab.pass(Duration::from_secs(1));
    assert_eq!(next_notify(&mut lab, &alice).0, "terminated");
    // Too late: it is gone.
    alice.inside_proved(&mut lab, "SUBSCRIBE", "Event: dialog\r\nExpires: 100\r\n", "");
    assert_eq!(lab.lines(), ["481"]);
    lab.rest();
}

/// The subscription that the shell is to write down.
#[track_caller]
fn kept(lab: &mut Lab) -> KeptSubscription {
    let changes = lab.with(|sip, core| sip.take_subscription_changes(core.now));
    match changes.as_slice() {
        [SubscriptionChange::Kept(kept)] => (**kept).clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rfc6665_4_2_2_a_subscription_that_was_written_down_goes_on_in_its_dialog_after_a_restart() {
    let mut before = Lab::new(site());
    let mut alice = Phone::new("alice");
    watch(&mut before, &mut alice, 600);
    tell(&mut before, Some(DeviceState::NotInUse));
    let last = before.sent();
    alice.respond(&mut before, &last, 200, "", "");
    let written = kept(&mut before);
    assert_eq!((&*written.endpoint, written.until), ("alice", before.now + Duration::from_secs(600)));
    before.pass(Duration::from_secs(100));
    assert_eq!(before.with(|sip, core| sip.kept_subscriptions(core.now).count()), 1);

    let mut after = Lab::new(site());
    after.now = before.now;
    after.with(|sip, _| sip.restore_subscription(written.clone()));
    let count = |lab: &mut Lab| lab.with(|sip, core| sip.kept_subscriptions(core.now).count());
    assert_eq!(count(&mut after), 1);
    after.with(|sip, core| sip.tell_watchers(core));
    assert_eq!((count(&mut after), after.lines().len()), (1, 0), "the state is told when it is known");
    tell(&mut after, Some(DeviceState::InUse));
    let first = after.sent();
    assert_eq!(
        (header(&first, "Subscription-State").as_str(), state_in(&first).as_str()),
        ("active;expires=500", "confirmed")
    );
    for name in ["Call-ID", "From", "To", "Event", "Contact"] {
        assert_eq!(header(&first, name), header(&last, name), "{name}");
    }
    let number =
        |message: &OwnedMessage| header(message, "CSeq").split(' ').next().unwrap().parse::<u32>().unwrap();
    assert!(number(&first) > number(&last) + 100_000, "more than can have left meanwhile");
    let version =
        body(&first).split("version=\"").nth(2).and_then(|rest| rest.split('"').next()?.parse::<u32>().ok());
    assert!(version.is_some_and(|version| version > 100_000), "{}", body(&first));
    alice.respond(&mut after, &first, 200, "", "");
    assert_eq!(kept(&mut after).tag, written.tag, "it is written down with its new numbers");
    alice.inside_proved(&mut after, "SUBSCRIBE", "Event: dialog\r\nExpires: 900\r\n", "");
    assert_eq!(line(&after.sent()), "200");
    assert_eq!(next_notify(&mut after, &alice).0, "active;expires=900");
    assert_eq!(kept(&mut after).until, after.now + Duration::from_secs(900));
    alice.inside_proved(&mut after, "SUBSCRIBE", "Event: dialog\r\nExpires: 0\r\n", "");
    assert_eq!(line(&after.sent()), "200");
    next_notify(&mut after, &alice);
    let gone = after.with(|sip, core| sip.take_subscription_changes(core.now));
    assert!(matches!(gone.as_slice(), [SubscriptionChange::Gone(tag)] if *tag == written.tag), "{gone:?}");
}

#[test]
fn what_cannot_go_on_after_a_restart_is_forgotten() {
    let mut before = Lab::new(site());
    let mut alice = Phone::new("alice");
    watch(&mut before, &mut alice, 600);
    let written = kept(&mut before);
    let elsewhere = |name: &str| KeptSubscription { endpoint: name.to_owned(), ..written.clone() };
    let silent = {
        let mut config = site();
        change(&mut config, "alice", |alice| alice.watching.allow = false);
        config
    };
    for (name, config, subscription, later) in [
        ("it has lapsed", site(), written.clone(), 600),
        ("there is no such endpoint", site(), elsewhere("nobody"), 1),
        ("it may not watch any more", silent, written.clone(), 1),
    ] {
        let mut lab = Lab::new(config);
        lab.now = before.now + Duration::from_secs(later);
        lab.with(|sip, _| sip.restore_subscription(subscription));
        lab.with(|sip, core| sip.tell_watchers(core));
        let changes = lab.with(|sip, core| sip.take_subscription_changes(core.now));
        assert!(matches!(changes.as_slice(), [SubscriptionChange::Gone(_)]), "{name}: {changes:?}");
        assert_eq!(lab.with(|sip, core| sip.kept_subscriptions(core.now).count()), 0, "{name}");
        assert!(lab.next().is_none(), "{name}");
    }
    // A connection does not outlive the process; who only asked once is not told again.
    let mut lab = Lab::new(site());
    let mut over_tcp = Phone::at("alice", tcp("198.51.100.9:4000", 7));
    watch(&mut lab, &mut over_tcp, 600);
    let mut once = Phone::new("bob");
    watch(&mut lab, &mut once, 0);
    assert!(lab.with(|sip, core| sip.take_subscription_changes(core.now)).is_empty());
}

#[test]
fn rfc6665_5_a_subscribe_inside_a_subscription_proves_itself_as_the_first_one_did() {
    for (name, password) in [("no password", None), ("a wrong one", Some("guess"))] {
        let mut lab = Lab::new(site());
        let mut alice = Phone::new("alice");
        watch(&mut lab, &mut alice, 600);
        tell(&mut lab, Some(DeviceState::NotInUse));
        next_notify(&mut lab, &alice);
        // Somebody who has read a NOTIFY on its way.
        let mut thief = Phone::at("alice", udp("198.51.100.66:5060")).call(&alice.call_id).password(password);
        (thief.remote_tag, thief.target, thief.cseq) =
            (alice.remote_tag.clone(), alice.target.clone(), alice.cseq);
        let headers = "Event: dialog\r\nExpires: 0\r\nContact: <sip:alice@198.51.100.66>\r\n";
        if password.is_some() {
            thief.inside_proved(&mut lab, "SUBSCRIBE", headers, "");
        } else {
            thief.inside(&mut lab, "SUBSCRIBE", headers, "");
        }
        assert_eq!(lab.lines(), ["401"], "{name}");
        tell(&mut lab, Some(DeviceState::InUse));
        let (flow, notify) = lab.next().expect("the subscription goes on");
        assert_eq!((flow.remote, line(&notify)), (alice.flow.remote, "NOTIFY".to_owned()), "{name}");
        assert!(header(&notify, "Subscription-State").starts_with("active"), "{name}");
    }
}

#[test]
fn rfc6665_4_2_2_a_watcher_that_is_silent_or_knows_nothing_is_forgotten() {
    for answer in [None, Some(481), Some(404), Some(489)] {
        let mut lab = Lab::new(site());
        let mut alice = Phone::new("alice");
        watch(&mut lab, &mut alice, 3600);
        tell(&mut lab, Some(DeviceState::NotInUse));
        let notify = lab.sent();
        match answer {
            Some(status) => alice.respond(&mut lab, &notify, status, "", ""),
            None => {
                lab.pass(Duration::from_secs(33));
                assert_eq!(
                    lab.lines().len(),
                    10,
                    "RFC 3261 17.1.2.2: at 0.5, 1, 2, 4 s and each 4 s until 32 s"
                );
            }
        }
        tell(&mut lab, Some(DeviceState::InUse));
        assert_eq!(lab.lines(), [""; 0], "{answer:?}");
        lab.rest();
    }
}

#[test]
fn rfc6665_a_request_that_came_twice_is_answered_twice_and_counts_once() {
    let mut lab = Lab::new(site());
    let mut trunk = Phone::new("trunk");
    let text = trunk.request("SUBSCRIBE", LAMP, "Event: dialog\r\nExpires: 60\r\n", "");
    lab.receive(trunk.flow, text.clone());
    lab.receive(trunk.flow, text);
    assert_eq!(lab.lines(), ["200", "200"]);
    tell(&mut lab, Some(DeviceState::NotInUse));
    assert_eq!(lab.lines(), ["NOTIFY"]);
    assert_eq!(lab.sip.borrow().load().subscriptions, 1);
    lab.rest();
}

#[test]
fn what_may_not_be_watched_is_refused_with_the_status_that_says_why() {
    let mut config = site();
    change(&mut config, "trunk", |e| {
        e.watching.allow = false;
        e.auths.clear();
    });
    change(&mut config, "bob", |e| e.watching.seconds_min = 120);
    for (name, user, uri, headers, status, also) in [
        ("no hint", "alice", "sip:500@strowger", "Event: dialog\r\n", "404", ("Expires", "")),
        (
            "RFC 6665 4.2.1.1: unknown package",
            "alice",
            LAMP,
            "Event: winfo\r\n",
            "489",
            ("Allow-Events", "dialog, presence, message-summary, as-feature-event, refer"),
        ),
        ("no package", "alice", LAMP, "", "489", ("Expires", "")),
        ("RFC 6665 7.2.1", "alice", LAMP, "Event: dialog\r\nAccept: text/plain\r\n", "489", ("Expires", "")),
        (
            "RFC 6665 4.2.1.1: too brief",
            "bob",
            LAMP,
            "Event: dialog\r\nExpires: 60\r\n",
            "423",
            ("Min-Expires", "120"),
        ),
        ("long enough", "bob", LAMP, "Event: dialog\r\nExpires: 120\r\n", "200", ("Expires", "120")),
        (
            "a fetch is never too brief",
            "bob",
            LAMP,
            "Event: dialog\r\nExpires: 0\r\n",
            "200",
            ("Expires", "0"),
        ),
        ("no time is an hour", "alice", LAMP, "Event: presence\r\n", "200", ("Expires", "3600")),
        (
            "at most a day",
            "alice",
            LAMP,
            "Event: presence\r\nExpires: 4294967295\r\n",
            "200",
            ("Expires", "86400"),
        ),
        ("allow_subscribe=no", "trunk", LAMP, "Event: dialog\r\n", "603", ("Expires", "")),
        ("no mailboxes", "alice", "sip:alice@strowger", "Event: message-summary\r\n", "404", ("Expires", "")),
        (
            "RFC 3261 8.2.2.3",
            "alice",
            LAMP,
            "Event: dialog\r\nRequire: nothing-known\r\n",
            "420",
            ("Unsupported", "nothing-known"),
        ),
    ] {
        let mut lab = Lab::new(config.clone());
        let mut phone = Phone::new(user);
        let answer = phone.ask(&mut lab, "SUBSCRIBE", uri, headers, "");
        assert_eq!(line(&answer), status, "{name}");
        assert_eq!(header(&answer, also.0), also.1, "{name}");
    }
}

#[test]
fn a_change_is_written_once_for_each_form_however_many_watch() {
    let mut lab = Lab::new(site());
    let mut phones = Vec::new();
    for number in 0..200_u16 {
        let flow = udp(&format!("198.51.100.{}:{}", 10 + number % 50, 6000 + number));
        let mut phone = Phone::at("trunk", flow).call(&format!("watch-{number}"));
        let event = if number % 2 == 0 { "dialog" } else { "presence" };
        let text = phone.request("SUBSCRIBE", LAMP, &format!("Event: {event}\r\nExpires: 600\r\n"), "");
        lab.receive(flow, text);
        phones.push(phone);
    }
    lab.lines();
    tell(&mut lab, Some(DeviceState::NotInUse));
    assert_eq!(lab.sip.borrow().documents_written(), 2);
    while let Some((_, notify)) = lab.next() {
        phones[0].respond(&mut lab, &notify, 200, "", "");
    }
    tell(&mut lab, Some(DeviceState::InUse));
    assert_eq!(lab.lines().len(), 200);
    assert_eq!(lab.sip.borrow().documents_written(), 4);
    assert_eq!(lab.sip.borrow().subscription_rows(&lab.shard.core.borrow()).len(), 200);
}

/// The NOTIFYs of one turn, as dialog states.
fn told_in_a_turn(lab: &Lab) -> Vec<String> {
    let mut sip = lab.sip.borrow_mut();
    sip.tell_watchers(&mut lab.shard.core.borrow_mut());
    let sends = sip.take_sends();
    sends.iter().map(|send| state_in(&OwnedMessage::parse(send.bytes.clone()).unwrap())).collect()
}

#[test]
fn hundreds_on_one_lamp_are_told_a_part_each_turn_and_who_still_waits_hears_the_last_state_alone() {
    let mut lab = Lab::new(site());
    for number in 0..600_u16 {
        let flow = udp(&format!("198.51.100.{}:{}", 10 + number % 50, 6000 + number));
        let mut phone = Phone::at("trunk", flow).call(&format!("watch-{number}"));
        let text = phone.request("SUBSCRIBE", LAMP, "Event: dialog\r\nExpires: 600\r\n", "");
        lab.receive(flow, text);
    }
    lab.lines();
    let change = |lab: &Lab, state| lab.shard.core.borrow_mut().board.tell(&lamp(), Some(state));
    change(&lab, DeviceState::InUse);
    // What nobody has been told yet is owed to all of them.
    assert_eq!(told_in_a_turn(&lab), vec!["confirmed"; 64]);
    assert_eq!(lab.sip.borrow().deadline(), Some(Instant::ZERO), "the rest is told at once");
    change(&lab, DeviceState::NotInUse);
    assert_eq!(told_in_a_turn(&lab), [""; 0], "those who have not answered yet hear of it when they have");
    for _ in 0..8 {
        assert_eq!(told_in_a_turn(&lab), vec!["terminated"; 64]);
    }
    assert_eq!(told_in_a_turn(&lab), vec!["terminated"; 600 - 9 * 64]);
    assert_eq!(told_in_a_turn(&lab), [""; 0]);
    assert_ne!(lab.sip.borrow().deadline(), Some(Instant::ZERO));
}

#[test]
fn rfc3261_17_1_2_2_watchers_wait_while_finished_notifies_rest_so_that_calls_have_room() {
    let mut lab = Lab::new(site());
    let watchers = 4000_u32;
    for number in 0..watchers {
        let flow = udp(&format!("198.51.100.{}:{}", 1 + number % 200, 6000 + number / 200));
        let mut phone = Phone::at("trunk", flow).call(&format!("watch-{number}"));
        let text = phone.request("SUBSCRIBE", LAMP, "Event: dialog\r\nExpires: 600\r\n", "");
        lab.receive(flow, text);
    }
    lab.lines();
    let phone = Phone::new("trunk");
    let mut told = 0;
    let mut answer_all = |lab: &mut Lab| {
        let mut heard = 0;
        while let Some((_, notify)) = lab.next() {
            phone.respond(lab, &notify, 200, "", "");
            heard += 1;
        }
        told += heard;
        (heard, told)
    };
    let states = [DeviceState::InUse, DeviceState::NotInUse];
    let mut changes = states.iter().cycle();
    // Half of the table, less what the last turn adds: no time passes, so that every transaction rests.
    let full = ::sip::stack::TRANSACTIONS_MAX / 2;
    let mut last = (0, 0);
    for _ in 0..=full / 4000 {
        tell(&mut lab, changes.next().copied());
        last = answer_all(&mut lab);
    }
    assert_eq!(last.1, full, "no more than half of the transactions");
    assert!(last.0 < 4000);
    let held = lab.now + Duration::from_millis(100);
    assert_eq!(lab.sip.borrow().deadline(), Some(held), "looked at again soon, not at once");
    // Timer K lets go of the first ones after 5 s.
    lab.pass(Duration::from_millis(5_200));
    assert_eq!(answer_all(&mut lab).0, 4000 - last.0, "the others hear of it when there is room");
}

#[test]
fn an_extension_that_loses_its_hint_ends_its_subscriptions() {
    let mut lab = Lab::new(site());
    let mut alice = Phone::new("alice");
    watch(&mut lab, &mut alice, 600);
    tell(&mut lab, Some(DeviceState::NotInUse));
    next_notify(&mut lab, &alice);
    tell(&mut lab, None);
    assert_eq!(next_notify(&mut lab, &alice).0, "terminated;reason=noresource");
    lab.rest();
    // One that is gone before anything was told.
    watch(&mut lab, &mut alice.call_again(), 600);
    tell(&mut lab, None);
    assert_eq!(lab.lines().len(), 1, "the end is told at once");
}

#[test]
fn a_reload_ends_what_is_not_allowed_any_more_and_keeps_the_rest() {
    let mut lab = Lab::new(site());
    let (mut alice, mut bob) = (Phone::new("alice"), Phone::at("bob", udp("198.51.100.8:5060")));
    watch(&mut lab, &mut alice, 600);
    lab.pass(Duration::from_secs(1)); // for a nonce of his own
    watch(&mut lab, &mut bob, 600);
    tell(&mut lab, Some(DeviceState::NotInUse));
    next_notify(&mut lab, &alice);
    next_notify(&mut lab, &bob);
    let mut config = site();
    change(&mut config, "bob", |e| e.watching.allow = false);
    lab.with(|sip, core| sip.configure(config, core.now));
    assert_eq!(next_notify(&mut lab, &bob).0, "terminated;reason=rejected");
    tell(&mut lab, Some(DeviceState::InUse));
    assert_eq!(next_notify(&mut lab, &alice).0, "active;expires=599");
    assert_eq!(lab.lines(), [""; 0]);
}

#[test]
fn rfc3842_mailboxes_are_told_to_who_subscribes_and_to_who_is_told_unasked() {
    let mut config = site();
    change_aor(&mut config, "alice", |aor| {
        aor.mailboxes = vec!["6001@default".to_owned(), "6002".to_owned()];
        aor.voicemail = "*97".to_owned();
    });
    change(&mut config, "trunk", |e| e.watching.mailboxes = vec!["6001".to_owned()]);
    let mut lab = Lab::new(config);
    let messages = |new, old| Some(Mailbox { new, old });
    lab.with(|_, core| core.set_mailbox("6002", messages(1, 0)));
    let mut alice = Phone::new("alice");
    let answer = alice.ask(
        &mut lab,
        "SUBSCRIBE",
        "sip:alice@strowger",
        "Event: message-summary\r\nExpires: 60\r\n",
        "",
    );
    alice.learn(&answer);
    let first = lab.sent();
    assert_eq!(
        body(&first),
        "Messages-Waiting: yes\r\nMessage-Account: sip:*97@strowger\r\nVoice-Message: 1/0 (0/0)\r\n"
    );
    alice.respond(&mut lab, &first, 200, "", "");
    lab.with(|_, core| core.set_mailbox("6001@default", messages(2, 5)));
    let told: Vec<OwnedMessage> = std::iter::from_fn(|| lab.next().map(|(_, message)| message)).collect();
    let texts: Vec<String> = told.iter().map(body).collect();
    assert_eq!(
        texts,
        [
            "Messages-Waiting: yes\r\nVoice-Message: 2/5 (0/0)\r\n",
            "Messages-Waiting: yes\r\nMessage-Account: sip:*97@strowger\r\nVoice-Message: 3/5 (0/0)\r\n",
        ]
    );
    assert_eq!(header(&told[0], "Subscription-State"), "terminated");
    assert_eq!(header(&told[0], "To"), "<sip:trunk@198.51.100.7>");
    assert!(header(&told[0], "From").starts_with("<sip:trunk@192.0.2.1>"), "{}", header(&told[0], "From"));
    assert_eq!(header(&told[0], "Contact"), "<sip:trunk@192.0.2.1:5060>");
    assert_eq!(header(&told[0], "Allow-Events"), "message-summary, presence, dialog, refer");
    for notify in &told {
        alice.respond(&mut lab, notify, 200, "", "");
    }
    lab.with(|_, core| core.set_mailbox("6001", messages(2, 5)));
    lab.with(|_, core| core.set_mailbox("7000", messages(9, 9)));
    assert_eq!(lab.lines(), [""; 0], "nothing has changed");
}

#[test]
fn subscriptions_of_one_endpoint_are_bounded_and_each_is_given_back() {
    let mut config = site();
    crate::lab::add(&mut config, endpoint("spare"), aor("spare"));
    let mut lab = Lab::new(config);
    for number in 0..=driver::sip::PER_ENDPOINT_MAX {
        let mut phone = Phone::new("trunk").call(&format!("watch-{number}"));
        let text = phone.request("SUBSCRIBE", LAMP, "Event: dialog\r\nExpires: 60\r\n", "");
        lab.receive(phone.flow, text);
        let expected = if number < driver::sip::PER_ENDPOINT_MAX { "200" } else { "503" };
        assert_eq!(lab.lines(), [expected], "{number}");
    }
    let mut bob = Phone::new("bob");
    watch(&mut lab, &mut bob, 60);
    assert_eq!(lab.sip.borrow().load().subscriptions, driver::sip::PER_ENDPOINT_MAX + 1);
}

#[test]
fn mailboxes_of_an_aor_with_a_domain_are_found_by_user_and_domain() {
    let mut config = driver::sip::Config { multi_domain: true, ..site() };
    for (name, mailbox) in [("sales@a.example", "1"), ("sales@b.example", "2")] {
        let of = driver::sip::Aor { mailboxes: vec![mailbox.to_owned()], ..crate::lab::aor(name) };
        config.aors.insert(name.into(), std::rc::Rc::new(of));
        change(&mut config, "alice", |alice| alice.aors.push(name.into()));
    }
    config.domain_aliases.insert("pbx.example".to_owned(), "b.example".to_owned());
    for (uri, new) in [
        ("sip:sales@a.example", 1),
        ("sip:sales@B.example", 2),
        ("sip:sales@pbx.example", 2),
        ("sip:sales@elsewhere.example", 3),
        ("sip:alice@a.example", 0),
    ] {
        let mut lab = Lab::new(config.clone());
        for (name, new) in [("1", 1), ("2", 2)] {
            lab.with(|_, core| core.set_mailbox(name, Some(Mailbox { new, old: 0 })));
        }
        let mut alice = Phone::new("alice");
        let answer = alice.ask(&mut lab, "SUBSCRIBE", uri, "Event: message-summary\r\nExpires: 60\r\n", "");
        if new == 0 {
            assert_eq!(line(&answer), "404", "{uri}: an AOR of its own, without mailboxes");
            continue;
        }
        let told = body(&lab.sent());
        assert!(told.contains(&format!("Voice-Message: {new}/0")), "{uri}: {told}");
    }
}

#[test]
fn rfc3842_5_2_what_a_provider_says_is_in_a_mailbox_of_ours() {
    let summary = "Content-Type: application/simple-message-summary\r\n";
    for (name, event, kind, body, status, expected) in [
        (
            "counts",
            "message-summary",
            summary,
            "Messages-Waiting: yes\r\nVoice-Message: 3/4 (1/0)\r\n",
            "200",
            Some((3, 4)),
        ),
        ("no counts", "message-summary", summary, "messages-waiting: yes\r\n", "200", Some((1, 0))),
        (
            "none",
            "message-summary",
            summary,
            "Messages-Waiting: no\r\nVoice-Message: 0/2\r\n",
            "200",
            Some((0, 2)),
        ),
        ("nonsense", "message-summary", summary, "Voice-Message: many/some\r\n", "400", None),
        (
            "numbers that are none",
            "message-summary",
            summary,
            "Messages-Waiting: yes\r\nVoice-Message: -1/x\r\n",
            "400",
            None,
        ),
        ("another kind", "message-summary", "Content-Type: text/plain\r\n", "x", "415", None),
        ("another package", "presence", summary, "Messages-Waiting: yes\r\n", "501", None),
    ] {
        for trusted in [true, false] {
            let mut config = site();
            let mailbox = if trusted { "300" } else { "" };
            change(&mut config, "trunk", |trunk| trunk.watching.incoming = mailbox.to_owned());
            let mut lab = Lab::new(config);
            let mut trunk = Phone::new("trunk");
            let headers = format!("Event: {event}\r\nSubscription-State: terminated\r\n{kind}");
            let answer = trunk.ask(&mut lab, "NOTIFY", "sip:trunk@strowger", &headers, body);
            assert_eq!(line(&answer), if trusted { status } else { "501" }, "{name}");
            let mailbox = lab.shard.core.borrow().mailbox("300").map(|mailbox| (mailbox.new, mailbox.old));
            assert_eq!(mailbox, expected.filter(|_| trusted), "{name}");
        }
    }
}
