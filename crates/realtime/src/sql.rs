//! Statements: names quoted and known to the table, values only ever bound.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::query::{Filter, Load, Op, Value};

/// Longest name of a table or column, bytes: databases have 63 or 64, and a schema may stand before it.
const NAME_BYTES_MAX: usize = 192;
/// Keys or columns of one statement; the widest table of the field has some 200.
const COLUMNS_MAX: usize = 1_000;

/// How a database spells what all of them can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Mysql,
    Postgres(Marks),
    Sqlite,
    /// Whatever ODBC leads to: what standards say, and text that the driver turns into other types and back.
    Other {
        /// What stands around names; `None`: nothing.
        quote: Option<char>,
    },
}

/// How PostgreSQL is told where a value goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marks {
    /// `$1`, by itself.
    Numbered,
    /// `?`, through ODBC.
    Question,
}

/// A statement, and what is bound in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Statement {
    pub sql: String,
    pub values: Vec<Option<String>>,
    /// Most rows that are wanted, where the statement's text cannot say it.
    pub limit: Option<u32>,
}

/// What a database says of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    /// Its name, quoted.
    pub quoted: String,
    pub columns: Vec<Column>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub name: Arc<str>,
    /// Its type, as the database spells it.
    pub kind: String,
    /// Whether it holds any text: is no number, time or truth.
    pub is_text: bool,
    /// Most characters that it holds, where the database tells.
    pub length: Option<usize>,
}

/// Types of MySQL that hold any text.
const MYSQL_TEXTS: &[&str] = &[
    "char",
    "varchar",
    "text",
    "tinytext",
    "mediumtext",
    "longtext",
    "blob",
    "tinyblob",
    "mediumblob",
    "longblob",
    "binary",
    "varbinary",
    "json",
];
/// Types of PostgreSQL that hold any text, and that text is assigned to without a cast.
const POSTGRES_TEXTS: &[&str] = &["character varying", "character", "text", "citext", "name", "\"char\""];

/// Numbers of types of ODBC that hold any text: SQL_CHAR, SQL_VARCHAR, SQL_LONGVARCHAR, the same in wide letters and in bytes.
const ODBC_TEXTS: &[i16] = &[1, 12, -1, -8, -9, -10, -2, -3, -4];

/// Why no statement can be made.
pub(crate) type Flaw = String;

impl Table {
    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        let exact = self.columns.iter().find(|column| *column.name == *name);
        exact.or_else(|| self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)))
    }
    fn needed(&self, name: &str) -> Result<&Column, Flaw> {
        self.column(name).ok_or_else(|| format!("table {} has no column '{}'", self.quoted, shown(name)))
    }
}

/// A name as it may be shown: what it is made of does not get into logs.
fn shown(name: &str) -> String {
    name.chars().filter(|symbol| !symbol.is_control()).take(NAME_BYTES_MAX).collect()
}

impl Dialect {
    /// Whether what it understands is known: lists of values, a limit as [`Self::load_any`] spells it, and values of a `CASE`
    /// whose type it finds out by itself.
    pub(crate) const fn is_known(self) -> bool {
        !matches!(self, Self::Other { .. })
    }
    const fn quote(self) -> Option<char> {
        match self {
            Self::Mysql => Some('`'),
            Self::Postgres(_) | Self::Sqlite => Some('"'),
            Self::Other { quote } => quote,
        }
    }
    pub(crate) fn quoted(self, name: &str) -> String {
        let Some(quote) = self.quote() else {
            return name
                .chars()
                .filter(|symbol| symbol.is_alphanumeric() || "_$#".contains(*symbol))
                .collect();
        };
        let mut out = String::with_capacity(name.len() + 2);
        out.push(quote);
        for symbol in name.chars() {
            out.push(symbol);
            if symbol == quote {
                out.push(quote);
            }
        }
        out.push(quote);
        out
    }
    /// Schema, if there is one, and name of a table.
    pub(crate) fn split(table: &str) -> Result<(Option<&str>, &str), Flaw> {
        let (schema, name) = match table.split_once('.') {
            Some((schema, name)) => (Some(schema), name),
            None => (None, table),
        };
        let bad = |part: &str| part.is_empty() || part.chars().any(char::is_control);
        if table.len() > NAME_BYTES_MAX || bad(name) || schema.is_some_and(bad) {
            return Err(format!("'{}' cannot be the name of a table", shown(table)));
        }
        Ok((schema, name))
    }
    /// A table's name as statements spell it.
    pub(crate) fn table_name(self, table: &str) -> Result<String, Flaw> {
        let (schema, name) = Self::split(table)?;
        Ok(match schema {
            Some(schema) => format!("{}.{}", self.quoted(schema), self.quoted(name)),
            None => self.quoted(name),
        })
    }
    /// Asks what columns a table has: rows of name, type, and, where the database tells, the table's name as it spells it
    /// and the most characters that the column holds.
    pub(crate) fn columns_of(self, table: &str) -> Result<Statement, Flaw> {
        let (schema, name) = Self::split(table)?;
        let some = |text: &str| Some(text.to_owned());
        Ok(match self {
            Self::Mysql => Statement {
                sql: "SELECT CAST(COLUMN_NAME AS CHAR), CAST(DATA_TYPE AS CHAR), NULL, \
                      CAST(CHARACTER_MAXIMUM_LENGTH AS CHAR) FROM information_schema.COLUMNS \
                      WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION"
                    .to_owned(),
                values: vec![schema.map(str::to_owned), some(name)],
                limit: None,
            },
            // What is not there as it is spelled may be there in small letters, which names become without quotes.
            Self::Postgres(marks) => {
                let name = Some(self.table_name(table)?);
                let (first, second, values) = match marks {
                    Marks::Numbered => ("$1", "$1", vec![name]),
                    Marks::Question => ("CAST(? AS text)", "CAST(? AS text)", vec![name.clone(), name]),
                };
                let sql = format!(
                    "SELECT a.attname::text, pg_catalog.format_type(a.atttypid, NULL)::text, \
                     a.attrelid::regclass::text, CASE WHEN a.atttypid IN (1042, 1043) AND a.atttypmod > 4 \
                     THEN (a.atttypmod - 4)::text END FROM pg_catalog.pg_attribute a \
                     WHERE a.attrelid = COALESCE(to_regclass({first}), to_regclass(lower({second}))) \
                     AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
                );
                Statement { sql, values, limit: None }
            }
            Self::Sqlite => Statement {
                sql: "SELECT name, type, NULL, NULL FROM pragma_table_info(?, ?)".to_owned(),
                values: vec![some(name), some(schema.unwrap_or("main"))],
                limit: None,
            },
            Self::Other { .. } => return Err("only its driver of ODBC can name the columns of a table".to_owned()),
        })
    }

    /// The table, from the rows that `columns_of` gave; `None` when there are none.
    pub(crate) fn table(self, name: &str, rows: Vec<Vec<Option<String>>>) -> Result<Option<Table>, Flaw> {
        let mut quoted = None;
        let mut columns = Vec::new();
        for row in rows {
            let field = |at: usize| row.get(at).cloned().flatten();
            let Some(name) = field(0) else { continue };
            let kind = field(1).unwrap_or_default();
            quoted = quoted.or_else(|| field(2));
            let length = field(3).and_then(|length| length.parse().ok());
            columns.push(Column { name: name.as_str().into(), is_text: self.is_text(&kind), kind, length });
        }
        let quoted = quoted.map_or_else(|| self.table_name(name), Ok)?;
        Ok((!columns.is_empty()).then_some(Table { quoted, columns }))
    }
    /// The table, from what SQLColumns gave: rows of name, type, and number of the type.
    pub(crate) fn told_table(
        self,
        name: &str,
        rows: Vec<Vec<Option<String>>>,
    ) -> Result<Option<Table>, Flaw> {
        let mut columns = Vec::new();
        for row in rows {
            let [Some(name), kind, Some(number)] = row.as_slice() else { continue };
            let is_text = number.parse().is_ok_and(|number: i16| ODBC_TEXTS.contains(&number));
            columns.push(Column {
                name: name.as_str().into(),
                kind: kind.clone().unwrap_or_default(),
                is_text,
                length: None,
            });
        }
        Ok((!columns.is_empty()).then_some(Table { quoted: self.table_name(name)?, columns }))
    }
    fn is_text(self, kind: &str) -> bool {
        let has = |words: &[&str]| words.iter().any(|word| kind.eq_ignore_ascii_case(word));
        match self {
            Self::Mysql => has(MYSQL_TEXTS),
            Self::Postgres(_) => has(POSTGRES_TEXTS),
            // A type of SQLite is any words; these give a column its affinity to numbers.
            Self::Sqlite => {
                let kind = kind.to_ascii_uppercase();
                !["INT", "REAL", "FLOA", "DOUB", "NUM", "DEC", "BOOL"].iter().any(|word| kind.contains(word))
            }
            Self::Other { .. } => true,
        }
    }

    /// Rows of all columns, in the table's order.
    pub(crate) fn load(self, table: &Table, load: &Load) -> Result<Statement, Flaw> {
        let mut out = self.select(table);
        self.conditions(table, &load.filters, &mut out)?;
        for (at, order) in load.order.iter().enumerate() {
            let name = self.quoted(&table.needed(&order.column)?.name);
            let (word, way) =
                (if at == 0 { " ORDER BY" } else { "," }, if order.descending { " DESC" } else { "" });
            let _ = write!(out.sql, "{word} {name}{way}");
        }
        match (load.limit, self) {
            // Each spells it its own way.
            (limit, Self::Other { .. }) => out.limit = limit,
            (Some(limit), _) => _ = write!(out.sql, " LIMIT {limit}"),
            (None, _) => {}
        }
        Ok(out)
    }
    /// The rows that have one of these values in a column of text, `most` of them at most.
    pub(crate) fn load_any(
        self,
        table: &Table,
        column: &str,
        values: &[&str],
        most: usize,
    ) -> Result<Statement, Flaw> {
        let column = table.needed(column)?;
        let mut out = self.select(table);
        for (at, value) in values.iter().enumerate() {
            let mark = self.bound(column, Some(plain(value)?), &mut out.values);
            let _ = match at {
                0 => write!(out.sql, " WHERE {} IN ({mark}", self.quoted(&column.name)),
                _ => write!(out.sql, ", {mark}"),
            };
        }
        let _ = write!(out.sql, ") LIMIT {most}");
        Ok(out)
    }
    fn select(self, table: &Table) -> Statement {
        let mut out = Statement { sql: "SELECT ".to_owned(), ..Statement::default() };
        for (at, column) in table.columns.iter().enumerate() {
            out.sql.push_str(if at == 0 { "" } else { ", " });
            let name = self.quoted(&column.name);
            let _ = match self {
                Self::Mysql => write!(out.sql, "CAST({name} AS CHAR)"),
                Self::Postgres(_) | Self::Sqlite => write!(out.sql, "CAST({name} AS TEXT)"),
                Self::Other { .. } => write!(out.sql, "{name}"),
            };
        }
        let _ = write!(out.sql, " FROM {}", table.quoted);
        out
    }
    pub(crate) fn store(self, table: &Table, sets: &[(String, Option<String>)]) -> Result<Statement, Flaw> {
        let mut out = Statement::default();
        let (mut names, mut marks) = (String::new(), String::new());
        for (column, value) in known(table, sets)? {
            if !names.is_empty() {
                names.push_str(", ");
                marks.push_str(", ");
            }
            names.push_str(&self.quoted(&column.name));
            marks.push_str(&self.bound(column, value, &mut out.values));
        }
        if names.is_empty() {
            return Err(format!("table {} has none of the columns that would be written", table.quoted));
        }
        out.sql = format!("INSERT INTO {} ({names}) VALUES ({marks})", table.quoted);
        Ok(out)
    }
    /// As [`Self::store`], of what the columns can hold.
    pub(crate) fn record(self, table: &Table, values: &[Value]) -> Result<Statement, Flaw> {
        let fitted = |value: &Value| {
            let column = table.column(&value.column);
            let text = match (column, &value.number) {
                (Some(column), Some(number)) if !column.is_text => Some(number.clone()),
                _ => value.text.clone(),
            };
            let most = column.and_then(|column| column.length).unwrap_or(usize::MAX);
            let cut = |text: String| match text.char_indices().nth(most) {
                Some((at, _)) => text.get(..at).unwrap_or_default().to_owned(),
                None => text,
            };
            (value.column.clone(), text.map(cut))
        };
        self.store(table, &values.iter().map(fitted).collect::<Vec<_>>())
    }
    /// `None` when the table has none of the columns.
    pub(crate) fn update(
        self,
        table: &Table,
        keys: &[(String, String)],
        sets: &[(String, Option<String>)],
    ) -> Result<Option<Statement>, Flaw> {
        let mut out = Statement { sql: format!("UPDATE {} SET ", table.quoted), ..Statement::default() };
        let sets = known(table, sets)?;
        for (at, (column, value)) in sets.iter().enumerate() {
            out.sql.push_str(if at == 0 { "" } else { ", " });
            let mark = self.bound(column, value.clone(), &mut out.values);
            let _ = write!(out.sql, "{} = {mark}", self.quoted(&column.name));
        }
        self.keys(table, keys, &mut out)?;
        Ok((!sets.is_empty()).then_some(out))
    }
    /// Several rows in one statement, each found by one column; `None` when the table has none of the columns.
    pub(crate) fn rewrite(
        self,
        table: &Table,
        key: &str,
        columns: &[String],
        rows: &[(String, Vec<Option<String>>)],
    ) -> Result<Option<Statement>, Flaw> {
        let key = table.needed(key)?;
        let key_name = self.quoted(&key.name);
        let mut out = Statement { sql: format!("UPDATE {} SET ", table.quoted), ..Statement::default() };
        let mut written: Vec<(usize, &Column)> = Vec::new();
        for (at, name) in columns.iter().enumerate().take(COLUMNS_MAX) {
            let Some(column) = table.column(name) else { continue };
            written.retain(|(_, before)| before.name != column.name);
            written.push((at, column));
        }
        for (nth, (at, column)) in written.iter().enumerate() {
            let name = self.quoted(&column.name);
            let _ = write!(out.sql, "{}{name} = CASE {key_name}", if nth == 0 { "" } else { ", " });
            // The first that fits counts, so the last of two writes of a row stands first.
            for (row, values) in rows.iter().rev() {
                let mark = self.bound(key, Some(plain(row)?), &mut out.values);
                let value = values.get(*at).cloned().flatten().as_deref().map(plain).transpose()?;
                let value = self.bound(column, value, &mut out.values);
                let _ = write!(out.sql, " WHEN {mark} THEN {value}");
            }
            let _ = write!(out.sql, " ELSE {name} END");
        }
        for (nth, (row, _)) in rows.iter().enumerate() {
            let mark = self.bound(key, Some(plain(row)?), &mut out.values);
            let _ = match nth {
                0 => write!(out.sql, " WHERE {key_name} IN ({mark}"),
                _ => write!(out.sql, ", {mark}"),
            };
        }
        out.sql.push(')');
        Ok((!written.is_empty() && !rows.is_empty()).then_some(out))
    }
    /// How many rows have these keys.
    pub(crate) fn count(self, table: &Table, keys: &[(String, String)]) -> Result<Statement, Flaw> {
        let mut out =
            Statement { sql: format!("SELECT COUNT(*) FROM {}", table.quoted), ..Statement::default() };
        self.keys(table, keys, &mut out)?;
        Ok(out)
    }
    pub(crate) fn destroy(self, table: &Table, keys: &[(String, String)]) -> Result<Statement, Flaw> {
        let mut out = Statement { sql: format!("DELETE FROM {}", table.quoted), ..Statement::default() };
        self.keys(table, keys, &mut out)?;
        Ok(out)
    }

    fn keys(self, table: &Table, keys: &[(String, String)], out: &mut Statement) -> Result<(), Flaw> {
        if keys.is_empty() {
            return Err(format!("no key says which rows of {} are meant", table.quoted));
        }
        let filters: Vec<Filter> =
            keys.iter().map(|(column, value)| Filter::is(column.as_str(), value.as_str())).collect();
        self.conditions(table, &filters, out)
    }
    fn conditions(self, table: &Table, filters: &[Filter], out: &mut Statement) -> Result<(), Flaw> {
        if filters.len() > COLUMNS_MAX {
            return Err(format!("more than {COLUMNS_MAX} conditions"));
        }
        for (at, Filter { column, op, value }) in filters.iter().enumerate() {
            let column = table.needed(column)?;
            let (word, name) = (if at == 0 { "WHERE" } else { "AND" }, self.quoted(&column.name));
            let value = plain(value)?;
            match (op, self) {
                (Op::Like | Op::NotLike, _) => {
                    let name = match self {
                        Self::Postgres(_) if !column.is_text => format!("CAST({name} AS TEXT)"),
                        _ => name,
                    };
                    out.values.push(Some(value));
                    let escape = match self {
                        Self::Sqlite | Self::Other { .. } => " ESCAPE '\\'",
                        Self::Mysql | Self::Postgres(_) => "",
                    };
                    let mark = self.mark(out.values.len());
                    let _ = write!(out.sql, " {word} {name} {} {mark}{escape}", op.sql());
                }
                _ => {
                    let mark = self.bound(column, Some(value), &mut out.values);
                    let _ = write!(out.sql, " {word} {name} {} {mark}", op.sql());
                }
            }
        }
        Ok(())
    }
    fn mark(self, number: usize) -> String {
        match self {
            Self::Postgres(Marks::Numbered) => format!("${number}"),
            Self::Mysql | Self::Sqlite | Self::Other { .. } | Self::Postgres(Marks::Question) => {
                "?".to_owned()
            }
        }
    }
    /// The mark of a value that is compared with, or written into, a column.
    fn bound(self, column: &Column, value: Option<String>, values: &mut Vec<Option<String>>) -> String {
        let text = column.is_text;
        // The field writes nothing into numbers and times and means NULL.
        values.push(value.filter(|value| text || !value.is_empty()));
        let mark = self.mark(values.len());
        match self {
            Self::Postgres(Marks::Numbered) if !text => format!("CAST({mark}::text AS {})", column.kind),
            Self::Postgres(Marks::Question) if !text => format!("CAST(CAST(? AS text) AS {})", column.kind),
            _ => mark,
        }
    }
}

/// The columns that the table has, each once, with what is written into them.
fn known<'t>(
    table: &'t Table,
    sets: &[(String, Option<String>)],
) -> Result<Vec<(&'t Column, Option<String>)>, Flaw> {
    let mut known: Vec<(&Column, Option<String>)> = Vec::new();
    for (name, value) in sets.iter().take(COLUMNS_MAX) {
        let Some(column) = table.column(name) else { continue };
        let value = value.as_deref().map(plain).transpose()?;
        match known.iter_mut().find(|(before, _)| before.name == column.name) {
            Some(before) => before.1 = value,
            None => known.push((column, value)),
        }
    }
    Ok(known)
}

/// A value that every database takes as text.
fn plain(value: &str) -> Result<String, Flaw> {
    if value.contains('\0') {
        return Err("a value has a NUL in it, which no column of text holds".to_owned());
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Order;

    fn table(dialect: Dialect) -> Table {
        let text = if matches!(dialect, Dialect::Postgres(_)) { "character varying" } else { "varchar" };
        let column = |name: &str, kind: &str| vec![Some(name.to_owned()), Some(kind.to_owned()), None];
        let rows = vec![column("name", text), column("port", "integer"), column("od`d\"", text)];
        dialect.table("iaxfriends", rows).unwrap().unwrap()
    }

    fn set(name: &str, value: &str) -> (String, Option<String>) {
        (name.to_owned(), Some(value.to_owned()))
    }

    #[test]
    fn each_database_gets_its_own_spelling() {
        let load = Load {
            table: "iaxfriends".into(),
            filters: vec![
                Filter { column: "NAME".into(), op: Op::Like, value: "60%".into() },
                Filter { column: "port".into(), op: Op::Greater, value: "0".into() },
            ],
            order: vec![Order { column: "name".into(), descending: true }],
            limit: Some(1),
        };
        for (dialect, expected) in [
            (
                Dialect::Mysql,
                "SELECT CAST(`name` AS CHAR), CAST(`port` AS CHAR), CAST(`od``d\"` AS CHAR) FROM `iaxfriends` \
                 WHERE `name` LIKE ? AND `port` > ? ORDER BY `name` DESC LIMIT 1",
            ),
            (
                Dialect::Postgres(Marks::Numbered),
                "SELECT CAST(\"name\" AS TEXT), CAST(\"port\" AS TEXT), CAST(\"od`d\"\"\" AS TEXT) FROM \"iaxfriends\" \
                 WHERE \"name\" LIKE $1 AND \"port\" > CAST($2::text AS integer) ORDER BY \"name\" DESC LIMIT 1",
            ),
            (
                Dialect::Postgres(Marks::Question),
                "SELECT CAST(\"name\" AS TEXT), CAST(\"port\" AS TEXT), CAST(\"od`d\"\"\" AS TEXT) FROM \"iaxfriends\" \
                 WHERE \"name\" LIKE ? AND \"port\" > CAST(CAST(? AS text) AS integer) ORDER BY \"name\" DESC LIMIT 1",
            ),
            (
                Dialect::Other { quote: Some('"') },
                "SELECT \"name\", \"port\", \"od`d\"\"\" FROM \"iaxfriends\" \
                 WHERE \"name\" LIKE ? ESCAPE '\\' AND \"port\" > ? ORDER BY \"name\" DESC",
            ),
            (
                Dialect::Other { quote: None },
                "SELECT name, port, odd FROM iaxfriends WHERE name LIKE ? ESCAPE '\\' AND port > ? ORDER BY name DESC",
            ),
            (
                Dialect::Sqlite,
                "SELECT CAST(\"name\" AS TEXT), CAST(\"port\" AS TEXT), CAST(\"od`d\"\"\" AS TEXT) FROM \"iaxfriends\" \
                 WHERE \"name\" LIKE ? ESCAPE '\\' AND \"port\" > ? ORDER BY \"name\" DESC LIMIT 1",
            ),
        ] {
            let made = dialect.load(&table(dialect), &load).unwrap();
            assert_eq!(made.sql, expected, "{dialect:?}");
            assert_eq!(made.values, [Some("60%".to_owned()), Some("0".to_owned())], "{dialect:?}");
        }
    }

    #[test]
    fn hostile_names_and_values_never_become_sql() {
        let hostile = "x' OR '1'='1\"; DROP TABLE a; -- `";
        for dialect in [
            Dialect::Mysql,
            Dialect::Postgres(Marks::Numbered),
            Dialect::Sqlite,
            Dialect::Other { quote: Some('"') },
        ] {
            let table = table(dialect);
            let stored = dialect.store(&table, &[set("name", hostile), set(hostile, "1")]).unwrap();
            assert!(!stored.sql.contains("DROP"), "{dialect:?}: {}", stored.sql);
            assert_eq!(
                stored.values,
                [Some(hostile.to_owned())],
                "{dialect:?}: an unknown column is left out"
            );
            let key = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
            let destroyed = dialect.destroy(&table, &key("name", hostile)).unwrap();
            assert!(!destroyed.sql.contains("DROP"), "{dialect:?}: {}", destroyed.sql);
            for (what, flaw) in [
                ("unknown key", dialect.destroy(&table, &key(hostile, "1")).unwrap_err()),
                ("no key", dialect.destroy(&table, &[]).unwrap_err()),
                ("a NUL", dialect.destroy(&table, &key("name", "a\0b")).unwrap_err()),
                ("nothing to write", dialect.store(&table, &[set("nowhere", "1")]).unwrap_err()),
                ("order", {
                    let order = vec![Order { column: hostile.into(), descending: false }];
                    dialect.load(&table, &Load { order, ..Load::default() }).unwrap_err()
                }),
                ("name of a table", dialect.table_name("a\nb").unwrap_err()),
                ("no name", dialect.table_name("a.").unwrap_err()),
                ("a long name", dialect.table_name(&"a".repeat(200)).unwrap_err()),
            ] {
                assert!(!flaw.is_empty() && !flaw.contains('\n'), "{dialect:?} {what}: {flaw}");
            }
            let quoted = dialect.table_name(hostile).unwrap();
            let inner = &quoted[1..quoted.len() - 1];
            let quote = dialect.quote().unwrap();
            assert!(!inner.replace(&format!("{quote}{quote}"), "").contains(quote), "{dialect:?}: {quoted}");
        }
    }

    #[test]
    fn rows_that_are_rewritten_together_are_told_apart_by_their_key_and_the_later_of_two_counts() {
        let columns = ["port", "nowhere", "name"].map(str::to_owned);
        let row =
            |key: &str, port: &str| (key.to_owned(), vec![Some(port.to_owned()), Some("x".to_owned()), None]);
        let rows = [row("a", "1"), row("b", ""), row("a", "2")];
        for (dialect, expected) in [
            (
                Dialect::Mysql,
                "UPDATE `iaxfriends` SET `port` = CASE `name` WHEN ? THEN ? WHEN ? THEN ? WHEN ? THEN ? ELSE `port` END, \
                 `name` = CASE `name` WHEN ? THEN ? WHEN ? THEN ? WHEN ? THEN ? ELSE `name` END WHERE `name` IN (?, ?, ?)",
            ),
            (
                Dialect::Postgres(Marks::Numbered),
                "UPDATE \"iaxfriends\" SET \"port\" = CASE \"name\" WHEN $1 THEN CAST($2::text AS integer) \
                 WHEN $3 THEN CAST($4::text AS integer) WHEN $5 THEN CAST($6::text AS integer) ELSE \"port\" END, \
                 \"name\" = CASE \"name\" WHEN $7 THEN $8 WHEN $9 THEN $10 WHEN $11 THEN $12 ELSE \"name\" END \
                 WHERE \"name\" IN ($13, $14, $15)",
            ),
        ] {
            let made = dialect.rewrite(&table(dialect), "name", &columns, &rows).unwrap().unwrap();
            assert_eq!(made.sql, expected, "{dialect:?}");
            let ports = [Some("a"), Some("2"), Some("b"), None, Some("a"), Some("1")];
            let names = [Some("a"), None, Some("b"), None, Some("a"), None, Some("a"), Some("b"), Some("a")];
            let values: Vec<_> = made.values.iter().map(Option::as_deref).collect();
            assert_eq!(values, [ports.as_slice(), names.as_slice()].concat(), "{dialect:?}");
        }
        let rewrite = |key: &str, columns: &[String], rows: &[_]| {
            Dialect::Sqlite.rewrite(&table(Dialect::Sqlite), key, columns, rows)
        };
        assert!(rewrite("nowhere", &columns, &rows).is_err(), "no such key");
        assert!(rewrite("name", &columns, &[row("a\0", "1")]).is_err(), "a NUL");
        assert_eq!(rewrite("name", &["nowhere".to_owned()], &rows), Ok(None));
        assert_eq!(rewrite("name", &columns, &[]), Ok(None));
    }

    #[test]
    fn nothing_in_a_number_is_null_and_the_last_of_two_writes_counts() {
        let dialect = Dialect::Postgres(Marks::Numbered);
        let sets = [set("port", "4569"), set("name", ""), set("Port", "")];
        let keys = [("name".to_owned(), "a".to_owned())];
        let made = dialect.update(&table(dialect), &keys, &sets).unwrap().unwrap();
        assert_eq!(
            made.sql,
            "UPDATE \"iaxfriends\" SET \"port\" = CAST($1::text AS integer), \"name\" = $2 WHERE \"name\" = $3"
        );
        assert_eq!(made.values, [None, Some(String::new()), Some("a".to_owned())]);
        assert_eq!(dialect.update(&table(dialect), &keys, &[set("nowhere", "1")]), Ok(None));
    }
}
