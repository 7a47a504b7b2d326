//! `PJSIP/…` channels: translates between the SIP machines of crate `sip` and the call core.
//!
//! It decides who may do what (identification, password, admission), which formats are agreed, and what a SIP message
//! means for a channel. It knows no dialplan application and no socket: bytes come in through [`SipDriver::receive`]
//! and leave through [`SipDriver::take_sends`].

mod agree;
mod ask;
mod back;
mod charge;
mod charged;
mod codecs;
mod config;
mod direct;
mod elsewhere;
mod events;
mod fax;
mod flows;
mod gate;
mod history;
mod identify;
mod identity;
mod inbound;
mod leg;
mod lookup;
mod message;
mod names;
mod older;
mod outbound;
mod outside;
mod passed;
mod present;
mod proofs;
mod publish;
mod qualify;
mod record;
mod refer;
mod referring;
mod refusal;
mod register;
mod session;
mod show;
mod stir;
mod strangers;
mod tech;
mod timers;
mod trunk;
mod unproved;
mod watch;
mod ways;

use core::net::{IpAddr, SocketAddr};
use std::collections::HashMap;
use std::rc::Rc;

use ::sip::stack::{ClientId, DialogId, Event, Flow, Output, Send, Stack, TransportId};
use base::dns::{Answer, Kind, Question};
use base::{ChannelId, Instant};
use call::{Core, Location, Notice};

pub use self::stir::CertificateWant;
pub use ::sip::sdp::Feedback;
pub use ::stir::CERTIFICATE_BYTES_MAX;
pub use codecs::{CodecPrefs, Codecs, Operation};
pub use config::{
    Access, Aor, Auth, Bind, Config, Dtmf, Endpoint, Exchange, Filter, Identify, IdentifyBy,
    InboundPublication, Match, OneTouch, OutboundPublish, Proof, Redirect, Registration, Rel100,
    ResourceList, Trace, Traced, Watching,
};
pub use direct::{DirectMedia, Glare};
pub use fax::FaxSettings;
pub use history::{
    Captured, CapturedReport, Correlation, Gist, HISTORY_BYTES_MAX, HISTORY_MAX, Heard, History,
};
pub use lookup::{Directory, Learned, Lookup};
pub use message::TEXT_BYTES_MAX;
pub use outside::{NotifyTo, Refer};
pub use passed::{AUDIO_STREAMS_MAX, VIDEO_STREAMS_MAX, VideoSettings};
pub use register::{Binding, Change, Journal};
pub use show::{AorRow, ContactRow, ContactState, EndpointRow};
pub use strangers::Patience;
pub use trunk::RegistrationRow;
pub use watch::{KeptSubscription, PER_ENDPOINT_MAX, SubscriptionChange, SubscriptionRow};
pub use ways::BINDS_MAX;

use gate::Gatekeeper;
use leg::{Leg, Legs};
use names::Names;
use proofs::Proofs;
use qualify::Qualify;
use register::Registrations;
use ways::Ways;

/// Methods we serve.
const ALLOW: &str = "OPTIONS, REGISTER, SUBSCRIBE, NOTIFY, PUBLISH, INVITE, ACK, BYE, CANCEL, UPDATE, PRACK, MESSAGE, INFO, REFER";

/// The same in calls of endpoints without `100rel`.
const ALLOW_WITHOUT_PRACK: &str =
    "OPTIONS, REGISTER, SUBSCRIBE, NOTIFY, PUBLISH, INVITE, ACK, BYE, CANCEL, UPDATE, MESSAGE, INFO, REFER";

/// Extensions outside calls, where no endpoint has chosen.
const SUPPORTED: &str = "100rel, timer, replaces, norefersub";

/// Packages that can be subscribed to here (RFC 6665 §8.2.2).
const ALLOW_EVENTS: &str = "message-summary, presence, dialog, refer";

/// Extensions that every call supports, beside those that endpoints choose.
const EXTENSIONS: &[&str] = &["replaces", "norefersub"];

/// Bodies we read.
const ACCEPT: &str = "application/sdp, multipart/mixed, application/dtmf-relay, application/dtmf, application/media_control+xml, \
     application/vnd.etsi.aoc+xml, text/plain";

/// Documents that OPTIONS lists: those that are read here and those that subscriptions give.
const ACCEPT_ALL: &str = "application/sdp, application/simple-message-summary, application/pidf+xml, application/xpidf+xml, \
     application/cpim-pidf+xml, application/dialog-info+xml, application/simple-message-summary, application/pidf+xml, \
     application/dialog-info+xml, message/sipfrag;version=2.0";

/// What an answer to OPTIONS says (RFC 3261 §11.2).
const ABILITIES: [(&str, &str); 5] = [
    ("Accept", ACCEPT_ALL),
    ("Allow", ALLOW),
    ("Supported", SUPPORTED),
    ("Accept-Encoding", "identity"),
    ("Accept-Language", "en"),
];

/// What an INVITE has begun so far and nobody else would undo.
#[derive(Default)]
struct Begun {
    dialog: Option<DialogId>,
    channel: Option<ChannelId>,
    stream: Option<base::StreamId>,
}

/// At which level the totals of a stream are told when its call has ended.
const TOTALS_LEVEL: call::Level = call::Level::Debug(1);

/// Peers traced at once: more than anybody reads.
const TRACED_MAX: usize = 64;

/// The driver. One per shard.
pub struct SipDriver {
    config: Rc<Config>,
    stack: Stack,
    gate: Gatekeeper,
    strangers: strangers::Strangers,
    /// Who sends what cannot be read.
    unread: strangers::Strangers,
    unproved: unproved::Unproved,
    /// Whether OPTIONS without credentials are answered to everybody, because they are to some who are known by a name.
    open_options: bool,
    legs: Legs,
    registrations: Registrations,
    qualify: Qualify,
    watchers: watch::Watchers,
    referrals: refer::Referrals,
    /// Channels whose dialplans messages run.
    running: Vec<ChannelId>,
    /// Requests outside calls that may be challenged.
    outside: HashMap<ClientId, outside::Sent>,
    requests: HashMap<ClientId, qualify::Probe>,
    trunks: trunk::Trunks,
    publishing: publish::Publishing,
    faxes_asked: fax::FaxesAsked,
    /// Legs whose media may have to go elsewhere than it goes.
    unsettled: Vec<u64>,
    sessions: timers::Sessions,
    /// UPDATEs of ours without an answer.
    updates: HashMap<ClientId, DialogId>,
    out: Vec<Output>,
    sends: Vec<Send>,
    started: Vec<(ChannelId, Location)>,
    ways: Ways,
    names: Names,
    lookups: lookup::Lookups,
    proofs: Proofs,
    /// Whose callers are being verified.
    verifying: self::stir::Verifying,
    tech_index: usize,
    /// Streams of channels that went, by the channel's name, until the media plane has told their totals.
    parting: HashMap<base::StreamId, Rc<str>>,
    /// Calls of ours whose BYE is out and may be challenged.
    leaving: HashMap<DialogId, Rc<Endpoint>>,
    /// Channels that went, whose BYE is out and whose charge its answer may tell.
    charging: HashMap<DialogId, Box<call::Snapshot>>,
    /// What the DNS had not said when a way was looked for last.
    awaited: Option<Question>,
    /// Calls that wait for the DNS.
    waiting: Vec<outbound::Waiting>,
    /// Responses that do.
    stranded: Vec<back::Stranded>,
    in_hand: Begun,
    trace: Trace,
    history: History,
    /// Copies of messages since they were taken last; `None` when nobody wants them.
    captured: Option<Vec<Captured>>,
    correlation: Correlation,
    /// What RTCP said, while somebody wants that.
    captured_reports: Option<Vec<CapturedReport>>,
    /// What endpoints say of `force_rport`: challenges obey all of it, whomever they ask for.
    challenge_ports: [Option<bool>; 2],
    /// How many of `sends` have been traced.
    traced: usize,
}

impl SipDriver {
    /// A driver with `config`. `seed` and `key` are secret randomness; `route` tells the local address used towards a peer.
    pub fn new(
        config: Config,
        seed: u128,
        key: [u8; 32],
        route: impl Fn(IpAddr) -> Option<IpAddr> + 'static,
    ) -> Self {
        let stack = Stack::new(stack_config(&config), seed);
        let mut driver = Self {
            config: Rc::new(Config::default()),
            stack,
            gate: Gatekeeper::new(key),
            strangers: strangers::Strangers::default(),
            unread: strangers::Strangers::default(),
            unproved: unproved::Unproved::default(),
            open_options: false,
            legs: Legs::default(),
            registrations: Registrations::new(seed.rotate_left(64)),
            qualify: Qualify::default(),
            watchers: watch::Watchers::default(),
            referrals: refer::Referrals::default(),
            running: Vec::new(),
            outside: HashMap::new(),
            requests: HashMap::new(),
            trunks: trunk::Trunks::default(),
            publishing: publish::Publishing::new(seed.rotate_left(96)),
            faxes_asked: fax::FaxesAsked::new(),
            unsettled: Vec::new(),
            sessions: timers::Sessions::default(),
            updates: HashMap::new(),
            out: Vec::new(),
            sends: Vec::new(),
            started: Vec::new(),
            ways: Ways::new(route),
            names: Names::new(seed as u64),
            lookups: lookup::Lookups::default(),
            proofs: Proofs::default(),
            verifying: Default::default(),
            tech_index: 0,
            parting: HashMap::new(),
            leaving: HashMap::new(),
            charging: HashMap::new(),
            awaited: None,
            waiting: Vec::new(),
            stranded: Vec::new(),
            in_hand: Begun::default(),
            trace: Trace::Off,
            history: History::default(),
            captured: None,
            correlation: Correlation::CallId,
            captured_reports: None,
            challenge_ports: [Some(true), None],
            traced: 0,
        };
        driver.configure(config, Instant::ZERO);
        driver
    }
    /// The process begins to turn: what is spread over its first moments is counted from here.
    pub fn starts_at(&mut self, now: Instant) {
        self.qualify.configure(&self.config, &self.registrations, now);
    }
    /// The index that [`Shard::add_tech`](call::Shard::add_tech) gave this driver.
    pub fn set_tech_index(&mut self, index: usize) {
        self.tech_index = index;
    }
    /// Takes a new configuration. Calls and registrations go on; AORs that are gone lose theirs.
    pub fn configure(&mut self, mut config: Config, now: Instant) {
        config.multi_domain = config.has_domains();
        self.ways.configure(&config, &mut self.stack);
        if self.config.trace != config.trace {
            self.trace.clone_from(&config.trace);
        }
        let said = |force: bool| config.endpoints.values().any(|endpoint| endpoint.force_rport == force);
        let obeyed =
            |force: bool| Some(force).filter(|_| said(force) || force && config.endpoints.is_empty());
        self.challenge_ports = [obeyed(true), obeyed(false)];
        let is_open = |endpoint: &Rc<Endpoint>| endpoint.opens_options();
        self.open_options = config.endpoints.values().any(is_open);
        self.gate.configure(&config);
        self.stack.set_config(config.timers, config.user_agent.clone(), config.max_forwards);
        if !Rc::ptr_eq(&config.stir, &self.config.stir) {
            self.verifying.configure(&config, now);
        }
        self.config = Rc::new(config);
        self.registrations.configure(&self.config, now);
        self.qualify.configure(&self.config, &self.registrations, now);
        self.trunks.configure(&self.config, now);
        self.publishing.configure(&self.config);
        self.foresee(now);
        self.watchers.configure(&self.config);
    }
    /// The configuration in force.
    pub fn config(&self) -> &Rc<Config> {
        &self.config
    }

    /// Takes in one datagram or one framed message.
    pub fn receive(&mut self, core: &mut Core, source: Flow, bytes: &[u8]) {
        if self.is_observed() {
            self.observe(core, false, source, bytes);
        }
        if !self.unproved.is_empty() && !source.protocol.is_reliable() {
            self.unproved.received(source.remote.ip(), bytes.len(), core.now);
        }
        let source = self.ways.inward(&self.config, &mut self.stack, source);
        self.turn_stack(core, |stack, now, out| stack.receive(source, bytes, now, out));
    }
    /// Whether something came since the last time for which a person waits ([`Stack::take_hurries`]).
    pub const fn take_hurries(&mut self) -> bool {
        self.stack.take_hurries()
    }
    /// Wakes what is due.
    pub fn due(&mut self, core: &mut Core) {
        self.turn_stack(core, Stack::due);
        self.expire_registrations(core);
        self.show_all_present(core);
        self.probe_due(core);
        self.trunks_due(core);
        self.sessions_due(core);
        self.names_due(core);
        self.tell_batches(core);
    }
    /// When [`due`](Self::due) next wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        let own = [
            self.qualify.deadline(),
            self.names_deadline(),
            self.trunks.deadline(),
            self.sessions.deadline(),
            self.referrals.deadline(),
            self.watchers.deadline(),
            self.publishing.deadline(),
        ];
        [self.stack.deadline(), self.registrations.deadline()].into_iter().chain(own).flatten().min()
    }
    /// A connection closed, or something could not be sent. What had registered over the connection cannot be reached
    /// any more and loses its binding.
    pub fn transport_error(&mut self, core: &mut Core, flow: Flow) {
        let inward = self.ways.inward(&self.config, &mut self.stack, flow);
        self.turn_stack(core, |stack, now, out| stack.transport_error(inward, now, out));
        self.connection_lost(core, flow);
        self.trunks_lost(core, flow);
    }
    /// The network says that a datagram could not be delivered, and quotes how it began: the request that it was goes to
    /// the next server, or fails, without waiting for an answer that nobody can give.
    pub fn undelivered(&mut self, core: &mut Core, flow: Flow, quoted: &[u8]) {
        let flow = self.ways.inward(&self.config, &mut self.stack, flow);
        self.turn_stack(core, |stack, now, out| stack.undelivered(flow, quoted, now, out));
    }
    /// Takes in what a media worker says: the core hears it, and silence of RTP ends the call as the endpoint asks.
    pub fn media_event(&mut self, core: &mut Core, event: base::Event) {
        if let base::Event::Closed { stream, stats, .. } = event
            && let Some(name) = self.parting.remove(&stream)
        {
            let line = format!(
                "{name}: {} packets sent, {} received, {} lost, {} discarded, jitter {} us; peer lost {}, round trip {} us",
                stats.sent_packets,
                stats.received_packets,
                stats.lost_packets,
                stats.discarded_packets,
                stats.jitter_us,
                stats.peer_lost_packets,
                stats.round_trip_us
            );
            core.log(TOTALS_LEVEL, "res_rtp", &line);
        }
        if let base::Event::Sends { stream, format } = event
            && let Some(channel) = core.channel_of_stream(stream)
            && let Some(leg) = self.leg_of(channel, core)
            && leg.media.follow(format, &leg.endpoint)
            && let Some(handle) = core.get(channel).map(|c| c.handle)
            && let Some(plan) = self.plan(core, handle)
        {
            core.media(base::Command::Plan { stream, plan: Box::new(plan) });
            core.set_stream(channel, stream, format);
        }
        if let base::Event::Sends { stream, format } = event
            && core.channel_of_stream(stream).is_none()
        {
            self.follow_passed(core, stream, format);
        }
        if let base::Event::PictureWanted { stream } = event
            && let Some(channel) = core.conference_camera(stream)
            && self.leg_of(channel, core).is_some()
            && let Some(handle) = core.get(channel).map(|c| c.handle)
        {
            self.ask_picture(core, handle);
        }
        if let base::Event::Latched { stream, remote } = event
            && let Some(handle) = core.channel_of_stream(stream).and_then(|id| core.get(id)).map(|c| c.handle)
            && let Some(leg) = self.legs.get_mut(handle).filter(|leg| leg.stream == Some(stream))
            && leg.moving.seen.replace(remote) != Some(remote)
        {
            self.unsettle(handle);
        }
        if let base::Event::Rtcp { stream, report } = event {
            self.tell_report(core, stream, report);
        }
        if let base::Event::RtpTimeout { stream } = event
            && let Some(channel) = core.channel_of_stream(stream)
            && let Some(leg) = self.leg_of(channel, core)
        {
            let seconds = leg.silence_secs();
            let name = core.get(channel).map(|c| c.name.clone()).unwrap_or_default();
            let line =
                format!("Disconnecting channel '{name}' for lack of audio RTP activity in {seconds} seconds");
            core.log(call::Level::Notice, "res_pjsip_sdp_rtp", &line);
            core.soft_hangup(channel, base::Cause::REQUESTED_CHAN_UNAVAIL, call::SoftHangup::Device);
        }
        core.media_event(event);
    }
    /// A report of RTCP left or came on a leg's stream.
    fn tell_report(&mut self, core: &mut Core, stream: base::StreamId, report: base::RtcpReport) {
        let Some(channel) = core.channel_of_stream(stream) else { return };
        let Some(leg) = self.leg_of(channel, core) else { return };
        let local = leg.media.rtcp_address();
        core.notice_of(channel, |channel| Notice::Rtcp { channel, local, report: Box::new(report) });
        if self.captured_reports.is_some() {
            let correlation = match self.correlation {
                Correlation::CallId => self.call_id(core, channel),
                Correlation::Channel => core.get(channel).map(|channel| channel.name.as_bytes().to_vec()),
            };
            let (at_micros, correlation) = (core.services.wall.now_micros(), correlation.unwrap_or_default());
            let copy = CapturedReport { at_micros, local, correlation, report };
            self.captured_reports.iter_mut().for_each(|captured| captured.push(copy.clone()));
        }
    }
    /// Messages to send, in order.
    pub fn take_sends(&mut self) -> Vec<Send> {
        self.traced = 0;
        let mut sends = std::mem::take(&mut self.sends);
        sends.iter_mut().for_each(|send| send.flow = ways::outward(send.flow));
        sends
    }
    /// Channels whose dialplan is to be started, and where.
    pub fn take_started(&mut self) -> Vec<(ChannelId, Location)> {
        std::mem::take(&mut self.started)
    }
    /// What the shell is to ask the DNS; it answers each with [`SipDriver::resolved`].
    pub fn take_lookups(&mut self) -> Vec<Question> {
        self.names.take_wanted()
    }
    /// What the DNS says. What waited for it goes on.
    pub fn resolved(&mut self, core: &mut Core, question: &Question, answer: Answer) {
        if self.names.learn(question, answer, core.now) {
            self.qualify.ask_again(core.now);
            if question.kind == Kind::Addresses {
                self.replan_named(core, &question.name);
            }
            self.name_came(core);
        }
    }
    /// Switches the message trace (`pjsip set logger on`).
    pub fn set_trace(&mut self, on: bool) {
        self.trace = if on { Trace::All } else { Trace::Off };
    }
    /// Traces messages from and to some peers only, or to these as well (`pjsip set logger host … add`). `false`: so many
    /// are traced already that no more fit.
    pub fn trace_host(&mut self, core: &Core, traced: Traced, add: bool) -> bool {
        if let Traced::Name(host) = &traced {
            self.names.addresses(host, core.now);
        }
        match &mut self.trace {
            Trace::Hosts(hosts) if add => {
                if hosts.len() >= TRACED_MAX {
                    return false;
                }
                hosts.push(traced);
            }
            // Everybody's are, so that this peer's are too.
            Trace::All if add => {}
            trace => *trace = Trace::Hosts(vec![traced]),
        }
        true
    }
    /// Whether messages are traced.
    pub fn trace(&self) -> bool {
        self.trace != Trace::Off
    }
    /// Messages of the last while, if somebody wanted them kept.
    pub fn history(&self) -> &History {
        &self.history
    }
    /// The same, to switch or clear it.
    pub fn history_mut(&mut self) -> &mut History {
        &mut self.history
    }
    /// Whether copies of all messages are wanted, and by what they are tied together; see [`Self::take_captured`].
    pub fn set_capture(&mut self, wanted: Option<Correlation>) {
        self.correlation = wanted.unwrap_or(Correlation::CallId);
        match (&self.captured, wanted.is_some()) {
            (None, true) => self.captured = Some(Vec::new()),
            (Some(_), false) => self.captured = None,
            (None, false) | (Some(_), true) => {}
        }
    }
    /// Copies of the messages that came and went since the last time.
    pub fn take_captured(&mut self) -> Vec<Captured> {
        self.captured.as_mut().map(std::mem::take).unwrap_or_default()
    }
    /// Whether what RTCP says is wanted; see [`Self::take_captured_reports`].
    pub fn set_report_capture(&mut self, wanted: bool) {
        self.captured_reports = wanted.then(|| self.captured_reports.take().unwrap_or_default());
    }
    /// Whether they are wanted.
    pub fn captures_reports(&self) -> bool {
        self.captured_reports.is_some()
    }
    /// Reports of RTCP that came and went since the last time.
    pub fn take_captured_reports(&mut self) -> Vec<CapturedReport> {
        self.captured_reports.as_mut().map(std::mem::take).unwrap_or_default()
    }
    /// The Call-ID of a channel's dialog.
    pub fn call_id(&mut self, core: &Core, channel: ChannelId) -> Option<Vec<u8>> {
        let dialog = self.leg_of(channel, core)?.dialog?;
        self.stack.names(dialog).map(|names| names.call_id.to_vec())
    }
    /// Whether anybody wants to see messages.
    fn is_observed(&self) -> bool {
        self.trace() || self.history.is_on() || self.captured.is_some()
    }
    /// Shows a message to those who want to see messages.
    fn observe(&mut self, core: &mut Core, outgoing: bool, flow: Flow, bytes: &[u8]) {
        if self.history.is_on() {
            self.history.keep(outgoing, flow, bytes, core.services.wall.now_micros());
        }
        if self.captured.is_some() {
            let at_micros = core.services.wall.now_micros();
            let local = self
                .bind(flow.transport)
                .map(|bind| SocketAddr::new(self.ways.local_ip(bind, flow.remote.ip()), bind.local.port()));
            let name = |call_id: &[u8], tag: &[u8]| {
                if self.correlation == Correlation::CallId {
                    return None;
                }
                let dialog = self.stack.own_dialog(call_id, tag)?;
                let leg = self.legs.by_dialog(dialog).and_then(|handle| self.legs.get(handle))?;
                core.get(leg.channel).map(|channel| channel.name.as_bytes().to_vec())
            };
            let copy = local.map(|local| Captured::new((outgoing, at_micros), flow, local, bytes, name));
            self.captured.iter_mut().for_each(|captured| captured.extend(copy.clone()));
        }
        self.tell(core, if outgoing { "Transmitting" } else { "Received" }, flow, bytes);
    }
    /// Writes a message to the log, line by line, when its peer is traced.
    fn tell(&self, core: &mut Core, what: &str, flow: Flow, bytes: &[u8]) {
        let peer = flow.remote.ip();
        let wanted = match &self.trace {
            Trace::Off => false,
            Trace::All => true,
            Trace::Hosts(hosts) => hosts.iter().any(|traced| match traced {
                Traced::Net(net, bits) => base::in_network((*net, *bits), peer),
                Traced::Name(host) => {
                    self.names.known(host).iter().any(|ip| ip.to_canonical() == peer.to_canonical())
                }
            }),
        };
        if !wanted {
            return;
        }
        let kind = if bytes.starts_with(b"SIP/2.0") { "response" } else { "request" };
        let (size, protocol, remote) = (bytes.len(), flow.protocol.name(), flow.remote);
        let head = format!("<--- {what} SIP {kind} ({size} bytes) {protocol}:{remote} --->");
        core.log(call::Level::Verbose(0), "res_pjsip_logger", &head);
        let mut bytes = bytes.to_vec();
        ::sip::sdp::hide_keys(&mut bytes);
        for line in String::from_utf8_lossy(&bytes).lines() {
            core.log(call::Level::Verbose(0), "res_pjsip_logger", line);
        }
    }
    /// How much the SIP machines hold.
    pub fn load(&self) -> ::sip::stack::Load {
        self.stack.load()
    }

    /// Lets the stack take something in. A panic inside it loses that input and nothing else.
    fn turn_stack(&mut self, core: &mut Core, turn: impl FnOnce(&mut Stack, Instant, &mut Vec<Output>)) {
        let now = core.now;
        let mut out = std::mem::take(&mut self.out);
        let stack = &mut self.stack;
        let turned = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| turn(stack, now, &mut out)));
        if let Err(panic) = turned {
            self.recover(core, call::panic_text(&*panic), &mut out);
        }
        self.carry_out(core, &mut out);
        self.out = out;
    }
    /// The stack panicked: the dialog it worked on is ended, all others go on.
    fn recover(&mut self, core: &mut Core, said: &str, out: &mut Vec<Output>) {
        let (stack, now) = (&mut self.stack, core.now);
        let blamed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stack.recover(now, out)));
        let Some(dialog) = blamed.ok().flatten() else {
            let line = format!("the SIP stack panicked, what it was given is dropped: {said}");
            return core.log(call::Level::Error, "res_pjsip", &line);
        };
        let leg = self.legs.by_dialog(dialog).and_then(|handle| self.legs.get(handle));
        let name = leg.and_then(|leg| core.get(leg.channel)).map(|c| c.name.to_string()).unwrap_or_default();
        let line = format!("{name}: the SIP machine of this call panicked, its call is ended: {said}");
        core.log(call::Level::Error, "res_pjsip", &line);
        self.bury(core, Some(dialog), Begun::default());
    }
    /// Makes the SIP machine of a channel panic at its next step: fault injection for tests of the whole. `false` when it
    /// has none.
    #[doc(hidden)]
    pub fn inject_panic(&mut self, core: &Core, channel: ChannelId) -> bool {
        let dialog = self.leg_of(channel, core).and_then(|leg| leg.dialog);
        dialog.is_some_and(|dialog| self.stack.inject_panic(dialog))
    }
    /// Carries out what the stack said. An event may make it say more; a panic in one ends that call only.
    fn carry_out(&mut self, core: &mut Core, out: &mut Vec<Output>) {
        for output in out.drain(..) {
            match output {
                Output::Send(send) => self.put(send, core.now),
                Output::Event(event) => self.guarded(core, event),
            }
        }
        if self.is_observed() {
            let sends = std::mem::take(&mut self.sends);
            for send in sends.get(self.traced..).unwrap_or_default() {
                self.observe(core, true, send.flow, &send.bytes);
            }
            self.sends = sends;
            self.traced = self.sends.len();
        }
    }
    /// Queues a message in the form that the configuration asks for.
    fn put(&mut self, mut send: Send, now: Instant) {
        if !self.unproved.is_empty()
            && !send.flow.protocol.is_reliable()
            && send.bytes.starts_with(b"SIP/2.0 ")
            && !self.unproved.may_send(send.flow.remote.ip(), &send.bytes, now)
        {
            return;
        }
        if let Some(spelled) = self.config.form.of(&send.bytes) {
            send.bytes = spelled.into();
        }
        self.sends.push(send);
    }
    fn guarded(&mut self, core: &mut Core, event: Event) {
        let (dialog, subscription) = (events::dialog_of(&event), events::subscription_of(&event));
        let outer = std::mem::take(&mut self.in_hand);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.event(core, event)));
        let begun = std::mem::replace(&mut self.in_hand, outer);
        if let Err(panic) = outcome {
            let line = format!("a SIP dialog panicked, its call is ended: {}", call::panic_text(&*panic));
            core.log(call::Level::Error, "chan_pjsip", &line);
            if let Some(subscription) = subscription {
                self.stack.drop_subscription(subscription);
                self.unsubscribed(core, subscription);
            }
            self.bury(core, dialog.or(begun.dialog), begun);
        }
    }
    /// Ends the call whose event panicked: the peer hears 500 or BYE, the story hears a hang-up, and what an INVITE had
    /// begun is undone.
    fn bury(&mut self, core: &mut Core, dialog: Option<DialogId>, begun: Begun) {
        let handle = dialog.and_then(|dialog| self.legs.by_dialog(dialog));
        if let Some(dialog) = dialog {
            self.legs.unbind(dialog);
        }
        match (begun.channel, begun.stream) {
            (Some(channel), _) => {
                handle.and_then(|handle| self.legs.remove(handle));
                core.discard(channel);
            }
            (None, Some(stream)) => core.media(base::Command::Close { stream }),
            (None, None) => {
                if let Some(leg) = handle.and_then(|handle| self.legs.get(handle)) {
                    let cause = base::Cause::NORMAL_TEMPORARY_FAILURE;
                    core.remote_hangup(leg.channel, cause, "SIP 500 Server Internal Error");
                }
            }
        }
        let Some(dialog) = dialog else { return };
        let mut out = Vec::new();
        let (stack, now) = (&mut self.stack, core.now);
        let said = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            stack.hang_up(dialog, 500, &[], now, &mut out)
        }));
        // What cannot be hung up, or panics again, goes without a word.
        if !matches!(said, Ok(Ok(()))) {
            self.stack.evict(dialog);
        }
        self.carry_out(core, &mut out);
    }
    /// Runs an operation of the stack and queues what it sends. Events that it makes are handled at once.
    fn with_stack<R>(
        &mut self,
        core: &mut Core,
        operation: impl FnOnce(&mut Stack, Instant, &mut Vec<Output>) -> R,
    ) -> R {
        let mut out = Vec::new();
        let result = operation(&mut self.stack, core.now, &mut out);
        self.carry_out(core, &mut out);
        result
    }
    /// The name that a flow's peer has to prove before it gets anything.
    pub fn peer_name(&self, flow: Flow) -> Option<&str> {
        self.proofs.name(flow.name)
    }
    /// The bind a flow belongs to.
    fn bind(&self, id: TransportId) -> Option<&Bind> {
        let id = ways::bind_id(id);
        self.config.binds.iter().find(|bind| bind.id == id)
    }
    /// Where the media of a call with `peer` is bound, and the address SDP names for it.
    fn media_address(&self, bind: &Bind, endpoint: &Endpoint, peer: IpAddr) -> (IpAddr, IpAddr) {
        if let Some(address) = endpoint.media_address.filter(|_| endpoint.bind_media) {
            return (address, address);
        }
        let local = self.ways.local_ip(bind, peer);
        let translated = bind.external_media.filter(|_| bind.is_outside(peer));
        (local, endpoint.media_address.or(translated).unwrap_or(local))
    }
    /// Contact value for requests and responses on this flow.
    fn contact(&self, flow: Flow, user: &str) -> String {
        let host = self.stack.sent_by(flow).unwrap_or("localhost");
        let mut encoded = Vec::new();
        ::sip::uri::percent_encode_user(user.as_bytes(), &mut encoded);
        let user = String::from_utf8(encoded).unwrap_or_default();
        let at = if user.is_empty() { "" } else { "@" };
        match flow.protocol {
            ::sip::stack::Protocol::Udp => format!("<sip:{user}{at}{host}>"),
            // In capitals as the field spells it; RFC 3261 §19.1.4 compares without regard to case.
            tcp @ (::sip::stack::Protocol::Tcp | ::sip::stack::Protocol::Tls) => {
                format!("<sip:{user}{at}{host};transport={}>", tcp.parameter().to_uppercase())
            }
            other => format!("<sip:{user}{at}{host};transport={}>", other.parameter()),
        }
    }
    /// Contact in a dialog with an endpoint that came by this flow: without a user, unless the endpoint is to see one.
    fn own_contact(&self, flow: Flow, endpoint: &Endpoint) -> String {
        self.contact(flow, &endpoint.contact_user)
    }
    fn leg_of(&mut self, channel: ChannelId, core: &Core) -> Option<&mut Leg> {
        let handle = core.get(channel)?.handle;
        self.legs.get_mut(handle).filter(|leg| leg.channel == channel)
    }
}

fn stack_config(config: &Config) -> ::sip::stack::Config {
    ::sip::stack::Config {
        timers: config.timers,
        product: config.user_agent.clone(),
        allow: ALLOW.to_owned(),
        supported: SUPPORTED.to_owned(),
        allow_events: ALLOW_EVENTS.to_owned(),
        ..::sip::stack::Config::default()
    }
}
