//! One row an operation: method, path, parameters, answer, errors, words, and the code. Routing, the checks of parameters,
//! the manual (`docs/ari.md`) and the descriptions that clients make their methods from all read these rows.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::asked::Asked;
use super::ops;

/// What is done to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Looks.
    Get,
    /// Makes, or sets going.
    Post,
    /// Sets.
    Put,
    /// Takes away.
    Delete,
}

impl Method {
    /// By its name in HTTP.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Get, Self::Post, Self::Put, Self::Delete].into_iter().find(|method| method.name() == name)
    }
    /// Its name in HTTP.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
    /// Whether it changes something, which users with `read_only=yes` may not.
    pub fn is_write(self) -> bool {
        self != Self::Get
    }
}

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the path.
    Path,
    /// In the query, or in an object of JSON as the body.
    Query,
    /// In an object of JSON as the body.
    Body,
}

impl Place {
    /// As descriptions name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Body => "body",
        }
    }
}

/// What a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Int,
    /// One that may be greater.
    Long,
    /// true or false.
    Bool,
    /// An object of names and values.
    Pairs,
}

impl Kind {
    /// As descriptions name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Int => "int",
            Self::Long => "long",
            Self::Bool => "boolean",
            Self::Pairs => "containers",
        }
    }
}

/// One parameter of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    /// Name.
    pub name: &'static str,
    /// Where it stands.
    pub place: Place,
    /// What it is.
    pub kind: Kind,
    /// Whether the operation is refused without it.
    pub required: bool,
    /// It may be a list, comma separated.
    pub many: bool,
    /// What holds when it is not there.
    pub default: Option<&'static str>,
    /// The only words there are; empty: any.
    pub words: &'static [&'static str],
    /// The numbers there are.
    pub range: Option<(i64, i64)>,
    /// What it says.
    pub text: &'static str,
}

/// A part of the path.
pub(crate) const fn path(name: &'static str, text: &'static str) -> Param {
    let (place, kind) = (Place::Path, Kind::Text);
    Param { name, place, kind, required: true, many: false, default: None, words: &[], range: None, text }
}
/// Text in the query.
pub(crate) const fn text(name: &'static str, text: &'static str) -> Param {
    Param { place: Place::Query, required: false, ..path(name, text) }
}
/// A number in the query.
pub(crate) const fn int(name: &'static str, words: &'static str) -> Param {
    Param { kind: Kind::Int, ..text(name, words) }
}
/// A number in the query that may be greater.
pub(crate) const fn long(name: &'static str, words: &'static str) -> Param {
    Param { kind: Kind::Long, ..text(name, words) }
}
/// A choice of two in the query.
pub(crate) const fn flag(name: &'static str, words: &'static str) -> Param {
    Param { kind: Kind::Bool, ..text(name, words) }
}
/// An object in the body.
pub(crate) const fn pairs(name: &'static str, words: &'static str) -> Param {
    Param { kind: Kind::Pairs, place: Place::Body, ..text(name, words) }
}

impl Param {
    /// It must be there.
    pub(crate) const fn must(self) -> Self {
        Self { required: true, ..self }
    }
    /// It may be a list.
    pub(crate) const fn many(self) -> Self {
        Self { many: true, ..self }
    }
    /// What holds without it.
    pub(crate) const fn or(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }
    /// The words there are.
    pub(crate) const fn words(self, words: &'static [&'static str]) -> Self {
        Self { words, ..self }
    }
    /// The numbers there are.
    pub(crate) const fn range(self, low: i64, high: i64) -> Self {
        Self { range: Some((low, high)), ..self }
    }
}

/// What came of an operation that was carried out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    /// Nothing is to be said.
    Nothing,
    /// This is what was asked for.
    Found(Value),
    /// This was begun, and where it is found from here on.
    Made(Value, String),
    /// It was taken, and what comes of it is not waited for.
    Accepted,
    /// A file, by its name below the folder of recordings.
    Recording(PathBuf),
}

/// Why it was not: the status of the answer, and its sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault(pub u16, pub String);

impl Fault {
    pub fn new(status: u16, text: impl Into<String>) -> Self {
        Self(status, text.into())
    }
    pub fn not_found(text: impl Into<String>) -> Self {
        Self::new(404, text)
    }
    pub fn bad(text: impl Into<String>) -> Self {
        Self::new(400, text)
    }
    /// As it is sent.
    pub fn json(&self) -> Value {
        // What could not be made goes by another name.
        let name = if self.1 == NOT_MADE { "error" } else { "message" };
        json!({ name: self.1 })
    }
}

/// The sentence of what could not be made.
pub(crate) const NOT_MADE: &str = "Allocation failed";

/// The sentence of a function that cannot be read, which has a status line of its own.
pub(crate) const NOT_READ: &str = "Unable to read provided function";

/// How an operation came out.
pub(crate) type Done = Result<Answer, Fault>;

/// One operation.
pub struct Operation {
    /// What is done.
    pub method: Method,
    /// Path below /ari, with names in braces.
    pub path: &'static str,
    /// What clients call it.
    pub name: &'static str,
    /// One sentence.
    pub text: &'static str,
    /// Parameters.
    pub params: &'static [Param],
    /// Model of the answer: `Channel`, `List[Channel]`, `void`.
    pub answer: &'static str,
    /// Status and meaning of refusals.
    pub errors: &'static [(u16, &'static str)],
    pub(crate) run: fn(&mut Asked<'_>) -> Done,
}

impl Operation {
    /// The first part of its path.
    pub fn resource(&self) -> &'static str {
        self.path.trim_start_matches('/').split('/').next().unwrap_or_default()
    }
    /// The values of the path's names, when it is this operation's.
    pub(crate) fn matches(&self, parts: &[String]) -> Option<Vec<(&'static str, String)>> {
        let own = self.path.trim_start_matches('/').split('/');
        // A device has a slash in its name, which not every client codes.
        let takes_rest = self.path.ends_with("{deviceName}");
        let count = own.clone().count();
        if parts.len() < count || parts.len() > count && !takes_rest {
            return None;
        }
        let mut found = Vec::new();
        for (at, part) in own.enumerate() {
            let given = parts.get(at)?;
            match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                None if part == given => {}
                None => return None,
                Some(name) if takes_rest && at + 1 == count => found.push((name, parts.get(at..)?.join("/"))),
                Some(name) => found.push((name, given.clone())),
            }
        }
        Some(found)
    }
}

/// A resource, with the sentence that descriptions have of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resource {
    /// Name: the first part of its paths.
    pub name: &'static str,
    /// One sentence.
    pub text: &'static str,
}

/// Every operation in the order of the manual.
pub fn operations() -> impl Iterator<Item = &'static Operation> {
    ops::ROWS.iter().copied().flatten()
}

/// What a path and a method lead to.
pub(crate) enum Route {
    /// There is no such path.
    Nowhere,
    /// There is, and not for this method.
    OtherMethods,
    /// An operation, and the values of its path.
    Found(&'static Operation, Vec<(&'static str, String)>),
}

/// Finds the operation of a path that is cut into its parts.
///
/// The path with fewer names is the closer one, whatever its methods are: `/endpoints/sendMessage` is no technology, and
/// `/channels/externalMedia` no channel.
pub(crate) fn route(method: Method, parts: &[String]) -> Route {
    if NOT_SERVED.iter().any(|path| path.iter().eq(parts)) {
        return Route::Nowhere;
    }
    let known = || operations().filter_map(|operation| Some((operation, operation.matches(parts)?)));
    let Some(fewest) = known().map(|(_, values)| values.len()).min() else { return Route::Nowhere };
    let mut closest = known().filter(|(_, values)| values.len() == fewest);
    match closest.find(|(operation, _)| operation.method == method) {
        Some((operation, values)) => Route::Found(operation, values),
        None => Route::OtherMethods,
    }
}

/// What may be done to a path, in the order of the field; empty: there is no such path.
pub(crate) fn methods(parts: &[String]) -> Vec<Method> {
    let all = [Method::Get, Method::Post, Method::Put, Method::Delete];
    all.into_iter().filter(|method| matches!(route(*method, parts), Route::Found(..))).collect()
}

/// Fixed paths that the interface has and that are not served here, where a path with a name in it would match.
const NOT_SERVED: [&[&str]; 1] = [&["channels", "externalMedia"]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_paths_come_before_names_whatever_is_asked_of_them() {
        let found = |path: &str, method| {
            let parts: Vec<String> = path.split('/').map(str::to_owned).collect();
            match route(method, &parts) {
                Route::Nowhere => "nowhere".to_owned(),
                Route::OtherMethods => "other methods".to_owned(),
                Route::Found(operation, values) => format!("{} {}", operation.path, values.len()),
            }
        };
        for (path, method, expected) in [
            ("channels/externalMedia", Method::Post, "nowhere"),
            ("channels/externalMedia", Method::Get, "nowhere"),
            ("endpoints/refer", Method::Get, "other methods"),
            ("events/claim", Method::Post, "/events/claim 0"),
            ("channels/create", Method::Get, "other methods"),
            ("channels/create", Method::Post, "/channels/create 0"),
            ("channels/1.0", Method::Post, "/channels/{channelId} 1"),
            ("endpoints/sendMessage", Method::Put, "/endpoints/sendMessage 0"),
            ("endpoints/PJSIP", Method::Get, "/endpoints/{tech} 1"),
            ("nothing", Method::Get, "nowhere"),
        ] {
            assert_eq!(found(path, method), expected, "{path}");
        }
    }
}
