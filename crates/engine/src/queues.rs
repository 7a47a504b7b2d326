//! Call queues and agents: what queues.conf says of them, whom the database keeps as members, and the file of their log.

use std::path::PathBuf;
use std::sync::Arc;

use call::{CALLBACKS, CALLBACKS_MAX, Core, Level, PERSISTENT_MEMBERS};
use queue::Entry;
use store::Snapshot;
use store::cdr::{Line, Sink};

use crate::queue_rows::QueueRows;

/// Gives the queues their configuration.
fn configure(core: &mut Core, snapshot: &Snapshot) {
    let config = snapshot.queues.config.clone();
    core.with_queues(|queues, now, out| queues.configure(&config, now, out));
    core.configure_agents(snapshot.agents.rules());
}

/// Makes those dynamic members again whom the database has kept. Once, when the process starts.
fn restore(core: &mut Core) {
    if !core.queues.general().persistent_members {
        return;
    }
    let prefix = format!("/{PERSISTENT_MEMBERS}");
    for (key, value) in core.services.db.list(&prefix) {
        let Some(name) = key.strip_prefix(&prefix).and_then(|rest| rest.strip_prefix('/')) else { continue };
        core.with_queues(|queues, now, out| queues.restore(name, &value, now, out));
    }
}

/// A line about the queues as a whole, when there are any; that the log begins is said always.
fn note(core: &mut Core, entry: Entry) {
    if entry == Entry::QueueStart || core.queues.iter().next().is_some() {
        note_always(core, entry);
    }
}

fn note_always(core: &mut Core, entry: Entry) {
    let time = core.queue_now().wall;
    let none = || "NONE".into();
    core.queue_lines.push(queue::Line { time, call: none(), queue: none(), agent: none(), entry });
}

/// The file of the log. Its writer begins with the first line.
#[derive(Default)]
pub(crate) struct QueueLog {
    folder: PathBuf,
    file: Arc<str>,
    is_wanted: bool,
    /// The file is written beside rows, too.
    beside_rows: bool,
    /// Times of rows are in UTC.
    utc: bool,
    sink: Option<Sink<Line>>,
}

impl QueueLog {
    /// Writes where logger.conf says from here on.
    pub(crate) fn configure(&mut self, snapshot: &Snapshot) {
        let general = &snapshot.logger.general;
        let folder = &snapshot.asterisk.directories.astlogdir;
        if self.folder != *folder {
            self.folder.clone_from(folder);
            self.sink = None;
        }
        self.file = general.queue_log_name.as_str().into();
        self.is_wanted = general.queue_log;
        (self.beside_rows, self.utc) = (general.queue_log_to_file, general.queue_log_realtime_use_gmt);
    }
    /// Sets the file aside as log files are; the next line begins another one.
    fn rotate(&mut self, strategy: store::config::logger::Rotate) {
        // The writer ends once all that it was given is in the file.
        self.sink = None;
        let path = self.folder.join(&*self.file);
        if self.is_wanted && path.exists() {
            let _ = store::log::set_aside(&path, strategy);
        }
    }
    /// Sends what has happened on its way to the disk, or to a database.
    pub(crate) fn write(&mut self, core: &mut Core, rows: Option<&mut QueueRows>) {
        let lines = std::mem::take(&mut core.queue_lines);
        if lines.is_empty() || !self.is_wanted {
            return;
        }
        if let Some(rows) = rows.filter(|rows| rows.has_log()) {
            rows.note(core, &lines, self.utc);
            if !self.beside_rows {
                return;
            }
        }
        if self.sink.is_none() {
            match Sink::<Line>::below(&self.folder) {
                Ok(sink) => self.sink = Some(sink),
                Err(why) => {
                    let line = format!("nothing is written into {}: {why}; raise ulimit -u", self.file);
                    return core.log(Level::Error, "app_queue", &line);
                }
            }
        }
        let Some(sink) = &mut self.sink else { return };
        let written = lines.iter().map(|line| Line { file: self.file.clone(), text: line.to_string() });
        let lost = written.filter_map(|line| sink.write(line).is_none().then_some(())).count();
        if lost > 0 {
            let line = format!("{lost} lines of {} were lost: too many wait for the disk", self.file);
            core.log(Level::Error, "app_queue", &line);
        }
    }
    /// What the writer has to complain about.
    pub(crate) fn trouble(&self) -> Option<(&'static str, String)> {
        self.sink.as_ref().and_then(Sink::trouble).map(|told| ("app_queue", told))
    }
}

impl crate::turn::Engine {
    /// Takes the queues of the first configuration.
    pub(crate) fn start_queues(&mut self, snapshot: &Snapshot) {
        self.queue_log.configure(snapshot);
        let core = &mut *self.site.shard.core.borrow_mut();
        configure(core, snapshot);
        restore(core);
        note(core, Entry::QueueStart);
    }
    /// Takes up again who was to be called back when the process before this one ended. Once queues are known, whether they
    /// lie in files or in databases.
    pub(crate) fn restore_callbacks(&mut self) {
        let (left, ignored) = apps::restore_callbacks(&self.site.shard);
        if left > 0 {
            self.log(Level::Notice, "app_queue", &format!("{left} callers are still to be called back"));
        }
        if ignored > 0 {
            let line = format!(
                "{ignored} rows of {CALLBACKS} in the database are not followed: they cannot be read, say what another \
                 says, or are more than {CALLBACKS_MAX}; look at them with `database show {CALLBACKS}` and take out what \
                 is of no use"
            );
            self.log(Level::Error, "app_queue", &line);
        }
    }
    /// Takes the parking lots of a configuration. Calls that wait go on waiting.
    pub(crate) fn take_parking(&mut self, snapshot: &Snapshot) {
        let parking = &snapshot.parking;
        let core = &mut *self.site.shard.core.borrow_mut();
        core.parking.configure(parking.lots.iter().cloned(), parking.dynamic);
    }
    /// Queues lie where this configuration says, from databases' side.
    pub(crate) fn configure_queue_rows(&mut self, snapshot: &Snapshot) {
        let Some(databases) = self.loader.databases.borrow().clone() else { return };
        let core = &mut *self.site.shard.core.borrow_mut();
        self.queue_rows.get_or_insert_with(|| QueueRows::new(&databases)).configure(snapshot, core);
    }
    /// Rows of queues that are to be written.
    pub(crate) fn follow_queue_rows(&mut self) {
        let Some(rows) = &mut self.queue_rows else { return };
        let core = &mut *self.site.shard.core.borrow_mut();
        for (level, line) in rows.follow(core) {
            core.log(level, "app_queue", &line);
        }
    }
    /// The log of queues begins a new file, as other logs do.
    pub(crate) fn rotate_queue_log(&mut self) {
        let core = &mut *self.site.shard.core.borrow_mut();
        self.queue_log.write(core, self.queue_rows.as_mut());
        self.queue_log.rotate(self.site.snapshot.borrow().logger.general.rotatestrategy);
        note_always(core, Entry::ConfigReload);
    }
    /// Takes those of another one.
    pub(crate) fn take_queues(&mut self, snapshot: &Snapshot) {
        self.queue_log.configure(snapshot);
        let core = &mut *self.site.shard.core.borrow_mut();
        configure(core, snapshot);
        note(core, Entry::ConfigReload);
    }
}
