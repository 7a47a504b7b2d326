//! What watchers are told of programs' calls. Each says all that an event needs: what it is about may be gone when it is read.

use std::rc::Rc;

use super::{BridgeKind, LiveRecording, Playback};
use crate::Snapshot;

/// What happened to a sound or a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaChange {
    /// It began.
    Started,
    /// A sound of several goes on with the next.
    Continuing,
    /// It is over.
    Finished,
    /// A recording could not be made.
    Failed,
}

/// A bridge of programs as it was at the moment of the notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BridgeView {
    /// Its id.
    pub id: Rc<str>,
    /// Its name.
    pub name: String,
    /// How its channels hear each other.
    pub kind: BridgeKind,
    /// How they are joined, in the field's word.
    pub technology: &'static str,
    /// UNIQUEIDs of the channels in it, in the order in which they came.
    pub channels: Vec<Rc<str>>,
    /// When it was made, microseconds since the Unix epoch.
    pub created_wall: i64,
}

/// Something that happened to what programs have.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "it is in a box of its own wherever it goes")]
pub enum StasisNotice {
    /// A program follows a channel that it has made. Nobody is told.
    Followed {
        /// The program.
        app: Rc<str>,
        /// UNIQUEID of the channel.
        uniqueid: Rc<str>,
    },
    /// A program has a channel from here on.
    Start {
        /// The program.
        app: Rc<str>,
        /// What came along.
        args: Vec<String>,
        /// The channel.
        channel: Snapshot,
        /// The channel whose place it took.
        replaced: Option<Snapshot>,
    },
    /// And no more.
    End {
        /// The program.
        app: Rc<str>,
        /// The channel.
        channel: Snapshot,
    },
    /// Another client hears for a program.
    Replaced {
        /// The program.
        app: Rc<str>,
    },
    /// A channel was to go to a program that is not there, and stays.
    MoveFailed {
        /// The program that has it.
        app: Rc<str>,
        /// Where it was to go.
        to: String,
        /// What was to come along.
        args: Vec<String>,
        /// The channel.
        channel: Snapshot,
    },
    /// Something happened to a sound.
    Playback {
        /// What.
        change: MediaChange,
        /// The sound after that.
        playback: Box<Playback>,
    },
    /// Something happened to a recording.
    Recording {
        /// What.
        change: MediaChange,
        /// The recording after that.
        recording: Box<LiveRecording>,
    },
    /// A bridge was made.
    BridgeCreated(BridgeView),
    /// A bridge is gone.
    BridgeDestroyed(BridgeView),
    /// A channel entered a bridge.
    BridgeEntered {
        /// The bridge, the channel in it.
        bridge: BridgeView,
        /// The channel.
        channel: Snapshot,
    },
    /// A channel left a bridge.
    BridgeLeft {
        /// The bridge, the channel not in it.
        bridge: BridgeView,
        /// The channel.
        channel: Snapshot,
    },
}
