//! Who leads the talk in a room: whose picture the others want to see.

use base::StreamId;

use crate::room::Room;

/// Who is louder for so long takes the lead from one who still talks, milliseconds: two or three words. Shorter would show
/// whoever coughs or agrees.
const TAKES_MS: u32 = 1000;
/// The same from one who has ceased to talk, or where nobody has led yet.
const FOLLOWS_MS: u32 = 300;

/// The lead, and who is about to take it.
#[derive(Debug, Default)]
pub(super) struct Leader {
    who: Option<StreamId>,
    challenger: Option<StreamId>,
    /// By how much longer the challenger has been the loudest than others.
    ahead_ms: u32,
}

impl Leader {
    /// Somebody has left.
    pub(super) fn forget(&mut self, id: StreamId) {
        self.who.take_if(|who| *who == id);
        if self.challenger == Some(id) {
            (self.challenger, self.ahead_ms) = (None, 0);
        }
    }
    /// One round of `ms` in which this member was the loudest of those who talk; who leads from here on, when that has
    /// changed.
    fn round(&mut self, loudest: Option<StreamId>, leader_talks: bool, ms: u32) -> Option<StreamId> {
        // Silence takes nothing from anybody: words have pauses.
        let loudest = loudest?;
        if self.challenger == Some(loudest) {
            self.ahead_ms += ms;
        } else {
            self.ahead_ms = self.ahead_ms.saturating_sub(ms);
            if self.ahead_ms == 0 {
                self.challenger = Some(loudest).filter(|loudest| self.who != Some(*loudest));
                self.ahead_ms = if self.challenger.is_some() { ms } else { 0 };
            }
        }
        let needed = if leader_talks { TAKES_MS } else { FOLLOWS_MS };
        if self.challenger.is_none() || self.ahead_ms < needed {
            return None;
        }
        (self.who, self.ahead_ms) = (self.challenger.take(), 0);
        self.who
    }
}

impl Room {
    /// Judges the round that has been mixed: who leads the talk from here on, when that has changed.
    pub(super) fn lead(&mut self) -> Option<StreamId> {
        if !self.settings.video.tells_speaker {
            return None;
        }
        let (ms, _) = self.rounds();
        let Self { members, leader, .. } = self;
        let talkers = || members.iter().filter(|member| member.talk.talks && member.is_heard);
        let loudest = talkers().max_by_key(|member| member.talk.presence).map(|member| member.id);
        let leader_talks = leader.who.is_some_and(|who| talkers().any(|member| member.id == who));
        leader.round(loudest, leader_talks, ms.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn id(slot: u32) -> StreamId {
        StreamId::new(slot, 0)
    }

    /// Rounds of 20 ms: who is the loudest (`.`: nobody), and whether the leader talks then (upper case: it does).
    fn leads(rounds: &[(u32, char, bool)]) -> Vec<(u32, u32)> {
        let mut leader = Leader::default();
        let (mut led, mut at) = (Vec::new(), 0);
        for (count, who, leader_talks) in rounds {
            for _ in 0..*count {
                let loudest = who.is_ascii_lowercase().then(|| id(u32::from(*who)));
                at += 20;
                if let Some(who) = leader.round(loudest, *leader_talks, 20) {
                    led.push((at, who.slot));
                }
            }
        }
        led
    }

    #[test]
    fn who_is_loudest_for_long_enough_leads_and_a_cough_takes_nothing() {
        let (a, b) = (u32::from('a'), u32::from('b'));
        for (name, rounds, expected) in [
            ("the first one soon", &[(15, 'a', false)][..], &[(300, a)][..]),
            ("not at once", &[(14, 'a', false), (100, '.', false)], &[]),
            ("pauses take nothing", &[(10, 'a', false), (50, '.', false), (5, 'a', false)], &[(1300, a)]),
            (
                "who interrupts has to be louder for a second",
                &[(15, 'a', false), (49, 'b', true), (1, 'b', true)],
                &[(300, a), (1300, b)],
            ),
            ("who answers soon", &[(15, 'a', false), (15, 'b', false)], &[(300, a), (600, b)]),
            (
                "a cough is forgotten as soon as the leader goes on",
                &[(15, 'a', false), (20, 'b', true), (20, 'a', true), (49, 'b', true)],
                &[(300, a)],
            ),
            (
                "two who talk at once do not flicker",
                &[
                    (15, 'a', false),
                    (5, 'b', true),
                    (5, 'a', true),
                    (5, 'b', true),
                    (5, 'a', true),
                    (5, 'b', true),
                ],
                &[(300, a)],
            ),
            ("who leads already does not lead anew", &[(15, 'a', false), (500, 'a', true)], &[(300, a)]),
        ] {
            assert_eq!(leads(rounds), expected, "{name}");
        }
    }

    #[test]
    fn who_has_left_leads_no_more_and_whoever_talks_next_does() {
        let mut leader = Leader::default();
        let talk = |leader: &mut Leader, who: u32, rounds: u32| {
            (0..rounds).filter_map(|_| leader.round(Some(id(who)), false, 20)).last()
        };
        assert_eq!(talk(&mut leader, 1, 15), Some(id(1)));
        assert_eq!(talk(&mut leader, 2, 14), None);
        leader.forget(id(2));
        assert_eq!(talk(&mut leader, 3, 14), None, "the one who had nearly taken the lead does not lend it");
        leader.forget(id(1));
        assert_eq!(talk(&mut leader, 3, 1), Some(id(3)));
    }
}
