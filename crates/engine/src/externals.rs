//! External codecs as codecs.conf names them: started in threads of their own, kept over reloads, watched.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use base::FormatId;
use call::Level;
use codec::Coders;
use control::site::ExternalLine;
use io::external::{ExternalCodec, ExternalError, Limits, Peer};
use store::Snapshot;
use store::config::codecs::External;

/// One that runs.
struct Running {
    config: External,
    format: FormatId,
    codec: ExternalCodec,
    /// What was logged: whether it lives, and how often it was started again.
    told: (bool, u32),
}

type Started = (External, FormatId, Result<ExternalCodec, ExternalError>);

/// The external codecs of a running system.
#[derive(Default)]
pub(crate) struct Externals {
    running: Vec<Running>,
    /// Those that a reload named, while they start.
    starting: Option<Receiver<Started>>,
}

impl Externals {
    /// Starts those that codecs.conf names and waits for their greetings; what could not be started is said.
    pub(crate) fn start(snapshot: &Snapshot) -> (Self, Vec<String>) {
        let mut externals = Self::default();
        externals.begin(snapshot.codecs.external.clone(), || {});
        let mut said = Vec::new();
        if let Some(starting) = externals.starting.take() {
            for started in starting {
                said.extend(externals.join(started));
            }
        }
        (externals, said)
    }
    /// Takes what codecs.conf says after a reload: who is named as before goes on, who is named no more ends, and who is
    /// new is started, which `ring` tells.
    pub(crate) fn configure(&mut self, snapshot: &Snapshot, ring: impl Fn() + Send + Clone + 'static) {
        let wanted = &snapshot.codecs.external;
        let (kept, gone): (Vec<_>, Vec<_>) =
            self.running.drain(..).partition(|running| wanted.iter().any(|one| same(one, &running.config)));
        self.running = kept;
        if !gone.is_empty() {
            // Their ends are waited for, which is nothing for the loop.
            let ending = std::thread::Builder::new().name("codecs-end".into()).spawn(move || drop(gone));
            // Without a thread the closure, and they with it, was dropped here.
            drop(ending);
        }
        let known = |one: &External| self.running.iter().any(|running| same(one, &running.config));
        let new: Vec<External> = wanted.iter().filter(|one| !known(one)).cloned().collect();
        // Those of an earlier reload that have not greeted yet are forgotten, and end.
        self.starting = None;
        if !new.is_empty() {
            self.begin(new, ring);
        }
    }
    /// Starts all of these at once, each in a thread.
    fn begin(&mut self, configs: Vec<External>, ring: impl Fn() + Send + Clone + 'static) {
        let (done, starting) = channel();
        for config in configs {
            let Some(format) = config.id else { continue };
            let (done, ring) = (done.clone(), ring.clone());
            let start = move || {
                let outcome = start(&config, format);
                // Who does not wait for it any more lets it end.
                let _ = done.send((config, format, outcome));
                ring();
            };
            // A system without room for a thread goes on without the codec.
            let _ = std::thread::Builder::new().name("codec-start".into()).spawn(start);
        }
        self.starting = Some(starting);
    }
    /// Takes in those that have started since, with what is to be said of those that have not; `None` when there is nothing
    /// new.
    pub(crate) fn take_started(&mut self) -> Option<Vec<String>> {
        let started: Vec<Started> = self.starting.as_ref()?.try_iter().collect();
        (!started.is_empty()).then(|| started.into_iter().filter_map(|one| self.join(one)).collect())
    }
    fn join(&mut self, (config, format, outcome): Started) -> Option<String> {
        match outcome {
            Ok(codec) => {
                self.running.push(Running { config, format, codec, told: (true, 0) });
                None
            }
            Err(why) => Some(format!(
                "{}: {why}; {format} passes from leg to leg as it is until a reload starts it",
                config.origin.place
            )),
        }
    }
    /// How the system codes with these.
    pub(crate) fn coders(&self, snapshot: &Snapshot) -> Arc<Coders> {
        let lines = self
            .running
            .iter()
            .map(|one| (one.format, one.codec.lines().clone() as Arc<dyn codec::external::External>));
        Arc::new(Coders::new(snapshot.codecs.settings(), lines))
    }
    /// For those who show them.
    pub(crate) fn lines(&self) -> Vec<ExternalLine> {
        let line = |one: &Running| ExternalLine {
            name: one.config.origin.name.to_string(),
            format: one.format,
            source: source(&one.config).display().to_string(),
            lines: one.codec.lines().clone(),
        };
        self.running.iter().map(line).collect()
    }
    /// What became of them since the last look, for the log.
    pub(crate) fn news(&mut self) -> Vec<(Level, String)> {
        let mut news = Vec::new();
        for one in &mut self.running {
            let status = one.codec.status();
            let (alive, restarts) = (status.alive, status.restarts);
            if one.told == (alive, restarts) {
                continue;
            }
            one.told = (alive, restarts);
            let (name, format) = (&one.config.origin.name, one.format);
            news.push(match alive {
                true => (Level::Notice, format!("the external codec '{name}' was started again, {restarts} times so far")),
                false => (
                    Level::Error,
                    format!("the external codec '{name}' has ended; calls in {format} are silent until it is started again"),
                ),
            });
        }
        news
    }
}

fn start(config: &External, format: FormatId) -> Result<ExternalCodec, ExternalError> {
    let peer = match config.socket.as_os_str().is_empty() {
        true => Peer::Program { path: config.program.clone(), args: config.argument.clone() },
        false => Peer::Socket(config.socket.clone()),
    };
    let limits = Limits { answer: config.answer, restart: config.restart, ..Limits::default() };
    let name = &config.origin.name;
    let codec = ExternalCodec::start(name, format.name(), peer, limits)?;
    let (geometry, granule) = (codec.geometry(), format.granule());
    let fits = geometry.rate == format.rate().0 && geometry.samples == granule.samples;
    if fits && geometry.bytes <= granule.bytes {
        return Ok(codec);
    }
    Err(ExternalError::Format {
        name: name.to_string(),
        format: format.name(),
        said: geometry,
        rate: format.rate().0,
        samples: granule.samples,
        bytes: granule.bytes,
    })
}

fn source(config: &External) -> &Path {
    if config.socket.as_os_str().is_empty() { &config.program } else { &config.socket }
}

/// Whether two sections ask for the same process.
fn same(one: &External, other: &External) -> bool {
    let key = |one: &External| {
        (one.id, one.program.clone(), one.socket.clone(), one.argument.clone(), one.answer, one.restart)
    };
    one.origin.name == other.origin.name && key(one) == key(other)
}
