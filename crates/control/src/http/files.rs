//! Files below the folder `static-http`, for pages that come with the server: what a path asks for, and how far a file
//! that is being sent has got. Reading is somebody else's ([`FileWish`], [`Piece`]).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::form;

/// Files on their way at once; whoever asks for more is told to come again.
pub const FILES_MAX: usize = 64;
/// Longest path: what Linux takes of one.
const PATH_BYTES_MAX: usize = 4096;
/// The folder that Asterisk shows to nobody but managers who have logged in, and this server to nobody.
const PRIVATE: &[u8] = b"private";

/// Where files lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFolder {
    /// Those for everybody, `static-http` below `astdatadir`.
    Static,
    /// Recordings of programs, `recording` below `astspooldir`; who may read them is settled before.
    Recordings,
}

/// What a connection wants of the files.
#[derive(Debug, PartialEq, Eq)]
pub enum FileWish {
    /// The beginning of one, by its name below the folder.
    Open {
        /// The connection.
        session: u64,
        /// Below which.
        folder: FileFolder,
        /// Plain names and the slashes between them.
        name: PathBuf,
    },
    /// The next piece.
    More {
        /// The connection.
        session: u64,
    },
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// There is no such file, or nobody may read it.
    Missing,
    /// Too much is asked for at once.
    Busy,
    /// The file is this one, and begins with these bytes.
    Begin(Version, Vec<u8>),
    /// It goes on with these.
    More(Vec<u8>),
    /// It cannot be read any further.
    Broken,
}

/// What tells a file from what it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// Bytes.
    pub length: u64,
    /// When it was changed, as the file system says: seconds since 1970, and nanoseconds.
    pub changed: (i64, i64),
}

impl Version {
    /// Its validator (RFC 9110 §8.8.3): a weak one, because two changes within a tick of the kernel's clock that keep the
    /// length look alike.
    pub(super) fn tag(self) -> String {
        let Self { length, changed: (seconds, nanos) } = self;
        format!("W/\"{seconds:x}.{nanos:x}-{length:x}\"")
    }
}

/// Whether a client that says `If-None-Match: known` has what `tag` stands for (RFC 9110 §13.1.2): one of its tags is it,
/// weak or strong, or it takes anything that is there (`*`). What cannot be read matches nothing.
pub(super) fn knows(known: &[u8], tag: &str) -> bool {
    let wanted = tag.strip_prefix("W/").unwrap_or(tag).as_bytes();
    let mut rest = known.trim_ascii();
    if rest == b"*" {
        return true;
    }
    loop {
        while let [b',' | b' ' | b'\t', more @ ..] = rest {
            rest = more;
        }
        let strong = rest.strip_prefix(b"W/").unwrap_or(rest);
        // A comma may stand within quotes, so the quotes part the tags.
        let end = strong.strip_prefix(b"\"").and_then(|text| text.iter().position(|byte| *byte == b'"'));
        let Some((one, more)) = end.and_then(|end| strong.split_at_checked(end + 2)) else { return false };
        if one == wanted {
            return true;
        }
        rest = more;
    }
}

/// A file on its way to a connection.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) kind: &'static str,
    pub(super) only_head: bool,
    /// What the client has of it already (`If-None-Match`); empty: nothing that it says.
    pub(super) known: Vec<u8>,
    /// Bytes that are not sent yet; none before it is known how many there are.
    pub(super) left: Option<u64>,
    /// Somebody reads for it.
    pub(super) is_read: bool,
}

impl Sending {
    pub(super) fn new(name: &Path, only_head: bool, known: Vec<u8>) -> Self {
        Self { kind: kind_of(name), only_head, known, left: None, is_read: true }
    }
    /// Takes off what is sent of `bytes`, never more than was promised; whether that is all.
    pub(super) fn take(&mut self, bytes: &mut Vec<u8>) -> bool {
        let left = self.left.unwrap_or(0);
        bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        let left = left.saturating_sub(bytes.len() as u64);
        self.left = Some(left);
        left == 0
    }
}

/// The name of a file that the part of a path behind `/static/` asks for. `None` for everything that is no plain name:
/// what leads up, what is hidden, and what is private.
pub(super) fn name_of(path: &str) -> Option<PathBuf> {
    let bytes = form::unescaped(path, false);
    let mut parts = bytes.split(|byte| *byte == b'/');
    let is_plain = |part: &[u8]| {
        !part.is_empty()
            && !part.starts_with(b".")
            && !part.contains(&0)
            && !part.eq_ignore_ascii_case(PRIVATE)
    };
    (bytes.len() <= PATH_BYTES_MAX && parts.all(is_plain)).then(|| OsString::from_vec(bytes.clone()).into())
}

/// What a file's ending says of it.
fn kind_of(name: &Path) -> &'static str {
    let ending = name.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let known = KINDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(ending));
    known.map_or("application/octet-stream", |(_, kind)| kind)
}

const KINDS: &[(&str, &str)] = &[
    ("bin", "application/octet-stream"),
    ("cfg", "text/plain; charset=utf-8"),
    ("cnf", "text/plain; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("gif", "image/gif"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/x-icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("ld", "application/octet-stream"),
    ("mp3", "audio/mpeg"),
    ("png", "image/png"),
    ("sbn", "application/octet-stream"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain; charset=utf-8"),
    ("wav", "audio/x-wav"),
    ("webp", "image/webp"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("xml", "text/xml"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_plain_name_or_nothing() {
        for (path, expected) in [
            ("a.html", Some("a.html")),
            ("config/js/a.b.js", Some("config/js/a.b.js")),
            ("a%20b+c.txt", Some("a b+c.txt")),
            ("a%2fb", Some("a/b")),
            ("100%", Some("100%")),
            ("a..b", Some("a..b")),
            ("", None),
            ("/etc/passwd", None),
            ("a//b", None),
            ("a/", None),
            ("..", None),
            ("../asterisk.conf", None),
            ("a/../../b", None),
            ("%2e%2e/a", None),
            ("%2e%2e%2fa", None),
            ("a/.%2e/b", None),
            ("./a", None),
            (".htpasswd", None),
            ("a%00.html", None),
            ("private/a.html", None),
            ("a/%50rivate/b", None),
        ] {
            assert_eq!(name_of(path).as_deref(), expected.map(Path::new), "{path}");
        }
        assert_eq!(name_of(&"a".repeat(PATH_BYTES_MAX + 1)), None);
        assert!(name_of("%ff").is_some(), "names are bytes");
    }

    #[test]
    fn rfc9110_13_1_2_a_version_is_known_by_any_of_the_tags_weak_or_strong() {
        let version = Version { length: 0x1f, changed: (0x5f00, 7) };
        let tag = version.tag();
        assert_eq!(tag, "W/\"5f00.7-1f\"");
        for (known, expected) in [
            ("W/\"5f00.7-1f\"", true),
            ("\"5f00.7-1f\"", true),
            ("*", true),
            (" \"a\", W/\"b,c\" ,,\t\"5f00.7-1f\"", true),
            ("\"a,\"\"5f00.7-1f\"", true),
            ("", false),
            ("\"\"", false),
            ("\"5f00.7-1e\"", false),
            ("\"5F00.7-1F\"", false),
            ("5f00.7-1f", false),
            ("w/\"5f00.7-1f\"", false),
            ("\"5f00.7-1f", false),
            ("\"a\", *", false),
            ("\"a, 5f00.7-1f\"", false),
        ] {
            assert_eq!(knows(known.as_bytes(), &tag), expected, "{known}");
        }
        for other in [
            Version { length: 0x20, ..version },
            Version { changed: (0x5f00, 8), ..version },
            Version { changed: (0x5f01, 7), ..version },
        ] {
            assert_ne!(other.tag(), tag);
        }
    }

    #[test]
    fn endings_say_what_a_file_is() {
        for (name, kind) in [
            ("a.html", "text/html; charset=utf-8"),
            ("a/b.PNG", "image/png"),
            ("a.tar.gz", "application/octet-stream"),
            ("html", "application/octet-stream"),
        ] {
            assert_eq!(kind_of(Path::new(name)), kind, "{name}");
        }
    }
}
