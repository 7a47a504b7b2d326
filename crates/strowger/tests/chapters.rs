//! The configurations that the chapters of docs/ show, as `strowger check` reads them when they are pasted.
//!
//! A block names its file in its first line, `; queues.conf`, and begins another one so; what belongs to the dialplan of
//! whoever pastes it stands without a context. Each is checked by itself, beside a site that has a phone's password and a
//! database; one behind `<!-- with the one before -->` together with that.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const CHAPTERS: [&str; 20] = [
    "agents",
    "ari",
    "conferences",
    "followme",
    "iax2",
    "manager",
    "parking",
    "queues",
    "realtime",
    "recipes",
    "records",
    "speech",
    "srtp",
    "stir-shaken",
    "supervision",
    "tls",
    "transfers",
    "trunks",
    "voicemail",
    "websocket",
];

/// What a site has before anything is pasted.
const SITE: &[(&str, &str)] = &[
    ("asterisk.conf", ""),
    (
        "pjsip.conf",
        "[site-udp]\ntype=transport\nprotocol=udp\nbind=0.0.0.0:5060\n\
     [6001]\ntype=auth\nusername=6001\npassword=correct-horse-battery\n[6001]\ntype=aor\nmax_contacts=2\n",
    ),
    ("extensions.conf", "[default]\nexten => 100,1,Answer()\n"),
    // docs/databases.md.
    ("res_odbc.conf", "[pbx]\nenabled=yes\ndsn=pbx\n[asteriskcdrdb]\nenabled=yes\ndsn=pbx\n"),
    ("res_config_sqlite3.conf", "[pbx]\ndbfile=/var/lib/asterisk/pbx.sqlite3\n"),
];

/// What `check` says of blocks all the same, as the chapter does: chapter, words of the block, words of the finding.
const NAMED: &[(&str, &str, &str)] = &[
    ("iax2", "site-a", "the key 'site-a' is not there"),
    ("stir-shaken", "key.pem", "private_key_file=/etc/asterisk/stir/key.pem: No such file"),
    ("stir-shaken", "sti-pa.pem", "ca_file=/etc/asterisk/stir/sti-pa.pem: No such file"),
    ("tls", "pbx.example.com.pem", "/keys/pbx.example.com.pem cannot be read"),
    ("tls", "pbx.one.example.pem", "/keys/pbx.one.example.pem cannot be read"),
    ("tls", "pbx.two.example.pem", "/keys/pbx.two.example.pem cannot be read"),
    ("trunks", "pbx.example.com.pem", "/keys/pbx.example.com.pem cannot be read"),
    ("websocket", "pbx.example.com.pem", "/keys/pbx.example.com.pem cannot be read"),
];

/// Kinds of findings about names: a block names what the rest of a site has.
const OF_OTHERS: &[&str] = &["context", "device", "mailbox", "menu", "profile", "queue", "section"];

struct Block {
    line: usize,
    text: String,
}

/// The blocks of a page whose fence is followed by this word.
fn blocks(page: &str, kind: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let (mut inside, mut wanted, mut joins) = (false, false, false);
    for (number, line) in page.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(word) if !inside => {
                (inside, wanted) = (true, word == kind);
                if wanted && !joins {
                    found.push(Block { line: number + 1, text: String::new() });
                }
            }
            Some(_) => (inside, wanted) = (false, false),
            None => {
                joins = line == "<!-- with the one before -->";
                if let Some(block) = found.last_mut().filter(|_| wanted) {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
            }
        }
    }
    found
}

/// The file that a line begins.
fn named(line: &str) -> Option<&str> {
    let word = line.strip_prefix("; ")?.split([' ', ',', ':']).next()?;
    word.ends_with(".conf").then_some(word)
}

/// The files of a block; `None` when it does not begin with the name of one.
fn files(text: &str) -> Option<BTreeMap<&str, String>> {
    named(text.lines().next()?)?;
    let (mut files, mut at) = (BTreeMap::<&str, String>::new(), "");
    for line in text.lines() {
        at = named(line).unwrap_or(at);
        let file = files.entry(at).or_default();
        let has_section = file.lines().any(|line| line.starts_with('['));
        if at == "extensions.conf" && line.starts_with("exten") && !has_section {
            file.push_str("[default]\n");
        }
        file.push_str(line);
        file.push('\n');
    }
    Some(files)
}

/// Errors and warnings that `strowger check` has of a folder.
fn findings(folder: &Path) -> Vec<String> {
    let program = Command::new(env!("CARGO_BIN_EXE_strowger"));
    let mut program = program;
    let output = program.arg("check").arg(folder).arg("--json").output().unwrap();
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let of_others = |finding: &serde_json::Value| OF_OTHERS.iter().any(|kind| finding["kind"] == *kind);
    let wrong = said["findings"].as_array().unwrap().iter();
    let wrong = wrong.filter(|finding| finding["severity"] != "note" && !of_others(finding));
    wrong.map(|finding| format!("{}:{} {}", finding["file"], finding["line"], finding["message"])).collect()
}

#[test]
fn every_configuration_of_the_chapters_passes_check() {
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("chapters");
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for chapter in CHAPTERS {
        let path = format!("{}/../../docs/{chapter}.md", env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(path).unwrap();
        for block in blocks(&page, "ini") {
            let at = format!("docs/{chapter}.md:{}", block.line);
            let Some(files) = files(&block.text) else {
                wrong.push(format!("{at}: the block does not begin with the name of its file"));
                continue;
            };
            let _ = std::fs::remove_dir_all(&place);
            std::fs::create_dir_all(&place).unwrap();
            for (name, text) in SITE {
                std::fs::write(place.join(name), text).unwrap();
            }
            for (name, text) in &files {
                let before = SITE.iter().find(|(own, _)| own == name).map_or("", |(_, text)| *text);
                std::fs::write(place.join(name), format!("{before}{text}")).unwrap();
            }
            let is_named = |finding: &String| {
                NAMED.iter().any(|(of, words, said)| {
                    *of == chapter && block.text.contains(words) && finding.contains(said)
                })
            };
            let found = findings(&place).into_iter().filter(|finding| !is_named(finding));
            wrong.extend(found.map(|finding| format!("{at}: {finding}")));
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} blocks");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_block_of_the_chapters_says_what_it_is() {
    for chapter in CHAPTERS {
        let path = format!("{}/../../docs/{chapter}.md", env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(path).unwrap();
        // Recipes have a test of their own.
        let bare = blocks(&page, "").into_iter().filter(|_| chapter != "recipes");
        let lines: Vec<usize> = bare.map(|block| block.line).collect();
        assert_eq!(lines, [0; 0], "docs/{chapter}.md: write ```ini, or ```text for what is no configuration");
    }
}
