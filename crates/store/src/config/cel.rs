//! `cel.conf`: which channel events are kept; `cel_custom.conf`, `cel_sqlite3_custom.conf`, `cel_odbc.conf` and
//! `cel_pgsql.conf`: where they go.

use super::cdr::{CdrCustom, CdrTable};
use super::cdr_sql::{self, CdrSql};
use super::kind::{Hidden, Int, Names, Port, Text, YesNo};
use super::realtime::{Driver, Link, Realtime, Server};
use super::{Object as _, Row, options, read_object, read_settings};
use call::{CelKind, CelSettings};
use conf::{File, Findings};

options! {
    /// `[general]` of `cel.conf`.
    CelGeneral, "cel.conf", "general", IsIgnored;
    enable: YesNo = "no", "Keep channel events.";
    events: Names = "", "Kinds of events, by commas, or ALL: CHAN_START, CHAN_END, ANSWER, HANGUP, BRIDGE_ENTER, BRIDGE_EXIT, APP_START, APP_END, PARK_START, PARK_END, BLINDTRANSFER, ATTENDEDTRANSFER, PICKUP, FORWARD, LINKEDID_END, LOCAL_OPTIMIZE_BEGIN, LOCAL_OPTIMIZE, USER_DEFINED, STREAM_BEGIN, STREAM_END, DTMF.";
    apps: Names = "", "Applications whose beginning and end are APP_START and APP_END.";
    dateformat: Text = "", "How times are written, as strftime has it; empty: seconds since 1970 with microseconds.";
    @recognised {}
}

options! {
    /// `[manager]` of `cel.conf`.
    CelManager, "cel.conf", "manager", IsIgnored;
    enabled: YesNo = "no", "Send an event CEL to managers of class call for each.";
    show_user_defined: YesNo = "no", "The EventName of USER_DEFINED is the name that the dialplan gave.";
    @recognised {}
}

options! {
    /// `[master]` of `cel_sqlite3_custom.conf`.
    CelMaster, "cel_sqlite3_custom.conf", "master", IsIgnored;
    table: Text = "", "Table of master.db in astlogdir that gets a row for each event; made when there is none.";
    columns: Text = "", "Columns, separated by commas; those that the table lacks are added.";
    values: Text = "", "What is written to each column, in the same order: '${eventtype}','${CALLERID(num)}'.";
    busy_timeout: Int<0, 60_000> = "1000", "How long to wait for others that write to the database, milliseconds.";
    @recognised {}
}

options! {
    /// A section of `cel_odbc.conf`: a table.
    CelOdbc, "cel_odbc.conf", "table", IsIgnored;
    connection: Text = "", "Class of res_odbc.conf.";
    table: Text = "cel", "Table that gets a row for each event. Fields that are no column of it are left out.";
    schema: Text = "", "Schema of the table, where it is not the user's own.";
    usegmtime: YesNo = "no", "Times in UTC.";
    show_user_defined: YesNo = "no", "The eventtype of USER_DEFINED is the name that the dialplan gave.";
    allowleapsecond: YesNo = "yes", "Write seconds with their fractions.",
        Ignored "*" "they are always written with microseconds";
    @recognised {}
}

options! {
    /// `[global]` of `cel_pgsql.conf`.
    CelPgsql, "cel_pgsql.conf", "global", IsIgnored;
    hostname: Text = "", "Server; empty is this machine.";
    port: Port = "5432", "Port of the server.";
    dbname: Text = "asterisk", "Database.";
    user: Text = "asterisk", "User.";
    password: Hidden = "", "Password.";
    table: Text = "cel", "Table that gets a row for each event. Fields that are no column of it are left out.";
    schema: Text = "", "Schema of the table, where it is not on the user's search path.";
    usegmtime: YesNo = "no", "Times in UTC.";
    show_user_defined: YesNo = "no", "The eventtype of USER_DEFINED is the name that the dialplan gave.";
    @recognised {
        "appname" "*" Ignored "the server is told `strowger`";
    }
}

/// Options of all these files, for the manual.
pub(crate) fn rows() -> Vec<Row> {
    let filter = "Only events that have this value become rows; with != those that have not.";
    let lines = cdr_sql::mapping_rows("cel_odbc.conf", filter);
    let cel = [CelGeneral::rows(), CelManager::rows()];
    [cel.concat(), CelMaster::rows(), CelOdbc::rows(), lines, CelPgsql::rows()].concat()
}

/// `cel.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cel {
    /// `[general]`.
    pub general: CelGeneral,
    /// `[manager]`.
    pub manager: CelManager,
    kinds: Vec<CelKind>,
}

impl Cel {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let general: CelGeneral = read_settings(file, "general", findings);
        let manager = read_settings(file, "manager", findings);
        let mut kinds = Vec::new();
        for word in &general.events {
            match CelKind::named(word) {
                Some(kind) => kinds.push(kind),
                None if word.eq_ignore_ascii_case("ALL") => kinds.extend(CelKind::ALL),
                None => {
                    let known: Vec<&str> = CelKind::ALL.iter().map(|kind| kind.name()).collect();
                    let place = file.section("general").map_or_else(|| file.place(), |of| of.place.clone());
                    findings.warning(
                        &place,
                        format!("'{word}' is no kind of event; none of it is kept"),
                        super::suggestion(word, &known),
                    );
                }
            }
        }
        let of_apps = [CelKind::AppStart, CelKind::AppEnd];
        if general.enable && !general.apps.is_empty() && !of_apps.iter().any(|kind| kinds.contains(kind)) {
            findings.note(
                &file.place(),
                "apps= names applications, and events= neither APP_START nor APP_END",
                "add them to events=",
            );
        }
        if file.section("radius").is_some() {
            let message = "[radius] is known to Asterisk and not supported: it writes nothing";
            findings.warning(&file.place(), message, "use cel_custom.conf, cel_odbc.conf or [manager]");
        }
        Self { general, manager, kinds }
    }
    /// What the call core keeps; `None`: nothing.
    pub fn settings(&self) -> Option<CelSettings> {
        let apps = self.general.apps.iter().cloned();
        let wanted = self.general.enable && !self.kinds.is_empty();
        wanted.then(|| CelSettings::new(self.kinds.iter().copied(), apps))
    }
}

/// The other files, as they were read; `None` is one that is not there.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) odbc: Option<File>,
    pub(crate) pgsql: Option<File>,
}

/// Reads tables of databases, and adds the database that only these files describe.
pub(crate) fn read_sql(files: &Files, realtime: &mut Realtime, findings: &mut Findings) -> Vec<CdrSql> {
    let mut tables = Vec::new();
    for section in files.odbc.iter().flat_map(File::objects) {
        if !cdr_sql::is_table(section, findings) {
            continue;
        }
        let mut lines = cdr_sql::plain("cel_odbc", "", (Driver::Odbc, String::new()), String::new());
        let of: Option<CelOdbc> = read_object(section, findings, &mut |_, line, _| lines.line(line));
        let Some(of) = of else { continue };
        let class = cdr_sql::class(&of.connection, "connection", section, realtime, findings);
        let Some(connection) = class else { continue };
        tables.push(CdrSql {
            name: format!("cel_odbc/{}", section.name),
            connection,
            table: cdr_sql::with_schema(&of.schema, &of.table),
            utc: of.usegmtime,
            user_defined: of.show_user_defined,
            ..lines
        });
    }
    if let Some(file) = files.pgsql.as_ref().filter(|file| cdr_sql::describes(file, findings)) {
        let of: CelPgsql = read_settings(file, "global", findings);
        let server = Server {
            host: of.hostname,
            port: of.port,
            socket: String::new(),
            database: of.dbname,
            user: of.user,
            password: of.password,
        };
        let place = of.origin.place.clone();
        let link = Link::Pgsql(server);
        let connection = cdr_sql::own_database("cel_pgsql", Driver::Pgsql, link, 1, &place, realtime);
        let table = cdr_sql::with_schema(&of.schema, &of.table);
        tables.push(CdrSql {
            utc: of.usegmtime,
            user_defined: of.show_user_defined,
            ..cdr_sql::plain("cel_pgsql", "cel_pgsql", connection, table)
        });
    }
    tables
}

/// Reads `cel_custom.conf`.
pub fn read_custom(file: &File, findings: &mut Findings) -> CdrCustom {
    CdrCustom::lines(file, "cel-custom", "${CSV_QUOTE(${eventtype})},${eventtime}", findings)
}

/// Reads `cel_sqlite3_custom.conf`; `None` when it describes no table.
pub fn read_table(file: &File, findings: &mut Findings) -> Option<CdrTable> {
    let section = CdrTable::master(file, findings)?;
    let of: CelMaster = read_object(section, findings, &mut |_, _, _| false)?;
    CdrTable::of(&section.place, of.table, (&of.columns, &of.values), of.busy_timeout, findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Cel, Vec<String>) {
        let mut findings = Findings::new();
        let source = conf::Memory::new().with("cel.conf", text);
        let file = conf::load(&source, "cel.conf", conf::Options::default(), &mut findings).unwrap();
        let cel = Cel::read(&file, &mut findings);
        (cel, findings.iter().map(|finding| finding.message.clone()).collect())
    }

    #[test]
    fn what_is_kept_is_what_the_file_names() {
        for (name, lines, kept, told) in [
            ("nothing is said", "", None, 0),
            ("switched off", "enable=no\nevents=ALL", None, 0),
            ("no events", "enable=yes\napps=dial", None, 1),
            ("two", "enable=yes\nevents=CHAN_START,chan_end", Some(2), 0),
            ("all", "enable=yes\nevents=ALL\napps=dial,park", Some(21), 0),
            ("one has a slip", "enable=yes\nevents=CHAN_START,HANGUPS", Some(1), 1),
            ("applications without their events", "enable=yes\nevents=ANSWER\napps=dial", Some(1), 1),
        ] {
            let (cel, findings) = read(&format!("[general]\n{lines}\n"));
            assert_eq!(cel.settings().map(|of| of.kinds().count()), kept, "{name}");
            assert_eq!(findings.len(), told, "{name}: {findings:?}");
        }
        let (cel, _) = read("[general]\nenable=yes\nevents=ALL\napps=Dial, park\n");
        let settings = cel.settings().unwrap();
        assert_eq!(settings.apps().collect::<Vec<_>>(), ["dial", "park"]);
    }

    #[test]
    fn sections_of_back_ends_are_read_or_told_of() {
        let (cel, told) = read("[manager]\nenabled=yes\nshow_user_defined=yes\n[radius]\nradiuscfg=x\n");
        assert!(cel.manager.enabled && cel.manager.show_user_defined);
        assert_eq!(told.len(), 1, "{told:?}");
    }
}
