//! `strowger db`: makes, completes and checks the standard tables of a database, without a server.

use anyhow::{Context, ensure};
use realtime::schema::{self, Done, Found, Standard, TABLES};
use realtime::{Connection, Databases, Settings, Target};

use crate::args::{DbJob, DbVerb};

/// What the database is called where its name is shown.
const NAME: &str = "database";

/// What is known of one table at the end.
struct Line {
    table: &'static str,
    state: &'static str,
    columns: Vec<&'static str>,
    is_wanting: bool,
}

/// Does it, a line a table as it goes; 1 when `check` finds something missing.
pub fn run(job: &DbJob, json: bool) -> anyhow::Result<u8> {
    let target = Target::from_url(&url(&job.url)?)?;
    let tables = wanted(&job.tables)?;
    let settings = Settings { connections: vec![Connection::new(NAME, target.clone())] };
    let mut databases = Databases::open(settings).context("cannot start the thread that asks databases")?;
    let mut lines = Vec::new();
    for table in tables {
        let line = one(&mut databases, &target, job.verb, table).map_err(|failure| {
            anyhow::anyhow!("{}: {failure}\n  remedy: {}", table.name, failure.remedy())
        })?;
        if !json {
            println!("{}", line.text());
        }
        lines.push(line);
    }
    let wanting = lines.iter().filter(|line| line.is_wanting).count();
    if json {
        let rows: Vec<_> = lines.iter().map(Line::json).collect();
        let all = serde_json::json!({ "database": target.to_string(), "tables": rows, "wanting": wanting });
        println!("{all:#}");
    } else if wanting > 0 {
        let remedy = "`strowger db upgrade URL` makes tables and adds columns, and changes nothing else";
        println!("{wanting} of {} tables are not whole: {remedy}", lines.len());
    }
    Ok(u8::from(job.verb == DbVerb::Check && wanting > 0))
}

/// The URL itself, or for `-` the first line that comes in: on a command line everybody sees the password.
fn url(given: &str) -> anyhow::Result<String> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("cannot read the URL from the standard input")?;
    Ok(line.trim().to_owned())
}

/// The tables that are named, or all.
fn wanted(names: &[String]) -> anyhow::Result<Vec<&'static Standard>> {
    if names.is_empty() {
        return Ok(TABLES.iter().collect());
    }
    let find = |name: &String| {
        let all = || TABLES.iter().map(|table| table.name).collect::<Vec<_>>().join(", ");
        schema::standard(name).with_context(|| format!("'{name}' is no standard table; there are {}", all()))
    };
    let found: Vec<_> = names.iter().map(find).collect::<Result<_, _>>()?;
    ensure!(!found.is_empty(), "no table is named");
    Ok(found)
}

fn one(
    databases: &mut Databases,
    target: &Target,
    verb: DbVerb,
    table: &'static Standard,
) -> Result<Line, realtime::Failure> {
    let line = |state, columns, is_wanting| Line { table: table.name, state, columns, is_wanting };
    if verb == DbVerb::Check {
        return Ok(match schema::check(databases, NAME, table)? {
            Found::Missing => line("missing", Vec::new(), true),
            Found::Whole => line("whole", Vec::new(), false),
            Found::Lacks(columns) => line("lacks", columns, true),
        });
    }
    Ok(match schema::make(databases, (NAME, target), table, verb == DbVerb::Upgrade)? {
        Done::Created => line("created", Vec::new(), false),
        Done::Added(columns) => line("added", columns, false),
        Done::Nothing if verb == DbVerb::Upgrade => line("whole", Vec::new(), false),
        Done::Nothing => match schema::check(databases, NAME, table)? {
            Found::Lacks(columns) => line("lacks", columns, true),
            Found::Whole | Found::Missing => line("whole", Vec::new(), false),
        },
    })
}

impl Line {
    fn text(&self) -> String {
        let Self { table, state, columns, .. } = self;
        match columns.len() {
            0 => format!("{table}: {state}"),
            count => format!("{table}: {state} {count} columns: {}", columns.join(", ")),
        }
    }
    fn json(&self) -> serde_json::Value {
        serde_json::json!({ "table": self.table, "state": self.state, "columns": self.columns })
    }
}
