//! The reference in `docs/ari.md`: operations, models and events, from the rows.

use std::fmt::Write as _;

use super::models::{EVENT_FIELDS, EVENT_PARTS, EVENTS, MODELS, ModelField};
use super::ops::RESOURCES;
use super::table::{Param, Place, operations};

/// Where the reference begins in the page, and where it ends.
pub const MARKS: (&str, &str) = ("<!-- reference of ari -->\n", "<!-- end of reference -->\n");

fn parameter(param: &Param, out: &mut String) {
    let need = if param.required { "needed" } else { "" };
    let mut words = param.text.to_owned();
    if !param.words.is_empty() {
        let list: Vec<String> = param.words.iter().map(|word| format!("`{word}`")).collect();
        let _ = write!(words, ": {}", list.join(", "));
    }
    if let Some((low, high)) = param.range {
        let _ = write!(words, ", {low} to {high}");
    }
    if let Some(default) = param.default.filter(|default| !default.is_empty()) {
        let _ = write!(words, " ({default})");
    }
    let kind =
        if param.many { format!("list of {}", param.kind.name()) } else { param.kind.name().to_owned() };
    let _ = writeln!(out, "| `{}` | {} | {kind} | {need} | {words} |", param.name, param.place.name());
}

fn list(fields: &[ModelField]) -> String {
    let one = |field: &ModelField| {
        let may = if field.required { "" } else { "?" };
        format!("`{}`{may}: {}", field.name, field.kind)
    };
    fields.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The reference as Markdown.
pub fn manual() -> String {
    let mut out = String::from("\n## Operations\n");
    // Writing to a String cannot fail.
    for resource in RESOURCES {
        let _ = writeln!(out, "\n### {}\n\n{}", resource.name, resource.text);
        for row in operations().filter(|row| row.resource() == resource.name) {
            let _ =
                writeln!(out, "\n#### {} {}\n\n`{}`: {}", row.method.name(), row.path, row.name, row.text);
            let _ = writeln!(out, "\nAnswers {}.", answer(row.answer));
            if row.params.iter().any(|param| param.place != Place::Path || !param.text.is_empty()) {
                out.push_str("\n| parameter | in | | | |\n|---|---|---|---|---|\n");
            }
            row.params.iter().for_each(|param| parameter(param, &mut out));
            if !row.errors.is_empty() {
                let errors: Vec<String> =
                    row.errors.iter().map(|(code, why)| format!("{code} {why}")).collect();
                let _ = writeln!(out, "\nRefused with: {}.", errors.join("; "));
            }
        }
    }
    out.push_str("\n## Models\n\nA field with a question mark may be missing.\n\n| model | | fields |\n|---|---|---|\n");
    for row in MODELS.iter().chain(EVENT_PARTS) {
        let _ = writeln!(out, "| {} | {} | {} |", row.name, row.text, list(row.fields));
    }
    let _ = writeln!(
        out,
        "\n## Events\n\nEach has {}, and:\n\n| event | | fields |\n|---|---|---|",
        list(EVENT_FIELDS)
    );
    for row in EVENTS {
        let _ = writeln!(out, "| {} | {} | {} |", row.name, row.text, list(row.fields));
    }
    out.push('\n');
    out
}

fn answer(model: &str) -> String {
    match model {
        "void" => "204 and nothing".to_owned(),
        "binary" => "the file".to_owned(),
        model => format!("`{model}`"),
    }
}
