//! Users and peers that lie in a database: who waits for a look-up, and what of it shows.

use core::time::Duration;
use std::cell::RefCell;
use std::rc::Rc;

use base::{Cause, Instant};
use driver::Lookup;
use driver::iax::{
    Common, Directory, Host, IaxDriver, Kind, Learned, Lease, Registration, RegistryState, Transfer,
};

use crate::lab::{Lab, SECRET, address, config, peer, user};

/// Notes what it is asked; the test answers.
#[derive(Default)]
struct Notes {
    asked: Vec<(Kind, String)>,
    says: Option<Lookup>,
}

impl Directory for Notes {
    fn look_up(&mut self, kind: Kind, name: &str, _: Instant) -> Lookup {
        self.asked.push((kind, name.to_owned()));
        self.says.unwrap_or(Lookup::Awaited)
    }
}

type Noted = Rc<RefCell<Notes>>;

/// The second site registers as `username` at the first, whose peers of that kind lie in a database.
fn lab(secret: &[u8], username: &str) -> (Lab, Noted) {
    let mut away = config(1, "two", "one");
    away.registrations.push(Rc::new(Registration {
        host: address(0).ip().to_string(),
        port: 4569,
        username: username.to_owned(),
        secret: Some(::iax2::Secret::new(secret)),
        key: String::new(),
        refresh: 60,
        plaintext: false,
        place: address(0).to_string(),
    }));
    let lab = Lab::new([config(0, "one", "two"), away]);
    let notes = Noted::default();
    lab.sites[0].iax.borrow_mut().set_directory(Some(notes.clone()));
    (lab, notes)
}
fn home<T>(lab: &Lab, act: impl FnOnce(&mut IaxDriver, &mut call::Core) -> T) -> T {
    let site = &lab.sites[0];
    let mut core = site.shard.core.borrow_mut();
    core.now = lab.now;
    act(&mut site.iax.borrow_mut(), &mut core)
}
fn learn(lab: &Lab, learned: Learned) {
    home(lab, |iax, core| iax.learn(core, learned));
}
fn looked_up(lab: &Lab, kind: Kind, name: &str, is_available: bool) {
    home(lab, |iax, core| iax.looked_up(core, kind, name, is_available));
}
fn mobile() -> Learned {
    let mobile = peer("mobile", Host::Dynamic(None), "one", SECRET);
    Learned { peers: vec![("mobile".into(), Some(Rc::new(mobile)))], ..Learned::default() }
}
fn registry(lab: &Lab) -> RegistryState {
    lab.sites[1].iax.borrow().show_registry()[0].state
}
const MOMENT: Duration = Duration::from_millis(500);

#[test]
fn a_registration_waits_for_the_row_of_its_name_and_goes_on_with_it() {
    let (mut lab, notes) = lab(SECRET, "mobile");
    lab.pass(Duration::from_secs(3));
    assert_eq!(registry(&lab), RegistryState::Sent);
    assert_eq!(
        notes.borrow().asked,
        [(Kind::Peer, "mobile".to_owned())],
        "one look-up, whatever is repeated"
    );
    assert_eq!(lab.sites[0].iax.borrow().parked(), 1);
    learn(&lab, mobile());
    looked_up(&lab, Kind::Peer, "mobile", true);
    lab.pass(MOMENT);
    assert_eq!(registry(&lab), RegistryState::Registered);
    assert_eq!(lab.sites[0].iax.borrow().parked(), 0);
    let changes = lab.sites[0].iax.borrow_mut().take_changes();
    assert_eq!(changes.iter().map(|lease| lease.address).collect::<Vec<_>>(), [Some(address(1))]);
    // A row that is gone takes its registration along.
    learn(&lab, Learned { peers: vec![("mobile".into(), None)], ..Learned::default() });
    let changes = lab.sites[0].iax.borrow_mut().take_changes();
    assert_eq!(changes.iter().map(|lease| lease.address).collect::<Vec<_>>(), [None]);
    assert_eq!(lab.sites[0].iax.borrow().leases().count(), 0);
}

#[test]
fn rfc5456_10_an_unknown_name_and_a_wrong_password_look_and_take_the_same() {
    let seen = |name: &str, secret: &[u8]| {
        let (mut lab, notes) = lab(secret, name);
        lab.pass(Duration::from_secs(2));
        learn(&lab, mobile());
        looked_up(&lab, Kind::Peer, name, true);
        let mut states = Vec::new();
        for _ in 0..20 {
            lab.pass(Duration::from_millis(5));
            let sent = lab.sites[0].iax.borrow().show_stats().sent;
            states.push((registry(&lab), sent));
        }
        assert_eq!(registry(&lab), RegistryState::Rejected, "{name}");
        assert!(lab.sites[0].iax.borrow_mut().take_changes().is_empty(), "{name}");
        (states, notes.borrow().asked.len())
    };
    assert_eq!(seen("nobody", SECRET), seen("mobile", b"something else"));
}

#[test]
fn who_cannot_be_looked_up_hears_neither_yes_nor_no() {
    let cases: [(&str, Option<Lookup>); 2] =
        [("the database is away", Some(Lookup::Unavailable)), ("it does not answer in time", None)];
    for (name, says) in cases {
        let (mut lab, notes) = lab(SECRET, "mobile");
        notes.borrow_mut().says = says;
        lab.pass(Duration::from_secs(2));
        if says.is_none() {
            looked_up(&lab, Kind::Peer, "mobile", false);
            lab.pass(MOMENT);
        }
        assert_eq!(registry(&lab), RegistryState::Rejected, "{name}");
        assert_eq!(lab.sites[0].iax.borrow().parked(), 0, "{name}");
        // When it is back, so is the peer.
        notes.borrow_mut().says = Some(Lookup::Ready);
        learn(&lab, mobile());
        lab.pass(Duration::from_secs(120));
        assert_eq!(registry(&lab), RegistryState::Registered, "{name}");
    }
}

#[test]
fn who_has_gone_while_it_waited_is_not_registered() {
    let (mut lab, _notes) = lab(SECRET, "mobile");
    lab.pass(Duration::from_secs(1));
    assert_eq!(lab.sites[0].iax.borrow().parked(), 1);
    lab.lost = 1000;
    lab.pass(Duration::from_secs(200));
    learn(&lab, mobile());
    looked_up(&lab, Kind::Peer, "mobile", true);
    assert_eq!((lab.sites[0].iax.borrow().legs(), lab.sites[0].iax.borrow().parked()), (0, 0));
    assert!(lab.sites[0].iax.borrow_mut().take_changes().is_empty());
}

#[test]
fn a_call_waits_for_the_row_of_its_user() {
    let (mut lab, notes) = lab(SECRET, "mobile");
    // The user of a file is asked about as well: it may be another's to say that it is not.
    notes.borrow_mut().says = Some(Lookup::Ready);
    lab.dial(1, "far/100").unwrap();
    assert_eq!(lab.sites[0].started.len(), 1, "known at once");
    notes.borrow_mut().says = None;
    learn(&lab, Learned { users: vec![("two".into(), None)], ..Learned::default() });
    lab.dial(1, "far/101").unwrap();
    assert_eq!((lab.sites[0].started.len(), lab.sites[0].iax.borrow().parked()), (1, 1));
    learn(&lab, Learned { users: vec![("two".into(), Some(Rc::new(user("two"))))], ..Learned::default() });
    looked_up(&lab, Kind::User, "two", true);
    lab.pass(MOMENT);
    assert_eq!(lab.sites[0].started.len(), 2);
}

#[test]
fn transfers_are_possible_once_a_row_permits_them() {
    let (mut lab, notes) = lab(SECRET, "mobile");
    notes.borrow_mut().says = Some(Lookup::Ready);
    let mut free = user("two");
    free.common = Common { transfer: Transfer::Yes, ..Common::default() };
    let in_use = |lab: &Lab| lab.sites[0].iax.borrow().show_numbers().shared_in_use;
    lab.dial(1, "far/100").unwrap();
    assert_eq!(in_use(&lab), 0, "numbers of calls that cannot be transferred are their remote's own");
    learn(&lab, Learned { users: vec![("two".into(), Some(Rc::new(free)))], ..Learned::default() });
    lab.dial(1, "far/100").unwrap();
    assert_eq!(in_use(&lab), 1);
}

#[test]
fn what_was_written_down_waits_for_its_peer_until_it_lapses() {
    let (mut lab, notes) = lab(b"something else", "nobody");
    notes.borrow_mut().says = Some(Lookup::Ready);
    let lease = |peer: &str, seconds| Lease {
        peer: peer.into(),
        address: Some(address(1)),
        expires_at: Instant::ZERO + Duration::from_secs(seconds),
    };
    let kept = [lease("mobile", 200), lease("stranger", 50)];
    kept.iter().for_each(|lease| home(&lab, |iax, core| iax.restore(core, lease)));
    assert_eq!(
        lab.sites[0].iax.borrow().leases().count(),
        2,
        "nothing is lost when the journal is rewritten"
    );
    lab.pass(Duration::from_secs(100));
    let gone = lab.sites[0].iax.borrow_mut().take_changes();
    assert_eq!(
        gone.iter().map(|lease| (&*lease.peer, lease.address)).collect::<Vec<_>>(),
        [("stranger", None)]
    );
    learn(&lab, mobile());
    let rows = lab.sites[0].iax.borrow().show_peers(&lab.sites[0].shard.core.borrow(), Some("mobile"));
    assert_eq!((rows[0].address, rows[0].expires), (Some(address(1)), Some(100)));
    lab.pass(Duration::from_secs(110));
    assert_eq!(lab.sites[0].iax.borrow().leases().count(), 0);
}

#[test]
fn a_peer_is_called_where_its_row_says_that_it_has_registered_until_it_registers_here() {
    let (mut lab, notes) = lab(b"something else", "nobody");
    notes.borrow_mut().says = Some(Lookup::Ready);
    let until = lab.now + Duration::from_secs(30);
    let mut mobile = peer("mobile", Host::Dynamic(None), "one", SECRET);
    mobile.seen = Some((address(1), until));
    learn(&lab, Learned { peers: vec![("mobile".into(), Some(Rc::new(mobile)))], ..Learned::default() });
    lab.dial(0, "mobile/100").unwrap();
    assert_eq!(lab.sites[1].started.len(), 1);
    lab.pass(Duration::from_secs(31));
    assert_eq!(lab.dial(0, "mobile/100").unwrap_err(), Cause::SUBSCRIBER_ABSENT);
}
