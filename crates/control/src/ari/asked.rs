//! One request on its way to its operation: its parameters, checked by the rows of the table.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use call::stasis::ToldVariable;
use serde_json::Value;

use super::sockets::Sockets;
use super::table::{Fault, Kind, Operation, Place};
use super::view::Facts;
use crate::site::Site;

/// Values of one list, and names in one object: more than any client has a use for.
const ITEMS_MAX: usize = 256;

/// What a request says, before anybody has looked whether it makes sense.
pub(crate) struct Given {
    /// What stands for the names in the path.
    pub in_path: Vec<(&'static str, String)>,
    pub in_query: Vec<(String, String)>,
    /// An object, or null without a body.
    pub body: Value,
}

/// What was asked, and of whom.
pub(crate) struct Asked<'a> {
    pub site: &'a Rc<Site>,
    /// Programs that are connected.
    pub sockets: &'a mut Sockets,
    pub facts: &'a mut Facts,
    /// Whoever asks may change nothing.
    pub read_only: bool,
    values: BTreeMap<&'static str, Vec<String>>,
    /// Parameters that were said.
    given: BTreeSet<&'static str>,
    /// The object of the body; null without one.
    pub body: Value,
}

impl<'a> Asked<'a> {
    /// Checks what came against the rows of the operation.
    pub fn new(
        site: &'a Rc<Site>,
        (sockets, facts): (&'a mut Sockets, &'a mut Facts),
        operation: &Operation,
        Given { in_path, in_query, body }: Given,
    ) -> Result<Self, Fault> {
        let mut values: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        let mut said = BTreeSet::new();
        for param in operation.params {
            let mut given: Vec<String> = match param.place {
                Place::Path => in_path
                    .iter()
                    .filter(|(name, _)| *name == param.name)
                    .map(|(_, value)| value.clone())
                    .collect(),
                Place::Body => continue,
                Place::Query => {
                    // What the body says goes before what the query says.
                    let mut given = of_body(&body, param.name)?;
                    if given.is_empty() {
                        let own = in_query.iter().filter(|(name, _)| name == param.name);
                        given.extend(own.map(|(_, value)| value.clone()));
                    }
                    given
                }
            };
            if param.many {
                given = given.iter().flat_map(|list| items(list)).map(str::to_owned).collect();
                given.retain(|item| !item.is_empty());
            } else {
                given.truncate(1);
            }
            if given.len() > ITEMS_MAX {
                return Err(Fault::bad(format!("{} has too many values", param.name)));
            }
            if !given.is_empty() {
                said.insert(param.name);
            } else {
                given.extend(param.default.map(str::to_owned));
            }
            if param.required && given.iter().all(String::is_empty) {
                return Err(Fault::bad(missing(operation, param.name)));
            }
            for value in &given {
                check(param, value)?;
            }
            values.insert(param.name, given);
        }
        Ok(Self { site, sockets, facts, read_only: false, values, given: said, body })
    }
    /// A parameter, when it is there and says something.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.first().map(String::as_str).filter(|value| !value.is_empty())
    }
    /// A parameter that the table says must be there.
    pub fn need(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }
    /// Whether a parameter was said, and not only its default holds.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains(name)
    }
    /// A list.
    pub fn all(&self, name: &str) -> Vec<String> {
        self.values.get(name).cloned().unwrap_or_default()
    }
    /// A number; the table has checked it.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.trim().parse().ok()
    }
    /// A choice of two.
    pub fn is(&self, name: &str) -> bool {
        self.get(name).is_some_and(|word| truth(word) == Some(true))
    }
    /// Variables of an object in the body: texts, or objects that say whether they are told with what has them
    /// (`{"variables": {"A": "1", "B": {"value": "2", "report_events": true}}}`).
    pub fn variables(&self) -> Result<Vec<(String, ToldVariable)>, Fault> {
        let bad = || Fault::bad("Only string values in the 'variables' object allowed");
        let found = match self.body.get("variables") {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Object(found)) if found.len() <= ITEMS_MAX => found,
            Some(_) => return Err(bad()),
        };
        let one = |(name, value): (&String, &Value)| {
            let told = match value {
                Value::String(text) => ToldVariable { value: text.clone(), is_told: None },
                Value::Object(fields) => {
                    let text = fields.get("value").and_then(Value::as_str).ok_or_else(bad)?;
                    let is_told = match fields.get("report_events") {
                        None | Some(Value::Null) => None,
                        Some(told) => Some(told.as_bool().ok_or_else(bad)?),
                    };
                    ToldVariable { value: text.to_owned(), is_told }
                }
                _ => return Err(bad()),
            };
            let name = name.trim();
            if name.is_empty() || name.contains('\0') || told.value.contains('\0') {
                return Err(Fault::bad("Variable name is required"));
            }
            Ok((name.to_owned(), told))
        };
        found.iter().map(one).collect()
    }
    /// Names and values of an object in the body: `{"variables": {"A": "1"}}`.
    pub fn pairs(&self, name: &str) -> Result<Vec<(String, String)>, Fault> {
        let found = match self.body.get(name) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Object(found)) if found.len() <= ITEMS_MAX => found,
            Some(_) => return Err(Fault::bad(format!("{name} is no object of names and values"))),
        };
        let plain = |(key, value): (&String, &Value)| match scalar(value) {
            Some(value) => Ok((key.clone(), value)),
            None => Err(Fault::bad(format!("{name}.{key} is no text"))),
        };
        found.iter().map(plain).collect()
    }
}

/// The items of a list, cut at its commas but for those within parentheses: `A,CHANNEL(rtp,dest)`.
fn items(list: &str) -> Vec<&str> {
    let (mut depth, mut from, mut found) = (0_usize, 0, Vec::new());
    for (at, symbol) in list.char_indices() {
        match symbol {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.extend(list.get(from..at));
                from = at + 1;
            }
            _ => {}
        }
    }
    found.extend(list.get(from..));
    found
}

/// true and false, in the words of the field.
pub(crate) fn truth(word: &str) -> Option<bool> {
    conf::boolean(word)
}

/// What is said of a parameter that is not there.
pub(super) fn missing(operation: &Operation, name: &str) -> String {
    match (operation.name, name) {
        ("redirect", "endpoint") => "Required parameter 'endpoint' not provided.".to_owned(),
        (_, "endpoint") => "Endpoint must be specified".to_owned(),
        ("create", "app") => "Application must be specified".to_owned(),
        (_, "variable") => "Variable name is required".to_owned(),
        (_, "variables") => "Variable names are required".to_owned(),
        (_, "dtmf") => "DTMF is required".to_owned(),
        (_, name) => format!("{name} is required"),
    }
}

fn check(param: &super::table::Param, value: &str) -> Result<(), Fault> {
    let name = param.name;
    if value.contains('\0') {
        return Err(Fault::bad(format!("{name} holds a character that is none")));
    }
    if value.is_empty() {
        return Ok(());
    }
    match param.kind {
        Kind::Int | Kind::Long => {
            let number: i64 = value.trim().parse().map_err(|_| Fault::bad(format!("{name} is no number")))?;
            if let Some((low, high)) = param.range
                && !(low..=high).contains(&number)
            {
                return Err(Fault::bad(format!("{name} is not between {low} and {high}")));
            }
        }
        Kind::Bool if truth(value).is_none() => {
            return Err(Fault::bad(format!("{name} is neither true nor false")));
        }
        Kind::Text if !param.words.is_empty() && !param.words.contains(&value) => {
            return Err(Fault::bad(format!("{name} is none of {}", param.words.join(", "))));
        }
        Kind::Bool | Kind::Text | Kind::Pairs => {}
    }
    Ok(())
}

/// Text, numbers and truths as text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What the body says of a parameter.
fn of_body(body: &Value, name: &str) -> Result<Vec<String>, Fault> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => {
            let items: Option<Vec<String>> = list.iter().map(scalar).collect();
            items.ok_or_else(|| Fault::bad(format!("{name} is no list of texts")))
        }
        Some(value) => match scalar(value) {
            Some(text) => Ok(vec![text]),
            None => Err(Fault::bad(format!("{name} is an object"))),
        },
    }
}
