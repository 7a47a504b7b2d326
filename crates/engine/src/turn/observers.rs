//! Servers that observe calls: one that gets copies of SIP messages, one that gets traces, one that gets figures.

use call::{Level, Notice};
use driver::sip::Correlation;
use store::Snapshot;
use store::config::hep::UuidType;

use super::Engine;
use crate::hep::{Capture, Told};
use crate::statsd::Statistics;
use crate::telemetry::Traces;

impl Engine {
    /// Sends copies of SIP messages where hep.conf says, from here on.
    pub(crate) fn take_capture(&mut self, snapshot: &Snapshot) {
        let wanted = snapshot.hep.as_ref().filter(|_| snapshot.modules.has_module("res_hep"));
        let wanted = wanted.filter(|_| snapshot.modules.has_module("res_hep_pjsip"));
        let reports = wanted.is_some() && snapshot.modules.has_module("res_hep_rtcp");
        self.site.sip.borrow_mut().set_report_capture(reports);
        if self.capture.as_ref().map(Capture::wanted) == wanted {
            return;
        }
        let correlation = wanted.map(|hep| match hep.general.uuid_type {
            UuidType::CallId => Correlation::CallId,
            UuidType::Channel => Correlation::Channel,
        });
        self.site.sip.borrow_mut().set_capture(correlation);
        let started = wanted.map(Capture::start).transpose();
        self.capture = started.unwrap_or_else(|why| {
            let line = format!("nothing is captured: {why}; raise ulimit -u");
            self.log(Level::Error, "res_hep", &line);
            None
        });
    }
    /// Traces calls as opentelemetry.conf says, from here on.
    pub(crate) fn take_traces(&mut self, snapshot: &Snapshot) {
        let wanted = snapshot.telemetry.as_ref();
        if self.traces.as_ref().map(Traces::wanted) == wanted {
            return;
        }
        let seed = self.site.shard.core.borrow_mut().random();
        let started = wanted.map(|wanted| Traces::start(wanted, seed)).transpose();
        self.traces = started.unwrap_or_else(|why| {
            let line = format!("calls are not traced: {why}; raise ulimit -u");
            self.log(Level::Error, "opentelemetry", &line);
            None
        });
    }
    /// Makes spans of what happened.
    pub(super) fn trace(&mut self, notices: &[Notice]) {
        let Some(traces) = &mut self.traces else { return };
        let (sent, lost) = traces.take_in(notices, &self.site);
        self.count(|counters| (counters.spans, counters.spans_lost) = (sent, lost));
    }
    /// Tells the server of statsd.conf from here on what StatsD() says.
    pub(crate) fn take_statistics(&mut self, snapshot: &Snapshot) {
        let wanted = snapshot.statsd.as_ref().filter(|_| snapshot.modules.has_module("res_statsd"));
        if self.statistics.as_ref().map(Statistics::wanted) == wanted {
            return;
        }
        let started = wanted.map(Statistics::start).transpose();
        self.statistics = started.unwrap_or_else(|why| {
            self.log(Level::Error, "res_statsd", &format!("nobody is told: {why}; raise ulimit -u"));
            None
        });
        self.site.shard.core.borrow_mut().statistics.is_told = self.statistics.is_some();
    }
    pub(super) fn send_statistics(&mut self) {
        let lines = std::mem::take(&mut self.site.shard.core.borrow_mut().statistics.lines);
        if let Some(statistics) = &self.statistics {
            lines.iter().for_each(|line| statistics.send(line));
        }
    }
    /// Hands copies of messages to whoever sends them on.
    pub(super) fn send_captured(&mut self) {
        let Some(capture) = &self.capture else { return };
        let (copies, reports) = {
            let mut sip = self.site.sip.borrow_mut();
            (sip.take_captured(), sip.take_captured_reports())
        };
        copies.into_iter().for_each(|copy| capture.send(Told::Message(copy)));
        reports.into_iter().for_each(|report| capture.send(Told::Report(report)));
        let (sent, lost) = capture.counts();
        self.count(|counters| (counters.captured, counters.capture_lost) = (sent, lost));
    }
}
