//! What of ours other servers are told by PUBLISH (`type=outbound-publish`): states of extensions, devices, mailboxes.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use ::sip::publisher::{Outcome, Output, Publisher, Request, Status};
use ::sip::stack::{Body, ClientId, Outgoing};
use ::sip::{HeaderName, Method, OwnedMessage};
use base::Instant;
use call::{Core, DeviceState, Level, Tech as _, Watched};

use super::{DEVICES, MAILBOXES, TOLD_FAMILY, is_told, states};
use crate::sip::config::{Config, Endpoint, OutboundPublish};
use crate::sip::watch::body::{self, Kind};
use crate::sip::{SipDriver, identity};

/// Publications of ours at one time: every extension of a large site at a compositor or two.
const STREAMS_MAX: usize = 16 * 1024;
/// States that one publication tells of: as many as are kept of others.
const STATES_MAX: usize = call::DEVICES_MAX;
/// Pause before a publication whose server has no address yet is looked at again.
const NAME_PAUSE: Duration = Duration::from_millis(500);

/// The number of an outbound-publish as it was configured, and the user that is published.
type Key = (u32, Rc<str>);

/// One publication of ours.
struct Stream {
    config: Rc<OutboundPublish>,
    machine: Publisher,
    content: Content,
    /// Challenges that could not be met, one after the other.
    rejections: u32,
    /// Under which moment it stands in the schedule.
    scheduled: Option<Instant>,
}

impl Stream {
    /// Its logins were refused too often.
    fn is_given_up(&self) -> bool {
        self.config.rejections_max > 0 && self.rejections >= self.config.rejections_max
    }
}

enum Content {
    /// The state of an extension.
    Extension { extension: Watched, state: DeviceState, version: u32 },
    /// States of devices or mailboxes: all that were told of, those that are still to be told, and those that are being
    /// told.
    States { all: BTreeMap<String, String>, waiting: BTreeSet<String>, out: BTreeSet<String>, asks: bool },
}

impl Content {
    fn states(asks: bool) -> Self {
        let (all, waiting, out) = Default::default();
        Self::States { all, waiting, out, asks }
    }
    /// A name has this line. `false` when it had it, or there are too many.
    fn put(&mut self, name: &str, line: String) -> bool {
        let Self::States { all, waiting, .. } = self else { return false };
        if all.len() >= STATES_MAX && !all.contains_key(name) {
            return false;
        }
        if all.get(name) == Some(&line) {
            return false;
        }
        all.insert(name.to_owned(), line);
        waiting.insert(name.to_owned());
        true
    }
    /// The other side has said something else of a name than what it was told.
    fn forget(&mut self, name: &str) {
        if let Self::States { all, waiting, .. } = self {
            all.remove(name);
            waiting.remove(name);
        }
    }
    /// All that was ever told is to be told again.
    fn again(&mut self) {
        if let Self::States { all, waiting, .. } = self {
            *waiting = all.keys().cloned().collect();
        }
    }
    /// The body of the next request, with its type; `None` when there is nothing to tell. `anew`: the other side knows
    /// nothing of it.
    fn body(&mut self, config: &OutboundPublish, user: &str, anew: bool) -> Option<(String, Vec<u8>)> {
        match self {
            Self::Extension { extension, state, version } => {
                let kind = kind_of(&config.body);
                let entity = with_user(&config.server_uri, user);
                let document = body::extension(kind, *state, &extension.exten, &entity, None);
                // The state of a hint is no atom that anybody would keep: its name changes with each version.
                let unique = u128::from(*version) << 96;
                let bytes = document.bytes(&body::Watching { version: *version, contact: &entity, unique });
                *version = version.wrapping_add(1);
                Some((config.body.clone(), bytes))
            }
            Self::States { all, waiting, out, asks } => {
                let mut bytes = Vec::new();
                if anew {
                    *waiting = all.keys().cloned().collect();
                    out.clear();
                    if *asks {
                        bytes.extend_from_slice(states::REFRESH.as_bytes());
                    }
                }
                while let Some(name) = waiting.first() {
                    let line = all.get(name).map_or("", String::as_str);
                    if !bytes.is_empty() && bytes.len() + line.len() > states::BYTES_MAX {
                        break;
                    }
                    bytes.extend_from_slice(line.as_bytes());
                    out.extend(waiting.pop_first());
                }
                // A publication begins with a body, be there anything to say or not (RFC 3903 §4.1).
                if bytes.is_empty() && anew {
                    bytes.extend_from_slice(b"\r\n");
                }
                (!bytes.is_empty()).then(|| (states::CONTENT_TYPE.to_owned(), bytes))
            }
        }
    }
    /// What became of the states that were being told.
    fn told(&mut self, accepted: bool) {
        let Self::States { waiting, out, .. } = self else { return };
        let told = std::mem::take(out);
        if !accepted {
            waiting.extend(told);
        }
    }
    /// Whether there are states that no request has told.
    fn is_behind(&self) -> bool {
        matches!(self, Self::States { waiting, .. } if !waiting.is_empty())
    }
}

fn kind_of(content_type: &str) -> Kind {
    match content_type {
        // The name that PIDF had before RFC 3863.
        "application/pidf+xml" => Kind::Pidf { early: false },
        "application/cpim-pidf+xml" => Kind::Xpidf { early: false, cpim: true },
        "application/xpidf+xml" => Kind::Xpidf { early: false, cpim: false },
        _ => Kind::DialogInfo { early: false, pickup: false },
    }
}

/// A URI with another user; as it is when there is none.
fn with_user(uri: &str, user: &str) -> String {
    let Some((scheme, rest)) = uri.split_once(':').filter(|_| !user.is_empty()) else {
        return uri.to_owned();
    };
    let host = rest.split_once('@').map_or(rest, |(_, host)| host);
    let mut encoded = Vec::new();
    ::sip::uri::percent_encode_user(user.as_bytes(), &mut encoded);
    format!("{scheme}:{}@{host}", String::from_utf8_lossy(&encoded))
}

/// All publications of ours.
#[derive(Default)]
pub(crate) struct Outward {
    /// Those of the configuration, by name, with their numbers.
    items: BTreeMap<Rc<str>, (u32, Rc<OutboundPublish>)>,
    streams: BTreeMap<Key, Stream>,
    requests: HashMap<ClientId, Key>,
    schedule: BTreeSet<(Instant, Key)>,
    last_number: u32,
    /// Items that nothing has been published of yet.
    to_begin: Vec<u32>,
    /// Publications that the configuration no longer has.
    to_end: Vec<Key>,
    /// The states of all hints were asked for, and come next turn.
    awaits_hints: bool,
}

impl Outward {
    /// Takes over the configuration. What did not change goes on.
    pub(super) fn configure(&mut self, config: &Config) {
        let mut old = std::mem::take(&mut self.items);
        for publish in &config.publishes {
            let kept = old.remove(&publish.name).filter(|(_, known)| **known == **publish);
            let item = kept.unwrap_or_else(|| {
                self.last_number = self.last_number.wrapping_add(1);
                self.to_begin.push(self.last_number);
                (self.last_number, publish.clone())
            });
            self.items.insert(publish.name.clone(), item);
        }
        let current: BTreeSet<u32> = self.items.values().map(|(number, _)| *number).collect();
        self.to_end = self.streams.keys().filter(|(number, _)| !current.contains(number)).cloned().collect();
    }
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.awaits_hints {
            true => Some(Instant::ZERO),
            false => self.schedule.first().map(|(at, _)| *at),
        }
    }
    /// Whether this request is one of these.
    pub(crate) fn owns(&self, request: ClientId) -> bool {
        self.requests.contains_key(&request)
    }
    /// The items of a package.
    fn of(&self, package: &str) -> Vec<(u32, Rc<OutboundPublish>)> {
        self.items.values().filter(|(_, item)| item.event == package).cloned().collect()
    }
    fn has(&self, is: impl Fn(&str) -> bool) -> bool {
        self.items.values().any(|(_, item)| is(&item.event))
    }
    /// The publication of this key, made when there is none and room.
    fn stream(
        &mut self,
        key: &Key,
        item: &Rc<OutboundPublish>,
        content: impl FnOnce() -> Content,
    ) -> Option<&mut Stream> {
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(key) {
            return None;
        }
        Some(self.streams.entry(key.clone()).or_insert_with(|| Stream {
            config: item.clone(),
            machine: Publisher::new(item.expiration),
            content: content(),
            rejections: 0,
            scheduled: None,
        }))
    }
    fn settle(&mut self, key: &Key) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        let deadline = stream.machine.deadline().filter(|_| !stream.is_given_up());
        if stream.scheduled != deadline {
            if let Some(at) = stream.scheduled {
                self.schedule.remove(&(at, key.clone()));
            }
            if let Some(at) = deadline {
                self.schedule.insert((at, key.clone()));
            }
            stream.scheduled = deadline;
        }
    }
    /// What these go to, for the resolver.
    pub(crate) fn hosts(config: &Config) -> impl Iterator<Item = &String> {
        config.publishes.iter().flat_map(|publish| [&publish.server_uri, &publish.outbound_proxy])
    }
}

fn is_of_extensions(event: &str) -> bool {
    matches!(event, "dialog" | "presence")
}

impl SipDriver {
    /// Tells others what has changed, and publishes again what would lapse.
    pub(super) fn outward_due(&mut self, core: &mut Core) {
        let outward = &mut self.publishing.outward;
        outward.awaits_hints = false;
        core.outward.wants_extensions = outward.has(is_of_extensions);
        core.outward.wants_devices = outward.has(|event| event == DEVICES);
        for key in std::mem::take(&mut outward.to_end) {
            self.drive(core, &key, Publisher::remove);
        }
        for number in std::mem::take(&mut self.publishing.outward.to_begin) {
            self.begin(core, number);
        }
        for (extension, state) in std::mem::take(&mut core.outward.extensions) {
            self.publish_extension(core, &extension, state);
        }
        for (device, state) in std::mem::take(&mut core.outward.devices) {
            let line = states::of_device(&device, state);
            self.publish_states(core, DEVICES, &[(device, line)]);
        }
        while let Some((at, key)) = self.publishing.outward.schedule.first().cloned() {
            if at > core.now {
                break;
            }
            self.drive(core, &key, Publisher::due);
            // A machine that is not done with this moment would hold up the turn.
            let outward = &mut self.publishing.outward;
            if outward.schedule.remove(&(at, key.clone()))
                && let Some(stream) = outward.streams.get_mut(&key)
            {
                stream.scheduled = None;
            }
        }
    }
    /// Mailboxes that have changed; those that another server changed it knows of.
    pub(crate) fn publish_mailboxes(&mut self, core: &mut Core, changed: &BTreeSet<String>) {
        if !self.publishing.outward.has(|event| event == MAILBOXES) {
            return;
        }
        let mut states = Vec::new();
        for name in changed {
            let messages = core.mailbox(name).unwrap_or_default();
            if is_told(core, name, messages) {
                // What it was before counts no longer: when it is that again, they are told.
                let streams = self.publishing.outward.streams.values_mut();
                streams.for_each(|stream| stream.content.forget(name));
            } else {
                core.services.db.delete(TOLD_FAMILY, name);
                states.push((name.clone(), states::of_mailbox(name, messages)));
            }
        }
        self.publish_states(core, MAILBOXES, &states);
    }
    /// Another server wants to know all: by this outbound-publish, by all of the package when it names none.
    pub(super) fn publish_all(&mut self, core: &mut Core, package: &str, by: &str) {
        for (number, item) in self.publishing.outward.of(package) {
            if by.is_empty() || *item.name == *by {
                self.publish_whole(core, number, &item);
            }
        }
    }
    fn publish_whole(&mut self, core: &mut Core, number: u32, item: &Rc<OutboundPublish>) {
        let states = self.own_states(core, &item.event);
        let Some((key, _)) = self.put_states(number, item, &states) else { return };
        if let Some(stream) = self.publishing.outward.streams.get_mut(&key) {
            stream.content.again();
        }
        self.tell_news(core, &key);
    }
    /// An outbound-publish is new: the other side is told all there is.
    fn begin(&mut self, core: &mut Core, number: u32) {
        let items = &self.publishing.outward.items;
        let Some(item) = items.values().find(|(own, _)| *own == number).map(|(_, item)| item.clone()) else {
            return;
        };
        if item.event != MAILBOXES {
            core.outward.wants_all = true;
            self.publishing.outward.awaits_hints = true;
        }
        if !is_of_extensions(&item.event) {
            self.publish_whole(core, number, &item);
        }
    }
    /// The states of all phones, or of all mailboxes.
    fn own_states(&self, core: &Core, package: &str) -> Vec<(String, String)> {
        if package == MAILBOXES {
            let all = core.mailboxes().into_iter();
            let own = all.filter(|(name, messages)| !is_told(core, name, *messages));
            return own.map(|(name, messages)| (name.clone(), states::of_mailbox(&name, messages))).collect();
        }
        let device = |name: &Rc<str>| {
            let device = format!("PJSIP/{name}");
            let line = states::of_device(&device, self.device_state(core, name));
            (device, line)
        };
        self.config.endpoints.keys().map(device).collect()
    }
    /// States of devices or mailboxes for all outbound-publishes of the package.
    fn publish_states(&mut self, core: &mut Core, package: &str, states: &[(String, String)]) {
        for (number, item) in self.publishing.outward.of(package) {
            if let Some((key, true)) = self.put_states(number, &item, states) {
                self.tell_news(core, &key);
            }
        }
    }
    /// States for one of them; its key, and whether any passes its filter.
    fn put_states(
        &mut self,
        number: u32,
        item: &Rc<OutboundPublish>,
        states: &[(String, String)],
    ) -> Option<(Key, bool)> {
        let filter = if item.event == DEVICES { &item.devices } else { &item.mailboxes };
        let key = (number, Rc::from(""));
        let stream = self.publishing.outward.stream(&key, item, || Content::states(item.asks))?;
        let mut changed = false;
        for (name, line) in states.iter().filter(|(name, _)| filter.passes(name)) {
            changed |= stream.content.put(name, line.clone());
        }
        Some((key, changed))
    }
    /// An extension is in another state, or (`None`) has no hint any more.
    fn publish_extension(&mut self, core: &mut Core, extension: &Watched, state: Option<DeviceState>) {
        let outward = &self.publishing.outward;
        for (number, item) in [outward.of("dialog"), outward.of("presence")].concat() {
            if !item.contexts.passes(&extension.context) || !item.extens.passes(&extension.exten) {
                continue;
            }
            let user = if item.multi_user { extension.exten.as_str() } else { "" };
            let key = (number, Rc::from(user));
            let outward = &mut self.publishing.outward;
            let known = outward.streams.get_mut(&key).map(|stream| &mut stream.content);
            match (known, state) {
                (Some(Content::Extension { extension: own, state: told, .. }), Some(state)) => {
                    if own == extension && *told == state {
                        continue;
                    }
                    // Hints of several contexts may have one number.
                    own.clone_from(extension);
                    *told = state;
                    self.tell_news(core, &key);
                }
                (Some(Content::Extension { extension: own, .. }), None) if own == extension => {
                    self.drive(core, &key, Publisher::remove);
                }
                (None, Some(state)) => {
                    let content = || Content::Extension { extension: extension.clone(), state, version: 0 };
                    if outward.stream(&key, &item, content).is_none() {
                        let line = format!(
                            "outbound-publish '{}': '{user}' is one too many, {STREAMS_MAX} are published",
                            item.name
                        );
                        core.log(Level::Warning, "res_pjsip_outbound_publish", &line);
                        continue;
                    }
                    self.tell_news(core, &key);
                }
                (Some(_), None | Some(_)) | (None, None) => {}
            }
        }
    }

    /// There is something new to publish, which no publication tells that was given up.
    fn tell_news(&mut self, core: &mut Core, key: &Key) {
        if !self.publishing.outward.streams.get(key).is_some_and(Stream::is_given_up) {
            self.drive(core, key, Publisher::update);
        }
    }
    /// Lets a machine take something in, and carries out what it says.
    fn drive(
        &mut self,
        core: &mut Core,
        key: &Key,
        act: impl FnOnce(&mut Publisher, Instant, &mut Vec<Output>),
    ) {
        let mut out = Vec::new();
        if let Some(stream) = self.publishing.outward.streams.get_mut(key) {
            act(&mut stream.machine, core.now, &mut out);
        }
        while let Some(output) = out.pop() {
            match output {
                Output::Gone => self.publishing.outward.forget(key),
                Output::Send(request) => {
                    let sent = self.send_publish(core, key, &request);
                    let awaited = self.awaited.take().is_some();
                    let Some(stream) = self.publishing.outward.streams.get_mut(key) else { return };
                    if !sent {
                        stream.content.told(false);
                        stream.machine.outcome(Outcome::Unanswered, core.now, &mut out);
                        if awaited {
                            stream.machine.hasten(core.now + NAME_PAUSE);
                        }
                    }
                }
            }
        }
        self.publishing.outward.settle(key);
    }
    fn send_publish(&mut self, core: &mut Core, key: &Key, request: &Request) -> bool {
        let Some(stream) = self.publishing.outward.streams.get_mut(key) else { return false };
        let item = stream.config.clone();
        let content = match request.with_state {
            true => stream.content.body(&item, &key.1, request.tag.is_none()),
            false => None,
        };
        let way = Endpoint {
            transport: item.transport.clone(),
            outbound_proxy: item.outbound_proxy.clone(),
            ..Endpoint::default()
        };
        let target = with_user(&item.server_uri, &key.1);
        let uri = |own: &str| if own.is_empty() { target.clone() } else { with_user(own, &key.1) };
        let bare = |own: &str| format!("<{}>", crate::sip::outbound::without_port(&uri(own)));
        let (from, to) = (bare(&item.from_uri), bare(&item.to_uri));
        self.awaited = None;
        let Some(route) = self.route_uri(core, Some(&way), &target, None) else { return false };
        let ways = self.other_ways(&route.next, |driver, flow| driver.contact(flow, ""));
        let ways: Vec<_> = ways.into_iter().map(|way| ::sip::stack::Way { contact: None, ..way }).collect();
        let lasts = request.seconds.to_string();
        let mut headers = vec![("Event", item.event.as_str()), ("Expires", lasts.as_str())];
        headers.extend(request.tag.as_deref().map(|tag| ("SIP-If-Match", tag)));
        let routes: Vec<&str> = route.routes.iter().map(String::as_str).collect();
        let outgoing = Outgoing {
            method: Method::Publish,
            target: &target,
            from: &from,
            to: &to,
            // A PUBLISH makes no dialog and has no Contact (RFC 3903 §11.1).
            contact: None,
            routes: &routes,
            headers: &headers,
            body: content.as_ref().map(|(content_type, bytes)| Body { content_type, bytes }),
            flow: route.flow,
            series: None,
            symmetric: false,
        };
        let sent = self.with_stack(core, |stack, now, out| {
            let id = stack.request(&outgoing, now, out)?;
            stack.request_also_by(id, &ways);
            Ok::<_, ::sip::stack::Refused>(id)
        });
        let Ok(id) = sent else { return false };
        self.publishing.outward.requests.insert(id, key.clone());
        true
    }
    /// A response to a PUBLISH, or none (`None`).
    pub(crate) fn publish_answered(
        &mut self,
        core: &mut Core,
        request: ClientId,
        answer: Option<(u16, &OwnedMessage)>,
    ) {
        if answer.is_some_and(|(status, _)| status < 200) {
            return;
        }
        let Some(key) = self.publishing.outward.requests.remove(&request) else { return };
        let Some(stream) = self.publishing.outward.streams.get(&key) else { return };
        let outcome = match answer {
            None => Outcome::Unanswered,
            Some((401 | 407, message)) => {
                let auths = stream.config.outbound_auths.clone();
                if let Some(again) = self.prove(core, request, message, &auths) {
                    self.publishing.outward.requests.insert(again, key);
                    return;
                }
                Outcome::Rejected
            }
            Some((status, message)) => read(status, message),
        };
        let said = match answer {
            None => "no answer".to_owned(),
            Some((status, message)) => {
                format!("{status} {}", identity::text(message.view().reason_phrase()))
            }
        };
        let Some(stream) = self.publishing.outward.streams.get_mut(&key) else { return };
        stream.rejections = if outcome == Outcome::Rejected { stream.rejections + 1 } else { 0 };
        let accepted = matches!(outcome, Outcome::Accepted(..));
        stream.content.told(accepted);
        let before = stream.machine.status();
        self.drive(core, &key, |machine, now, out| machine.outcome(outcome, now, out));
        self.tell_publish(core, &key, before, &said);
        // What did not fit goes with the next one.
        let stream = self.publishing.outward.streams.get(&key);
        if accepted && stream.is_some_and(|stream| stream.content.is_behind()) {
            self.tell_news(core, &key);
        }
    }
    /// Tells the log how a publication stands.
    fn tell_publish(&self, core: &mut Core, key: &Key, before: Status, said: &str) {
        let Some(stream) = self.publishing.outward.streams.get(key) else { return };
        let (name, uri) = (&stream.config.name, with_user(&stream.config.server_uri, &key.1));
        let status = stream.machine.status();
        let line = match status {
            _ if status == before => return,
            Status::Idle => return,
            Status::Published => format!("outbound-publish '{name}': '{uri}' has what is published"),
            Status::Refused if stream.scheduled.is_none() => {
                format!(
                    "outbound-publish '{name}': '{uri}' refuses it ({said}), stopping; correct it and reload"
                )
            }
            Status::Refused => {
                let next = stream.scheduled.map_or(0, |at| at.since(core.now).as_secs());
                format!(
                    "outbound-publish '{name}': '{uri}' refuses it ({said}), retrying in '{next}' seconds"
                )
            }
        };
        let level = if status == Status::Refused { Level::Warning } else { Level::Verbose(2) };
        core.log(level, "res_pjsip_outbound_publish", &line);
    }
}

impl Outward {
    /// Nothing is published under this key any more.
    fn forget(&mut self, key: &Key) {
        if let Some(at) = self.streams.remove(key).and_then(|stream| stream.scheduled) {
            self.schedule.remove(&(at, key.clone()));
        }
    }
}

/// What a final response other than a challenge means.
fn read(status: u16, message: &OwnedMessage) -> Outcome {
    let view = message.view();
    let seconds = |name| {
        let value: &[u8] = view.header(name)?;
        let digits = value.split(|byte| !byte.is_ascii_digit()).next()?;
        ::sip::header::delta_seconds(digits)
    };
    match status {
        200..300 => Outcome::Accepted(view.header(HeaderName::SipEtag).map(identity::text), view.expires()),
        412 => Outcome::Unmatched,
        423 => view.min_expires().map_or(Outcome::Refused(423, None), Outcome::TooBrief),
        _ => Outcome::Refused(status, seconds(HeaderName::RetryAfter)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_takes_the_place_of_the_one_in_the_uri() {
        for (uri, user, expected) in [
            ("sip:172.16.0.100", "1000", "sip:1000@172.16.0.100"),
            ("sip:x@esc.example:5070;transport=tcp", "1000", "sip:1000@esc.example:5070;transport=tcp"),
            ("sips:esc.example", "a b", "sips:a%20b@esc.example"),
            ("sip:instance1@172.16.10.2", "", "sip:instance1@172.16.10.2"),
        ] {
            assert_eq!(with_user(uri, user), expected);
        }
    }
}
