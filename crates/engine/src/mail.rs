//! Mailboxes as the loop has them: their thread, and when others' changes are looked for.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use base::Instant;
use call::Core;
use call::voicemail::{Answer, BoxName, Job, PostOffice, Ticket};
use codec::Coders;
use conf::Findings;
use io::wake::Wake;
use store::Snapshot;
use store::voicemail::{Places, PostDesk};

/// The loop's end.
pub(crate) struct Mail {
    desk: Rc<RefCell<PostDesk>>,
    poll_at: Option<Instant>,
}

/// Where things lie, as this configuration says.
fn places(snapshot: &Snapshot) -> Places {
    let folders = &snapshot.asterisk.directories;
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Places {
        boxes: whole(&folders.astspooldir.join("voicemail")),
        letters: whole(&folders.astspooldir.join("tmp")),
        config: folders.astetcdir.clone(),
        lines: snapshot.voicemail.lines.clone(),
    }
}

impl Mail {
    /// Starts the thread; it rings when it has done something.
    pub(crate) fn start(
        snapshot: &Snapshot,
        coders: &Arc<Coders>,
        wake: &Arc<Wake>,
    ) -> std::io::Result<Self> {
        let catalogue = crate::start::catalogue(snapshot, coders, &mut Findings::new());
        let ring = Arc::clone(wake);
        let desk = PostDesk::start(places(snapshot), catalogue, move || ring.ring())?;
        let mail = Self { desk: Rc::new(RefCell::new(desk)), poll_at: None };
        mail.count_all(snapshot);
        Ok(mail)
    }
    /// As the stories see it.
    pub(crate) fn office(&self) -> Box<dyn PostOffice> {
        Box::new(Office(self.desk.clone()))
    }
    /// Takes another configuration.
    pub(crate) fn configure(&mut self, snapshot: &Snapshot, coders: &Arc<Coders>) {
        let catalogue = crate::start::catalogue(snapshot, coders, &mut Findings::new());
        self.desk.borrow_mut().configure(places(snapshot), catalogue);
        self.count_all(snapshot);
        self.poll_at = None;
    }
    fn count_all(&self, snapshot: &Snapshot) {
        let boxes: Vec<BoxName> = snapshot.voicemail.voicemail.accounts.keys().cloned().collect();
        if !boxes.is_empty() {
            self.desk.borrow_mut().count_all(boxes);
        }
    }
    /// Has mailboxes counted that others may have changed, when that is due; when it is due next.
    pub(crate) fn poll(&mut self, snapshot: &Snapshot, now: Instant) -> Option<Instant> {
        let every = snapshot.voicemail.voicemail.poll?;
        match self.poll_at {
            Some(at) if at > now => {}
            due => {
                if due.is_some() {
                    self.count_all(snapshot);
                }
                self.poll_at = Some(now + every);
            }
        }
        self.poll_at
    }
    /// Takes in what the thread has done.
    pub(crate) fn take_in(&self, core: &mut Core) {
        let Some(counted) = self.desk.borrow_mut().take_in() else { return };
        counted.iter().for_each(|(name, counts)| core.mail_counted(name, *counts));
        core.posted();
    }
}

struct Office(Rc<RefCell<PostDesk>>);

impl PostOffice for Office {
    fn ask(&mut self, job: Job) -> Ticket {
        self.0.borrow_mut().ask(job)
    }
    fn take(&mut self, ticket: Ticket) -> Option<Answer> {
        self.0.borrow_mut().take(ticket)
    }
    fn leave(&mut self, ticket: Ticket) {
        self.0.borrow_mut().leave(ticket);
    }
}
