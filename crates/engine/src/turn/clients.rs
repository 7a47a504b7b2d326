//! Clients of the control socket, the manager and HTTP: which connection each has, and what it is told.

use base::Instant;
use control::cli::Finished;
use control::socket::Output;
use io::net::{Closing, FlowId};

use super::Engine;
use crate::web::PIECE_WITHIN;

impl Engine {
    pub(super) fn new_client(&mut self, flow: FlowId) -> u64 {
        self.next_client += 1;
        self.clients.insert(self.next_client, flow);
        self.by_flow.insert(flow, self.next_client);
        self.next_client
    }
    pub(super) fn tell_watchers(&mut self, now: Instant) {
        let mut out = Vec::new();
        let notices = {
            let mut core = self.site.shard.core.borrow_mut();
            let is_watched = self.managers.manager.watching() || self.web.ari.is_watching();
            core.watched = is_watched || self.traces.is_some();
            std::mem::take(&mut core.notices)
        };
        self.want_reports();
        self.trace(&notices);
        if !notices.is_empty() {
            self.managers.manager.notices(&notices, &mut out);
            self.web.ari.notices(&notices, &mut out);
        }
        self.web.flush(&mut out);
        if self.managers.deadline().is_some_and(|at| at <= now) {
            self.managers.manager.due(now, &mut out);
        }
        self.managers.manager.flush(&mut out);
        self.answer_web(&mut out);
        let logged_in = self.managers.manager.authenticated();
        for client in &logged_in {
            if let Some(flow) = self.clients.get(client) {
                self.net.keep(*flow, None);
            }
        }
        if std::mem::take(&mut self.managers_changed) || !logged_in.is_empty() {
            self.commands.borrow_mut().set_connected(self.managers.manager.connected());
        }
        self.carry_out(out);
    }
    /// Has the media plane tell of RTCP while a manager or a capture server wants that.
    fn want_reports(&mut self) {
        let wanted = self.managers.manager.wants_reports() || self.site.sip.borrow().captures_reports();
        let mut media = self.site.media.borrow_mut();
        let tracing = media.tracing();
        if tracing.reports != wanted {
            media.trace(io::media::Tracing { reports: wanted, ..tracing });
        }
    }
    /// Requests over HTTP that the manager has answered.
    pub(super) fn answer_web(&mut self, out: &mut Vec<Output>) {
        for (client, answer) in self.managers.manager.take_web_answers() {
            self.web.http.answer(client, answer, out);
        }
    }
    /// Has files read that pages wait for. Who does not take a piece in time is let go.
    pub(super) fn ask_files(&mut self, now: Instant) {
        let snapshot = self.site.snapshot.borrow().clone();
        for client in self.web.ask_files(&snapshot) {
            if let Some(flow) = self.clients.get(&client) {
                self.net.keep(*flow, Some(now + PIECE_WITHIN));
            }
        }
    }
    pub(super) fn tell_consoles(&mut self) {
        let mut out = Vec::new();
        let finished = self.commands.borrow().finished();
        for Finished { session, text, status } in finished {
            self.sessions.finish(session, &text, status, &mut *self.commands.borrow_mut(), &mut out);
        }
        for session in self.commands.borrow().released() {
            self.sessions.release(session, &mut out);
        }
        {
            let mut attached = self.tee.attached().borrow_mut();
            attached.view = self.sessions.widest();
            for (weight, line) in attached.lines.drain(..) {
                self.sessions.log(weight, &line, &mut out);
            }
        }
        self.carry_out(out);
    }
    pub(super) fn carry_out(&mut self, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Send(client, bytes) => {
                    if let Some(flow) = self.clients.get(&client) {
                        self.net.send_flow(*flow, &bytes);
                    }
                }
                Output::Close(client) => {
                    if let Some(flow) = self.clients.remove(&client) {
                        self.by_flow.remove(&flow);
                        self.managers_changed = true;
                        self.net.close_flow(flow, Closing::Flush);
                    }
                }
            }
        }
    }
}
