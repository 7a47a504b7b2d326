//! `VOLUME()` and `AGC()`: how loud a channel is for others, and others for it.

use call::{Volume, VolumeSide};
use dialplan::Fault;

use super::{Read, gone, unknown};
use crate::Call;
use crate::call_ctx::args;

/// The option of `VOLUME()` that lets the party's own keys change it.
const BY_KEYS: char = 'p';

/// The side that a direction names: what comes of the channel, or what goes to it.
fn side(direction: &str) -> Result<fn(&mut Volume) -> &mut VolumeSide, Fault> {
    match direction.trim().to_ascii_lowercase().as_str() {
        "rx" => Ok(|volume| &mut volume.received),
        "tx" => Ok(|volume| &mut volume.sent),
        _ => Err(unknown(direction.trim())),
    }
}

fn now(call: &Call, direction: &str) -> Result<VolumeSide, Fault> {
    let side = side(direction)?;
    call.chan.with(|_| ()).map_err(gone)?;
    let mut volume = call.chan.core(|core| core.volume(call.chan.id()));
    Ok(*side(&mut volume))
}

/// `${VOLUME(TX)}`: the step that holds.
pub(super) fn read(call: &Call, text: &str, out: &mut String) -> Read {
    let side = now(call, args::nth(&args::split(text), 0))?;
    out.push_str(&side.step.to_string());
    Ok(())
}

/// `Set(VOLUME(TX|RX[,p])=3)`: three times as loud; -3 is a third. Beyond 127 there is nothing to hear.
pub(super) fn write(call: &Call, text: &str, value: &str) -> Read {
    let parts = args::split(text);
    let side = side(args::nth(&parts, 0))?;
    let by_keys = args::nth(&parts, 1).contains(BY_KEYS);
    let value = value.trim();
    let step: i32 =
        value.parse().map_err(|_| Fault::new(format!("'{value}' is no volume such as 3 or -3")))?;
    let step = step.clamp(i8::MIN.into(), i8::MAX.into()) as i8;
    call.chan.with(|_| ()).map_err(gone)?;
    call.chan.core(|core| {
        core.change_volume(call.chan.id(), |volume| {
            let side = side(volume);
            (side.step, side.by_keys) = (step, by_keys);
        });
    });
    Ok(())
}

/// `${AGC(rx)}`: the level that talking is brought to, or `off`.
pub(super) fn read_level(call: &Call, text: &str, out: &mut String) -> Read {
    match now(call, text)?.level {
        0 => out.push_str("off"),
        level => out.push_str(&level.to_string()),
    }
    Ok(())
}

/// `Set(AGC(rx|tx)=8000)`, or `off`.
pub(super) fn write_level(call: &Call, text: &str, value: &str) -> Read {
    let side = side(text)?;
    let value = value.trim();
    let level = match value.eq_ignore_ascii_case("off") {
        true => 0.0,
        false => value
            .parse()
            .ok()
            .filter(|level| (1.0..=32_768.0).contains(level))
            .ok_or_else(|| Fault::new(format!("'{value}' is neither off nor a level from 1 to 32768")))?,
    };
    // A mean amplitude above this is nothing but clipping.
    let level = f64::min(level, i16::MAX.into()) as u16;
    call.chan.with(|_| ()).map_err(gone)?;
    call.chan.core(|core| core.change_volume(call.chan.id(), |volume| side(volume).level = level));
    Ok(())
}
