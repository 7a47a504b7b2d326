//! Programs and servers that calls talk to, and pages that they want: what is reported of each, sorted by conversation.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use base::PageWant;
use call::{LinkId, LinkNews, LinkWant};
use io::process::broker::{Broker, Report, Want};
use io::wake::Receiver;
use io::web::{self, Fetcher};
use store::config::realtime::Realtime;

use crate::databases::Shared;
use crate::inquiries::Inquiries;

/// Numbers of pages have this bit, those of conversations have not.
const PAGE: u64 = 1 << 63;
/// Numbers of questions to databases have this one.
const ROWS: u64 = 1 << 62;

/// The loop's end.
pub(crate) struct LinkDesk {
    broker: Broker,
    fetcher: Fetcher,
    inquiries: Inquiries,
    /// Of each page that is wanted, what came of it.
    pages: HashMap<u64, Option<web::Report>>,
    /// What came of each conversation and was not taken. The broker bounds it.
    news: HashMap<u64, VecDeque<Report>>,
}

impl LinkDesk {
    pub(crate) fn start() -> std::io::Result<Self> {
        Ok(Self {
            broker: Broker::start()?,
            fetcher: Fetcher::start()?,
            inquiries: Inquiries::default(),
            pages: HashMap::new(),
            news: HashMap::new(),
        })
    }
    pub(crate) fn reports(&self) -> &Receiver<(u64, Report)> {
        self.broker.reports()
    }
    /// Readable when pages came.
    pub(crate) fn pages(&self) -> &Fetcher {
        &self.fetcher
    }
    /// Takes in the pages that came; those that somebody still wants.
    pub(crate) fn take_in_pages(&mut self) -> Vec<LinkId> {
        let mut changed = Vec::new();
        for (number, report) in self.fetcher.take_in() {
            if let Some(page) = self.pages.get_mut(&(PAGE | number)) {
                *page = Some(report);
                changed.push(LinkId(PAGE | number));
            }
        }
        changed
    }
    /// These are the databases that calls ask from here on.
    pub(crate) fn set_databases(&mut self, databases: Option<Shared>, realtime: Realtime) {
        self.inquiries.configure(databases, realtime);
    }
    /// Takes in what databases have answered; the questions that somebody still waits for.
    pub(crate) fn take_in_rows(&mut self) -> Vec<LinkId> {
        self.inquiries.take_in().into_iter().map(|number| LinkId(ROWS | number)).collect()
    }
    /// The changes of rows that databases have carried out for calls since the last call.
    pub(crate) fn take_written(&mut self) -> Vec<base::RowsAsk> {
        self.inquiries.take_written()
    }
    fn fetch(&mut self, want: PageWant) -> Result<LinkId, String> {
        let number = self.fetcher.fetch(want)?;
        self.pages.insert(PAGE | number, None);
        Ok(LinkId(PAGE | number))
    }
    /// Takes in what came; the conversations that have news.
    pub(crate) fn take_in(&mut self) -> Vec<LinkId> {
        let Self { broker, news, .. } = self;
        let mut changed = Vec::new();
        broker.reports().drain(|(talk, report)| {
            // Of those that were let go nobody wants to know.
            if let Some(waiting) = news.get_mut(&talk) {
                waiting.push_back(report);
                changed.push(LinkId(talk));
            }
        });
        changed
    }
}

/// The same as the stories see it.
pub(crate) struct Links(pub(crate) Rc<RefCell<LinkDesk>>);

impl call::Links for Links {
    fn open(&mut self, want: LinkWant) -> Result<LinkId, String> {
        let desk = &mut *self.0.borrow_mut();
        let want = match want {
            LinkWant::Program { path, args, environment, audio } => {
                Want::Program { path, args, environment, audio }
            }
            LinkWant::Server { hosts } => Want::Server { hosts },
            LinkWant::Page(want) => return desk.fetch(*want),
            LinkWant::Rows(want) => return desk.inquiries.ask(*want).map(|number| LinkId(ROWS | number)),
        };
        let talk = desk.broker.open(want);
        desk.news.insert(talk, VecDeque::new());
        Ok(LinkId(talk))
    }
    fn take(&mut self, link: LinkId) -> Option<LinkNews> {
        let desk = &mut *self.0.borrow_mut();
        if link.0 & PAGE != 0 {
            return Some(match desk.pages.get_mut(&link.0)?.take()? {
                Ok(web::Page { status, head, body }) => LinkNews::Page { status, head, body },
                Err(why) => LinkNews::Failed { not_found: false, why },
            });
        }
        if link.0 & ROWS != 0 {
            return Some(match desk.inquiries.take(link.0 & !ROWS)? {
                Ok(rows) => LinkNews::Rows(rows),
                Err(why) => LinkNews::Failed { not_found: false, why },
            });
        }
        let report = desk.news.get_mut(&link.0)?.pop_front()?;
        Some(match report {
            Report::Open { address, audio } => LinkNews::Open { address, audio },
            Report::Bytes(bytes) => {
                desk.broker.took(link.0);
                LinkNews::Bytes(bytes)
            }
            Report::End => LinkNews::End,
            Report::Exited(code) => LinkNews::Exited(code),
            Report::Failed { not_found, why } => LinkNews::Failed { not_found, why },
        })
    }
    fn send(&mut self, link: LinkId, bytes: Vec<u8>) {
        self.0.borrow().broker.send(link.0, bytes);
    }
    fn hang_up(&mut self, link: LinkId) {
        self.0.borrow().broker.hang_up(link.0);
    }
    fn close(&mut self, link: LinkId) {
        let desk = &mut *self.0.borrow_mut();
        if link.0 & PAGE != 0 {
            desk.pages.remove(&link.0);
            return desk.fetcher.forget(link.0 & !PAGE);
        }
        if link.0 & ROWS != 0 {
            return desk.inquiries.forget(link.0 & !ROWS);
        }
        desk.news.remove(&link.0);
        desk.broker.close(link.0);
    }
}
