//! What is opened before the first turn, and what is said then.

use std::os::fd::AsFd as _;
use std::path::Path;

use call::{Level, Notice};
use conf::Findings;
use control::site::Down;
use io::clock::Clock;
use io::net::FlowKind;
use store::Snapshot;

use super::Engine;
use super::arrivals::{CALL_FILES, DATABASES, LINKS, MEASURED, MEDIA, NAMES, PAGES, SOUNDS};
use crate::callfiles::CallFiles;
use crate::databases::Shared;
use crate::secure::Wires;
use crate::start::StartError;

impl Engine {
    pub(crate) fn open_control(&mut self, socket: &Path, mode: u32) -> Result<(), StartError> {
        let fail = |why: &dyn std::fmt::Display, remedy: &str| StartError::Part {
            what: format!("control socket {}", socket.display()),
            why: why.to_string(),
            remedy: remedy.to_owned(),
        };
        self.net.listen_unix(socket, mode, FlowKind::Control).map_err(|why| fail(&why, why.remedy()))?;
        let watched = [
            (self.site.media.borrow().wake_fd().try_clone_to_owned(), MEDIA),
            (self.sounds_wake.as_fd().try_clone_to_owned(), SOUNDS),
            (self.names.borrow().client().as_fd().try_clone_to_owned(), NAMES),
            (self.links.borrow().reports().as_fd().try_clone_to_owned(), LINKS),
            (self.links.borrow().pages().as_fd().try_clone_to_owned(), PAGES),
        ];
        let measured = self.site.translation.over().map(|fd| (fd.try_clone_to_owned(), MEASURED));
        for (fd, token) in watched.into_iter().chain(measured) {
            let watching = fd.and_then(|fd| {
                self.net.watch(fd.as_fd(), token)?;
                // The reactor knows the descriptor by its number, so it stays open as long as the process.
                std::mem::forget(fd);
                Ok(())
            });
            watching.map_err(|why| fail(&why, "raise the limit on open files (ulimit -n)"))?;
        }
        Ok(())
    }
    /// Looks after the call files of the spool; without them, and said, when that cannot be.
    pub(crate) fn watch_call_files(&mut self, spool: &Path) {
        let started = CallFiles::start(spool).and_then(|files| {
            self.net.watch(files.wake().as_fd(), CALL_FILES)?;
            Ok(files)
        });
        match started {
            Ok(files) => self.call_files = Some(files),
            Err(why) => {
                let line = format!("call files are not looked for in {}: {why}", spool.display());
                self.log(Level::Error, "pbx_spool", &line);
            }
        }
    }
    /// Wakes for what databases answer.
    pub(crate) fn watch_databases(&mut self, databases: &Shared) -> std::io::Result<()> {
        let fd = databases.borrow().as_fd().try_clone_to_owned()?;
        self.net.watch(fd.as_fd(), DATABASES)?;
        // The reactor knows the descriptor by its number, so it stays open as long as the process.
        std::mem::forget(fd);
        Ok(())
    }
    /// What cannot be opened is off, which the log says; each reload tries it again.
    pub(crate) fn open_manager(&mut self, snapshot: &Snapshot, wires: &Wires) {
        let shut = self.managers.listen(&mut self.net, snapshot, wires);
        let shut = shut.into_iter().chain(self.web.listen(&mut self.net, snapshot, wires));
        let shard = self.site.shard.clone();
        shut.for_each(|shut| shut.log(&shard));
        self.note_down();
    }
    /// Notes which listeners are off, for those who look.
    pub(crate) fn note_down(&self) {
        let (http, https) = self.web.down(&self.site.snapshot.borrow());
        *self.site.down.borrow_mut() = Down { transports: self.listeners.down(), http, https };
    }
    /// What is worth saying at the start.
    pub(crate) fn say(
        &mut self,
        findings: &Findings,
        warnings: &[io::media::Warning],
        (restored, watching): (usize, usize),
    ) {
        *self.loader.errors.borrow_mut() = crate::reload::errors(findings);
        *self.loader.told.borrow_mut() = findings.iter().map(crate::reload::without_line).collect();
        for finding in findings.iter() {
            let level = match finding.level {
                conf::Level::Error => Level::Error,
                conf::Level::Warning => Level::Warning,
                conf::Level::Note => Level::Verbose(1),
            };
            self.log(level, "config", &crate::reload::one_line(finding));
        }
        warnings.iter().for_each(|warning| self.log(Level::Warning, "media", &warning.0));
        let moved = {
            let media = self.site.media.borrow();
            format!("packets are moved by {}: {}", media.io().name(), media.io().reason())
        };
        self.log(Level::Verbose(1), "media", &moved);
        let lanes = self.site.media.borrow().lanes();
        let text = format!(
            "codecs run in {} lanes, {} streams side by side; a frame waits {} ms for company at most",
            lanes.level,
            lanes.level.lanes(),
            lanes.wait_ms
        );
        self.log(Level::Verbose(1), "media", &text);
        for (format, why) in io::media::missing_libraries() {
            let text = format!("{format} can only be passed through: {why}");
            self.log(Level::Verbose(1), "media", &text);
        }
        if restored > 0 {
            self.log(Level::Notice, "registrations", &format!("{restored} registrations were read back"));
        }
        if watching > 0 {
            self.log(Level::Notice, "subscriptions", &format!("{watching} subscriptions were read back"));
        }
        let now = Clock.now();
        self.turn_machines(now);
        self.site.shard.core.borrow_mut().notice(|_| Some(Notice::FullyBooted));
        self.log(Level::Verbose(1), "strowger", "Asterisk Ready.");
    }
}
