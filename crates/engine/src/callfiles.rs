//! Calls that files in the spool ask for.

use std::path::Path;
use std::rc::Rc;

use apps::originate::{Originate, Placed, Then, originate};
use base::{FormatId, FormatSet};
use call::{Core, Level, Location, PartyId, Shard};
use io::wake::Wake;
use store::spool::{CallFile, Due, News, Spool};

/// The loop's end of the spool.
pub(crate) struct CallFiles {
    spool: Spool,
    wake: Wake,
}

impl CallFiles {
    pub(crate) fn start(folder: &Path) -> std::io::Result<Self> {
        let wake = Wake::new()?;
        let ring = wake.clone();
        Ok(Self { spool: Spool::start(folder, move || ring.ring())?, wake })
    }
    pub(crate) fn wake(&self) -> &Wake {
        &self.wake
    }
    /// Places the calls that are due.
    pub(crate) fn take_in(&self, shard: &Rc<Shard>) {
        self.wake.answer_and_clear();
        while let Some(news) = self.spool.due() {
            match news {
                News::Complaint(text) => shard.core.borrow_mut().log(Level::Warning, "pbx_spool", &text),
                News::Due(due) => self.place(shard, *due),
            }
        }
    }
    fn place(&self, shard: &Rc<Shard>, Due { path, file }: Due) {
        let done = self.spool.done();
        let told = {
            let path = path.clone();
            // There is room for the answer of every call that the spool has given out.
            move |placed| drop(done.try_send((path, placed)))
        };
        let wanted = wanted(&shard.core.borrow(), &file);
        let wanted = match wanted {
            Ok(wanted) => wanted,
            Err(why) => {
                let line = format!("{}: {why}", path.display());
                shard.core.borrow_mut().log(Level::Warning, "pbx_spool", &line);
                return told(false);
            }
        };
        let (target, tries, own) = (wanted.target.clone(), file.tries + 1, shard.clone());
        let heard = told.clone();
        let room = originate(shard, wanted, move |placed| {
            if placed != Placed::Answered {
                let line = format!("Call failed to go through to {target}, try {tries}: {placed:?}");
                own.core.borrow_mut().log(Level::Notice, "pbx_spool", &line);
            }
            heard(placed == Placed::Answered);
        });
        if !room {
            told(false);
        }
    }
}

fn wanted(core: &Core, file: &CallFile) -> Result<Originate, String> {
    let then = match &file.application {
        Some((name, data)) => Then::App { name: name.clone(), data: data.clone() },
        None => {
            let (context, exten, priority) = &file.place;
            let context = if context.is_empty() { "default" } else { context };
            let priority = match priority.parse() {
                Ok(priority) => priority,
                Err(_) => apps::priority_of_label(core, context, exten, priority)
                    .ok_or_else(|| format!("there is no priority '{priority}' in {exten}@{context}"))?,
            };
            Then::Exten(Location { context: context.to_owned(), exten: exten.clone(), priority })
        }
    };
    let mut formats = FormatSet::EMPTY;
    for name in file.codecs.split([',', '&', '|']).map(str::trim).filter(|name| !name.is_empty()) {
        formats.push(FormatId::from_name(name).ok_or_else(|| format!("there is no codec '{name}'"))?);
    }
    Ok(Originate {
        target: file.channel.clone(),
        then,
        caller: PartyId::parse(&file.caller),
        timeout: core::time::Duration::from_secs(file.wait_secs),
        variables: file.variables.clone(),
        account: file.account.clone(),
        formats,
        early_media: file.early_media,
        ..Originate::default()
    })
}
