//! What the core keeps of AGI: commands of managers that wait for a channel, and what watchers are told.

use std::collections::VecDeque;
use std::future::Future;
use std::task::Poll;

use base::ChannelId;

use crate::{Chan, Core, Stop};

/// Commands that wait for one channel at most: far more than a client sends before it hears of the first.
const COMMANDS_MAX: usize = 64;

/// A command that a manager sent to a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgiCommand {
    /// Its line.
    pub line: String,
    /// What the manager calls it.
    pub id: String,
    /// What its text may touch.
    pub rights: dialplan::Rights,
}

/// Commands that wait, in order.
#[derive(Debug, Default)]
pub struct AgiQueue {
    waiting: VecDeque<AgiCommand>,
}

/// Why a command is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgiRefused {
    /// The channel is not in `AGI(agi:async)`.
    NotThere,
    /// Too many wait.
    Full,
}

/// What happened to a channel that is steered by AGI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgiChange {
    /// Managers may send commands; the environment, one variable a line.
    AsyncStart(String),
    /// A command of a manager was carried out.
    AsyncExec {
        /// What the manager calls it.
        id: String,
        /// The answer's lines.
        result: String,
    },
    /// Managers send no more.
    AsyncEnd,
    /// A command is being carried out.
    ExecStart {
        /// Its number.
        id: u64,
        /// Its line.
        command: String,
    },
    /// It is done.
    ExecEnd {
        /// Its number.
        id: u64,
        /// Its line.
        command: String,
        /// 200, 510, 511 or 520.
        code: i32,
        /// What it came to: `Success`, `Failure` and the like.
        result: &'static str,
    },
}

impl Core {
    /// Queues a manager's command for a channel.
    pub fn push_agi(&mut self, id: ChannelId, command: AgiCommand) -> Result<(), AgiRefused> {
        let channel = self.get_mut(id).ok_or(AgiRefused::NotThere)?;
        let waiter = channel.waiter;
        let queue = channel.agi.as_mut().ok_or(AgiRefused::NotThere)?;
        if queue.waiting.len() >= COMMANDS_MAX {
            return Err(AgiRefused::Full);
        }
        queue.waiting.push_back(command);
        self.woken.extend(waiter);
        Ok(())
    }
}

impl Chan {
    /// The next command of a manager; what happens on the channel meanwhile stays for whoever listens next.
    pub fn agi_command(&self) -> impl Future<Output = Result<AgiCommand, Stop>> + '_ {
        self.while_up(std::future::poll_fn(|_| {
            let next = self.with(|c| c.agi.as_mut().and_then(|queue| queue.waiting.pop_front()));
            next.ok().flatten().map_or(Poll::Pending, Poll::Ready)
        }))
    }
}
