//! Stream listeners, and what to tell an administrator whose address cannot be bound.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::Instant;

use crate::sys::{self, Epoll};

use super::tls::Tls;
use super::{FlowKind, KEY_LISTENER, ListenerId, key};

/// Connections the kernel keeps for us while the shard is busy; its own cap is `net.core.somaxconn` (4096).
const BACKLOG: libc::c_int = 1024;

/// How long a listener rests when the process has no descriptor left: long enough not to spin, short enough
/// that a client waits less than its own retry.
pub(super) const ACCEPT_REST: Duration = Duration::from_millis(100);

/// An address that could not be bound or listened on.
#[derive(Debug)]
pub struct BindError {
    /// The address or path as it would be written in a configuration.
    pub addr: String,
    /// `UDP`, `TCP` or `unix`.
    pub protocol: &'static str,
    /// What the kernel said.
    pub error: io::Error,
}

impl BindError {
    pub(super) fn new(addr: String, protocol: &'static str, error: io::Error) -> Self {
        Self { addr, protocol, error }
    }
    /// What the administrator can do about it.
    pub fn remedy(&self) -> &'static str {
        match (self.error.kind(), self.protocol) {
            (io::ErrorKind::AddrInUse, "unix") => {
                "another Strowger or Asterisk answers there: stop it, or choose another astrundir"
            }
            (io::ErrorKind::AddrInUse, _) => {
                "another process holds this port (`ss -lunpt` names it): stop it, or choose another port"
            }
            (io::ErrorKind::AddrNotAvailable, _) => {
                "no interface of this machine has this address (`ip address`): correct `bind=`, or use 0.0.0.0 or [::]"
            }
            (io::ErrorKind::PermissionDenied, "unix") | (io::ErrorKind::NotFound, _) => {
                "the folder must exist and be writable by the user Strowger runs as"
            }
            (io::ErrorKind::PermissionDenied, _) => {
                "ports below 1024 need the capability CAP_NET_BIND_SERVICE, or a start as root"
            }
            _ => "check the address and the limits of the process (`ulimit -n`)",
        }
    }
}

impl std::fmt::Display for BindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot bind {} {}: {}; {}", self.protocol, self.addr, self.error, self.remedy())
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Whether a listener is asked for connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Awake,
    /// Out of descriptors; the clock has not been read since.
    Tired,
    Until(Instant),
}

pub(super) struct Listener {
    pub(super) fd: OwnedFd,
    pub(super) kind: FlowKind,
    pub(super) addr: Option<SocketAddr>,
    /// What it presents, when its connections are under TLS.
    pub(super) tls: Option<Tls>,
    /// The file of a unix listener, removed with it.
    path: Option<PathBuf>,
    rest: Rest,
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Gone already is as good.
            let _removed = std::fs::remove_file(path);
        }
    }
}

#[derive(Default)]
pub(super) struct Listeners {
    table: Vec<Option<Listener>>,
}

impl Listeners {
    pub(super) fn listen_tcp(
        &mut self,
        epoll: &Epoll,
        addr: SocketAddr,
        kind: FlowKind,
    ) -> Result<ListenerId, BindError> {
        open_tcp(addr)
            .and_then(|(fd, addr)| self.insert(epoll, fd, kind, Some(addr), None))
            .map_err(|error| BindError::new(addr.to_string(), "TCP", error))
    }

    pub(super) fn listen_unix(
        &mut self,
        epoll: &Epoll,
        path: &Path,
        mode: u32,
        kind: FlowKind,
    ) -> Result<ListenerId, BindError> {
        open_unix(path, mode)
            .and_then(|fd| self.insert(epoll, fd, kind, None, Some(path.to_owned())))
            .map_err(|error| BindError::new(path.display().to_string(), "unix", error))
    }

    fn insert(
        &mut self,
        epoll: &Epoll,
        fd: OwnedFd,
        kind: FlowKind,
        addr: Option<SocketAddr>,
        path: Option<PathBuf>,
    ) -> io::Result<ListenerId> {
        let place = self.table.iter().position(Option::is_none).unwrap_or(self.table.len());
        let id = ListenerId(u32::try_from(place).unwrap_or(u32::MAX));
        let listener = Listener { fd, kind, addr, tls: None, path, rest: Rest::Awake };
        epoll.add(listener.fd.as_fd(), libc::EPOLLIN, key(KEY_LISTENER, u64::from(id.0)))?;
        if place == self.table.len() {
            self.table.push(Some(listener));
        } else {
            self.table[place] = Some(listener);
        }
        Ok(id)
    }

    pub(super) fn get(&self, id: ListenerId) -> Option<&Listener> {
        self.table.get(id.0 as usize)?.as_ref()
    }

    pub(super) fn set_tls(&mut self, id: ListenerId, tls: Option<Tls>) {
        if let Some(listener) = self.table.get_mut(id.0 as usize).and_then(Option::as_mut) {
            listener.tls = tls;
        }
    }

    pub(super) fn close(&mut self, id: ListenerId) {
        if let Some(place) = self.table.get_mut(id.0 as usize) {
            *place = None;
        }
    }

    /// Stops asking a listener until `ACCEPT_REST` after the loop next reads the clock.
    pub(super) fn tire(&mut self, epoll: &Epoll, id: ListenerId) {
        if let Some(listener) = self.table.get_mut(id.0 as usize).and_then(Option::as_mut) {
            listener.rest = Rest::Tired;
            // Without interest nothing is reported; an error leaves the listener awake, which only costs time.
            let _asleep = epoll.modify(listener.fd.as_fd(), 0, key(KEY_LISTENER, u64::from(id.0)));
        }
    }

    /// Stamps tired listeners and wakes those that have rested.
    pub(super) fn stamp(&mut self, epoll: &Epoll, now: Instant) {
        for (id, listener) in (0_u64..).zip(&mut self.table) {
            let Some(listener) = listener else { continue };
            match listener.rest {
                Rest::Tired => listener.rest = Rest::Until(now + ACCEPT_REST),
                Rest::Until(at) if at <= now => {
                    listener.rest = Rest::Awake;
                    let _awake = epoll.modify(listener.fd.as_fd(), libc::EPOLLIN, key(KEY_LISTENER, id));
                }
                Rest::Until(_) | Rest::Awake => {}
            }
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let rests = self.table.iter().flatten().filter_map(|listener| match listener.rest {
            Rest::Until(at) => Some(at),
            Rest::Awake | Rest::Tired => None,
        });
        rests.min()
    }
}

/// Whether an address can be bound at this moment; nothing is kept.
pub fn try_bind(addr: SocketAddr, datagrams: bool) -> Result<(), BindError> {
    let (protocol, tried) = match datagrams {
        true => ("UDP", sys::socket(addr, libc::SOCK_DGRAM).and_then(|fd| sys::bind(&fd, addr))),
        false => ("TCP", open_tcp(addr).map(drop)),
    };
    tried.map_err(|error| BindError::new(addr.to_string(), protocol, error))
}

fn open_tcp(addr: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let fd = sys::socket(addr, libc::SOCK_STREAM)?;
    // Connections of the process before us may still stand in TIME_WAIT; a living listener is refused all the same.
    sys::set_option(&fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    // What it accepts inherits these: signalling is small messages that must leave at once, and peers that are gone
    // without a word are to be found out (tcp(7), socket(7)).
    sys::set_option(&fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    sys::set_option(&fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    sys::bind(&fd, addr)?;
    sys::listen(&fd, BACKLOG)?;
    let addr = sys::local_addr(&fd)?.unwrap_or(addr);
    Ok((fd, addr))
}

/// Takes over a socket file that nobody answers; one that is answered is in use, and anything else is not ours.
fn open_unix(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file that is not a socket"));
        }
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::from(io::ErrorKind::AddrInUse));
        }
        std::fs::remove_file(path)?;
    }
    let fd = sys::bind_unix(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    Ok(fd)
}
