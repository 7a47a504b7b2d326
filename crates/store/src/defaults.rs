//! The configuration Strowger starts on when there is none.

use conf::Memory;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The phones of the embedded configuration; each has a password made at the first start.
pub const PHONES: [&str; 2] = ["6001", "6002"];

/// File the passwords are included from.
const SECRETS_FILE: &str = "pjsip_secrets.conf";

const FILES: &[(&str, &str)] = &[
    ("asterisk.conf", include_str!("../defaults/asterisk.conf")),
    ("extensions.conf", include_str!("../defaults/extensions.conf")),
    ("pjsip.conf", include_str!("../defaults/pjsip.conf")),
    ("rtp.conf", include_str!("../defaults/rtp.conf")),
    ("musiconhold.conf", include_str!("../defaults/musiconhold.conf")),
    ("indications.conf", include_str!("../defaults/indications.conf")),
    ("logger.conf", include_str!("../defaults/logger.conf")),
    ("cdr.conf", include_str!("../defaults/cdr.conf")),
    ("manager.conf", include_str!("../defaults/manager.conf")),
];

/// What the embedded configuration cannot know by itself.
#[derive(Clone)]
pub struct Defaults {
    /// Folder under which state, logs and the control socket lie.
    pub root: PathBuf,
    /// Folder with the prompts under sounds/ and the music under moh/.
    pub data: PathBuf,
    /// Address SIP listens on, by UDP and TCP.
    pub bind: SocketAddr,
    /// Passwords of [`PHONES`], in their order, as the caller made or remembered them.
    pub secrets: [String; PHONES.len()],
}

impl std::fmt::Debug for Defaults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { root, data, bind, secrets: _ } = self;
        f.debug_struct("Defaults")
            .field("root", root)
            .field("data", data)
            .field("bind", bind)
            .finish_non_exhaustive()
    }
}

impl Defaults {
    /// Address SIP listens on unless told otherwise: this machine only.
    pub const BIND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5060);

    /// Embedded files by name, with everything filled in; also what `strowger` writes out for a site to begin from.
    pub fn files(&self) -> Vec<(&'static str, String)> {
        let fill = |text: &str| {
            text.replace("@ROOT@", &self.root.display().to_string())
                .replace("@DATA@", &self.data.display().to_string())
                .replace("@BIND@", &self.bind.to_string())
        };
        let mut files: Vec<_> = FILES.iter().map(|&(name, text)| (name, fill(text))).collect();
        files.push((SECRETS_FILE, self.secrets_text()));
        files
    }

    /// The file of passwords in the language of the others: each continues the auth of its phone.
    fn secrets_text(&self) -> String {
        let sections = PHONES.iter().zip(&self.secrets);
        sections
            .map(|(phone, secret)| {
                format!("[{phone}](+type=auth)\npassword = {}\n", secret.replace(';', "\\;"))
            })
            .collect()
    }

    pub(crate) fn source(&self) -> Memory {
        self.files().into_iter().fold(Memory::new(), |memory, (name, text)| memory.with(name, text))
    }
}
