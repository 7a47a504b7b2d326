//! Mailboxes: files that are read and written on a thread of their own, for stories that wait for them.

mod boxes;
mod info;
mod lock;
mod mail;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use base::Gain;
use call::voicemail::{
    Answer, BoxName, Counts, Held, Job, Letter, PinPlace, PostOffice, Posted, Refusal, Sound, Ticket,
};
use conf::edit::{Choice, Document};

pub use boxes::Boxes;

use crate::editable::Editable;
use crate::sounds::Catalogue;

/// Jobs that wait for the thread: more than there are calls that leave a message in the same second.
const JOBS_MAX: usize = 4096;
/// How often a recording is looked at that is being finished.
const FINISHED_EVERY: Duration = Duration::from_millis(20);

/// Where things lie.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// `voicemail` of the spool.
    pub boxes: PathBuf,
    /// Folder of letters on their way to the mail program.
    pub letters: PathBuf,
    /// Folder of the configuration.
    pub config: PathBuf,
    /// File and text of the line of each mailbox.
    pub lines: BTreeMap<BoxName, (String, String)>,
}

enum Order {
    Do(Ticket, Job),
    Configure(Box<Places>, Box<Catalogue>),
    /// Counts all of these, for nobody.
    CountAll(Vec<BoxName>),
}

enum News {
    Done(Ticket, Answer),
    Counted(Vec<(BoxName, Counts)>),
}

/// The front end, on the shard.
pub struct PostDesk {
    orders: Sender<Order>,
    news: Receiver<News>,
    answers: HashMap<Ticket, Answer>,
    left: HashSet<Ticket>,
    waiting: usize,
    next: u64,
}

impl PostDesk {
    /// Starts the thread. `wake` is called from it when there are answers to be taken in.
    pub fn start(
        places: Places,
        catalogue: Catalogue,
        wake: impl Fn() + Send + 'static,
    ) -> std::io::Result<Self> {
        let (orders, inbox) = channel();
        let (outbox, news) = channel();
        std::thread::Builder::new().name("voicemail".to_owned()).spawn(move || {
            let clerk = Clerk::new(places, catalogue);
            serve(clerk, &inbox, &outbox, &wake);
        })?;
        Ok(Self { orders, news, answers: HashMap::new(), left: HashSet::new(), waiting: 0, next: 1 })
    }
    /// Takes a new configuration.
    pub fn configure(&mut self, places: Places, catalogue: Catalogue) {
        // Without its thread nothing is kept, which every job says.
        let _ = self.orders.send(Order::Configure(Box::new(places), Box::new(catalogue)));
    }
    /// Counts the messages of all these mailboxes; what comes of it is among [`Self::take_in`]'s.
    pub fn count_all(&mut self, boxes: Vec<BoxName>) {
        let _ = self.orders.send(Order::CountAll(boxes));
    }
    /// Takes in what the thread has done; what was counted for nobody. `None`: nothing is new.
    pub fn take_in(&mut self) -> Option<Vec<(BoxName, Counts)>> {
        let mut counted = Vec::new();
        let mut any = false;
        while let Ok(news) = self.news.try_recv() {
            any = true;
            match news {
                News::Counted(counts) => counted.extend(counts),
                News::Done(ticket, answer) => {
                    self.waiting = self.waiting.saturating_sub(1);
                    if self.left.remove(&ticket) {
                        counted.extend(answer.1);
                    } else {
                        self.answers.insert(ticket, answer);
                    }
                }
            }
        }
        any.then_some(counted)
    }
}

impl PostOffice for PostDesk {
    fn ask(&mut self, job: Job) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        let refused = match self.waiting {
            JOBS_MAX.. => Some("too many messages are being kept at once: the disk is too slow"),
            _ => self
                .orders
                .send(Order::Do(ticket, job))
                .err()
                .map(|_| "the thread that keeps mailboxes has ended"),
        };
        match refused {
            Some(why) => {
                drop(self.answers.insert(ticket, (Err(Refusal::Failed(why.to_owned())), Vec::new())))
            }
            None => self.waiting += 1,
        }
        ticket
    }
    fn take(&mut self, ticket: Ticket) -> Option<Answer> {
        self.answers.remove(&ticket)
    }
    fn leave(&mut self, ticket: Ticket) {
        if self.answers.remove(&ticket).is_none() {
            self.left.insert(ticket);
        }
    }
}

/// Who does the jobs.
struct Clerk {
    places: Places,
    catalogue: Catalogue,
    boxes: Boxes,
    letters: u64,
}

impl Clerk {
    fn new(places: Places, catalogue: Catalogue) -> Self {
        let boxes = Boxes::new(&places.boxes);
        boxes.sweep(places.lines.keys());
        Self { boxes, places, catalogue, letters: 0 }
    }
    fn answer(&mut self, job: Job) -> Answer {
        let touched: Vec<BoxName> = match &job {
            Job::Count(of) | Job::Change(of, ..) => vec![of.clone()],
            Job::Deliver(delivery) => vec![delivery.to.clone()],
            _ => Vec::new(),
        };
        let done = self.perform(job);
        let counts = touched.into_iter().map(|of| {
            let counts = self.boxes.count(&of);
            (of, counts)
        });
        (done, counts.collect())
    }
    fn perform(&mut self, job: Job) -> Result<Posted, Refusal> {
        let boxes = &self.boxes;
        Ok(match job {
            Job::List(of, folder) => Posted::Messages(boxes.list(&of, folder)),
            Job::Count(_) => Posted::Done,
            Job::Load(of, sound, format) => {
                let path = boxes.sound(&of, &sound)?;
                Posted::Clip(boxes::clip(&self.catalogue, &path, format)?)
            }
            Job::HasGreeting(of, greeting) => Posted::Is(boxes.has_greeting(&of, greeting)),
            Job::Deliver(delivery) => Posted::Kept(Box::new(boxes.deliver(&delivery)?)),
            Job::Change(of, folder, changes) => Posted::Changed(boxes.change(&of, folder, &changes)?),
            Job::Greet(of, greeting, held, formats) => {
                boxes.greet(&of, greeting, held.as_ref(), &formats)?;
                Posted::Done
            }
            Job::SetPin(of, PinPlace::Spool, pin) => {
                boxes.set_pin(&of, &pin)?;
                Posted::Done
            }
            Job::SetPin(of, PinPlace::Config, pin) => {
                self.set_pin(&of, &pin)?;
                Posted::Done
            }
            Job::Pin(of) => Posted::Pin(boxes.pin(&of)),
            Job::Write(letter) => Posted::File(self.write(&letter)?),
            Job::Forget(held) => Posted::Is(forget(&held)),
            Job::Note(path, line) => {
                let failed = |why: std::io::Error| {
                    Refusal::Failed(format!("{} is not written: {why}", path.display()))
                };
                let mut options = OpenOptions::new();
                let mut file = options.append(true).create(true).mode(0o640).open(&path).map_err(failed)?;
                file.write_all(format!("{line}\n").as_bytes()).map_err(failed)?;
                Posted::Done
            }
        })
    }
    /// Puts a new PIN into the line of a mailbox.
    fn set_pin(&mut self, of: &BoxName, pin: &str) -> Result<(), Refusal> {
        let (file, line) = self.places.lines.get(of).ok_or(Refusal::Missing)?;
        let failed = |why: &dyn std::fmt::Display| Refusal::Failed(format!("{file}: {why}"));
        let new = match line.split_once(',') {
            Some((_, rest)) => format!("{pin},{rest}"),
            None => pin.to_owned(),
        };
        let editable = Editable::new(&self.places.config);
        let mut text = Document::parse(&editable.read(file).map_err(|why| failed(&why))?);
        text.update(of.context(), &Choice::default(), of.mailbox(), &new, Some(line))
            .map_err(|why| failed(&format!("the line of mailbox {of} is not as it was: {why:?}")))?;
        editable.write(file, &text.to_bytes()).map_err(|why| failed(&why))?;
        let stands = (file.clone(), new);
        self.places.lines.insert(of.clone(), stands);
        Ok(())
    }
    /// Writes a letter into a file that nobody else may read.
    fn write(&mut self, letter: &Letter) -> Result<PathBuf, Refusal> {
        let attached = match &letter.attach {
            Some(attach) => {
                let (extension, bytes) = self.boxes.attached(
                    &attach.of,
                    attach.folder,
                    &attach.message,
                    &attach.format,
                    letter.louder,
                )?;
                Some((format!("{}.{extension}", attach.name), bytes))
            }
            None => {
                let file = letter.file.as_deref();
                file.map(|file| enclosed(file, &letter.file_format, letter.louder)).transpose()?
            }
        };
        self.letters += 1;
        let path = self.places.letters.join(format!("astmail-{}-{}", std::process::id(), self.letters));
        let failed = |why: std::io::Error| Refusal::Failed(format!("{}: {why}", path.display()));
        let bytes = mail::compose(letter, attached).map_err(failed)?;
        fs::create_dir_all(&self.places.letters).map_err(failed)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        file.write_all(&bytes).map_err(failed)?;
        Ok(path)
    }
}

/// Longest file that goes with a letter, bytes: more than an hour of 8 kHz linear.
const ENCLOSED_BYTES_MAX: u64 = 64 << 20;

/// A file's name and content, brought to a format where one is wanted.
fn enclosed(path: &std::path::Path, format: &str, louder: Gain) -> Result<(String, Vec<u8>), Refusal> {
    let failed = |why: &dyn std::fmt::Display| Refusal::Failed(format!("{}: {why}", path.display()));
    let facts = fs::metadata(path).map_err(|why| failed(&why))?;
    if !facts.is_file() || facts.len() > ENCLOSED_BYTES_MAX {
        return Err(failed(&"it is no file, or too large for a letter"));
    }
    let name = |path: &std::path::Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(bytes) = boxes::brought_to(path, format, louder) {
        return Ok((name(&path.with_extension(format)), bytes));
    }
    let bytes = match boxes::made_louder(path, louder) {
        Some(bytes) => bytes,
        None => fs::read(path).map_err(|why| failed(&why))?,
    };
    Ok((name(path), bytes))
}

/// Removes a recording; whether it was there.
fn forget(held: &Held) -> bool {
    fs::remove_file(&held.file).is_ok()
}

/// The recording that a job waits for.
fn held(job: &Job) -> Option<&Held> {
    match job {
        Job::Deliver(delivery) => delivery.held.as_ref(),
        Job::Load(_, Sound::Held(held), _) | Job::Forget(held) | Job::Greet(_, _, Some(held), _) => {
            Some(held)
        }
        _ => None,
    }
}

fn serve(mut clerk: Clerk, inbox: &Receiver<Order>, outbox: &Sender<News>, wake: &impl Fn()) {
    let mut unfinished: Vec<(Ticket, Job)> = Vec::new();
    loop {
        let order = match unfinished.is_empty() {
            true => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => inbox.recv_timeout(FINISHED_EVERY),
        };
        let mut due = Vec::new();
        match order {
            Ok(Order::Do(ticket, job)) => unfinished.push((ticket, job)),
            Ok(Order::Configure(places, catalogue)) => {
                clerk.places = *places;
                clerk.catalogue = *catalogue;
                clerk.boxes = Boxes::new(&clerk.places.boxes);
            }
            Ok(Order::CountAll(all)) => {
                let counted = all.into_iter().map(|of| {
                    let counts = clerk.boxes.count(&of);
                    (of, counts)
                });
                let _ = outbox.send(News::Counted(counted.collect()));
                wake();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if unfinished.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(FINISHED_EVERY),
        }
        let mut index = 0;
        while let Some((_, job)) = unfinished.get(index) {
            match held(job).is_none_or(|held| held.progress.is_complete()) {
                true => due.push(unfinished.remove(index)),
                false => index += 1,
            }
        }
        for (ticket, job) in due {
            // A fault costs this job, and the one who waits for it hears of it.
            let answer = catch_unwind(AssertUnwindSafe(|| clerk.answer(job)));
            let answer = answer.unwrap_or_else(|_| {
                (Err(Refusal::Failed("a fault in the keeper of mailboxes".to_owned())), Vec::new())
            });
            let _ = outbox.send(News::Done(ticket, answer));
            wake();
        }
    }
}

#[cfg(test)]
mod tests;
