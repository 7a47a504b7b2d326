//! `cdr.conf`: whether and which call detail records are written; `cdr_custom.conf`, `cdr_sqlite3_custom.conf` and
//! `cdr_manager.conf`: where else they go.

use super::kind::{Int, Text, YesNo};
use super::{options, read_object, read_settings};
use conf::{File, Findings, Place, Section};
use std::path::{Component, Path};
use std::sync::Arc;

options! {
    /// `[general]` of `cdr.conf`.
    CdrGeneral, "cdr.conf", "general", IsIgnored;
    enable: YesNo = "yes", "Make call detail records.";
    unanswered: YesNo = "no", "Write records of calls that nobody answered and that dialled nobody.";
    congestion: YesNo = "no", "Write CONGESTION as disposition instead of FAILED.";
    canceldispositionenabled: YesNo = "no", "Write CANCEL as disposition of a call that its caller gave up, instead of NO ANSWER.";
    endbeforehexten: YesNo = "yes", "Finish the record before the h extension runs.";
    initiatedseconds: YesNo = "no", "Round billsec up to a whole second.";
    channeldefaultenabled: YesNo = "yes", "Records for every channel; no: only for those whose dialplan sets CDR_PROP(disable)=0.";
    ignoredialchanges: YesNo = "no", "Dialling begins no other record: one for each call, however many it dials.";
    ignorestatechanges: YesNo = "no", "Bridging begins no other record.",
        Ignored "*" "bridging never begins another record";
    batch: YesNo = "no", "Keep records to write several at once.",
        Ignored "*" "records are always gathered for some milliseconds and synced together";
    size: Int<1, 1_000_000> = "100", "Records of a batch.",
        Ignored "*" "records are always gathered for some milliseconds and synced together";
    time: Int<1, 86_400> = "300", "Seconds after which a batch is written.",
        Ignored "*" "records are always gathered for some milliseconds and synced together";
    scheduleronly: YesNo = "no", "Write batches on the scheduler's thread.",
        Ignored "*" "a thread of its own writes";
    safeshutdown: YesNo = "yes", "Write what is left at shutdown.",
        Ignored "*" "what is left is always written at shutdown";
    @recognised {}
}

options! {
    /// `[csv]` of `cdr.conf`. Without the section no CSV file is written.
    CdrCsv, "cdr.conf", "csv", IsIgnored;
    usegmtime: YesNo = "no", "Times in UTC.";
    loguniqueid: YesNo = "no", "Append the UNIQUEID.";
    loguserfield: YesNo = "no", "Append the user field.";
    accountlogs: YesNo = "yes", "Also write a file for each account code.";
    newcdrcolumns: YesNo = "no", "Append peeraccount, linkedid and sequence.";
    @recognised {}
}

/// `cdr.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cdr {
    /// `[general]`.
    pub general: CdrGeneral,
    /// `[csv]`, when it is there.
    pub csv: Option<CdrCsv>,
}

/// Sections of other back-ends, and that they are not there.
const LATER: [&str; 3] = ["radius", "odbc", "sqlite"];

impl Cdr {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let csv = file.section("csv").map(|_| read_settings(file, "csv", findings));
        let general: CdrGeneral = read_settings(file, "general", findings);
        if csv.is_none() && general.enable {
            findings.note(
                &file.place(),
                "there is no section [csv], so Master.csv is not written",
                "add [csv], or describe the records in cdr_custom.conf",
            );
        }
        for section in file.objects().filter(|section| LATER.contains(&&*section.name.to_ascii_lowercase())) {
            let message =
                format!("[{}] is known to Asterisk and not supported yet: it writes nothing", section.name);
            findings.warning(
                &section.place,
                message,
                "use [csv], cdr_custom.conf or cdr_sqlite3_custom.conf",
            );
        }
        Self { general, csv }
    }
}

/// `cdr_custom.conf`: files of lines, each with the pattern of its lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CdrCustom {
    /// Name of a file below the folder, and the pattern of its lines.
    pub files: Vec<(Arc<str>, Arc<str>)>,
}

impl CdrCustom {
    /// Reads `[mappings]`.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        Self::lines(file, "cdr-custom", "${CSV_QUOTE(${CDR(src)})},${CDR(billsec)}", findings)
    }
    /// Reads `[mappings]` of files below a folder, with an example of what a line may say.
    pub(super) fn lines(file: &File, folder: &str, example: &str, findings: &mut Findings) -> Self {
        let mut files = Vec::new();
        for line in file.section("mappings").iter().flat_map(|section| &section.variables) {
            if !stays_below(&line.name) {
                let message = format!("'{}' is no file below {folder}; nothing is written to it", line.name);
                findings.warning(
                    &line.place,
                    message,
                    "name a file without / at its beginning and without ..",
                );
            } else if line.value.is_empty() {
                let message = format!("{} has no pattern; nothing is written to it", line.name);
                findings.warning(&line.place, message, format!("add one, such as {example}"));
            } else {
                files.push((line.name.clone(), line.value.clone()));
            }
        }
        if files.is_empty() {
            findings.note(&file.place(), "there are no lines in [mappings], so no file is written", "");
        }
        Self { files }
    }
}

/// Whether a path leads to a file below the folder it is joined to.
fn stays_below(name: &str) -> bool {
    let path = Path::new(name);
    path.file_name().is_some()
        && path.components().all(|part| matches!(part, Component::Normal(_)))
        && !name.contains('\0')
}

options! {
    /// `[master]` of `cdr_sqlite3_custom.conf`.
    CdrMaster, "cdr_sqlite3_custom.conf", "master", IsIgnored;
    table: Text = "", "Table of master.db in astlogdir that gets a row for each record; made when there is none.";
    columns: Text = "", "Columns, separated by commas; those that the table lacks are added.";
    values: Text = "", "What is written to each column, in the same order: '${CDR(start)}','${CDR(src)}'.";
    busy_timeout: Int<0, 60_000> = "1000", "How long to wait for others that write to the database, milliseconds.";
    @recognised {}
}

/// `cdr_sqlite3_custom.conf`: a table of SQLite.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CdrTable {
    /// Name of the table.
    pub table: String,
    /// Names of its columns.
    pub columns: Vec<String>,
    /// The pattern of each column's value.
    pub values: Vec<Arc<str>>,
    /// How long to wait for others that write to the database, milliseconds.
    pub busy_timeout: u32,
}

impl CdrTable {
    /// Reads `[master]`; `None` when it describes no table.
    pub fn read(file: &File, findings: &mut Findings) -> Option<Self> {
        let section = Self::master(file, findings)?;
        let of: CdrMaster = read_object(section, findings, &mut |_, _, _| false)?;
        Self::of(&section.place, of.table, (&of.columns, &of.values), of.busy_timeout, findings)
    }
    /// The section that describes a table.
    pub(super) fn master<'a>(file: &'a File, findings: &mut Findings) -> Option<&'a Section> {
        let says_nothing = |section: &Section| section.variables.is_empty();
        let section = file.section("master").filter(|section| !says_nothing(section));
        if file.objects().all(says_nothing) {
            findings.note(&file.place(), "the file says nothing, so no table is written", "");
        } else if section.is_none() {
            findings.warning(
                &file.place(),
                "there is no section [master], so no table is written",
                "add [master]",
            );
        }
        section
    }
    /// The table of these columns and values; `None`, and a finding, when it is none.
    pub(super) fn of(
        place: &Place,
        table: String,
        (columns, values): (&str, &str),
        busy_timeout: u32,
        findings: &mut Findings,
    ) -> Option<Self> {
        let split = |list: &str| pieces(list).iter().map(|piece| (*piece).to_owned()).collect::<Vec<_>>();
        let columns = split(columns);
        let values: Vec<Arc<str>> = split(values).iter().map(|value| unquoted(value).into()).collect();
        let wrong = if table.is_empty() {
            "there is no table=".to_owned()
        } else if columns.is_empty() || columns.iter().any(String::is_empty) {
            "columns= names no columns, or one has no name".to_owned()
        } else if columns.len() != values.len() {
            format!("there are {} columns and {} values", columns.len(), values.len())
        } else {
            return Some(Self { table, columns, values, busy_timeout });
        };
        findings.warning(
            place,
            format!("{wrong}; no table is written"),
            "write table=, and as many values= as columns=",
        );
        None
    }
}

/// Splits at commas that stand neither in brackets nor in quotes; blanks around pieces do not count.
fn pieces(list: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut from) = (0_u32, false, 0);
    let mut found = Vec::new();
    for (at, c) in list.char_indices() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            '\'' if depth == 0 => quoted = !quoted,
            ',' if depth == 0 && !quoted => {
                found.extend(list.get(from..at).map(str::trim));
                from = at + 1;
            }
            _ => {}
        }
    }
    found.extend(list.get(from..).map(str::trim).filter(|last| !last.is_empty() || !found.is_empty()));
    found
}

/// A value without the quotes that SQL would want around it; it is bound, not spliced in.
fn unquoted(value: &str) -> String {
    let inner = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    inner.map_or_else(|| value.to_owned(), |inner| inner.replace("''", "'"))
}

options! {
    /// `[general]` of `cdr_manager.conf`.
    CdrManagerGeneral, "cdr_manager.conf", "general", IsIgnored;
    enabled: YesNo = "no", "Send an event Cdr to managers of class cdr for each record.";
    @recognised {}
}

/// `cdr_manager.conf`: records as events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CdrManager {
    /// `enabled`.
    pub enabled: bool,
    /// `[mappings]`: a field of `CDR()`, and the name that it has in the event.
    pub fields: Vec<(Arc<str>, Arc<str>)>,
}

impl CdrManager {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let general: CdrManagerGeneral = read_settings(file, "general", findings);
        let mut fields = Vec::new();
        for line in file.section("mappings").iter().flat_map(|section| &section.variables) {
            if line.value.is_empty() || line.value.contains([':', ' ']) {
                let message =
                    format!("'{}' is no name of a field; {} is not in the event", line.value, line.name);
                findings.warning(&line.place, message, "write name=>Name, without blanks and colons");
            } else {
                fields.push((line.name.clone(), line.value.clone()));
            }
        }
        Self { enabled: general.enabled, fields }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(name: &str, text: &str, read: fn(&File, &mut Findings) -> T) -> (T, Vec<String>) {
        let mut findings = Findings::new();
        let source = conf::Memory::new().with(name, text);
        let file = conf::load(&source, name, conf::Options::default(), &mut findings).unwrap();
        let value = read(&file, &mut findings);
        (value, findings.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn files_of_lines_stay_below_their_folder() {
        let text = "[mappings]\nMaster.csv => ${CSV_QUOTE(${CDR(src)})},${CDR(billsec)}\nday/one.csv => x\n\
                    ../passwd => x\n/etc/passwd => x\nempty.csv =>\n";
        let (custom, told) = read("cdr_custom.conf", text, CdrCustom::read);
        let files: Vec<(&str, &str)> = custom.files.iter().map(|(name, text)| (&**name, &**text)).collect();
        assert_eq!(
            files,
            [("Master.csv", "${CSV_QUOTE(${CDR(src)})},${CDR(billsec)}"), ("day/one.csv", "x")]
        );
        assert_eq!(told.len(), 3, "{told:?}");
    }

    #[test]
    fn a_table_has_as_many_values_as_columns() {
        for (name, lines, columns, told) in [
            ("plain", "columns => a, b\nvalues => '${CDR(src)}','${IF($[1>0]?x,y:z)}'", 2, 0),
            ("without quotes", "columns => a,b\nvalues => ${CDR(src)},${CDR(dst)}", 2, 0),
            ("a comma in quotes", "columns => a\nvalues => 'x, it''s'", 1, 0),
            ("one too few", "columns => a,b\nvalues => '1'", 0, 1),
            ("none", "columns =>\nvalues =>", 0, 1),
            ("a name missing", "columns => a,,b\nvalues => 1,2,3", 0, 1),
        ] {
            let text = format!("[master]\ntable => cdr\n{lines}\n");
            let (table, findings) = read("cdr_sqlite3_custom.conf", &text, CdrTable::read);
            assert_eq!(table.map_or(0, |table| table.columns.len()), columns, "{name}: {findings:?}");
            assert_eq!(findings.len(), told, "{name}: {findings:?}");
        }
        let text = "[master]\ntable=cdr\ncolumns=a,b\nvalues='${CDR(clid)}','it''s'\n";
        let (table, _) = read("cdr_sqlite3_custom.conf", text, CdrTable::read);
        let values: Vec<String> = table.unwrap().values.iter().map(ToString::to_string).collect();
        assert_eq!(values, ["${CDR(clid)}", "it's"]);
        let (table, told) = read("cdr_sqlite3_custom.conf", "[other]\n", CdrTable::read);
        assert!(table.is_none() && told.len() == 1, "{told:?}");
    }

    #[test]
    fn fields_of_the_event_have_names_of_the_site() {
        let text = "[general]\nenabled = yes\n[mappings]\nrate => Rate\nbad => no: name\n";
        let (manager, told) = read("cdr_manager.conf", text, CdrManager::read);
        assert!(manager.enabled);
        assert_eq!(manager.fields, [("rate".into(), "Rate".into())]);
        assert_eq!(told.len(), 1, "{told:?}");
    }
}
