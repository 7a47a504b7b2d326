//! Notices as the events that programs hear.

use call::stasis::{MediaChange, StasisNotice};
use call::{Notice, Presentation, Snapshot};
use serde_json::{Map, Value, json};

use super::view::{View, playback, recording, state_of_endpoint};
use crate::ami::presentation_words;

/// An event: its name, and what it says beside the fields that all have.
pub(super) type Event = (&'static str, Value);

/// What a notice is for programs; nothing for most.
pub(super) fn events_of(notice: &Notice, view: &mut View<'_>) -> Vec<Event> {
    match notice {
        Notice::Stasis(of) => of_program(of, view).into_iter().collect(),
        Notice::PeerStatus { peer, status, address, cause, time_ms, .. } => {
            peer_status(peer, status, (address, cause, *time_ms), view)
        }
        _ => of_channel(notice, view)
            .or_else(|| of_dialling(notice, view))
            .or_else(|| of_bridge(notice, view))
            .or_else(|| of_device(notice, view))
            .into_iter()
            .collect(),
    }
}

/// What happened to one channel.
fn of_channel(notice: &Notice, view: &mut View<'_>) -> Option<Event> {
    Some(match notice {
        Notice::NewChannel(of) => ("ChannelCreated", json!({ "channel": view.channel(of) })),
        Notice::NewState(of) => ("ChannelStateChange", json!({ "channel": view.channel(of) })),
        Notice::NewExten { channel, application, data } => (
            "ChannelDialplan",
            json!({ "channel": view.channel(channel), "dialplan_app": application, "dialplan_app_data": data }),
        ),
        Notice::NewCallerId(of) => {
            let (code, words) = presentation(of.caller.number_presentation);
            let event = json!({
                "channel": view.channel(of), "caller_presentation": code, "caller_presentation_txt": words,
            });
            ("ChannelCallerId", event)
        }
        Notice::NewConnectedLine(of) => ("ChannelConnectedLine", json!({ "channel": view.channel(of) })),
        Notice::VarSet { channel, variable, value } => {
            let mut event = json!({ "variable": variable, "value": value });
            put(&mut event, "channel", channel.as_ref().map(|of| view.channel(of)));
            ("ChannelVarset", event)
        }
        Notice::Hold { channel: of, class } => {
            let mut body = json!({ "channel": view.channel(of) });
            if let (false, Some(body)) = (class.is_empty(), body.as_object_mut()) {
                body.insert("musicclass".to_owned(), json!(class));
            }
            ("ChannelHold", body)
        }
        Notice::Unhold(of) => ("ChannelUnhold", json!({ "channel": view.channel(of) })),
        Notice::Dtmf { channel, digit, duration_ms: Some(ms), received: true } => (
            "ChannelDtmfReceived",
            json!({ "channel": view.channel(channel), "digit": digit.to_char().to_string(), "duration_ms": ms }),
        ),
        Notice::Talking { channel, duration_ms: None } => {
            ("ChannelTalkingStarted", json!({ "channel": view.channel(channel) }))
        }
        Notice::Talking { channel, duration_ms: Some(ms) } => {
            ("ChannelTalkingFinished", json!({ "channel": view.channel(channel), "duration": ms }))
        }
        Notice::SoftHangup { channel, by } => {
            let event = json!({ "channel": view.channel(channel), "cause": *by as u8, "soft": true });
            ("ChannelHangupRequest", event)
        }
        Notice::HangupRequest { channel, cause } => {
            let mut event = json!({ "channel": view.channel(channel) });
            put(&mut event, "cause", cause.map(|cause| Value::from(cause.0)));
            put(&mut event, "tech_cause", channel.tech_cause.map(Value::from));
            ("ChannelHangupRequest", event)
        }
        Notice::Hangup { channel, cause } => {
            let mut event =
                json!({ "channel": view.channel(channel), "cause": cause.0, "cause_txt": cause.text() });
            put(&mut event, "tech_cause", channel.tech_cause.map(Value::from));
            ("ChannelDestroyed", event)
        }
        Notice::UserEvent { channel, name, fields } => user_event(channel.as_ref(), name, fields, view),
        // Of something else, or of interest to managers alone.
        _ => return None,
    })
}

fn of_dialling(notice: &Notice, view: &mut View<'_>) -> Option<Event> {
    let event = match notice {
        Notice::DialBegin { caller, dest, dial_string } => {
            dial(caller.as_ref(), dest, ("", "", dial_string), view)
        }
        Notice::DialState { caller, dest, status, dial_string } => {
            dial(caller.as_ref(), dest, (status, "", dial_string), view)
        }
        Notice::DialEnd { caller, dest, status, forward, forwarded, dial_string } => {
            let forward = forward.as_deref().unwrap_or_default();
            // Programs read the number alone.
            let number = forward.split_once('/').map_or(forward, |(_, resource)| resource);
            let number = number.split_once('@').map_or(number, |(number, _)| number);
            let mut event = dial(caller.as_ref(), dest, (status, number, dial_string), view);
            put(&mut event, "forwarded", forwarded.as_deref().map(|of| view.channel(of)));
            event
        }
        _ => return None,
    };
    Some(("Dial", event))
}

/// What happened to bridges that calls have made, and by them.
fn of_bridge(notice: &Notice, view: &mut View<'_>) -> Option<Event> {
    Some(match notice {
        // Of the inside of programs' bridges they hear as of the bridges themselves.
        Notice::BridgeCreate { bridge }
        | Notice::BridgeDestroy { bridge }
        | Notice::BridgeEnter { bridge, .. }
        | Notice::BridgeLeave { bridge, .. }
            if view.facts.is_inside(bridge.id) =>
        {
            return None;
        }
        Notice::BridgeCreate { bridge } => ("BridgeCreated", json!({ "bridge": view.plain_bridge(bridge) })),
        Notice::BridgeDestroy { bridge } => {
            ("BridgeDestroyed", json!({ "bridge": view.plain_bridge(bridge) }))
        }
        Notice::BridgeEnter { bridge, channel, .. } => (
            "ChannelEnteredBridge",
            json!({ "bridge": view.plain_bridge(bridge), "channel": view.channel(channel) }),
        ),
        Notice::BridgeLeave { bridge, channel, .. } => (
            "ChannelLeftBridge",
            json!({ "bridge": view.plain_bridge(bridge), "channel": view.channel(channel) }),
        ),
        Notice::BlindTransfer { transferer, transferee, replacement, bridge, members, external, to } => {
            let mut event = json!({
                "channel": view.channel(transferer),
                "bridge": view.bridge_before(bridge, members),
                "context": to.0,
                "exten": to.1,
                "result": "Success",
                "is_external": external,
            });
            put(&mut event, "transferee", transferee.as_deref().map(|of| view.channel(of)));
            put(&mut event, "replace_channel", replacement.as_deref().map(|of| view.channel(of)));
            ("BridgeBlindTransfer", event)
        }
        Notice::AttendedTransfer { .. } => return attended(notice, view),
        _ => return None,
    })
}

fn of_device(notice: &Notice, view: &View<'_>) -> Option<Event> {
    Some(match notice {
        Notice::DeviceStateChange { device, state } => {
            ("DeviceStateChanged", json!({ "device_state": { "name": device, "state": state } }))
        }
        Notice::ContactStatus { uri, status, aor, endpoint, roundtrip_us, .. } => {
            let endpoint = view.endpoint("PJSIP", endpoint)?;
            let mut contact = json!({ "uri": uri, "contact_status": status, "aor": aor });
            put(&mut contact, "roundtrip_usec", roundtrip_us.map(|us| Value::from(us.to_string())));
            ("ContactStatusChange", json!({ "endpoint": endpoint, "contact_info": contact }))
        }
        _ => return None,
    })
}

fn put(event: &mut Value, name: &str, value: Option<Value>) {
    if let (Some(value), Some(event)) = (value, event.as_object_mut()) {
        event.insert(name.to_owned(), value);
    }
}

fn of_program(notice: &StasisNotice, view: &mut View<'_>) -> Option<Event> {
    Some(match notice {
        StasisNotice::Followed { .. } => return None,
        StasisNotice::Start { args, channel, replaced, .. } => {
            let mut event = json!({ "args": args, "channel": view.channel(channel) });
            put(&mut event, "replace_channel", replaced.as_ref().map(|of| view.channel(of)));
            ("StasisStart", event)
        }
        StasisNotice::End { channel, .. } => ("StasisEnd", json!({ "channel": view.channel(channel) })),
        // Told to the connection that was replaced, when that happened.
        StasisNotice::Replaced { .. } => return None,
        StasisNotice::MoveFailed { to, args, channel, .. } => {
            let event = json!({ "channel": view.channel(channel), "destination": to, "args": args });
            ("ApplicationMoveFailed", event)
        }
        StasisNotice::Playback { change, playback: of } => {
            let name = match change {
                MediaChange::Started => "PlaybackStarted",
                MediaChange::Continuing => "PlaybackContinuing",
                MediaChange::Finished | MediaChange::Failed => "PlaybackFinished",
            };
            (name, json!({ "playback": playback(of) }))
        }
        StasisNotice::Recording { change, recording: of } => {
            let name = match change {
                MediaChange::Started | MediaChange::Continuing => "RecordingStarted",
                MediaChange::Finished => "RecordingFinished",
                MediaChange::Failed => "RecordingFailed",
            };
            (name, json!({ "recording": recording(of) }))
        }
        StasisNotice::BridgeCreated(of) => ("BridgeCreated", json!({ "bridge": view.bridge(of) })),
        StasisNotice::BridgeDestroyed(of) => ("BridgeDestroyed", json!({ "bridge": view.bridge(of) })),
        StasisNotice::Text { endpoint: (tech, resource), message } => {
            let variables = message.data.iter().map(|data| (data.name.clone(), Value::from(&*data.value)));
            let variables: Map<String, Value> = variables.collect();
            let mut event = json!({ "message": {
                "from": message.from, "to": message.to, "body": message.body, "variables": variables,
            } });
            put(&mut event, "endpoint", view.endpoint(tech, resource));
            ("TextMessageReceived", event)
        }
        StasisNotice::Offered { channel, .. } => {
            let event = json!({
                "channel": view.channel(channel),
                "caller": channel.caller.number(),
                "called": channel.location.exten,
            });
            ("CallBroadcast", event)
        }
        StasisNotice::Claimed { channel, winner, .. } => {
            ("CallClaimed", json!({ "channel": view.channel(channel), "winner_app": &**winner }))
        }
        StasisNotice::Transfer(of) => ("ChannelTransfer", transfer(of, view)),
        StasisNotice::ToneDetected { channel } => {
            ("ChannelToneDetected", json!({ "channel": view.channel(channel) }))
        }
        StasisNotice::VideoSource { bridge, old } => {
            let mut event = json!({ "bridge": view.bridge(bridge) });
            put(&mut event, "old_video_source_id", old.as_deref().map(Value::from));
            ("BridgeVideoSourceChanged", event)
        }
        StasisNotice::BridgeEntered { bridge, channel } => (
            "ChannelEnteredBridge",
            json!({ "bridge": view.bridge(bridge), "channel": view.channel(channel) }),
        ),
        StasisNotice::BridgeLeft { bridge, channel } => {
            ("ChannelLeftBridge", json!({ "bridge": view.bridge(bridge), "channel": view.channel(channel) }))
        }
    })
}

fn dial(
    caller: Option<&Snapshot>,
    dest: &Snapshot,
    (status, forward, dial_string): (&str, &str, &str),
    view: &mut View<'_>,
) -> Value {
    let mut event = json!({
        "peer": view.channel(dest), "dialstatus": status, "forward": forward, "dialstring": dial_string,
    });
    put(&mut event, "caller", caller.map(|of| view.channel(of)));
    event
}

/// A transfer that programs carry out.
fn transfer(of: &call::stasis::Transfer, view: &mut View<'_>) -> Value {
    let mut wanted = json!({ "destination": of.destination });
    put(&mut wanted, "protocol_id", of.protocol_id.as_deref().map(Value::from));
    let params =
        of.params.iter().map(|(name, value)| json!({ "parameter_name": name, "parameter_value": value }));
    let params: Vec<Value> = params.collect();
    put(&mut wanted, "additional_protocol_params", (!params.is_empty()).then(|| params.into()));
    let mut refer_to = json!({ "requested_destination": wanted });
    put(&mut refer_to, "destination_channel", of.target.as_ref().map(|of| view.channel(of)));
    put(&mut refer_to, "connected_channel", of.target_peer.as_ref().map(|of| view.channel(of)));
    put(&mut refer_to, "bridge", of.target_bridge.as_ref().map(|of| view.plain_bridge(of)));
    let mut referred_by = json!({ "source_channel": view.channel(&of.source) });
    put(&mut referred_by, "connected_channel", of.source_peer.as_ref().map(|of| view.channel(of)));
    put(&mut referred_by, "bridge", of.source_bridge.as_ref().map(|of| view.plain_bridge(of)));
    let mut event = json!({ "refer_to": refer_to, "referred_by": referred_by });
    put(&mut event, "state", of.state.map(Value::from));
    event
}

/// A user event; values that come under one name again are a list.
fn user_event(
    channel: Option<&Snapshot>,
    name: &str,
    fields: &[(String, String)],
    view: &mut View<'_>,
) -> Event {
    let mut said = Map::new();
    said.insert("eventname".into(), Value::from(name));
    for (key, value) in fields {
        said.insert(key.clone(), Value::from(value.as_str()));
    }
    let mut event = json!({ "eventname": name, "userevent": said });
    put(&mut event, "channel", channel.map(|of| view.channel(of)));
    ("ChannelUserevent", event)
}

fn attended(notice: &Notice, view: &mut View<'_>) -> Option<Event> {
    let Notice::AttendedTransfer {
        transferer,
        second,
        transferee,
        target,
        link,
        bridges: [first_bridge, second_bridge],
        stays,
        external,
    } = notice
    else {
        return None;
    };
    let kind = match (link, target) {
        (Some(_), _) => "link",
        (None, Some(_)) => "bridge",
        (None, None) => "application",
    };
    let mut event = json!({
        "transferer_first_leg": view.channel(transferer),
        "transferer_second_leg": view.channel(second.as_deref().unwrap_or(transferer)),
        "result": "Success",
        "is_external": external,
        "destination_type": kind,
    });
    put(&mut event, "transferee", transferee.as_deref().map(|of| view.channel(of)));
    put(&mut event, "transfer_target", target.as_deref().map(|of| view.channel(of)));
    let bridge = |of: &Option<call::BridgeSnapshot>| of.as_ref().map(|of| view.plain_bridge(of));
    let app = call::transfer_app(transferer, second.as_deref(), second_bridge.is_some());
    let (first_bridge, second_bridge) = (bridge(first_bridge), bridge(second_bridge));
    put(&mut event, "transferer_first_leg_bridge", first_bridge);
    put(&mut event, "transferer_second_leg_bridge", second_bridge);
    put(&mut event, "destination_bridge", stays.as_deref().map(Value::from));
    put(&mut event, "destination_application", (kind == "app").then(|| Value::from(app)));
    if let Some((one, two)) = link {
        put(&mut event, "destination_link_first_leg", Some(view.channel(one)));
        put(&mut event, "destination_link_second_leg", Some(view.channel(two)));
    }
    Some(("BridgeAttendedTransfer", event))
}

fn peer_status(
    peer: &str,
    status: &str,
    (address, cause, time_ms): (&str, &str, Option<u64>),
    view: &View<'_>,
) -> Vec<Event> {
    let Some((tech, resource)) = peer.split_once('/') else { return Vec::new() };
    let Some(state) = state_of_endpoint(view.site, view.core, tech, resource) else { return Vec::new() };
    let endpoint = view.endpoint_in(tech, resource, state);
    let mut of = json!({ "peer_status": status });
    put(&mut of, "address", (!address.is_empty()).then(|| Value::from(address)));
    put(&mut of, "cause", (!cause.is_empty()).then(|| Value::from(cause)));
    put(&mut of, "time", time_ms.map(|ms| Value::from(ms.to_string())));
    vec![
        ("PeerStatusChange", json!({ "endpoint": endpoint, "peer": of })),
        ("EndpointStateChange", json!({ "endpoint": endpoint })),
    ]
}

/// The presentation as a number and in words.
fn presentation(of: Presentation) -> (u8, &'static str) {
    (of.code(), presentation_words(of))
}
