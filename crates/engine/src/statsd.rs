//! What dialplans tell a StatsD server, by a thread of its own. Nobody waits for it, and what does not fit its queue is lost.

use std::sync::mpsc::{SyncSender, sync_channel};

use store::config::statsd::Statsd;

use crate::datagrams::Server;

/// Most lines that wait for the thread.
const WAITING_MAX: usize = 4_096;

/// The shard's end.
pub(crate) struct Statistics {
    wanted: Statsd,
    lines: SyncSender<String>,
}

impl Statistics {
    /// Starts the thread.
    pub(crate) fn start(wanted: &Statsd) -> std::io::Result<Self> {
        let (lines, queue) = sync_channel::<String>(WAITING_MAX);
        let mut server = Server::new(&wanted.host, wanted.port);
        // The thread ends with the queue's other end.
        std::thread::Builder::new().name("statsd".into()).spawn(move || {
            while let Ok(line) = queue.recv() {
                // A server that is not there is told nothing; there is nobody to tell of that.
                server.send(line.as_bytes());
            }
        })?;
        Ok(Self { wanted: wanted.clone(), lines })
    }
    /// What it was started for.
    pub(crate) fn wanted(&self) -> &Statsd {
        &self.wanted
    }
    /// Hands a line over, without prefix.
    pub(crate) fn send(&self, line: &str) {
        let general = &self.wanted.general;
        let dot = if general.prefix.is_empty() { "" } else { "." };
        let end = if general.add_newline { "\n" } else { "" };
        let _ = self.lines.try_send(format!("{}{dot}{line}{end}", general.prefix)); // what does not fit is lost
    }
}
