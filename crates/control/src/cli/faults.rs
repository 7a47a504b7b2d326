//! Faults on purpose, for the tests that prove that one call's fault is no other call's.
//!
//! These commands exist only in a process that was started with [`SWITCH`] in its environment: whoever can set that can
//! end the process as well. They are in no help, no completion and no manual.

use std::sync::LazyLock;

use super::text::clean;
use super::{Ask, Cli, Row, Said, Shape, shapes_of, verb};

/// The variable of the environment that brings these commands to life, read once at the start.
pub const SWITCH: &str = "STROWGER_FAULT_INJECTION";

const ROWS: &[Row] = &[verb(
    "fault inject sip|application|media|codec|mixer <channel>",
    "Lets that part of a call panic at its next step.",
    Cli::fault_inject,
)];

static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| ROWS.iter().flat_map(shapes_of).collect());

/// The commands, when they are wanted.
pub(super) fn shapes(wanted: bool) -> &'static [Shape] {
    if wanted { &SHAPES } else { &[] }
}

impl Cli {
    fn fault_inject(&self, ask: &mut Ask<'_>) -> Said {
        let site = &self.site;
        let name = ask.need("channel");
        let (channel, stream) = {
            let core = site.shard.core.borrow();
            let Some(id) = core.by_name(name) else {
                return Said::failed(format!("{} is not a known channel\n", clean(name)));
            };
            (id, core.get(id).and_then(|channel| channel.stream))
        };
        let done = match ask.choice() {
            Some("sip") => site.sip.borrow_mut().inject_panic(&site.shard.core.borrow(), channel),
            Some("application") => site.shard.inject_panic(channel),
            part => match stream {
                Some(stream) => {
                    let mut media = site.media.borrow_mut();
                    match part {
                        Some("codec") => media.inject_group_panic(stream),
                        Some("mixer") => media.inject_member_panic(stream),
                        _ => media.inject_panic(stream),
                    }
                    true
                }
                None => false,
            },
        };
        if done { Said::done("") } else { Said::failed("This channel has no such part\n") }
    }
}
