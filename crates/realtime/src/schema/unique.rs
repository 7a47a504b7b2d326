//! What no two rows of a table have in common: whether a database keeps them from it, and which rows do.

use std::collections::BTreeMap;

use super::{DOUBLES_MAX, Doubles, Standard};
use crate::query::{Answer, Query, ResultSet};
use crate::sql::Dialect;
use crate::{Databases, Failure};

/// Most columns of unique indexes that are looked at, those of all indexes counted.
const INDEXED_MAX: u32 = 1_000;

/// Unique indexes that a table should have and has not.
pub(super) fn lacking(
    databases: &mut Databases,
    connection: &str,
    dialect: Dialect,
    table: &Standard,
) -> Result<Vec<&'static [&'static str]>, Failure> {
    if table.unique.is_empty() {
        return Ok(Vec::new());
    }
    let Some(sql) = dialect.unique_indexes(table.name) else { return Ok(Vec::new()) };
    let found = indexes(&set(databases.ask(connection, Query::Raw { sql, limit: Some(INDEXED_MAX) })?));
    let has = |wanted: &&'static [&'static str]| {
        let mut wanted = wanted.to_vec();
        wanted.sort_unstable();
        found.iter().any(|columns| columns.iter().map(String::as_str).eq(wanted.iter().copied()))
    };
    Ok(table.unique.iter().copied().filter(|wanted| !has(wanted)).collect())
}

/// What several rows have in common in these columns; `None` when nothing stands in the way of an index.
pub(super) fn doubles(
    databases: &mut Databases,
    connection: &str,
    dialect: Dialect,
    table: &Standard,
    columns: &'static [&'static str],
) -> Result<Option<Doubles>, Failure> {
    let sql = dialect.doubles(table.name, columns);
    let limit = u32::try_from(DOUBLES_MAX + 1).ok();
    let found = set(databases.ask(connection, Query::Raw { sql, limit })?);
    let mut examples: Vec<String> = found
        .rows
        .into_iter()
        .map(|row| row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>().join(","))
        .collect();
    let is_more = examples.len() > DOUBLES_MAX;
    examples.truncate(DOUBLES_MAX);
    Ok((!examples.is_empty()).then_some(Doubles { columns, examples, is_more }))
}

fn set(answer: Answer) -> ResultSet {
    match answer {
        Answer::Set(set) => set,
        _ => ResultSet::default(),
    }
}

/// Columns of each index, sorted and in small letters, from rows of an index and one of its columns. An index over an
/// expression keeps apart what is alike in its columns, or the other way round: it is none of ours.
fn indexes(found: &ResultSet) -> Vec<Vec<String>> {
    let mut of: BTreeMap<&str, Option<Vec<String>>> = BTreeMap::new();
    for row in &found.rows {
        let [Some(index), column] = &row[..] else { continue };
        let columns = of.entry(index).or_insert_with(|| Some(Vec::new()));
        match column {
            Some(column) => columns.iter_mut().for_each(|all| all.push(column.to_ascii_lowercase())),
            None => *columns = None,
        }
    }
    let mut all: Vec<Vec<String>> = of.into_values().flatten().collect();
    all.iter_mut().for_each(|columns| columns.sort_unstable());
    all
}

impl Dialect {
    /// The statement that lists unique indexes of a table over all of its rows, a row for each of their columns. The name
    /// is one of ours.
    fn unique_indexes(self, table: &str) -> Option<String> {
        match self {
            Self::Mysql => Some(format!(
                "SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() \
                 AND TABLE_NAME = '{table}' AND NON_UNIQUE = 0"
            )),
            Self::Postgres(_) => Some(format!(
                "SELECT CAST(i.indexrelid AS TEXT), CAST(a.attname AS TEXT) FROM pg_index i \
                 CROSS JOIN LATERAL unnest(i.indkey) AS k(attnum) \
                 LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum \
                 WHERE i.indrelid = to_regclass('{}') AND i.indisunique AND i.indisvalid AND i.indpred IS NULL",
                self.quoted(table)
            )),
            Self::Sqlite => Some(format!(
                "SELECT l.name, i.name FROM pragma_index_list('{table}') AS l, pragma_index_info(l.name) AS i \
                 WHERE l.\"unique\" = 1 AND l.partial = 0"
            )),
            Self::Other { .. } => None,
        }
    }
    /// The statement that lists what several rows have in common in these columns; nothing is not in common, in any of the
    /// databases.
    fn doubles(self, table: &str, columns: &[&str]) -> String {
        let names = self.names(columns);
        let there = columns.iter().map(|name| format!("{} IS NOT NULL", self.quoted(name)));
        let there = there.collect::<Vec<_>>().join(" AND ");
        format!(
            "SELECT {names} FROM {} WHERE {there} GROUP BY {names} HAVING COUNT(*) > 1 ORDER BY {names}",
            self.quoted(table)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_its_columns_and_one_over_an_expression_is_none() {
        let row = |index: &str, column: Option<&str>| vec![Some(index.to_owned()), column.map(str::to_owned)];
        for (name, rows, expected) in [
            ("none", vec![], vec![]),
            ("one", vec![row("a", Some("Name"))], vec![vec!["name"]]),
            (
                "two, of which one has two columns",
                vec![row("a", Some("port")), row("b", Some("id")), row("a", Some("host"))],
                vec![vec!["host", "port"], vec!["id"]],
            ),
            ("an expression", vec![row("a", None), row("a", Some("name"))], vec![]),
            ("an expression behind a column", vec![row("a", Some("name")), row("a", None)], vec![]),
        ] {
            let found = ResultSet { rows, ..ResultSet::default() };
            assert_eq!(indexes(&found), expected, "{name}");
        }
    }
}
