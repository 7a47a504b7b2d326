//! Rows of databases that stand beside files (mailboxes, music, access lists): whoever misses one has all of them asked for
//! anew.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Poll;

use crate::{Core, Shard};

/// See the module's page.
#[derive(Debug, Default)]
pub struct RowsAgain {
    /// There are databases with such rows.
    pub exist: bool,
    wanted: Option<Rc<Cell<bool>>>,
    is_asked: bool,
}

impl RowsAgain {
    /// Whether somebody has begun to want them since the last call. Whoever asks calls [`Core::rows_came`] in the end,
    /// soon, whatever the databases do.
    pub fn take_wish(&mut self) -> bool {
        self.wanted.is_some() && !std::mem::replace(&mut self.is_asked, true)
    }
    /// Whether somebody waits for them.
    pub fn is_awaited(&self) -> bool {
        self.wanted.is_some() && self.is_asked
    }
}

impl Core {
    /// The rows are what the databases say, as far as they do.
    pub fn rows_came(&mut self) {
        self.rows_again.is_asked = false;
        if let Some(wanted) = self.rows_again.wanted.take() {
            wanted.set(true);
            self.outside_changed();
        }
    }
}

impl Shard {
    /// Waits until the rows that stand beside files have been asked for anew, when there are such rows.
    pub async fn ask_rows_again(&self) {
        let known = {
            let mut core = self.core.borrow_mut();
            if !core.rows_again.exist {
                return;
            }
            core.rows_again.wanted.get_or_insert_default().clone()
        };
        std::future::poll_fn(|_| {
            if known.get() {
                return Poll::Ready(());
            }
            self.wait_for_outside();
            Poll::Pending
        })
        .await;
    }
}
