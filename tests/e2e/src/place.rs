//! Addresses and folders that no other test uses.

use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

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

/// Ports that the kernel gives to nobody by itself (they lie below its ephemeral ones).
const PORTS: std::ops::Range<u16> = 30_000..32_700;

/// The first of `count` ports in a row that are free for UDP and TCP at this moment on an address that tests share.
pub fn free_ports(ip: IpAddr, count: u16) -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let room = u32::from(PORTS.end - PORTS.start - count);
    loop {
        // Processes begin at different places, and no port is given twice in a row.
        let step = NEXT.fetch_add(u32::from(count), Ordering::Relaxed);
        let offset = std::process::id().wrapping_mul(97).wrapping_add(step) % room;
        let first = PORTS.start + u16::try_from(offset).unwrap_or(0);
        let free = |port| UdpSocket::bind((ip, port)).is_ok() && TcpListener::bind((ip, port)).is_ok();
        if (first..first + count).all(free) {
            return first;
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
        static COUNT: AtomicU32 = AtomicU32::new(0);
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
