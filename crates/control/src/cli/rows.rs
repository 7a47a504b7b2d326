//! Rows of databases, read and written from the console: families of extconfig.conf and functions of func_odbc.conf.

use std::fmt::Write as _;
use std::time::Duration;

use apps::Call;
use base::{ChannelId, Rows, RowsAsk, RowsWant};
use call::{Chan, LinkNews, LinkWant};
use serde_json::{Map, Value, json};

use super::text::clean;
use super::{Ask, Cli, Finished, Row, Said, show, verb};

/// How long a database may take.
const WITHIN: Duration = Duration::from_secs(10);
/// How much longer its answer is waited for.
const GRACE: Duration = Duration::from_secs(2);
/// Rows that are shown: more than anybody reads.
const ROWS_MAX: usize = 10_000;
/// What parts conditions and new values of `realtime update2`.
const DIVIDER: &str = "NULL";
/// What asks for the statement to be executed.
const EXEC: &str = "exec";

pub(super) const ROWS: &[Row] = &[
    show(
        "realtime load <row-family> <column> <value>",
        "Shows the rows of a family of extconfig.conf that have a value in a column.",
        "rows",
        Cli::realtime_load,
    )
    .detail("The column may carry an operator, in quotes: realtime load iaxpeers \"name LIKE\" site-%. The database is asked, not a cache."),
    verb(
        "realtime update <row-family> <column> <value> <new-column> <new-value>",
        "Sets a column of the rows that have a value in another.",
        |cli, ask| {
            let pair = |column, value| (ask.need(column).to_owned(), ask.need(value).to_owned());
            let (key, set) = (pair("column", "value"), pair("new-column", "new-value"));
            cli.change_rows(ask, RowsAsk::Change { family: family(ask), keys: vec![key], sets: vec![set] }, "Updated")
        },
    ),
    verb(
        "realtime update2 <row-family> <columns-and-values...>",
        "Sets columns of the rows that have values in others.",
        Cli::realtime_update2,
    )
    .detail(
        "Columns and values of the rows that are meant, the word NULL, columns and new values: realtime update2 queue_members \
         queue_name sales interface PJSIP/100 NULL paused 1",
    ),
    verb("realtime store <row-family> <columns-and-values...>", "Makes a row.", Cli::realtime_store),
    verb(
        "realtime destroy <row-family> <column> <value>",
        "Removes the rows that have a value in a column.",
        |cli, ask| {
            let keys = vec![(ask.need("column").to_owned(), ask.need("value").to_owned())];
            cli.change_rows(ask, RowsAsk::Remove { family: family(ask), keys }, "Removed")
        },
    ),
    verb(
        "odbc read <odbc-function> [<arguments> [exec]]",
        "Shows the statement that a function of func_odbc.conf reads by, or executes it.",
        Cli::odbc_read,
    )
    .detail("Arguments are one word, with commas between them; in quotes when there are blanks in it."),
    verb(
        "odbc write <odbc-function> <arguments> <values> [exec]",
        "Shows the statement that a function of func_odbc.conf writes by, or executes it.",
        Cli::odbc_write,
    ),
];

fn family(ask: &Ask<'_>) -> String {
    ask.need("row-family").to_owned()
}

/// Columns and values in turn; `None`: there are none, or a value is missing.
fn pairs(words: &[String]) -> Option<Vec<(String, String)>> {
    let (pairs, rest) = words.as_chunks::<2>();
    (rest.is_empty() && !pairs.is_empty())
        .then(|| pairs.iter().map(|[column, value]| (column.clone(), value.clone())).collect())
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Names and values that are there, a pair for each line, rows with an empty line between them.
fn listed(rows: &Rows) -> String {
    let mut out = format!(
        "{:>30}  {:<30}\n{:>30}  {:<30}\n",
        "Column Name", "Column Value", "--------------------", "--------------------"
    );
    for (at, row) in rows.rows.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        for (column, value) in
            rows.columns.iter().zip(row).filter_map(|(column, value)| Some((column, value.as_deref()?)))
        {
            let _ = writeln!(out, "{:>30}  {:<30}", clean(column), clean(value));
        }
    }
    out
}

fn data(rows: &Rows) -> Value {
    let row = |row: &Vec<Option<String>>| -> Map<String, Value> {
        rows.columns.iter().cloned().zip(row.iter().map(|value| json!(value))).collect()
    };
    json!({ "rows": rows.rows.iter().map(row).collect::<Vec<_>>() })
}

impl Cli {
    /// Asks a database, and answers the client when it has; `tell` says with which text and exit status.
    fn ask_rows(
        &self,
        ask: &Ask<'_>,
        want: RowsWant,
        tell: impl FnOnce(Rows) -> (String, u8) + 'static,
    ) -> Said {
        if !ask.may_wait {
            return Said::failed("A database is asked; ask on the console.\n");
        }
        let opened = self.site.shard.core.borrow_mut().services.links.open(LinkWant::Rows(Box::new(want)));
        let link = match opened {
            Ok(link) => link,
            Err(why) => return Said::failed(format!("{}\n", clean(&why))),
        };
        // Of no channel: only the clock and the conversation are used.
        let chan = Chan::new(self.site.shard.clone(), ChannelId::new(u32::MAX, u32::MAX));
        let (finished, session) = (self.finished.clone(), ask.session);
        let spawned = self.site.shard.spawn(None, async move {
            let news = chan.link_news(link, Some(chan.now() + WITHIN + GRACE)).await;
            chan.core(|core| core.close_link(link));
            let (text, status) = match news {
                Some(LinkNews::Rows(rows)) => tell(rows),
                Some(LinkNews::Failed { why, .. }) => (format!("{}\n", clean(&why)), 1),
                Some(_) | None => ("The database did not answer in time.\n".to_owned(), 1),
            };
            finished.borrow_mut().push(Finished { session, text, status });
        });
        if spawned { Said::Later } else { Said::failed("There are too many stories.\n") }
    }
    fn realtime_load(&self, ask: &mut Ask<'_>) -> Said {
        let filters = vec![(ask.need("column").to_owned(), ask.need("value").to_owned())];
        let find = RowsAsk::Find { family: family(ask), filters };
        let json = ask.json;
        let want = RowsWant { ask: find, rows_max: ROWS_MAX, within: WITHIN, serves_last: false };
        self.ask_rows(ask, want, move |rows| match (json, rows.rows.is_empty()) {
            (true, _) => (format!("{}\n", data(&rows)), 0),
            (false, true) => ("No rows found matching search criteria.\n".to_owned(), 0),
            (false, false) => (listed(&rows), 0),
        })
    }
    fn change_rows(&self, ask: &Ask<'_>, change: RowsAsk, done: &'static str) -> Said {
        let want = RowsWant { ask: change, rows_max: 1, within: WITHIN, serves_last: false };
        self.ask_rows(ask, want, move |rows| {
            (format!("{done} {} RealTime record{}.\n", rows.changed, plural(rows.changed)), 0)
        })
    }
    fn realtime_update2(&self, ask: &mut Ask<'_>) -> Said {
        let words = ask.words_after(3);
        let divided = words
            .iter()
            .position(|word| word == DIVIDER)
            .and_then(|at| Some((pairs(words.get(..at)?)?, pairs(words.get(at + 1..)?)?)));
        let Some((keys, sets)) = divided else { return Said::Usage };
        self.change_rows(ask, RowsAsk::Change { family: family(ask), keys, sets }, "Updated")
    }
    fn realtime_store(&self, ask: &mut Ask<'_>) -> Said {
        let Some(sets) = pairs(ask.words_after(3)) else { return Said::Usage };
        self.change_rows(ask, RowsAsk::Add { family: family(ask), sets }, "Stored")
    }
    /// What a function of func_odbc.conf sends; it may be named without its prefix.
    fn statement(&self, name: &str, args: &str, value: Option<&str>) -> Result<RowsWant, String> {
        let call = Call::new(Chan::new(self.site.shard.clone(), ChannelId::new(u32::MAX, u32::MAX)));
        let named = |name: &str| apps::statement(&call, name, args, value);
        named(name)
            .or_else(|| named(&format!("ODBC_{name}")))
            .unwrap_or_else(|| Err(format!("There is no function '{}' of func_odbc.conf.\n", clean(name))))
    }
    fn odbc_read(&self, ask: &mut Ask<'_>) -> Said {
        let want =
            match self.statement(ask.need("odbc-function"), ask.arg("arguments").unwrap_or_default(), None) {
                Ok(want) => want,
                Err(why) => return Said::failed(why),
            };
        if ask.choice() != Some(EXEC) {
            return Said::done(spelled(&want));
        }
        self.ask_rows(ask, want, |rows| {
            let mut out = String::new();
            for row in &rows.rows {
                for (column, value) in rows.columns.iter().zip(row) {
                    let value = value.as_deref().map_or_else(|| "(nil)".into(), clean);
                    let _ = writeln!(out, "{:<20.20}  {value}", clean(column));
                }
                out.push('\n');
            }
            let count = rows.rows.len();
            let _ = writeln!(out, "Returned {count} row{}.", plural(count as u64));
            (out, 0)
        })
    }
    fn odbc_write(&self, ask: &mut Ask<'_>) -> Said {
        let (args, values) = (ask.need("arguments"), ask.need("values"));
        let want = match self.statement(ask.need("odbc-function"), args, Some(values)) {
            Ok(want) => want,
            Err(why) => return Said::failed(why),
        };
        if ask.choice() != Some(EXEC) {
            return Said::done(spelled(&want));
        }
        self.ask_rows(ask, want, |rows| {
            (format!("Affected {} row{}.\n", rows.changed, plural(rows.changed)), 0)
        })
    }
    /// Answers that came since it was last asked, for those who were told to wait.
    pub fn finished(&self) -> Vec<Finished> {
        self.finished.take()
    }
}

/// The text of a statement.
fn spelled(want: &RowsWant) -> String {
    match &want.ask {
        RowsAsk::Statement { sql, .. } => format!("{}\n", clean(sql)),
        RowsAsk::Find { .. }
        | RowsAsk::Change { .. }
        | RowsAsk::Add { .. }
        | RowsAsk::Remove { .. }
        | RowsAsk::End { .. } => String::new(),
    }
}
