//! `docs/configuration.md` says about every option what the tables of the code say.
//!
//! After a change of a table: `UPDATE_DOCS=1 cargo test -p store --test manual` writes the page anew.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use store::config::{Row, Status, manual};

#[test]
fn the_manual_of_options_is_what_the_code_reads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let mut page = fs::read_to_string(&path).unwrap();
    let rows = manual();
    let mut files: Vec<&str> = rows.iter().map(|row| row.file).collect();
    files.dedup();
    let before = page.clone();
    for file in files {
        let tables = sections(rows.iter().filter(|row| row.file == file));
        page = replaced(&page, file, &tables);
    }
    if page == before {
        return;
    }
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, page).unwrap();
        return;
    }
    let line = before.lines().zip(page.lines()).find(|(old, new)| old != new);
    panic!("docs/configuration.md is behind the code, first at {line:?}; see the top of {}", file!());
}

/// The page with what stands between a file's marks replaced.
fn replaced(page: &str, file: &str, tables: &str) -> String {
    let (begin, end) = (format!("<!-- options of {file} -->\n"), "<!-- end of options -->");
    let Some((head, rest)) = page.split_once(&begin) else {
        panic!("docs/configuration.md has no mark {begin}")
    };
    let Some((_, tail)) = rest.split_once(end) else { panic!("{begin} has no end") };
    format!("{head}{begin}{tables}{end}{tail}")
}

/// Sections in the order of the table: supported options, then what is known and not done.
fn sections<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    let mut sections: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in rows {
        match sections.iter_mut().find(|(name, _)| *name == row.section) {
            Some((_, known)) => known.push(row),
            None => sections.push((row.section, vec![row])),
        }
    }
    let mut out = String::new();
    // Whole kinds of object that are not built in have one row each; they share a table at the end.
    let is_kind = |rows: &[&Row]| rows.len() == 1 && rows[0].name == "type" && rows[0].doc.is_empty();
    for (name, rows) in sections.iter().filter(|(_, rows)| !is_kind(rows)) {
        writeln!(out, "\n#### {name}\n").unwrap();
        supported(&mut out, rows);
        others(&mut out, rows);
    }
    let kinds: Vec<_> = sections.iter().filter(|(_, rows)| is_kind(rows)).collect();
    if !kinds.is_empty() {
        out.push_str(
            "\n#### Objects that are not supported yet\n\n| `type=` | What happens instead |\n|---|---|\n",
        );
        for (name, rows) in kinds {
            writeln!(out, "| `{name}` | {} |", cell(&instead(rows[0]))).unwrap();
        }
    }
    out.push('\n');
    out
}

fn supported(out: &mut String, rows: &[&Row]) {
    let rows = rows.iter().filter(|row| row.status == Status::Supported);
    for (number, row) in rows.enumerate() {
        if number == 0 {
            out.push_str("| Option | Value | Default | What it does |\n|---|---|---|---|\n");
        }
        let default = if row.default.is_empty() { String::new() } else { format!("`{}`", cell(row.default)) };
        writeln!(out, "| `{}` | {} | {default} | {} |", row.name, cell(&row.kind), cell(row.doc)).unwrap();
    }
}

fn others(out: &mut String, rows: &[&Row]) {
    for (title, wanted) in [("Not supported yet", true), ("No meaning here", false)] {
        let rows = rows.iter().filter(|row| match row.status {
            Status::Supported => false,
            Status::Later(_) => wanted,
            Status::Ignored(_) => !wanted,
        });
        for (number, row) in rows.enumerate() {
            if number == 0 {
                writeln!(
                    out,
                    "\n| {title} | {} |\n|---|---|",
                    if wanted { "What happens instead" } else { "Why" }
                )
                .unwrap();
            }
            writeln!(out, "| `{}` | {} |", row.name, cell(&instead(row))).unwrap();
        }
    }
}

fn instead(row: &Row) -> String {
    match row.status {
        Status::Supported => String::new(),
        Status::Later(text) | Status::Ignored(text) => text.to_owned(),
    }
}

/// Text that stands in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}
