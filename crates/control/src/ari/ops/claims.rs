//! `/events/claim`: a program claims a call that `StasisBroadcast()` offers.

use apps::stasis as verbs;

use super::super::table::{Method, Operation, text};
use super::sound::done;

pub(super) const ROWS: &[Operation] = &[Operation {
    method: Method::Post,
    path: "/events/claim",
    name: "claimChannel",
    text: "Claims a call that StasisBroadcast() offers: the first program has it.",
    params: &[
        text("channelId", "id of the channel").must(),
        text("application", "the program that wants it").must(),
    ],
    answer: "void",
    errors: &[
        (400, "a channel or a program is not named"),
        (404, "no such channel is offered, or its time is over"),
        (409, "it was claimed"),
    ],
    run: |asked| done(verbs::claim(&asked.site.shard, asked.need("channelId"), asked.need("application"))),
}];
