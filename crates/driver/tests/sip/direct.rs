//! Media from phone to phone: when it goes there, what brings it back, and offers that cross (RFC 3264 §8, RFC 3261 §14,
//! RFC 3311 §5).

use core::time::Duration;

use ::sip::OwnedMessage;
use base::{ChannelId, Command, FormatId};
use call::Location;
use driver::sip::{Config, DirectMedia, Dtmf, Glare};

use crate::lab::{Lab, body, change, header, line, site};
use crate::phone::{Phone, sdp, sdp_with, talking};

const HOST: &str = "198.51.100.7";
const ON: Option<DirectMedia> =
    Some(DirectMedia { by_update: false, glare: Glare::None, not_behind_nat: false });

struct Pair {
    lab: Lab,
    alice: Phone,
    trunk: Phone,
    caller: ChannelId,
    callee: ChannelId,
}

/// A site whose endpoints let media go from phone to phone.
fn open_site() -> Config {
    let mut config = site();
    for name in ["alice", "trunk"] {
        change(&mut config, name, |endpoint| endpoint.direct = ON);
    }
    config
}
/// A call from `alice`, who offers the first, to `trunk`, which answers with the second. They talk.
fn pair_of(config: Config, offer: &str, answer: &str) -> Pair {
    let (lab, [alice, trunk], [caller, callee]) = talking(config, offer, answer);
    Pair { lab, alice, trunk, caller, callee }
}
fn pair(config: Config) -> Pair {
    pair_of(config, &sdp(HOST, 4000, "0 101"), &sdp(HOST, 4100, "0 101"))
}

/// Where a description has its audio, and its formats.
fn place(message: &OwnedMessage) -> String {
    let text = body(message);
    let find = |start: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(start));
        line.unwrap_or_else(|| panic!("no {start} in {text}")).to_owned()
    };
    let (port, formats) =
        find("m=audio ").split_once(" RTP/AVP ").map(|(p, f)| (p.to_owned(), f.to_owned())).unwrap();
    let address = find("c=IN IP4 ");
    match address.as_str() {
        "192.0.2.1" => "ours".to_owned(),
        address => format!("{address}:{port} {formats}"),
    }
}

impl Pair {
    /// The next messages that leave, those to alice first: whose, what, and what they say of audio.
    fn told(&mut self) -> (Vec<OwnedMessage>, Vec<String>) {
        let mut sent: Vec<OwnedMessage> =
            std::iter::from_fn(|| self.lab.next()).map(|(_, message)| message).collect();
        let is_hers = |message: &OwnedMessage| header(message, "Call-ID") == self.alice.call_id;
        sent.sort_by_key(|message| !is_hers(message));
        let told = sent
            .iter()
            .map(|message| {
                let who = if is_hers(message) { "alice" } else { "trunk" };
                let said = if !body(message).contains("m=audio ") {
                    String::new()
                } else {
                    format!(" {}", place(message))
                };
                format!("{who} {}{said}", line(message))
            })
            .collect();
        (sent, told)
    }
    fn lines(&mut self) -> Vec<String> {
        self.told().1
    }
    /// Both answer what they are offered, from the ports that they have.
    fn agree(&mut self) -> Vec<String> {
        let (sent, told) = self.told();
        for message in sent.iter().filter(|message| matches!(line(message).as_str(), "INVITE" | "UPDATE")) {
            let hers = header(message, "Call-ID") == self.alice.call_id;
            let (phone, port) = if hers { (&self.alice, 4000) } else { (&self.trunk, 4100) };
            phone.respond(&mut self.lab, message, 200, "", &sdp(HOST, port, "0 101"));
        }
        told
    }
    /// Lets time pass until something leaves, which is agreed to; how long that took.
    fn until_agreed(&mut self, expected: &[&str]) -> Duration {
        let step = Duration::from_millis(10);
        for steps in 1..=500 {
            self.lab.pass(step);
            let told = self.agree();
            if !told.is_empty() {
                assert_eq!(told, expected);
                return step * steps;
            }
        }
        panic!("nothing left in five seconds");
    }
    /// Media has gone from phone to phone.
    fn settled(mut self) -> Self {
        assert_eq!(self.agree(), BOTH);
        assert_eq!(self.lines(), ["alice ACK", "trunk ACK"]);
        self
    }
    fn stream(&self, id: ChannelId) -> base::StreamId {
        self.lab.shard.core.borrow().get(id).unwrap().stream.unwrap()
    }
    fn plan(&self, id: ChannelId) -> base::Plan {
        self.lab.streams.borrow().open[&self.stream(id)].clone()
    }
    fn media(&mut self, command: Command) {
        self.lab.with(|_, core| core.media(command));
    }
}

/// Each is told of the other.
const BOTH: [&str; 2] = ["alice INVITE 198.51.100.7:4100 0 101", "trunk INVITE 198.51.100.7:4000 0 101"];
/// Each is told of us.
const BACK: [&str; 2] = ["alice INVITE ours", "trunk INVITE ours"];

#[test]
fn rfc3264_8_two_who_talk_are_told_each_others_address_and_their_streams_wait() {
    let mut config = open_site();
    change(&mut config, "alice", |alice| (alice.rtp_timeout, alice.rtp_keepalive) = (30, 10));
    let mut pair = pair(config);
    assert_eq!(pair.plan(pair.caller).rtp_timeout_ms, 30_000);
    let (sent, told) = pair.told();
    assert_eq!(told, BOTH);
    for message in &sent {
        let text = body(message);
        assert!(
            text.lines().any(|line| line.starts_with("o=- ") && line.ends_with("IN IP4 192.0.2.1")),
            "{text}"
        );
        assert!(!text.contains("a=rtcp"), "it is the next port: {text}");
    }
    pair.alice.respond(&mut pair.lab, &sent[0], 200, "", &sdp(HOST, 4000, "0 101"));
    pair.trunk.respond(&mut pair.lab, &sent[1], 200, "", &sdp(HOST, 4100, "0 101"));
    assert_eq!(pair.lines(), ["alice ACK", "trunk ACK"]);
    let plan = pair.plan(pair.caller);
    assert_eq!((plan.rtp_timeout_ms, plan.keepalive_ms, plan.rtcp_interval_ms), (0, 0, 0));
    assert_eq!(plan.remote, "198.51.100.7:4000".parse().ok(), "what still comes here is passed on");
    let direct = |pair: &Pair, id| pair.lab.read(id, "CHANNEL", "rtp,direct");
    assert_eq!(direct(&pair, pair.caller).as_deref(), Some("198.51.100.7:4100"));
    assert_eq!(direct(&pair, pair.callee).as_deref(), Some("198.51.100.7:4000"));
    // Nothing more to say, whatever else happens in the calls.
    pair.alice.inside(&mut pair.lab, "OPTIONS", "", "");
    assert_eq!(pair.lines(), ["alice 200"]);
    // Who is left is told of us first, and sent BYE when it has answered.
    pair.alice.inside(&mut pair.lab, "BYE", "", "");
    let (sent, told) = pair.told();
    assert_eq!(told, ["alice 200", "trunk INVITE ours"]);
    pair.trunk.respond(&mut pair.lab, &sent[1], 200, "", &sdp(HOST, 4100, "0 101"));
    let (sent, told) = pair.told();
    assert_eq!(told, ["trunk ACK", "trunk BYE"]);
    assert_eq!(header(&sent[1], "Reason"), "", "as the field says it then");
    pair.lab.rest();
}

#[test]
fn a_party_that_is_hung_up_in_the_midst_of_an_offer_is_sent_bye_whatever_it_answers() {
    for (status, expected) in [
        (200, &["trunk ACK", "trunk BYE"][..]),
        (488, &["trunk ACK", "trunk BYE"]),
        (491, &["trunk ACK", "trunk BYE"]),
        (481, &["trunk ACK", "trunk BYE"]),
        (0, &["trunk BYE"]),
    ] {
        let mut pair = pair(open_site()).settled();
        pair.alice.inside(&mut pair.lab, "BYE", "", "");
        let (sent, _) = pair.told();
        match status {
            0 => pair.lab.pass(Duration::from_secs(33)),
            _ => pair.trunk.respond(&mut pair.lab, &sent[1], status, "", &sdp(HOST, 4100, "0 101")),
        }
        let told = pair.lines();
        let told: Vec<_> = told.iter().filter(|told| !told.contains("INVITE")).collect();
        assert_eq!(told[..expected.len().min(told.len())], *expected, "{status}");
    }
}

#[test]
fn rfc5589_6_media_comes_back_before_a_transferer_is_told_anything() {
    let mut pair = pair(open_site()).settled();
    pair.trunk.inside(&mut pair.lab, "REFER", "Refer-To: <sip:200@strowger>\r\n", "");
    let (sent, told) = pair.told();
    assert_eq!(told, ["alice INVITE ours", "trunk 202", "trunk INVITE ours", "trunk NOTIFY"]);
    // His call is his to end, whatever else was asked of him.
    pair.trunk.respond(&mut pair.lab, &sent[2], 200, "", &sdp(HOST, 4100, "0 101"));
    assert_eq!(pair.lines(), ["trunk ACK"]);
}

#[test]
fn media_stays_here_where_it_could_not_be_understood_or_is_not_wanted_elsewhere() {
    let usual = || (sdp(HOST, 4000, "0 101"), sdp(HOST, 4100, "0 101"));
    let renumbered = sdp(HOST, 4100, "0 96").replace("rtpmap:101", "rtpmap:96");
    let nat = Some(DirectMedia { not_behind_nat: true, ..ON.unwrap() });
    type Change = fn(&mut driver::sip::Endpoint);
    let nothing: Change = |_| {};
    for (name, change_alice, change_trunk, (offer, answer), moves) in [
        ("both may", nothing, nothing, usual(), true),
        ("she may not", (|alice| alice.direct = None) as Change, nothing, usual(), false),
        ("it may not", nothing, (|trunk| trunk.direct = None) as Change, usual(), false),
        ("another format", nothing, nothing, (sdp(HOST, 4000, "0 101"), sdp(HOST, 4100, "8 101")), false),
        ("another number for digits", nothing, nothing, (sdp(HOST, 4000, "0 101"), renumbered), false),
        ("no digits on one side", nothing, nothing, (sdp(HOST, 4000, "0"), sdp(HOST, 4100, "0 101")), false),
        ("no digits on both", nothing, nothing, (sdp(HOST, 4000, "0"), sdp(HOST, 4100, "0")), true),
        (
            "tones are listened for",
            (|alice| alice.dtmf = Dtmf::Inband) as Change,
            nothing,
            (sdp(HOST, 4000, "0"), sdp(HOST, 4100, "0")),
            false,
        ),
        (
            "held",
            nothing,
            nothing,
            (sdp(HOST, 4000, "0 101"), sdp_with(HOST, 4100, "0 101", "a=sendonly\r\n")),
            false,
        ),
        ("another address", nothing, nothing, (sdp("203.0.113.7", 4000, "0 101"), usual().1), true),
        (
            "an address of its own network",
            nothing,
            nothing,
            (sdp("10.0.0.7", 4000, "0 101"), usual().1),
            false,
        ),
    ] {
        let mut config = open_site();
        change(&mut config, "alice", change_alice);
        change(&mut config, "trunk", change_trunk);
        let mut pair = pair_of(config, &offer, &answer);
        assert_eq!(pair.lines().len(), if moves { 2 } else { 0 }, "{name}");
    }
    // An address that is not that of the signalling is behind address translation.
    let mut config = open_site();
    change(&mut config, "alice", |alice| alice.direct = nat);
    let mut pair = pair_of(config, &sdp("203.0.113.7", 4000, "0 101"), &usual().1);
    assert_eq!(pair.lines(), Vec::<String>::new());
}

#[test]
fn who_is_behind_address_translation_is_reached_where_its_media_comes_from() {
    let mut config = open_site();
    change(&mut config, "alice", |alice| alice.rtp_symmetric = true);
    let mut pair = pair(config).settled();
    let (stream, remote) = (pair.stream(pair.caller), "198.51.100.7:30000".parse().unwrap());
    pair.lab.with(|sip, core| sip.media_event(core, base::Event::Latched { stream, remote }));
    assert_eq!(pair.lines(), ["trunk INVITE 198.51.100.7:30000 0 101"]);
}

#[test]
fn rfc3264_8_4_hold_brings_media_back_and_resuming_lets_it_go() {
    let mut pair = pair(open_site()).settled();
    pair.alice.inside(&mut pair.lab, "INVITE", "", &sdp_with(HOST, 4000, "0 101", "a=sendonly\r\n"));
    let (sent, told) = pair.told();
    // Whoever holds goes on sending where it was told to.
    assert_eq!(told, ["alice 200 198.51.100.7:4100 0 101", "trunk INVITE ours"]);
    pair.alice.ack(&mut pair.lab, &sent[0], "");
    pair.trunk.respond(&mut pair.lab, &sent[1], 200, "", &sdp(HOST, 4100, "0 101"));
    assert_eq!(pair.lines(), ["trunk ACK"]);
    pair.alice.inside(&mut pair.lab, "INVITE", "", &sdp(HOST, 4000, "0 101"));
    let (sent, told) = pair.told();
    assert_eq!(told, ["alice 200 198.51.100.7:4100 0 101", "trunk INVITE 198.51.100.7:4000 0 101"]);
    pair.alice.ack(&mut pair.lab, &sent[0], "");
    assert_eq!(pair.lines(), Vec::<String>::new(), "nothing is left to say");
}

#[test]
fn rfc4028_a_refresh_of_the_phones_changes_nothing() {
    let mut pair = pair(open_site()).settled();
    pair.alice.inside(&mut pair.lab, "INVITE", "", &sdp(HOST, 4000, "0 101"));
    let (sent, told) = pair.told();
    assert_eq!(told, ["alice 200 198.51.100.7:4100 0 101"]);
    pair.alice.ack(&mut pair.lab, &sent[0], "");
    // Another port is another thing: the other side hears of it.
    pair.alice.inside(&mut pair.lab, "INVITE", "", &sdp(HOST, 4002, "0 101"));
    let (_, told) = pair.told();
    assert_eq!(told, ["alice 200 198.51.100.7:4100 0 101", "trunk INVITE 198.51.100.7:4002 0 101"]);
}

#[test]
fn what_listens_or_speaks_here_brings_media_back_until_it_ends() {
    let mut pair = pair(open_site()).settled();
    let stream = pair.stream(pair.callee);
    pair.media(Command::DetectInband { stream, on: true });
    assert_eq!(pair.agree(), BACK);
    assert_eq!(pair.lines(), ["alice ACK", "trunk ACK"]);
    assert_eq!(pair.plan(pair.caller).rtcp_interval_ms, 5000);
    pair.media(Command::DetectInband { stream, on: false });
    assert_eq!(pair.agree(), BOTH);
    let fax = |watch| Command::WatchTone { stream, listener: base::Listener::Watcher, watch };
    pair.lines();
    pair.media(fax(Some(base::ToneWatch::default())));
    assert_eq!(pair.agree(), BACK);
    pair.lines();
    pair.media(fax(None));
    assert_eq!(pair.agree(), BOTH);
    // Without an offer the phone hears all that there is.
    assert_eq!(pair.lines(), ["alice ACK", "trunk ACK"]);
    pair.alice.inside(&mut pair.lab, "INVITE", "", "");
    let (sent, told) = pair.told();
    assert_eq!(told, ["alice 200 ours"]);
    pair.alice.ack(&mut pair.lab, &sent[0], &sdp(HOST, 4000, "0 101"));
    assert_eq!(pair.lines(), ["alice INVITE 198.51.100.7:4100 0 101"]);
}

#[test]
fn media_comes_back_when_the_two_part() {
    let mut pair = pair(open_site()).settled();
    let (caller, to) =
        (pair.caller, Location { context: "phones".to_owned(), exten: "1".to_owned(), priority: 1 });
    pair.lab.with(|_, core| core.request_goto(caller, to));
    assert_eq!(pair.lines(), ["alice INVITE ours", "trunk INVITE ours"]);
    assert_eq!(pair.lab.read(caller, "CHANNEL", "rtp,direct").as_deref(), Some("(null)"));
}

#[test]
fn rfc3261_14_1_an_offer_that_crosses_one_of_the_phone_is_made_again() {
    let mut pair = pair(open_site());
    let (sent, told) = pair.told();
    assert_eq!(told, BOTH);
    // She asks for something herself at the same time.
    pair.alice.inside(&mut pair.lab, "INVITE", "", &sdp(HOST, 4000, "0 101"));
    let refusal = pair.lab.sent();
    assert_eq!(line(&refusal), "491");
    let number = header(&refusal, "CSeq").split(' ').next().unwrap().parse().unwrap();
    let ack = pair.alice.same_branch("ACK", "sip:100@192.0.2.1", number, "", "");
    pair.lab.receive(pair.alice.flow, ack);
    pair.alice.respond(&mut pair.lab, &sent[0], 491, "", "");
    pair.trunk.respond(&mut pair.lab, &sent[1], 200, "", &sdp(HOST, 4100, "0 101"));
    assert_eq!(pair.lines(), ["alice ACK", "trunk ACK"]);
    let waited = pair.until_agreed(&BOTH[..1]);
    assert!(waited <= Duration::from_secs(2), "she made the call: {waited:?}");
    assert_eq!(pair.lines(), ["alice ACK"]);
    pair.lab.pass(Duration::from_secs(60));
    assert_eq!(pair.lines(), Vec::<String>::new());
}

#[test]
fn rfc3311_5_offers_leave_in_updates_where_the_phone_takes_them() {
    let mut config = open_site();
    for name in ["alice", "trunk"] {
        let by_update = Some(DirectMedia { by_update: true, ..ON.unwrap() });
        change(&mut config, name, |endpoint| endpoint.direct = by_update);
    }
    let mut pair = pair(config);
    // She never said that she takes it.
    let (sent, told) = pair.told();
    assert_eq!(told, [BOTH[0], "trunk UPDATE 198.51.100.7:4000 0 101"]);
    pair.alice.respond(&mut pair.lab, &sent[0], 200, "", &sdp(HOST, 4000, "0 101"));
    pair.trunk.respond(&mut pair.lab, &sent[1], 491, "", "");
    assert_eq!(pair.lines(), ["alice ACK"]);
    assert_eq!(pair.lab.read(pair.callee, "CHANNEL", "rtp,direct").as_deref(), Some("(null)"));
    let waited = pair.until_agreed(&["trunk UPDATE 198.51.100.7:4000 0 101"]);
    let (least, most) = (Duration::from_millis(2_100), Duration::from_secs(4));
    assert!((least..=most).contains(&waited), "we made the call: {waited:?}");
    assert_eq!(pair.lab.read(pair.callee, "CHANNEL", "rtp,direct").as_deref(), Some("198.51.100.7:4000"));
    assert_eq!(pair.plan(pair.callee).rtcp_interval_ms, 0);
}

#[test]
fn rfc6337_2_2_the_first_offer_of_a_leg_is_left_out_to_spare_a_glare() {
    for (glare, first, second) in [(Glare::Outgoing, BOTH[0], "trunk"), (Glare::Incoming, BOTH[1], "alice")] {
        let mut config = open_site();
        for name in ["alice", "trunk"] {
            let careful = Some(DirectMedia { glare, ..ON.unwrap() });
            change(&mut config, name, |endpoint| endpoint.direct = careful);
        }
        let mut pair = pair(config);
        assert_eq!(pair.agree(), [first], "{glare:?}");
        pair.lab.lines();
        // The peer makes its own, which is answered by what ours would have said.
        let (phone, port, other) =
            if second == "trunk" { (&mut pair.trunk, 4100, 4000) } else { (&mut pair.alice, 4000, 4100) };
        phone.inside(&mut pair.lab, "INVITE", "", &sdp(HOST, port, "0 101"));
        assert_eq!(pair.lines(), [format!("{second} 200 198.51.100.7:{other} 0 101")], "{glare:?}");
    }
}

#[test]
fn a_phone_that_will_not_has_its_media_here_and_so_has_the_other() {
    let mut pair = pair(open_site());
    let (sent, _) = pair.told();
    pair.alice.respond(&mut pair.lab, &sent[0], 488, "", "");
    pair.trunk.respond(&mut pair.lab, &sent[1], 200, "", &sdp(HOST, 4100, "0 101"));
    let (sent, mut told) = pair.told();
    told.sort();
    assert_eq!(told, ["alice ACK", "trunk ACK", "trunk INVITE ours"]);
    let back = sent.iter().find(|message| line(message) == "INVITE").unwrap();
    pair.trunk.respond(&mut pair.lab, back, 200, "", &sdp(HOST, 4100, "0 101"));
    assert_eq!(pair.lines(), ["trunk ACK"]);
    pair.lab.pass(Duration::from_secs(60));
    assert_eq!(pair.lines(), Vec::<String>::new());
}

#[test]
fn phones_that_take_another_port_each_time_are_not_followed_for_ever() {
    let mut pair = pair(open_site());
    let mut port = 4200;
    for round in 0.. {
        assert!(round < 40, "it comes to an end");
        let (sent, told) = pair.told();
        let asked = sent.iter().filter(|message| line(message) == "INVITE").collect::<Vec<_>>();
        if asked.is_empty() {
            assert!(told.iter().all(|line| line.ends_with("ACK")), "{told:?}");
            break;
        }
        for message in asked {
            port += 2;
            let phone =
                if header(message, "Call-ID") == pair.alice.call_id { &pair.alice } else { &pair.trunk };
            phone.respond(&mut pair.lab, message, 200, "", &sdp(HOST, port, "0 101"));
        }
    }
    for id in [pair.caller, pair.callee] {
        assert_eq!(pair.lab.read(id, "CHANNEL", "rtp,direct").as_deref(), Some("(null)"), "it stays here");
    }
}

#[test]
fn rfc3264_8_3_2_who_was_answered_before_is_asked_to_take_what_the_other_sends() {
    let formats = [FormatId::ULAW, FormatId::GSM];
    let both_may = || {
        let mut config = site();
        for name in ["alice", "trunk"] {
            change(&mut config, name, |endpoint| endpoint.allow = formats.into_iter().collect());
        }
        config
    };
    let first = |message: &OwnedMessage| {
        let text = body(message);
        let line = text.lines().find_map(|line| line.strip_prefix("m=audio ")).unwrap().to_owned();
        line.split(' ').nth(2).unwrap().to_owned()
    };
    // The called party takes another format than the caller was answered with.
    let mut pair = pair_of(both_may(), &sdp(HOST, 4000, "0 3 101"), &sdp(HOST, 4100, "3 101"));
    let (sent, told) = pair.told();
    assert_eq!((told, first(&sent[0])), (vec!["alice INVITE ours".to_owned()], "3".to_owned()));
    pair.alice.respond(&mut pair.lab, &sent[0], 200, "", &sdp(HOST, 4000, "3 0 101"));
    assert_eq!(pair.lines(), ["alice ACK"]);
    assert_eq!(
        (pair.plan(pair.caller).format, pair.plan(pair.callee).format),
        (FormatId::GSM, FormatId::GSM)
    );
    // It changes to the other during the call: she is asked to follow.
    pair.trunk.inside(&mut pair.lab, "INVITE", "", &sdp(HOST, 4100, "0 101"));
    let (sent, told) = pair.told();
    assert_eq!(told, ["alice INVITE ours", "trunk 200 ours"]);
    assert_eq!(first(&sent[0]), "0");
    pair.trunk.ack(&mut pair.lab, &sent[1], "");
    // She will not, and is not asked again.
    pair.alice.respond(&mut pair.lab, &sent[0], 488, "", "");
    assert_eq!(pair.lines(), ["alice ACK"]);
    pair.lab.pass(Duration::from_secs(60));
    assert_eq!(pair.lines(), Vec::<String>::new());
    // She changes back herself: then it is the other that is asked.
    pair.alice.inside(&mut pair.lab, "INVITE", "", &sdp(HOST, 4000, "3 0 101"));
    let (sent, told) = pair.told();
    assert_eq!(told, ["alice 200 ours", "trunk INVITE ours"]);
    assert_eq!(first(&sent[1]), "3");
}

#[test]
fn rfc3264_8_4_a_hold_is_passed_on_to_a_phone_that_plays_its_own_music() {
    let mut config = site();
    change(&mut config, "trunk", |trunk| trunk.passes_hold = true);
    let mut pair = pair(config);
    for (offered, told, direction) in [
        ("a=sendonly\r\n", "a=sendonly", base::Direction::SendOnly),
        ("a=sendrecv\r\n", "a=sendrecv", base::Direction::SendRecv),
    ] {
        pair.alice.inside(&mut pair.lab, "INVITE", "", &sdp_with(HOST, 4000, "0 101", offered));
        let (sent, lines) = pair.told();
        assert_eq!(lines, ["alice 200 ours", "trunk INVITE ours"], "{told}");
        assert!(body(&sent[1]).contains(told), "{}", body(&sent[1]));
        pair.alice.ack(&mut pair.lab, &sent[0], "");
        let answer = if told == "a=sendonly" { "a=recvonly\r\n" } else { "" };
        pair.trunk.respond(&mut pair.lab, &sent[1], 200, "", &sdp_with(HOST, 4100, "0 101", answer));
        assert_eq!(pair.lines(), ["trunk ACK"]);
        assert_eq!(pair.plan(pair.callee).direction, direction, "{told}");
    }
    // One that is held when the other leaves is held no longer.
    pair.trunk.inside(&mut pair.lab, "INVITE", "", &sdp_with(HOST, 4100, "0 101", "a=inactive\r\n"));
    assert_eq!(pair.lines(), ["trunk 200 ours"], "she plays none of her own");
}

#[test]
fn a_hold_that_nobody_is_to_hear_is_kept_from_the_other_party() {
    for silent in [false, true] {
        let mut config = site();
        change(&mut config, "alice", |alice| alice.silent_hold = silent);
        let mut pair = pair(config);
        pair.alice.inside(&mut pair.lab, "INVITE", "", &sdp_with(HOST, 4000, "0 101", "a=sendonly\r\n"));
        assert_eq!(pair.lines(), ["alice 200 ours"]);
        let held = pair.lab.shard.core.borrow().get(pair.caller).unwrap().held;
        assert_eq!((held, pair.plan(pair.caller).direction), (!silent, base::Direction::RecvOnly));
    }
}

#[test]
fn media_is_bound_to_the_address_that_descriptions_name_when_that_is_wanted() {
    for (bind, expected) in [(false, "192.0.2.1"), (true, "192.0.2.99")] {
        let mut config = site();
        change(&mut config, "alice", |alice| {
            (alice.media_address, alice.bind_media) = ("192.0.2.99".parse().ok(), bind);
        });
        let mut lab = Lab::new(config);
        let id = Phone::new("alice").invite(&mut lab, "100", &sdp(HOST, 4000, "0 101"));
        lab.answer(id);
        assert!(body(&lab.sent()).contains("c=IN IP4 192.0.2.99"));
        assert_eq!(lab.streams.borrow().bound, expected.parse().ok());
    }
}

#[test]
fn rfc3551_4_5_4_what_an_endpoint_calls_g726_may_be_packed_the_other_way() {
    for (so_called, expected) in [(false, FormatId::G726), (true, FormatId::G726AAL2)] {
        let mut config = site();
        change(&mut config, "alice", |alice| {
            (alice.allow, alice.g726_aal2) = ([FormatId::G726].into_iter().collect(), so_called);
        });
        let mut lab = Lab::new(config);
        let offer = sdp_with(HOST, 4000, "111", "a=rtpmap:111 G726-32/8000\r\n");
        let id = Phone::new("alice").invite(&mut lab, "100", &offer);
        lab.answer(id);
        assert!(body(&lab.sent()).contains("a=rtpmap:111 G726-32/8000"));
        let plan = lab.plan();
        assert_eq!((plan.format, plan.rx[0]), (expected, Some(base::RxPayload::Audio(111, expected))));
    }
}

#[test]
fn fax_comes_here_from_phones_whose_audio_did_not_and_audio_goes_back_there() {
    let mut config = open_site();
    for name in ["alice", "trunk"] {
        change(&mut config, name, |endpoint| endpoint.fax = Some(driver::sip::FaxSettings::default()));
    }
    let fax = |port: u16| {
        sdp(HOST, port, "0")
            .replace(&format!("m=audio {port} RTP/AVP 0"), &format!("m=image {port} udptl t38"))
    };
    let is_ours = |message: &OwnedMessage| {
        let text = body(message);
        text.contains("c=IN IP4 192.0.2.1\r\n") && text.contains(" udptl t38\r\n")
    };
    let mut pair = pair(config).settled();
    pair.trunk.inside(&mut pair.lab, "INVITE", "", &fax(4200));
    let asked = pair.lab.sent();
    assert!(line(&asked) == "INVITE" && is_ours(&asked), "{}", body(&asked));
    pair.alice.respond(&mut pair.lab, &asked, 200, "", &fax(4300));
    let (ack, answer) = (pair.lab.sent(), pair.lab.sent());
    assert!(line(&ack) == "ACK" && line(&answer) == "200" && is_ours(&answer), "{}", body(&answer));
    pair.trunk.ack(&mut pair.lab, &answer, "");
    assert_eq!(pair.lines(), Vec::<String>::new());
    // Back to audio, and there.
    pair.trunk.inside(&mut pair.lab, "INVITE", "", &sdp(HOST, 4100, "0 101"));
    let (sent, told) = pair.told();
    assert_eq!(told, ["alice INVITE ours", "trunk 200 ours"]);
    pair.trunk.ack(&mut pair.lab, &sent[1], "");
    pair.alice.respond(&mut pair.lab, &sent[0], 200, "", &sdp(HOST, 4000, "0 101"));
    let (_, mut told) = pair.told();
    told.sort();
    assert_eq!(told, ["alice ACK", BOTH[0], BOTH[1]]);
}
