//! `/bridges`: channels that hear each other. Those of programs can be steered, those that calls have made be looked at.

use apps::stasis::{self as verbs, Joining};
use base::FormatId;
use call::stasis::{BridgeKind, NewBridge};
use serde_json::Value;

use super::super::asked::Asked;
use super::super::table::{Answer, Done, Fault, Method, Operation, Param, flag, pairs, path, text};
use super::super::view::{View, playback, recording};
use super::super::zone_of;
use super::sound::{
    BEEP, DURATION, FORMAT, IF_EXISTS, LANG, MEDIA, NAME, OFFSET, PLAYBACK, SILENCE, SKIP, TERMINATE, done,
    playing, recorded,
};

const BRIDGE: Param = path("bridgeId", "id of the bridge");
const NO_BRIDGE: (u16, &str) = (404, "there is no such bridge");
const NOT_OURS: (u16, &str) = (409, "no program has made the bridge");
const ON_ONE: &[(u16, &str)] = &[NO_BRIDGE, NOT_OURS];
const KIND: Param = text(
    "type",
    "how channels in it hear each other, comma separated: mixing or holding, dtmf_events, proxy_media, video_sfu, video_single, sdp_label",
);
const OF_NAME: Param = text("name", "name of the bridge");
const VARIABLES: Param = pairs("variables", "variables of the bridge");
const CHANNELS: Param = text("channel", "ids of the channels").must().many();
const PLAY_ERRORS: &[(u16, &str)] = &[
    (400, "nothing is to be played, or it is no such thing"),
    NO_BRIDGE,
    NOT_OURS,
    (422, "the format is unknown"),
];
const CREATE_ERRORS: &[(u16, &str)] = &[
    (400, "an id or a variable is none"),
    (409, "a bridge has this id"),
    (500, "the type is none, or too much is going on"),
];
const ANNOUNCER: Param = text("announcer_format", "format of what announces");
const RECORDER: Param = text("recorder_format", "format of what records");

pub(super) const ROWS: &[Operation] = &[
    Operation {
        method: Method::Get,
        path: "/bridges",
        name: "list",
        text: "Lists bridges, those of calls as well.",
        params: &[],
        answer: "List[Bridge]",
        errors: &[],
        run: list,
    },
    Operation {
        method: Method::Post,
        path: "/bridges",
        name: "create",
        text: "Makes a bridge, which is there until somebody takes it away.",
        params: &[KIND, text("bridgeId", "id of the bridge; one is made when absent"), OF_NAME, VARIABLES],
        answer: "Bridge",
        errors: CREATE_ERRORS,
        run: create,
    },
    Operation {
        method: Method::Post,
        path: "/bridges/{bridgeId}",
        name: "createWithId",
        text: "Makes a bridge of this id.",
        params: &[KIND, BRIDGE, OF_NAME, VARIABLES],
        answer: "Bridge",
        errors: CREATE_ERRORS,
        run: create,
    },
    Operation {
        method: Method::Get,
        path: "/bridges/{bridgeId}",
        name: "get",
        text: "Tells about one bridge.",
        params: &[BRIDGE],
        answer: "Bridge",
        errors: &[NO_BRIDGE],
        run: get,
    },
    Operation {
        method: Method::Delete,
        path: "/bridges/{bridgeId}",
        name: "destroy",
        text: "Takes a bridge away; its channels stay with their programs.",
        params: &[BRIDGE],
        answer: "void",
        errors: ON_ONE,
        run: |asked| done(verbs::destroy_bridge(&asked.site.shard, asked.need("bridgeId"))),
    },
    Operation {
        method: Method::Post,
        path: "/bridges/{bridgeId}/addChannel",
        name: "addChannel",
        text: "Puts channels into a bridge, out of those that they are in: all, or none.",
        params: &[
            BRIDGE,
            CHANNELS,
            text("role", "announcer: in a holding bridge all others hear it"),
            flag("absorbDTMF", "its digits are not passed on").or("false"),
            flag("mute", "the others do not hear it").or("false"),
            flag("inhibitConnectedLineUpdates", "the others are not shown who it is").or("false"),
        ],
        answer: "void",
        errors: &[
            (400, "there is no such channel"),
            NO_BRIDGE,
            (409, "no program has a channel or has made the bridge, or the channel is being recorded"),
            (422, "a channel has no media"),
        ],
        run: add,
    },
    Operation {
        method: Method::Post,
        path: "/bridges/{bridgeId}/removeChannel",
        name: "removeChannel",
        text: "Takes channels out of a bridge: all, or none.",
        params: &[BRIDGE, CHANNELS],
        answer: "void",
        errors: &[
            (400, "there is no such channel"),
            NO_BRIDGE,
            (409, "no program has a channel, or has made the bridge"),
            (422, "a channel is not in this bridge"),
        ],
        run: remove,
    },
    Operation {
        method: Method::Post,
        path: "/bridges/{bridgeId}/moh",
        name: "startMoh",
        text: "Lets all in a bridge hear music.",
        params: &[BRIDGE, text("mohClass", "class of music; that of each channel when absent")],
        answer: "void",
        errors: ON_ONE,
        run: |asked| {
            let class = asked.get("mohClass").unwrap_or_default();
            done(verbs::bridge_music(&asked.site.shard, asked.need("bridgeId"), Some(class)))
        },
    },
    Operation {
        method: Method::Delete,
        path: "/bridges/{bridgeId}/moh",
        name: "stopMoh",
        text: "Lets them hear music no more.",
        params: &[BRIDGE],
        answer: "void",
        errors: ON_ONE,
        run: |asked| done(verbs::bridge_music(&asked.site.shard, asked.need("bridgeId"), None)),
    },
    Operation {
        method: Method::Post,
        path: "/bridges/{bridgeId}/play",
        name: "play",
        text: "Plays to all in a bridge, when what is before it is over.",
        params: &[BRIDGE, MEDIA, ANNOUNCER, LANG, OFFSET, SKIP, PLAYBACK],
        answer: "Playback",
        errors: PLAY_ERRORS,
        run: play,
    },
    Operation {
        method: Method::Post,
        path: "/bridges/{bridgeId}/play/{playbackId}",
        name: "playWithId",
        text: "The same, with the id in the path.",
        params: &[BRIDGE, path("playbackId", "id of the playback"), MEDIA, ANNOUNCER, LANG, OFFSET, SKIP],
        answer: "Playback",
        errors: PLAY_ERRORS,
        run: play,
    },
    Operation {
        method: Method::Post,
        path: "/bridges/{bridgeId}/record",
        name: "record",
        text: "Records what is said in a bridge. Silence and digits do not end it.",
        params: &[BRIDGE, NAME, FORMAT, RECORDER, DURATION, SILENCE, IF_EXISTS, BEEP, TERMINATE],
        answer: "LiveRecording",
        errors: &[
            (400, "the name or another parameter is none"),
            NO_BRIDGE,
            (409, "no program has made the bridge, it is being recorded, or the name is taken"),
            (422, "the format is unknown, or it is to end by silence or a digit"),
        ],
        run: record,
    },
    Operation {
        method: Method::Post,
        path: "/bridges/{bridgeId}/videoSource/{channelId}",
        name: "setVideoSource",
        text: "Lets all in a bridge see the video of one channel.",
        params: &[BRIDGE, path("channelId", "id of the channel")],
        answer: "void",
        errors: &[
            (400, "there is no such channel"),
            NO_BRIDGE,
            NOT_OURS,
            (422, "no program has the channel, or it is not in this bridge"),
        ],
        run: |asked| {
            let (bridge, channel) = (asked.need("bridgeId"), asked.need("channelId"));
            done(verbs::set_video_source(&asked.site.shard, bridge, channel))
        },
    },
    Operation {
        method: Method::Delete,
        path: "/bridges/{bridgeId}/videoSource",
        name: "clearVideoSource",
        text: "Lets them see the video of whoever talks.",
        params: &[BRIDGE],
        answer: "void",
        errors: ON_ONE,
        run: |asked| done(verbs::clear_video_source(&asked.site.shard, asked.need("bridgeId"))),
    },
];

fn list(asked: &mut Asked<'_>) -> Done {
    let core = asked.site.shard.core.borrow();
    let view =
        View { site: asked.site, core: &core, facts: asked.facts, variables: &[], zone: zone_of(asked.site) };
    let own = core.stasis.bridges().filter_map(|bridge| core.stasis_bridge_view(&bridge.id));
    let mut rows: Vec<Value> = own.map(|of| view.bridge(&of)).collect();
    let plain = core.bridges().filter(|(id, _)| core.stasis_bridge_with(*id).is_none());
    rows.extend(plain.filter_map(|(id, _)| core.bridge_snapshot(id)).map(|of| view.plain_bridge(&of)));
    Ok(Answer::Found(rows.into()))
}

fn shown(asked: &mut Asked<'_>, id: &str) -> Done {
    let core = asked.site.shard.core.borrow();
    let view =
        View { site: asked.site, core: &core, facts: asked.facts, variables: &[], zone: zone_of(asked.site) };
    if let Some(of) = core.stasis_bridge_view(id) {
        return Ok(Answer::Found(view.bridge(&of)));
    }
    core.bridge_by_uid(id)
        .and_then(|number| core.bridge_snapshot(number))
        .map(|of| Answer::Found(view.plain_bridge(&of)))
        .ok_or_else(|| Fault::not_found("Bridge not found"))
}

fn get(asked: &mut Asked<'_>) -> Done {
    let id = asked.need("bridgeId").to_owned();
    shown(asked, &id)
}

fn wanted(asked: &Asked<'_>) -> Result<NewBridge, Fault> {
    let (kind, dtmf_events, proxy_media, video) = Joining::kind_of(asked.get("type").unwrap_or("mixing"))?;
    Ok(NewBridge {
        id: asked.get("bridgeId").map(str::to_owned),
        name: asked.get("name").unwrap_or_default().to_owned(),
        kind,
        dtmf_events: dtmf_events && kind == BridgeKind::Mixing,
        proxy_media,
        video,
        variables: asked.variables()?.into_iter().collect(),
    })
}

/// Refuses a format that is none.
fn check_format(asked: &Asked<'_>, name: &str) -> Result<(), Fault> {
    match asked.get(name) {
        Some(format) if FormatId::from_name(format).is_none() => {
            Err(Fault::new(422, format!("Invalid format: {format}")))
        }
        _ => Ok(()),
    }
}

fn create(asked: &mut Asked<'_>) -> Done {
    let id = verbs::create_bridge(&asked.site.shard, wanted(asked)?)?;
    shown(asked, &id)
}

fn add(asked: &mut Asked<'_>) -> Done {
    let channels = asked.all("channel");
    let named: Vec<&str> = channels.iter().map(String::as_str).collect();
    let joining = Joining {
        announces: asked.get("role").is_some_and(|role| role.eq_ignore_ascii_case("announcer")),
        absorbs_digits: asked.is("absorbDTMF"),
        is_muted: asked.is("mute"),
        is_quiet: asked.is("inhibitConnectedLineUpdates"),
    };
    done(verbs::add_channels(&asked.site.shard, asked.need("bridgeId"), &named, joining))
}

fn remove(asked: &mut Asked<'_>) -> Done {
    let channels = asked.all("channel");
    let named: Vec<&str> = channels.iter().map(String::as_str).collect();
    done(verbs::remove_channels(&asked.site.shard, asked.need("bridgeId"), &named))
}

fn play(asked: &mut Asked<'_>) -> Done {
    check_format(asked, "announcer_format")?;
    let made = verbs::bridge_play(&asked.site.shard, asked.need("bridgeId"), playing(asked))?;
    Ok(Answer::Made(playback(&made), format!("/playbacks/{}", made.id)))
}

fn record(asked: &mut Asked<'_>) -> Done {
    check_format(asked, "recorder_format")?;
    let made = verbs::bridge_record(&asked.site.shard, asked.need("bridgeId"), recorded(asked))?;
    Ok(Answer::Made(recording(&made), format!("/recordings/live/{}", made.name)))
}
