//! The record key of a phone: INFO with `Record: on` or `Record: off` presses the code of a feature.

use ::sip::{HeaderName, Message};
use base::Digit;
use call::{ChanEvent, Core, Level};

use super::SipDriver;

/// Length of the digits that it presses, milliseconds.
const DIGIT_MS: u32 = 100;

impl SipDriver {
    /// The status that answers such an INFO: 200 when the code was pressed, whether somebody hears it or not; 403 when the
    /// endpoint may not record by its key or the feature has no code. `None`: it is another INFO.
    pub(super) fn record_key(&self, core: &mut Core, handle: u64, message: &Message<'_>) -> Option<u16> {
        let wish = message.header(HeaderName::from_bytes(b"Record"))?.trim_ascii();
        let leg = self.legs.get(handle)?;
        let recording = &leg.endpoint.recording;
        let feature = match () {
            () if wish.eq_ignore_ascii_case(b"on") => &recording.on_feature,
            () if wish.eq_ignore_ascii_case(b"off") => &recording.off_feature,
            () => return None,
        };
        let Some(channel) = core.get(leg.channel) else { return Some(481) };
        let features = channel.features.as_ref().unwrap_or(&core.settings.features);
        let code = features.code_of(feature).filter(|_| recording.by_key);
        let digits: Option<Vec<Digit>> = code.map(|code| code.chars().filter_map(Digit::from_char).collect());
        let Some(digits) = digits.filter(|digits| !digits.is_empty()) else {
            let why = match recording.by_key {
                true => format!("features.conf has no code for '{feature}'"),
                false => "the endpoint has one_touch_recording=no".to_owned(),
            };
            let line = format!("the record key of '{}' does nothing: {why}", leg.endpoint.name);
            core.log(Level::Notice, "res_pjsip_one_touch_record_info", &line);
            return Some(403);
        };
        for digit in digits {
            let pressed = ChanEvent::Digit { digit, duration_ms: DIGIT_MS, relayed: false };
            core.push_event(leg.channel, pressed);
        }
        Some(200)
    }
}
