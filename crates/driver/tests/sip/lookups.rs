//! Endpoints that lie in a database: requests wait for them, and go on when they are known.

use core::time::Duration;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use base::Instant;
use driver::sip::{Auth, Config, Directory, Endpoint, IdentifyBy, Learned, Lookup, Proof, Watching};

use crate::lab::{Lab, SECRET, aor, endpoint, header, line, site};
use crate::phone::Phone;

/// A database that answers when the test says so.
#[derive(Default)]
struct Books {
    known: BTreeSet<String>,
    is_down: bool,
    asked: usize,
}

impl Directory for Books {
    fn look_up(&mut self, endpoint: &str, _: Instant) -> Lookup {
        self.asked += 1;
        match () {
            () if self.known.contains(endpoint) => Lookup::Ready,
            () if self.is_down => Lookup::Unavailable,
            () => Lookup::Awaited,
        }
    }
}

fn lab(config: Config) -> (Lab, Rc<RefCell<Books>>) {
    let mut lab = Lab::new(config);
    let books: Rc<RefCell<Books>> = Rc::default();
    let directory: Rc<RefCell<dyn Directory>> = books.clone();
    lab.with(|sip, _| sip.set_directory(Some(directory)));
    (lab, books)
}
fn parked(lab: &Lab) -> usize {
    lab.sip.borrow().parked()
}
/// What a database has of a phone.
fn row(endpoint: Endpoint) -> Learned {
    let name = endpoint.name.clone();
    let auth = Auth {
        username: name.to_string(),
        realm: String::new(),
        proof: Proof::Password(SECRET.to_owned()),
        algorithms: vec![::sip::digest::Algorithm::Md5],
        answers: Vec::new(),
    };
    Learned {
        aors: vec![(name.clone(), Some(Rc::new(aor(&name))))],
        auths: vec![(name.clone(), Some(Rc::new(auth)))],
        endpoints: vec![(name, Some(Rc::new(endpoint)))],
    }
}
fn learn(lab: &mut Lab, books: &RefCell<Books>, name: &str, learned: Learned) {
    books.borrow_mut().known.insert(name.to_owned());
    lab.with(|sip, core| {
        sip.learn(core, learned);
        sip.looked_up(core, name, true);
    });
}

#[test]
fn a_request_waits_for_its_own_endpoint_and_no_other() {
    let (mut lab, books) = lab(site());
    let [mut dora, mut eric] = ["dora", "eric"].map(Phone::new);
    let first = dora.request("REGISTER", "sip:strowger", "", "");
    for text in [&first, &first, &eric.request("REGISTER", "sip:strowger", "", "")] {
        lab.receive(dora.flow, text);
    }
    assert!(lab.next().is_none());
    assert_eq!(parked(&lab), 2, "a retransmission waits with the first");
    lab.with(|sip, core| sip.looked_up(core, "nobody", true));
    assert_eq!(parked(&lab), 2);
    learn(&mut lab, &books, "eric", row(endpoint("eric")));
    assert_eq!((parked(&lab), lab.lines().as_slice()), (1, ["401".to_owned()].as_slice()));
    learn(&mut lab, &books, "dora", row(endpoint("dora")));
    assert_eq!((parked(&lab), lab.lines().as_slice()), (0, ["401".to_owned()].as_slice()));
    lab.pass(Duration::from_secs(1));
    assert_eq!(line(&dora.register(&mut lab, "")), "200");
    let before = books.borrow().asked;
    lab.with(|sip, core| sip.looked_up(core, "dora", true));
    assert_eq!((books.borrow().asked, lab.lines().len()), (before, 0), "nothing waits any more");
}

#[test]
fn a_request_with_two_names_waits_for_both_and_is_refused_for_now_when_one_cannot_be_looked_up() {
    for available in [true, false] {
        let config = Config { order: vec![IdentifyBy::AuthUsername, IdentifyBy::Username], ..site() };
        let (mut lab, _) = lab(config);
        let mut phone = Phone::new("dora");
        let digest = "Authorization: Digest username=\"eric\",realm=\"asterisk\",nonce=\"1\",uri=\"sip:x\",response=\"2\"\r\n";
        let text = phone.request("REGISTER", "sip:strowger", digest, "");
        lab.receive(phone.flow, text);
        assert_eq!(parked(&lab), 1);
        lab.with(|sip, core| sip.looked_up(core, "dora", available));
        assert_eq!((parked(&lab), lab.lines().len()), (1, 0), "eric has still to be looked up");
        lab.with(|sip, core| sip.looked_up(core, "eric", true));
        assert_eq!(parked(&lab), 0);
        let answer = lab.sent();
        match available {
            true => assert_eq!(line(&answer), "401", "there is none of either name"),
            false => {
                assert_eq!((line(&answer).as_str(), header(&answer, "Retry-After").as_str()), ("503", "5"))
            }
        }
    }
}

#[test]
fn so_many_wait_and_no_more_and_they_go_on_in_the_order_in_which_they_came() {
    const MOST: usize = 4_096;
    let (mut lab, books) = lab(site());
    let mut dora = Phone::new("dora");
    for at in 0..MOST {
        let call = format!("Call-Number: {at}\r\n");
        let text = dora.request("OPTIONS", "sip:strowger", &call, "");
        lab.receive(dora.flow, text);
    }
    assert_eq!((parked(&lab), lab.lines().len()), (MOST, 0));
    let text = dora.request("OPTIONS", "sip:strowger", "", "");
    lab.receive(dora.flow, text);
    assert_eq!(line(&lab.sent()), "503");
    books.borrow_mut().is_down = true;
    let mut eric = Phone::new("eric");
    let text = eric.request("OPTIONS", "sip:strowger", "", "");
    lab.receive(eric.flow, text);
    assert_eq!(line(&lab.sent()), "503", "nobody can say");
    lab.with(|sip, core| sip.looked_up(core, "dora", true));
    let numbers: Vec<u32> = std::iter::from_fn(|| lab.next())
        .filter_map(|(_, answer)| header(&answer, "CSeq").split(' ').next()?.parse().ok())
        .collect();
    assert_eq!((numbers.len(), parked(&lab)), (MOST, 0));
    assert!(numbers.is_sorted());
}

#[test]
fn what_is_learned_takes_its_place_without_a_copy_of_the_rest() {
    let (mut lab, books) = lab(site());
    let told = |name: &str, boxes: &[&str]| Endpoint {
        watching: Watching {
            mailboxes: boxes.iter().map(|name| (*name).to_owned()).collect(),
            ..endpoint(name).watching
        },
        ..endpoint(name)
    };
    learn(&mut lab, &books, "dora", row(told("dora", &["1", "2@office"])));
    let before = Rc::as_ptr(lab.sip.borrow().config());
    let mut dora = Phone::new("dora");
    assert_eq!(line(&dora.register(&mut lab, "")), "200");
    assert_eq!(lab.lines(), ["NOTIFY"], "it is told when it registers");
    let notified = |lab: &mut Lab, mailbox: &str| {
        let one = call::Mailbox { new: 1, old: 0 };
        lab.with(|sip, core| {
            core.set_mailbox(mailbox, Some(one));
            sip.tell_watchers(core);
            core.set_mailbox(mailbox, None);
            sip.tell_watchers(core);
        });
        !lab.lines().is_empty()
    };
    assert_eq!(
        ["1@default", "2@office", "3@default"].map(|name| notified(&mut lab, name)),
        [true, true, false]
    );
    learn(&mut lab, &books, "dora", row(told("dora", &["3"])));
    assert_eq!(
        ["1@default", "2@office", "3@default"].map(|name| notified(&mut lab, name)),
        [false, false, true]
    );
    // Who watches may not any more when it is gone.
    lab.pass(Duration::from_secs(1));
    lab.lines();
    let subscribe = "Event: dialog\r\nExpires: 600\r\n";
    assert_eq!(line(&dora.ask(&mut lab, "SUBSCRIBE", "sip:600@strowger", subscribe, "")), "200");
    let lamp = Rc::new(call::Watched { context: "phones".to_owned(), exten: "600".to_owned() });
    lab.with(|_, core| core.board.tell(&lamp, Some(call::DeviceState::NotInUse)));
    let first = lab.sent();
    dora.respond(&mut lab, &first, 200, "", "");
    let rows = |lab: &Lab| lab.sip.borrow().subscription_rows(&lab.shard.core.borrow()).len();
    assert_eq!(rows(&lab), 1);
    learn(&mut lab, &books, "eric", row(endpoint("eric")));
    lab.with(|sip, core| sip.tell_watchers(core));
    assert_eq!(lab.lines().len(), 0, "another endpoint is no news to it");
    let gone = Learned { endpoints: vec![("dora".into(), None)], ..Learned::default() };
    lab.with(|sip, core| {
        sip.learn(core, gone);
        sip.tell_watchers(core);
    });
    let notify = lab.sent();
    assert_eq!(header(&notify, "Subscription-State"), "terminated;reason=rejected");
    assert_eq!(Rc::as_ptr(lab.sip.borrow().config()), before);
}
