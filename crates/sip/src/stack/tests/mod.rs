//! The stack against another stack and against hand-written peers, on invented time.

mod calls;
mod lossy;
mod orders;
mod panics;
mod reliable;
mod ways;
mod wire;

use super::*;
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BinaryHeap;

pub(super) fn ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// The flow of UDP messages between us and `remote`.
pub(super) fn udp(remote: &str) -> Flow {
    let remote = remote.parse().unwrap();
    Flow {
        transport: TransportId(0),
        protocol: Protocol::Udp,
        connection: None,
        name: PeerName::NONE,
        remote,
    }
}

pub(super) fn stack(name: &str, config: Config, seed: u128) -> Stack {
    let mut stack = Stack::new(config, seed);
    let transport = Transport { sent_by: name.into(), external: None, local_nets: Vec::new(), stream: None };
    stack.set_transport(TransportId(0), transport);
    stack
}

pub(super) fn config() -> Config {
    Config { product: "Strowger".into(), allow: "INVITE, ACK, CANCEL, BYE".into(), ..Config::default() }
}

/// An INVITE to `to` from a stack called `me`.
pub(super) fn outgoing<'a>(me: &'a str, to: &str) -> Outgoing<'a> {
    Outgoing {
        method: Method::Options,
        target: "sip:callee@there",
        from: "\"Caller\" <sip:caller@here>",
        to: "<sip:callee@there>",
        contact: Some(me),
        routes: &[],
        headers: &[],
        body: None,
        flow: udp(to),
        series: None,
        symmetric: false,
    }
}

/// What happens to each message on the way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weather {
    pub(super) lost_percent: u64,
    pub(super) doubled_percent: u64,
    pub(super) delay_ms: (u64, u64),
}

pub(super) const FINE: Weather = Weather { lost_percent: 0, doubled_percent: 0, delay_ms: (10, 10) };

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct InFlight {
    at: core::cmp::Reverse<(Instant, u64)>,
    from: SocketAddr,
    to: SocketAddr,
    bytes: Arc<[u8]>,
}

/// Two stacks and the network between them.
pub(super) struct World {
    pub(super) now: Instant,
    pub(super) stacks: [Stack; 2],
    pub(super) weather: Weather,
    random: Randomness,
    flying: BinaryHeap<InFlight>,
    count: u64,
    /// First lines of all that was sent, by side.
    pub(super) log: Vec<(usize, String)>,
    pub(super) keep_log: bool,
}

pub(super) const NAMES: [&str; 2] = ["10.0.0.1:5060", "10.0.0.2:5060"];
pub(super) const CONTACTS: [&str; 2] = ["<sip:caller@10.0.0.1:5060>", "<sip:callee@10.0.0.2:5060>"];

impl World {
    pub(super) fn new(weather: Weather, seed: u128) -> Self {
        Self {
            now: Instant::ZERO,
            stacks: [stack(NAMES[0], config(), seed), stack(NAMES[1], config(), seed + 1)],
            weather,
            random: Randomness::new(Key::new(seed + 2)),
            flying: BinaryHeap::new(),
            count: 0,
            log: Vec::new(),
            keep_log: true,
        }
    }

    /// Sends what side `from` has put out; gives its events.
    pub(super) fn carry(&mut self, from: usize, out: Vec<Output>) -> Vec<Event> {
        let mut events = Vec::new();
        for output in out {
            match output {
                Output::Send(send) => self.launch(from, send),
                Output::Event(event) => events.push(event),
            }
        }
        events
    }

    fn launch(&mut self, from: usize, send: Send) {
        if self.keep_log {
            let text = String::from_utf8_lossy(&send.bytes);
            self.log.push((from, text.lines().next().unwrap().to_owned()));
        }
        let copies = match self.random.below(100) {
            n if n < self.weather.lost_percent => 0,
            n if n < self.weather.lost_percent + self.weather.doubled_percent => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let (min, max) = self.weather.delay_ms;
            let delay = Duration::from_millis(min + self.random.below(max - min + 1));
            self.count += 1;
            self.flying.push(InFlight {
                at: core::cmp::Reverse((self.now + delay, self.count)),
                from: NAMES[from].parse().unwrap(),
                to: send.flow.remote,
                bytes: Arc::clone(&send.bytes),
            });
        }
    }

    /// Does `operation` on side `side` and sends what it puts out.
    pub(super) fn with<T>(
        &mut self,
        side: usize,
        operation: impl FnOnce(&mut Stack, Instant, &mut Vec<Output>) -> T,
    ) -> (T, Vec<Event>) {
        let mut out = Vec::new();
        let result = operation(&mut self.stacks[side], self.now, &mut out);
        (result, self.carry(side, out))
    }

    /// Moves time to the next thing that happens before `until` and lets it happen.
    pub(super) fn step(&mut self, until: Instant) -> Option<Vec<(usize, Event)>> {
        let arrival = self.flying.peek().map(|next| next.at.0.0);
        let wake = self.stacks.iter().filter_map(Stack::deadline).min();
        let next = [arrival, wake].into_iter().flatten().min().filter(|next| *next <= until)?;
        self.now = self.now.max(next);
        let mut happened = Vec::new();
        if arrival == Some(next) {
            let Some(message) = self.flying.pop() else { return Some(happened) };
            let Some(side) = NAMES.iter().position(|name| name.parse() == Ok(message.to)) else {
                return Some(happened);
            };
            let flow = udp(&message.from.to_string());
            let (_, events) =
                self.with(side, |stack, now, out| stack.receive(flow, &message.bytes, now, out));
            happened.extend(events.into_iter().map(|event| (side, event)));
        } else {
            for side in 0..2 {
                let (_, events) = self.with(side, Stack::due);
                happened.extend(events.into_iter().map(|event| (side, event)));
            }
        }
        Some(happened)
    }

    /// Lets everything happen until `until`.
    pub(super) fn run(&mut self, until: Instant) -> Vec<(usize, Event)> {
        let mut happened = Vec::new();
        while let Some(events) = self.step(until) {
            happened.extend(events);
        }
        self.now = self.now.max(until);
        happened
    }

    /// Lets everything come to its end; nothing may be left.
    pub(super) fn run_out(&mut self) -> Vec<(usize, Event)> {
        let happened = self.run(self.now + Duration::from_secs(400));
        for stack in &self.stacks {
            assert_eq!(stack.load(), Load::default());
            assert_eq!(stack.deadline(), None);
        }
        happened
    }

    /// First lines sent since the last call, as `side` and line.
    pub(super) fn sent(&mut self) -> Vec<String> {
        self.log.drain(..).map(|(side, line)| format!("{side} {}", line.replace(" SIP/2.0", ""))).collect()
    }
}

/// What an event is about, in a word.
pub(super) fn word(event: &Event) -> String {
    match event {
        Event::Invite(_) => "Invite".into(),
        Event::Request(_) => "Request".into(),
        Event::InDialog { message, .. } => format!("InDialog {}", message.view().method()),
        Event::Provisional { status, fork, .. } => format!("Provisional {status} {fork:?}"),
        Event::Answered { fork, .. } => format!("Answered {fork}"),
        Event::Challenged { .. } => "Challenged".into(),
        Event::Failed { failure, .. } => format!("Failed {}", reason(failure)),
        Event::ReinviteFailed { failure, .. } => format!("ReinviteFailed {}", reason(failure)),
        Event::Response { status, .. } => format!("Response {status}"),
        Event::Unanswered { failure, .. } => format!("Unanswered {}", reason(failure)),
        Event::Acked { .. } => "Acked".into(),
        Event::Canceled { .. } => "Canceled".into(),
        Event::Withdrawn { .. } => "Withdrawn".into(),
        Event::Ended { reason, .. } => format!("Ended {reason:?}"),
        Event::NotifyDue { standing, .. } => format!("NotifyDue {standing}"),
        Event::Resubscribe { .. } => "Resubscribe".into(),
        Event::Unsubscribed { .. } => "Unsubscribed".into(),
        Event::Moved { flow, .. } => format!("Moved {}", flow.remote),
        Event::Stranded { host, port, failed, .. } => format!("Stranded {host} {port:?} {}", failed.remote),
        Event::Elsewhere { incoming, .. } => format!("Elsewhere {}", incoming.message.view().method()),
        Event::Malformed { .. } => "Malformed".into(),
    }
}

fn reason(failure: &Failure) -> String {
    match failure {
        Failure::Refused { status, .. } => status.to_string(),
        Failure::Timeout => "Timeout".into(),
        Failure::Transport => "Transport".into(),
        Failure::Canceled => "Canceled".into(),
    }
}

pub(super) fn words(events: &[(usize, Event)]) -> Vec<String> {
    events.iter().map(|(side, event)| format!("{side} {}", word(event))).collect()
}

impl World {
    /// Side 0 calls; side 1 has the INVITE and has accepted it.
    pub(super) fn call(&mut self) -> (DialogId, DialogId) {
        let (caller, _) =
            self.with(0, |stack, now, out| stack.invite(&outgoing(CONTACTS[0], NAMES[1]), now, out).unwrap());
        let events = self.run(self.now + Duration::from_millis(10));
        let [(1, Event::Invite(incoming))] = events.as_slice() else { panic!("{:?}", words(&events)) };
        let accept = Accept { contact: CONTACTS[1], symmetric: false, unproved: false };
        let (callee, _) = self.with(1, |stack, now, _| stack.accept_invite(incoming, &accept, now).unwrap());
        (caller, callee)
    }

    /// A call that is up and acknowledged.
    pub(super) fn call_up(&mut self) -> (DialogId, DialogId) {
        let (caller, callee) = self.call();
        self.answer(callee, 200);
        assert_eq!(words(&self.run(self.now + Duration::from_millis(10))), ["0 Answered 0"]);
        self.with(0, |stack, _, out| stack.ack(caller, None, out).unwrap());
        assert_eq!(words(&self.run(self.now + Duration::from_millis(10))), ["1 Acked"]);
        self.log.clear();
        (caller, callee)
    }

    pub(super) fn answer(&mut self, callee: DialogId, status: u16) {
        let answer = Answer::new(status);
        let (done, events) = self.with(1, |stack, now, out| stack.answer(callee, &answer, now, out));
        assert_eq!((done, events.len()), (Ok(()), 0));
    }
}
