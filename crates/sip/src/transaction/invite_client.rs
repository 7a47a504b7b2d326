//! INVITE client transaction.

use super::{Pace, Status, due, earliest};
use base::Instant;
use core::time::Duration;

/// INVITE client transaction (RFC 3261 §17.1.1, Accepted from RFC 6026 §8.4).
#[derive(Debug)]
pub struct InviteClient {
    state: State,
    retransmit_at: Option<Instant>,
    give_up_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Calling { interval: Duration },
    Proceeding,
    Accepted,
    Completed,
    Terminated,
}

/// What can happen to an INVITE client transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A response matched (§17.1.3).
    Response(Status),
    /// The transport could not send.
    TransportError,
    /// Nobody waits for the answer any more; a final response is awaited for another 64*T1 (§9.1).
    GiveUp,
    /// Time has reached the deadline.
    Timeout,
}

/// What an INVITE client transaction wants done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// The INVITE leaves, first or again.
    SendRequest,
    /// The ACK for the last non-2xx final response leaves (§17.1.1.3).
    SendAck,
    /// The response goes up to the dialog.
    Deliver(Status),
    /// Nobody answered within 64*T1.
    TimedOut,
    /// The request could not be sent.
    Failed,
}

impl InviteClient {
    /// Sends the request and starts timers A and B.
    pub fn start(pace: Pace, now: Instant, out: &mut Vec<Output>) -> Self {
        out.push(Output::SendRequest);
        Self {
            state: State::Calling { interval: pace.timers.t1 },
            retransmit_at: pace.first().map(|interval| now + interval),
            give_up_at: Some(now + pace.timers.timeout),
        }
    }

    /// When `handle(Input::Timeout, ..)` next wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        earliest(self.retransmit_at, self.give_up_at)
    }

    /// Whether nothing has come from the peer.
    pub fn is_calling(&self) -> bool {
        matches!(self.state, State::Calling { .. })
    }

    /// Whether a provisional response has come and no final one: only then may CANCEL be sent (§9.1).
    pub fn is_proceeding(&self) -> bool {
        self.state == State::Proceeding
    }

    /// Whether the machine has done all it ever will.
    pub fn is_terminated(&self) -> bool {
        self.state == State::Terminated
    }

    /// The only way in.
    pub fn handle(&mut self, input: Input, pace: Pace, now: Instant, out: &mut Vec<Output>) {
        use {Input::*, State::*};
        match (self.state, input) {
            (Calling { .. } | Proceeding, Response(s)) if s.class() == 1 => {
                out.push(Output::Deliver(s));
                let given_up = self.give_up_at.filter(|_| self.state == Proceeding);
                self.enter(Proceeding, given_up);
            }
            (Calling { .. } | Proceeding, Response(s)) if s.class() == 2 => {
                out.push(Output::Deliver(s));
                self.enter(Accepted, Some(now + pace.timers.timeout)); // timer M
            }
            (Accepted, Response(s)) if s.class() == 2 => out.push(Output::Deliver(s)), // the dialog ACKs each
            (Calling { .. } | Proceeding, Response(s)) => {
                out.push(Output::SendAck);
                out.push(Output::Deliver(s));
                self.enter(Completed, Some(now + pace.linger(pace.timers.timeout))); // timer D
            }
            (Completed, Response(s)) if s.class() >= 3 => out.push(Output::SendAck),
            (Proceeding, GiveUp) if self.give_up_at.is_none() => {
                self.give_up_at = Some(now + pace.timers.timeout);
            }
            (Calling { .. } | Proceeding, Timeout) if due(self.give_up_at, now) => {
                out.push(Output::TimedOut); // timer B, or §9.1
                self.enter(Terminated, None);
            }
            (Calling { interval }, Timeout) if due(self.retransmit_at, now) => {
                out.push(Output::SendRequest); // timer A
                self.state = Calling { interval: interval * 2 };
                self.retransmit_at = Some(now + interval * 2);
            }
            (Accepted | Completed, Timeout) if due(self.give_up_at, now) => self.enter(Terminated, None),
            (Calling { .. } | Proceeding, TransportError) => {
                out.push(Output::Failed);
                self.enter(Terminated, None);
            }
            (Completed, TransportError) => {
                out.push(Output::Failed); // §17.1.1.2: the ACK could not be sent
                self.enter(Terminated, None);
            }
            // Late or duplicate input changes nothing.
            (Calling { .. } | Proceeding | Accepted | Completed | Terminated, _) => {}
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
    use Output::{Deliver, SendAck, SendRequest};

    fn run_to_end(mut tx: InviteClient, pace: Pace) -> (Vec<u64>, Vec<Output>) {
        let (mut at, mut sent) = (Vec::new(), Vec::new());
        while let Some(now) = tx.deadline() {
            at.push(now.as_millis());
            tx.handle(Input::Timeout, pace, now, &mut sent);
        }
        assert!(tx.is_terminated());
        (at, sent)
    }

    #[test]
    fn rfc3261_17_1_1_2_unanswered_invite_doubles_then_gives_up_after_64_t1() {
        let mut out = Vec::new();
        let tx = InviteClient::start(UDP, ms(0), &mut out);
        assert_eq!(out, [SendRequest]);
        let (at, sent) = run_to_end(tx, UDP);
        assert_eq!(at, [500, 1500, 3500, 7500, 15500, 31500, 32000]);
        assert_eq!(sent.iter().filter(|o| **o == SendRequest).count(), 6);
        assert_eq!(sent.last(), Some(&Output::TimedOut));
    }

    #[test]
    fn rfc3261_17_1_1_2_reliable_transport_never_retransmits() {
        let (at, sent) = run_to_end(InviteClient::start(TCP, ms(0), &mut Vec::new()), TCP);
        assert_eq!((at, sent), (vec![32000], vec![Output::TimedOut]));
    }

    #[test]
    fn rfc3261_17_1_1_2_responses_are_acked_and_delivered_as_the_figure_says() {
        let d = |code| Deliver(status(code));
        for (name, responses, expected) in [
            ("ringing stops retransmission", vec![180], vec![d(180)]),
            ("busy is acked by the transaction", vec![486], vec![SendAck, d(486)]),
            ("repeated busy is acked, delivered once", vec![486, 486], vec![SendAck, d(486), SendAck]),
            ("each forked 2xx is delivered", vec![200, 200], vec![d(200), d(200)]),
            ("ringing after answer is late", vec![200, 180], vec![d(200)]),
            ("failure after answer is late (RFC 6026 §8.4)", vec![200, 500], vec![d(200)]),
            ("answer after failure is late", vec![486, 200], vec![SendAck, d(486)]),
            ("each ringing is delivered", vec![100, 180, 180], vec![d(100), d(180), d(180)]),
            ("redirection is acked", vec![100, 302], vec![d(100), SendAck, d(302)]),
        ] {
            let (mut tx, mut out) = (InviteClient::start(UDP, ms(0), &mut Vec::new()), Vec::new());
            for code in responses {
                tx.handle(Response(status(code)), UDP, ms(10), &mut out);
            }
            assert_eq!(out, expected, "{name}");
        }
    }

    #[test]
    fn rfc3261_17_1_1_2_proceeding_waits_for_ever_completed_32_s_or_not_at_all() {
        for (name, pace, code, expected) in [
            ("ringing", UDP, 180, None),
            ("timer D over UDP", UDP, 486, Some(ms(32010))),
            ("timer D over TCP", TCP, 486, Some(ms(10))),
            ("timer M over UDP (RFC 6026)", UDP, 200, Some(ms(32010))),
            ("timer M over TCP (RFC 6026)", TCP, 200, Some(ms(32010))),
        ] {
            let mut tx = InviteClient::start(pace, ms(0), &mut Vec::new());
            tx.handle(Response(status(code)), pace, ms(10), &mut Vec::new());
            assert_eq!(tx.deadline(), expected, "{name}");
        }
    }

    #[test]
    fn rfc3261_9_1_a_given_up_invite_waits_64_t1_and_no_ringing_prolongs_it() {
        let (mut tx, mut out) = (InviteClient::start(UDP, ms(0), &mut Vec::new()), Vec::new());
        tx.handle(Response(status(180)), UDP, ms(10), &mut out);
        for (at, input) in [(100, Input::GiveUp), (200, Input::GiveUp), (300, Response(status(180)))] {
            tx.handle(input, UDP, ms(at), &mut out);
            assert_eq!(tx.deadline(), Some(ms(32_100)));
        }
        tx.handle(Input::Timeout, UDP, ms(32_100), &mut out);
        assert_eq!(out, [Deliver(status(180)), Deliver(status(180)), Output::TimedOut]);
        assert!(tx.is_terminated());
    }

    #[test]
    fn rfc3261_17_1_1_2_transport_error_ends_the_transaction_and_is_told_once() {
        let (mut tx, mut out) = (InviteClient::start(UDP, ms(0), &mut Vec::new()), Vec::new());
        tx.handle(Input::TransportError, UDP, ms(1), &mut out);
        tx.handle(Input::TransportError, UDP, ms(2), &mut out);
        assert_eq!(out, [Output::Failed]);
        assert!(tx.is_terminated());
    }
}
