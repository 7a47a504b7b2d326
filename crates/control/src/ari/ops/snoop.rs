//! `/channels/{channelId}/snoop`: a program listens to a channel, and speaks to it, by a channel of its own.

use apps::stasis::{self as verbs, Direction, Snoop};

use super::super::asked::Asked;
use super::super::table::{Done, Method, Operation, Param, path, text};
use super::channels::{app_args, one};

const CHANNEL: Param = path("channelId", "id of the channel that is listened to");
const SPY: Param = text("spy", "what of it is heard: what its party says, what it hears, or both")
    .words(&["none", "both", "out", "in"])
    .or("none");
const WHISPER: Param = text(
    "whisper",
    "who hears the program: the channel (out), the others in its bridge (in), or all of them",
)
.words(&["none", "both", "out", "in"])
.or("none");
const APP: Param = text("app", "program that gets the new channel").must();
const APP_ARGS: Param = text("appArgs", "what the program is told beside, comma separated");
const ERRORS: &[(u16, &str)] = &[
    (400, "neither spy nor whisper is wanted, or an id is none"),
    (404, "there is no such channel or application"),
    (409, "a channel has this id"),
    (422, "the channel has no media"),
    (500, "too much is going on"),
];

pub(super) const ROWS: &[Operation] = &[
    Operation {
        method: Method::Post,
        path: "/channels/{channelId}/snoop",
        name: "snoopChannel",
        text: "Makes a channel by which a program listens to another, whoever has that; it ends with the other.",
        params: &[
            CHANNEL,
            SPY,
            WHISPER,
            APP,
            APP_ARGS,
            text("snoopId", "id of the new channel; one is made when absent"),
        ],
        answer: "Channel",
        errors: ERRORS,
        run: snoop,
    },
    Operation {
        method: Method::Post,
        path: "/channels/{channelId}/snoop/{snoopId}",
        name: "snoopChannelWithId",
        text: "The same, with the id in the path.",
        params: &[CHANNEL, path("snoopId", "id of the new channel"), SPY, WHISPER, APP, APP_ARGS],
        answer: "Channel",
        errors: ERRORS,
        run: snoop,
    },
];

fn snoop(asked: &mut Asked<'_>) -> Done {
    let direction = |name: &str| asked.get(name).filter(|word| *word != "none").and_then(Direction::parse);
    let wanted = Snoop {
        spy: direction("spy"),
        whisper: direction("whisper"),
        app: asked.need("app").to_owned(),
        args: app_args(asked),
        id: asked.get("snoopId").map(str::to_owned),
    };
    let made = verbs::snoop(&asked.site.shard, asked.need("channelId"), wanted)?;
    one(asked, made)
}
