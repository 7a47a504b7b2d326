//! Calls that are taken from a lamp: what a NOTIFY of a ringing extension says of its dialog, and the INVITE with Replaces
//! that a phone makes of that (RFC 4235 §4.1.1, RFC 3891).
//!
//! Between whoever calls and whoever rings are we, with a dialog on each side; neither is the watchers' business. A lamp
//! names a dialog that stands for whatever rings at its extension: the same for all who watch, so that one document does
//! for them, and right for the next call, too, when one of two is taken. It proves nothing. Who may take the call is asked
//! when the INVITE comes.

use std::rc::Rc;

use ::sip::header::Replaces;
use base::ChannelId;
use call::pickup::Ringing;
use call::{Core, Watched};

use super::super::SipDriver;
use super::super::config::Endpoint;
use super::Topic;
use super::body::{Kind, xml_id};

/// How the Call-ID of such a dialog begins.
const PREFIX: &str = "pickup-";
const LOCAL_TAG: &str = "rings";
const REMOTE_TAG: &str = "calls";

/// Attributes of the element `dialog` of an extension that rings; `exten` is XML already.
pub(super) fn attributes(exten: &str) -> String {
    let id = xml_id(exten);
    format!(
        " call-id=\"{PREFIX}{id}\" local-tag=\"{LOCAL_TAG}\" remote-tag=\"{REMOTE_TAG}\" direction=\"recipient\""
    )
}

impl SipDriver {
    /// The call that rings at an extension whose lamp this endpoint watches, or the status that refuses it: 481 when
    /// nothing rings there, 403 when that is in no group whose calls the endpoint may take. `None`: the dialog is none
    /// that a lamp names.
    pub(in super::super) fn rings_at_lamp(
        &self,
        core: &Core,
        endpoint: &Endpoint,
        replaces: &Replaces<'_>,
    ) -> Option<Result<ChannelId, u16>> {
        let id = replaces.call_id.strip_prefix(PREFIX.as_bytes())?;
        // Phones differ in whose tag they take for whose.
        let tags = [LOCAL_TAG.as_bytes(), REMOTE_TAG.as_bytes()];
        if !tags.contains(&replaces.to_tag) || !tags.contains(&replaces.from_tag) {
            return None;
        }
        let own = self.watchers.by_endpoint.get(&endpoint.name).into_iter().flatten();
        let items = own.filter_map(|subscription| self.watchers.all.get(subscription)).flat_map(|w| &w.items);
        let watched = items.filter_map(|item| match (&item.topic, item.kind) {
            (Topic::Extension(extension), Kind::DialogInfo { .. }) => Some(extension),
            _ => None,
        });
        let mut named = watched.filter(|extension| xml_id(&extension.exten).as_bytes() == id);
        let ringing = named.next().and_then(|extension| ringing_at(core, extension));
        let Some(target) = ringing else { return Some(Err(481)) };
        let may = core.get(target).is_some_and(|channel| endpoint.pickup.pickup.meets(&channel.pickup.call));
        Some(if may { Ok(target) } else { Err(403) })
    }
}

/// What rings at an extension.
pub(super) fn ringing_at(core: &Core, extension: &Rc<Watched>) -> Option<ChannelId> {
    let nobody = ChannelId::new(u32::MAX, u32::MAX);
    let mut devices = core.board.devices(extension);
    devices.find_map(|device| core.find_ringing(nobody, Ringing::Named(&as_channels_are_named(device))))
}

/// A device as the names of its channels begin.
fn as_channels_are_named(device: &str) -> String {
    match device.split_once('/') {
        Some((tech, rest)) if tech.eq_ignore_ascii_case("SIP") => format!("PJSIP/{rest}"),
        _ => device.to_owned(),
    }
}
