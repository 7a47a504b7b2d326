//! Programs that are connected by WebSocket, and for which applications each of them hears.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use base::Instant;

use crate::http::ws::Socket;
use crate::socket::Output;

/// Programs that are connected at once: a site has a handful.
pub const SOCKETS_MAX: usize = 256;
/// Applications that one connection hears for.
pub const APPS_OF_SOCKET_MAX: usize = 64;

/// A connection.
pub(crate) struct Connected {
    pub frames: Socket,
    /// Applications that it hears for.
    pub apps: Vec<String>,
    pub user: String,
    pub peer: SocketAddr,
    pub since: Instant,
}

/// All connections, by the number that the engine has for each.
#[derive(Default)]
pub(crate) struct Sockets {
    open: BTreeMap<u64, Connected>,
    by_app: BTreeMap<String, u64>,
    /// Events that were sent, for whoever counts.
    pub sent: u64,
    /// Events as they were sent, of applications that are watched from the console.
    pub lines: Vec<String>,
    /// What is to go out.
    pub out: Vec<Output>,
}

impl Sockets {
    /// Whether there is room for one more.
    pub fn has_room(&self) -> bool {
        self.open.len() < SOCKETS_MAX
    }
    /// How many are connected.
    pub fn len(&self) -> usize {
        self.open.len()
    }
    /// Whether a client is one of them.
    pub fn has(&self, client: u64) -> bool {
        self.open.contains_key(&client)
    }
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Connected)> {
        self.open.iter().map(|(client, connected)| (*client, connected))
    }
    /// Whether somebody hears for an application.
    pub fn hears_for(&self, app: &str) -> bool {
        self.by_app.contains_key(app)
    }
    /// As which user somebody hears for an application.
    pub fn user_of(&self, app: &str) -> Option<&str> {
        self.by_app.get(app).and_then(|client| self.open.get(client)).map(|connected| &*connected.user)
    }
    /// A program is connected; who heard for its applications before hears for them no more.
    pub fn add(&mut self, client: u64, connected: Connected) {
        for app in &connected.apps {
            if let Some(before) = self.by_app.insert(app.clone(), client)
                && let Some(before) = self.open.get_mut(&before)
            {
                before.apps.retain(|own| own != app);
            }
        }
        self.open.insert(client, connected);
    }
    /// A connection is gone; the applications that nobody hears for any more.
    pub fn remove(&mut self, client: u64) -> Vec<String> {
        let Some(gone) = self.open.remove(&client) else { return Vec::new() };
        gone.apps.into_iter().filter(|app| self.by_app.remove(app).is_some()).collect()
    }
    /// Sends an event to whoever hears for an application.
    pub fn tell(&mut self, app: &str, event: &str) {
        if let Some(client) = self.by_app.get(app).copied()
            && let Some(connected) = self.open.get_mut(&client)
        {
            connected.frames.send(event.as_bytes());
            self.sent += 1;
            self.out.push(Output::Send(client, connected.frames.take_output()));
        }
    }
    /// Bytes of a connection came: whether it goes on, and the whole messages.
    pub fn receive(&mut self, client: u64, bytes: &[u8]) -> (bool, Vec<Vec<u8>>) {
        let Some(connected) = self.open.get_mut(&client) else { return (true, Vec::new()) };
        let mut said = Vec::new();
        let over = connected.frames.receive(bytes, &mut |text| said.push(text.to_vec())).is_err();
        let output = connected.frames.take_output();
        if !output.is_empty() {
            self.out.push(Output::Send(client, output));
        }
        (!over, said)
    }
    /// One of them.
    pub fn get(&self, client: u64) -> Option<&Connected> {
        self.open.get(&client)
    }
    /// Answers what a connection has asked on it.
    pub fn answer(&mut self, client: u64, text: &str) {
        if let Some(connected) = self.open.get_mut(&client) {
            connected.frames.send(text.as_bytes());
            self.out.push(Output::Send(client, connected.frames.take_output()));
        }
    }
}
