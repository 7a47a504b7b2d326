//! `VoiceMailMain`: the menu of an owner.

use std::sync::Arc;

use call::voicemail::{Account, Change, Counts, Folder, Job, Message, Posted};
use call::{Level, Stop};

use super::leave::AtMailboxes;
use super::login::{Asking, Login};
use super::{Visit, options};
use crate::{Call, Flow, Outcome, say};

/// How often somebody is told what he may press who presses nothing.
const PATIENCE: u32 = 3;
/// Option letters of VoiceMailMain.
pub(crate) const MAIN_OPTIONS: &str = "agps";

/// A folder that is open, and what is to become of its messages when it is closed.
pub(super) struct Open {
    pub(super) folder: Folder,
    pub(super) messages: Vec<Message>,
    /// Of each message; new ones that are urgent come from a folder of their own.
    pub(super) marks: Vec<Mark>,
    pub(super) current: usize,
}

/// What its owner has done to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// Where the message lies.
    pub(super) folder: Folder,
    pub(super) heard: bool,
    pub(super) deleted: bool,
}

impl Open {
    pub(super) fn current(&self) -> Option<&Message> {
        self.messages.get(self.current)
    }
    /// Where the current message lies.
    pub(super) fn place(&self) -> Folder {
        self.marks.get(self.current).map_or(self.folder, |mark| mark.folder)
    }
    pub(super) fn mark(&mut self) -> Option<&mut Mark> {
        self.marks.get_mut(self.current)
    }
    fn is_last(&self) -> bool {
        self.current + 1 >= self.messages.len()
    }
}

/// Where the menu goes on.
pub(super) enum Next {
    /// Says what may be pressed.
    Menu,
    /// Does as if this had been pressed.
    Key(char),
    /// Ends it.
    Leave,
    /// Goes on elsewhere in the dialplan.
    Elsewhere(Outcome),
}

pub(super) async fn main(call: &Call, text: &str) -> Outcome {
    let (name, letters) = options(call, text, MAIN_OPTIONS);
    let visit = Visit::new(call).recording(&letters);
    call.answer_for_sound().await?;
    let (mailbox, context) = name.split_once('@').unwrap_or((&name, ""));
    let asking = Asking {
        mailbox: mailbox.trim(),
        is_prefix: letters.has('p'),
        context: context.trim(),
        trusted: letters.has('s'),
        quiet: false,
    };
    let account = match visit.log_in(&asking).await? {
        Login::In(account) => account,
        Login::Refused => return Ok(Flow::Hangup),
        Login::Star => return Ok(visit.leave_to("", "a").transpose()?.unwrap_or(Flow::Hangup)),
    };
    let folder = letters.arg('a').map(str::trim).filter(|text| !text.is_empty());
    let first = folder.and_then(|text| {
        let folder = Folder::parse(text);
        if folder.is_none() {
            call.log(Level::Warning, &format!("VoiceMailMain: there is no folder '{text}'"));
        }
        folder
    });
    if !account.rules.language.is_empty() {
        call.chan.with(|c| c.language.clone_from(&account.rules.language))?;
    }
    let mut at_mailbox = AtMailboxes::new(call, std::slice::from_ref(&account));
    at_mailbox.tells = true;
    let mut owner = Owner { visit, account, open: None };
    let outcome = owner.run(first).await;
    // What was heard and deleted is so, however the call ends.
    owner.close().await;
    drop(at_mailbox);
    match outcome {
        Ok(Next::Elsewhere(outcome)) => outcome,
        Ok(_) => {
            owner.visit.say(&["vm-goodbye"], "").await?;
            Ok(Flow::Continue)
        }
        Err(stop) => Err(stop),
    }
}

/// Somebody at his own mailbox.
pub(super) struct Owner<'a> {
    pub(super) visit: Visit<'a>,
    pub(super) account: Arc<Account>,
    pub(super) open: Option<Open>,
}

impl Owner<'_> {
    async fn list(&self, folder: Folder) -> Vec<Message> {
        match self.visit.post(Job::List(self.account.name.clone(), folder)).await {
            Ok(Posted::Messages(messages)) => messages,
            _ => Vec::new(),
        }
    }
    pub(super) async fn open(&mut self, folder: Folder) {
        self.close().await;
        // Urgent messages come first among the new ones.
        let first = if folder == Folder::INBOX { Some(Folder::URGENT) } else { None };
        let (mut messages, mut marks) = (Vec::new(), Vec::new());
        for folder in first.into_iter().chain([folder]) {
            let listed = self.list(folder).await;
            marks.extend(listed.iter().map(|_| Mark { folder, heard: false, deleted: false }));
            messages.extend(listed);
        }
        self.open = Some(Open { folder, messages, marks, current: 0 });
    }
    /// Does to messages what was said of them.
    pub(super) async fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let rules = &self.account.rules;
        let mut changes: Vec<(Folder, Vec<(Message, Change)>)> = Vec::new();
        for (message, mark) in open.messages.into_iter().zip(open.marks) {
            let is_new = mark.folder == Folder::INBOX || mark.folder == Folder::URGENT;
            let change = match mark {
                Mark { deleted: true, .. } => Change::Delete(rules.backupdeleted),
                Mark { heard: true, .. } if is_new && rules.moveheard => {
                    Change::Move(Folder::OLD, rules.maxmsg)
                }
                _ => continue,
            };
            match changes.iter_mut().find(|(folder, _)| *folder == mark.folder) {
                Some((_, all)) => all.push((message, change)),
                None => changes.push((mark.folder, vec![(message, change)])),
            }
        }
        if changes.is_empty() {
            return;
        }
        for (folder, changes) in changes {
            let count = changes.len();
            let done = self.visit.post(Job::Change(self.account.name.clone(), folder, changes)).await;
            if let Ok(Posted::Changed(undone @ 1..)) = done {
                let text = format!(
                    "mailbox {}: {undone} of {count} messages stayed in {}: there is no room in Old, or somebody else was faster",
                    self.account.name,
                    folder.name()
                );
                self.visit.warn(&text);
            }
        }
        self.visit.tell_program(&self.account);
    }
    fn counts(&self, new: &[Message], old: &[Message], urgent: &[Message]) -> Counts {
        Counts { urgent: urgent.len() as u32, new: new.len() as u32, old: old.len() as u32 }
    }

    async fn run(&mut self, first: Option<Folder>) -> Result<Next, Stop> {
        if let Some(next) = self.welcome_new().await? {
            return Ok(next);
        }
        let (new, old) = (self.list(Folder::INBOX).await, self.list(Folder::OLD).await);
        let urgent = self.list(Folder::URGENT).await;
        let counts = self.counts(&new, &old, &urgent);
        let folder = first.unwrap_or(match counts {
            Counts { urgent: 0, new: 0, old: 1.. } => Folder::OLD,
            _ => Folder::INBOX,
        });
        self.open(folder).await;
        let mut key = self.announce(counts).await?;
        let (mut begun, mut silences) = (false, 0);
        loop {
            let pressed = match key.take() {
                Some(key) => Some(key),
                None => self.tell_keys(begun).await?,
            };
            let Some(pressed) = pressed else {
                silences += 1;
                if silences >= PATIENCE {
                    return Ok(Next::Leave);
                }
                continue;
            };
            silences = 0;
            match self.press(pressed, &mut begun).await? {
                Next::Menu => {}
                Next::Key(next) => key = Some(next),
                next @ (Next::Leave | Next::Elsewhere(_)) => return Ok(next),
            }
        }
    }
    /// How many messages there are; the key that was pressed meanwhile.
    async fn announce(&self, counts: Counts) -> Result<Option<char>, Stop> {
        let mut files = Vec::new();
        if self.account.rules.tempgreetwarn
            && self.visit.has_greeting(&self.account, call::voicemail::Greeting::Temporary).await
        {
            files.push("vm-tempgreetactive".to_owned());
        }
        files.push("vm-youhave".to_owned());
        let kinds = [(counts.urgent, "vm-Urgent"), (counts.new, "vm-INBOX"), (counts.old, "vm-Old")];
        let there: Vec<_> = kinds.into_iter().filter(|(count, _)| *count > 0).collect();
        for (index, (count, kind)) in there.iter().enumerate() {
            if index > 0 {
                files.push("vm-and".to_owned());
            }
            files.extend(say::number_words(&self.visit.call.chan, i64::from(*count)).await?);
            files.push((*kind).to_owned());
        }
        files.push(match there.last() {
            None => "vm-no".to_owned(),
            Some((1, _)) => "vm-message".to_owned(),
            Some(_) => "vm-messages".to_owned(),
        });
        if there.is_empty() {
            files.push("vm-messages".to_owned());
        }
        let pressed = say::play_all(self.visit.call, files, super::ANY_DIGIT).await?;
        Ok(pressed.map(base::Digit::to_char))
    }
    /// What may be pressed, and the key.
    async fn tell_keys(&self, begun: bool) -> Result<Option<char>, Stop> {
        let Some(open) = &self.open else { return Ok(None) };
        let folder = format!("vm-{}", open.folder.name());
        let mut files: Vec<&str> = Vec::new();
        if !begun {
            if !open.messages.is_empty() {
                files.extend(["vm-onefor", &folder, "vm-messages"]);
            }
            files.extend(["vm-opts", "vm-helpexit"]);
            return self.visit.ask(&files).await;
        }
        let deleted = open.marks.get(open.current).is_some_and(|mark| mark.deleted);
        if open.current > 0 {
            files.push("vm-prev");
        }
        files.push("vm-advopts");
        files.push("vm-repeat");
        if !open.is_last() {
            files.push("vm-next");
        }
        files.push(if deleted { "vm-undelete" } else { "vm-delete" });
        files.extend(["vm-toforward", "vm-savemessage", "vm-helpexit"]);
        self.visit.ask(&files).await
    }
    async fn press(&mut self, key: char, begun: &mut bool) -> Result<Next, Stop> {
        let Some(open) = &mut self.open else { return Ok(Next::Leave) };
        let (current, none) = (open.current, open.messages.is_empty());
        match key {
            '1' | '5' if !none => {
                *begun = true;
                return self.play().await;
            }
            '4' if !none => {
                if current > 0 {
                    open.current -= 1;
                } else if self.account.rules.messagewrap {
                    open.current = open.messages.len() - 1;
                } else {
                    self.visit.say(&["vm-nomore"], "").await?;
                    return Ok(Next::Menu);
                }
                *begun = true;
                return self.play().await;
            }
            '6' if !none => {
                *begun = true;
                return self.next().await;
            }
            '7' if !none => {
                let deleted = open.mark().is_some_and(|mark| {
                    mark.deleted = !mark.deleted;
                    mark.deleted
                });
                self.visit.say(&[if deleted { "vm-deleted" } else { "vm-undeleted" }], "").await?;
                return self.after_command(deleted).await;
            }
            '8' if !none => return self.forward().await,
            '9' if !none => return self.save().await,
            '2' => {
                if let Some(folder) = self.choose_folder(&["vm-changeto"], Folder::INBOX).await? {
                    self.open(folder).await;
                    *begun = false;
                    return self.say_folder().await;
                }
            }
            '3' => return self.advanced(*begun && !none).await,
            '0' => return self.settings().await,
            '#' => return Ok(Next::Leave),
            '*' => {}
            // Who has no messages hears so by the name of the folder that comes first.
            '1' => {
                let files = ["vm-youhave", "vm-no", "vm-Urgent", "vm-messages"].map(str::to_owned);
                let pressed = say::play_all(self.visit.call, files.to_vec(), super::ANY_DIGIT).await?;
                return Ok(pressed.map_or(Next::Menu, |digit| Next::Key(digit.to_char())));
            }
            '9' => {}
            '4' | '5' | '6' | '7' | '8' => {
                self.visit.say(&["vm-nomore"], "").await?;
            }
            _ => drop(self.visit.say(&["vm-sorry"], "").await?),
        }
        Ok(Next::Menu)
    }
    /// How many messages a folder has that was opened.
    async fn say_folder(&self) -> Result<Next, Stop> {
        let Some(open) = &self.open else { return Ok(Next::Leave) };
        let count = open.messages.len();
        let mut files = vec!["vm-youhave".to_owned()];
        match count {
            0 => files.push("vm-no".to_owned()),
            _ => files.extend(say::number_words(&self.visit.call.chan, count as i64).await?),
        }
        files.push(format!("vm-{}", open.folder.name()));
        files.push(if count == 1 { "vm-message" } else { "vm-messages" }.to_owned());
        let pressed = say::play_all(self.visit.call, files, super::ANY_DIGIT).await?;
        Ok(pressed.map_or(Next::Menu, |digit| Next::Key(digit.to_char())))
    }
    /// The next message, and the first after the last one where that is wanted.
    pub(super) async fn next(&mut self) -> Result<Next, Stop> {
        let Some(open) = &mut self.open else { return Ok(Next::Leave) };
        if !open.is_last() {
            open.current += 1;
        } else if self.account.rules.messagewrap {
            open.current = 0;
        } else {
            self.visit.say(&["vm-nomore"], "").await?;
            return Ok(Next::Menu);
        }
        self.play().await
    }
    /// After a message was deleted or saved.
    pub(super) async fn after_command(&mut self, moves_on: bool) -> Result<Next, Stop> {
        let is_last = self.open.as_ref().is_none_or(Open::is_last);
        if moves_on && self.account.rules.nextaftercmd && (!is_last || self.account.rules.messagewrap) {
            return self.next().await;
        }
        Ok(Next::Menu)
    }
    /// Asks for a folder; `None`: he wants none.
    pub(super) async fn choose_folder(&self, first: &[&str], from: Folder) -> Result<Option<Folder>, Stop> {
        let mut files: Vec<String> = first.iter().map(|file| (*file).to_owned()).collect();
        // Those that prompt sets have names for.
        for (digit, folder) in Folder::chosen().enumerate().take(5).filter(|(_, folder)| *folder >= from) {
            files.push("vm-press".to_owned());
            files.push(format!("digits/{digit}"));
            files.push("vm-for".to_owned());
            files.push(format!("vm-{}", folder.name()));
            files.push("vm-messages".to_owned());
        }
        files.push("vm-tocancel".to_owned());
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        for _ in 0..PATIENCE {
            match self.visit.ask(&files).await? {
                Some('#') => return Ok(None),
                Some(key) => {
                    if let Some(folder) = Folder::of_digit(key) {
                        return Ok(Some(folder));
                    }
                    self.visit.say(&["vm-sorry"], "").await?;
                }
                None => {}
            }
        }
        Ok(None)
    }
    /// Puts the message into another folder.
    async fn save(&mut self) -> Result<Next, Stop> {
        let Some(folder) = self.choose_folder(&["vm-savefolder"], Folder::OLD).await? else {
            return Ok(Next::Menu);
        };
        let Some(open) = &mut self.open else { return Ok(Next::Leave) };
        let (Some(message), of) = (open.current().cloned(), open.place()) else { return Ok(Next::Menu) };
        let number = say::number_words(&self.visit.call.chan, i64::from(open.current as u32) + 1).await?;
        if folder != of {
            let change = vec![(message, Change::Move(folder, self.account.rules.maxmsg))];
            let done = self.visit.post(Job::Change(self.account.name.clone(), of, change)).await;
            if !matches!(done, Ok(Posted::Changed(0))) {
                self.visit.say(&["vm-mailboxfull"], "").await?;
                return Ok(Next::Menu);
            }
            let at = open.current;
            open.messages.remove(at);
            open.marks.remove(at);
            open.current = at.min(open.messages.len().saturating_sub(1));
        }
        let mut files = vec!["vm-message".to_owned()];
        files.extend(number);
        files.extend(["vm-savedto".to_owned(), format!("vm-{}", folder.name()), "vm-messages".to_owned()]);
        if let Some(digit) = say::play_all(self.visit.call, files, super::ANY_DIGIT).await? {
            return Ok(Next::Key(digit.to_char()));
        }
        let is_empty = self.open.as_ref().is_none_or(|open| open.messages.is_empty());
        if folder != of && self.account.rules.nextaftercmd && !is_empty {
            // What came after it stands in its place.
            return self.play().await;
        }
        Ok(Next::Menu)
    }
}
