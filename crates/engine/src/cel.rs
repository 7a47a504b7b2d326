//! Channel events on their way from the core to wherever the site wants them.

use std::sync::Arc;

use apps::records::{Pattern, cel_fields};
use call::{Cel, Core, Level, Notice};
use store::Snapshot;
use store::cdr::{CEL_FOLDER, CelPlaces, Line, Row, Sink};
use store::date::{Zone, format};

/// How managers are told times when `dateformat` says nothing.
const MANAGER_DATE: &str = "%Y-%m-%d %T";

/// A file, and the pattern of its lines.
type FilePattern = (Arc<str>, Pattern);

/// Every place that events go to.
pub(crate) struct Events {
    wanted: CelPlaces,
    zone: Zone,
    files: Option<(Sink<Line>, Vec<FilePattern>)>,
    table: Option<(Sink<Row>, Vec<Pattern>)>,
}

impl Events {
    /// Starts what the configuration wants.
    pub(crate) fn start(snapshot: &Snapshot) -> std::io::Result<Self> {
        let wanted = CelPlaces::of(snapshot);
        let folder = &snapshot.asterisk.directories.astlogdir;
        let files = match &wanted.custom {
            None => None,
            Some(custom) => {
                let patterns =
                    custom.files.iter().map(|(file, text)| (file.clone(), Pattern::new(text))).collect();
                Some((Sink::<Line>::below(&folder.join(CEL_FOLDER))?, patterns))
            }
        };
        let table = match &wanted.table {
            None => None,
            Some(table) => {
                let patterns = table.values.iter().map(|value| Pattern::new(value)).collect();
                Some((Sink::<Row>::start(folder, table)?, patterns))
            }
        };
        Ok(Self { wanted, zone: Zone::local(), files, table })
    }
    /// Whether the configuration wants something else than what runs.
    pub(crate) fn differs(&self, snapshot: &Snapshot) -> bool {
        self.wanted != CelPlaces::of(snapshot)
    }
    fn time(&self, event: &Cel) -> String {
        match self.wanted.dateformat.as_str() {
            "" => format!("{}.{:06}", event.time.div_euclid(1_000_000), event.time.rem_euclid(1_000_000)),
            wanted => format(event.time, &self.zone, wanted),
        }
    }
    /// Sends events on their way.
    pub(crate) fn write(&mut self, core: &mut Core, events: &[Cel]) {
        let mut lost = [("cel_custom", 0), ("cel_sqlite3_custom", 0)];
        let [custom, sqlite] = &mut lost;
        for event in events {
            let time = self.time(event);
            let of = (event, time.as_str());
            if let Some((sink, patterns)) = &mut self.files {
                for (file, pattern) in patterns {
                    let line = Line { file: file.clone(), text: pattern.fill_event(core, of, "cel_custom") };
                    custom.1 += u32::from(sink.write(line).is_none());
                }
            }
            if let Some((sink, patterns)) = &mut self.table {
                let fill = |pattern: &mut Pattern| pattern.fill_event(core, of, "cel_sqlite3_custom");
                let row = patterns.iter_mut().map(fill).collect();
                sqlite.1 += u32::from(sink.write(row).is_none());
            }
            if let Some(manager) = &self.wanted.manager {
                let plain = self.wanted.dateformat.is_empty();
                let date = plain.then(|| format(event.time, &self.zone, MANAGER_DATE));
                let fields = || cel_fields(event, date.as_ref().unwrap_or(&time), manager.show_user_defined);
                core.notice(|_| Some(Notice::Cel { fields: fields() }));
            }
        }
        for (place, lost) in lost.into_iter().filter(|(_, lost)| *lost > 0) {
            let line = format!("{lost} channel events were lost: too many wait for the disk");
            core.log(Level::Error, place, &line);
        }
    }
    /// What a writer has to complain about, and its name.
    pub(crate) fn trouble(&self) -> Option<(&'static str, String)> {
        let files = self.files.as_ref().and_then(|(sink, _)| sink.trouble());
        let table = || self.table.as_ref().and_then(|(sink, _)| sink.trouble());
        let files = files.map(|told| ("cel_custom", told));
        files.or_else(|| table().map(|told| ("cel_sqlite3_custom", told)))
    }
}
