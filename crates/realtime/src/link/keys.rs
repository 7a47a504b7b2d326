//! Rows that many want at once, each by its key, read together.

use std::collections::BTreeMap;

use super::{Link, Tables, Trouble, row};
use crate::query::{Filter, Load, Row};
use crate::sql::Table;

/// Rows that are looked up by one column, one for each value.
#[derive(Debug)]
pub(crate) struct Keys<'q> {
    pub table: &'q str,
    pub column: &'q str,
    pub values: Vec<&'q str>,
}

impl Keys<'_> {
    fn one(&self, value: &str) -> Load {
        let filters = vec![Filter::is(self.column, value)];
        Load { table: self.table.to_owned(), filters, limit: Some(1), ..Load::default() }
    }
}

impl Link {
    /// For each key the row that has it, as a [`Load`] of one row for each would find it, by as few statements as can be. Their
    /// numbers of keys are powers of two, so that few are prepared.
    pub(crate) async fn load_each(
        &mut self,
        tables: &Tables,
        keys: &Keys<'_>,
    ) -> Result<Vec<Option<Row>>, Trouble> {
        let table = self.table(tables, keys.table).await?;
        let key = table.column(keys.column).filter(|key| key.is_text && self.dialect().is_known());
        let key = key.and_then(|key| table.columns.iter().position(|column| column == key));
        let mut found = Vec::with_capacity(keys.values.len());
        let mut rest = keys.values.as_slice();
        while let Some(log) = rest.len().checked_ilog2() {
            let (now, later) = rest.split_at(1 << log);
            rest = later;
            match key.filter(|_| now.len() > 1) {
                Some(key) => found.extend(self.load_list(tables, &table, key, keys, now).await?),
                None => {
                    for value in now {
                        found.push(self.load(tables, &keys.one(value)).await?.into_iter().next());
                    }
                }
            }
        }
        Ok(found)
    }
    /// The same by one statement, where `key` is the place of the column. A database may hold keys for equal that are spelled
    /// otherwise, with letters of the other case or spaces at the end: once it has given rows that nobody asked for as they
    /// are spelled, whoever has none yet asks for it alone.
    async fn load_list(
        &mut self,
        tables: &Tables,
        table: &Table,
        key: usize,
        keys: &Keys<'_>,
        values: &[&str],
    ) -> Result<Vec<Option<Row>>, Trouble> {
        // Keys are unique in the tables of the field. Where one is not, its rows must not fill the memory.
        let most = values.len() * 2;
        let statement =
            self.dialect().load_any(table, keys.column, values, most).map_err(Trouble::Unaskable)?;
        let rows = self.ask(&statement).await?.rows;
        let mut is_clear = rows.len() < most;
        let mut by_key: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
        for row in rows {
            match row.get(key).cloned().flatten() {
                Some(key) if values.contains(&key.as_str()) => _ = by_key.entry(key).or_insert(row),
                _ => is_clear = false,
            }
        }
        let mut found = Vec::with_capacity(values.len());
        for value in values {
            found.push(match by_key.get(*value) {
                Some(values) => Some(row(table, values.clone())),
                None if is_clear => None,
                None => self.load(tables, &keys.one(value)).await?.into_iter().next(),
            });
        }
        Ok(found)
    }
}
