//! `FEATURE()` and `FEATUREMAP()`: what keys do on one channel.

use core::time::Duration;
use std::rc::Rc;

use call::Key;
use call::features::Features;
use dialplan::Fault;

use super::{Read, gone, unknown};
use crate::{Call, features};

/// One thing that features.conf says.
enum Item<'a> {
    Text(&'a mut String),
    Code(&'a mut String),
    Seconds(&'a mut Duration),
    Millis(&'a mut Duration),
    Count(&'a mut u32),
    YesNo(&'a mut bool),
}

impl Item<'_> {
    fn show(&self) -> String {
        match self {
            Self::Text(text) | Self::Code(text) => (*text).clone(),
            Self::Seconds(time) => time.as_secs().to_string(),
            Self::Millis(time) => time.as_millis().to_string(),
            Self::Count(count) => count.to_string(),
            Self::YesNo(value) => if **value { "yes" } else { "no" }.to_owned(),
        }
    }
    fn set(self, value: &str) -> Read {
        let number = || value.trim().parse::<u32>().ok().filter(|number| (1..=60_000).contains(number));
        let number = || number().ok_or_else(|| Fault::new(format!("'{value}' is no number from 1 to 60000")));
        match self {
            Self::Text(text) => *text = value.to_owned(),
            Self::Code(code) => {
                if !value.is_empty() && Key::new(value, 0).is_none() {
                    return Err(Fault::new(format!("'{value}' cannot be pressed on a phone")));
                }
                *code = value.to_owned();
            }
            Self::Seconds(time) => *time = Duration::from_secs(number()?.into()),
            Self::Millis(time) => *time = Duration::from_millis(number()?.into()),
            Self::Count(count) => *count = number()?,
            Self::YesNo(yes) => *yes = crate::say::is_yes(value),
        }
        Ok(())
    }
}

/// An item of `[general]`.
fn general<'a>(of: &'a mut Features, name: &str) -> Option<Item<'a>> {
    Some(match name {
        "featuredigittimeout" => Item::Millis(&mut of.code_timeout),
        "transferdigittimeout" => Item::Seconds(&mut of.digit_timeout),
        "transferdialattempts" => Item::Count(&mut of.attempts),
        "atxfernoanswertimeout" => Item::Seconds(&mut of.no_answer),
        "atxferabort" => Item::Code(&mut of.abort),
        "atxfercomplete" => Item::Code(&mut of.complete),
        "atxferswap" => Item::Code(&mut of.swap),
        "atxferthreeway" => Item::Code(&mut of.three_way),
        "atxferdropcall" => Item::YesNo(&mut of.drop_call),
        "atxfercallbackretries" => Item::Count(&mut of.callback_retries),
        "atxferloopdelay" => Item::Seconds(&mut of.loop_delay),
        "xfersound" => Item::Text(&mut of.done_sound),
        "xferfailsound" => Item::Text(&mut of.failed_sound),
        "transferannouncesound" => Item::Text(&mut of.announce_sound),
        "transferretrysound" => Item::Text(&mut of.retry_sound),
        "transferinvalidsound" => Item::Text(&mut of.invalid_sound),
        "courtesytone" => Item::Text(&mut of.courtesy_tone),
        "recordingfailsound" => Item::Text(&mut of.recording_failed_sound),
        "pickupsound" => Item::Text(&mut of.pickup_sound),
        "pickupfailsound" => Item::Text(&mut of.pickup_fail_sound),
        _ => return None,
    })
}

/// An item of `[featuremap]`.
fn mapped<'a>(of: &'a mut Features, name: &str) -> Option<Item<'a>> {
    let map = &mut of.map;
    Some(Item::Code(match name {
        "blindxfer" => &mut map.blind,
        "atxfer" => &mut map.attended,
        "disconnect" => &mut map.disconnect,
        "automixmon" => &mut map.mix_monitor,
        "automon" => &mut map.monitor,
        "parkcall" => &mut map.park,
        _ => return None,
    }))
}

type Find = for<'a> fn(&'a mut Features, &str) -> Option<Item<'a>>;

fn read(call: &Call, find: Find, name: &str, out: &mut String) -> Read {
    let mut copy = Features::clone(&features::of(&call.chan));
    let item = find(&mut copy, name.trim().to_ascii_lowercase().as_str()).ok_or_else(|| unknown(name))?;
    out.push_str(&item.show());
    Ok(())
}

fn write(call: &Call, find: Find, name: &str, value: &str) -> Read {
    let mut own = features::of(&call.chan);
    let item = find(Rc::make_mut(&mut own), name.trim().to_ascii_lowercase().as_str());
    item.ok_or_else(|| unknown(name))?.set(value)?;
    call.chan.with(|channel| channel.features = Some(own)).map_err(gone)
}

pub(super) fn read_general(call: &Call, name: &str, out: &mut String) -> Read {
    read(call, general, name, out)
}

pub(super) fn write_general(call: &Call, name: &str, value: &str) -> Read {
    write(call, general, name, value)
}

pub(super) fn read_map(call: &Call, name: &str, out: &mut String) -> Read {
    read(call, mapped, name, out)
}

pub(super) fn write_map(call: &Call, name: &str, value: &str) -> Read {
    write(call, mapped, name, value)
}
