//! Server transaction of every method but INVITE and ACK.

use super::{Pace, Status, due};
use base::Instant;

/// Non-INVITE server transaction (RFC 3261 §17.2.2).
#[derive(Debug)]
pub struct NonInviteServer {
    state: State,
    give_up_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Trying,
    Proceeding,
    Completed,
    Terminated,
}

/// What can happen to a non-INVITE server transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The request came again.
    Retransmission,
    /// The user answers.
    Respond(Status),
    /// The transport could not send.
    TransportError,
    /// Time has reached the deadline.
    Timeout,
}

/// What a non-INVITE server transaction wants done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// The latest response leaves, first or again.
    SendResponse,
    /// The latest response is not needed any more.
    ForgetResponse,
    /// A response could not be sent.
    Failed,
}

impl NonInviteServer {
    /// Starts with the arrival of the request; an unanswered one is given up after `2 * 64*T1`.
    ///
    /// The RFC leaves Trying without a timer, but the peer has forgotten the request after 64*T1 (its timer F), and
    /// what the user never answers must not stay in the table.
    pub fn start(pace: Pace, now: Instant) -> Self {
        Self { state: State::Trying, give_up_at: Some(now + pace.timers.timeout * 2) }
    }

    /// When `handle(Input::Timeout, ..)` next wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        self.give_up_at
    }

    /// Whether the final response has not left.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Trying | State::Proceeding)
    }

    /// Whether the machine has done all it ever will.
    pub fn is_terminated(&self) -> bool {
        self.state == State::Terminated
    }

    /// The only way in.
    pub fn handle(&mut self, input: Input, pace: Pace, now: Instant, out: &mut Vec<Output>) {
        use {Input::*, State::*};
        match (self.state, input) {
            (Trying | Proceeding, Respond(s)) if s.class() == 1 => {
                out.push(Output::SendResponse);
                self.state = Proceeding;
            }
            (Trying | Proceeding, Respond(_)) => {
                out.push(Output::SendResponse);
                let wait = pace.linger(pace.timers.timeout); // timer J
                (self.state, self.give_up_at) = (Completed, Some(now + wait));
            }
            (Proceeding | Completed, Retransmission) => out.push(Output::SendResponse),
            (Trying | Proceeding | Completed, Timeout) if due(self.give_up_at, now) => {
                out.push(Output::ForgetResponse);
                (self.state, self.give_up_at) = (Terminated, None);
            }
            (Trying | Proceeding | Completed, TransportError) => {
                out.push(Output::Failed);
                (self.state, self.give_up_at) = (Terminated, None);
            }
            // Late or duplicate input changes nothing.
            (Trying | Proceeding | Completed | Terminated, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TCP, UDP, ms, status};
    use super::*;
    use Input::{Respond, Retransmission, Timeout};
    use Output::{Failed, ForgetResponse, SendResponse};

    #[test]
    fn rfc3261_17_2_2_inputs_give_the_outputs_of_the_figure() {
        let say = |code| Respond(status(code));
        for (name, inputs, expected) in [
            ("unanswered: the request again is absorbed", vec![Retransmission], vec![]),
            ("provisional is repeated", vec![say(183), Retransmission], vec![SendResponse, SendResponse]),
            ("final is repeated", vec![say(200), Retransmission], vec![SendResponse, SendResponse]),
            ("only one final response", vec![say(404), say(200)], vec![SendResponse]),
            ("no provisional after the final", vec![say(404), say(100)], vec![SendResponse]),
            (
                "a lost transport ends it",
                vec![say(200), Input::TransportError, Retransmission],
                vec![SendResponse, Failed],
            ),
            ("an early timeout changes nothing", vec![say(200), Timeout], vec![SendResponse]),
        ] {
            let (mut tx, mut out) = (NonInviteServer::start(UDP, ms(0)), Vec::new());
            for input in inputs {
                tx.handle(input, UDP, ms(200), &mut out);
            }
            assert_eq!(out, expected, "{name}");
        }
    }

    #[test]
    fn rfc3261_17_2_2_answer_is_kept_64_t1_over_udp_and_not_at_all_over_tcp() {
        for (name, pace, answered, end) in [
            ("timer J over UDP", UDP, true, 32000),
            ("timer J over TCP", TCP, true, 0),
            ("never answered", UDP, false, 64000),
        ] {
            let (mut tx, mut out) = (NonInviteServer::start(pace, ms(0)), Vec::new());
            if answered {
                tx.handle(Respond(status(200)), pace, ms(0), &mut out);
            }
            assert_eq!(tx.deadline(), Some(ms(end)), "{name}");
            tx.handle(Timeout, pace, ms(end), &mut out);
            assert_eq!(out.last(), Some(&ForgetResponse), "{name}");
            assert!(tx.is_terminated(), "{name}");
        }
    }
}
