//! `docs/dialplan.md` lists the applications and functions of the tables, no more and no fewer.
//!
//! After a change of a table: `UPDATE_DOCS=1 cargo test -p apps --test manual` writes the page anew.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use apps::table;

#[test]
fn the_manual_of_the_dialplan_is_what_the_code_runs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dialplan.md");
    let before = fs::read_to_string(&path).unwrap();
    let page = replaced(&before, "applications", &applications());
    let page = replaced(&page, "functions", &functions());
    let page = replaced(&page, "letters of Dial without effect", &idle_letters());
    if page == before {
        return;
    }
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, page).unwrap();
        return;
    }
    let line = before.lines().zip(page.lines()).find(|(old, new)| old != new);
    panic!("docs/dialplan.md is behind the code, first at {line:?}; see the top of {}", file!());
}

/// The page with what stands between a list's marks replaced.
fn replaced(page: &str, list: &str, rows: &str) -> String {
    let (begin, end) = (format!("<!-- {list} -->\n"), format!("<!-- end of {list} -->"));
    let Some((head, rest)) = page.split_once(&begin) else { panic!("docs/dialplan.md has no mark {begin}") };
    let Some((_, tail)) = rest.split_once(&end) else { panic!("{begin} has no end") };
    format!("{head}{begin}{rows}{end}{tail}")
}

fn applications() -> String {
    let mut rows = table::applications().to_vec();
    rows.sort_by_key(|row| row.name.to_ascii_lowercase());
    let mut out = String::from("\n| Application | What it does | Module |\n|---|---|---|\n");
    for row in rows {
        writeln!(out, "| `{}` | {} | `{}` |", cell(row.syntax), cell(row.synopsis), row.module).unwrap();
    }
    out.push('\n');
    out
}

fn functions() -> String {
    let tables = table::tables();
    let mut rows: Vec<_> = tables.functions.iter().collect();
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    let mut out = String::from("\n| Function | What it does | Read | Write |\n|---|---|---|---|\n");
    let mark = |yes: bool| if yes { "yes" } else { "" };
    for row in rows {
        let (syntax, synopsis) = (cell(&row.syntax), cell(&row.synopsis));
        writeln!(out, "| `{syntax}` | {synopsis} | {} | {} |", mark(row.readable()), mark(row.writable()))
            .unwrap();
    }
    out.push('\n');
    out
}

fn idle_letters() -> String {
    let letters: Vec<String> =
        apps::UNSUPPORTED_OPTIONS.chars().map(|letter| format!("`{letter}`")).collect();
    format!("{}.\n", letters.join(" "))
}

/// Text that stands in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
