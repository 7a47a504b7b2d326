//! The way to whoever keeps the files of mailboxes. Nothing waits here but a story.

use std::path::PathBuf;
use std::sync::Arc;
use std::task::Poll;

use base::{Clip, FormatId};

use super::{BoxName, Counts, Folder, Info, Message, PinPlace};
use crate::{Chan, Core, Progress, TaskId};

/// A job that was handed over; never used twice in the life of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What the owner of a mailbox has recorded for callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Greeting {
    /// He is not there.
    Unavailable,
    /// He is talking.
    Busy,
    /// Instead of both, for a while.
    Temporary,
    /// His name.
    Name,
}

impl Greeting {
    /// Name of its file, without extension.
    pub fn file(self) -> &'static str {
        match self {
            Self::Unavailable => "unavail",
            Self::Busy => "busy",
            Self::Temporary => "temp",
            Self::Name => "greet",
        }
    }
}

/// A recording that is being finished, or is.
#[derive(Debug, Clone)]
pub struct Held {
    /// Its file, whole.
    pub file: PathBuf,
    /// Becomes complete when its last sample is written.
    pub progress: Arc<Progress>,
}

/// Something in a mailbox that can be heard.
#[derive(Debug, Clone)]
pub enum Sound {
    /// A message.
    Message(Folder, Box<Message>),
    /// A greeting.
    Greeting(Greeting),
    /// What was recorded a moment ago.
    Held(Held),
}

/// A message on its way into a mailbox.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Where it goes.
    pub to: BoxName,
    /// Folder there.
    pub folder: Folder,
    /// What was recorded, when that is not all of `copied`.
    pub held: Option<Held>,
    /// A message that is forwarded, behind what was recorded; its mailbox and folder.
    pub copied: Option<(BoxName, Folder, Box<Message>)>,
    /// Formats of its files.
    pub formats: Vec<String>,
    /// What is written down; duration and, where it is empty, date are filled in.
    pub info: Info,
    /// Shortest message that is kept, milliseconds.
    pub min_ms: u32,
    /// Most messages of the folder.
    pub max_messages: u32,
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It goes to another folder, which holds so many at most.
    Move(Folder, u32),
    /// It is deleted; so many are kept in `Deleted`.
    Delete(u32),
}

/// A file that goes with a letter.
#[derive(Debug, Clone)]
pub struct Attach {
    /// Whose message.
    pub of: BoxName,
    /// Where it lies.
    pub folder: Folder,
    /// The message.
    pub message: Box<Message>,
    /// Format of the file, when there is one.
    pub format: String,
    /// How the file is called in the letter, without extension.
    pub name: String,
}

/// A letter (RFC 5322).
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "headers by their names")]
pub struct Letter {
    /// How much louder the sound goes with it than it was recorded.
    pub louder: base::Gain,
    pub from_name: String,
    pub from: String,
    pub to_name: String,
    pub to: Vec<String>,
    pub subject: String,
    pub body: String,
    /// Its id, without the part after `@`.
    pub id: String,
    /// Seconds since the epoch.
    pub date: i64,
    /// Headers beside the usual ones.
    pub headers: Vec<(String, String)>,
    pub attach: Option<Attach>,
    /// A file that goes along, whose name is kept.
    pub file: Option<PathBuf>,
    /// The format that it is brought to; empty: it goes as it is.
    pub file_format: String,
}

/// What is to be done.
#[derive(Debug, Clone)]
pub enum Job {
    /// What a folder holds, oldest first.
    List(BoxName, Folder),
    /// Counts.
    Count(BoxName),
    /// A sound, coded for a stream of this format.
    Load(BoxName, Sound, FormatId),
    /// Whether there is a greeting.
    HasGreeting(BoxName, Greeting),
    /// Keeps a message.
    Deliver(Box<Delivery>),
    /// Does something to messages of a folder.
    Change(BoxName, Folder, Vec<(Message, Change)>),
    /// Keeps a greeting, or takes it away; formats of its files.
    Greet(BoxName, Greeting, Option<Held>, Vec<String>),
    /// Writes a new PIN down.
    SetPin(BoxName, PinPlace, String),
    /// The PIN in a mailbox's own folder, if there is one.
    Pin(BoxName),
    /// Writes a letter into a file for the mail program.
    Write(Box<Letter>),
    /// A recording that nobody wants; answers whether it was there.
    Forget(Held),
    /// Adds a line to a file.
    Note(PathBuf, String),
}

/// What came of a job.
#[derive(Debug, Clone)]
pub enum Posted {
    /// Messages of a folder.
    Messages(Vec<Message>),
    /// It is done.
    Done,
    /// A sound.
    Clip(Arc<Clip>),
    /// Whether it is so.
    Is(bool),
    /// A message was kept: on disk, whatever happens from here on.
    Kept(Box<Message>),
    /// So many changes could not be made, because the folder they lead to is full or the message is gone.
    Changed(usize),
    /// A PIN.
    Pin(Option<String>),
    /// A file for the mail program, which is to be removed after.
    File(PathBuf),
}

/// Why a job was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such message or greeting.
    Missing,
    /// The folder holds as many messages as it may.
    Full,
    /// The message is shorter than it may be.
    TooShort,
    /// A file could not be read or written; for the log.
    Failed(String),
}

/// What came of a job, and what is in mailboxes that it has changed or counted.
pub type Answer = (Result<Posted, Refusal>, Vec<(BoxName, Counts)>);

/// Where mailboxes are kept. Never waits.
pub trait PostOffice {
    /// Hands a job over.
    fn ask(&mut self, job: Job) -> Ticket;
    /// What came of it; `None` while it is not done.
    fn take(&mut self, ticket: Ticket) -> Option<Answer>;
    /// Nobody waits for it any more. It is done all the same.
    fn leave(&mut self, ticket: Ticket) {
        let _ = ticket;
    }
}

/// Where there are no mailboxes.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPost;

impl PostOffice for NoPost {
    fn ask(&mut self, _: Job) -> Ticket {
        Ticket(0)
    }
    fn take(&mut self, _: Ticket) -> Option<Answer> {
        Some((Err(Refusal::Failed("there are no mailboxes here".to_owned())), Vec::new()))
    }
}

impl Core {
    /// Jobs are done: the stories that wait for them ask again.
    pub fn posted(&mut self) {
        let waiting: Vec<TaskId> = std::mem::take(&mut self.post_waiters);
        self.woken.extend(waiting);
    }
}

/// Lets go of a job whose story has ended.
struct Asked<'a> {
    chan: &'a Chan,
    ticket: Ticket,
    answered: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        // A story that is dropped while the core is in use leaves its answer behind; the office bounds how many those are.
        if !self.answered
            && let Ok(mut core) = self.chan.shard().core.try_borrow_mut()
        {
            core.services.post.leave(self.ticket);
        }
    }
}

impl Chan {
    /// Has a job done; knows nothing of the call's end, so that what a caller has left is kept when he hangs up.
    pub async fn post(&self, job: Job) -> Result<Posted, Refusal> {
        let ticket = self.core(|core| core.services.post.ask(job));
        let mut asked = Asked { chan: self, ticket, answered: false };
        let (answer, counts) = std::future::poll_fn(|_| {
            let mut core = self.shard().core.borrow_mut();
            let mut exec = self.shard().exec.borrow_mut();
            exec.set_deadline(None);
            if let Some(answer) = core.services.post.take(ticket) {
                return Poll::Ready(answer);
            }
            if let Some(current) = exec.current().filter(|id| !core.post_waiters.contains(id)) {
                core.post_waiters.push(current);
            }
            Poll::Pending
        })
        .await;
        asked.answered = true;
        self.core(|core| counts.iter().for_each(|(name, counts)| core.mail_counted(name, *counts)));
        answer
    }
}
