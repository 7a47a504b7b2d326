//! `PJSIP/…` channels: translates between the SIP machines of crate `sip` and the call core.
//!
//! It decides who may do what (identification, password, admission), which formats are agreed, and what a SIP message
//! means for a channel. It knows no dialplan application and no socket: bytes come in through [`SipDriver::receive`]
//! and leave through [`SipDriver::take_sends`].

mod config;
mod events;
mod gate;
mod identify;
mod identity;
mod inbound;
mod leg;
mod outbound;
mod qualify;
mod register;
mod session;
mod show;
mod tech;

use core::net::{IpAddr, SocketAddr};
use std::collections::HashMap;
use std::rc::Rc;

use ::sip::stack::{ClientId, DialogId, Event, Flow, Output, Send, Stack, TransportId};
use base::{ChannelId, Instant};
use call::{Core, Location};

pub use config::{Access, Aor, Auth, Bind, Config, Dtmf, Endpoint, Identify, IdentifyBy, Match, Proof};
pub use register::{Binding, Change, Journal};
pub use show::{AorRow, ContactRow, ContactState, EndpointRow};

use gate::Gatekeeper;
use leg::{Leg, Legs};
use qualify::Qualify;
use register::Registrations;

/// Methods we serve.
const ALLOW: &str = "OPTIONS, INVITE, ACK, BYE, CANCEL, UPDATE, INFO, MESSAGE, NOTIFY, REGISTER";

/// A name that must be resolved before something can be sent; the shell answers with [`SipDriver::resolved`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// Host name.
    pub host: String,
    /// Port, when given.
    pub port: Option<u16>,
    /// Protocol.
    pub protocol: ::sip::stack::Protocol,
}

/// The driver. One per shard.
pub struct SipDriver {
    config: Rc<Config>,
    stack: Stack,
    gate: Gatekeeper,
    legs: Legs,
    registrations: Registrations,
    qualify: Qualify,
    requests: HashMap<ClientId, qualify::Probe>,
    out: Vec<Output>,
    sends: Vec<Send>,
    started: Vec<(ChannelId, Location)>,
    /// Our address towards a peer, for wildcard binds; the shell knows the routes.
    route: Box<dyn Fn(IpAddr) -> Option<IpAddr>>,
    /// Addresses of host names, and those asked for.
    names: HashMap<String, Vec<IpAddr>>,
    lookups: Vec<Lookup>,
    tech_index: usize,
    trace: bool,
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
            legs: Legs::default(),
            registrations: Registrations::new(seed.rotate_left(64)),
            qualify: Qualify::default(),
            requests: HashMap::new(),
            out: Vec::new(),
            sends: Vec::new(),
            started: Vec::new(),
            route: Box::new(route),
            names: HashMap::new(),
            lookups: Vec::new(),
            tech_index: 0,
            trace: false,
        };
        driver.configure(config, Instant::ZERO);
        driver
    }
    /// The index that [`Shard::add_tech`](call::Shard::add_tech) gave this driver.
    pub fn set_tech_index(&mut self, index: usize) {
        self.tech_index = index;
    }
    /// Takes a new configuration. Calls and registrations go on; AORs that are gone lose theirs.
    pub fn configure(&mut self, config: Config, now: Instant) {
        for bind in &config.binds {
            self.stack.set_transport(bind.id, transport_of(bind));
        }
        self.config = Rc::new(config);
        self.registrations.configure(&self.config, now);
        self.qualify.configure(&self.config, &self.registrations, now);
    }
    /// The configuration in force.
    pub fn config(&self) -> &Rc<Config> {
        &self.config
    }

    /// Takes in one datagram or one framed message.
    pub fn receive(&mut self, core: &mut Core, source: Flow, bytes: &[u8]) {
        let now = core.now;
        let mut out = std::mem::take(&mut self.out);
        self.stack.receive(source, bytes, now, &mut out);
        self.carry_out(core, &mut out);
        self.out = out;
    }
    /// Wakes what is due.
    pub fn due(&mut self, core: &mut Core) {
        let now = core.now;
        let mut out = std::mem::take(&mut self.out);
        self.stack.due(now, &mut out);
        self.carry_out(core, &mut out);
        self.out = out;
        self.expire_registrations(core);
        self.probe_due(core);
    }
    /// When [`due`](Self::due) next wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        [self.stack.deadline(), self.registrations.deadline(), self.qualify.deadline()]
            .into_iter()
            .flatten()
            .min()
    }
    /// A connection closed, or something could not be sent.
    pub fn transport_error(&mut self, core: &mut Core, flow: Flow) {
        let now = core.now;
        let mut out = std::mem::take(&mut self.out);
        self.stack.transport_error(flow, now, &mut out);
        self.carry_out(core, &mut out);
        self.out = out;
    }
    /// Messages to send, in order.
    pub fn take_sends(&mut self) -> Vec<Send> {
        std::mem::take(&mut self.sends)
    }
    /// Channels whose dialplan is to be started, and where.
    pub fn take_started(&mut self) -> Vec<(ChannelId, Location)> {
        std::mem::take(&mut self.started)
    }
    /// Switches the message trace (`pjsip set logger on`).
    pub fn set_trace(&mut self, on: bool) {
        self.trace = on;
    }
    /// Whether messages are traced.
    pub fn trace(&self) -> bool {
        self.trace
    }
    /// How much the SIP machines hold.
    pub fn load(&self) -> ::sip::stack::Load {
        self.stack.load()
    }

    /// Carries out what the stack said. An event may make it say more; a panic in one ends that call only.
    fn carry_out(&mut self, core: &mut Core, out: &mut Vec<Output>) {
        for output in out.drain(..) {
            match output {
                Output::Send(send) => self.sends.push(send),
                Output::Event(event) => self.guarded(core, event),
            }
        }
    }
    fn guarded(&mut self, core: &mut Core, event: Event) {
        let dialog = events::dialog_of(&event);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.event(core, event)));
        if outcome.is_err() {
            core.log(call::Level::Error, "chan_pjsip", "a SIP dialog panicked; its call is ended");
            if let Some(dialog) = dialog {
                self.evict(core, dialog);
            }
        }
    }
    fn evict(&mut self, core: &mut Core, dialog: DialogId) {
        self.stack.evict(dialog);
        if let Some(id) = self.legs.by_dialog(dialog)
            && let Some(leg) = self.legs.get_mut(id)
        {
            leg.dialog = None;
            core.remote_hangup(
                leg.channel,
                base::Cause::NORMAL_TEMPORARY_FAILURE,
                "SIP 500 Server Internal Error",
            );
        }
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
    /// The bind a flow belongs to.
    fn bind(&self, id: TransportId) -> Option<&Bind> {
        self.config.binds.iter().find(|bind| bind.id == id)
    }
    /// Our address as `peer` can reach it from this bind, before any translation.
    fn local_ip(&self, bind: &Bind, peer: IpAddr) -> IpAddr {
        let bound = bind.local.ip();
        if bound.is_unspecified() { (self.route)(peer).unwrap_or(bound) } else { bound }
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
            other => format!("<sip:{user}{at}{host};transport={}>", other.name().to_ascii_lowercase()),
        }
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
        supported: String::new(),
        ..::sip::stack::Config::default()
    }
}

fn transport_of(bind: &Bind) -> ::sip::stack::Transport {
    ::sip::stack::Transport {
        sent_by: sent_by(bind.local),
        external: bind.external_signaling.clone(),
        local_nets: bind.local_nets.clone(),
    }
}

fn sent_by(local: SocketAddr) -> String {
    local.to_string()
}
