//! Callers and callees by the thousand on one core, with audio both ways that is checked: `strowger load`.
//!
//! One thread does everything: SIP by the project's own stack, packets of sound that was coded beforehand on a wheel of
//! milliseconds, and a look at what has arrived several times in each of them. Packets move by the same back-ends as the
//! media plane's (`io::media`): with privileges all ports of all calls are brought to one descriptor.
//!
//! Each call speaks one of sixteen tones, and calls are listened to in turn. What does not depend on the clock (plan,
//! tones, reception, report) knows nothing of threads and sockets.
#![forbid(unsafe_code)]

mod call;
mod check;
pub mod command;
mod generator;
mod histogram;
mod iax;
mod plan;
mod reception;
mod report;
mod signalling;
mod tone;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::io::media::{Interfaces, Io, IoError, Wire, settle_thread};

pub use generator::Progress;
pub use histogram::Histogram;
pub use iax::{
    CallReport, CallerPlan, Flood, IaxCallers, RegistrationPlan, RegistrationReport, Registrations,
};
pub use plan::{Hear, Media, Plan};
pub use reception::{Arrivals, Reception};
pub use report::{Own, Report};
pub use tone::hertz;

use generator::{Ask, Generator};
use signalling::Signalling;

/// Why a run cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The back-end that was asked for is not to be had.
    #[error(transparent)]
    BackEnd(#[from] IoError),
    /// The address or port for SIP.
    #[error("cannot listen for SIP on {address}: {error}")]
    Listen {
        /// Where.
        address: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// A descriptor or a thread was refused.
    #[error("the generator cannot start: {0}")]
    System(#[from] io::Error),
}

impl LoadError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::BackEnd(error) => error.remedy(),
            Self::Listen { .. } => {
                "name an address of this machine with --local, and a port that is free with --sip-port"
            }
            Self::System(_) => "raise the limits on open files and threads (ulimit -n, ulimit -u)",
        }
    }
}

/// Callers and callees at work. They are gone, without another word, when this is dropped.
#[derive(Debug)]
pub struct Load {
    asks: Sender<Ask>,
    progress: Arc<Progress>,
    sip: SocketAddr,
    notes: Vec<String>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    /// Begins, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// When something that the plan asks for is not to be had.
    pub fn start(plan: Plan) -> Result<Self, LoadError> {
        let (asks, asked) = channel();
        let (tell, told) = channel();
        let progress = Arc::new(Progress::default());
        let shown = progress.clone();
        let body = move || live(plan, shown, &asked, &tell);
        let thread = std::thread::Builder::new().name("load".into()).spawn(body)?;
        let gone = |_| io::Error::other("its thread has ended");
        let (sip, notes) = told.recv().map_err(gone)??;
        Ok(Self { asks, progress, sip, notes, thread: Some(thread) })
    }

    /// Where callees are reached.
    pub const fn sip(&self) -> SocketAddr {
        self.sip
    }

    /// What the operator ought to know of the start.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How it stands.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Counts from here on; what was counted before is forgotten.
    pub fn begin_window(&self) {
        self.ask(Ask::Begin);
    }

    /// What was counted since the start, or since [`Self::begin_window`].
    pub fn report(&self) -> Report {
        let (reply, answer) = channel();
        self.ask(Ask::Count(reply));
        answer.recv().unwrap_or_default()
    }

    /// Counts for a while.
    pub fn window(&self, length: Duration) -> Report {
        self.begin_window();
        std::thread::sleep(length);
        self.report()
    }

    /// Has every call send from the port of another one, so that a program that judges senders drops all of it where it
    /// enters; or has them send as themselves again.
    pub fn stray(&self, on: bool) {
        self.ask(Ask::Stray(on));
    }

    /// Begins to end all calls, so many a second; no new ones begin.
    pub fn hang_up(&self, rate: f64) {
        self.ask(Ask::HangUp(rate));
    }

    fn ask(&self, ask: Ask) {
        // A thread that has panicked says so when this is dropped.
        let _ = self.asks.send(ask);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.ask(Ask::Stop);
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

type Started = Result<(SocketAddr, Vec<String>), LoadError>;

/// The thread: sets everything up where it lives, tells how that went, and goes on.
fn live(plan: Plan, progress: Arc<Progress>, asked: &Receiver<Ask>, tell: &Sender<Started>) {
    match set_up(plan, progress) {
        Ok((generator, sip, notes)) => {
            // Nobody who started it can have gone: that one waits.
            let _ = tell.send(Ok((sip, notes)));
            generator.run(asked);
        }
        Err(error) => {
            let _ = tell.send(Err(error));
        }
    }
}

fn set_up(plan: Plan, progress: Arc<Progress>) -> Result<(Generator, SocketAddr, Vec<String>), LoadError> {
    let mut notes = Vec::new();
    let interfaces = Interfaces { names: &plan.interfaces, kernel_relay: false };
    let io = Io::choose(plan.io, interfaces, Some(1))?;
    let wire = Wire::new(io, plan.ports)?;
    if let Err(error) = settle_thread(plan.processor, plan.real_time) {
        notes.push(format!(
            "neither a processor of its own nor real-time priority for the generator: {error}; what is measured while others \
             work is less sure (start as root, or grant CAP_SYS_NICE)"
        ));
    }
    // Tags need not be secret in a test, only different from run to run.
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let seed = time ^ u128::from(std::process::id()) << 64;
    let listen = |error| LoadError::Listen {
        address: format!("{}:{}", plan.local.first().map_or("-".into(), ToString::to_string), plan.sip_port),
        error,
    };
    let signalling = Signalling::new(&plan, seed).map_err(listen)?;
    let sip = signalling.local()?;
    Ok((Generator::new(plan, wire, signalling, seed as u64, progress), sip, notes))
}
