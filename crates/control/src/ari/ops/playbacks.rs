//! `/playbacks`: sounds on their way.

use apps::stasis as verbs;
use call::stasis::PlaybackSteer;

use super::super::asked::Asked;
use super::super::table::{Answer, Done, Fault, Method, Operation, Param, path, text};
use super::super::view::playback;
use super::sound::done;

const PLAYBACK: Param = path("playbackId", "id of the playback");
const NO_PLAYBACK: (u16, &str) = (404, "there is no such playback");

pub(super) const ROWS: &[Operation] = &[
    Operation {
        method: Method::Get,
        path: "/playbacks/{playbackId}",
        name: "get",
        text: "Tells how far a sound is.",
        params: &[PLAYBACK],
        answer: "Playback",
        errors: &[NO_PLAYBACK],
        run: get,
    },
    Operation {
        method: Method::Delete,
        path: "/playbacks/{playbackId}",
        name: "stop",
        text: "Ends a sound, or takes it out of its queue.",
        params: &[PLAYBACK],
        answer: "void",
        errors: &[NO_PLAYBACK],
        run: |asked| done(verbs::stop_playback(&asked.site.shard, asked.need("playbackId"))),
    },
    Operation {
        method: Method::Post,
        path: "/playbacks/{playbackId}/control",
        name: "control",
        text: "Steers a sound.",
        params: &[
            PLAYBACK,
            text("operation", "what is done to it")
                .must()
                .words(&["restart", "pause", "unpause", "reverse", "forward"]),
        ],
        answer: "void",
        errors: &[(400, "the operation is none"), NO_PLAYBACK, (409, "the sound waits, or rests")],
        run: control,
    },
];

fn get(asked: &mut Asked<'_>) -> Done {
    let core = asked.site.shard.core.borrow();
    let found = core.stasis.playback_named(asked.need("playbackId"));
    found.map(|of| Answer::Found(playback(of))).ok_or_else(|| Fault::not_found("Playback not found"))
}

fn control(asked: &mut Asked<'_>) -> Done {
    let steer =
        PlaybackSteer::parse(asked.need("operation")).ok_or_else(|| Fault::bad("Invalid operation"))?;
    done(verbs::control_playback(&asked.site.shard, asked.need("playbackId"), steer))
}
