//! INVITE server transaction.

use super::{Pace, Status, due, earliest};
use base::Instant;
use core::time::Duration;

/// INVITE server transaction (RFC 3261 §17.2.1, Accepted from RFC 6026 §8.5).
#[derive(Debug)]
pub struct InviteServer {
    state: State,
    act_at: Option<Instant>,
    give_up_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// `silent` until the first provisional response has left.
    Proceeding {
        silent: bool,
    },
    Accepted,
    Completed {
        interval: Duration,
    },
    Confirmed,
    Terminated,
}

/// What can happen to an INVITE server transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The INVITE came again.
    Retransmission,
    /// An ACK that matches this transaction (§17.2.3).
    Ack,
    /// The user answers.
    Respond(Status),
    /// The transport could not send.
    TransportError,
    /// Time has reached the deadline.
    Timeout,
}

/// What an INVITE server transaction wants done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// The user is slow: a 100 of our own leaves.
    SendTrying,
    /// The latest response leaves, first or again.
    SendResponse,
    /// The latest response is not needed any more.
    ForgetResponse,
    /// No ACK for a non-2xx final response within 64*T1.
    TimedOut,
    /// A response could not be sent.
    Failed,
}

impl InviteServer {
    /// Starts with the arrival of the INVITE; nothing leaves until the user answers or 200 ms have passed.
    pub fn start(pace: Pace, now: Instant) -> Self {
        Self {
            state: State::Proceeding { silent: true },
            act_at: Some(now + pace.timers.trying),
            give_up_at: None,
        }
    }

    /// When `handle(Input::Timeout, ..)` next wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        earliest(self.act_at, self.give_up_at)
    }

    /// Whether no final response has left: only then does CANCEL have an effect (§9.2).
    pub fn is_proceeding(&self) -> bool {
        matches!(self.state, State::Proceeding { .. })
    }

    /// Whether the machine has done all it ever will.
    pub fn is_terminated(&self) -> bool {
        self.state == State::Terminated
    }

    /// The only way in.
    pub fn handle(&mut self, input: Input, pace: Pace, now: Instant, out: &mut Vec<Output>) {
        use {Input::*, State::*};
        match (self.state, input) {
            (Proceeding { .. }, Respond(s)) if s.class() == 1 => {
                out.push(Output::SendResponse);
                self.enter(Proceeding { silent: false }, None, None);
            }
            (Proceeding { .. }, Respond(s)) if s.class() == 2 => {
                // The dialog retransmits a 2xx end to end (§13.3.1.4), so the transaction need not keep it.
                out.extend([Output::SendResponse, Output::ForgetResponse]);
                self.enter(Accepted, None, Some(now + pace.timers.timeout)); // timer L
            }
            (Proceeding { .. }, Respond(_)) => {
                out.push(Output::SendResponse);
                let retransmit_at = pace.first().map(|interval| now + interval); // timer G
                let interval = pace.timers.t1;
                self.enter(Completed { interval }, retransmit_at, Some(now + pace.timers.timeout)); // timer H
            }
            (Accepted, Respond(s)) if s.class() == 2 => {
                out.extend([Output::SendResponse, Output::ForgetResponse]); // the dialog's retransmission
            }
            (Proceeding { silent: false } | Completed { .. }, Retransmission) => {
                out.push(Output::SendResponse)
            }
            (Proceeding { silent: true }, Retransmission | Timeout) => {
                out.push(Output::SendTrying);
                self.enter(Proceeding { silent: false }, None, None);
            }
            (Completed { .. }, Ack) => {
                out.push(Output::ForgetResponse);
                self.enter(Confirmed, None, Some(now + pace.linger(pace.timers.t4))); // timer I
            }
            (Completed { .. }, Timeout) if due(self.give_up_at, now) => {
                out.push(Output::TimedOut); // timer H
                self.enter(Terminated, None, None);
            }
            (Completed { interval }, Timeout) if due(self.act_at, now) => {
                out.push(Output::SendResponse);
                let interval = pace.next(interval);
                self.enter(Completed { interval }, Some(now + interval), self.give_up_at);
            }
            (Accepted | Confirmed, Timeout) if due(self.give_up_at, now) => {
                self.enter(Terminated, None, None)
            }
            (Proceeding { .. } | Completed { .. }, TransportError) => {
                out.push(Output::Failed);
                self.enter(Terminated, None, None);
            }
            // Late or duplicate input changes nothing; a 2xx that the transport lost is the dialog's to repeat.
            (Proceeding { .. } | Accepted | Completed { .. } | Confirmed | Terminated, _) => {}
        }
    }

    fn enter(&mut self, state: State, act_at: Option<Instant>, give_up_at: Option<Instant>) {
        (self.state, self.act_at, self.give_up_at) = (state, act_at, give_up_at);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TCP, UDP, ms, status};
    use super::*;
    use Input::{Ack, Respond, Retransmission, Timeout};
    use Output::{ForgetResponse, SendResponse, SendTrying};

    fn run_to_end(tx: &mut InviteServer, pace: Pace, out: &mut Vec<Output>) -> Vec<u64> {
        let mut at = Vec::new();
        while let Some(now) = tx.deadline() {
            at.push(now.as_millis());
            tx.handle(Timeout, pace, now, out);
        }
        at
    }

    #[test]
    fn rfc3261_17_2_1_inputs_give_the_outputs_of_the_figure() {
        let say = |code| Respond(status(code));
        for (name, inputs, expected) in [
            ("100 after 200 ms of silence", vec![Timeout], vec![SendTrying]),
            ("the INVITE again makes the 100 leave at once", vec![Retransmission], vec![SendTrying]),
            ("ringing is repeated", vec![say(180), Retransmission], vec![SendResponse, SendResponse]),
            (
                "a 2xx is not kept, the INVITE again is absorbed (RFC 6026)",
                vec![say(200), Retransmission],
                vec![SendResponse, ForgetResponse],
            ),
            (
                "the dialog repeats its 2xx (RFC 6026)",
                vec![say(200), say(200)],
                vec![SendResponse, ForgetResponse, SendResponse, ForgetResponse],
            ),
            (
                "a failure after the answer is refused",
                vec![say(200), say(500)],
                vec![SendResponse, ForgetResponse],
            ),
            ("busy is repeated", vec![say(486), Retransmission], vec![SendResponse, SendResponse]),
            (
                "busy is repeated until the ACK",
                vec![say(486), Ack, Retransmission, Ack],
                vec![SendResponse, ForgetResponse],
            ),
            ("only one final response", vec![say(486), say(200)], vec![SendResponse]),
            ("no provisional response after the final", vec![say(486), say(180)], vec![SendResponse]),
        ] {
            let (mut tx, mut out) = (InviteServer::start(UDP, ms(0)), Vec::new());
            for input in inputs {
                tx.handle(input, UDP, ms(200), &mut out);
            }
            assert_eq!(out, expected, "{name}");
        }
    }

    #[test]
    fn rfc3261_17_2_1_unacked_failure_is_repeated_up_to_t2_then_given_up_after_64_t1() {
        let (mut tx, mut out) = (InviteServer::start(UDP, ms(0)), Vec::new());
        tx.handle(Respond(status(486)), UDP, ms(0), &mut Vec::new());
        let at = run_to_end(&mut tx, UDP, &mut out);
        assert_eq!(at, [500, 1500, 3500, 7500, 11500, 15500, 19500, 23500, 27500, 31500, 32000]);
        assert_eq!(out.last(), Some(&Output::TimedOut));
        assert!(tx.is_terminated());
    }

    #[test]
    fn rfc3261_17_2_1_reliable_transport_sends_a_failure_once_and_still_waits_for_the_ack() {
        let (mut tx, mut out) = (InviteServer::start(TCP, ms(0)), Vec::new());
        tx.handle(Respond(status(486)), TCP, ms(0), &mut Vec::new());
        assert_eq!(run_to_end(&mut tx, TCP, &mut out), [32000]);
        assert_eq!(out, [Output::TimedOut]);
    }

    #[test]
    fn rfc3261_17_2_1_confirmed_absorbs_acks_for_t4_accepted_for_64_t1() {
        for (name, pace, inputs, end) in [
            ("timer I over UDP", UDP, vec![Respond(status(486)), Ack], 5000),
            ("timer I over TCP", TCP, vec![Respond(status(486)), Ack], 0),
            ("timer L over UDP (RFC 6026)", UDP, vec![Respond(status(200)), Ack], 32000),
            ("timer L over TCP (RFC 6026)", TCP, vec![Respond(status(200)), Ack], 32000),
        ] {
            let (mut tx, mut out) = (InviteServer::start(pace, ms(0)), Vec::new());
            for input in inputs {
                tx.handle(input, pace, ms(0), &mut out);
            }
            out.clear();
            assert_eq!(run_to_end(&mut tx, pace, &mut out), [end], "{name}");
            assert!(out.is_empty() && tx.is_terminated(), "{name}");
        }
    }
}
