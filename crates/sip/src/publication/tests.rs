//! PUBLISH by PUBLISH, on invented time.

use super::*;
use crate::message::OwnedMessage;
use Cause::{Added, Expired, Modified, Refreshed, Removed};

const PRESENCE: Package<'static> = Package { name: "presence", bodies: &[("application", "pidf+xml")] };
const DIALOG: Package<'static> = Package { name: "dialog", bodies: &[("application", "dialog-info+xml")] };
const ALICE: Target<'static> = Target { resource: "600", publisher: "alice" };

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn publish(headers: &str, body: &str) -> OwnedMessage {
    let text = format!(
        "PUBLISH sip:600@pbx SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: <sip:600@pbx>;tag=1\r\n\
         To: <sip:600@pbx>\r\nCall-ID: c\r\nCSeq: 1 PUBLISH\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    OwnedMessage::parse(text.into_bytes()).unwrap()
}

struct Site {
    compositor: Compositor,
    changes: Vec<Change>,
}

impl Site {
    fn new() -> Self {
        Self { compositor: Compositor::new(7), changes: Vec::new() }
    }
    fn say_to(
        &mut self,
        target: Target<'_>,
        second: u64,
        headers: &str,
        body: &str,
    ) -> Result<Granted, Refusal> {
        let message = publish(headers, body);
        let terms = (&[PRESENCE, DIALOG][..], &Rules::default());
        self.compositor.publish(target, terms, &message.view(), at(second), &mut self.changes)
    }
    fn say(&mut self, second: u64, headers: &str, body: &str) -> Result<Granted, Refusal> {
        self.say_to(ALICE, second, headers, body)
    }
    /// Publishes a state for the first time; its tag.
    #[track_caller]
    fn begin(&mut self, second: u64, body: &str) -> String {
        self.say(second, &pidf("", 600), body).unwrap().tag
    }
    fn causes(&mut self) -> Vec<Cause> {
        self.changes.drain(..).map(|change| change.cause).collect()
    }
    fn bodies(&self) -> Vec<String> {
        let all = self.compositor.of("600", "presence");
        all.map(|(_, publication)| String::from_utf8_lossy(&publication.body).into_owned()).collect()
    }
}

/// The headers of a PUBLISH of presence; `tag` is what it matches.
fn pidf(tag: &str, seconds: u32) -> String {
    let matching = if tag.is_empty() { String::new() } else { format!("SIP-If-Match: {tag}\r\n") };
    format!("Event: presence\r\n{matching}Expires: {seconds}\r\nContent-Type: application/pidf+xml\r\n")
}

#[test]
fn rfc3903_6_state_is_published_refreshed_modified_and_removed() {
    let mut site = Site::new();
    let first = site.say(0, &pidf("", 600), "<open/>").unwrap();
    assert_eq!((first.seconds, site.causes()), (600, vec![Added]));
    assert_eq!(site.bodies(), ["<open/>"]);
    let id = site.compositor.of("600", "presence").next().unwrap().0;

    let second = site.say(500, &pidf(&first.tag, 600), "").unwrap();
    assert_ne!(second.tag, first.tag, "6 step 6: each success makes another tag");
    assert_eq!((site.bodies(), site.causes()), (vec!["<open/>".to_owned()], vec![Refreshed]));

    let third = site.say(700, &pidf(&second.tag, 600), "<closed/>").unwrap();
    assert_eq!((site.bodies(), site.causes()), (vec!["<closed/>".to_owned()], vec![Modified]));
    assert_eq!(site.compositor.get(id).map(|p| p.expires_at), Some(at(1300)), "it is the same publication");

    let last = site.say(800, &pidf(&third.tag, 0), "").unwrap();
    assert_eq!((last.seconds, site.causes()), (0, vec![Removed]));
    assert!(site.compositor.is_empty() && site.compositor.get(id).is_none());
    assert_eq!(
        site.say(801, &pidf(&last.tag, 600), ""),
        Err(Refusal::Unmatched),
        "nothing is left to refresh"
    );
}

#[test]
fn rfc3903_6_each_step_refuses_with_its_own_status() {
    let large = "x".repeat(BODY_BYTES_MAX + 1);
    for (name, headers, body, refusal) in [
        ("step 2: no Event", "Content-Type: application/pidf+xml\r\n", "x", Refusal::BadEvent),
        ("step 2: an unknown package", "Event: weather\r\n", "x", Refusal::BadEvent),
        ("step 2: a template of a known one", "Event: presence.winfo\r\n", "x", Refusal::BadEvent),
        (
            "step 3: two tags",
            "Event: presence\r\nSIP-If-Match: TAG\r\nSIP-If-Match: TAG\r\n",
            "",
            Refusal::Malformed,
        ),
        (
            "step 3: two tags in one line",
            "Event: presence\r\nSIP-If-Match: TAG, TAG\r\n",
            "",
            Refusal::Malformed,
        ),
        (
            "step 3: a tag that nobody gave out",
            "Event: presence\r\nSIP-If-Match: 00000000000000000000000000000001\r\n",
            "",
            Refusal::Unmatched,
        ),
        (
            "step 3: no tag of ours at all",
            "Event: presence\r\nSIP-If-Match: dx200xyz\r\n",
            "",
            Refusal::Unmatched,
        ),
        (
            "step 3: the tag of another package",
            "Event: dialog\r\nSIP-If-Match: TAG\r\nContent-Type: application/dialog-info+xml\r\n",
            "x",
            Refusal::Unmatched,
        ),
        (
            "step 4: too brief",
            "Event: presence\r\nExpires: 59\r\nContent-Type: application/pidf+xml\r\n",
            "x",
            Refusal::TooBrief(60),
        ),
        (
            "step 4 comes before 5",
            "Event: presence\r\nExpires: 1\r\nContent-Type: text/plain\r\n",
            "x",
            Refusal::TooBrief(60),
        ),
        (
            "step 5: nothing to publish",
            "Event: presence\r\nContent-Type: application/pidf+xml\r\n",
            "",
            Refusal::Malformed,
        ),
        (
            "step 5: an unknown body",
            "Event: presence\r\nContent-Type: text/plain\r\n",
            "x",
            Refusal::Unreadable,
        ),
        ("step 5: a body without a type", "Event: presence\r\n", "x", Refusal::Unreadable),
        (
            "step 5: a body of another package",
            "Event: presence\r\nContent-Type: application/dialog-info+xml\r\n",
            "x",
            Refusal::Unreadable,
        ),
        (
            "step 5: a body that is packed",
            "Event: presence\r\nContent-Type: application/pidf+xml\r\nContent-Encoding: gzip\r\n",
            "x",
            Refusal::Unreadable,
        ),
        (
            "a modification is read too",
            "Event: presence\r\nSIP-If-Match: TAG\r\nContent-Type: text/plain\r\n",
            "x",
            Refusal::Unreadable,
        ),
        (
            "a body too large",
            "Event: presence\r\nContent-Type: application/pidf+xml\r\n",
            &*large,
            Refusal::TooLarge,
        ),
    ] {
        let mut site = Site::new();
        let tag = site.begin(0, "<open/>");
        site.causes();
        assert_eq!(site.say(1, &headers.replace("TAG", &tag), body), Err(refusal), "{name}");
        assert_eq!((site.bodies(), site.causes()), (vec!["<open/>".to_owned()], vec![]), "{name}");
        assert!(site.say(2, &pidf(&tag, 600), "").is_ok(), "{name}: the tag is still good");
    }
}

#[test]
fn rfc3903_6_a_tag_is_good_once_and_for_its_own_publisher_and_resource() {
    let mut site = Site::new();
    let tag = site.begin(0, "<open/>");
    for (name, target) in [
        ("somebody else's", Target { publisher: "mallory", ..ALICE }),
        ("of something else", Target { resource: "601", ..ALICE }),
    ] {
        assert_eq!(site.say_to(target, 1, &pidf(&tag, 0), ""), Err(Refusal::Unmatched), "{name}");
    }
    assert_eq!(site.bodies(), ["<open/>"]);
    let next = site.say(1, &pidf(&tag, 600), "").unwrap().tag;
    assert_eq!(site.say(2, &pidf(&tag, 600), "<closed/>"), Err(Refusal::Unmatched), "a tag that was used");
    assert!(site.say(3, &pidf(&next, 600), "<closed/>").is_ok());
}

#[test]
fn rfc3903_6_publications_lapse_when_nobody_refreshes_them() {
    let mut site = Site::new();
    let kept = site.begin(0, "<kept/>");
    site.begin(100, "<lost/>");
    site.say(500, &pidf(&kept, 600), "").unwrap();
    site.causes();
    let mut lapsed = Vec::new();
    while let Some(deadline) = site.compositor.deadline().filter(|deadline| *deadline < at(1000)) {
        site.compositor.due(deadline, &mut site.changes);
        lapsed.extend(site.changes.drain(..).map(|change| (deadline, change.cause)));
    }
    assert_eq!(lapsed, [(at(700), Expired)]);
    assert_eq!(site.bodies(), ["<kept/>"]);
    site.compositor.due(at(1100), &mut site.changes);
    assert_eq!(site.causes(), [Expired]);
    assert_eq!((site.compositor.len(), site.compositor.deadline()), (0, None));
}

#[test]
fn rfc3903_6_how_long_state_lasts_is_the_sites_to_say() {
    for (name, headers, seconds) in [
        ("nothing is asked for", "", 3600),
        ("as asked", "Expires: 61\r\n", 61),
        ("longer than the site wants", "Expires: 4000000000\r\n", 86_400),
        ("no time at all", "Expires: 0\r\n", 0),
    ] {
        let mut site = Site::new();
        let headers =
            format!("Event: presence\r\nContent-Type: application/pidf+xml;charset=utf-8\r\n{headers}");
        assert_eq!(site.say(0, &headers, "x").map(|granted| granted.seconds), Ok(seconds), "{name}");
        assert_eq!(site.compositor.len(), usize::from(seconds > 0), "{name}");
    }
}

#[test]
fn rfc3903_6_several_devices_of_one_user_are_several_publications() {
    let mut site = Site::new();
    site.begin(0, "<desk/>");
    let mobile = Target { publisher: "alice-mobile", ..ALICE };
    let tag = site.say_to(mobile, 1, &pidf("", 600), "<mobile/>").unwrap().tag;
    assert_eq!(site.bodies(), ["<desk/>", "<mobile/>"]);
    site.say_to(mobile, 2, &pidf(&tag, 0), "").unwrap();
    assert_eq!(site.bodies(), ["<desk/>"]);
    let mut changes = Vec::new();
    site.compositor.remove_those(&|_, publication| &*publication.publisher == "alice", &mut changes);
    assert_eq!(changes.iter().map(|change| change.cause).collect::<Vec<_>>(), [Removed]);
    assert!(site.compositor.is_empty());
}

#[test]
fn who_publishes_without_end_is_told_to_come_later_and_takes_no_room() {
    let mut site = Site::new();
    let first = site.begin(0, "<open/>");
    for _ in 1..PER_RESOURCE_MAX {
        site.begin(0, "<open/>");
    }
    assert_eq!(site.say(0, &pidf("", 600), "<open/>"), Err(Refusal::Full));
    assert!(site.say_to(Target { resource: "601", ..ALICE }, 0, &pidf("", 600), "x").is_ok(), "others may");
    assert!(site.say(1, &pidf(&first, 600), "<closed/>").is_ok(), "what is there may change");
    // All bodies together.
    let large = "x".repeat(BODY_BYTES_MAX);
    let mut site = Site::new();
    let mut taken = 0;
    let full = loop {
        let resource = (taken / PER_RESOURCE_MAX).to_string();
        let target = Target { resource: &resource, ..ALICE };
        match site.say_to(target, 0, &pidf("", 600), &large) {
            Ok(_) => taken += 1,
            Err(refusal) => break refusal,
        }
        site.changes.clear();
    };
    assert_eq!((full, taken), (Refusal::Full, BYTES_MAX / BODY_BYTES_MAX));
    site.compositor.due(at(600), &mut site.changes);
    assert_eq!(site.compositor.held, 0, "what has lapsed takes no room");
    assert!(site.say(601, &pidf("", 600), &large).is_ok());
}

/// Thousands of publishers that forget, guess and repeat: the tables never disagree, and time empties them.
#[test]
fn whatever_is_published_the_tables_agree_and_time_empties_them() {
    let mut random = kit::Random(3903);
    let mut site = Site::new();
    // Tags with their resource and publisher.
    let mut tags = vec![("dx200xyz".to_owned(), 0, 0)];
    let mut now = 0;
    for step in 0..20_000 {
        now += random.below(20) as u64;
        let (tag, mut resource, mut publisher) = match random.below(3) {
            0 => (String::new(), random.below(40), random.below(2)),
            _ => tags[random.below(tags.len())].clone(),
        };
        if random.below(10) == 0 {
            (resource, publisher) = (random.below(40), random.below(2));
        }
        let name = resource.to_string();
        let target = Target { resource: &name, publisher: ["a", "b"][publisher] };
        let seconds = [0, 60, 90, 600][random.below(4)];
        let body = "x".repeat(random.below(2) * random.below(50));
        if let Ok(granted) = site.say_to(target, now, &pidf(&tag, seconds), &body) {
            tags.push((granted.tag, resource, publisher));
            if tags.len() > 20 {
                tags.swap_remove(random.below(20));
            }
        }
        site.compositor.due(at(now), &mut site.changes);
        let compositor = &site.compositor;
        let subjects: usize = compositor.by_subject.values().map(Vec::len).sum();
        assert_eq!((compositor.by_tag.len(), subjects), (compositor.len(), compositor.len()), "{step}");
        let bytes: usize = compositor.entries.iter().map(|(_, entry)| entry.publication.body.len()).sum();
        assert_eq!(compositor.held, bytes, "{step}");
        let lapsed = |(_, entry): (Place, &Entry)| entry.publication.expires_at <= at(now);
        assert!(!compositor.entries.iter().any(lapsed), "{step}");
    }
    let added = site.changes.iter().filter(|change| change.cause == Added).count();
    for cause in [Added, Modified, Refreshed, Removed, Expired] {
        assert!(site.changes.iter().filter(|change| change.cause == cause).count() > 100, "{cause:?}");
    }
    site.compositor.due(at(now + 600), &mut site.changes);
    let gone = site.changes.iter().filter(|change| matches!(change.cause, Removed | Expired)).count();
    assert_eq!((site.compositor.len(), added), (0, gone), "who came has gone, once");
    assert!(site.compositor.by_subject.is_empty() && site.compositor.deadline().is_none());
}
