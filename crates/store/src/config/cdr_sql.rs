//! `cdr_adaptive_odbc.conf`, `cdr_odbc.conf`, `cdr_pgsql.conf` and `cdr_mysql.conf`: tables of databases that call detail
//! records go to.

use super::kind::{Hidden, Int, Port, Text, YesNo};
use super::realtime::{Driver, Link, Realtime, Server, Settings};
use super::{Object as _, Row, options, read_object, read_settings};
use conf::{File, Findings, Section, Variable};
use std::time::Duration;

options! {
    /// A section of `cdr_adaptive_odbc.conf`: a table.
    CdrAdaptive, "cdr_adaptive_odbc.conf", "table", IsIgnored;
    connection: Text = "", "Class of res_odbc.conf.";
    table: Text = "cdr", "Table that gets a row for each record. Fields that are no column of it are left out.";
    schema: Text = "", "Schema of the table, where it is not the user's own.";
    usegmtime: YesNo = "no", "Times in UTC.";
    quoted_identifiers: Text = "", "Character around names.",
        Ignored "*" "names are always quoted as the database wants it";
    loguniqueid: YesNo = "yes", "Write UNIQUEID.",
        Ignored "*" "it is written where the table has a column uniqueid";
    newcdrcolumns: YesNo = "yes", "Write peeraccount, linkedid and sequence.",
        Ignored "*" "they are written where the table has such columns";
    @recognised {}
}

options! {
    /// `[global]` of `cdr_odbc.conf`.
    CdrOdbc, "cdr_odbc.conf", "global", IsIgnored;
    dsn: Text = "", "Class of res_odbc.conf.";
    table: Text = "cdr", "Table that gets a row for each record: calldate, clid, src, dst, dcontext, channel, dstchannel, lastapp, lastdata, duration, billsec, disposition, amaflags, accountcode.";
    loguniqueid: YesNo = "no", "Also write uniqueid and userfield.";
    dispositionstring: YesNo = "no", "Write the disposition as a word instead of a number.";
    usegmtime: YesNo = "no", "Times in UTC.";
    hrtime: YesNo = "no", "Write duration and billsec with their fractions of a second.";
    newcdrcolumns: YesNo = "no", "Also write peeraccount, linkedid and sequence.";
    @recognised {
        "username" "*" Ignored "res_odbc.conf has user and password";
        "password" "*" Ignored "res_odbc.conf has user and password";
    }
}

options! {
    /// `[global]` of `cdr_pgsql.conf`.
    CdrPgsql, "cdr_pgsql.conf", "global", IsIgnored;
    hostname: Text = "", "Server; empty is this machine.";
    port: Port = "5432", "Port of the server.";
    dbname: Text = "asterisk", "Database.";
    user: Text = "asterisk", "User.";
    password: Hidden = "", "Password.";
    table: Text = "cdr", "Table that gets a row for each record. Fields that are no column of it are left out; the start also goes to a column calldate.";
    schema: Text = "", "Schema of the table, where it is not on the user's search path.";
    usegmtime: YesNo = "no", "Times in UTC.";
    @recognised {
        "encoding" "*" Ignored "connections speak UTF-8";
        "timezone" "*" Ignored "times are written as the machine's own, or in UTC with usegmtime";
        "appname" "*" Ignored "the server is told `strowger`";
    }
}

options! {
    /// `[global]` of `cdr_mysql.conf`.
    CdrMysql, "cdr_mysql.conf", "global", IsIgnored;
    hostname: Text = "", "Server; empty is this machine.";
    port: Port = "3306", "Port of the server.";
    sock: Text = "", "Socket of the server on this machine.";
    dbname: Text = "asteriskcdrdb", "Database.";
    user: Text = "asteriskcdruser", "User.";
    password: Hidden = "", "Password.";
    table: Text = "cdr", "Table that gets a row for each record. Fields that are no column of it are left out; without a section columns the start also goes to a column calldate.";
    usegmtime: YesNo = "no", "Times in UTC.";
    max_connections: Int<1, 1000> = "1", "Most connections at once.";
    @recognised {
        "userfield" "*" Ignored "it is written where the table has such a column";
        "timezone" "*" Ignored "times are written as the machine's own, or in UTC with usegmtime";
        "charset" "*" Ignored "connections speak UTF-8";
        "compat" "*" Ignored "columns are those that the table has";
        "cdrzone" "*" Ignored "times are written as the machine's own, or in UTC with usegmtime";
    }
}

/// Options of all these files, for the manual.
pub(crate) fn rows() -> Vec<Row> {
    let filter = "Only records that have this value become rows; with != those that have not.";
    let lines = mapping_rows("cdr_adaptive_odbc.conf", filter);
    [CdrAdaptive::rows(), lines, CdrOdbc::rows(), CdrPgsql::rows(), CdrMysql::rows()].concat()
}

/// Lines of a section that say which field goes to which column, and which records become rows.
pub(crate) fn mapping_rows(file: &'static str, filter: &'static str) -> Vec<Row> {
    let line = |name: &'static str, kind: &str, doc: &'static str| Row {
        file,
        section: "table",
        name,
        kind: kind.to_owned(),
        default: "",
        doc,
        status: super::Status::Supported,
    };
    vec![
        line("alias FIELD", "column", "The field goes to this column instead of that of its name."),
        line("static VALUE", "column", "The column always gets this value; quotes around it do not count."),
        line("filter FIELD", "value", filter),
    ]
}

/// Which records become rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFilter {
    /// Field of `CDR()`.
    pub field: String,
    /// The value that it has to have.
    pub value: String,
    /// It must not have it.
    pub negated: bool,
}

/// A table that records go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CdrSql {
    /// Module that wrote it in the field.
    pub module: &'static str,
    /// What the table is called in the log: module and section.
    pub name: String,
    /// The database.
    pub connection: (Driver, String),
    /// The table, with its schema if it has one.
    pub table: String,
    /// Times are in UTC.
    pub utc: bool,
    /// Fields and the columns that they go to; `None`: each to that of its name, and variables of the record too.
    pub fields: Option<Vec<(&'static str, &'static str)>>,
    /// Columns of fields that have other names.
    pub aliases: Vec<(String, String)>,
    /// Values and the columns that they always go to.
    pub statics: Vec<(String, String)>,
    /// Conditions; all of them have to hold.
    pub filters: Vec<RecordFilter>,
    /// The disposition is a number in columns of text as well.
    pub numbers: bool,
    /// Durations have fractions.
    pub fractions: bool,
    /// Of channel events: the type of one that the dialplan made is the name that it gave.
    pub user_defined: bool,
}

/// Fields and columns of `cdr_odbc.conf`, in its order.
const ODBC_FIELDS: [(&str, &str); 14] = [
    ("start", "calldate"),
    ("clid", "clid"),
    ("src", "src"),
    ("dst", "dst"),
    ("dcontext", "dcontext"),
    ("channel", "channel"),
    ("dstchannel", "dstchannel"),
    ("lastapp", "lastapp"),
    ("lastdata", "lastdata"),
    ("duration", "duration"),
    ("billsec", "billsec"),
    ("disposition", "disposition"),
    ("amaflags", "amaflags"),
    ("accountcode", "accountcode"),
];
const WITH_UNIQUE_ID: [(&str, &str); 2] = [("uniqueid", "uniqueid"), ("userfield", "userfield")];
const NEW_COLUMNS: [(&str, &str); 3] =
    [("peeraccount", "peeraccount"), ("linkedid", "linkedid"), ("sequence", "sequence")];

/// After a connection has failed, the next is tried this much later at most.
const RETRY_AFTER: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const SLOW: Duration = Duration::from_secs(5);

/// The files as they were read; `None` is one that is not there.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) adaptive: Option<File>,
    pub(crate) odbc: Option<File>,
    pub(crate) pgsql: Option<File>,
    pub(crate) mysql: Option<File>,
}

/// Reads the tables, and adds the databases that only these files describe.
pub(crate) fn read(files: &Files, realtime: &mut Realtime, findings: &mut Findings) -> Vec<CdrSql> {
    let mut tables = Vec::new();
    if let Some(file) = &files.adaptive {
        let named = file.objects().filter(|section| is_table(section, findings));
        let named: Vec<&Section> = named.collect();
        tables.extend(named.into_iter().filter_map(|section| adaptive(section, realtime, findings)));
    }
    if let Some(file) = &files.odbc {
        tables.extend(odbc(file, realtime, findings));
    }
    if let Some(file) = files.pgsql.as_ref().filter(|file| describes(file, findings)) {
        let of: CdrPgsql = read_settings(file, "global", findings);
        let server = Server {
            host: of.hostname,
            port: of.port,
            socket: String::new(),
            database: of.dbname,
            user: of.user,
            password: of.password,
        };
        let place = of.origin.place.clone();
        let connection = own_database("cdr_pgsql", Driver::Pgsql, Link::Pgsql(server), 1, &place, realtime);
        let aliases =
            vec![("start".to_owned(), "calldate".to_owned()), ("start".to_owned(), "start".to_owned())];
        tables.push(CdrSql {
            aliases,
            utc: of.usegmtime,
            ..plain("cdr_pgsql", "cdr_pgsql", connection, with_schema(&of.schema, &of.table))
        });
    }
    if let Some(file) = files.mysql.as_ref().filter(|file| describes(file, findings)) {
        let of: CdrMysql = read_settings(file, "global", findings);
        let server = Server {
            host: of.hostname,
            port: of.port,
            socket: of.sock,
            database: of.dbname,
            user: of.user,
            password: of.password,
        };
        let (link, place) = (Link::Mysql(server), of.origin.place.clone());
        let connection = own_database("cdr_mysql", Driver::Mysql, link, of.max_connections, &place, realtime);
        let mut table = CdrSql { utc: of.usegmtime, ..plain("cdr_mysql", "cdr_mysql", connection, of.table) };
        match file.section("columns") {
            Some(columns) => columns.variables.iter().for_each(|line| {
                if !table.line(line) {
                    let message = format!("'{}' is neither alias FIELD nor static VALUE", line.name);
                    findings.warning(&line.place, message, "write alias start => calldate");
                }
            }),
            None => {
                table.aliases =
                    ["calldate", "start"].map(|column| ("start".to_owned(), column.to_owned())).to_vec();
            }
        }
        tables.push(table);
    }
    tables
}

/// Whether the section of a file that describes a database says anything: a stock file does not, and nothing is connected to
/// or kept for it.
pub(super) fn describes(file: &File, findings: &mut Findings) -> bool {
    let said = file.named("global").any(|section| !section.variables.is_empty());
    if !said {
        let message = "[global] says nothing, so nothing is written to a database";
        findings.note(&file.place(), message, "");
    }
    said
}

/// Whether a section is a table: `[general]`, which has no options in the field either, and an empty one are none.
pub(super) fn is_table(section: &Section, findings: &mut Findings) -> bool {
    if section.name.eq_ignore_ascii_case("general") && section.last("connection").is_none() {
        for line in &section.variables {
            let message = format!("[general] has no option `{}`; the line is ignored", line.name);
            findings.note(&line.place, message, "");
        }
        return false;
    }
    if section.variables.is_empty() {
        let message = format!("[{}] says nothing, so nothing is written to a database", section.name);
        findings.note(&section.place, message, "");
    }
    !section.variables.is_empty()
}

/// The tables of a family `cdr` or `cel` of `extconfig.conf`: the first of its places, as a table of `cdr_adaptive_odbc.conf`
/// or `cel_odbc.conf` would be. What is written cannot be written elsewhere when it waits, so that further places are
/// named and not used.
pub(crate) fn of_family(family: &str, realtime: &Realtime, findings: &mut Findings) -> Option<CdrSql> {
    let (first, others) = realtime.families.of(family).split_first()?;
    for other in others {
        let message = format!("family '{family}' is written to its first database only");
        findings.warning(&other.place, message, "remove the line: records wait for a database that is away");
    }
    let key = (first.driver, first.database.clone());
    if !realtime.databases.contains_key(&key) {
        return None;
    }
    let (module, starts): (_, &[&str]) = match family {
        "cel" => ("cel_odbc", &[]),
        _ => ("cdr_adaptive_odbc", &["calldate", "start"]),
    };
    let aliases = starts.iter().map(|column| ("start".to_owned(), (*column).to_owned())).collect();
    Some(CdrSql { aliases, ..plain(module, &format!("extconfig/{family}"), key, first.table.clone()) })
}

pub(super) fn plain(module: &'static str, name: &str, connection: (Driver, String), table: String) -> CdrSql {
    CdrSql {
        module,
        name: name.to_owned(),
        connection,
        table,
        utc: false,
        fields: None,
        aliases: Vec::new(),
        statics: Vec::new(),
        filters: Vec::new(),
        numbers: false,
        fractions: false,
        user_defined: false,
    }
}

pub(super) fn with_schema(schema: &str, table: &str) -> String {
    if schema.is_empty() { table.to_owned() } else { format!("{schema}.{table}") }
}

/// A database that only a file of records describes.
pub(super) fn own_database(
    name: &str,
    driver: Driver,
    link: Link,
    connections: u32,
    place: &conf::Place,
    realtime: &mut Realtime,
) -> (Driver, String) {
    let settings = Settings {
        name: name.to_owned(),
        link,
        connections,
        connect_timeout: CONNECT_TIMEOUT,
        retry_after: RETRY_AFTER,
        slow: SLOW,
        transaction_timeout: std::time::Duration::from_secs(60),
        isolation: base::Isolation::default(),
        forcecommit: false,
        pre_connect: true,
        place: place.clone(),
    };
    let key = (driver, name.to_owned());
    realtime.databases.insert(key.clone(), settings);
    key
}

/// The database of a class; `None`, and a finding, when nobody describes it.
pub(super) fn class(
    name: &str,
    option: &str,
    section: &Section,
    realtime: &Realtime,
    findings: &mut Findings,
) -> Option<(Driver, String)> {
    let drivers = [Driver::Odbc, Driver::Mysql, Driver::Pgsql, Driver::Sqlite3];
    let keys = drivers.map(|driver| (driver, name.to_owned()));
    let found = keys.into_iter().find(|key| realtime.databases.contains_key(key));
    if found.is_none() {
        let message = match name {
            "" => format!("[{}] has no {option}=; it writes nothing", section.name),
            _ => format!(
                "[{}] names '{name}', which is no class of res_odbc.conf; it writes nothing",
                section.name
            ),
        };
        findings.error(
            &section.place,
            message,
            format!("describe the class in res_odbc.conf, and write {option}="),
        );
    }
    found
}

fn adaptive(section: &Section, realtime: &Realtime, findings: &mut Findings) -> Option<CdrSql> {
    let mut lines = plain("cdr_adaptive_odbc", "", (Driver::Odbc, String::new()), String::new());
    let of: CdrAdaptive = read_object(section, findings, &mut |_, line, _| lines.line(line))?;
    let connection = class(&of.connection, "connection", section, realtime, findings)?;
    Some(CdrSql {
        name: format!("cdr_adaptive_odbc/{}", section.name),
        connection,
        table: with_schema(&of.schema, &of.table),
        utc: of.usegmtime,
        ..lines
    })
}

fn odbc(file: &File, realtime: &Realtime, findings: &mut Findings) -> Option<CdrSql> {
    let section = file.section("global").filter(|_| describes(file, findings))?;
    let of: CdrOdbc = read_settings(file, "global", findings);
    let connection = class(&of.dsn, "dsn", section, realtime, findings)?;
    let mut fields = ODBC_FIELDS.to_vec();
    if of.loguniqueid {
        fields.extend(WITH_UNIQUE_ID);
    }
    if of.newcdrcolumns {
        fields.extend(NEW_COLUMNS);
    }
    Some(CdrSql {
        utc: of.usegmtime,
        fields: Some(fields),
        numbers: !of.dispositionstring,
        fractions: of.hrtime,
        ..plain("cdr_odbc", "cdr_odbc", connection, of.table)
    })
}

impl CdrSql {
    /// Takes a line that says something of columns; `false`: it says something else.
    pub(super) fn line(&mut self, line: &Variable) -> bool {
        let Some((word, what)) = line.name.split_once(char::is_whitespace) else { return false };
        let (what, value) = (what.trim(), line.value.trim().to_owned());
        match word.to_ascii_lowercase().as_str() {
            "alias" => self.aliases.push((what.to_ascii_lowercase(), value)),
            "static" => self.statics.push((what.trim_matches('"').to_owned(), value)),
            "filter" => {
                let negated = what.ends_with('!');
                let field = what.trim_end_matches('!').trim().to_ascii_lowercase();
                self.filters.push(RecordFilter { field, value, negated });
            }
            _ => return false,
        }
        true
    }
    /// Columns that a field goes to.
    pub fn columns<'a>(&'a self, field: &'a str) -> Vec<&'a str> {
        let of = |(name, column): &'a (String, String)| (name == field).then_some(column.as_str());
        let own: Vec<&str> = self.aliases.iter().filter_map(of).collect();
        if own.is_empty() { vec![field] } else { own }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str, findings: &mut Findings) -> File {
        let source = conf::Memory::new().with(name, text);
        conf::load(&source, name, conf::Options::default(), findings).unwrap()
    }

    fn with_class() -> Realtime {
        let mut realtime = Realtime::default();
        let place = conf::Place::new("res_odbc.conf", 1);
        own_database("asteriskcdrdb", Driver::Odbc, Link::Sqlite("x".into()), 1, &place, &mut realtime);
        realtime
    }

    #[test]
    fn a_section_of_the_adaptive_file_is_a_table() {
        let mut findings = Findings::new();
        let text = "[first]\nconnection=asteriskcdrdb\nloguniqueid=yes\ntable=cdr\nalias start => calldate\n\
                    static \"north\" => site\nfilter accountcode => sales\nfilter lastapp != Hangup\n\
                    [second]\nconnection=nowhere\n[third]\ntable=x\n";
        let adaptive = Some(file("cdr_adaptive_odbc.conf", text, &mut findings));
        let files = Files { adaptive, ..Files::default() };
        let tables = read(&files, &mut with_class(), &mut findings);
        let [table] = tables.as_slice() else { panic!("{tables:?}") };
        assert_eq!(table.connection, (Driver::Odbc, "asteriskcdrdb".to_owned()));
        assert_eq!((table.name.as_str(), table.table.as_str()), ("cdr_adaptive_odbc/first", "cdr"));
        assert_eq!(table.columns("start"), ["calldate"]);
        assert_eq!(table.columns("src"), ["src"]);
        assert_eq!(table.statics, [("north".to_owned(), "site".to_owned())]);
        let filters: Vec<_> =
            table.filters.iter().map(|of| (of.field.as_str(), of.value.as_str(), of.negated)).collect();
        assert_eq!(filters, [("accountcode", "sales", false), ("lastapp", "Hangup", true)]);
        let told: Vec<String> = findings.iter().map(|finding| finding.message.clone()).collect();
        assert_eq!(told.iter().filter(|line| line.contains("writes nothing")).count(), 2, "{told:?}");
    }

    #[test]
    fn files_of_one_database_bring_it_with_them() {
        let mut findings = Findings::new();
        let mut realtime = with_class();
        let files = Files {
            odbc: Some(file(
                "cdr_odbc.conf",
                "[global]\ndsn=asteriskcdrdb\nloguniqueid=yes\n",
                &mut findings,
            )),
            pgsql: Some(file("cdr_pgsql.conf", "[global]\nhostname=db\ndbname=a\nschema=s\n", &mut findings)),
            mysql: Some(file(
                "cdr_mysql.conf",
                "[global]\nhostname=db\n[columns]\nalias start => calldate\n",
                &mut findings,
            )),
            ..Files::default()
        };
        let tables = read(&files, &mut realtime, &mut findings);
        let shown: Vec<_> = tables.iter().map(|table| (table.module, table.table.as_str())).collect();
        assert_eq!(shown, [("cdr_odbc", "cdr"), ("cdr_pgsql", "s.cdr"), ("cdr_mysql", "cdr")]);
        assert_eq!(tables[0].fields.as_ref().unwrap().len(), 16);
        assert!(tables[0].numbers);
        assert_eq!(tables[1].columns("start"), ["calldate", "start"]);
        assert_eq!(tables[2].columns("start"), ["calldate"]);
        assert!(realtime.databases.contains_key(&(Driver::Pgsql, "cdr_pgsql".to_owned())));
        assert!(realtime.databases.contains_key(&(Driver::Mysql, "cdr_mysql".to_owned())));
        assert!(findings.is_empty(), "{:?}", findings.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
}
