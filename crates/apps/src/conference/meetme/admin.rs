//! What dialplans change in conferences by `MeetMeAdmin` and `MeetMeChannelAdmin`, and how many are in one.

use base::{ChannelId, Gain, MemberSettings};
use call::conference::{NotThere, Which};
use call::{Core, Level};

use crate::call_ctx::args;
use crate::{Call, Flow, Outcome, say};

pub(super) async fn count(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let (number, variable) = (args::nth(&parts, 0), args::nth(&parts, 1));
    let count = call.chan.core(|core| core.conferences.get(number).map_or(0, |found| found.members.len()));
    if !variable.is_empty() {
        call.set(variable, &count.to_string());
        return Ok(Flow::Continue);
    }
    call.answer_for_sound().await?;
    let number = i64::try_from(count).unwrap_or(i64::MAX);
    for name in say::number_words(&call.chan, number).await? {
        call.chan.play(&name, "").await?;
    }
    Ok(Flow::Continue)
}

/// Why a command was not obeyed, in the words of MEETMEADMINSTATUS.
type Refused = &'static str;

pub(super) fn conference(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let (name, command, user) = (args::nth(&parts, 0), args::nth(&parts, 1), args::nth(&parts, 2));
    let status = match command.chars().next() {
        Some(command) if !name.is_empty() => {
            let done = call.chan.core(|core| obey(core, name, command, user));
            done.err().unwrap_or("OK")
        }
        _ => "NOPARSE",
    };
    if status != "OK" {
        call.log(Level::Warning, &format!("MeetMeAdmin({text}): {status}"));
    }
    call.set("MEETMEADMINSTATUS", status);
    Ok(Flow::Continue)
}

fn obey(core: &mut Core, name: &str, command: char, user: &str) -> Result<(), Refused> {
    if core.conferences.get(name).is_none() {
        return Err("NOTFOUND");
    }
    let one = || member(core, name, user).map(Which::One).ok_or("NOTFOUND");
    let done = match command {
        'e' => core.conference_kick(name, Which::Last),
        'E' => {
            let by = core.settings.bookings.extend_by;
            return core.conference_extend(name, by).then_some(()).ok_or("FAILED");
        }
        'k' => {
            let one = one()?;
            core.conference_kick(name, one)
        }
        'K' => core.conference_kick(name, Which::All),
        'l' | 'L' => core.conference_lock(name, command == 'L'),
        'm' | 'M' => {
            let one = one()?;
            core.conference_mute(name, one, command == 'M')
        }
        'n' => core.conference_mute(name, Which::All, false),
        'N' => core.conference_mute_participants(name, true),
        'r' | 't' | 'T' | 'u' | 'U' => {
            let Which::One(id) = one()? else { return Err("FAILED") };
            core.conference_volume(id, |mixing| turn(mixing, command));
            Ok(())
        }
        'R' | 's' | 'S' | 'v' | 'V' => {
            // Those of all are those of each.
            let of_one = match command {
                's' => 't',
                'S' => 'T',
                'v' => 'u',
                'V' => 'U',
                _ => 'r',
            };
            for id in members(core, name) {
                core.conference_volume(id, |mixing| turn(mixing, of_one));
            }
            Ok(())
        }
        _ => return Err("NOPARSE"),
    };
    done.map_err(|why| match why {
        NotThere::Conference => "NOTFOUND",
        NotThere::Member => "FAILED",
    })
}

fn members(core: &Core, name: &str) -> Vec<ChannelId> {
    let members = core.conferences.get(name).into_iter().flat_map(|conference| &conference.members);
    members.map(|member| member.channel).collect()
}

/// The member with this number.
fn member(core: &Core, name: &str, user: &str) -> Option<ChannelId> {
    let number: u32 = user.trim().parse().ok()?;
    core.conferences.get(name)?.members.iter().find(|member| member.number == number).map(|m| m.channel)
}

/// Loudest and quietest: four times as loud, a quarter.
const GAINS: (u16, u16) = (Gain::UNITY.0 / 4, Gain::UNITY.0 * 4);

/// Turns a volume by 6 dB, as far as it goes.
fn turn(mixing: &mut MemberSettings, command: char) {
    let louder = |gain: &mut Gain| gain.0 = gain.0.saturating_mul(2).min(GAINS.1);
    let quieter = |gain: &mut Gain| gain.0 = (gain.0 / 2).max(GAINS.0);
    match command {
        't' => quieter(&mut mixing.talking),
        'T' => louder(&mut mixing.talking),
        'u' => quieter(&mut mixing.listening),
        'U' => louder(&mut mixing.listening),
        _ => (mixing.talking, mixing.listening) = (Gain::UNITY, Gain::UNITY),
    }
}

pub(super) fn channel(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let (channel, command) = (args::nth(&parts, 0), args::nth(&parts, 1));
    let done = call.chan.core(|core| {
        let id = core.by_name(channel).ok_or("NOTFOUND")?;
        let name = core.conferences.of(id).map(|conference| conference.name.clone()).ok_or("NOTFOUND")?;
        let done = match command {
            "k" => core.conference_kick(&name, Which::One(id)),
            "m" | "M" => core.conference_mute(&name, Which::One(id), command == "M"),
            _ => return Err("NOPARSE"),
        };
        done.map_err(|_| "FAILED")
    });
    if let Err(why) = done {
        call.log(Level::Warning, &format!("MeetMeChannelAdmin({text}): {why}"));
    }
    Ok(Flow::Continue)
}
