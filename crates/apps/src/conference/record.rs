//! Recordings of conferences: which file, and what is run afterwards.

use std::rc::Rc;

use call::conference::{BridgeProfile, RecordPlan, RecordRefused};
use call::{Core, Level, LinkWant, Shard};
use dialplan::Written;

use crate::Call;
use crate::monitor::{extension, spooled};
use crate::shell::Script;

/// Begins to record a conference: to `file` (`name.format`), or where its profile says; the file's name.
pub fn start_recording(shard: &Rc<Shard>, conference: &str, file: &str) -> Result<String, RecordRefused> {
    start(&mut shard.core.borrow_mut(), conference, file)
}

/// Ends the recording of a conference; the file's name.
pub fn stop_recording(shard: &Rc<Shard>, conference: &str) -> Result<String, RecordRefused> {
    shard.core.borrow_mut().conference_record_stop(conference)
}

/// Begins the recording that a bridge profile or an option asks for; nothing when the conference is recorded already.
pub(super) fn start_own(call: &Call, conference: &str, file: &str) {
    let started = call.chan.core(|core| start(core, conference, file));
    if let Err(why) =
        started.map(drop).or_else(|why| if why == RecordRefused::Running { Ok(()) } else { Err(why) })
    {
        call.log(Level::Warning, &format!("conference '{conference}' is not recorded: {why}"));
    }
}

fn start(core: &mut Core, name: &str, file: &str) -> Result<String, RecordRefused> {
    let conference = core.conferences.get(name).ok_or(RecordRefused::NotThere)?;
    let profile = conference.profile.clone();
    let began = core.services.wall.now_micros() / 1_000_000;
    let (path, extension, goes_on) = match core.conference_recorded(name) {
        Some((path, extension)) if file.is_empty() && profile.record_file_append => (path, extension, true),
        _ => {
            let (path, extension) = file_name(core, name, &profile, file, began);
            (path, extension, false)
        }
    };
    let appends = goes_on || profile.record_options.contains('a');
    let whole = format!("{path}.{extension}");
    let then = match afterwards(&profile.record_command, name, &whole) {
        Ok(then) => then,
        Err(why) => {
            let text = format!("record_command of conference '{name}' will not be run: {why}");
            core.services.log.line(Level::Warning, "app_confbridge", &text);
            None
        }
    };
    core.conference_record(name, RecordPlan { path, extension, appends, then })
}

/// Path and extension of a recording.
fn file_name(
    core: &Core,
    conference: &str,
    profile: &BridgeProfile,
    file: &str,
    began: i64,
) -> (String, String) {
    let asked = if file.is_empty() { profile.record_file.as_str() } else { file };
    let (path, format) = match asked.rsplit_once('.') {
        Some((path, format)) if !format.is_empty() && !format.contains('/') => (path, format),
        _ => (asked, "wav"),
    };
    let path = match () {
        // Conferences have names that callers may have dialled: no name leads out of the folder.
        () if asked.is_empty() => {
            let safe: String = conference.chars().map(|c| if "/.".contains(c) { '-' } else { c }).collect();
            format!("confbridge-{safe}-{began}")
        }
        () if file.is_empty() && profile.record_file_timestamp => format!("{path}-{began}"),
        () => path.to_owned(),
    };
    (spooled(core, &path), extension(format).to_owned())
}

/// The command that follows; `None` without one.
fn afterwards(command: &str, conference: &str, file: &str) -> Result<Option<LinkWant>, String> {
    if command.trim().is_empty() {
        return Ok(None);
    }
    let mut line = Written { text: String::new(), values: Some(Vec::new()) };
    let mut rest = command;
    while let Some((before, after)) = rest.split_once("^{")
        && let Some((name, after)) = after.split_once('}')
    {
        line.text.push_str(before);
        let value = match name {
            "MIXMONITOR_FILENAME" => file,
            "CONFBRIDGE_NAME" => conference,
            _ => "",
        };
        let from = line.text.len();
        line.text.push_str(value);
        line.values.get_or_insert_default().push(from..line.text.len());
        rest = after;
    }
    line.text.push_str(rest);
    Script::new(&line).map(|script| Some(script.want(false)))
}
