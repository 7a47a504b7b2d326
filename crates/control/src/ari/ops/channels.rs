//! `/channels`: sides of calls. What is done to one wants it in a program's hands, but for looking and hanging up.

use core::time::Duration;

use apps::originate::Then;
use apps::stasis::{self as verbs, Continue, Create, Direction, Start};
use base::{ChannelId, FormatId, FormatSet};
use call::stasis::Digits;
use call::{Indication, Location, PartyId, Quality, Snapshot};
use serde_json::{Value, json};

use super::super::asked::Asked;
use super::super::table::{Answer, Done, Fault, Method, Operation, Param, int, long, pairs, path, text};
use super::super::view::{View, ask_functions, playback, recording};
use super::super::zone_of;
use super::rights;
use super::sound::{
    BEEP, DURATION, FORMAT, IF_EXISTS, LANG, MEDIA, NAME, OFFSET, PLAYBACK, SILENCE, SKIP, TERMINATE, done,
    playing, recorded,
};

const CHANNEL: Param = path("channelId", "id of the channel");
const NO_CHANNEL: (u16, &str) = (404, "there is no such channel");
const NOT_HELD: (u16, &str) = (409, "no program has the channel");
const NOT_READY: (u16, &str) = (412, "the channel is called and has not answered");
const ON_ONE: &[(u16, &str)] = &[NO_CHANNEL, NOT_HELD, NOT_READY];
const MUTED: Param =
    text("direction", "what its party says, what it hears, or both").words(&["both", "in", "out"]).or("both");
const MOH: Param = text("mohClass", "class of music; that of the channel when absent");

/// Longest pauses and digits, milliseconds.
const MILLIS_MAX: i64 = 60_000;
/// How long a call rings at most, seconds; as with the manager.
const RING_SECONDS_MAX: i64 = 86_400;

const PLAY_ERRORS: &[(u16, &str)] =
    &[(400, "nothing is to be played, or it is no such thing"), NO_CHANNEL, NOT_HELD, NOT_READY];

const ENDPOINT: Param = text("endpoint", "whom to call: PJSIP/6001").must();
const ORIGINATOR: Param = text("originator", "id of the channel on whose behalf it is called");
const FORMATS: Param = text("formats", "formats, preferred first").many();
const VARIABLES: Param = pairs("variables", "variables and functions of the channel");
const OTHER: Param = text("otherChannelId", "id of the second half of a Local channel");
const APP: Param = text("app", "program that gets the channel once it has answered");
const APP_ARGS: Param = text("appArgs", "what the program is told beside, comma separated");
const CALLED: [Param; 14] = [
    ENDPOINT,
    text("extension", "extension where it goes on, when no app is named"),
    text("context", "context (default)"),
    long("priority", "priority").range(1, 1_000_000_000),
    text("label", "label, instead of the priority"),
    APP,
    APP_ARGS,
    text("callerId", "who calls, Name <number>"),
    int("timeout", "seconds that it rings; -1: as long as it takes").or("30").range(-1, RING_SECONDS_MAX),
    VARIABLES,
    text("channelId", "id of the channel; one is made when absent"),
    OTHER,
    ORIGINATOR,
    FORMATS,
];
const CALLED_BY_ID: [Param; 14] = {
    let mut params = CALLED;
    params[10] = CHANNEL;
    params
};
const CALL_ERRORS: &[(u16, &str)] = &[
    (400, "an endpoint, an id or another parameter is none"),
    (409, "a channel has this id"),
    (422, "a function may not be written"),
    (500, "nobody can be called there, or too much is going on"),
];

/// A row of an operation on one channel that answers nothing.
const fn on_one(
    method: Method,
    path: &'static str,
    name: &'static str,
    text: &'static str,
    params: &'static [Param],
    run: fn(&mut Asked<'_>) -> Done,
) -> Operation {
    Operation { method, path, name, text, params, answer: "void", errors: ON_ONE, run }
}

pub(super) const ROWS: &[Operation] = &[
    Operation {
        method: Method::Get,
        path: "/channels",
        name: "list",
        text: "Lists channels.",
        params: &[],
        answer: "List[Channel]",
        errors: &[],
        run: list,
    },
    Operation {
        method: Method::Post,
        path: "/channels",
        name: "originate",
        text: "Calls somebody, who goes on at an extension or in a program's hands once it has answered.",
        params: &CALLED,
        answer: "Channel",
        errors: CALL_ERRORS,
        run: originate,
    },
    Operation {
        method: Method::Post,
        path: "/channels/create",
        name: "create",
        text: "Makes a channel in a program's hands, which `dial` calls later.",
        params: &[
            ENDPOINT,
            APP.must(),
            APP_ARGS,
            text("channelId", "id of the channel; one is made when absent"),
            OTHER,
            ORIGINATOR,
            FORMATS,
            VARIABLES,
        ],
        answer: "Channel",
        errors: &[
            (400, "an endpoint, an id or another parameter is none"),
            (409, "a channel has this id"),
            (422, "a function may not be written"),
            (500, "nobody can be called there, or too much is going on"),
        ],
        run: create,
    },
    Operation {
        method: Method::Get,
        path: "/channels/{channelId}",
        name: "get",
        text: "Tells about one channel.",
        params: &[CHANNEL],
        answer: "Channel",
        errors: &[NO_CHANNEL],
        run: get,
    },
    Operation {
        method: Method::Post,
        path: "/channels/{channelId}",
        name: "originateWithId",
        text: "The same as originate, with the id in the path.",
        params: &CALLED_BY_ID,
        answer: "Channel",
        errors: CALL_ERRORS,
        run: originate,
    },
    Operation {
        method: Method::Delete,
        path: "/channels/{channelId}",
        name: "hangup",
        text: "Hangs a channel up, whoever has it.",
        params: &[
            CHANNEL,
            text("reason_code", "Q.850 cause, instead of the reason"),
            text("reason", "why").words(&[
                "normal",
                "busy",
                "congestion",
                "no_answer",
                "timeout",
                "rejected",
                "unallocated",
                "normal_unspecified",
                "number_incomplete",
                "codec_mismatch",
                "interworking",
                "failure",
                "answered_elsewhere",
            ]),
        ],
        answer: "void",
        errors: &[(400, "the reason is none, or there are two"), NO_CHANNEL],
        run: hangup,
    },
    Operation {
        method: Method::Post,
        path: "/channels/{channelId}/continue",
        name: "continueInDialplan",
        text: "Lets a channel go on in the dialplan: at the next priority, or where this says.",
        params: &[
            CHANNEL,
            text("context", "context"),
            text("extension", "extension"),
            int("priority", "priority").range(1, 1_000_000_000),
            text("label", "label, instead of the priority"),
        ],
        answer: "void",
        errors: &[(404, "there is no such channel or label"), NOT_HELD, NOT_READY],
        run: go_on,
    },
    Operation {
        method: Method::Post,
        path: "/channels/{channelId}/move",
        name: "move",
        text: "Gives a channel to another program; where that is not there ApplicationMoveFailed says so.",
        params: &[CHANNEL, text("app", "the program").must(), APP_ARGS],
        answer: "void",
        errors: &[(400, "no program is named"), NO_CHANNEL, NOT_HELD],
        run: move_to,
    },
    Operation {
        method: Method::Post,
        path: "/channels/{channelId}/redirect",
        name: "redirect",
        text: "Tells the other side to call somewhere else.",
        params: &[CHANNEL, text("endpoint", "where: PJSIP/6002").must()],
        answer: "void",
        errors: &[
            (400, "no endpoint is named"),
            NO_CHANNEL,
            NOT_HELD,
            NOT_READY,
            (422, "the endpoint is none or of another technology, or the channel cannot"),
        ],
        run: redirect,
    },
    on_one(
        Method::Post,
        "/channels/{channelId}/answer",
        "answer",
        "Answers a channel.",
        &[CHANNEL],
        |asked| done(verbs::answer(&asked.site.shard, asked.need("channelId"))),
    ),
    on_one(
        Method::Post,
        "/channels/{channelId}/ring",
        "ring",
        "Tells the caller that it rings.",
        &[CHANNEL],
        |asked| done(verbs::ring(&asked.site.shard, asked.need("channelId"), true)),
    ),
    on_one(
        Method::Post,
        "/channels/{channelId}/progress",
        "progress",
        "Tells the caller that there is something to be heard before the answer.",
        &[CHANNEL],
        progress,
    ),
    on_one(
        Method::Delete,
        "/channels/{channelId}/ring",
        "ringStop",
        "Tells it no more.",
        &[CHANNEL],
        |asked| done(verbs::ring(&asked.site.shard, asked.need("channelId"), false)),
    ),
    Operation {
        method: Method::Post,
        path: "/channels/{channelId}/dtmf",
        name: "sendDTMF",
        text: "Sends digits.",
        params: &[
            CHANNEL,
            text("dtmf", "0-9 * # A-D; w waits half a second; what else is among them is left out").must(),
            int("before", "milliseconds before the first").or("0").range(0, MILLIS_MAX),
            int("between", "milliseconds between two").or("100").range(0, MILLIS_MAX),
            int("duration", "milliseconds that each lasts").or("100").range(0, MILLIS_MAX),
            int("after", "milliseconds after the last").or("0").range(0, MILLIS_MAX),
        ],
        answer: "void",
        errors: &[(400, "no digits are named"), NO_CHANNEL, NOT_HELD, NOT_READY],
        run: digits,
    },
    on_one(
        Method::Post,
        "/channels/{channelId}/mute",
        "mute",
        "Lets no sound through.",
        &[CHANNEL, MUTED],
        |asked| mute(asked, true),
    ),
    on_one(
        Method::Delete,
        "/channels/{channelId}/mute",
        "unmute",
        "Lets sound through again.",
        &[CHANNEL, MUTED],
        |asked| mute(asked, false),
    ),
    on_one(
        Method::Post,
        "/channels/{channelId}/hold",
        "hold",
        "Holds the other side.",
        &[CHANNEL],
        |asked| done(verbs::hold(&asked.site.shard, asked.need("channelId"), true)),
    ),
    on_one(
        Method::Delete,
        "/channels/{channelId}/hold",
        "unhold",
        "Takes the other side back.",
        &[CHANNEL],
        |asked| done(verbs::hold(&asked.site.shard, asked.need("channelId"), false)),
    ),
    on_one(
        Method::Post,
        "/channels/{channelId}/moh",
        "startMoh",
        "Plays music while nothing else is played.",
        &[CHANNEL, MOH],
        |asked| {
            let class = asked.get("mohClass").unwrap_or_default();
            done(verbs::music(&asked.site.shard, asked.need("channelId"), Some(class)))
        },
    ),
    on_one(
        Method::Delete,
        "/channels/{channelId}/moh",
        "stopMoh",
        "Plays music no more.",
        &[CHANNEL],
        |asked| done(verbs::music(&asked.site.shard, asked.need("channelId"), None)),
    ),
    on_one(
        Method::Post,
        "/channels/{channelId}/silence",
        "startSilence",
        "Sends silence while nothing else is heard.",
        &[CHANNEL],
        |asked| done(verbs::silence(&asked.site.shard, asked.need("channelId"), true)),
    ),
    on_one(
        Method::Delete,
        "/channels/{channelId}/silence",
        "stopSilence",
        "Sends nothing then.",
        &[CHANNEL],
        |asked| done(verbs::silence(&asked.site.shard, asked.need("channelId"), false)),
    ),
    Operation {
        method: Method::Post,
        path: "/channels/{channelId}/play",
        name: "play",
        text: "Plays when what is before it is over.",
        params: &[CHANNEL, MEDIA, LANG, OFFSET, SKIP, PLAYBACK],
        answer: "Playback",
        errors: PLAY_ERRORS,
        run: play,
    },
    Operation {
        method: Method::Post,
        path: "/channels/{channelId}/play/{playbackId}",
        name: "playWithId",
        text: "The same, with the id in the path.",
        params: &[CHANNEL, path("playbackId", "id of the playback"), MEDIA, LANG, OFFSET, SKIP],
        answer: "Playback",
        errors: PLAY_ERRORS,
        run: play,
    },
    Operation {
        method: Method::Post,
        path: "/channels/{channelId}/record",
        name: "record",
        text: "Records what a channel's party says, when what is before it is over.",
        params: &[CHANNEL, NAME, FORMAT, DURATION, SILENCE, IF_EXISTS, BEEP, TERMINATE],
        answer: "LiveRecording",
        errors: &[
            (400, "the name or another parameter is none"),
            NO_CHANNEL,
            (409, "no program has the channel, it is in a bridge, or the name is taken"),
            (422, "the format is unknown"),
        ],
        run: record,
    },
    Operation {
        method: Method::Post,
        path: "/channels/{channelId}/transfer_progress",
        name: "transfer_progress",
        text: "Says how a transfer comes on that a program carries out; the phone that has asked for it is told.",
        params: &[
            CHANNEL,
            text("states", "channel_progress, channel_answered, channel_unavailable or channel_declined")
                .must(),
        ],
        answer: "void",
        errors: &[(400, "no state is named, or none that is known"), NO_CHANNEL, NOT_HELD],
        run: transfer_progress,
    },
    Operation {
        method: Method::Get,
        path: "/channels/{channelId}/rtp_statistics",
        name: "rtpstatistics",
        text: "Tells how a channel's RTP fares, as far as was reported; newer totals are asked for and known next time.",
        params: &[CHANNEL],
        answer: "RTPstat",
        errors: &[(403, "the channel has no RTP"), NO_CHANNEL],
        run: rtp_statistics,
    },
    Operation {
        method: Method::Post,
        path: "/channels/{channelId}/dial",
        name: "dial",
        text: "Calls a channel that `create` has made.",
        params: &[
            CHANNEL,
            text("caller", "id of the channel that is shown as who calls"),
            int("timeout", "seconds that it rings; 0: as long as it takes")
                .or("0")
                .range(0, RING_SECONDS_MAX),
        ],
        answer: "void",
        errors: &[NO_CHANNEL, (409, "no program has the channel, or it was called already")],
        run: dial,
    },
];

fn shown(asked: &mut Asked<'_>, of: &[Snapshot]) -> Vec<Value> {
    let snapshot = asked.site.snapshot.borrow().clone();
    let core = asked.site.shard.core.borrow();
    let variables = &snapshot.ari.general.channelvars;
    let mut view =
        View { site: asked.site, core: &core, facts: asked.facts, variables, zone: zone_of(asked.site) };
    let mut made: Vec<Value> = of.iter().map(|of| view.channel(of)).collect();
    drop(core);
    if std::mem::take(&mut asked.facts.asks) {
        made.iter_mut().for_each(|one| ask_functions(asked.site, one));
    }
    made
}

/// A channel, as an answer.
pub(super) fn one(asked: &mut Asked<'_>, id: ChannelId) -> Done {
    let found = asked.site.shard.core.borrow().snapshot(id);
    let found = found.ok_or_else(|| Fault::not_found("Channel not found"))?;
    shown(asked, &[found]).pop().map(Answer::Found).ok_or_else(|| Fault::not_found("Channel not found"))
}

fn list(asked: &mut Asked<'_>) -> Done {
    let all: Vec<Snapshot> = asked.site.shard.core.borrow().channels().map(Snapshot::of).collect();
    Ok(Answer::Found(shown(asked, &all).into()))
}

fn get(asked: &mut Asked<'_>) -> Done {
    let id = asked.site.shard.core.borrow().stasis_channel(asked.need("channelId"))?;
    one(asked, id)
}

/// The channel that is to be made.
fn to_be_made(asked: &Asked<'_>) -> Result<Create, Fault> {
    let mut formats = FormatSet::EMPTY;
    for name in asked.all("formats") {
        let format = FormatId::from_name(name.trim());
        formats.push(format.ok_or_else(|| Fault::bad(format!("Provided format ({name}) was not found")))?);
    }
    let owned = |name: &str| asked.get(name).map(str::to_owned);
    let variables = asked.variables()?;
    let told = variables.iter().filter(|(_, variable)| variable.is_told == Some(true));
    let told = told.map(|(name, _)| name.clone()).collect();
    Ok(Create {
        endpoint: asked.need("endpoint").to_owned(),
        id: owned("channelId"),
        other_id: owned("otherChannelId"),
        originator: owned("originator"),
        formats,
        variables: variables.into_iter().map(|(name, variable)| (name, variable.value)).collect(),
        told,
    })
}

/// `appArgs` cut at its commas.
pub(super) fn app_args(asked: &Asked<'_>) -> Vec<String> {
    asked.get("appArgs").map(|args| args.split(',').map(str::to_owned).collect()).unwrap_or_default()
}

fn then(asked: &Asked<'_>) -> Result<Then, Fault> {
    if let Some(app) = asked.get("app") {
        if asked.get("extension").is_some() {
            return Err(Fault::bad("Extension and app can not both be specified"));
        }
        return Ok(Then::Stasis { app: app.to_owned(), args: app_args(asked) });
    }
    let exten =
        asked.get("extension").ok_or_else(|| Fault::bad("Application or extension must be specified"))?;
    let context = asked.get("context").unwrap_or("default").to_owned();
    let priority = match asked.get("label") {
        None => asked.number("priority").and_then(|priority| u32::try_from(priority).ok()).unwrap_or(1),
        Some(label) => {
            let core = asked.site.shard.core.borrow();
            apps::priority_of_label(&core, &context, exten, label)
                .ok_or_else(|| Fault::not_found("Requested label can not be found"))?
        }
    };
    Ok(Then::Exten(Location { context, exten: exten.to_owned(), priority }))
}

fn originate(asked: &mut Asked<'_>) -> Done {
    let timeout = match asked.number("timeout") {
        Some(seconds) if seconds > 0 => seconds,
        Some(-1) => RING_SECONDS_MAX,
        _ => 30,
    };
    let start = Start {
        create: to_be_made(asked)?,
        then: then(asked)?,
        caller: asked.get("callerId").map(PartyId::parse).unwrap_or_default(),
        timeout: u64::try_from(timeout).ok().map(Duration::from_secs),
    };
    let id = verbs::originate(&asked.site.shard, start, rights(asked))?;
    one(asked, id)
}

fn create(asked: &mut Asked<'_>) -> Done {
    let made = verbs::create(
        &asked.site.shard,
        to_be_made(asked)?,
        (asked.need("app"), app_args(asked)),
        rights(asked),
    );
    one(asked, made?)
}

fn dial(asked: &mut Asked<'_>) -> Done {
    let timeout = asked.number("timeout").and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0);
    let timeout = Duration::from_secs(timeout);
    done(verbs::dial(&asked.site.shard, asked.need("channelId"), asked.get("caller"), timeout))
}

fn progress(asked: &mut Asked<'_>) -> Done {
    let id = asked.site.shard.core.borrow().stasis_visitor(asked.need("channelId"))?;
    asked.site.shard.indicate(id, &Indication::Progress);
    Ok(Answer::Nothing)
}

fn hangup(asked: &mut Asked<'_>) -> Done {
    let (reason, code) = (asked.get("reason"), asked.get("reason_code"));
    done(verbs::hangup(&asked.site.shard, asked.need("channelId"), reason, code))
}

fn go_on(asked: &mut Asked<'_>) -> Done {
    let owned = |name: &str| asked.get(name).map(str::to_owned);
    let to = Continue {
        context: owned("context"),
        extension: owned("extension"),
        priority: asked.number("priority").and_then(|priority| u32::try_from(priority).ok()),
        label: owned("label"),
    };
    done(verbs::continue_in_dialplan(&asked.site.shard, asked.need("channelId"), &to))
}

fn move_to(asked: &mut Asked<'_>) -> Done {
    done(verbs::move_to(&asked.site.shard, asked.need("channelId"), asked.need("app"), app_args(asked)))
}

fn transfer_progress(asked: &mut Asked<'_>) -> Done {
    const STATES: [&str; 4] =
        ["channel_progress", "channel_answered", "channel_unavailable", "channel_declined"];
    let state = asked.need("states").to_owned();
    if !STATES.contains(&&*state) {
        return Err(Fault::bad("Invalid refer progress state"));
    }
    let shard = asked.site.shard.clone();
    let id = shard.core.borrow().stasis_visitor(asked.need("channelId"))?;
    match shard.with_tech(id, |tech, core| tech.transfer_progress(core, id, &state)) {
        Some(true) => Ok(Answer::Nothing),
        _ => Err(Fault::bad("Channel has no transfer that a program carries out")),
    }
}

fn redirect(asked: &mut Asked<'_>) -> Done {
    done(verbs::redirect(&asked.site.shard, asked.need("channelId"), asked.need("endpoint")))
}

fn digits(asked: &mut Asked<'_>) -> Done {
    let millis = |name: &str| asked.number(name).and_then(|millis| u64::try_from(millis).ok()).unwrap_or(0);
    let digits = Digits {
        digits: asked.need("dtmf").to_owned(),
        before: Duration::from_millis(millis("before")),
        between: Duration::from_millis(millis("between")),
        duration_ms: u16::try_from(millis("duration")).unwrap_or(u16::MAX),
        after: Duration::from_millis(millis("after")),
    };
    done(verbs::send_digits(&asked.site.shard, asked.need("channelId"), digits))
}

fn mute(asked: &mut Asked<'_>, muted: bool) -> Done {
    let direction = Direction::parse(asked.get("direction").unwrap_or("both")).unwrap_or_default();
    done(verbs::mute(&asked.site.shard, asked.need("channelId"), direction, muted))
}

fn play(asked: &mut Asked<'_>) -> Done {
    let made = verbs::play(&asked.site.shard, asked.need("channelId"), playing(asked))?;
    Ok(Answer::Made(playback(&made), format!("/playbacks/{}", made.id)))
}

fn record(asked: &mut Asked<'_>) -> Done {
    let made = verbs::record(&asked.site.shard, asked.need("channelId"), recorded(asked))?;
    Ok(Answer::Made(recording(&made), format!("/recordings/live/{}", made.name)))
}

fn rtp_statistics(asked: &mut Asked<'_>) -> Done {
    let channel = asked.need("channelId");
    let quality = verbs::rtp_statistics(&asked.site.shard, channel)?;
    Ok(Answer::Found(statistics(channel, &quality)))
}

/// What is known of a channel's RTP. Times are seconds; what no report has said yet is not there.
fn statistics(channel: &str, of: &Quality) -> Value {
    let latest = &of.latest;
    let mut out = json!({
        "txcount": latest.sent_packets,
        "rxcount": latest.received_packets,
        "txploss": latest.peer_lost_packets,
        "rxploss": latest.lost_packets,
        "local_ssrc": latest.ssrc,
        "remote_ssrc": latest.peer_ssrc,
        "txoctetcount": latest.sent_bytes,
        "rxoctetcount": latest.received_bytes,
        "channel_uniqueid": channel,
    });
    let series = [
        ("remote_", "jitter", &of.peer_jitter),
        ("local_", "jitter", &of.jitter),
        ("remote_", "rxploss", &of.peer_lost),
        ("local_", "rxploss", &of.lost),
        ("", "rtt", &of.round_trip),
    ];
    let Some(fields) = out.as_object_mut() else { return out };
    for (side, of_what, series) in series.into_iter().filter(|(.., series)| series.is_known()) {
        for (which, value) in [
            ("max", series.greatest()),
            ("min", series.least()),
            ("normdev", series.mean()),
            ("stdev", series.deviation()),
        ] {
            fields.insert(format!("{side}{which}{of_what}"), json!(value));
        }
    }
    for (name, series, micros) in [
        // In the field these two are the other way round than in the spreads.
        ("txjitter", &of.jitter, latest.jitter_us),
        ("rxjitter", &of.peer_jitter, latest.peer_jitter_us),
        ("rtt", &of.round_trip, latest.round_trip_us),
    ] {
        if series.is_known() {
            fields.insert(name.into(), json!(call::seconds(micros)));
        }
    }
    out
}
