//! The generator against itself: callers call callees of another run, over the loopback interface and without privileges.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use base::FormatId;
use io::media::{IoWish, PortRange};
use loadtest::{Hear, Load, Media, Plan, Report};

/// What must come comes sooner, unless the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

fn plan(host: u8, server: Option<&Load>) -> Plan {
    let ip = IpAddr::V4(Ipv4Addr::new(127, 45, 0, host));
    let nobody = ([127, 45, 0, 254], 9).into();
    Plan {
        io: IoWish::Epoll,
        ports: PortRange { first: 30_000, last: 32_000 },
        check_every: Duration::from_millis(500),
        ..Plan::new(server.map_or(nobody, Load::sip), ip)
    }
}

fn until(load: &Load, what: &str, done: impl Fn(&Load) -> bool) {
    let begin = Instant::now();
    while !done(load) {
        assert!(begin.elapsed() < PATIENCE, "{what} did not come: {:?}", load.progress());
        std::thread::yield_now();
    }
}

fn up(load: &Load) -> u64 {
    load.progress().up.load(Relaxed)
}

/// Runs callers against callees until some have been listened to.
fn talk(hosts: (u8, u8), change: impl Fn(&mut Plan, &mut Plan)) -> (Report, Report) {
    const CALLS: u64 = 20;
    let mut callees = Plan { answers: true, ..plan(hosts.0, None) };
    let number = Some("100".to_owned());
    let mut callers = Plan { number, rate: 200.0, calls: CALLS, hear: Hear::Own, ..plan(hosts.1, None) };
    change(&mut callees, &mut callers);
    let callees = Load::start(callees).unwrap();
    let callers = Load::start(Plan { server: callees.sip(), ..callers }).unwrap();
    until(&callers, "all calls", |load| up(load) == CALLS);
    // Callees have learned who calls by then.
    callers.window(Duration::from_secs(4));
    let heard = callers.window(Duration::from_secs(2));
    let other = callees.report();
    callers.hang_up(1000.0);
    until(&callers, "the end", |load| load.progress().open.load(Relaxed) == 0);
    until(&callees, "the other end", |load| load.progress().open.load(Relaxed) == 0);
    (heard, other)
}

#[test]
fn callers_hear_their_own_tone_from_callees_in_formats_with_and_without_memory() {
    for (hosts, formats) in
        [((1, 2), [FormatId::ULAW]), ((3, 4), [FormatId::GSM]), ((5, 6), [FormatId::ILBC30])]
    {
        let formats = formats.into_iter().collect();
        let (heard, other) = talk(hosts, |callees, callers| {
            (callees.accepts, callers.offers) = (formats, formats);
        });
        assert!(heard.checked >= 20, "{heard:?}");
        assert_eq!((heard.wrong, heard.silent, heard.unsent), (0, 0, 0), "{}", heard.text());
        assert_eq!((heard.up, other.taken), (20, 20));
        assert!(heard.arrivals.received > 1000, "{}", heard.text());
        assert_eq!(heard.arrivals.lost, 0, "{}", heard.text());
    }
}

#[test]
fn a_peer_that_says_nothing_is_heard_to_be_silent_and_one_that_says_something_else_is_wrong() {
    let (heard, _) = talk((11, 12), |callees, _| callees.media = Media::None);
    assert_eq!((heard.silent, heard.arrivals.received), (20, 0), "{}", heard.text());
    assert!(heard.wrong > 0 && !heard.complaints(0.1).is_empty(), "{}", heard.text());
    // The tone of call 0 is 400 Hz, of call 1 475 Hz.
    let (heard, _) = talk((13, 14), |_, callers| callers.hear = Hear::Hertz(loadtest::hertz(1)));
    assert!(heard.wrong > 0 && heard.wrong < heard.checked, "{}", heard.text());
}

#[test]
fn refusals_are_counted_by_status_with_the_time_they_took() {
    let nobody = Load::start(plan(21, None)).unwrap();
    let callers = Plan { number: Some("1".into()), rate: 500.0, calls: 50, ..plan(22, Some(&nobody)) };
    let callers = Load::start(callers).unwrap();
    until(&callers, "all refusals", |load| load.progress().refused.load(Relaxed) == 50);
    let report = callers.report();
    assert_eq!(report.refused, [(480, 50)].into());
    assert_eq!((report.refusal_time.count(), report.answered, report.up), (50, 0, 0));
    assert!(report.complaints(0.1).contains(&"50 calls were refused with 480".to_owned()));
}

#[test]
fn what_is_not_to_be_had_is_an_error_with_a_remedy() {
    let error =
        Load::start(Plan { local: vec!["192.0.2.7".parse().unwrap()], ..plan(31, None) }).unwrap_err();
    assert!(error.to_string().contains("192.0.2.7:0") && error.remedy().contains("--local"), "{error}");
    let nowhere = vec!["no-such-wire".to_owned()];
    let error = Load::start(Plan { io: IoWish::Xdp, interfaces: nowhere, ..plan(32, None) }).unwrap_err();
    assert!(!error.remedy().is_empty(), "{error}");
}
