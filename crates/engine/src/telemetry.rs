//! Traces of calls: what watchers are told, as spans of OpenTelemetry.
//!
//! A call is a trace: all channels of one LINKEDID. Its root span lasts as long as any of them; below it stands a span for
//! each channel, and below that one for each application it runs, for each leg that it dials and for each bridge that it is
//! in. The machine takes notices and knows neither socket nor clock; [`export`] sends what is finished.

pub(crate) mod export;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use base::{BridgeId, Cause};
use call::{BridgeSnapshot, ChanState, Notice, Snapshot};
use control::site::Site;
use store::config::telemetry::{Telemetry, TelemetryGeneral};

use export::Exporter;

/// Spans that one channel may have. A dialplan that runs in a circle would never cease to make them.
const SPANS_OF_CHANNEL_MAX: u32 = 1_000;

/// Part of a call, from its begin to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    /// The trace: one for each call.
    pub(crate) trace: u128,
    /// Its number.
    pub(crate) id: u64,
    /// The span that it is a part of; 0 for the call itself.
    pub(crate) parent: u64,
    /// What it is.
    pub(crate) name: String,
    /// Begin and end, microseconds since the epoch.
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// What is known of it, in the field's words.
    pub(crate) attributes: Vec<(&'static str, String)>,
    /// What happened meanwhile, and when.
    pub(crate) events: Vec<(i64, &'static str)>,
    /// It failed.
    pub(crate) failed: bool,
}

/// Tracing, as opentelemetry.conf wants it.
pub(crate) struct Traces {
    wanted: Telemetry,
    tracer: Tracer,
    exporter: Exporter,
}

impl Traces {
    /// Begins to trace.
    pub(crate) fn start(wanted: &Telemetry, seed: u64) -> std::io::Result<Self> {
        let tracer = Tracer::new(&wanted.general, seed);
        Ok(Self { wanted: wanted.clone(), tracer, exporter: Exporter::start(wanted)? })
    }
    /// What it was started for.
    pub(crate) fn wanted(&self) -> &Telemetry {
        &self.wanted
    }
    /// Makes spans of what happened in this turn, and hands those over that are finished. How many spans the collector took,
    /// and how many were lost.
    pub(crate) fn take_in(&mut self, notices: &[Notice], site: &Site) -> (u64, u64) {
        if !notices.is_empty() {
            let now = site.shard.core.borrow().services.wall.now_micros();
            notices.iter().for_each(|notice| self.tracer.notice(notice, now));
            self.tracer.take_finished().into_iter().for_each(|span| self.exporter.send(span));
            self.exporter.lost(self.tracer.take_dropped());
        }
        self.exporter.counts()
    }
    /// What keeps spans from the collector.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.exporter.trouble()
    }
    /// Sends what waits, for so long at most.
    pub(crate) fn finish(&mut self, within: Duration) {
        self.exporter.finish(within);
    }
}

/// What is traced, and how much is told of it.
#[derive(Debug, Clone)]
struct Wanted {
    sample: u32,
    details: bool,
    omitted: Vec<String>,
}

/// A call that is traced: its root span, and how many channels it has.
struct Call {
    span: Span,
    channels: u32,
}

/// A channel of a call that is traced.
struct Leg {
    linkedid: Rc<str>,
    span: Span,
    application: Option<Span>,
    bridge: Option<(BridgeId, Span)>,
    /// It is being called; the span belongs to whoever calls it.
    dial: Option<Span>,
    spans: u32,
}

/// Makes spans of notices.
pub(crate) struct Tracer {
    wanted: Wanted,
    calls: HashMap<Rc<str>, Call>,
    legs: HashMap<Rc<str>, Leg>,
    random: base::Random,
    finished: Vec<Span>,
    /// Spans that were not made because their channel had so many.
    dropped: u64,
}

impl Tracer {
    /// Traces calls from here on; ids come from `seed`.
    pub(crate) fn new(general: &TelemetryGeneral, seed: u64) -> Self {
        let omitted = general.omit_applications.iter().map(|name| name.to_string()).collect();
        let wanted = Wanted { sample: general.sample, details: general.details, omitted };
        Self {
            wanted,
            calls: HashMap::new(),
            legs: HashMap::new(),
            random: base::Random::new(seed),
            finished: Vec::new(),
            dropped: 0,
        }
    }
    /// Spans that are finished since this was last asked.
    pub(crate) fn take_finished(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.finished)
    }
    /// Spans that were not made since this was last asked.
    pub(crate) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
    /// Takes in what happened at `now`, microseconds since the epoch.
    pub(crate) fn notice(&mut self, notice: &Notice, now: i64) {
        match notice {
            Notice::NewChannel(of) => self.begin(of, now),
            Notice::NewState(of) => self.state(of, now),
            Notice::NewExten { channel, application, data } => {
                self.application(channel, application, data, now);
            }
            Notice::DialBegin { caller, dest, dial_string } => {
                self.dial(caller.as_ref(), dest, dial_string, now);
            }
            Notice::DialEnd { dest, status, .. } => self.dialled(dest, status, now),
            Notice::BridgeEnter { bridge, channel, .. } => self.bridged(bridge, channel, now),
            Notice::BridgeLeave { bridge, channel, .. } => self.unbridged(bridge.id, channel, now),
            Notice::Hold { channel: of, .. } => self.event(of, "hold", now),
            Notice::Unhold(of) => self.event(of, "unhold", now),
            Notice::Hangup { channel, cause } => self.end(channel, *cause, now),
            // What else there is to tell is no part of a call, or lasts no time.
            _ => {}
        }
    }

    /// Ids have to differ, not to be secret; zero stands for no span.
    fn draw(&mut self) -> u64 {
        self.random.bits().max(1)
    }
    fn span(&mut self, trace: u128, parent: u64, name: &str, now: i64) -> Span {
        Span {
            trace,
            id: self.draw(),
            parent,
            name: name.to_owned(),
            begin: now,
            end: now,
            attributes: Vec::new(),
            events: Vec::new(),
            failed: false,
        }
    }
    fn finish(&mut self, span: Option<Span>, now: i64) {
        if let Some(mut span) = span {
            span.end = now;
            self.finished.push(span);
        }
    }

    fn begin(&mut self, of: &Snapshot, now: i64) {
        if !self.calls.contains_key(&of.linkedid) {
            // The second channel of a call that is not traced is not its first.
            let is_first = of.linkedid == of.uniqueid;
            if !is_first || self.draw() % 100 >= u64::from(self.wanted.sample) {
                return;
            }
            let trace = u128::from(self.draw()) << 64 | u128::from(self.draw());
            let mut span = self.span(trace, 0, "call", now);
            span.attributes.push(("linkedid", of.linkedid.to_string()));
            self.calls.insert(of.linkedid.clone(), Call { span, channels: 0 });
        }
        let Some(call) = self.calls.get_mut(&of.linkedid) else { return };
        call.channels += 1;
        let (trace, parent) = (call.span.trace, call.span.id);
        let mut span = self.span(trace, parent, "channel", now);
        span.attributes.push(("channel", of.name.to_string()));
        span.attributes.push(("uniqueid", of.uniqueid.to_string()));
        span.attributes.push(("linkedid", of.linkedid.to_string()));
        let technology = of.name.split_once('/').map_or("", |(technology, _)| technology);
        span.attributes.push(("channeltype", technology.to_owned()));
        self.place(&mut span, of);
        if self.wanted.details {
            span.attributes.push(("calleridnum", of.caller.number().to_owned()));
        }
        let linkedid = of.linkedid.clone();
        let leg = Leg { linkedid, span, application: None, bridge: None, dial: None, spans: 0 };
        self.legs.insert(of.uniqueid.clone(), leg);
    }
    /// Where in the dialplan a channel is.
    fn place(&self, span: &mut Span, of: &Snapshot) {
        span.attributes.push(("context", of.location.context.clone()));
        if self.wanted.details {
            span.attributes.push(("exten", of.location.exten.clone()));
        }
    }
    /// A span below that of a channel; `None` when it is not traced, or has too many.
    fn child(&mut self, uniqueid: &Rc<str>, name: &str, now: i64) -> Option<Span> {
        let leg = self.legs.get_mut(uniqueid)?;
        leg.spans += 1;
        if leg.spans > SPANS_OF_CHANNEL_MAX {
            self.dropped += 1;
            return None;
        }
        let (trace, parent) = (leg.span.trace, leg.span.id);
        Some(self.span(trace, parent, name, now))
    }
    fn event(&mut self, of: &Snapshot, name: &'static str, now: i64) {
        if let Some(leg) = self.legs.get_mut(&of.uniqueid) {
            leg.span.events.push((now, name));
        }
    }
    fn state(&mut self, of: &Snapshot, now: i64) {
        match of.state {
            ChanState::Ringing => self.event(of, "ringing", now),
            ChanState::Up => self.event(of, "up", now),
            _ => {}
        }
    }
    fn application(&mut self, of: &Snapshot, application: &str, data: &str, now: i64) {
        let before = self.legs.get_mut(&of.uniqueid).and_then(|leg| leg.application.take());
        self.finish(before, now);
        if self.wanted.omitted.iter().any(|omitted| omitted.eq_ignore_ascii_case(application)) {
            return;
        }
        let Some(mut span) = self.child(&of.uniqueid, application, now) else { return };
        span.attributes.push(("channel", of.name.to_string()));
        span.attributes.push(("application", application.to_owned()));
        self.place(&mut span, of);
        span.attributes.push(("priority", of.location.priority.to_string()));
        if self.wanted.details {
            span.attributes.push(("appdata", data.to_owned()));
        }
        if let Some(leg) = self.legs.get_mut(&of.uniqueid) {
            leg.application = Some(span);
        }
    }
    fn dial(&mut self, caller: Option<&Snapshot>, dest: &Snapshot, dial_string: &str, now: i64) {
        // Below what the caller runs, which is the Dial; an originated call has no caller.
        let by = caller.map_or(&dest.uniqueid, |caller| &caller.uniqueid);
        let Some(mut span) = self.child(by, "dial", now) else { return };
        if let Some(application) = self.legs.get(by).and_then(|leg| leg.application.as_ref()) {
            span.parent = application.id;
        }
        span.attributes.push(("destchannel", dest.name.to_string()));
        if self.wanted.details {
            span.attributes.push(("dialstring", dial_string.to_owned()));
        }
        match self.legs.get_mut(&dest.uniqueid) {
            Some(leg) => leg.dial = Some(span),
            // The leg belongs to a call that is not traced.
            None => self.finish(Some(span), now),
        }
    }
    fn dialled(&mut self, dest: &Snapshot, status: &str, now: i64) {
        let dial = self.legs.get_mut(&dest.uniqueid).and_then(|leg| leg.dial.take());
        let dial = dial.map(|mut span| {
            span.attributes.push(("dialstatus", status.to_owned()));
            span.failed = matches!(status, "CONGESTION" | "CHANUNAVAIL" | "INVALIDARGS");
            span
        });
        self.finish(dial, now);
    }
    fn bridged(&mut self, bridge: &BridgeSnapshot, of: &Snapshot, now: i64) {
        let before = self.legs.get_mut(&of.uniqueid).and_then(|leg| leg.bridge.take());
        self.finish(before.map(|(_, span)| span), now);
        let Some(mut span) = self.child(&of.uniqueid, "bridge", now) else { return };
        span.attributes.push(("channel", of.name.to_string()));
        span.attributes.push(("bridgeuniqueid", bridge.uid.to_string()));
        if let Some(leg) = self.legs.get_mut(&of.uniqueid) {
            leg.bridge = Some((bridge.id, span));
        }
    }
    fn unbridged(&mut self, bridge: BridgeId, of: &Snapshot, now: i64) {
        let Some(leg) = self.legs.get_mut(&of.uniqueid) else { return };
        let span = leg.bridge.take_if(|(known, _)| *known == bridge).map(|(_, span)| span);
        self.finish(span, now);
    }
    fn end(&mut self, of: &Snapshot, cause: Cause, now: i64) {
        let Some(Leg { linkedid, mut span, application, bridge, dial, .. }) = self.legs.remove(&of.uniqueid)
        else {
            return;
        };
        for part in [dial, bridge.map(|(_, span)| span), application] {
            self.finish(part, now);
        }
        let failed = has_failed(cause);
        span.attributes.push(("hangupcause", cause.0.to_string()));
        span.attributes.push(("cause-txt", cause.text().to_owned()));
        span.failed = failed;
        self.finish(Some(span), now);
        let Some(call) = self.calls.get_mut(&linkedid) else { return };
        call.channels -= 1;
        // The call failed if the channel that it began with did.
        if linkedid == of.uniqueid {
            call.span.failed = failed;
            call.span.attributes.push(("hangupcause", cause.0.to_string()));
        }
        if call.channels == 0 {
            let call = self.calls.remove(&linkedid);
            self.finish(call.map(|call| call.span), now);
        }
    }
}

/// Whether a call that ends so has failed: all but the classes "normal event" of Q.850 (table 1), which busy and no answer
/// belong to as well.
fn has_failed(cause: Cause) -> bool {
    cause.0 >= 32
}
