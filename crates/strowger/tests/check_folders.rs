//! Small configuration folders, and the whole of what `strowger check` says of each: `tests/check/README.md` has the format.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What every folder has that does not bring its own.
const BASE: &[(&str, &str)] = &[
    ("asterisk.conf", "[directories]\nastdatadir => /nonexistent/strowger-check\n"),
    ("rtp.conf", "[general]\n"),
    (
        "pjsip.conf",
        "[udp]\ntype=transport\nprotocol=udp\nbind=0.0.0.0:5060\n\
         [6001]\ntype=endpoint\ncontext=office\nallow=ulaw\nauth=6001\naors=6001\n\
         [6001]\ntype=auth\nusername=6001\npassword=correct-horse-battery\n[6001]\ntype=aor\nmax_contacts=2\n",
    ),
];

/// Title and files of a row, and what is expected.
struct Row {
    head: String,
    files: Vec<(String, String)>,
    expected: String,
}

fn parse(text: &str) -> Row {
    let (body, expected) = text.split_once("\n=== ").unwrap_or((text, ""));
    let mut parts = format!("\n{body}").split("\n--- ").map(str::to_owned).collect::<Vec<_>>().into_iter();
    let head = parts.next().unwrap().trim().to_owned();
    let file = |part: String| {
        let (name, text) = part.split_once('\n').unwrap_or((&part, ""));
        (name.trim().to_owned(), format!("{}\n", text.trim_end()))
    };
    Row { head, files: parts.map(file).collect(), expected: expected.trim_end().to_owned() }
}

fn said_of(row: &Row, place: &Path, json: bool) -> String {
    let _ = std::fs::remove_dir_all(place);
    std::fs::create_dir_all(place).unwrap();
    let base = BASE.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    for (name, text) in base.chain(row.files.iter().cloned()) {
        let path = place.join(&name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_strowger"));
    command.arg("check").arg(place);
    if json {
        command.arg("--json");
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).replace(&place.display().to_string(), "DIR");
    format!("{}\n{}", output.status.code().unwrap_or(-1), text.trim_end())
}

#[test]
fn every_folder_is_told_as_written() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/check");
    let updates = std::env::var_os("UPDATE_CHECK").is_some();
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    names.sort();
    assert!(names.len() >= 40, "{} folders", names.len());
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("check-folders");
    let mut wrong = Vec::new();
    for path in names {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let row = parse(&text);
        let said = said_of(&row, &place, name.starts_with("json-"));
        if name.starts_with("right-") && !said.starts_with("0\n") {
            wrong.push(format!("{name}: {}: a false alarm\n{said}", row.head));
        }
        if updates {
            let body = text.split_once("\n=== ").map_or(&*text, |(body, _)| body).trim_end();
            std::fs::write(&path, format!("{body}\n=== {said}\n")).unwrap();
        } else if said != row.expected {
            wrong.push(format!("{name}: {}\nexpected {}\nsaid {said}", row.head, row.expected));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
