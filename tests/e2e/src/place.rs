//! Addresses and folders that no other test uses.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

static NEXT: AtomicU8 = AtomicU8::new(1);

/// A loopback address that no other test of this process has, and hardly one of another process.
pub fn address() -> IpAddr {
    let process = std::process::id();
    // 127.0.0.0/16 is left to people; the process number fills the next two bytes.
    let [_, _, high, low] = process.to_be_bytes();
    let host = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(host < u8::MAX, "more than 254 addresses in one test program: split it");
    IpAddr::V4(Ipv4Addr::new(127, 16 + high % 200, low, host))
}

/// A port that is free for UDP and TCP at this moment on an address that tests share.
pub fn free_port(ip: IpAddr) -> u16 {
    loop {
        let udp = UdpSocket::bind((ip, 0)).expect("a free port");
        let port = udp.local_addr().expect("an address").port();
        if std::net::TcpListener::bind((ip, port)).is_ok() {
            return port;
        }
    }
}

/// A folder that goes when the test has passed and stays when it failed.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
}

impl Place {
    /// A new, empty folder; short, because the path of a control socket has at most 107 bytes.
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU8 = AtomicU8::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("strowger-{}-{count}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _absent = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { path }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file or folder in it.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        let folder = path.parent().unwrap_or(&self.path);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, content))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// The text of a file; nothing when it does not exist.
    pub fn read(&self, name: &str) -> String {
        std::fs::read(self.join(name))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("kept for a look: {}", self.path.display());
        } else {
            let _removed = std::fs::remove_dir_all(&self.path);
        }
    }
}
