//! Anything in any order: no panic, no stream, channel or dialog left behind.

use core::time::Duration;

use base::Cause;
use call::Indication;

use crate::lab::{Lab, line, site, udp};
use crate::phone::{Phone, sdp, sdp_with};

/// SplitMix64; the seed is in the name of the failure.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// Steps of one storm.
const STEPS: usize = 120;
/// Storms.
const SEEDS: u64 = 100;

fn any_body(random: &mut Random) -> String {
    match random.below(7) {
        0 => String::new(),
        1 => "v=0\r\nm=audio\r\n".to_owned(),
        2 => sdp("198.51.100.7", 0, "0"),
        3 => sdp("198.51.100.7", 4000, "3 97"),
        4 => sdp_with(
            "198.51.100.7",
            4000,
            "0 101",
            random.pick(&["a=sendonly\r\n", "a=inactive\r\n", "a=ptime:60\r\n"]),
        ),
        5 => sdp("0.0.0.0", 4000, "8"),
        _ => sdp("198.51.100.7", 4000, "0 8 101"),
    }
}

/// Damages a message: bytes lost, doubled or changed.
fn damage(random: &mut Random, text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        match random.below(3) {
            0 => bytes.truncate(at.max(1)),
            1 => bytes[at] = random.next() as u8,
            _ => bytes.insert(at, random.pick(b"\r\n \0;,<>\"@%")),
        }
    }
    bytes
}

fn storm(seed: u64) {
    let mut random = Random(seed);
    let mut lab = Lab::new(site());
    let mut phones: Vec<Phone> = (0..4)
        .map(|n| Phone::at("trunk", udp(&format!("198.51.100.{n}:5060"))).call(&format!("c{n}")))
        .collect();
    let methods =
        ["INVITE", "ACK", "BYE", "CANCEL", "UPDATE", "INFO", "OPTIONS", "REGISTER", "REFER", "PRACK"];
    for _ in 0..STEPS {
        let which = random.below(phones.len());
        let phone = &mut phones[which];
        match random.below(8) {
            0..=2 => {
                let method = random.pick(&methods);
                let (uri, body) = ("sip:100@strowger", any_body(&mut random));
                let text = match method {
                    "CANCEL" | "ACK" => phone.same_branch(method, uri, phone.cseq, "", &body),
                    _ => phone.request(method, uri, "", &body),
                };
                let flow = phone.flow;
                lab.receive(flow, &text);
                if random.below(4) == 0 {
                    lab.receive(flow, damage(&mut random, &text));
                }
            }
            3 => {
                let uri = format!("trunk/sip:x@{}", phone.flow.remote);
                lab.dial(&uri).ok();
            }
            4 => {
                let ids: Vec<_> = lab.shard.core.borrow().channels().map(|c| (c.id, c.outgoing)).collect();
                if !ids.is_empty() {
                    let (id, outgoing) = random.pick(&ids);
                    match random.below(4) {
                        0 if !outgoing => lab.answer(id),
                        1 => lab.indicate(id, Indication::Ringing),
                        2 => lab.indicate(id, Indication::Progress),
                        _ => lab.finish(
                            id,
                            random.pick(&[Cause::NORMAL_CLEARING, Cause::USER_BUSY, Cause::NONE]),
                        ),
                    }
                }
            }
            5 => lab.pass(Duration::from_millis(random.next() % 40_000)),
            // A fork of the last request of ours answers.
            _ => {
                while let Some((flow, message)) = lab.next() {
                    if message.view().status().is_some() {
                        if let Some(tag) = message.view().to_tag().filter(|_| random.below(2) == 0) {
                            phones[which].remote_tag = String::from_utf8_lossy(tag).into_owned();
                        }
                        continue;
                    }
                    let mut peer = Phone::at("trunk", flow);
                    peer.tag = random.pick(&["left", "right", "third"]).to_owned();
                    if line(&message) == "INVITE" {
                        peer.called(&message);
                    }
                    let status = random.pick(&[100, 180, 183, 200, 200, 302, 401, 486, 487, 491, 503]);
                    let body = any_body(&mut random);
                    let text = peer.response(&message, status, "", &body);
                    lab.receive(flow, &text);
                    if random.below(3) == 0 {
                        lab.receive(flow, damage(&mut random, &text));
                    }
                    if random.below(4) == 0 {
                        lab.with(|sip, core| sip.transport_error(core, flow));
                    }
                }
            }
        }
    }
    let ids: Vec<_> = lab.shard.core.borrow().channels().map(|c| c.id).collect();
    ids.into_iter().for_each(|id| lab.finish(id, Cause::NORMAL_CLEARING));
    // A binding may live longer than the test waits; it is no call.
    lab.rest();
}

#[test]
fn storms_leave_nothing_behind() {
    for seed in 0..SEEDS {
        let outcome = std::panic::catch_unwind(|| storm(seed));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}

/// Steps of a call that came in.
#[derive(Debug, Clone, Copy)]
enum Step {
    Ring,
    Answer,
    HangUp,
    Cancel,
    Ack,
    Bye,
    Reinvite,
    Update,
    Time,
}
const ALL: [Step; 9] = [
    Step::Ring,
    Step::Answer,
    Step::HangUp,
    Step::Cancel,
    Step::Ack,
    Step::Bye,
    Step::Reinvite,
    Step::Update,
    Step::Time,
];

fn walk(steps: &[Step]) {
    let mut lab = Lab::new(site());
    let mut phone = Phone::new("trunk");
    let id = phone.invite(&mut lab, "100", &sdp("198.51.100.7", 4000, "0 101"));
    let (invite, mut finals) = (phone.cseq, 0);
    for step in steps {
        let cancel = phone.same_branch("CANCEL", "sip:100@strowger", invite, "", "");
        match step {
            Step::Ring => lab.indicate(id, Indication::Ringing),
            Step::Answer => lab.answer(id),
            Step::HangUp => lab.finish(id, Cause::NORMAL_CLEARING),
            Step::Cancel => lab.receive(phone.flow, cancel),
            Step::Ack => {
                let text = phone.numbered("ACK", "sip:100@192.0.2.1", invite, "", "");
                lab.receive(phone.flow, text);
            }
            Step::Bye => phone.inside(&mut lab, "BYE", "", ""),
            Step::Reinvite => phone.inside(&mut lab, "INVITE", "", &sdp("198.51.100.7", 4002, "8")),
            Step::Update => phone.inside(&mut lab, "UPDATE", "", &sdp("198.51.100.7", 4004, "0")),
            Step::Time => lab.pass(Duration::from_secs(33)),
        }
        while let Some((_, message)) = lab.next() {
            let view = message.view();
            let cseq = crate::lab::header(&message, "CSeq");
            if view.status().is_some_and(|status| status.is_final()) && cseq == format!("{invite} INVITE") {
                // Repetitions of one answer are the same answer.
                finals |= 1 << (view.status().unwrap().code() / 100);
            }
            if let (true, Some(tag)) = (phone.remote_tag.is_empty(), view.to_tag()) {
                phone.remote_tag = String::from_utf8_lossy(tag).into_owned();
                phone.target = "sip:100@192.0.2.1".to_owned();
            }
        }
    }
    let ids: Vec<_> = lab.shard.core.borrow().channels().map(|c| c.id).collect();
    ids.into_iter().for_each(|id| lab.finish(id, Cause::NORMAL_CLEARING));
    assert!(u32::count_ones(finals) <= 1, "two kinds of final response to one INVITE");
    lab.rest();
}

#[test]
fn rfc3261_17_every_order_of_three_steps_gives_one_final_response_and_leaves_nothing() {
    for number in 0..ALL.len().pow(3) {
        let steps: Vec<Step> = (0..3).map(|place| ALL[number / ALL.len().pow(place) % ALL.len()]).collect();
        let outcome = std::panic::catch_unwind(|| walk(&steps));
        assert!(outcome.is_ok(), "{steps:?}");
    }
}
