//! What a run, or a part of it, has shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::histogram::Histogram;
use crate::reception::Arrivals;

/// Counted over a run or a window of it.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// How packets were moved, and why so.
    pub io: String,
    /// Length of the window.
    pub length: Duration,
    /// Calls that were begun.
    pub begun: u64,
    /// Calls of ours that were answered.
    pub answered: u64,
    /// Calls that came in and were answered.
    pub taken: u64,
    /// Calls of ours that were refused, by status; 408 stands for no answer.
    pub refused: BTreeMap<u16, u64>,
    /// Calls that the other side ended.
    pub ended: u64,
    /// Sides of calls that are up.
    pub up: u64,
    /// From INVITE to 200.
    pub answer_time: Histogram,
    /// From INVITE to a refusal.
    pub refusal_time: Histogram,
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that no socket took.
    pub unsent: u64,
    /// What arrived.
    pub arrivals: Arrivals,
    /// Sides that missed a packet.
    pub lossy: u64,
    /// Sides that hear nothing, though they have been up for a while.
    pub silent: u64,
    /// Interarrival jitter of each side at the end.
    pub jitter: Histogram,
    /// Times that a side was listened to.
    pub checked: u64,
    /// Times that it heard something else than it ought to.
    pub wrong: u64,
    /// What the generator itself did.
    pub own: Own,
}

/// The generator's own doings, by which the rest is to be judged.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// Processor time.
    pub cpu: Duration,
    /// Of it, for sending: system calls, and what the kernel does for a packet on the way, up to the peer's queue.
    pub cpu_send: Duration,
    /// Of it, for receiving.
    pub cpu_receive: Duration,
    /// How late packets were sent.
    pub lateness: Histogram,
    /// Milliseconds of sending that were left out because it was too late for them.
    pub skipped: u64,
}

impl Report {
    /// Packets lost in a hundred that should have come.
    pub fn loss_percent(&self) -> f64 {
        let lost = self.arrivals.lost as f64;
        let all = self.arrivals.received as f64 + lost;
        if all > 0.0 { lost / all * 100.0 } else { 0.0 }
    }

    /// Everything that was not as it should be, in words; nothing lost beyond `allowed_loss` percent counts.
    pub fn complaints(&self, allowed_loss: f64) -> Vec<String> {
        let mut complaints = Vec::new();
        for (status, count) in &self.refused {
            complaints.push(match status {
                408 => format!("{count} calls were not answered"),
                _ => format!("{count} calls were refused with {status}"),
            });
        }
        if self.loss_percent() > allowed_loss {
            complaints.push(format!(
                "{} packets were lost, {:.3} %; {} sides of calls missed some",
                self.arrivals.lost,
                self.loss_percent(),
                self.lossy
            ));
        }
        if self.silent > 0 {
            complaints.push(format!("{} sides of calls heard nothing", self.silent));
        }
        if self.wrong > 0 {
            complaints.push(format!("{} of {} times something else was heard", self.wrong, self.checked));
        }
        if self.unsent + self.own.skipped > 0 {
            complaints.push(format!(
                "the generator itself was too slow: {} packets not sent, {} ms left out",
                self.unsent, self.own.skipped
            ));
        }
        complaints
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut row = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<22} {value}");
        };
        let seconds = self.length.as_secs_f64().max(1e-9);
        row("back-end", self.io.clone());
        row("time", format!("{seconds:.1} s"));
        row("calls begun", self.begun.to_string());
        row(
            "answered",
            format!("{}, {} more came in; {} sides up at the end", self.answered, self.taken, self.up),
        );
        let refused: Vec<String> =
            self.refused.iter().map(|(status, count)| format!("{count} with {status}")).collect();
        row("refused", if refused.is_empty() { "none".into() } else { refused.join(", ") });
        row("ended by the peer", self.ended.to_string());
        row("time to answer", spread(&self.answer_time));
        if self.refusal_time.count() > 0 {
            row("time to refusal", spread(&self.refusal_time));
        }
        let Arrivals { received, lost, duplicates, reordered, lateness, deviation } = &self.arrivals;
        row("packets sent", format!("{}, {:.0} a second", self.sent, self.sent as f64 / seconds));
        row("packets received", format!("{received}, {:.0} a second", *received as f64 / seconds));
        row("lost", format!("{lost}, {:.4} %, in {} sides of calls", self.loss_percent(), self.lossy));
        row("twice, out of order", format!("{duplicates}, {reordered}"));
        row("late on the grid", spread(lateness));
        row("off the last packet", spread(deviation));
        row("jitter", spread(&self.jitter));
        row("silent sides", self.silent.to_string());
        row("audio looked into", format!("{} times, {} times wrong", self.checked, self.wrong));
        let own = &self.own;
        row(
            "generator",
            format!(
                "{:.1} % of a core (receiving {:.1}, sending {:.1}); sends late {}",
                share(own.cpu, self.length),
                share(own.cpu_receive, self.length),
                share(own.cpu_send, self.length),
                spread(&own.lateness)
            ),
        );
        text
    }

    /// The report for programs. Times are in microseconds.
    pub fn json(&self) -> Value {
        let Arrivals { received, lost, duplicates, reordered, lateness, deviation } = &self.arrivals;
        let refused: BTreeMap<String, u64> =
            self.refused.iter().map(|(status, count)| (status.to_string(), *count)).collect();
        json!({
            "back_end": self.io,
            "seconds": self.length.as_secs_f64(),
            "calls": {
                "begun": self.begun, "answered": self.answered, "taken": self.taken, "refused": refused,
                "ended": self.ended, "up": self.up,
                "answer_us": times(&self.answer_time), "refusal_us": times(&self.refusal_time),
            },
            "packets": {
                "sent": self.sent, "unsent": self.unsent, "received": received, "lost": lost,
                "loss_percent": self.loss_percent(), "duplicates": duplicates, "reordered": reordered,
                "lateness_us": times(lateness), "deviation_us": times(deviation), "jitter_us": times(&self.jitter),
            },
            "sides": { "lossy": self.lossy, "silent": self.silent },
            "audio": { "checked": self.checked, "wrong": self.wrong },
            "generator": {
                "cpu_percent": share(self.own.cpu, self.length),
                "send_percent": share(self.own.cpu_send, self.length),
                "receive_percent": share(self.own.cpu_receive, self.length),
                "lateness_us": times(&self.own.lateness), "skipped_ms": self.own.skipped,
            },
        })
    }
}

fn share(part: Duration, whole: Duration) -> f64 {
    part.as_secs_f64() / whole.as_secs_f64().max(1e-9) * 100.0
}

fn spread(histogram: &Histogram) -> String {
    if histogram.count() == 0 {
        return "-".into();
    }
    let at = |permille| histogram.permille(permille).as_secs_f64() * 1e3;
    format!(
        "{:.2} ms half, {:.2} ms 99 %, {:.2} ms 99.9 %, {:.2} ms all",
        at(500),
        at(990),
        at(999),
        histogram.worst().as_secs_f64() * 1e3
    )
}

fn times(histogram: &Histogram) -> Value {
    let at = |permille| u64::try_from(histogram.permille(permille).as_micros()).unwrap_or(u64::MAX);
    json!({ "count": histogram.count(), "p50": at(500), "p99": at(990), "p999": at(999), "worst": at(1000) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_and_what_is_allowed_is_not() {
        let mut report = Report::default();
        report.arrivals.received = 999;
        report.arrivals.lost = 1;
        assert_eq!(report.complaints(0.1), Vec::<String>::new());
        assert_eq!(report.complaints(0.05), ["1 packets were lost, 0.100 %; 0 sides of calls missed some"]);
        report.refused = [(408, 2), (503, 7)].into();
        report.wrong = 1;
        report.checked = 3;
        let complaints = report.complaints(1.0);
        assert_eq!(
            complaints,
            [
                "2 calls were not answered",
                "7 calls were refused with 503",
                "1 of 3 times something else was heard"
            ]
        );
        let json = report.json();
        assert_eq!(
            (json["calls"]["refused"]["503"].as_u64(), json["packets"]["lost"].as_u64()),
            (Some(7), Some(1))
        );
        assert!(report.text().contains("2 with 408, 7 with 503"));
    }
}
