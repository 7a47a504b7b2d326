//! What there is, as the models that programs read.

use std::collections::BTreeMap;
use std::rc::Rc;

use apps::Call;
use base::BridgeId;
use call::stasis::{Application, BridgeView, LiveRecording, Playback, Topic};
use call::{Chan, Core, DeviceState, Notice, Snapshot};
use dialplan::Rights;
use serde_json::{Map, Value, json};
use store::date::Zone;

use super::time::stamp;
use crate::site::Site;

/// What is remembered of bridges that somebody hears of; each goes with what it is about.
#[derive(Default)]
pub(crate) struct Facts {
    /// Bridges of the core: whether one is the inside of a program's bridge, and when it was made.
    bridges: BTreeMap<(u32, u32), (bool, i64)>,
    /// A function is among the variables that a channel was shown with: [`ask_functions`] is to be called.
    pub asks: bool,
}

impl Facts {
    /// Nobody hears of anything any more.
    pub fn clear(&mut self) {
        self.bridges.clear();
    }
    /// Somebody hears of things from here on: what there is is learnt.
    pub fn begin(&mut self, core: &Core) {
        for (id, members) in core.bridges() {
            let is_inside = core.stasis_bridge_with(id).is_some();
            self.bridges.insert((id.slot, id.generation), (is_inside, made_at(core, members)));
        }
    }
    /// Learns of what comes, before events are made of it.
    pub fn note(&mut self, core: &Core, notice: &Notice) {
        if let Notice::BridgeCreate { bridge } = notice {
            let is_inside = matches!(bridge.used_for, call::BridgeUse::Program { .. });
            let made = (is_inside, core.services.wall.now_micros());
            self.bridges.insert((bridge.id.slot, bridge.id.generation), made);
        }
    }
    /// Forgets what is gone, after events were made of it.
    pub fn forget(&mut self, notice: &Notice) {
        if let Notice::BridgeDestroy { bridge } = notice {
            self.bridges.remove(&(bridge.id.slot, bridge.id.generation));
        }
    }
    /// Whether a bridge of the core is the inside of a program's.
    pub fn is_inside(&self, bridge: BridgeId) -> bool {
        self.bridges.get(&(bridge.slot, bridge.generation)).is_some_and(|(is_inside, _)| *is_inside)
    }
}

/// When a bridge was made that nobody has heard of, as near as can be told: it says no more of itself than who is in it.
fn made_at(core: &Core, members: &[base::ChannelId]) -> i64 {
    let created = members.iter().filter_map(|id| core.get(*id)).map(|channel| channel.created_wall).max();
    created.unwrap_or_else(|| core.services.wall.now_micros())
}

/// Makes models of what there is.
pub(super) struct View<'a> {
    pub site: &'a Site,
    pub core: &'a Core,
    pub facts: &'a mut Facts,
    /// `channelvars` of ari.conf.
    pub variables: &'a [String],
    pub zone: Rc<Zone>,
}

impl View<'_> {
    /// A moment, microseconds since the Unix epoch.
    pub fn moment(&self, micros: i64) -> Value {
        Value::from(stamp(micros, &self.zone))
    }
    /// Channel.
    pub fn channel(&mut self, of: &Snapshot) -> Value {
        let mut out = json!({
            "id": &*of.uniqueid,
            "name": &*of.name,
            "state": of.state.name(),
            "protocol_id": &*of.call_id,
            "caller": { "name": of.caller.name(), "number": of.caller.number() },
            "connected": { "name": of.connected.name(), "number": of.connected.number() },
            "accountcode": of.account,
            "dialplan": {
                "context": of.location.context,
                "exten": of.location.exten,
                "priority": of.location.priority,
                "app_name": of.app,
                "app_data": of.app_data,
            },
            "creationtime": self.moment(of.created_wall),
            "language": of.language,
        });
        let Some(fields) = out.as_object_mut() else { return out };
        if !of.rdnis.is_empty() {
            fields.insert("caller_rdnis".into(), Value::from(&*of.rdnis));
        }
        if !self.variables.is_empty() || !of.reported.is_empty() {
            let channel = self.core.by_name(&of.name).and_then(|id| self.core.get(id));
            let value =
                |name: &String| channel.and_then(|channel| channel.vars.get_name(name)).unwrap_or_default();
            let names = self.variables.iter().chain(&of.reported);
            let pairs: Map<String, Value> =
                names.map(|name| (name.clone(), Value::from(value(name)))).collect();
            self.facts.asks |= pairs.keys().any(|name| name.ends_with(')'));
            fields.insert("channelvars".into(), Value::Object(pairs));
        }
        if let Some(out) = out.as_object_mut().filter(|_| !of.tenant.is_empty()) {
            out.insert("tenantid".into(), Value::from(&*of.tenant));
        }
        out
    }
    /// A bridge that a program has made.
    pub fn bridge(&self, of: &BridgeView) -> Value {
        let channels: Vec<&str> = of.channels.iter().map(|id| &**id).collect();
        let mut out = json!({
            "id": &*of.id,
            "technology": of.technology,
            "bridge_type": of.kind.name(),
            "bridge_class": "stasis",
            "creator": "Stasis",
            "name": of.name,
            "channels": channels,
            "video_mode": of.video.name(),
            "creationtime": self.moment(of.created_wall),
        });
        let Some(fields) = out.as_object_mut() else { return out };
        if let Some(source) = &of.video_source {
            fields.insert("video_source_id".into(), Value::from(&**source));
        }
        if !of.variables.is_empty() {
            let pair = |(name, value): &(String, String)| (name.clone(), Value::from(value.as_str()));
            let pairs: Map<String, Value> = of.variables.iter().map(pair).collect();
            fields.insert("bridgevars".into(), Value::Object(pairs));
        }
        out
    }
    /// A bridge as it was, with those who were in it.
    pub fn bridge_before(&self, of: &call::BridgeSnapshot, members: &[Rc<str>]) -> Value {
        let own = self.core.stasis_bridge_view(&of.uid);
        let own = own.filter(|_| matches!(of.used_for, call::BridgeUse::Program { .. }));
        let mut out = match own {
            Some(view) => self.bridge(&BridgeView { technology: of.technology, ..view }),
            None => self.plain_bridge(of),
        };
        if let Some(fields) = out.as_object_mut() {
            let members: Vec<&str> = members.iter().map(|id| &**id).collect();
            fields.insert("channels".into(), members.into());
        }
        out
    }
    /// A bridge that calls have made, also one that is gone by now.
    pub fn plain_bridge(&self, of: &call::BridgeSnapshot) -> Value {
        let members = self.core.bridge_members(of.id);
        let channels: Vec<&str> =
            members.iter().filter_map(|id| self.core.get(*id)).map(|channel| &*channel.uniqueid).collect();
        let known = self.facts.bridges.get(&(of.id.slot, of.id.generation)).map(|(_, created)| *created);
        let created = known.unwrap_or_else(|| made_at(self.core, members));
        json!({
            "id": &*of.uid,
            "technology": of.technology,
            "bridge_type": "mixing",
            "bridge_class": "basic",
            "creator": "",
            "name": "",
            "channels": channels,
            "video_mode": "none",
            "creationtime": self.moment(created),
        })
    }
    /// Endpoint; `None` when the technology has none of this name.
    pub fn endpoint(&self, tech: &str, resource: &str) -> Option<Value> {
        let state = state_of_endpoint(self.site, self.core, tech, resource)?;
        Some(self.endpoint_in(tech, resource, state))
    }
    /// Endpoint, when its state is known.
    pub fn endpoint_in(&self, tech: &str, resource: &str, state: DeviceState) -> Value {
        let own = format!("{tech}/{resource}");
        let channels: Vec<&str> = self
            .core
            .channels()
            .filter(|channel| channel.name.rsplit_once('-').is_some_and(|(device, _)| *device == *own))
            .map(|channel| &*channel.uniqueid)
            .collect();
        let state = match state {
            DeviceState::Unavailable => "offline",
            DeviceState::Unknown | DeviceState::Invalid => "unknown",
            _ => "online",
        };
        json!({ "technology": tech, "resource": resource, "state": state, "channel_ids": channels })
    }
}

/// Asks the functions among the variables of all channels in what was made, which nobody may while the core is read.
pub(super) fn ask_functions(site: &Site, made: &mut Value) {
    match made {
        Value::Array(list) => list.iter_mut().for_each(|item| ask_functions(site, item)),
        Value::Object(fields) => {
            let name = fields.get("name").and_then(Value::as_str).map(str::to_owned);
            if let (Some(name), Some(Value::Object(pairs))) = (name, fields.get_mut("channelvars")) {
                let functions = pairs.iter_mut().filter(|(name, _)| name.ends_with(')'));
                functions.for_each(|(function, value)| *value = Value::from(asked_of(site, &name, function)));
            }
            fields
                .values_mut()
                .filter(|value| value.is_object())
                .for_each(|value| ask_functions(site, value));
        }
        _ => {}
    }
}

/// What a function says of a channel; empty where there is none of it any more.
fn asked_of(site: &Site, channel: &str, function: &str) -> String {
    let (id, dangerous) = {
        let core = site.shard.core.borrow();
        (core.by_name(channel), core.settings.live_dangerously)
    };
    let Some(id) = id else { return String::new() };
    let rights = Rights { sets: false, system: dangerous, outside: dangerous };
    Call::new(Chan::new(site.shard.clone(), id)).with_rights(rights).read(function)
}

/// What an endpoint does; `None` when there is no such endpoint.
pub(super) fn state_of_endpoint(site: &Site, core: &Core, tech: &str, resource: &str) -> Option<DeviceState> {
    match tech {
        "PJSIP" => {
            let sip = site.sip.try_borrow().ok()?;
            let rows = sip.endpoint_rows(Some(resource), core);
            rows.first().map(|row| row.state)
        }
        "IAX2" => {
            let iax = site.iax.try_borrow().ok()?;
            let known = iax.config().peers.contains_key(resource);
            known.then(|| call::Tech::device_state(&*iax, core, resource))
        }
        _ => None,
    }
}

/// Playback.
pub(super) fn playback(of: &Playback) -> Value {
    let mut out = json!({
        "id": &*of.id,
        "media_uri": of.media_uri(),
        "target_uri": of.target.uri(),
        "language": of.language,
        "state": of.state.name(),
    });
    if let (Some(next), Some(out)) = (of.next_media_uri(), out.as_object_mut()) {
        out.insert("next_media_uri".into(), Value::from(next));
    }
    out
}

/// LiveRecording.
pub(super) fn recording(of: &LiveRecording) -> Value {
    let mut out = json!({
        "name": &*of.name,
        "format": of.format,
        "target_uri": of.target.uri(),
        "state": of.state.name(),
    });
    let Some(fields) = out.as_object_mut() else { return out };
    let seconds =
        |time: core::time::Duration| Value::from((time.as_millis() as u64).saturating_add(500) / 1_000);
    if let Some(duration) = of.duration {
        fields.insert("duration".into(), seconds(duration));
        if let Some(silence) = of.silence {
            fields.insert("talking_duration".into(), seconds(duration.saturating_sub(silence)));
            fields.insert("silence_duration".into(), seconds(silence));
        }
    }
    if !of.cause.is_empty() {
        fields.insert("cause".into(), Value::from(of.cause.as_str()));
    }
    out
}

/// Application.
pub(super) fn application(name: &str, of: &Application) -> Value {
    let (mut channels, mut bridges, mut endpoints, mut devices) = (vec![], vec![], vec![], vec![]);
    for topic in of.listens_to() {
        match topic {
            Topic::Channel(id) => {
                channels.push(if id.is_empty() { "__AST_CHANNEL_ALL_TOPIC".into() } else { id.clone() })
            }
            Topic::Bridge(id) => {
                bridges.push(if id.is_empty() { "__AST_BRIDGE_ALL_TOPIC".into() } else { id.clone() })
            }
            Topic::Endpoint(tech, None) => endpoints.push(tech.clone()),
            Topic::Endpoint(tech, Some(resource)) => endpoints.push(format!("{tech}/{resource}")),
            Topic::DeviceState(name) => devices.push(name.clone()),
        }
    }
    let kinds = |list: &[String]| list.iter().map(|kind| json!({ "type": kind })).collect::<Vec<_>>();
    json!({
        "name": name,
        "channel_ids": channels,
        "bridge_ids": bridges,
        "endpoint_ids": endpoints,
        "device_names": devices,
        "events_allowed": kinds(&of.allowed),
        "events_disallowed": kinds(&of.disallowed),
    })
}
