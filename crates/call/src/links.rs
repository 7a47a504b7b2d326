//! Conversations with what is outside: programs that were started for a call, servers that were connected to.
//!
//! Lines are the story's business; here are bytes. Nothing waits: what comes is taken when it is there, and whoever moves
//! the bytes calls [`Core::link_changed`] when a conversation has news.

use core::net::SocketAddr;
use std::future::Future;
use std::task::Poll;

use base::{AudioSink, Instant, PageWant, Rows, RowsWant};

use crate::{Chan, Core};

/// A conversation; never used twice in the life of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

/// Whom to talk to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkWant {
    /// A program, by its standard input and output. No shell sees path or arguments.
    Program {
        /// The file.
        path: String,
        /// Its arguments.
        args: Vec<String>,
        /// Added to the environment of this process.
        environment: Vec<(String, String)>,
        /// It reads what the caller says, linear at 8 kHz, from descriptor 3.
        audio: bool,
    },
    /// A page of a web server.
    Page(Box<PageWant>),
    /// Rows of a database.
    Rows(Box<RowsWant>),
    /// A server, by TCP; the first of these that takes the connection.
    Server {
        /// Host names or addresses, and ports.
        hosts: Vec<(String, u16)>,
    },
}

/// What has happened to a conversation.
pub enum LinkNews {
    /// The program runs, the server has taken the connection: this address, unless it is a program.
    Open {
        /// Who it is.
        address: Option<SocketAddr>,
        /// Where the caller's audio goes, when it was asked for.
        audio: Option<Box<dyn AudioSink>>,
    },
    /// Bytes, in any portions.
    Bytes(Vec<u8>),
    /// The page that was wanted.
    Page {
        /// Status of the answer.
        status: u16,
        /// Its head, with the empty line after it.
        head: String,
        /// Its body, up to a bound.
        body: Vec<u8>,
    },
    /// What a database gave.
    Rows(Rows),
    /// The other side says no more. Of a program [`LinkNews::Exited`] follows.
    End,
    /// The program has ended with this code; `None`: by a signal.
    Exited(Option<i32>),
    /// There is no such program, or nobody takes the connection.
    Failed {
        /// The file does not exist or may not be run.
        not_found: bool,
        /// What the system said.
        why: String,
    },
}

/// Where conversations are had. Never waits.
pub trait Links {
    /// Begins one; the error says why there can be none.
    fn open(&mut self, want: LinkWant) -> Result<LinkId, String>;
    /// Its next news.
    fn take(&mut self, link: LinkId) -> Option<LinkNews>;
    /// Says something. Who does not listen is let go of after a while.
    fn send(&mut self, link: LinkId, bytes: Vec<u8>);
    /// Tells a program by SIGHUP that the call has ended.
    fn hang_up(&mut self, link: LinkId);
    /// Lets go; what was said before is still sent. A program may go on by itself.
    fn close(&mut self, link: LinkId);
}

/// Where there is nobody outside.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLinks;

impl Links for NoLinks {
    fn open(&mut self, _: LinkWant) -> Result<LinkId, String> {
        Err("no programs are started here".to_owned())
    }
    fn take(&mut self, _: LinkId) -> Option<LinkNews> {
        None
    }
    fn send(&mut self, _: LinkId, _: Vec<u8>) {}
    fn hang_up(&mut self, _: LinkId) {}
    fn close(&mut self, _: LinkId) {}
}

impl Core {
    /// A conversation has news: the story that waits for it asks again.
    pub fn link_changed(&mut self, link: LinkId) {
        self.woken.extend(self.link_waiters.remove(&link));
    }
    /// Lets go of a conversation and of who waits for it.
    pub fn close_link(&mut self, link: LinkId) {
        self.services.links.close(link);
        self.link_changed(link);
    }
}

impl Chan {
    /// The next news of a conversation; `None` at `deadline`. Knows nothing of the call's end: see [`Chan::while_up`].
    pub fn link_news(
        &self,
        link: LinkId,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Option<LinkNews>> + '_ {
        std::future::poll_fn(move |_| {
            let mut core = self.shard().core.borrow_mut();
            let mut exec = self.shard().exec.borrow_mut();
            let news = core.services.links.take(link);
            if news.is_some() || deadline.is_some_and(|at| at <= core.now) {
                core.link_waiters.remove(&link);
                exec.set_deadline(None);
                return Poll::Ready(news);
            }
            if let Some(current) = exec.current() {
                core.link_waiters.insert(link, current);
            }
            exec.set_deadline(deadline);
            Poll::Pending
        })
    }
}
