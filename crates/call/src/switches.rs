//! What switches of the dialplan (`switch => IAX2/…`) say of numbers: questions of the stories, answers of whoever can ask
//! elsewhere.

use core::future::Future;
use core::task::Poll;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use base::Instant;

use crate::chan::stop_of;
use crate::{Chan, Stop};

/// Answers that are kept at once; beyond it the oldest ones go.
const KEPT_MAX: usize = 16_384;
/// Questions that wait to be asked at once.
const WANTED_MAX: usize = 4_096;
/// How long a switch may take.
const WAIT: Duration = Duration::from_secs(10);
/// How long it holds that a switch could not be asked.
const FAILURE_KEPT: Duration = Duration::from_secs(5);

/// A number as a switch is asked for it: the switch's data, as `user:secret@host/context`, and the number.
pub type SwitchQuestion = (String, String);

/// What a switch says of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SwitchAnswer {
    /// It can be dialled.
    pub exists: bool,
    /// With more digits it may be another one that can be dialled.
    pub more: bool,
}

/// Questions and answers. One per core.
#[derive(Debug, Default)]
pub struct Switches {
    known: BTreeMap<SwitchQuestion, (SwitchAnswer, Instant)>,
    by_end: BTreeSet<(Instant, SwitchQuestion)>,
    asked: BTreeMap<SwitchQuestion, Instant>,
    wanted: Vec<SwitchQuestion>,
}

impl Switches {
    /// What is known of a number; asks when nothing is, or no longer.
    pub fn ask(&mut self, switch: &str, number: &str, now: Instant) -> Option<SwitchAnswer> {
        let question = (switch.to_owned(), number.to_owned());
        if let Some((answer, _)) = self.known.get(&question).filter(|(_, until)| now < *until) {
            return Some(*answer);
        }
        let waits = self.asked.get(&question).is_some_and(|until| now < *until);
        if !waits && self.wanted.len() < WANTED_MAX && self.asked.len() < KEPT_MAX {
            self.asked.insert(question.clone(), now + WAIT);
            self.wanted.push(question);
        }
        None
    }
    /// Questions to ask elsewhere; each is answered with [`Core::switch_said`](crate::Core::switch_said).
    pub fn take_wanted(&mut self) -> Vec<SwitchQuestion> {
        std::mem::take(&mut self.wanted)
    }
    /// What is known, for the console: question, answer, until when.
    pub fn known(&self, now: Instant) -> impl Iterator<Item = (&SwitchQuestion, SwitchAnswer, Instant)> {
        self.known
            .iter()
            .filter(move |(_, (_, until))| now < *until)
            .map(|(at, (said, until))| (at, *said, *until))
    }
    fn keep(&mut self, question: SwitchQuestion, answer: SwitchAnswer, until: Instant, now: Instant) {
        self.asked.remove(&question);
        while let Some((at, oldest)) = self.by_end.first().cloned() {
            if at > now && self.known.len() < KEPT_MAX {
                break;
            }
            self.by_end.remove(&(at, oldest.clone()));
            self.known.remove(&oldest);
        }
        if let Some((_, before)) = self.known.insert(question.clone(), (answer, until)) {
            self.by_end.remove(&(before, question.clone()));
        }
        self.by_end.insert((until, question));
    }
}

impl crate::Core {
    /// A switch has answered, for so long; `None`: it could not be asked. Who waits for it goes on.
    pub fn switch_said(&mut self, question: SwitchQuestion, answer: Option<(SwitchAnswer, Duration)>) {
        let (answer, keep) = answer.unwrap_or((SwitchAnswer::default(), FAILURE_KEPT));
        let now = self.now;
        self.switches.keep(question, answer, now + keep, now);
        self.outside_changed();
    }
}

impl Chan {
    /// What a switch says of a number; that it does not exist when the switch cannot be asked in time.
    pub fn ask_switch<'a>(
        &'a self,
        switch: &'a str,
        number: &'a str,
    ) -> impl Future<Output = Result<SwitchAnswer, Stop>> + 'a {
        let deadline = self.now() + WAIT;
        std::future::poll_fn(move |_| {
            let mut core = self.shard().core.borrow_mut();
            let mut exec = self.shard().exec.borrow_mut();
            let now = core.now;
            let answer = core.switches.ask(switch, number, now);
            let Some(channel) = core.get_mut(self.id()) else { return Poll::Ready(Err(Stop::Hangup)) };
            let done = match (answer, stop_of(channel, now)) {
                (Some(answer), _) => Ok(answer),
                (None, Some(stop)) => Err(stop),
                (None, None) if now < deadline => {
                    channel.waiter = exec.current();
                    let absolute = channel.absolute_deadline;
                    exec.set_deadline([Some(deadline), absolute].into_iter().flatten().min());
                    if let Some(current) = exec.current().filter(|id| !core.outside_waiters.contains(id)) {
                        core.outside_waiters.push(current);
                    }
                    return Poll::Pending;
                }
                (None, None) => Ok(SwitchAnswer::default()),
            };
            exec.set_deadline(None);
            Poll::Ready(done)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }
    const YES: SwitchAnswer = SwitchAnswer { exists: true, more: false };

    #[test]
    fn a_number_is_asked_for_once_and_again_when_the_answer_has_lapsed() {
        let mut switches = Switches::default();
        let question = ("far/in".to_owned(), "100".to_owned());
        assert_eq!(switches.ask("far/in", "100", at(0)), None);
        assert_eq!(switches.ask("far/in", "100", at(1)), None);
        assert_eq!(switches.take_wanted().len(), 1, "one question for two who wait");
        switches.keep(question.clone(), YES, at(60), at(1));
        assert_eq!(switches.ask("far/in", "100", at(59)), Some(YES));
        assert_eq!(switches.ask("far/out", "100", at(59)), None, "another switch");
        assert_eq!(switches.ask("far/in", "100", at(60)), None);
        assert_eq!(switches.take_wanted().len(), 2);
        assert_eq!(switches.known(at(60)).count(), 0);
    }

    #[test]
    fn an_answer_that_does_not_come_is_asked_for_again_and_what_is_kept_is_bounded() {
        let mut switches = Switches::default();
        switches.ask("far", "1", at(0));
        switches.take_wanted();
        switches.ask("far", "1", at(11));
        assert_eq!(switches.take_wanted().len(), 1);
        for number in 0..KEPT_MAX as u64 + 100 {
            switches.keep(("far".to_owned(), number.to_string()), YES, at(1000 + number), at(11));
        }
        assert_eq!((switches.known.len(), switches.by_end.len()), (KEPT_MAX, KEPT_MAX));
        assert_eq!(switches.ask("far", "0", at(11)), None, "the oldest have gone");
    }
}
