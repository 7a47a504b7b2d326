//! `/recordings`: recordings while they run, and those that are kept.

use apps::stasis::{self as verbs, Stored};
use serde_json::{Value, json};

use super::super::asked::Asked;
use super::super::table::{Answer, Done, Fault, Method, Operation, Param, path, text};
use super::super::view::recording;
use super::sound::done;

const RECORDING: Param = path("recordingName", "name of the recording");
const NO_RECORDING: (u16, &str) = (404, "there is no such recording");
const ON_ONE: &[(u16, &str)] = &[NO_RECORDING];

/// A row of an operation on a recording that runs.
const fn on_live(
    method: Method,
    path: &'static str,
    name: &'static str,
    text: &'static str,
    run: fn(&mut Asked<'_>) -> Done,
) -> Operation {
    Operation { method, path, name, text, params: &[RECORDING], answer: "void", errors: ON_ONE, run }
}

pub(super) const ROWS: &[Operation] = &[
    Operation {
        method: Method::Get,
        path: "/recordings/stored",
        name: "listStored",
        text: "Lists recordings that are kept.",
        params: &[],
        answer: "List[StoredRecording]",
        errors: &[],
        run: list,
    },
    Operation {
        method: Method::Get,
        path: "/recordings/stored/{recordingName}",
        name: "getStored",
        text: "Tells about a recording that is kept.",
        params: &[RECORDING],
        answer: "StoredRecording",
        errors: &[(400, "the name leads elsewhere"), NO_RECORDING],
        run: get_stored,
    },
    Operation {
        method: Method::Delete,
        path: "/recordings/stored/{recordingName}",
        name: "deleteStored",
        text: "Deletes a recording.",
        params: &[RECORDING],
        answer: "void",
        errors: &[(400, "the name leads elsewhere"), NO_RECORDING],
        run: |asked| done(verbs::delete_stored(&asked.site.shard, asked.need("recordingName"))),
    },
    Operation {
        method: Method::Get,
        path: "/recordings/stored/{recordingName}/file",
        name: "getStoredFile",
        text: "Sends the file of a recording.",
        params: &[RECORDING],
        answer: "binary",
        errors: &[(400, "the name leads elsewhere"), NO_RECORDING],
        run: get_file,
    },
    Operation {
        method: Method::Post,
        path: "/recordings/stored/{recordingName}/copy",
        name: "copyStored",
        text: "Copies a recording.",
        params: &[RECORDING, text("destinationRecordingName", "name of the copy").must()],
        answer: "StoredRecording",
        errors: &[
            (400, "a name leads elsewhere"),
            NO_RECORDING,
            (409, "the new name is taken"),
            (500, "the disk refuses"),
        ],
        run: copy,
    },
    Operation {
        method: Method::Get,
        path: "/recordings/live/{recordingName}",
        name: "getLive",
        text: "Tells how far a recording is.",
        params: &[RECORDING],
        answer: "LiveRecording",
        errors: ON_ONE,
        run: get_live,
    },
    on_live(
        Method::Delete,
        "/recordings/live/{recordingName}",
        "cancel",
        "Ends a recording and keeps nothing.",
        |asked| done(verbs::discard_recording(&asked.site.shard, asked.need("recordingName"))),
    ),
    on_live(
        Method::Post,
        "/recordings/live/{recordingName}/stop",
        "stop",
        "Ends a recording and keeps it.",
        |asked| done(verbs::stop_recording(&asked.site.shard, asked.need("recordingName"))),
    ),
    on_live(
        Method::Post,
        "/recordings/live/{recordingName}/pause",
        "pause",
        "Lets a recording rest; what is said meanwhile is not in it.",
        |asked| done(verbs::pause_recording(&asked.site.shard, asked.need("recordingName"), true)),
    ),
    on_live(Method::Delete, "/recordings/live/{recordingName}/pause", "unpause", "Lets it go on.", |asked| {
        done(verbs::pause_recording(&asked.site.shard, asked.need("recordingName"), false))
    }),
    on_live(
        Method::Post,
        "/recordings/live/{recordingName}/mute",
        "mute",
        "Lets a recording hold silence.",
        |asked| done(verbs::mute_recording(&asked.site.shard, asked.need("recordingName"), true)),
    ),
    on_live(
        Method::Delete,
        "/recordings/live/{recordingName}/mute",
        "unmute",
        "Lets it hold sound again.",
        |asked| done(verbs::mute_recording(&asked.site.shard, asked.need("recordingName"), false)),
    ),
];

fn row(of: &Stored) -> Value {
    json!({ "name": of.name, "format": of.format })
}

fn list(asked: &mut Asked<'_>) -> Done {
    let rows: Vec<Value> = verbs::stored_recordings(&asked.site.shard).iter().map(row).collect();
    Ok(Answer::Found(rows.into()))
}

fn get_stored(asked: &mut Asked<'_>) -> Done {
    let found = verbs::stored_recording(&asked.site.shard, asked.need("recordingName"))?;
    Ok(Answer::Found(row(&found)))
}

fn get_file(asked: &mut Asked<'_>) -> Done {
    let Stored { name, format } = verbs::stored_recording(&asked.site.shard, asked.need("recordingName"))?;
    Ok(Answer::Recording(format!("{name}.{format}").into()))
}

fn copy(asked: &mut Asked<'_>) -> Done {
    let (name, to) = (asked.need("recordingName"), asked.need("destinationRecordingName"));
    Ok(Answer::Found(row(&verbs::copy_stored(&asked.site.shard, name, to)?)))
}

fn get_live(asked: &mut Asked<'_>) -> Done {
    let core = asked.site.shard.core.borrow();
    let found = core.stasis.recording(asked.need("recordingName"));
    found.map(|of| Answer::Found(recording(of))).ok_or_else(|| Fault::not_found("Recording not found"))
}
