//! What the keys of a menu do.

use base::{Digit, Gain};
use call::conference::{Action, Step, Which};
use call::{Level, Stop};

use super::Ended;
use super::stay::Stay;
use crate::Flow;

/// Loudest and quietest step of a volume: four times as loud, a quarter.
const STEP_MAX: i8 = 4;

/// What a key has come to.
pub(super) enum Did {
    /// It is done.
    Done,
    /// Its member leaves.
    Ended(Ended),
    /// A digit ended its prompt and goes on what was pressed.
    GoesOn(Digit),
}

/// The next step of a volume. Steps 1 and -1 change nothing and are left out.
fn stepped(from: i8, step: Step) -> i8 {
    match (step, from) {
        (Step::Reset, _) | (Step::Up, -2) | (Step::Down, 2) => 0,
        (Step::Up, 0) => 2,
        (Step::Down, 0) => -2,
        (Step::Up, _) => from.saturating_add(1).min(STEP_MAX),
        (Step::Down, _) => from.saturating_sub(1).max(-STEP_MAX),
    }
}

impl Stay<'_> {
    /// Does one thing that a key is for.
    pub(super) async fn act(&mut self, action: &Action) -> Result<Did, Stop> {
        let is_admin = self.visit.user.seat.is_admin;
        if action.is_for_administrators() && !is_admin {
            self.visit.call.log(
                Level::Warning,
                &format!("{} is for administrators; '{}' is none", action.spell(), self.visit.user.name),
            );
            return self.refuse().await;
        }
        match action {
            Action::NoOp => {}
            Action::ToggleMute => self.toggle_mute().await?,
            Action::Playback(names) => drop(self.hear(names, false).await?),
            Action::PlaybackAndContinue(names) => {
                if let Some(digit) = self.hear(names, true).await? {
                    return Ok(Did::GoesOn(digit));
                }
            }
            Action::Listening(step) => {
                self.listening = stepped(self.listening, *step);
                let gain = Gain::of_step(self.listening);
                self.adjust(|mixing| mixing.listening = gain);
            }
            Action::Talking(step) => {
                self.talking = stepped(self.talking, *step);
                let gain = Gain::of_step(self.talking);
                self.adjust(|mixing| mixing.talking = gain);
            }
            Action::Dialplan { context, exten, priority } => {
                return self.excursion(&format!("{context},{exten},{priority}")).await;
            }
            Action::Leave => return Ok(Did::Ended(Ended::Key)),
            Action::KickLast => {
                let name = &self.visit.conference;
                if self.chan.core(|core| core.conference_kick(name, Which::Last)).is_err() {
                    return self.refuse().await;
                }
            }
            Action::ToggleLock => self.toggle_lock().await?,
            Action::ToggleParticipants => self.toggle_participants().await?,
            Action::Count => {
                let others = self.chan.core(|core| {
                    core.conferences.get(&self.visit.conference).map_or(0, |c| c.active().saturating_sub(1))
                });
                let names = self.visit.count(others).await?;
                self.hear(&names, false).await?;
            }
            Action::TakeVideo => {
                let (name, id) = (&self.visit.conference, self.chan.id());
                if self.chan.core(|core| core.conference_choose_video(name, id)).is_err() {
                    return self.refuse().await;
                }
            }
            Action::ReleaseVideo => {
                let (name, id) = (&self.visit.conference, self.chan.id());
                self.chan.core(|core| core.conference_release_video(name, id));
            }
            Action::ToggleBinaural => {
                if let Some(why) = action.is_without_effect() {
                    let text = format!("{} has no effect: {why}", action.spell());
                    self.visit.call.log(Level::Debug(1), &text);
                }
            }
        }
        Ok(Did::Done)
    }
    async fn refuse(&mut self) -> Result<Did, Stop> {
        let sound = self.visit.bridge.sounds.error_menu.clone();
        self.hear(&[sound], false).await?;
        Ok(Did::Done)
    }
    fn adjust(&self, change: impl FnOnce(&mut base::MemberSettings)) {
        self.chan.core(|core| core.conference_volume(self.chan.id(), change));
    }
    async fn toggle_mute(&mut self) -> Result<(), Stop> {
        let id = self.chan.id();
        let muted = self.chan.core(|core| {
            let muted = !core.conferences.member(id).is_some_and(|member| member.seat.mixing.muted);
            let _ = core.conference_mute(&self.visit.conference, Which::One(id), muted);
            muted
        });
        let sounds = &self.visit.bridge.sounds;
        let sound = if muted { sounds.muted.clone() } else { sounds.unmuted.clone() };
        self.hear(&[sound], false).await?;
        Ok(())
    }
    async fn toggle_lock(&mut self) -> Result<(), Stop> {
        let name = &self.visit.conference;
        let locked = self.chan.core(|core| {
            let locked = !core.conferences.get(name).is_some_and(|conference| conference.is_locked);
            let _ = core.conference_lock(name, locked);
            locked
        });
        let sounds = &self.visit.bridge.sounds;
        let sound = if locked { sounds.locked_now.clone() } else { sounds.unlocked_now.clone() };
        self.hear(&[sound], false).await?;
        Ok(())
    }
    async fn toggle_participants(&mut self) -> Result<(), Stop> {
        let name = &self.visit.conference;
        let muted = self.chan.core(|core| {
            let muted = !core.conferences.get(name).is_some_and(|conference| conference.mutes_participants);
            let _ = core.conference_mute_participants(name, muted);
            muted
        });
        let sounds = &self.visit.bridge.sounds;
        let sound = if muted { &sounds.participants_muted } else { &sounds.participants_unmuted };
        self.visit.announce_names(std::slice::from_ref(sound)).await.map(drop)
    }
    /// Runs a place of the dialplan, while neither the member nor the others hear each other.
    async fn excursion(&mut self, place: &str) -> Result<Did, Stop> {
        let id = self.chan.id();
        self.hush();
        self.chan.core(|core| core.conference_away(id, true));
        let came_back = self.visit.call.excursion(place).await;
        self.chan.core(|core| core.conference_away(id, false));
        match came_back? {
            Flow::Hangup => Err(self.end_call()),
            _ => Ok(Did::Done),
        }
    }
    /// The dialplan has ended the call.
    fn end_call(&self) -> Stop {
        self.chan.hangup(base::Cause::NORMAL_CLEARING);
        Stop::Hangup
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_a_volume_is_heard_up_to_the_loudest_and_the_quietest() {
        let (mut step, mut gains) = (0, Vec::new());
        for to in
            [Step::Up, Step::Up, Step::Up, Step::Up, Step::Reset, Step::Down, Step::Down, Step::Up, Step::Up]
        {
            step = stepped(step, to);
            gains.push(Gain::of_step(step).0);
        }
        assert_eq!(gains, [512, 768, 1024, 1024, 256, 128, 85, 128, 256]);
    }
}
