//! Call records on their way from the core to wherever the site wants them.

use std::sync::Arc;

use apps::records::{Pattern, cdr_field, event_fields};
use call::{Cdr, Core, Level, Notice};
use store::Snapshot;
use store::cdr::{CdrSink, Line, Places, Row, Sink};
use store::config::cdr::CdrManager;

/// Every place that records go to.
#[derive(Default)]
pub(crate) struct Records {
    wanted: Places,
    csv: Option<CdrSink>,
    files: Option<Files>,
    table: Option<Table>,
}

/// Files of lines, each with the pattern of its lines.
struct Files {
    sink: Sink<Line>,
    patterns: Vec<(Arc<str>, Pattern)>,
}

/// A table, with the pattern of each column's value.
struct Table {
    sink: Sink<Row>,
    patterns: Vec<Pattern>,
}

impl Records {
    /// Starts what the configuration wants.
    pub(crate) fn start(snapshot: &Snapshot) -> std::io::Result<Self> {
        let wanted = Places::of(snapshot);
        let folder = &snapshot.asterisk.directories.astlogdir;
        let csv = wanted.csv.as_ref().map(|csv| CdrSink::start(folder, csv)).transpose()?;
        let files = match &wanted.custom {
            None => None,
            Some(custom) => {
                let patterns =
                    custom.files.iter().map(|(file, text)| (file.clone(), Pattern::new(text))).collect();
                Some(Files { sink: Sink::<Line>::start(folder)?, patterns })
            }
        };
        let table = match &wanted.table {
            None => None,
            Some(table) => {
                let patterns = table.values.iter().map(|value| Pattern::new(value)).collect();
                Some(Table { sink: Sink::<Row>::start(folder, table)?, patterns })
            }
        };
        Ok(Self { wanted, csv, files, table })
    }
    /// Whether the configuration wants something else than what runs.
    pub(crate) fn differs(&self, snapshot: &Snapshot) -> bool {
        self.wanted != Places::of(snapshot)
    }
    /// Sends finished records on their way.
    pub(crate) fn write(&mut self, core: &mut Core, finished: Vec<Cdr>) {
        let mut lost = [("cdr_csv", 0), ("cdr_custom", 0), ("cdr_sqlite3_custom", 0)];
        let [csv, custom, sqlite] = &mut lost;
        for record in finished {
            if let Some(Files { sink, patterns }) = &mut self.files {
                for (file, pattern) in patterns {
                    let text = pattern.fill(core, &record, "cdr_custom");
                    let line = Line { file: file.clone(), text };
                    custom.1 += u32::from(sink.write(line).is_none());
                }
            }
            if let Some(Table { sink, patterns }) = &mut self.table {
                let row = patterns
                    .iter_mut()
                    .map(|pattern| pattern.fill(core, &record, "cdr_sqlite3_custom"))
                    .collect();
                sqlite.1 += u32::from(sink.write(row).is_none());
            }
            if let Some(manager) = &self.wanted.manager {
                core.notice(|core| Some(event(core, manager, &record)));
            }
            if let Some(sink) = &mut self.csv {
                csv.1 += u32::from(sink.write(record).is_none());
            }
        }
        for (place, lost) in lost.into_iter().filter(|(_, lost)| *lost > 0) {
            let line = format!("{lost} call records were lost: too many wait for the disk");
            core.log(Level::Error, place, &line);
        }
    }
    /// What a writer has to complain about, and its name.
    pub(crate) fn trouble(&self) -> Option<(&'static str, String)> {
        let csv = self.csv.as_ref().and_then(Sink::trouble).map(|told| ("cdr_csv", told));
        let files = || {
            let told = self.files.as_ref().and_then(|files| files.sink.trouble());
            told.map(|told| ("cdr_custom", told))
        };
        let table = || {
            let told = self.table.as_ref().and_then(|table| table.sink.trouble());
            told.map(|told| ("cdr_sqlite3_custom", told))
        };
        csv.or_else(files).or_else(table)
    }
}

/// A record as managers hear of it.
fn event(core: &Core, manager: &CdrManager, record: &Cdr) -> Notice {
    let own = manager.fields.iter().map(|(field, name)| (name.to_string(), cdr_field(core, record, field)));
    let fields = event_fields(core, record).into_iter().map(|(name, value)| (name.to_owned(), value));
    Notice::Cdr { fields: fields.chain(own).collect() }
}
