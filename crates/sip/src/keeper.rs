//! Keeps a flow of datagrams to a registrar open, and finds out when it is none any more (RFC 5626 §4.4.2): the registrar is
//! asked by STUN where we are. Silence, a refusal, or another address than the last time mean that requests do not reach us.

use core::net::SocketAddr;
use core::time::Duration;

use base::Instant;

use crate::stun::{self, Transaction};

/// Wait for the answer to the first request; each further one waits twice as long (RFC 5389 §7.2.1, RTO).
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Requests of one question (RFC 5389 §7.2.1, Rc).
const REQUESTS_MAX: u32 = 7;
/// Wait for the answer to the last one, in first waits (RFC 5389 §7.2.1, Rm).
const LAST_WAIT: u32 = 16;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// This datagram leaves.
    Send(Vec<u8>),
    /// The flow is dead. Nothing is asked any more.
    Lost,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// The flow is left alone for a while.
    Resting { until: Instant },
    /// An answer is awaited; so many requests have left.
    Asking { transaction: Transaction, sent: u32, until: Instant },
    /// The flow is lost.
    Over,
}

/// See the module's page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeper {
    /// Time between two questions.
    every: Duration,
    state: State,
    /// Where the registrar sees us.
    seen_at: Option<SocketAddr>,
}

impl Keeper {
    /// Asks so often, for the first time after such a while.
    pub fn new(every: Duration, now: Instant) -> Self {
        Self { every, state: State::Resting { until: now + every }, seen_at: None }
    }
    /// From here on asks so often. What is known of the flow stays.
    pub fn set_interval(&mut self, every: Duration, now: Instant) {
        self.every = every;
        if let State::Resting { until } = &mut self.state {
            *until = now + every;
        }
    }
    /// When [`due`](Self::due) next wants to be called.
    pub const fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Resting { until } | State::Asking { until, .. } => Some(until),
            State::Over => None,
        }
    }
    /// Asks, asks again, or gives up, if it is time. `random` becomes the number of a new question.
    pub fn due(&mut self, random: [u64; 2], now: Instant) -> Option<Output> {
        if self.deadline().is_none_or(|at| at > now) {
            return None;
        }
        let (transaction, sent) = match self.state {
            State::Resting { .. } => {
                let bits = (u128::from(random[0]) << 64 | u128::from(random[1])).to_be_bytes();
                (*bits.first_chunk()?, 0)
            }
            State::Asking { transaction, sent, .. } => (transaction, sent),
            State::Over => return None,
        };
        if sent == REQUESTS_MAX {
            self.state = State::Over;
            return Some(Output::Lost);
        }
        let waits = if sent + 1 == REQUESTS_MAX { LAST_WAIT } else { 1 << sent };
        self.state = State::Asking { transaction, sent: sent + 1, until: now + FIRST_WAIT * waits };
        Some(Output::Send(stun::request(&transaction)))
    }
    /// A message of STUN came from the registrar.
    pub fn handle(&mut self, message: &[u8], now: Instant) -> Option<Output> {
        let State::Asking { transaction, .. } = self.state else { return None };
        let said = stun::told(message, &transaction)?;
        let is_same = said.is_some() && self.seen_at.is_none_or(|before| said == Some(before));
        self.seen_at = said;
        if is_same {
            self.state = State::Resting { until: now + self.every };
            return None;
        }
        self.state = State::Over;
        Some(Output::Lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(25);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }
    /// Asked at 25 s.
    fn asking() -> (Keeper, Vec<u8>) {
        let mut keeper = Keeper::new(EVERY, at(0));
        assert_eq!(keeper.due([1, 2], at(24_999)), None);
        let Some(Output::Send(request)) = keeper.due([1, 2], at(25_000)) else { panic!("nothing is asked") };
        (keeper, request)
    }
    fn said(request: &[u8], source: &str) -> Vec<u8> {
        stun::answer(request, source.parse().unwrap()).unwrap()
    }

    #[test]
    fn rfc5389_7_2_1_a_question_is_repeated_seven_times_and_then_the_flow_is_dead() {
        let (mut keeper, request) = asking();
        let mut sent = vec![0];
        loop {
            let now = keeper.deadline().unwrap();
            match keeper.due([9, 9], now) {
                Some(Output::Send(again)) => {
                    assert_eq!(again, request, "the same number");
                    sent.push(now.since(at(25_000)).as_millis());
                }
                other => {
                    assert_eq!(other, Some(Output::Lost));
                    assert_eq!(now, at(25_000 + 39_500));
                    break;
                }
            }
        }
        assert_eq!(sent, [0, 500, 1500, 3500, 7500, 15_500, 31_500]);
        assert_eq!(keeper.deadline(), None);
    }

    #[test]
    fn rfc5626_4_4_2_a_flow_with_another_address_is_another_flow() {
        for (name, second, lost) in [
            ("the same", "192.0.2.1:4000", false),
            ("another port", "192.0.2.1:4001", true),
            ("another host", "192.0.2.2:4000", true),
        ] {
            let (mut keeper, request) = asking();
            assert_eq!(keeper.handle(&said(&request, "192.0.2.1:4000"), at(25_100)), None, "{name}");
            assert_eq!(keeper.deadline(), Some(at(50_100)), "{name}");
            let Some(Output::Send(request)) = keeper.due([3, 4], at(50_100)) else { panic!("{name}") };
            assert_eq!(
                keeper.handle(&said(&request, second), at(50_200)),
                lost.then_some(Output::Lost),
                "{name}"
            );
            assert_eq!(keeper.deadline(), (!lost).then(|| at(75_200)), "{name}");
        }
    }

    #[test]
    fn what_answers_another_question_or_none_is_nothing() {
        let (mut keeper, request) = asking();
        let before = keeper.clone();
        for message in [said(&stun::request(&[7; 12]), "192.0.2.1:4000"), request, b"\0".to_vec(), Vec::new()]
        {
            assert_eq!(keeper.handle(&message, at(25_100)), None);
            assert_eq!(keeper, before);
        }
        let mut resting = Keeper::new(EVERY, at(0));
        assert_eq!(resting.handle(&said(&stun::request(&[7; 12]), "192.0.2.1:4000"), at(1)), None);
        resting.set_interval(Duration::from_secs(10), at(5_000));
        assert_eq!(resting.deadline(), Some(at(15_000)));
    }
}
