//! Call detail records as lines of `Master.csv`, and of a file for each account.

use super::{Outlet, Refused, Sink, append_all};
use crate::config::cdr::CdrCsv;
use crate::date::{Zone, format};
use call::Cdr;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// Folder below astlogdir.
pub const FOLDER: &str = "cdr-csv";
/// File all records go to.
pub const MASTER: &str = "Master.csv";
/// Longest account code that names a file, in bytes; a file name has at most 255.
const ACCOUNT_BYTES_MAX: usize = 200;

/// The shard's end of what writes `Master.csv`.
pub type CdrSink = Sink<Cdr>;

impl Sink<Cdr> {
    /// Starts a writer into `astlogdir`.
    pub fn start(astlogdir: &Path, options: &CdrCsv) -> io::Result<Self> {
        let zone = if options.usegmtime { Zone::utc() } else { Zone::local() };
        let folder = astlogdir.join(FOLDER);
        let (line, dates, files) = (String::new(), Dates::default(), BTreeMap::new());
        Self::over("cdr", Csv { folder, options: options.clone(), zone, line, dates, files })
    }
}

struct Csv {
    folder: PathBuf,
    options: CdrCsv,
    zone: Zone,
    line: String,
    dates: Dates,
    /// What is to be written, by file.
    files: BTreeMap<PathBuf, String>,
}

impl Outlet<Cdr> for Csv {
    fn take(&mut self, batch: Vec<Cdr>) {
        let mut master = String::new();
        for record in batch {
            self.line.clear();
            line(&record, &self.options, &self.zone, &mut self.dates, &mut self.line);
            master.push_str(&self.line);
            if self.options.accountlogs
                && let Some(name) = account_file(&record.account)
            {
                self.files.entry(self.folder.join(name)).or_default().push_str(&self.line);
            }
        }
        self.files.insert(self.folder.join(MASTER), master);
    }
    fn write(&mut self) -> Result<(), Refused> {
        append_all(&mut self.files)
    }
}

/// The file of an account. An account code comes from the dialplan, so it must not lead out of the folder, nor be taken
/// for the master.
fn account_file(account: &str) -> Option<String> {
    let plain = !account.is_empty()
        && account.len() <= ACCOUNT_BYTES_MAX
        && !account.starts_with('.')
        && !account.contains(['/', '\0'])
        && account != "Master";
    plain.then(|| format!("{account}.csv"))
}

/// One line, in Asterisk's column order and quoting: text in quotes with quotes doubled, numbers bare, a time that never
/// was as nothing.
fn line(record: &Cdr, options: &CdrCsv, zone: &Zone, dates: &mut Dates, out: &mut String) {
    for column in [&record.account, &record.src, &record.dst, &record.dcontext, &record.clid] {
        text(column, out);
    }
    for column in [&record.channel, &record.dst_channel, &record.last_app, &record.last_data] {
        text(column, out);
    }
    text(dates.of(record.start, zone), out);
    match record.answer {
        Some(answer) => text(dates.of(answer, zone), out),
        None => out.push(','),
    }
    text(dates.of(record.end, zone), out);
    // Writing to a String cannot fail.
    let _ = write!(out, "{},{},", record.duration.as_secs(), record.billed);
    text(record.disposition.name(), out);
    text(record.ama_flags.name(), out);
    if options.loguniqueid {
        text(&record.uniqueid, out);
    }
    if options.loguserfield {
        text(&record.user_field, out);
    }
    if options.newcdrcolumns {
        text(&record.peer_account, out);
        text(&record.linkedid, out);
        let _ = write!(out, "{},", record.sequence);
    }
    out.pop();
    out.push('\n');
}

/// A quoted column with its comma. A line break inside would look like another record, so it becomes a space.
fn text(column: &str, out: &mut String) {
    out.push('"');
    if column.bytes().any(|byte| matches!(byte, b'"' | b'\n' | b'\r')) {
        for c in column.chars() {
            match c {
                '"' => out.push_str("\"\""),
                '\n' | '\r' => out.push(' '),
                c => out.push(c),
            }
        }
    } else {
        out.push_str(column);
    }
    out.push_str("\",");
}

/// Records of one moment share their dates: the second written last, with its text.
#[derive(Debug, Default)]
struct Dates {
    second: Option<i64>,
    text: String,
}

impl Dates {
    fn of(&mut self, micros: i64, zone: &Zone) -> &str {
        let second = micros.div_euclid(1_000_000);
        if self.second != Some(second) {
            self.text = format(micros, zone, "%Y-%m-%d %T");
            self.second = Some(second);
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use call::{AmaFlags, Disposition};
    use std::time::Duration;

    fn record() -> Cdr {
        Cdr {
            account: "sales".into(),
            src: "101".into(),
            dst: "102".into(),
            dcontext: "internal".into(),
            clid: "\"Ann, A\" <101>".into(),
            channel: "PJSIP/101-00000001".into(),
            dst_channel: "PJSIP/102-00000002".into(),
            last_app: "Dial".into(),
            last_data: "PJSIP/102,20\r\nx".into(),
            start: 1_763_762_068_900_000,
            answer: None,
            end: 1_763_762_078_000_000,
            duration: Duration::from_millis(10_900),
            billsec: Duration::ZERO,
            billed: 0,
            disposition: Disposition::NoAnswer,
            ama_flags: AmaFlags::Documentation,
            uniqueid: "1763762068.1".into(),
            user_field: "x;y".into(),
            linkedid: "1763762068.0".into(),
            tenant: String::new(),
            peer_tenant: String::new(),
            peer_account: "p".into(),
            sequence: 7,
            custom: Vec::new(),
        }
    }

    #[test]
    fn a_line_has_asterisks_columns_and_quoting() {
        let common = "\"sales\",\"101\",\"102\",\"internal\",\"\"\"Ann, A\"\" <101>\",\"PJSIP/101-00000001\",\
                      \"PJSIP/102-00000002\",\"Dial\",\"PJSIP/102,20  x\",\"2025-11-21 21:54:28\",";
        let rest = "\"2025-11-21 21:54:38\",10,0,\"NO ANSWER\",\"DOCUMENTATION\"";
        let answered = Cdr { answer: Some(1_763_762_070_000_000), ..record() };
        let none = CdrCsv::default();
        let ids = CdrCsv { loguniqueid: true, loguserfield: true, ..CdrCsv::default() };
        let all = CdrCsv { newcdrcolumns: true, ..ids.clone() };
        for (name, record, options, expected) in [
            ("unanswered", record(), &none, format!("{common},{rest}\n")),
            ("answered", answered, &none, format!("{common}\"2025-11-21 21:54:30\",{rest}\n")),
            ("with ids", record(), &ids, format!("{common},{rest},\"1763762068.1\",\"x;y\"\n")),
            (
                "with new columns",
                record(),
                &all,
                format!("{common},{rest},\"1763762068.1\",\"x;y\",\"p\",\"1763762068.0\",7\n"),
            ),
        ] {
            let mut out = String::new();
            line(&record, options, &Zone::utc(), &mut Dates::default(), &mut out);
            assert_eq!(out, expected, "{name}");
        }
    }

    #[test]
    fn an_account_names_a_file_only_inside_the_folder() {
        for (account, expected) in [
            ("sales", Some("sales.csv")),
            ("", None),
            ("../passwd", None),
            ("a/b", None),
            (".hidden", None),
            ("Master", None),
        ] {
            assert_eq!(account_file(account).as_deref(), expected, "{account:?}");
        }
    }
}
