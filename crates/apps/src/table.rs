//! The table of applications: what the loader resolves names against, and what `core show applications` lists.

use std::sync::{Arc, LazyLock};

use dialplan::{Apps, Functions, Program, Tables};

use crate::{
    AppRow, agi, conference, control_playback, dial, dtmf, flow, gate, hear, listen, monitor, originate,
    playback, say,
};

static TABLE: LazyLock<Vec<&'static AppRow>> = LazyLock::new(|| PARTS.iter().copied().flatten().collect());
static NAMES: LazyLock<Arc<Apps>> = LazyLock::new(|| Arc::new(Apps::new(TABLE.iter().map(|row| row.name))));

static FUNCTIONS: LazyLock<Arc<Functions>> = LazyLock::new(|| Arc::new(Functions::standard()));
static EMPTY: LazyLock<Arc<Program>> = LazyLock::new(|| Arc::new(Program::empty(names(), FUNCTIONS.clone())));

const PARTS: &[&[AppRow]] = &[
    flow::assign::ROWS,
    flow::branch::ROWS,
    flow::exec::ROWS,
    flow::line::ROWS,
    flow::loops::ROWS,
    flow::note::ROWS,
    flow::record::ROWS,
    flow::routine::ROWS,
    flow::signal::ROWS,
    flow::store::ROWS,
    flow::wait::ROWS,
    say::ROWS,
    agi::ROWS,
    crate::ivr::ROWS,
    crate::agents::ROWS,
    conference::ROWS,
    conference::meetme::ROWS,
    dial::ROWS,
    dtmf::ROWS,
    gate::ROWS,
    hear::ROWS,
    listen::ROWS,
    monitor::ROWS,
    originate::ROWS,
    crate::message::ROWS,
    crate::mf::ROWS,
    crate::sf::ROWS,
    crate::queue::ROWS,
    crate::statsd::ROWS,
    crate::queue::callback::ROWS,
    crate::queue::members::ROWS,
    crate::bridging::ROWS,
    crate::parking::ROWS,
    crate::pickup::ROWS,
    playback::ROWS,
    control_playback::ROWS,
    crate::page::ROWS,
    crate::followme::ROWS,
    crate::spy::ROWS,
    crate::stasis::ROWS,
    crate::dial::retry::ROWS,
    crate::dialled::ROWS,
    crate::dictate::ROWS,
    crate::directory::ROWS,
    crate::tones::ROWS,
    crate::voicemail::ROWS,
];

/// Every application; the place in it is its [`AppId`](dialplan::AppId).
pub fn applications() -> &'static [&'static AppRow] {
    &TABLE
}

/// The names, for [`dialplan::Tables`]; every program must be loaded against these.
pub fn names() -> Arc<Apps> {
    NAMES.clone()
}

/// What a dialplan is loaded against: these applications and every function.
pub fn tables() -> Tables {
    Tables { apps: names(), functions: FUNCTIONS.clone() }
}

/// A program without a dialplan that knows every application.
pub(crate) fn no_dialplan() -> Arc<Program> {
    EMPTY.clone()
}

/// The row of a name, any case.
pub fn lookup(name: &str) -> Option<&'static AppRow> {
    let id = NAMES.lookup(name)?;
    TABLE.get(usize::from(id.0)).copied()
}
