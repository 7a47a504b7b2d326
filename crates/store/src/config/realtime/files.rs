//! Files that lie in databases whole: `queues.conf => odbc,pbx,ast_config`.
//!
//! Rows are lines of the file: those of one `cat_metric` and `category` a section, highest `cat_metric` first, each
//! `var_name` with its `var_val` by `var_metric`. They become the text that the file would have, so that its reader is the
//! only one.

use super::{Backend, Families};
use std::fmt::Write as _;

/// Column that names the file of a row.
pub const FILE: &str = "filename";
/// Column that takes a row out when it is not 0.
pub const COMMENTED: &str = "commented";
/// Columns by which rows are ordered, and whether the largest comes first.
pub const ORDER: [(&str, bool); 4] =
    [("cat_metric", true), ("var_metric", false), ("category", false), ("var_name", false)];

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRow<'a> {
    /// `cat_metric`.
    pub metric: &'a str,
    /// `category`.
    pub category: &'a str,
    /// `var_name`.
    pub name: &'a str,
    /// `var_val`.
    pub value: &'a str,
}

/// The text of a file of these rows, which come in the order of [`ORDER`].
pub fn text_of_rows<'a>(rows: impl Iterator<Item = FileRow<'a>>) -> String {
    let mut out = String::new();
    let mut section: Option<(&str, &str)> = None;
    for FileRow { metric, category, name, value } in rows {
        let (category, name) = (category.trim(), name.trim());
        let is_odd = |text: &str| text.chars().any(char::is_control);
        // A name that is no name of a line or a section would be something else in the file.
        if name.is_empty() || is_odd(name) || is_odd(category) || category.contains(['[', ']', ';']) {
            continue;
        }
        if section != Some((metric, category)) {
            section = Some((metric, category));
            let _ = writeln!(out, "[{category}]");
        }
        let mut line = value.replace(';', "\\;");
        line.retain(|symbol| !symbol.is_control());
        let _ = match name.starts_with('#') {
            true => writeln!(out, "{name} {line}"),
            false => writeln!(out, "{} => {line}", name.replace(';', "\\;")),
        };
    }
    out
}

impl Families {
    /// Files that lie in databases whole, and where.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[Backend])> {
        self.iter().filter(|(name, _)| name.ends_with(".conf"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_lines_of_sections_in_their_order() {
        let row = |metric, category, name, value| FileRow { metric, category, name, value };
        let text = text_of_rows(
            [
                row("2", "general", "static", "yes"),
                row("1", "in", "exten", "100,1,NoOp(a;b)"),
                row("1", "in", "same", "n,Hangup()\n[evil]"),
                row("1", "out", "include", "in"),
                row("0", "in", "exten", "200,1,Busy()"),
                row("0", "in", "#include", "more.conf"),
                row("0", "bad]\n[x", "exten", "300,1,Busy()"),
                row("0", "in", "", "nothing"),
            ]
            .into_iter(),
        );
        assert_eq!(
            text,
            "[general]\nstatic => yes\n[in]\nexten => 100,1,NoOp(a\\;b)\nsame => n,Hangup()[evil]\n[out]\ninclude => in\n\
             [in]\nexten => 200,1,Busy()\n#include more.conf\n"
        );
    }
}
