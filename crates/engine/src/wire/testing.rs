//! What the tests of this room share: a folder of configuration files, and what the DNS has said of a host.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use base::dns::{Kind, Question, Records};
use store::{Snapshot, Where};

use super::Hosts;

/// A configuration folder of a test; gone with it.
pub(super) struct Site(PathBuf);

impl Site {
    pub(super) fn new(pjsip: &str) -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("strowger-wire-{}-{serial}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in [
            ("asterisk.conf", ""),
            ("extensions.conf", "[default]\n"),
            ("pjsip.conf", pjsip),
            ("acl.conf", "[office]\ndeny=0.0.0.0/0.0.0.0\npermit=10.0.0.0/8\n"),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        Self(folder)
    }
    /// Puts a further file into the folder.
    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }
    /// The path of a file in it.
    pub(super) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
    pub(super) fn snapshot(&self) -> std::sync::Arc<Snapshot> {
        Snapshot::load(&Where::Dir(self.0.clone())).unwrap().0
    }
}
impl Drop for Site {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// What the DNS has said: `pbx.example` is one host, and served for SIP by another.
pub(super) fn hosts() -> Hosts {
    let mut hosts = Hosts::default();
    for (name, ip) in [("pbx.example", "203.0.113.9"), ("sbc.pbx.example", "203.0.113.10")] {
        let addresses = Records::Addresses(vec![ip.parse().unwrap()].into());
        assert!(hosts.learn(&Question::new(Kind::Addresses, name), &addresses));
        assert!(!hosts.learn(&Question::new(Kind::Addresses, name), &addresses), "it is known");
    }
    let record =
        base::dns::Srv { target: "SBC.pbx.example".to_owned(), port: 5060, ..base::dns::Srv::default() };
    let services = Records::Srv(vec![record].into());
    assert!(hosts.learn(&Question::new(Kind::Srv, "_sip._tcp.pbx.example"), &services));
    hosts
}
