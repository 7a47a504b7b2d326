//! Applications that write calls down: `MixMonitor`, and `Monitor` as Asterisk 16 had it.

use core::time::Duration;
use std::rc::Rc;

use base::{ChannelId, Gain, MonitorSettings};
use call::monitor::{FileName, Monitor, MonitorPlan, Side};
use call::{Chan, Channel, Core, Level, Shard};
use dialplan::{Options, Written};

use crate::call_ctx::args;
use crate::shell::Script;
use crate::{AppRow, Call, Flow, Outcome, Run};

/// Loudest and quietest step of a volume.
const STEP_MAX: i8 = 4;

pub(crate) const ROWS: &[AppRow] = &[
    AppRow {
        name: "MixMonitor",
        module: "app_mixmonitor",
        synopsis: "Records both sides of a call and goes on.",
        syntax: "MixMonitor(filename.format[,options[,command]])",
        description: "\
Records what the channel hears and says, mixed, until the call ends or StopMixMonitor. A relative name lies in monitor/
below astspooldir. Every format that Record writes is written; wav49 gets the extension WAV. Without a filename only the
files of r and t are written.

options:
  a     appends to what is there.
  b     records only while the channel talks to another one or is in a conference.
  B(s)  both parties hear a beep every s seconds (15).
  d     removes the file when the recording and the command are over; not together with m.
  D     both sides side by side, in a file of two channels (raw, sln, wav).
  i(v)  puts the recording's id into a variable.
  n     in the files of r and t nothing stands for times without packets; else silence does, and they stay in step.
  p     the channel hears a beep before.
  P     the channel that ends it by StopMixMonitor hears a beep.
  r(f)  what the channel says goes to a file of its own, too.
  S     has no effect: without n the files are in step.
  t(f)  what it hears goes to a file of its own, too.
  v(x)  what it hears is recorded louder or quieter (-4 to 4).
  V(x)  what it says is.
  W(x)  both are.
The command is run when the file is complete, as System runs one: values are never read as a command. ^{NAME} in it
stands for a variable whose value is taken when the recording has begun. With d the file is removed when the command has
ended. What the application was told by Exec(), AGI or a manager has no command. No effect have m and c, before there is
voicemail; that is logged. Sets MIXMONITOR_FILENAME.",
        run: Run::Command(|call, line| Box::pin(async move { mix_monitor_here(&call, &line).await })),
    },
    AppRow {
        name: "StopMixMonitor",
        module: "app_mixmonitor",
        synopsis: "Ends MixMonitor.",
        syntax: "StopMixMonitor([id])",
        description: "Ends the recording with this id, or all that MixMonitor began on the channel.",
        run: Run::Story(|call, args| Box::pin(async move { stop_mix_monitor(&call, &args).await })),
    },
    AppRow {
        name: "Monitor",
        module: "res_monitor",
        synopsis: "Records both sides of a call in two files and goes on.",
        syntax: "Monitor([format[:urlbase][,name[,options]]])",
        description: "\
Records what the channel says to name-in and what it hears to name-out until the call ends or StopMonitor. Without a
name the files are called like the channel; a relative name lies in monitor/ below astspooldir. The format is wav unless
another is given; wav49 gets the extension WAV.

options:
  m     one file of both sides instead, called name; not together with i or o.
  b     records only while the channel talks to another one or is in a conference.
  B(s)  both parties hear a beep every s seconds (15).
  i     nothing of what the channel says.
  o     nothing of what it hears.
No effect have urlbase, MONITOR_EXEC and MONITOR_EXEC_ARGS: for a command after the recording use MixMonitor.",
        run: Run::Now(monitor),
    },
    AppRow {
        name: "StopMonitor",
        module: "res_monitor",
        synopsis: "Ends Monitor.",
        syntax: "StopMonitor()",
        description: "Ends what Monitor began on the channel.",
        run: Run::Now(|call, _| {
            call.chan.core(|core| core.monitor_stop(call.chan.id(), is_monitor));
            Ok(Flow::Continue)
        }),
    },
    AppRow {
        name: "PauseMonitor",
        module: "res_monitor",
        synopsis: "Lets Monitor pause.",
        syntax: "PauseMonitor()",
        description: "Nothing is written until UnpauseMonitor.",
        run: Run::Now(|call, _| pause(call, true)),
    },
    AppRow {
        name: "UnpauseMonitor",
        module: "res_monitor",
        synopsis: "Lets Monitor go on.",
        syntax: "UnpauseMonitor()",
        description: "Goes on in the files after PauseMonitor.",
        run: Run::Now(|call, _| pause(call, false)),
    },
    AppRow {
        name: "ChangeMonitor",
        module: "res_monitor",
        synopsis: "Gives the files of Monitor other names.",
        syntax: "ChangeMonitor(name)",
        description: "Gives the files that Monitor writes other names, with what is in them.",
        run: Run::Now(change_monitor),
    },
];

/// What names the recordings of each application.
const MIX_MONITOR: &str = "MixMonitor";
const MONITOR: &str = "Monitor";
/// Their options.
const MIX_OPTIONS: &str = "abBcdDimnpPrStvVW";
const MONITOR_OPTIONS: &str = "bBimo";
/// Those of Record.
pub(crate) const RECORD_OPTIONS: &str = "anoqstuxky";
/// Seconds between beeps when nobody says how many.
const BEEP_SECONDS: u64 = 15;

/// Where a name lies: absolute, or below the spool's `monitor/`.
pub(crate) fn spooled(core: &Core, name: &str) -> String {
    if name.starts_with('/') {
        return name.to_owned();
    }
    let spool = core.settings.directories.0.get("spool").map(String::as_str).unwrap_or_default();
    format!("{spool}/monitor/{name}")
}

/// The extension that a file of this format has.
pub(crate) fn extension(format: &str) -> &str {
    if format == "wav49" { "WAV" } else { format }
}

fn file_name(core: &Core, text: &str) -> Result<FileName, String> {
    let text = text.trim();
    let (path, format) = text
        .rsplit_once('.')
        .filter(|(path, format)| !path.is_empty() && !format.is_empty() && !format.contains('/'))
        .ok_or_else(|| format!("wants filename.format, not '{text}'"))?;
    Ok((spooled(core, path), extension(format).to_owned()))
}

fn volume(options: &Options, letter: char) -> Result<Option<Gain>, String> {
    let Some(text) = options.arg(letter).filter(|_| options.has(letter)) else { return Ok(None) };
    let step: Option<i8> = text.trim().parse().ok().filter(|step: &i8| step.abs() <= STEP_MAX);
    step.map(|step| Some(Gain::of_step(step)))
        .ok_or_else(|| format!("{letter}({text}): the volume is -4 to 4"))
}

/// How often there is a beep; `None` without option B.
fn beeps(options: &Options) -> Result<Option<Duration>, String> {
    let text = options.arg('B').unwrap_or_default().trim();
    let seconds = if text.is_empty() { Ok(BEEP_SECONDS) } else { text.parse() };
    match seconds {
        _ if !options.has('B') => Ok(None),
        Ok(seconds @ 1..) => Ok(Some(Duration::from_secs(seconds))),
        Ok(0) | Err(_) => Err(format!("B({text}): the interval is one second or more")),
    }
}

/// Something that was asked for and has no effect, and what to do about it.
pub(crate) struct Unmet {
    /// What has none, and why.
    pub(crate) what: String,
    /// What to do.
    pub(crate) remedy: &'static str,
}

fn unknown_letters(options: &Options) -> impl Iterator<Item = Unmet> {
    let unmet = |letter| Unmet { what: format!("option {letter}: there is none"), remedy: "leave it out" };
    options.unknown.iter().map(unmet)
}

/// What of these arguments of an application has no effect. What comes from variables is known when the call is there.
pub(crate) fn unmet(app: &str, parts: &[String]) -> Vec<Unmet> {
    let mut unmet = Vec::new();
    let remedy = match app {
        "MixMonitor" => {
            let options = Options::parse(args::nth(parts, 1), MIX_OPTIONS);
            for letter in ['m', 'c'].into_iter().filter(|letter| options.has(*letter)) {
                let what = format!("option {letter}: there is no voicemail");
                unmet.push(Unmet { what, remedy: "take the file from where MIXMONITOR_FILENAME says" });
            }
            unmet.extend(unknown_letters(&options));
            if options.has('d') && !unmet.is_empty() {
                "take the file away where it is taken from"
            } else {
                return unmet;
            }
        }
        "Monitor" => {
            unmet.extend(unknown_letters(&Options::parse(args::nth(parts, 2), MONITOR_OPTIONS)));
            if args::nth(parts, 0).split_once(':').is_some_and(|(_, base)| !base.trim().is_empty()) {
                let what = "urlbase".to_owned();
                unmet.push(Unmet { what, remedy: "set CDR(userfield) in the dialplan" });
            }
            return unmet;
        }
        "MeetMe" => return crate::conference::meetme::unmet(parts),
        "Record" => {
            unmet.extend(unknown_letters(&Options::parse(args::nth(parts, 3), RECORD_OPTIONS)));
            return unmet;
        }
        _ => return unmet,
    };
    let what = "option d: what would have taken the file has no effect, so it stays".to_owned();
    unmet.push(Unmet { what, remedy });
    unmet
}

/// How a MixMonitor that was begun is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Its id.
    pub id: String,
    /// The mixed file; empty: there is none.
    pub file: String,
    /// What was asked for and has no effect.
    pub ignored: Vec<String>,
}

/// What a MixMonitor writes, by its arguments.
fn mix_plan(core: &Core, parts: &[String]) -> Result<MonitorPlan, String> {
    let options = Options::parse(args::nth(parts, 1), MIX_OPTIONS);
    let mut files = Vec::new();
    if !args::nth(parts, 0).trim().is_empty() {
        files.push((Side::Mixed, file_name(core, args::nth(parts, 0))?));
    }
    for (letter, side) in [('r', Side::Heard), ('t', Side::Said)] {
        if let Some(name) = options.arg(letter).filter(|_| options.has(letter)) {
            files.push((side, file_name(core, name)?));
        }
    }
    if files.is_empty() {
        return Err("wants a filename, or one of r(file) and t(file)".to_owned());
    }
    let both = volume(&options, 'W')?;
    let settings = MonitorSettings {
        heard: volume(&options, 'V')?.or(both).unwrap_or(Gain::UNITY),
        said: volume(&options, 'v')?.or(both).unwrap_or(Gain::UNITY),
        bridged_only: options.has('b'),
        stereo: options.has('D'),
        in_step: !options.has('n'),
        ..MonitorSettings::default()
    };
    let is_taken = options.has('m') || !args::nth(parts, 2).trim().is_empty();
    Ok(MonitorPlan {
        by: MIX_MONITOR,
        files,
        append: options.has('a'),
        discard: options.has('d') && !is_taken,
        beep_every: beeps(&options)?,
        beep_at_end: options.has('P'),
        settings,
        then: None,
    })
}

/// Begins a MixMonitor on a channel and sets its variables: for console and manager.
pub fn mix_monitor(shard: &Rc<Shard>, id: ChannelId, text: &str) -> Result<Begun, String> {
    begin_mix(&Call::new(Chan::new(shard.clone(), id)), &args::split(text), false)
}

/// Begins one; a command `follows` it.
fn begin_mix(call: &Call, parts: &[String], follows: bool) -> Result<Begun, String> {
    let id = call.chan.id();
    let (number, file) = call.chan.core(|core| {
        let mut plan = mix_plan(core, parts)?;
        plan.discard &= !follows;
        let mixed = plan.files.iter().find(|(side, _)| *side == Side::Mixed);
        let file = mixed.map(|(_, (path, extension))| format!("{path}.{extension}")).unwrap_or_default();
        core.monitor_start(id, plan).map(|number| (number, file))
    })?;
    let recording = |channel: &mut Channel| {
        channel.monitors.iter().find(|monitor| monitor.number == number).map(Monitor::id)
    };
    let id = call.chan.with(recording).ok().flatten().unwrap_or_default();
    call.set("MIXMONITOR_FILENAME", &file);
    let options = Options::parse(args::nth(parts, 1), MIX_OPTIONS);
    if let Some(variable) = options.arg('i').filter(|variable| !variable.is_empty()) {
        call.set(variable, &id);
    }
    let mut ignored: Vec<String> = unmet(MIX_MONITOR, parts).into_iter().map(|unmet| unmet.what).collect();
    if !args::nth(parts, 2).trim().is_empty() {
        ignored.push("the command: it is run only where a step of the dialplan spells it out".to_owned());
    }
    Ok(Begun { id, file, ignored })
}

/// Begins a MixMonitor for whoever is not in the channel's dialplan: a beep that option p asks for is heard besides.
pub fn mix_monitor_from_outside(shard: &Rc<Shard>, id: ChannelId, text: &str) -> Result<Begun, String> {
    let begun = mix_monitor(shard, id, text)?;
    if beeps_first(&args::split(text)) {
        // While the sound is being read there is none to hear.
        shard.core.borrow_mut().monitor_beep(id);
    }
    Ok(begun)
}

fn beeps_first(parts: &[String]) -> bool {
    Options::parse(args::nth(parts, 1), MIX_OPTIONS).has('p')
}

/// Whether a recording is one of MixMonitor.
pub fn is_mix_monitor(monitor: &Monitor) -> bool {
    monitor.plan.by == MIX_MONITOR
}

/// The file of a recording, for `MIXMONITOR()`.
pub(crate) fn file_of(channel: &Channel, id: &str) -> Option<String> {
    let monitor = channel.monitors.iter().find(|monitor| is_mix_monitor(monitor) && monitor.id() == id)?;
    let (_, (path, extension)) = monitor.plan.files.first()?;
    Some(format!("{path}.{extension}"))
}

async fn mix_monitor_here(call: &Call, line: &Written) -> Outcome {
    let (parts, command) = divide(line);
    if beeps_first(&parts) {
        call.chan.play("beep", "").await?;
    }
    let command = command.filter(|command| !command.text.trim().is_empty());
    let begun = match begin_mix(call, &parts, command.is_some()) {
        Ok(begun) => begun,
        Err(why) => {
            call.log(Level::Warning, &format!("MixMonitor: {why}"));
            return Ok(Flow::Continue);
        }
    };
    for what in &begun.ignored {
        call.log(Level::Warning, &format!("MixMonitor: no effect has {what}"));
    }
    let Some(command) = command else { return Ok(Flow::Continue) };
    match Script::new(&unescaped(call, &command)) {
        Ok(script) => {
            let removes =
                Options::parse(args::nth(&parts, 1), MIX_OPTIONS).has('d') && !begun.file.is_empty();
            let script = if removes { script.then_remove(&begun.file) } else { script };
            call.chan
                .core(|core| core.monitor_then(call.chan.id(), |m| m.id() == begun.id, &script.want(false)));
        }
        Err(why) => call.log(Level::Warning, &format!("MixMonitor: the command will not be run: {why}")),
    }
    Ok(Flow::Continue)
}

/// Filename and options, and what follows them, as they were written: commas of values divide nothing. `None` when it is
/// not known what was written.
fn divide(line: &Written) -> (Vec<String>, Option<Written>) {
    let whole = 0..line.text.len();
    let Some(values) = line.values.as_ref().filter(|values| **values != [whole]) else {
        return (args::split(&line.text), None);
    };
    let mut masked = line.text.clone().into_bytes();
    for range in values {
        masked.get_mut(range.clone()).into_iter().for_each(|value| value.fill(b'x'));
    }
    let masked = String::from_utf8(masked).unwrap_or_default();
    let mut ends = dialplan::args::split_raw(&masked, ',').into_iter().scan(0, |end, part| {
        *end += part.len() + 1;
        Some(*end)
    });
    let (name, options) = (ends.next().unwrap_or(0), ends.next());
    let part = |from: usize, to: usize| {
        dialplan::args::unquote(
            line.text
                .get(from..to.min(line.text.len()) - usize::from(to <= line.text.len()))
                .unwrap_or_default(),
        )
    };
    let mut parts = vec![part(0, name)];
    parts.extend(options.map(|end| part(name, end)));
    let from = options.unwrap_or(name).min(line.text.len());
    let inside = values.iter().filter(|range| range.start >= from);
    let values = inside.map(|range| range.start - from..range.end - from).collect();
    let text = line.text.get(from..).unwrap_or_default().to_owned();
    (parts, Some(Written { text, values: Some(values) }))
}

/// Longest name of a variable that `^{NAME}` stands for.
const NAME_BYTES_MAX: usize = 80;

/// A command with the values of what `^{NAME}` names. Within a value that has to be the name of a variable, in what was
/// written it may be anything.
fn unescaped(call: &Call, line: &Written) -> Written {
    let mut out = Written { text: String::new(), values: Some(Vec::new()) };
    let mut from = 0;
    for range in line.values.iter().flatten() {
        unescape_written(call, line.text.get(from..range.start).unwrap_or_default(), &mut out);
        push_value(&mut out, &unescape_value(call, line.text.get(range.clone()).unwrap_or_default()));
        from = range.end;
    }
    unescape_written(call, line.text.get(from..).unwrap_or_default(), &mut out);
    out
}

fn push_value(out: &mut Written, value: &str) {
    let from = out.text.len();
    out.text.push_str(value);
    out.values.get_or_insert_default().push(from..out.text.len());
}

fn unescape_written(call: &Call, text: &str, out: &mut Written) {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("^{")
        && let Some((name, after)) = after.split_once('}')
    {
        out.text.push_str(before);
        push_value(out, &call.expand(&format!("${{{name}}}")));
        rest = after;
    }
    out.text.push_str(rest);
}

fn unescape_value(call: &Call, text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("^{") {
        out.push_str(before);
        match after.split_once('}').filter(|(name, _)| is_name(name)) {
            Some((name, after)) => {
                out.push_str(&call.get(name).unwrap_or_default());
                rest = after;
            }
            None => {
                out.push_str("^{");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

async fn stop_mix_monitor(call: &Call, text: &str) -> Outcome {
    let id = text.trim();
    let is_meant = |monitor: &Monitor| is_mix_monitor(monitor) && (id.is_empty() || monitor.id() == id);
    let beeps = |monitor: &Monitor| is_meant(monitor) && monitor.plan.beep_at_end;
    let beeps = call.chan.with(|channel| channel.monitors.iter().any(beeps))?;
    call.chan.core(|core| core.monitor_stop(call.chan.id(), is_meant));
    if beeps {
        call.chan.play("beep", "").await?;
    }
    Ok(Flow::Continue)
}

/// The plan of a Monitor with this base name.
fn monitor_plan(core: &Core, format: &str, base: &str, options: &Options) -> Result<MonitorPlan, String> {
    let name = |suffix: &str| (spooled(core, &format!("{base}{suffix}")), extension(format).to_owned());
    let files = if options.has('m') && !options.has('i') && !options.has('o') {
        vec![(Side::Mixed, name(""))]
    } else {
        let sides = [(Side::Heard, "-in", 'i'), (Side::Said, "-out", 'o')];
        sides
            .iter()
            .filter(|row| !options.has(row.2))
            .map(|(side, suffix, _)| (*side, name(suffix)))
            .collect()
    };
    if files.is_empty() {
        return Err("options i and o together leave nothing to record".to_owned());
    }
    let settings = MonitorSettings { bridged_only: options.has('b'), ..MonitorSettings::default() };
    Ok(MonitorPlan { by: MONITOR, files, beep_every: beeps(options)?, settings, ..MonitorPlan::default() })
}

/// Begins a Monitor on a channel: for dialplan and manager. The arguments are format, name and options.
pub fn begin_monitor(core: &mut Core, id: ChannelId, parts: &[String]) -> Result<(), String> {
    let channel = core.get(id).ok_or("the channel is gone")?;
    if channel.monitors.iter().any(is_monitor) {
        return Err("the channel is monitored already".to_owned());
    }
    let format = args::nth(parts, 0).split(':').next().unwrap_or_default().trim();
    let format = if format.is_empty() { "wav" } else { format };
    let own = channel.name.replace('/', "-");
    let base = Some(args::nth(parts, 1).trim()).filter(|base| !base.is_empty()).unwrap_or(&own);
    let plan = monitor_plan(core, format, base, &Options::parse(args::nth(parts, 2), MONITOR_OPTIONS))?;
    core.monitor_start(id, plan).map(drop)
}

/// Whether a recording is one of Monitor.
pub fn is_monitor(monitor: &Monitor) -> bool {
    monitor.plan.by == MONITOR
}

/// Gives the files that Monitor writes of a channel another base name.
pub fn rename_monitor(core: &mut Core, id: ChannelId, base: &str) -> Result<(), String> {
    if !core.get(id).is_some_and(|channel| channel.monitors.iter().any(is_monitor)) {
        return Err("the channel is not monitored".to_owned());
    }
    let suffix = |side| match side {
        Side::Mixed => "",
        Side::Heard => "-in",
        Side::Said => "-out",
    };
    let base = spooled(core, base);
    core.monitor_rename(id, is_monitor, |side| format!("{base}{}", suffix(side)))
}

fn monitor(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    for Unmet { what, .. } in unmet(MONITOR, &parts) {
        call.log(Level::Warning, &format!("Monitor: no effect has {what}"));
    }
    if call.get("MONITOR_EXEC").is_some_and(|program| !program.is_empty()) {
        call.log(
            Level::Warning,
            "Monitor: no effect has MONITOR_EXEC: MixMonitor runs a command after the recording",
        );
    }
    if let Err(why) = call.chan.core(|core| begin_monitor(core, call.chan.id(), &parts)) {
        call.log(Level::Warning, &format!("Monitor: {why}"));
    }
    Ok(Flow::Continue)
}

fn pause(call: &Call, paused: bool) -> Outcome {
    call.chan
        .core(|core| core.monitor_adjust(call.chan.id(), is_monitor, |settings| settings.paused = paused));
    Ok(Flow::Continue)
}

fn change_monitor(call: &Call, text: &str) -> Outcome {
    if let Err(why) = call.chan.core(|core| rename_monitor(core, call.chan.id(), text.trim())) {
        call.log(Level::Warning, &format!("ChangeMonitor: {why}"));
    }
    Ok(Flow::Continue)
}
