//! What watchers are told of programs' calls. Each says all that an event needs: what it is about may be gone when it is read.

use std::rc::Rc;

use super::{BridgeKind, LiveRecording, Playback};
use crate::{BridgeSnapshot, Snapshot, TextMessage, VideoChoice};

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
    /// How whose video is seen is chosen.
    pub video: VideoChoice,
    /// UNIQUEID of the channel whose video that is, where a program has named it.
    pub video_source: Option<Rc<str>>,
    /// Variables that are told with it.
    pub variables: Vec<(String, String)>,
}

/// A transfer that programs carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// What a program has said last; `None`: it has just been asked for.
    pub state: Option<&'static str>,
    /// Whom the phone sends somebody to.
    pub destination: String,
    /// Call-ID of the call that it names.
    pub protocol_id: Option<String>,
    /// What else it says of that call.
    pub params: Vec<(String, String)>,
    /// The channel of that call, if it is here.
    pub target: Option<Snapshot>,
    /// Who talks to that.
    pub target_peer: Option<Snapshot>,
    /// The bridge of that.
    pub target_bridge: Option<BridgeSnapshot>,
    /// The channel whose phone asks.
    pub source: Snapshot,
    /// Who talks to it.
    pub source_peer: Option<Snapshot>,
    /// Its bridge.
    pub source_bridge: Option<BridgeSnapshot>,
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
    /// A phone asks for a transfer that programs carry out, or one has said how it comes on.
    Transfer(Box<Transfer>),
    /// A tone was heard that a channel is listened to for (`TONE_DETECT()`).
    ToneDetected {
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
    /// Somebody has sent a text outside of calls, of whom programs want to hear.
    Text {
        /// Technology and name of whoever has sent it.
        endpoint: (&'static str, String),
        /// The text, and what came with it.
        message: Box<TextMessage>,
    },
    /// A channel is offered to programs.
    Offered {
        /// Those.
        apps: Vec<Rc<str>>,
        /// The channel.
        channel: Snapshot,
    },
    /// One of them has claimed it.
    Claimed {
        /// All of them.
        apps: Vec<Rc<str>>,
        /// The channel.
        channel: Snapshot,
        /// Which.
        winner: Rc<str>,
    },
    /// The video of another channel is seen in a bridge.
    VideoSource {
        /// The bridge after that.
        bridge: BridgeView,
        /// UNIQUEID of the channel whose video was seen before.
        old: Option<Rc<str>>,
    },
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
