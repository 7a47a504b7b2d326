//! Fax between two calls: who is asked, what is answered, and how it ends (ITU-T T.38 annex D, RFC 3264 §8.3.3).

use ::sip::OwnedMessage;
use base::{Cause, ChannelId, Direction, Fax, FormatId, UdptlProtection};
use driver::sip::FaxSettings;

use crate::lab::{Lab, body, change, line, site};
use crate::phone::{Phone, sdp, talking};

/// A description of fax at a port, with this last line.
fn fax(port: u16, protection: &str) -> String {
    format!(
        "v=0\r\no=- 1 {port} IN IP4 198.51.100.7\r\ns=-\r\nc=IN IP4 198.51.100.7\r\nt=0 0\r\nm=image {port} udptl t38\r\n\
         a=T38FaxVersion:0\r\na=T38MaxBitRate:14400\r\na=T38FaxRateManagement:transferredTCF\r\n\
         a=T38FaxMaxBuffer:262\r\na=T38FaxMaxDatagram:176\r\n{protection}"
    )
}
const REDUNDANCY: &str = "a=T38FaxUdpEC:t38UDPRedundancy\r\n";

struct Pair {
    lab: Lab,
    alice: Phone,
    trunk: Phone,
    caller: ChannelId,
    callee: ChannelId,
}

/// A call from `alice` to `trunk` that is up.
fn pair(alices: Option<FaxSettings>, trunks: Option<FaxSettings>) -> Pair {
    let mut config = site();
    change(&mut config, "alice", |alice| alice.fax = alices);
    change(&mut config, "trunk", |trunk| trunk.fax = trunks);
    let audio = |port| sdp("198.51.100.7", port, "0 101");
    let (lab, [alice, trunk], [caller, callee]) = talking(config, &audio(4000), &audio(4100));
    Pair { lab, alice, trunk, caller, callee }
}

impl Pair {
    /// What the stream of a channel carries, and where to.
    fn carries(&self, id: ChannelId) -> (Option<Fax>, Option<u16>, Direction) {
        let stream = self.lab.shard.core.borrow().get(id).unwrap().stream.unwrap();
        let streams = self.lab.streams.borrow();
        let plan = &streams.open[&stream];
        (streams.fax.get(&stream).copied().flatten(), plan.remote.map(|at| at.port()), plan.direction)
    }
    /// Both sides of a fax that the trunk asks for.
    fn begin_fax(&mut self) -> OwnedMessage {
        self.trunk.inside(&mut self.lab, "INVITE", "", &fax(4200, ""));
        let asked = self.lab.sent();
        self.alice.respond(&mut self.lab, &asked, 200, "", &fax(4300, REDUNDANCY));
        let ack = self.lab.sent();
        assert_eq!(line(&ack), "ACK");
        let answer = self.lab.sent();
        assert_eq!(line(&answer), "200");
        self.trunk.ack(&mut self.lab, &answer, "");
        answer
    }
}

/// The stream line of a description.
fn stream(message: &OwnedMessage) -> String {
    let text = body(message);
    let line = text.lines().filter(|line| line.starts_with("m=")).collect::<Vec<_>>();
    assert_eq!(line.len(), 1, "{text}");
    line[0]
        .split(' ')
        .enumerate()
        .filter(|(at, _)| *at != 1)
        .map(|(_, word)| word)
        .collect::<Vec<_>>()
        .join(" ")
}

const ON: Option<FaxSettings> =
    Some(FaxSettings { protection: UdptlProtection::Fec, datagram_max: 0, nat: false });

#[test]
fn t38_d_2_a_fax_that_one_side_asks_for_is_offered_to_the_other_and_both_carry_it() {
    let mut pair = pair(ON, ON);
    pair.trunk.inside(&mut pair.lab, "INVITE", "", &fax(4200, ""));
    let asked = pair.lab.sent();
    assert_eq!((line(&asked), stream(&asked)), ("INVITE".to_owned(), "m=image udptl t38".to_owned()));
    for said in [
        "a=T38FaxVersion:0",
        "a=T38MaxBitRate:14400",
        "a=T38FaxRateManagement:transferredTCF",
        "a=T38FaxMaxBuffer:262",
        "a=T38FaxUdpEC:t38UDPFEC",
    ] {
        assert!(body(&asked).lines().any(|line| line == said), "{said} in {}", body(&asked));
    }
    assert_eq!(pair.lab.lines(), Vec::<String>::new(), "who asks waits");
    assert_eq!(pair.carries(pair.caller).0, None);
    let slower = fax(4300, REDUNDANCY).replace("14400", "9600");
    pair.alice.respond(&mut pair.lab, &asked, 200, "", &slower);
    assert_eq!(line(&pair.lab.sent()), "ACK");
    let answer = pair.lab.sent();
    assert_eq!((line(&answer), stream(&answer)), ("200".to_owned(), "m=image udptl t38".to_owned()));
    assert!(body(&answer).contains("a=T38MaxBitRate:9600\r\n"), "{}", body(&answer));
    assert!(!body(&answer).contains("T38FaxUdpEC"), "it protects nothing itself: {}", body(&answer));
    pair.trunk.ack(&mut pair.lab, &answer, "");
    let carried = |protection| Some(Fax { protection, datagram_max: 176 });
    let redundancy = carried(UdptlProtection::Redundancy);
    assert_eq!(pair.carries(pair.caller), (redundancy, Some(4300), Direction::Inactive));
    assert_eq!(pair.carries(pair.callee), (carried(UdptlProtection::None), Some(4200), Direction::Inactive));
    // One that comes again changes the address only.
    pair.trunk.inside(&mut pair.lab, "INVITE", "", &fax(4202, ""));
    let answer = pair.lab.sent();
    assert_eq!(stream(&answer), "m=image udptl t38");
    pair.trunk.ack(&mut pair.lab, &answer, "");
    assert_eq!(pair.carries(pair.callee).1, Some(4202));
    assert_eq!(pair.lab.lines(), Vec::<String>::new());
    pair.alice.inside(&mut pair.lab, "BYE", "", "");
    assert_eq!(pair.lab.lines(), ["200", "BYE"]);
}

#[test]
fn rfc3264_8_3_3_who_goes_back_to_audio_takes_the_other_along() {
    let mut pair = pair(ON, ON);
    pair.begin_fax();
    pair.alice.inside(&mut pair.lab, "INVITE", "", &sdp("198.51.100.7", 4002, "0 101"));
    let mut sent = [pair.lab.sent(), pair.lab.sent()];
    sent.sort_by_key(line);
    let [answer, asked] = &sent;
    assert_eq!((line(answer), line(asked)), ("200".to_owned(), "INVITE".to_owned()));
    assert!(stream(asked).starts_with("m=audio RTP/AVP"), "{}", body(asked));
    pair.alice.ack(&mut pair.lab, answer, "");
    pair.trunk.respond(&mut pair.lab, asked, 200, "", &sdp("198.51.100.7", 4102, "0 101"));
    assert_eq!(pair.lab.lines(), ["ACK"]);
    for (id, port) in [(pair.caller, 4002), (pair.callee, 4102)] {
        assert_eq!(pair.carries(id), (None, Some(port), Direction::SendRecv));
    }
    // And to fax again.
    pair.begin_fax();
    assert!(pair.carries(pair.caller).0.is_some() && pair.carries(pair.callee).0.is_some());
}

#[test]
fn fax_that_cannot_be_is_refused_and_the_audio_goes_on() {
    for (name, alices, trunks) in
        [("it may not", ON, None), ("the other may not", None, ON), ("neither may", None, None)]
    {
        let mut pair = pair(alices, trunks);
        pair.trunk.inside(&mut pair.lab, "INVITE", "", &fax(4200, ""));
        assert_eq!(pair.lab.lines(), ["488"], "{name}");
        assert_eq!(pair.carries(pair.callee), (None, Some(4100), Direction::SendRecv), "{name}");
    }
    // The other side is asked and says no, in whatever way.
    for (name, status, answer) in [
        ("it refuses", 488, String::new()),
        ("it is busy with something", 500, String::new()),
        ("it takes no stream", 200, fax(0, "")),
    ] {
        let mut pair = pair(ON, ON);
        pair.trunk.inside(&mut pair.lab, "INVITE", "", &fax(4200, ""));
        let asked = pair.lab.sent();
        pair.alice.respond(&mut pair.lab, &asked, status, "", &answer);
        let mut lines = pair.lab.lines();
        lines.sort();
        let expected = if status == 200 { vec!["488", "ACK", "INVITE"] } else { vec!["488", "ACK"] };
        assert_eq!(lines, expected, "{name}");
        for (id, port) in [(pair.caller, 4000), (pair.callee, 4100)] {
            assert_eq!(pair.carries(id), (None, Some(port), Direction::SendRecv), "{name}");
        }
    }
    // A call that talks to nobody.
    let mut config = site();
    change(&mut config, "alice", |alice| alice.fax = ON);
    let mut lab = Lab::new(config);
    let mut alice = Phone::new("alice");
    let id = alice.invite(&mut lab, "100", &sdp("198.51.100.7", 4000, "0 101"));
    lab.answer(id);
    let answer = lab.sent();
    alice.ack(&mut lab, &answer, "");
    alice.inside(&mut lab, "INVITE", "", &fax(4200, ""));
    assert_eq!(lab.lines(), ["488"]);
    assert_eq!(lab.plan().format, FormatId::ULAW);
}

#[test]
fn a_call_that_ends_while_fax_is_asked_for_leaves_nothing_behind() {
    // Who was asked goes.
    let mut pair = pair(ON, ON);
    pair.trunk.inside(&mut pair.lab, "INVITE", "", &fax(4200, ""));
    assert_eq!(line(&pair.lab.sent()), "INVITE");
    pair.alice.inside(&mut pair.lab, "BYE", "", "");
    let lines = pair.lab.lines();
    assert_eq!(lines, ["200", "487", "BYE"], "who asked is hung up, too");
    pair.lab.rest();
    // Who asked is hung up.
    let mut pair = self::pair(ON, ON);
    pair.trunk.inside(&mut pair.lab, "INVITE", "", &fax(4200, ""));
    assert_eq!(line(&pair.lab.sent()), "INVITE");
    pair.lab.finish(pair.callee, Cause::NORMAL_CLEARING);
    let lines = pair.lab.lines();
    assert!(lines.contains(&"487".to_owned()), "{lines:?}");
    pair.lab.rest();
}

#[test]
fn datagrams_are_sent_as_the_endpoint_says() {
    let settings = FaxSettings { protection: UdptlProtection::Redundancy, datagram_max: 320, nat: true };
    let mut pair = pair(Some(settings), ON);
    pair.begin_fax();
    let carried = pair.carries(pair.caller).0;
    assert_eq!(carried, Some(Fax { protection: UdptlProtection::Redundancy, datagram_max: 320 }));
    let stream = pair.lab.shard.core.borrow().get(pair.caller).unwrap().stream.unwrap();
    let latch = pair.lab.streams.borrow().open[&stream].latch;
    assert_eq!(latch, base::Latch::Learn("198.51.100.7".parse().unwrap()));
}

/// Somebody else sends the caller elsewhere, out of the call.
fn part(pair: &mut Pair) {
    let to = call::Location { context: "phones".to_owned(), exten: "1".to_owned(), priority: 1 };
    let caller = pair.caller;
    pair.lab.with(|_, core| core.request_goto(caller, to));
}

#[test]
fn rfc3264_8_3_3_who_is_left_alone_with_a_fax_is_taken_back_to_audio_or_ends() {
    let mut pair = pair(ON, ON);
    pair.begin_fax();
    part(&mut pair);
    let mut sent = [pair.lab.sent(), pair.lab.sent()];
    sent.sort_by_key(line);
    let [bye, asked] = &sent;
    assert_eq!((line(bye), line(asked)), ("BYE".to_owned(), "INVITE".to_owned()));
    assert!(stream(asked).starts_with("m=audio RTP/AVP"), "{}", body(asked));
    assert!(pair.carries(pair.caller).0.is_some(), "until it has answered");
    pair.alice.respond(&mut pair.lab, asked, 200, "", &sdp("198.51.100.7", 4004, "0 101"));
    assert_eq!(pair.lab.lines(), ["ACK"]);
    assert_eq!(pair.carries(pair.caller), (None, Some(4004), Direction::SendRecv));
    // One that will not go back carries nothing any more.
    let mut pair = self::pair(ON, ON);
    pair.begin_fax();
    part(&mut pair);
    let asked =
        std::iter::from_fn(|| pair.lab.next()).map(|(_, sent)| sent).find(|sent| line(sent) == "INVITE");
    pair.alice.respond(&mut pair.lab, &asked.unwrap(), 488, "", "");
    assert_eq!(pair.lab.lines(), ["ACK"]);
    let hangup = pair.lab.shard.core.borrow().get(pair.caller).unwrap().hangup;
    assert_eq!(hangup, Some(Cause::BEARERCAPABILITY_NOTAVAIL));
    // Who waits for an answer to its offer of fax is not left waiting.
    let mut pair = self::pair(ON, ON);
    pair.trunk.inside(&mut pair.lab, "INVITE", "", &fax(4200, ""));
    let asked = pair.lab.sent();
    part(&mut pair);
    let lines = pair.lab.lines();
    assert!(lines.iter().any(|line| line == "487" || line == "488"), "{lines:?}");
    pair.alice.respond(&mut pair.lab, &asked, 200, "", &fax(4300, REDUNDANCY));
    assert_eq!(pair.lab.lines(), ["ACK", "INVITE"], "it has taken what nobody wants any more");
}

#[test]
fn a_caller_of_an_endpoint_with_fax_detect_is_listened_to_and_an_offer_of_t38_says_that_it_is_a_fax() {
    let watch = call::FaxWatch { tone: true, offer: true, timeout: std::time::Duration::ZERO };
    for detects in [Some(watch), None] {
        let mut config = site();
        change(&mut config, "alice", |alice| alice.fax_detect = detects);
        let mut lab = Lab::new(config);
        lab.shard.core.borrow_mut().reach = |_, _, exten, _| match exten {
            "fax" | "100" => call::Reach::Whole,
            _ => call::Reach::None,
        };
        let mut alice = Phone::new("alice");
        let id = alice.invite(&mut lab, "100", &sdp("198.51.100.7", 4000, "0 101"));
        lab.shard.core.borrow_mut().enter_pbx(id);
        assert_eq!(lab.streams.borrow().tones, [], "it is not answered");
        lab.answer(id);
        let ok = lab.sent();
        alice.ack(&mut lab, &ok, "");
        let stream = lab.shard.core.borrow().get(id).unwrap().stream.unwrap();
        let listens: Vec<_> = detects.iter().map(|_| (stream, true)).collect();
        assert_eq!(lab.streams.borrow().tones, listens);
        alice.inside(&mut lab, "INVITE", "", &fax(4200, ""));
        assert_eq!(line(&lab.sent()), "488", "nobody here speaks fax");
        let goto = lab.shard.core.borrow().get(id).unwrap().goto.clone();
        let to = goto.map(|goto| match goto {
            call::Elsewhere::Dialplan(to) => to.exten.to_string(),
            call::Elsewhere::Story(_) => "a story".to_owned(),
        });
        assert_eq!(to, detects.map(|_| "fax".to_owned()));
    }
}
