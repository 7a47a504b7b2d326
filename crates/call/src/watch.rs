//! What is watched from outside: extensions with a hint, and mailboxes.
//!
//! Drivers say what their watchers ask for and are told what has become of it; they know no hint and no device. Whoever
//! runs the dialplan answers for extensions, whoever keeps messages for mailboxes.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use base::ChannelId;

use crate::{Core, DeviceState, Notice};

/// An extension that somebody watches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watched {
    /// Context in which it is looked up.
    pub context: String,
    /// Extension.
    pub exten: String,
}

/// What is in a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mailbox {
    /// Messages that nobody has heard.
    pub new: u32,
    /// Messages that were heard.
    pub old: u32,
}

impl std::ops::Add for Mailbox {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { new: self.new.saturating_add(other.new), old: self.old.saturating_add(other.old) }
    }
}

#[derive(Debug, Default)]
struct Followed {
    watchers: usize,
    state: Option<DeviceState>,
    /// Its devices, joined by `&`.
    devices: String,
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct Board {
    extensions: BTreeMap<Rc<Watched>, Followed>,
    begun: Vec<Rc<Watched>>,
    ended: Vec<Rc<Watched>>,
    changed: BTreeSet<Rc<Watched>>,
    mailboxes: BTreeSet<String>,
    /// Mailboxes that channels are at, whether they have changed since, and the channels.
    visited: BTreeMap<String, (ChannelId, bool)>,
}

impl Board {
    /// Somebody begins to watch an extension. Its state is told as a change when it is known.
    pub fn follow(&mut self, extension: &Rc<Watched>) {
        let followed = self.extensions.entry(extension.clone()).or_default();
        followed.watchers += 1;
        if followed.watchers == 1 {
            self.begun.push(extension.clone());
        }
    }
    /// Somebody no longer watches an extension.
    pub fn unfollow(&mut self, extension: &Rc<Watched>) {
        let Some(followed) = self.extensions.get_mut(extension) else { return };
        followed.watchers -= 1;
        if followed.watchers == 0 {
            self.extensions.remove(extension);
            self.changed.remove(extension);
            self.ended.push(extension.clone());
        }
    }
    /// The state of an extension that is watched; `None` while it is not known, and when it has no hint.
    pub fn state(&self, extension: &Watched) -> Option<DeviceState> {
        self.extensions.get(extension)?.state
    }
    /// The devices of an extension that is watched (`PJSIP/6001`), in the order of its hint.
    pub fn devices(&self, extension: &Watched) -> impl Iterator<Item = &str> {
        let devices = self.extensions.get(extension).map_or("", |followed| followed.devices.as_str());
        devices.split('&').map(str::trim).filter(|device| !device.is_empty())
    }
    /// An extension that is watched stands for these devices, joined by `&`.
    pub fn stands_for(&mut self, extension: &Watched, devices: &str) {
        if let Some(followed) = self.extensions.get_mut(extension) {
            devices.clone_into(&mut followed.devices);
        }
    }
    /// Whether [`take_requests`](Self::take_requests) has anything to give.
    pub fn has_requests(&self) -> bool {
        !self.begun.is_empty() || !self.ended.is_empty()
    }
    /// Extensions that are watched from here on, and those that are no longer, since the last call.
    pub fn take_requests(&mut self) -> (Vec<Rc<Watched>>, Vec<Rc<Watched>>) {
        let mut begun = std::mem::take(&mut self.begun);
        begun.retain(|extension| self.extensions.contains_key(extension));
        let mut ended = std::mem::take(&mut self.ended);
        ended.retain(|extension| !self.extensions.contains_key(extension));
        (begun, ended)
    }
    /// The state of an extension is this; `None`: it has no hint any more.
    pub fn tell(&mut self, extension: &Rc<Watched>, state: Option<DeviceState>) {
        let Some(followed) = self.extensions.get_mut(extension) else { return };
        if followed.state != state || state.is_none() {
            followed.state = state;
            self.changed.insert(extension.clone());
        }
    }
    /// Extensions that are watched.
    pub fn extensions(&self) -> impl Iterator<Item = &Rc<Watched>> {
        self.extensions.keys()
    }
    /// Something of an extension has changed beside its state.
    pub fn touch(&mut self, extension: &Rc<Watched>) {
        if self.extensions.contains_key(extension) {
            self.changed.insert(extension.clone());
        }
    }
    /// Mailboxes that have changed since [`take_changed`](Self::take_changed).
    pub fn changed_mailboxes(&self) -> &BTreeSet<String> {
        &self.mailboxes
    }
    /// What has changed since the last call: extensions, mailboxes.
    pub fn take_changed(&mut self) -> (BTreeSet<Rc<Watched>>, BTreeSet<String>) {
        (std::mem::take(&mut self.changed), std::mem::take(&mut self.mailboxes))
    }
}

/// Family of the database in which the counts of mailboxes are kept that others look after.
const FAMILY: &str = "MWI";

/// The name of a mailbox with its context, which is `default` when none is given.
pub fn mailbox_name(mailbox: &str) -> String {
    let mailbox = mailbox.trim();
    if mailbox.contains('@') { mailbox.to_owned() } else { format!("{mailbox}@default") }
}

impl Core {
    /// What is in a mailbox (`6001@default`, or `6001`); `None` when nobody has said.
    pub fn mailbox(&self, mailbox: &str) -> Option<Mailbox> {
        let kept = self.services.db.get(FAMILY, &mailbox_name(mailbox))?;
        let (new, old) = kept.split_once('/')?;
        Some(Mailbox { new: new.parse().ok()?, old: old.parse().ok()? })
    }
    /// Every mailbox of which somebody has said what is in it.
    pub fn mailboxes(&self) -> Vec<(String, Mailbox)> {
        let prefix = format!("/{FAMILY}");
        let listed = self.services.db.list(&prefix);
        let names = listed.iter().filter_map(|(key, _)| key.strip_prefix(&prefix)?.strip_prefix('/'));
        names.filter_map(|name| Some((name.to_owned(), self.mailbox(name)?))).collect()
    }
    /// Says what is in a mailbox; `None` forgets it. Watchers are told when that changes anything.
    pub fn set_mailbox(&mut self, mailbox: &str, messages: Option<Mailbox>) {
        let name = mailbox_name(mailbox);
        if self.mailbox(&name) == messages {
            return;
        }
        match messages {
            Some(Mailbox { new, old }) => self.services.db.put(FAMILY, &name, &format!("{new}/{old}")),
            None => self.services.db.delete(FAMILY, &name),
        };
        if let Some((_, changed)) = self.board.visited.get_mut(&name) {
            *changed = true;
            return;
        }
        self.board.mailboxes.insert(name.clone());
        self.tell_mailbox(name, None);
    }
    fn tell_mailbox(&mut self, name: String, by: Option<ChannelId>) {
        self.touched_devices.push(format!("MWI:{name}"));
        self.notice(|core| {
            let messages = core.mailbox(&name).unwrap_or_default();
            let channel = by.and_then(|by| core.snapshot(by));
            Some(Notice::MessageWaiting { channel, mailbox: name, messages })
        });
    }
    /// A channel is about to change a mailbox: what watchers are told of it comes from there, at the end of the visit.
    pub fn mailbox_visit(&mut self, mailbox: &str, by: ChannelId) {
        self.board.visited.entry(mailbox_name(mailbox)).or_insert((by, false));
    }
    /// The visit is over. `tells`: what is in the mailbox is told even if that is what was in it before.
    pub fn mailbox_visited(&mut self, mailbox: &str, by: ChannelId, tells: bool) {
        let name = mailbox_name(mailbox);
        let Some((_, changed)) = self.board.visited.remove(&name) else { return };
        if changed || tells {
            self.board.mailboxes.insert(name.clone());
            self.tell_mailbox(name, Some(by));
        }
    }
    /// A channel is gone, with whatever it had to do with mailboxes.
    pub(crate) fn mailboxes_left(&mut self, id: ChannelId) {
        let open = self.board.visited.iter().filter(|(_, (by, _))| *by == id);
        for name in open.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.mailbox_visited(&name, id, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_looked_after_as_long_as_anybody_watches_it() {
        let mut board = Board::default();
        let lamp = Rc::new(Watched { context: "lamps".into(), exten: "600".into() });
        board.follow(&lamp);
        board.follow(&lamp);
        assert_eq!(board.take_requests(), (vec![lamp.clone()], vec![]));
        board.tell(&lamp, Some(DeviceState::InUse));
        board.tell(&lamp, Some(DeviceState::InUse));
        assert_eq!(board.take_changed().0.len(), 1);
        board.tell(&lamp, Some(DeviceState::InUse));
        assert_eq!(board.take_changed().0.len(), 0, "the same state is no change");
        board.unfollow(&lamp);
        assert!(!board.has_requests());
        board.unfollow(&lamp);
        assert_eq!(board.take_requests(), (vec![], vec![lamp.clone()]));
        assert_eq!(board.state(&lamp), None);
        board.follow(&lamp);
        board.unfollow(&lamp);
        assert_eq!(board.take_requests(), (vec![], vec![lamp]), "begun and ended at once is never begun");
    }
}
