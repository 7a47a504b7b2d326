//! The signalling shard's loop: one clock reading, one wait, everything that happened, everything that follows.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use control::socket::{Answer, Call, Commands, Output, Sessions};
use io::clock::Clock;
use io::net::{Closing, FlowId, FlowKind, Limits, Net, NetEvent, Signal};

/// The running process.
pub struct Server {
    net: Net,
    sessions: Sessions,
    /// Clients of the control socket by the number `Sessions` knows them under.
    clients: BTreeMap<u64, FlowId>,
    next_client: u64,
    verbs: Verbs,
}

/// What an event of the wait asks of the loop, once the reactor is free again.
enum Turn {
    Opened(FlowId),
    Bytes(FlowId, Vec<u8>),
    Closed(FlowId),
    Signal(Signal),
}

impl Server {
    /// Binds the control socket and catches the signals; nothing else may have started a thread before.
    pub fn open(socket: &Path, mode: u32, files: u64) -> anyhow::Result<Self> {
        let mut net = Net::new(Limits::within(files)).context("cannot make the reactor")?;
        net.catch_signals().context("cannot catch signals")?;
        net.listen_unix(socket, mode, FlowKind::Control)?;
        let verbs = Verbs { started: Clock.now(), stop: false };
        Ok(Self { net, sessions: Sessions::default(), clients: BTreeMap::new(), next_client: 0, verbs })
    }

    /// Turns until somebody stops the process.
    pub fn run(&mut self) -> anyhow::Result<()> {
        let mut turns = Vec::new();
        while !self.verbs.stop {
            self.net.wait(Clock.now(), None, &mut |event| match event {
                NetEvent::Accepted { flow, .. } => turns.push(Turn::Opened(flow)),
                NetEvent::Bytes { flow, bytes, .. } => turns.push(Turn::Bytes(flow, bytes.to_vec())),
                NetEvent::Closed { flow, .. } => turns.push(Turn::Closed(flow)),
                NetEvent::Signal(signal) => turns.push(Turn::Signal(signal)),
                // No other kind of socket is open.
                NetEvent::Datagram { .. }
                | NetEvent::Unsent { .. }
                | NetEvent::Connected { .. }
                | NetEvent::Readable { .. } => {}
            })?;
            for turn in turns.drain(..) {
                self.turn(turn);
            }
        }
        self.net.flush();
        Ok(())
    }

    fn turn(&mut self, turn: Turn) {
        let mut out = Vec::new();
        match turn {
            Turn::Opened(flow) => {
                self.next_client += 1;
                self.clients.insert(self.next_client, flow);
                self.sessions.open(self.next_client);
            }
            Turn::Bytes(flow, bytes) => {
                if let Some(client) = self.client(flow) {
                    self.sessions.bytes(client, &bytes, &mut self.verbs, &mut out);
                }
            }
            Turn::Closed(flow) => {
                if let Some(client) = self.client(flow) {
                    self.clients.remove(&client);
                    self.sessions.closed(client);
                }
            }
            Turn::Signal(Signal::Stop) => self.verbs.stop = true,
            Turn::Signal(Signal::Reload) => {
                self.sessions.log(control::socket::Weight::Always, "Reload requested by signal", &mut out);
            }
        }
        for output in out {
            match output {
                Output::Send(client, bytes) => {
                    if let Some(&flow) = self.clients.get(&client) {
                        self.net.send_flow(flow, &bytes);
                    }
                }
                Output::Close(client) => {
                    if let Some(flow) = self.clients.remove(&client) {
                        self.net.close_flow(flow, Closing::AtOnce);
                    }
                }
            }
        }
    }

    fn client(&self, flow: FlowId) -> Option<u64> {
        self.clients.iter().find(|(_, known)| **known == flow).map(|(client, _)| *client)
    }
}

/// The commands that concern the process itself.
struct Verbs {
    started: base::Instant,
    stop: bool,
}

impl Commands for Verbs {
    fn run(&mut self, call: Call<'_>) -> Answer {
        let words: Vec<&str> = call.line.split_whitespace().collect();
        match words.as_slice() {
            ["core", "waitfullybooted"] => Answer::ok("Asterisk has fully booted.\n"),
            ["core", "show", "version"] => Answer::ok(format!("{}\n", control::VERSION)),
            ["core", "show", "uptime"] => {
                Answer::ok(format!("System uptime: {} seconds\n", Clock.now().since(self.started).as_secs()))
            }
            ["core", "stop", "now" | "gracefully"] => {
                self.stop = true;
                Answer::ok("")
            }
            ["core", "set", "verbose", level] => match level.parse() {
                Ok(level) => {
                    call.view.verbose = level;
                    Answer::ok(format!("Console verbose is now {level}.\n"))
                }
                Err(_) => Answer::failed("Usage: core set verbose LEVEL\n"),
            },
            _ => Answer::unknown(call.line),
        }
    }

    fn complete(&mut self, line: &str) -> Vec<String> {
        const COMMANDS: [&str; 6] = [
            "core waitfullybooted",
            "core show version",
            "core show uptime",
            "core stop now",
            "core stop gracefully",
            "core set verbose",
        ];
        let start = line.rfind(' ').map_or(0, |blank| blank + 1);
        let fitting = COMMANDS.iter().filter(|command| command.starts_with(line));
        let words = fitting.filter_map(|command| command.get(start..)?.split(' ').next());
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }
}
