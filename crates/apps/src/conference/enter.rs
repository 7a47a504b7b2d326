//! What comes before somebody is in a conference, and after: PIN, name, what it and the others hear.

use core::time::Duration;
use std::future::Future;

use base::{FormatId, RowsAsk, RowsWant};
use call::conference::{Guest, Refused, Which};
use call::{Chan, Core, Level, LinkWant, Prompt, Stop};

use super::record::start_own;
use super::stay::Stay;
use super::{Ended, Visit};
use crate::own_name::Name;
use crate::{gate, say};

/// How long a row may take to be written.
const ROW_WITHIN: Duration = Duration::from_secs(10);
/// Tries that a PIN may take.
const PIN_TRIES: usize = 3;
/// Longest name that somebody says.
const NAME_LENGTH: Duration = Duration::from_secs(10);
/// How often a name may be said again.
const NAME_TRIES: usize = 10;

/// What all hear of a member's coming and going, read before it is needed: leaving waits for nothing.
#[derive(Default)]
pub(super) struct Heralds {
    pub(super) came: Vec<Prompt>,
    pub(super) left: Vec<Prompt>,
    /// When it was the last marked member.
    pub(super) leader_left: Option<Prompt>,
}

/// The stay in a conference, which ends however the story ends.
struct Seated<'a> {
    chan: &'a Chan,
    heralds: &'a Heralds,
    closes: bool,
    counted: Option<&'a (String, String)>,
}

impl Drop for Seated<'_> {
    fn drop(&mut self) {
        // A prompt for this member alone would go on into the next step.
        self.chan.stop_sound();
        let shard = self.chan.shard();
        let of =
            |core: &mut Core| core.conferences.of(self.chan.id()).map(|c| (c.name.clone(), c.members.len()));
        // With the last one the conference ends: what all were to hear is heard by nobody.
        if let Some((name, 1)) = self.chan.core(of) {
            self.chan.core(|core| core.conference_unheard(&name, &self.heralds.left));
        }
        let left = self.chan.core(|core| {
            let left = core.conference_leave(self.chan.id());
            if let Some(row) = self.counted {
                count_in_row(core, row, left.as_ref().map_or(0, |left| left.count));
            }
            left.filter(|left| left.count > 0)
        });
        let Some(left) = left else { return };
        shard.conference_announce(&left.conference, &self.heralds.left);
        let stays = |core: &mut Core| {
            let members = core.conferences.get(&left.conference).into_iter().flat_map(|c| &c.members);
            members.filter(|member| member.leaves.is_none()).count() > 0
        };
        if let Some(prompt) = self.heralds.leader_left.as_ref().filter(|_| left.was_last_marked)
            && self.chan.core(stays)
        {
            shard.conference_announce(&left.conference, std::slice::from_ref(prompt));
        }
        if self.closes && left.count == 1 {
            // Who is there cannot be gone.
            let _ = self.chan.core(|core| core.conference_kick(&left.conference, Which::All));
        }
    }
}

/// Has a row say how many are in its conference. Nobody waits for that.
fn count_in_row(core: &mut Core, key: &(String, String), count: usize) {
    let sets = vec![("members".to_owned(), count.to_string())];
    let ask = RowsAsk::Change { family: "meetme".to_owned(), keys: vec![key.clone()], sets };
    let want = RowsWant { ask, rows_max: 1, within: ROW_WITHIN, serves_last: false };
    if let Ok(link) = core.services.links.open(LinkWant::Rows(Box::new(want))) {
        core.services.links.close(link);
    }
}

impl Visit<'_> {
    /// The whole visit.
    pub(super) async fn run(&self) -> Result<Ended, Stop> {
        let chan = &self.call.chan;
        if self.user.answers {
            self.call.answer_for_sound().await?;
        }
        if !self.user.pin.is_empty() && !self.knows_pin().await? {
            self.call.log(Level::Warning, &format!("wrong PIN for conference '{}'", self.conference));
            return Ok(Ended::WrongPin);
        }
        let name = match self.user.tells_name {
            true => self.record_name().await?,
            false => None,
        };
        let heralds = self.heralds(name.as_ref()).await?;
        let comes_unheard = !self.user.hears_own_join;
        if comes_unheard && self.may_enter() {
            self.announce(&heralds.came);
        }
        let guest = Guest {
            seat: self.user.seat,
            user: self.user.name.clone(),
            menu: self.menu.name.clone(),
            ..Guest::default()
        };
        let entered =
            chan.core(|core| core.conference_seat(&self.conference, chan.id(), guest, &self.bridge));
        let entered = match entered {
            Ok(entered) => entered,
            Err(why) => return self.refused(why).await,
        };
        let counted = self.extras.counted.as_ref();
        let seated = Seated { chan, heralds: &heralds, closes: self.extras.closes, counted };
        chan.core(|core| {
            if let Some(at) = self.extras.ends {
                core.conference_ends(&self.conference, at);
            }
            if let Some(row) = counted {
                let count = core.conferences.get(&self.conference).map_or(1, |found| found.members.len());
                count_in_row(core, row, count);
            }
        });
        if entered.is_first {
            chan.core(|core| core.conference_pin(&self.conference, &self.extras.pin));
        }
        match &self.extras.record {
            Some(file) => start_own(self.call, &self.conference, file),
            None if entered.is_first && self.bridge.records => start_own(self.call, &self.conference, ""),
            None => {}
        }
        if entered.is_first {
            chan.core(|core| core.conference_started(&self.conference));
        }
        let mut stay = Stay::new(self, entered);
        let ended = match stay.welcome(entered).await? {
            Some(ended) => ended,
            None => {
                chan.core(|core| core.conference_join(chan.id()));
                if !comes_unheard {
                    self.announce(&heralds.came);
                }
                if !self.extras.intro.is_empty() {
                    self.announce_names(std::slice::from_ref(&self.extras.intro)).await?;
                }
                stay.run().await?
            }
        };
        drop(stay);
        drop(seated);
        let sounds = &self.bridge.sounds;
        let farewell = match ended {
            _ if self.user.is_quiet => "",
            Ended::Kicked | Ended::Marked => &sounds.kicked,
            _ => "",
        };
        if !farewell.is_empty() {
            chan.play(farewell, "").await?;
        }
        Ok(ended)
    }
    async fn refused(&self, why: Refused) -> Result<Ended, Stop> {
        let (sound, text) = match why {
            Refused::Locked => (self.bridge.sounds.locked.as_str(), "is locked"),
            Refused::Full => (self.bridge.sounds.locked.as_str(), "is full"),
            Refused::NoMedia => ("", "cannot be entered: the channel has no media"),
        };
        if !sound.is_empty() {
            self.call.chan.play(sound, "").await?;
        }
        self.call.log(Level::Warning, &format!("conference '{}' {text}", self.conference));
        Ok(Ended::Refused)
    }
    /// Whether the conference is there and open, as far as that is known.
    fn may_enter(&self) -> bool {
        self.call.chan.core(|core| {
            let conference = core.conferences.get(&self.conference);
            conference.is_some_and(|conference| !conference.is_locked || self.user.seat.is_admin)
        })
    }
    async fn knows_pin(&self) -> Result<bool, Stop> {
        let sounds = &self.bridge.sounds;
        let mut prompt = &sounds.get_pin;
        for _ in 0..PIN_TRIES {
            // One more than it has: a '#' may end it.
            let typed = gate::password(self.call, prompt, self.user.pin.len() + 1).await?;
            if typed == self.user.pin {
                return Ok(true);
            }
            prompt = &sounds.invalid_pin;
        }
        self.call.chan.play(&sounds.invalid_pin, "").await?;
        Ok(false)
    }

    /// Asks for a name and records it; `None`: it could not be.
    async fn record_name(&self) -> Result<Option<Name>, Stop> {
        let chan = &self.call.chan;
        let name = Name::below(chan, "confbridge");
        for _ in 0..NAME_TRIES {
            chan.play("vm-rec-name", "").await?;
            if !name.record(self.call, NAME_LENGTH).await? {
                return Ok(None);
            }
            if !self.user.reviews_name || self.is_content(name.path()).await? {
                break;
            }
        }
        Ok(Some(name))
    }
    /// Lets somebody hear its name, and say whether it is to stay so.
    async fn is_content(&self, path: &str) -> Result<bool, Stop> {
        let chan = &self.call.chan;
        for _ in 0..NAME_TRIES {
            match gate::password(self.call, "vm-review", 1).await?.as_str() {
                "2" => drop(chan.play(path, "").await?),
                "3" => return Ok(false),
                _ => return Ok(true),
            }
        }
        Ok(true)
    }

    /// Reads what all are to hear of this member.
    async fn heralds(&self, name: Option<&Name>) -> Result<Heralds, Stop> {
        let sounds = &self.bridge.sounds;
        let mut heralds = Heralds::default();
        if self.user.seat.is_marked && !self.user.is_quiet {
            heralds.leader_left = self.common(&sounds.leader_has_left).await?;
        }
        if self.user.is_quiet {
            return Ok(heralds);
        }
        heralds.came.extend(self.common(&sounds.join).await?);
        heralds.left.extend(self.common(&sounds.leave).await?);
        if let Some(name) = name
            && let Some(clip) = self.common(name.path()).await?
        {
            heralds.came.push(clip.clone());
            heralds.left.push(clip);
            heralds.came.extend(self.common(&sounds.has_joined).await?);
            heralds.left.extend(self.common(&sounds.has_left).await?);
        }
        Ok(heralds)
    }
    /// A sound for all, in the language of the conference; nothing for an empty name.
    pub(super) async fn common(&self, name: &str) -> Result<Option<Prompt>, Stop> {
        if name.is_empty() {
            return Ok(None);
        }
        self.for_all(self.call.chan.prompt_in(name, FormatId::SLIN)).await
    }
    /// Does something in the language of the conference.
    async fn for_all<T>(&self, work: impl Future<Output = Result<T, Stop>>) -> Result<T, Stop> {
        let chan = &self.call.chan;
        if self.bridge.language.is_empty() {
            return work.await;
        }
        let own =
            chan.with(|channel| std::mem::replace(&mut channel.language, self.bridge.language.clone()))?;
        let done = work.await;
        chan.with(|channel| channel.language = own)?;
        done
    }
    /// Lets all hear sounds, one after the other; how long they take.
    pub(super) fn announce(&self, prompts: &[Prompt]) -> Duration {
        self.call.chan.shard().conference_announce(&self.conference, prompts)
    }
    /// Lets all hear sounds by name; how long they take.
    pub(super) async fn announce_names(&self, names: &[String]) -> Result<Duration, Stop> {
        let mut prompts = Vec::new();
        for name in names {
            prompts.extend(self.common(name).await?);
        }
        Ok(self.announce(&prompts))
    }
    /// Lets all hear how many others there are for each.
    pub(super) async fn announce_count(&self, others: usize) -> Result<(), Stop> {
        let names = self.for_all(self.count(others)).await?;
        self.announce_names(&names).await.map(drop)
    }
    /// What says how many others there are, in the language of the channel.
    pub(super) async fn count(&self, others: usize) -> Result<Vec<String>, Stop> {
        let sounds = &self.bridge.sounds;
        Ok(match others {
            0 => vec![sounds.only_person.clone()],
            1 => vec![sounds.only_one.clone()],
            _ => {
                let number = i64::try_from(others).unwrap_or(i64::MAX);
                let mut names = vec![sounds.there_are.clone()];
                names.extend(say::number_words(&self.call.chan, number).await?);
                names.push(sounds.other_in_party.clone());
                names
            }
        })
    }
}
