//! `CHANNEL(rtcp,…)` and the variables `RTPAUDIOQOS…`: how good a channel's audio was.

use call::quality::{all, all_jitter, all_loss, all_mes, all_rtt};
use call::{Quality, Series, seconds};
use dialplan::{Fault, Inherit, Var};

use super::{Read, gone, unknown};
use crate::Call;

impl Call {
    /// Sets the variables that tell how good the audio of this channel was, for what its dialplan does after the end: watchers
    /// hear of them when the other side hangs up, or when the channel is gone.
    pub(crate) fn note_quality(&self) {
        let Ok(Some(quality)) = self.chan.with(|c| c.quality.as_deref().copied()) else { return };
        self.set_quality("", &quality);
    }
    /// Sets the variables that tell how good the audio of the channel it was bridged with was.
    pub(crate) fn note_quality_of(&self, peer: &call::Chan) {
        let Ok(Some(quality)) = peer.with(|c| c.quality.as_deref().copied()) else { return };
        self.set_quality("BRIDGED", &quality);
    }
    fn set_quality(&self, suffix: &str, quality: &Quality) {
        for (name, text) in quality.variables() {
            let name = format!("{name}{suffix}");
            let _ = self.chan.with(|c| c.vars.set(Var::named(&name), &text, Inherit::Never));
        }
    }
}

/// Whether a phone has hung up while nobody watched, so that what it is to be read from has not been set yet.
pub(crate) fn is_left_untold(channel: &call::Chan) -> bool {
    channel.with(|c| !c.is_quality_told && !c.hangup_by.is_empty() && c.hangup_by == c.name) == Ok(true)
}

/// `CHANNEL(rtcp,statistic[,audio])`, and `CHANNEL(rtpqos,audio,statistic)` of chan_sip.
pub(super) fn read(call: &Call, text: &str, out: &mut String) -> Read {
    let mut words = text.split(',').map(|word| word.trim().to_ascii_lowercase());
    let old = words.next().as_deref() == Some("rtpqos");
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (media, statistic) = if old { (first, second) } else { (second, first) };
    if !matches!(media.as_str(), "" | "audio") {
        return Err(Fault::new(format!("there is no {media} on this channel")));
    }
    let quality = call.chan.with(|c| c.quality.as_deref().copied()).map_err(gone)?;
    let statistic = if statistic.is_empty() { "all" } else { &statistic };
    let answer = statistic_of(&quality.unwrap_or_default(), statistic).ok_or_else(|| unknown(statistic))?;
    out.push_str(&answer);
    Ok(())
}

fn statistic_of(quality: &Quality, statistic: &str) -> Option<String> {
    let stats = &quality.latest;
    Some(match statistic {
        "all" => all(quality),
        "all_jitter" => all_jitter(quality),
        "all_loss" => all_loss(quality),
        "all_rtt" => all_rtt(quality),
        "all_mes" => all_mes(quality),
        "txmes" => number(quality.experience.latest()),
        "rxmes" => number(quality.peer_experience.latest()),
        "local_ssrc" | "ssrc" => stats.ssrc.to_string(),
        "remote_ssrc" | "themssrc" => stats.peer_ssrc.to_string(),
        "txcount" | "local_count" => stats.sent_packets.to_string(),
        "rxcount" | "remote_count" => stats.received_packets.to_string(),
        "txoctetcount" => stats.sent_bytes.to_string(),
        "rxoctetcount" => stats.received_bytes.to_string(),
        "txploss" | "remote_lostpackets" => stats.peer_lost_packets.to_string(),
        "rxploss" | "local_lostpackets" => stats.lost_packets.to_string(),
        "rxjitter" | "remote_jitter" => number(seconds(stats.peer_jitter_us)),
        "txjitter" | "local_jitter" => number(seconds(stats.jitter_us)),
        "rtt" => number(seconds(stats.round_trip_us)),
        _ => return of_series(quality, statistic),
    })
}

/// Statistics over all reports: `minrtt`, `local_maxjitter`, `remote_stdevrxploss`.
fn of_series(quality: &Quality, statistic: &str) -> Option<String> {
    let (side, rest) = match statistic.split_once('_') {
        Some(("local", rest)) => (Some(true), rest),
        Some(("remote", rest)) => (Some(false), rest),
        Some(_) => return None,
        None => (None, statistic),
    };
    let parts = [
        ("min", Series::least as fn(&Series) -> f64),
        ("max", Series::greatest),
        ("normdev", Series::mean),
        ("stdev", Series::deviation),
    ];
    let (of, what) = parts.iter().find_map(|(prefix, of)| Some((of, rest.strip_prefix(prefix)?)))?;
    let series = match (side, what) {
        (None, "rtt") => &quality.round_trip,
        (Some(true), "jitter") => &quality.jitter,
        (Some(false), "jitter") => &quality.peer_jitter,
        (Some(true), "rxploss") => &quality.lost,
        (Some(false), "rxploss") => &quality.peer_lost,
        (Some(true), "mes") => &quality.experience,
        (Some(false), "mes") => &quality.peer_experience,
        _ => return None,
    };
    Some(number(of(series)))
}

fn number(value: f64) -> String {
    format!("{value:.6}")
}
