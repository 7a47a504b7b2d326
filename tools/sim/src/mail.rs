//! Mailboxes in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use call::voicemail::{
    Answer, BoxName, Change, Counts, Folder, Greeting, Info, Job, Message, PostOffice, Posted, Refusal,
    Sound, Ticket,
};

use crate::fakes::Shared;

/// What a mailbox holds.
#[derive(Debug, Default, Clone)]
pub struct MailStore {
    /// Messages by folder.
    pub folders: BTreeMap<(BoxName, Folder), Vec<Message>>,
    /// Greetings by file name.
    pub greetings: BTreeMap<(BoxName, &'static str), ()>,
    /// PINs that were chosen.
    pub pins: BTreeMap<BoxName, String>,
    /// Letters, as they were to be written.
    pub letters: Vec<call::voicemail::Letter>,
    /// Lines that were added to files: `path: line`.
    pub notes: Vec<String>,
    /// Seconds that every recording is long.
    pub recorded_secs: u32,
    /// Nothing can be written.
    pub full_disk: bool,
    /// Recordings that nobody wanted.
    forgotten: BTreeSet<std::path::PathBuf>,
    next: u64,
    serial: u32,
    answers: BTreeMap<Ticket, Answer>,
}

impl MailStore {
    fn folder(&mut self, of: &BoxName, folder: Folder) -> &mut Vec<Message> {
        self.folders.entry((of.clone(), folder)).or_default()
    }
    /// Puts a message of so many seconds into a folder.
    pub fn put(&mut self, of: &BoxName, folder: Folder, info: Info) -> Message {
        self.serial += 1;
        let text: Arc<[u8]> = format!("{}:{info:?}", self.serial).into_bytes().into();
        let all = self.folder(of, folder);
        let message = Message { number: all.len() as u32, info, text };
        all.push(message.clone());
        message
    }
    /// Ids of the messages of a folder, in order.
    pub fn ids(&self, of: &BoxName, folder: Folder) -> Vec<String> {
        let all = self.folders.get(&(of.clone(), folder)).into_iter().flatten();
        all.map(|message| message.info.id.clone()).collect()
    }
    fn counts(&self, of: &BoxName) -> Counts {
        let count = |folder| self.folders.get(&(of.clone(), folder)).map_or(0, Vec::len) as u32;
        Counts { urgent: count(Folder::URGENT), new: count(Folder::INBOX), old: count(Folder::OLD) }
    }
    fn change(&mut self, of: &BoxName, folder: Folder, changes: &[(Message, Change)]) -> usize {
        let mut undone = 0;
        for (message, change) in changes {
            let all = self.folder(of, folder);
            let Some(at) = all.iter().position(|one| one.text == message.text) else {
                undone += 1;
                continue;
            };
            let (to, most) = match change {
                Change::Move(to, most) => (Some(*to), *most as usize),
                Change::Delete(0) => (None, 0),
                Change::Delete(_) => (Some(Folder::DELETED), usize::MAX),
            };
            if to.is_some_and(|to| self.folder(of, to).len() >= most) {
                undone += 1;
                continue;
            }
            let message = self.folder(of, folder).remove(at);
            if let Some(to) = to {
                self.folder(of, to).push(message);
            }
        }
        for all in self.folders.values_mut() {
            (0..).zip(all).for_each(|(number, message)| message.number = number);
        }
        undone
    }
}

/// The same as stories see it.
pub(crate) struct Post(pub(crate) Shared);

impl Post {
    fn perform(&self, job: Job) -> Result<Posted, Refusal> {
        let state = &mut *self.0.borrow_mut();
        let mail = &mut state.mail;
        if mail.full_disk && matches!(job, Job::Deliver(_) | Job::Greet(..) | Job::SetPin(..)) {
            return Err(Refusal::Failed("no space is left".to_owned()));
        }
        Ok(match job {
            Job::List(of, folder) => Posted::Messages(mail.folder(&of, folder).clone()),
            Job::Count(_) => Posted::Done,
            Job::Forget(held) => Posted::Is(mail.forgotten.insert(held.file)),
            Job::Note(path, line) => {
                mail.notes.push(format!("{}: {line}", path.display()));
                Posted::Done
            }
            Job::Load(of, sound, _) => {
                let name = match sound {
                    Sound::Message(_, message) => format!("message {}", message.info.id),
                    Sound::Greeting(greeting) => {
                        if !mail.greetings.contains_key(&(of.clone(), greeting.file())) {
                            return Err(Refusal::Missing);
                        }
                        format!("{} of {of}", greeting.file())
                    }
                    Sound::Held(_) => "what was recorded".to_owned(),
                };
                let length = state.clips.get(&name).copied().unwrap_or(crate::CLIP_DEFAULT);
                Posted::Clip(state.clip(&name, length, false))
            }
            Job::HasGreeting(of, greeting) => Posted::Is(mail.greetings.contains_key(&(of, greeting.file()))),
            Job::Deliver(delivery) => {
                if delivery.held.as_ref().is_some_and(|held| mail.forgotten.contains(&held.file)) {
                    return Err(Refusal::Failed("what was recorded is gone".to_owned()));
                }
                let copied = delivery.copied.as_ref().map_or(0, |(.., message)| message.info.duration);
                let own = if delivery.held.is_some() { mail.recorded_secs } else { 0 };
                let duration = own + copied;
                if duration * 1000 < delivery.min_ms {
                    return Err(Refusal::TooShort);
                }
                if mail.folder(&delivery.to, delivery.folder).len() as u32 >= delivery.max_messages {
                    return Err(Refusal::Full);
                }
                let info = Info { duration, ..delivery.info };
                Posted::Kept(Box::new(mail.put(&delivery.to, delivery.folder, info)))
            }
            Job::Change(of, folder, changes) => Posted::Changed(mail.change(&of, folder, &changes)),
            Job::Greet(of, greeting, held, _) => {
                match held {
                    Some(_) => drop(mail.greetings.insert((of, greeting.file()), ())),
                    None => drop(mail.greetings.remove(&(of, greeting.file()))),
                }
                Posted::Done
            }
            Job::SetPin(of, _, pin) => {
                mail.pins.insert(of, pin);
                Posted::Done
            }
            Job::Pin(of) => Posted::Pin(mail.pins.get(&of).cloned()),
            Job::Write(letter) => {
                mail.letters.push(*letter);
                Posted::File(format!("/letters/{}", mail.letters.len()).into())
            }
        })
    }
}

impl PostOffice for Post {
    fn ask(&mut self, job: Job) -> Ticket {
        let of = match &job {
            Job::Count(of) | Job::Change(of, ..) => Some(of.clone()),
            Job::Deliver(delivery) => Some(delivery.to.clone()),
            _ => None,
        };
        let done = self.perform(job);
        let mail = &mut self.0.borrow_mut().mail;
        mail.next += 1;
        let ticket = Ticket(mail.next);
        let counts = of.map(|of| {
            let counts = mail.counts(&of);
            (of, counts)
        });
        mail.answers.insert(ticket, (done, counts.into_iter().collect()));
        ticket
    }
    fn take(&mut self, ticket: Ticket) -> Option<Answer> {
        self.0.borrow_mut().mail.answers.remove(&ticket)
    }
}

impl crate::World {
    /// What is in mailboxes.
    pub fn mail<T>(&self, look: impl FnOnce(&mut MailStore) -> T) -> T {
        look(&mut self.state.borrow_mut().mail)
    }
    /// Gives a mailbox a greeting.
    pub fn greeting(&mut self, of: &BoxName, greeting: Greeting) {
        self.mail(|mail| mail.greetings.insert((of.clone(), greeting.file()), ()));
    }
}
