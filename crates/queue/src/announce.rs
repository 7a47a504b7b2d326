//! What a waiting caller is told, and when.

use core::time::Duration;
use std::sync::Arc;

use base::Instant;

use crate::{Announcing, TellHold, TellPosition};

/// A piece of an announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// A sound by name.
    Sound(Arc<str>),
    /// A number, in the caller's language.
    Number(u32),
}

/// What one caller has been told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Voice {
    place_said: Option<(Instant, usize)>,
    hold_said: bool,
    periodic_at: Option<Instant>,
    periodic_next: usize,
    stage: Speaking,
    /// What is due is looked at then, and once a second from there on.
    look_at: Option<Instant>,
}

/// How often what is due is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// What a caller hears at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Speaking {
    /// Nothing of ours.
    #[default]
    Nothing,
    /// Its place; what comes periodically may follow at once.
    Place,
    /// Its place has been said just now.
    AfterPlace,
    /// What comes periodically.
    Periodic,
}

impl Voice {
    /// For a caller who joins now.
    pub(crate) fn new(announcing: &Announcing, now: Instant) -> Self {
        let first = announcing.periodic_first.unwrap_or(announcing.periodic_every);
        let tells = !announcing.periodic_every.is_zero() && !announcing.periodic.is_empty();
        Self { periodic_at: tells.then(|| now + first), look_at: Some(now), ..Self::default() }
    }
    /// When something is to be said next, as things stand.
    pub(crate) fn deadline(&self, announcing: &Announcing, place: usize) -> Option<Instant> {
        match self.stage {
            Speaking::Place | Speaking::Periodic => return None,
            Speaking::AfterPlace => return Some(Instant::ZERO),
            Speaking::Nothing => {}
        }
        let due = [self.place_due(announcing, place), self.periodic_at].into_iter().flatten().min()?;
        let look = self.look_at.unwrap_or(due);
        let looks = due.since(look).as_millis().div_ceil(LOOK.as_millis());
        Some(look + LOOK * u32::try_from(looks).unwrap_or(u32::MAX))
    }
    fn place_due(&self, announcing: &Announcing, place: usize) -> Option<Instant> {
        if announcing.every.is_zero() {
            return None;
        }
        let Some((at, said)) = self.place_said else { return Some(Instant::ZERO) };
        if announcing.only_up && place > said {
            return None;
        }
        let wait = if place == said { announcing.every.max(announcing.least) } else { announcing.least };
        Some(at + wait)
    }
    /// What is said now, in order; nothing when nothing is due. `waited`: how long the caller has; `hold`: how long
    /// callers wait on average.
    pub(crate) fn speak(
        &mut self,
        announcing: &Announcing,
        place: usize,
        (waited, hold): (Duration, Duration),
        now: Instant,
        draw: &mut dyn FnMut(u64) -> u64,
    ) -> Vec<Said> {
        match self.stage {
            Speaking::Place | Speaking::Periodic => return Vec::new(),
            Speaking::AfterPlace => {
                (self.stage, self.look_at) = (Speaking::Nothing, Some(now + LOOK));
                return self.say_periodic(announcing, now, draw);
            }
            Speaking::Nothing => {}
        }
        if self.deadline(announcing, place).is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.look_at = Some(now + LOOK);
        let mut said = Vec::new();
        if self.place_due(announcing, place).is_some_and(|at| at <= now) {
            self.place_said = Some((now, place));
            said = place_and_hold(announcing, place, hold.saturating_sub(waited), self.hold_said);
            self.hold_said = true;
            self.stage = if said.is_empty() { Speaking::Nothing } else { Speaking::Place };
        }
        if said.is_empty() {
            said = self.say_periodic(announcing, now, draw);
        }
        said
    }
    /// What comes periodically, when it is due.
    fn say_periodic(
        &mut self,
        announcing: &Announcing,
        now: Instant,
        draw: &mut dyn FnMut(u64) -> u64,
    ) -> Vec<Said> {
        if self.periodic_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        let count = announcing.periodic.len();
        let index = match announcing.periodic_random {
            true => usize::try_from(draw(count as u64)).unwrap_or(0),
            false => self.periodic_next % count.max(1),
        };
        self.periodic_next = index + 1;
        self.periodic_at = Some(now + announcing.periodic_every);
        let said: Vec<Said> = announcing.periodic.get(index).cloned().map(Said::Sound).into_iter().collect();
        self.stage = if said.is_empty() { Speaking::Nothing } else { Speaking::Periodic };
        said
    }
    /// What was said has been heard, or will never be.
    pub(crate) fn heard(&mut self, announcing: &Announcing, now: Instant) {
        self.look_at = Some(now + LOOK);
        self.stage = match self.stage {
            Speaking::Place => Speaking::AfterPlace,
            _ => Speaking::Nothing,
        };
        if announcing.periodic_relative && self.periodic_at.is_some() {
            self.periodic_at = Some(now + announcing.periodic_every);
        }
    }
}

/// The words for a place and for the time that is left.
fn place_and_hold(announcing: &Announcing, place: usize, left: Duration, hold_said: bool) -> Vec<Said> {
    let sounds = &announcing.sounds;
    let sound = |name: &Arc<str>| Said::Sound(name.clone());
    let limit = announcing.position_limit;
    let ahead = u32::try_from(place).unwrap_or(u32::MAX);
    let mut said = Vec::new();
    match announcing.position {
        TellPosition::No => {}
        TellPosition::Limit if ahead > limit => {}
        _ if place == 1 => said.push(sound(&sounds.you_are_next)),
        TellPosition::More if ahead > limit => {
            said.extend([sound(&sounds.quantity_before), Said::Number(limit), sound(&sounds.quantity_after)]);
        }
        _ => said.extend([sound(&sounds.there_are), Said::Number(ahead), sound(&sounds.calls_waiting)]),
    }
    let tells_hold = match announcing.hold {
        TellHold::No => false,
        TellHold::Yes => true,
        TellHold::Once => !hold_said,
    };
    if tells_hold {
        said.extend(hold_words(announcing, left));
    }
    if !said.is_empty() {
        said.push(sound(&sounds.thank_you));
    }
    said
}

/// "The estimated hold time is … minutes … seconds", rounded as the queue says; nothing for nothing.
fn hold_words(announcing: &Announcing, left: Duration) -> Vec<Said> {
    let sounds = &announcing.sounds;
    let sound = |name: &Arc<str>| Said::Sound(name.clone());
    let (minutes, seconds) = minutes_and_seconds(left, announcing.round_seconds);
    if minutes == 0 && seconds == 0 {
        return Vec::new();
    }
    let mut said = vec![sound(&sounds.hold_time)];
    if minutes > 0 {
        let unit = if minutes == 1 { &sounds.minute } else { &sounds.minutes };
        said.extend([Said::Number(minutes), sound(unit)]);
    }
    if seconds > 0 {
        said.extend([Said::Number(seconds), sound(&sounds.seconds)]);
    }
    said
}

/// A time in whole minutes, or, with seconds that are rounded to a multiple of `step`, in both.
pub fn minutes_and_seconds(time: Duration, step: u32) -> (u32, u32) {
    let whole = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    if step == 0 {
        return (whole.saturating_add(30) / 60, 0);
    }
    let rounded = whole.saturating_add(step / 2) / step * step;
    (rounded / 60, rounded % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(said: &[Said]) -> String {
        let word = |one: &Said| match one {
            Said::Sound(name) => name.trim_start_matches("queue-").to_owned(),
            Said::Number(number) => number.to_string(),
        };
        said.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_place_and_the_time_that_is_left_are_said_as_the_queue_asks() {
        use TellHold as H;
        use TellPosition as P;
        let cases = [
            (P::Yes, H::No, 1, 0, 0, "youarenext thankyou"),
            (P::Yes, H::No, 4, 0, 0, "thereare 4 callswaiting thankyou"),
            (P::No, H::No, 4, 0, 0, ""),
            (P::Limit, H::No, 5, 0, 0, "thereare 5 callswaiting thankyou"),
            (P::Limit, H::No, 6, 0, 0, ""),
            (P::More, H::No, 6, 0, 0, "quantity1 5 quantity2 thankyou"),
            (P::No, H::Yes, 3, 100, 0, "holdtime 2 minutes thankyou"),
            (P::No, H::Yes, 3, 62, 0, "holdtime 1 minute thankyou"),
            (P::No, H::Yes, 3, 20, 0, ""),
            (P::No, H::Yes, 3, 22, 10, "holdtime 20 seconds thankyou"),
            (P::Yes, H::Yes, 1, 95, 30, "youarenext holdtime 1 minute 30 seconds thankyou"),
        ];
        for (position, hold, place, left, round_seconds, expected) in cases {
            let announcing = Announcing { position, hold, round_seconds, ..Announcing::default() };
            let said = place_and_hold(&announcing, place, Duration::from_secs(left), false);
            assert_eq!(words(&said), expected, "{position:?} {hold:?} {place} {left}");
        }
        let once = Announcing { hold: H::Once, position: P::No, ..Announcing::default() };
        assert_eq!(place_and_hold(&once, 2, Duration::from_secs(60), true), []);
    }

    #[test]
    fn nothing_is_said_over_another_and_what_is_due_is_looked_at_once_a_second() {
        let announcing = Announcing {
            every: Duration::from_secs(3),
            least: Duration::from_secs(1),
            periodic: vec!["one".into()],
            periodic_every: Duration::from_secs(2),
            ..Announcing::default()
        };
        let mut voice = Voice::new(&announcing, Instant::ZERO);
        let (mut log, mut ends) = (Vec::new(), None);
        for tenth in 0..60 {
            let now = Instant::ZERO + Duration::from_millis(tenth * 100);
            if ends == Some(tenth) {
                voice.heard(&announcing, now);
            }
            let said = voice.speak(&announcing, 2, Default::default(), now, &mut |_| 0);
            if !said.is_empty() {
                log.push((tenth, words(&said)));
                ends = Some(tenth + if said.len() > 1 { 12 } else { 5 });
            }
        }
        let place = "thereare 2 callswaiting thankyou";
        let expected =
            [(0, place), (22, "one"), (37, place), (49, "one")].map(|(at, text)| (at, text.to_owned()));
        assert_eq!(log, expected);
    }

    #[test]
    fn places_come_at_their_frequency_or_earlier_when_they_change_and_periodic_ones_in_turn() {
        let announcing = Announcing {
            every: Duration::from_secs(60),
            least: Duration::from_secs(20),
            periodic: vec!["one".into(), "two".into()],
            periodic_every: Duration::from_secs(50),
            periodic_first: Some(Duration::from_secs(10)),
            ..Announcing::default()
        };
        let mut voice = Voice::new(&announcing, Instant::ZERO);
        let mut log = Vec::new();
        for second in 0..150 {
            let now = Instant::ZERO + Duration::from_secs(second);
            let place = if second < 30 { 3 } else { 2 };
            let follows = voice.stage == Speaking::AfterPlace;
            assert_eq!(
                !follows && voice.deadline(&announcing, place).is_some_and(|at| at <= now),
                !voice.clone().speak(&announcing, place, Default::default(), now, &mut |_| 0).is_empty(),
                "at {second} s the deadline says when something is to be said"
            );
            let said = voice.speak(&announcing, place, Default::default(), now, &mut |_| 0);
            if !said.is_empty() {
                log.push(format!("{second}: {}", words(&said)));
                voice.heard(&announcing, now);
            }
        }
        assert_eq!(
            log,
            [
                "0: thereare 3 callswaiting thankyou",
                "10: one",
                "30: thereare 2 callswaiting thankyou",
                "60: two",
                "90: thereare 2 callswaiting thankyou",
                "110: one",
            ]
        );
    }
}
