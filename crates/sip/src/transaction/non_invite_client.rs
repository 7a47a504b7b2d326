//! Client transaction of every method but INVITE and ACK.

use super::{Pace, Status, due, earliest};
use base::Instant;
use core::time::Duration;

/// Non-INVITE client transaction (RFC 3261 §17.1.2).
#[derive(Debug)]
pub struct NonInviteClient {
    state: State,
    retransmit_at: Option<Instant>,
    give_up_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Trying { interval: Duration },
    Proceeding,
    Completed,
    Terminated,
}

/// What can happen to a non-INVITE client transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A response matched (§17.1.3).
    Response(Status),
    /// The transport could not send.
    TransportError,
    /// Time has reached the deadline.
    Timeout,
}

/// What a non-INVITE client transaction wants done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// The request leaves, first or again.
    SendRequest,
    /// The response goes up.
    Deliver(Status),
    /// No final response within 64*T1.
    TimedOut,
    /// The request could not be sent.
    Failed,
}

impl NonInviteClient {
    /// Sends the request and starts timers E and F.
    pub fn start(pace: Pace, now: Instant, out: &mut Vec<Output>) -> Self {
        out.push(Output::SendRequest);
        Self {
            state: State::Trying { interval: pace.timers.t1 },
            retransmit_at: pace.first().map(|interval| now + interval),
            give_up_at: Some(now + pace.timers.timeout),
        }
    }

    /// When `handle(Input::Timeout, ..)` next wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        earliest(self.retransmit_at, self.give_up_at)
    }

    /// Whether nothing has come from the peer.
    pub fn is_trying(&self) -> bool {
        matches!(self.state, State::Trying { .. })
    }

    /// Whether the machine has done all it ever will.
    pub fn is_terminated(&self) -> bool {
        self.state == State::Terminated
    }

    /// The only way in.
    pub fn handle(&mut self, input: Input, pace: Pace, now: Instant, out: &mut Vec<Output>) {
        use {Input::*, State::*};
        match (self.state, input) {
            (Trying { .. } | Proceeding, Response(s)) if s.class() == 1 => {
                out.push(Output::Deliver(s));
                if let Trying { .. } = self.state {
                    self.state = Proceeding;
                    self.retransmit_at = pace.first().map(|_| now + pace.timers.t2);
                }
            }
            (Trying { .. } | Proceeding, Response(s)) => {
                out.push(Output::Deliver(s));
                self.enter(Completed, Some(now + pace.linger(pace.timers.t4))); // timer K
            }
            (Trying { .. } | Proceeding, Timeout) if due(self.give_up_at, now) => {
                out.push(Output::TimedOut); // timer F
                self.enter(Terminated, None);
            }
            (Trying { interval }, Timeout) if due(self.retransmit_at, now) => {
                out.push(Output::SendRequest); // timer E doubles up to T2
                self.state = Trying { interval: pace.next(interval) };
                self.retransmit_at = Some(now + pace.next(interval));
            }
            (Proceeding, Timeout) if due(self.retransmit_at, now) => {
                out.push(Output::SendRequest); // timer E stays at T2
                self.retransmit_at = Some(now + pace.timers.t2);
            }
            (Completed, Timeout) if due(self.give_up_at, now) => self.enter(Terminated, None),
            (Trying { .. } | Proceeding, TransportError) => {
                out.push(Output::Failed);
                self.enter(Terminated, None);
            }
            // Late or duplicate input changes nothing.
            (Trying { .. } | Proceeding | Completed | Terminated, _) => {}
        }
    }

    fn enter(&mut self, state: State, give_up_at: Option<Instant>) {
        (self.state, self.retransmit_at, self.give_up_at) = (state, None, give_up_at);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TCP, UDP, ms, status};
    use super::*;
    use Input::Response;
    use Output::Deliver;

    fn run_to_end(mut tx: NonInviteClient, pace: Pace) -> (Vec<u64>, Vec<Output>) {
        let (mut at, mut sent) = (Vec::new(), Vec::new());
        while let Some(now) = tx.deadline() {
            at.push(now.as_millis());
            tx.handle(Input::Timeout, pace, now, &mut sent);
        }
        assert!(tx.is_terminated());
        (at, sent)
    }

    #[test]
    fn rfc3261_17_1_2_2_unanswered_request_doubles_up_to_t2_then_gives_up_after_64_t1() {
        let (at, sent) = run_to_end(NonInviteClient::start(UDP, ms(0), &mut Vec::new()), UDP);
        assert_eq!(at, [500, 1500, 3500, 7500, 11500, 15500, 19500, 23500, 27500, 31500, 32000]);
        assert_eq!(sent.last(), Some(&Output::TimedOut));
    }

    #[test]
    fn rfc3261_17_1_2_2_provisional_response_slows_to_t2_but_timer_f_still_runs() {
        let mut tx = NonInviteClient::start(UDP, ms(0), &mut Vec::new());
        tx.handle(Response(status(100)), UDP, ms(600), &mut Vec::new());
        let (at, sent) = run_to_end(tx, UDP);
        assert_eq!(at, [4600, 8600, 12600, 16600, 20600, 24600, 28600, 32000]);
        assert_eq!(sent.last(), Some(&Output::TimedOut));
    }

    #[test]
    fn rfc3261_17_1_2_2_repeated_provisional_responses_do_not_postpone_the_retransmission() {
        let mut tx = NonInviteClient::start(UDP, ms(0), &mut Vec::new());
        tx.handle(Response(status(100)), UDP, ms(600), &mut Vec::new());
        tx.handle(Response(status(100)), UDP, ms(3000), &mut Vec::new());
        assert_eq!(tx.deadline(), Some(ms(4600)));
    }

    #[test]
    fn rfc3261_17_1_2_2_final_response_is_delivered_once_and_absorbed_for_t4() {
        for (name, pace, codes, expected, end) in [
            ("ok over UDP", UDP, vec![200, 200], vec![Deliver(status(200))], ms(5010)),
            ("ok over TCP", TCP, vec![200, 200], vec![Deliver(status(200))], ms(10)),
            ("refused over UDP", UDP, vec![401, 200], vec![Deliver(status(401))], ms(5010)),
        ] {
            let (mut tx, mut out) = (NonInviteClient::start(pace, ms(0), &mut Vec::new()), Vec::new());
            for code in codes {
                tx.handle(Response(status(code)), pace, ms(10), &mut out);
            }
            assert_eq!(out, expected, "{name}");
            assert_eq!(tx.deadline(), Some(end), "{name}");
            tx.handle(Input::Timeout, pace, end, &mut out);
            assert!(tx.is_terminated(), "{name}");
        }
    }

    #[test]
    fn rfc3261_17_1_2_2_reliable_transport_never_retransmits() {
        let (at, sent) = run_to_end(NonInviteClient::start(TCP, ms(0), &mut Vec::new()), TCP);
        assert_eq!((at, sent), (vec![32000], vec![Output::TimedOut]));
    }
}
