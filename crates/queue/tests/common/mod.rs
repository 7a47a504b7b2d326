//! A desk beside the queues that keeps what they say.

#![allow(dead_code, reason = "each test uses some of it")]

use core::time::Duration;

use base::{ChannelId, Instant};
use queue::{
    Bounds, CallerId, Closed, Config, End, Entry, Exit, Input, Join, Line, NewMember, Now, Order, Output,
    QueueConfig, Queues, Refusal, Settings,
};

pub struct Desk {
    pub queues: Queues,
    pub now: Now,
    pub out: Vec<Output>,
}

pub fn caller(number: u32) -> ChannelId {
    ChannelId::new(number, 0)
}

pub fn member(interface: &str, penalty: u32) -> NewMember {
    NewMember { interface: interface.into(), penalty, ..NewMember::default() }
}

/// A queue that calls one after the other, not who is engaged.
pub fn settings() -> Settings {
    Settings { strategy: queue::Strategy::Linear, ring_in_use: false, ..Settings::default() }
}

pub fn queue(name: &str, settings: Settings, members: &[&str]) -> QueueConfig {
    let members = members.iter().map(|interface| member(interface, 0)).collect();
    QueueConfig { name: name.into(), settings, members, is_row: false }
}

pub fn join_as(number: u32) -> Join {
    Join {
        caller: caller(number),
        uniqueid: format!("c{number}").into(),
        id: CallerId::of("100"),
        url: String::new(),
        priority: 0,
        position: None,
        since: None,
        timeout: None,
        no_retry: false,
        bounds: Bounds::default(),
        skills: Default::default(),
        rule: String::new(),
    }
}

impl Desk {
    pub fn new(queues: Vec<QueueConfig>) -> Self {
        Self::with(Config { queues, ..Config::default() })
    }
    pub fn with(config: Config) -> Self {
        let now = Now { at: Instant::ZERO + Duration::from_secs(1000), wall: 1_700_000_000 };
        let mut desk = Self { queues: Queues::new(5), now, out: Vec::new() };
        desk.queues.configure(&config, now, &mut desk.out);
        desk
    }
    pub fn join(&mut self, queue: &str, number: u32) -> Result<usize, Closed> {
        self.queues.join(queue, join_as(number), self.now, &mut self.out)
    }
    pub fn tell(&mut self, number: u32, input: Input) -> bool {
        self.queues.input(caller(number), input, self.now, &mut self.out)
    }
    pub fn answer(&mut self, number: u32, interface: &str) -> bool {
        self.tell(number, Input::Answered { interface: interface.into() })
    }
    pub fn connect(&mut self, number: u32, interface: &str) {
        assert!(self.answer(number, interface));
        assert!(self.tell(number, Input::Connected { bridged: format!("b{number}") }));
        assert!(self.tell(number, Input::Introduced));
    }
    pub fn refuse(&mut self, number: u32, interface: &str, refusal: Refusal) -> bool {
        self.tell(number, Input::Refused { interface: interface.into(), refusal })
    }
    pub fn leave(&mut self, number: u32) -> bool {
        self.tell(number, Input::Left(Exit::Abandoned))
    }
    pub fn end(&mut self, number: u32, end: End) -> bool {
        self.tell(number, Input::Ended(end))
    }
    /// Lets time pass, second by second, so that everything happens at its time.
    pub fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now.at += Duration::from_secs(1);
            self.now.wall += 1;
            self.queues.due(self.now, &mut self.out);
        }
    }
    /// What stories were to do since it was asked last: `0: ring PJSIP/a PJSIP/b`.
    pub fn orders(&mut self) -> Vec<String> {
        let orders = self.out.iter().filter_map(|output| match output {
            Output::Order { caller, order } => Some(format!("{}: {}", caller.slot, words(order))),
            _ => None,
        });
        let orders = orders.collect();
        self.out.retain(|output| !matches!(output, Output::Order { .. }));
        orders
    }
    /// Lines of the log since it was asked last, without their time.
    pub fn log(&mut self) -> Vec<String> {
        let lines = lines(&self.out).map(|line| line.to_string()).collect::<Vec<_>>();
        self.out.retain(|output| !matches!(output, Output::Log(_)));
        lines.iter().map(|line| line.split_once('|').unwrap().1.to_owned()).collect()
    }
}

pub fn lines(out: &[Output]) -> impl Iterator<Item = &Line> {
    out.iter().filter_map(|output| match output {
        Output::Log(line) => Some(line),
        _ => None,
    })
}

pub fn ends(entry: &Entry) -> bool {
    entry.ends_a_call()
}

fn words(order: &Order) -> String {
    match order {
        Order::Ring(offers) => {
            let names: Vec<&str> = offers.iter().map(|offer| &*offer.interface).collect();
            format!("ring {}", names.join(" "))
        }
        Order::LetBe => "let be".to_owned(),
        Order::Say(said) => format!("say {}", said.len()),
        Order::Bounds(bounds) => format!("bounds {:?} {:?} {:?}", bounds.max, bounds.min, bounds.raise),
        Order::Skills(skills) => format!("skills {skills}"),
        Order::Leave(exit) => format!("leave {exit:?}"),
    }
}
