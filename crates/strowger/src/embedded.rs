//! Embedded defaults: where their state lies, the passwords made at the first start, and what to dial.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context;
use store::{Defaults, PHONES, Where};

/// Length of a password: 20 of 32 symbols are 100 bits.
const SECRET_CHARS: usize = 20;
/// No symbols that look alike on a phone's display.
const SYMBOLS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// The folder under which everything lies: `$STROWGER_STATE`, else the person's state folder.
pub fn root() -> PathBuf {
    if let Some(root) = std::env::var_os("STROWGER_STATE") {
        return PathBuf::from(root);
    }
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    state.or_else(home).unwrap_or_else(|| PathBuf::from("/var/lib")).join("strowger")
}

/// The embedded configuration without passwords, for those who only ask where things lie.
pub fn place() -> Defaults {
    Defaults {
        root: root(),
        data: PathBuf::from("/usr/share/asterisk"),
        bind: bind(),
        secrets: PHONES.map(|_| String::new()),
    }
}

/// Where SIP listens: this machine only, unless `$STROWGER_BIND` names an address.
fn bind() -> std::net::SocketAddr {
    let wanted = std::env::var("STROWGER_BIND").ok();
    let address = wanted.as_deref().and_then(|text| {
        text.parse().ok().or_else(|| text.parse().ok().map(|ip| std::net::SocketAddr::new(ip, 5060)))
    });
    address.unwrap_or(Defaults::BIND)
}

/// The embedded configuration, ready to start on. Says on standard output what to dial, unless `quiet`; the passwords
/// are shown once, when they are made. What is written below is for this user alone.
pub fn prepare(quiet: bool) -> anyhow::Result<Where> {
    let mut defaults = place();
    ::io::process::keep_files_private();
    let file = defaults.root.join("phones");
    let known = fs::read_to_string(&file).ok().and_then(|text| parse(&text));
    let fresh = known.is_none();
    defaults.secrets = match known {
        Some(secrets) => secrets,
        None => make(&file)?,
    };
    close(&defaults.root)
        .with_context(|| format!("{}: cannot be closed to others", defaults.root.display()))?;
    if !quiet {
        tell(&defaults, fresh, &file);
    }
    Ok(Where::Embedded(defaults))
}

/// Only the owner looks into the folder: it holds passwords, recordings and who called whom. A folder in which others
/// may write (`/tmp`) is theirs too and stays as it is.
fn close(folder: &Path) -> std::io::Result<()> {
    let mode = fs::metadata(folder)?.permissions().mode();
    if mode & 0o1000 != 0 || mode & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

fn parse(text: &str) -> Option<[String; PHONES.len()]> {
    let mut secrets = PHONES.map(|_| String::new());
    for (phone, secret) in PHONES.iter().zip(&mut secrets) {
        let line = text.lines().find_map(|line| line.strip_prefix(phone)?.strip_prefix(' '))?;
        line.trim().clone_into(secret);
    }
    secrets.iter().all(|secret| secret.len() >= SECRET_CHARS).then_some(secrets)
}

fn make(file: &Path) -> anyhow::Result<[String; PHONES.len()]> {
    let why = || {
        format!("{}: passwords cannot be kept there; set STROWGER_STATE to a folder of yours", file.display())
    };
    let secrets = PHONES.map(|_| {
        let bytes: [u8; SECRET_CHARS] = engine::secret();
        bytes.iter().map(|byte| char::from(SYMBOLS[usize::from(byte % 32)])).collect::<String>()
    });
    if let Some(folder) = file.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(why)?;
    }
    let mut out = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(file)
        .with_context(why)?;
    for (phone, secret) in PHONES.iter().zip(&secrets) {
        writeln!(out, "{phone} {secret}").with_context(why)?;
    }
    out.sync_all().with_context(why)?;
    Ok(secrets)
}

fn tell(defaults: &Defaults, fresh: bool, file: &Path) {
    let bind = defaults.bind;
    println!("{}", control::VERSION);
    println!("There is no /etc/asterisk/asterisk.conf: starting on embedded defaults.");
    println!();
    println!("  Register a SIP phone at {bind} (UDP or TCP):");
    for (phone, secret) in PHONES.iter().zip(&defaults.secrets) {
        if fresh {
            println!("    user {phone}   password {secret}");
        } else {
            println!("    user {phone}   password in {}", file.display());
        }
    }
    println!();
    println!("  Then dial  6001 or 6002  the other phone      600  echo: hear yourself");
    println!("             601           a prompt             602  music on hold");
    println!("             603           a small menu         604  a test tone");
    println!("             610           type digits, hear them read back");
    println!();
    if bind.ip().is_loopback() {
        println!(
            "  Only programs on this machine can reach it; STROWGER_BIND=0.0.0.0 lets phones of the network in."
        );
    }
    println!("  State and logs lie in {}. Another terminal: strowger -r", defaults.root.display());
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_closed_to_others_unless_it_is_shared() {
        let folder = std::env::temp_dir().join(format!("strowger-close-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        for (before, after) in [(0o755, 0o700), (0o700, 0o700), (0o500, 0o500), (0o1777, 0o1777)] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(before)).unwrap();
            close(&folder).unwrap();
            assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o7777, after, "{before:o}");
        }
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn passwords_are_read_back_and_damaged_files_make_new_ones() {
        let good = format!("6001 {}\n6002 {}\n", "a".repeat(20), "b".repeat(20));
        assert_eq!(parse(&good).unwrap()[1], "b".repeat(20));
        for (name, text) in
            [("empty", ""), ("one phone", "6001 aaaaaaaaaaaaaaaaaaaa\n"), ("short", "6001 a\n6002 b\n")]
        {
            assert!(parse(text).is_none(), "{name}");
        }
    }
}
