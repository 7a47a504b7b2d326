//! `strowger db`: makes, completes and checks the standard tables of a database, without a server.

use anyhow::{Context, ensure};
use realtime::schema::{self, Done, Doubles, Found, Parts, Standard, TABLES};
use realtime::{Connection, Databases, Settings, Target};

use crate::args::{DbJob, DbVerb};

/// What the database is called where its name is shown.
const NAME: &str = "database";

/// What is known of one table at the end.
struct Line {
    table: &'static str,
    state: &'static str,
    /// What it lacks, or got.
    parts: Parts,
    /// What rows stand in the way of.
    doubles: Vec<Doubles>,
    is_wanting: bool,
}

/// Does it, a line a table as it goes; 1 when `check` finds something missing, or `upgrade` cannot add it.
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
        let remedy = match job.verb {
            DbVerb::Upgrade => "the remedy stands above",
            DbVerb::Check | DbVerb::Create => {
                "`strowger db upgrade URL` makes tables, adds columns and unique indexes, and changes nothing else"
            }
        };
        println!("{wanting} of {} tables are not whole: {remedy}", lines.len());
    }
    Ok(u8::from(job.verb != DbVerb::Create && wanting > 0))
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
    let whole = |state| Line {
        table: table.name,
        state,
        parts: Parts::default(),
        doubles: Vec::new(),
        is_wanting: false,
    };
    let lacks = |parts| Line { parts, is_wanting: true, ..whole("lacks") };
    let place = (NAME, target);
    if verb == DbVerb::Check {
        return Ok(match schema::check(databases, place, table)? {
            Found::Missing => Line { is_wanting: true, ..whole("missing") },
            Found::Whole => whole("whole"),
            Found::Lacks(parts) => lacks(parts),
        });
    }
    Ok(match schema::make(databases, place, table, verb == DbVerb::Upgrade)? {
        Done::Created => whole("created"),
        Done::Added(parts, doubles) => {
            let state = if parts.is_empty() { "lacks" } else { "added" };
            Line { parts, is_wanting: !doubles.is_empty(), doubles, ..whole(state) }
        }
        Done::Nothing if verb == DbVerb::Upgrade => whole("whole"),
        Done::Nothing => match schema::check(databases, place, table)? {
            Found::Lacks(parts) => lacks(parts),
            Found::Whole | Found::Missing => whole("whole"),
        },
    })
}

impl Line {
    fn text(&self) -> String {
        let Self { table, state, parts, .. } = self;
        let columns = (!parts.columns.is_empty())
            .then(|| format!("{} columns: {}", parts.columns.len(), parts.columns.join(", ")));
        let all = columns.into_iter().chain(parts.unique.iter().map(|columns| index(columns)));
        let all = all.collect::<Vec<_>>().join("; ");
        let first = match (all.is_empty(), self.doubles.is_empty()) {
            (false, _) => format!("{table}: {state} {all}"),
            (true, true) => format!("{table}: {state}"),
            (true, false) => String::new(),
        };
        let doubles = self.doubles.iter().map(|doubles| self.in_the_way(doubles));
        let lines = Some(first).filter(|first| !first.is_empty()).into_iter().chain(doubles);
        lines.collect::<Vec<_>>().join("\n")
    }
    /// Rows that have a name in common are of no use to anybody: which of them is found is chance.
    fn in_the_way(&self, doubles: &Doubles) -> String {
        let Self { table, .. } = self;
        let (columns, wanted) = (doubles.columns.join(", "), index(doubles.columns));
        let examples: Vec<String> =
            doubles.examples.iter().map(|value| format!("'{}'", value.escape_default())).collect();
        let (examples, more) = (examples.join(", "), if doubles.is_more { " and others" } else { "" });
        format!(
            "{table}: lacks {wanted}, which is not added: several rows have {examples}{more}\n  remedy: leave one row of \
             each ({columns}), since it is chance which of them is found; then `strowger db upgrade URL {table}`"
        )
    }
    fn json(&self) -> serde_json::Value {
        let doubles = self.doubles.iter().map(|doubles| {
            serde_json::json!({
                "columns": doubles.columns, "examples": doubles.examples, "more": doubles.is_more,
            })
        });
        serde_json::json!({
            "table": self.table, "state": self.state, "columns": self.parts.columns, "unique": self.parts.unique,
            "doubles": doubles.collect::<Vec<_>>(),
        })
    }
}

fn index(columns: &[&str]) -> String {
    format!("a unique index over {}", columns.join(", "))
}
