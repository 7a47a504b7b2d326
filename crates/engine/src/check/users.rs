//! Whether anybody is served, and where those stand who are not.

use std::path::{Path, PathBuf};

use conf::Level;
use store::Snapshot;

use super::Remark;

/// Files with users that are not served.
const USERS: &[(&str, &str)] = &[
    ("users.conf", "users.conf is not read"),
    ("sccp.conf", "phones of SCCP are not served"),
    ("skinny.conf", "phones of SCCP are not served"),
    ("mgcp.conf", "MGCP is not served"),
    ("unistim.conf", "phones of UNISTIM are not served"),
    ("chan_dahdi.conf", "telephony cards are not served"),
];

/// Files with dialplans that are not run.
const DIALPLANS: &[(&str, &str)] =
    &[("extensions.ael", "AEL is not compiled"), ("extensions.lua", "Lua is not run")];

/// Why nobody could call, although the server starts; `None` when somebody can, or when nothing is there at all.
pub fn nobody_served(snapshot: &Snapshot, folder: &Path) -> Option<String> {
    let rowed = snapshot.realtime.has_sip() || snapshot.realtime.has_iax();
    let nobody = snapshot.pjsip.endpoints.is_empty() && snapshot.iax.users.is_empty() && !rowed;
    let refused = |name: &&str| {
        let read = folder.join(name);
        snapshot.refused.iter().any(|file| Path::new(file).file_name() == read.file_name()) && has_code(&read)
    };
    if nobody {
        if let Some(name) = ["pjsip.conf", "sip.conf", "iax.conf"].iter().find(|name| refused(name)) {
            return Some(format!("its users are in {name}, which is refused as a whole"));
        }
        let there = USERS.iter().find(|(name, _)| has_users(&folder.join(name)));
        return there.map(|(name, why)| format!("its only users are in {name}, and {why}"));
    }
    let families = &snapshot.realtime.families;
    let in_rows = !families.of("extensions").is_empty() || !families.of("extensions.conf").is_empty();
    let has_steps = snapshot.extensions.objects().any(|section| {
        let reserved = ["general", "globals"].iter().any(|name| section.name.eq_ignore_ascii_case(name));
        !reserved && !section.variables.is_empty()
    });
    if has_steps || in_rows {
        return None;
    }
    if refused(&"extensions.conf") {
        return Some("its dialplan is in extensions.conf, which is refused as a whole".to_owned());
    }
    let there = DIALPLANS.iter().find(|(name, _)| has_code(&folder.join(name)));
    there.map(|(name, why)| format!("its only dialplan is in {name}, and {why}"))
}

/// Lines of a file without comments and blanks.
fn lines(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(|line| line.split(';').next().unwrap_or("").trim().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

/// Whether a file has a section of a user, or for cards a channel.
fn has_users(path: &Path) -> bool {
    let lines = lines(path);
    let is_own = |line: &&String| {
        let name = line.trim_start_matches('[').split(']').next().unwrap_or("").to_ascii_lowercase();
        line.starts_with('[')
            && !line.contains("](!")
            && !["general", "channels", "trunkgroups"].contains(&&*name)
    };
    let has_channel = || {
        lines.iter().any(|line| {
            let name = line.split('=').next().unwrap_or("").trim();
            name.eq_ignore_ascii_case("channel") || name.eq_ignore_ascii_case("channels")
        })
    };
    lines.iter().any(|line| is_own(&line)) || (path.ends_with("chan_dahdi.conf") && has_channel())
}

/// Whether a file has more than comments.
fn has_code(path: &Path) -> bool {
    lines(path).iter().any(|line| !line.starts_with("--") && !line.starts_with("//"))
}

/// A file that is not read and has no user, as samples are, is a note.
pub(super) fn stock_files(snapshot: &Snapshot, remarks: &mut [Remark]) {
    let folder: PathBuf = snapshot.asterisk.directories.astetcdir.clone();
    for remark in remarks {
        let path = PathBuf::from(&*remark.finding.place.file);
        let is_one = USERS.iter().any(|(name, _)| path == folder.join(name));
        if is_one && !has_users(&path) {
            remark.finding.level = Level::Note;
            remark.used = false;
        }
    }
}
