//! Applications that write calls down: `MixMonitor`, and `Monitor` as Asterisk 16 had it.

use base::{ChannelId, Gain, MonitorSettings};
use call::monitor::{FileName, MonitorPlan, Side};
use call::{Core, Level};

use crate::call_ctx::args;
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
below astspooldir. Every format that Record writes is written.

options:
  a     appends to what is there.
  b     records only while the channel talks to another one or is in a conference.
  r(f)  what the channel says goes to a file of its own, too.
  t(f)  what it hears goes to a file of its own, too.
  v(x)  what it hears is recorded louder or quieter (-4 to 4).
  V(x)  what it says is.
  W(x)  both are.
  D     both sides side by side, in a file of two channels (wav, sln).
  i(v)  puts the recording's id into a variable.
  S     has no effect: both sides are always in step.
Other options, and the command, have no effect and are logged. Sets MIXMONITOR_FILENAME.",
        run: Run::Now(|call, text| {
            match mix_monitor_on(call, text) {
                Ok(()) => {}
                Err(why) => call.log(Level::Warning, &format!("MixMonitor: {why}")),
            }
            Ok(Flow::Continue)
        }),
    },
    AppRow {
        name: "StopMixMonitor",
        module: "app_mixmonitor",
        synopsis: "Ends MixMonitor.",
        syntax: "StopMixMonitor([id])",
        description: "Ends the recording with this id, or all that MixMonitor began on the channel.",
        run: Run::Now(|call, text| {
            let id = text.trim();
            call.chan.core(|core| {
                core.monitor_stop(call.chan.id(), |m| {
                    m.plan.by == MIX_MONITOR && (id.is_empty() || m.id() == id)
                })
            });
            Ok(Flow::Continue)
        }),
    },
    AppRow {
        name: "Monitor",
        module: "res_monitor",
        synopsis: "Records both sides of a call in two files and goes on.",
        syntax: "Monitor([format[,name[,options]]])",
        description: "\
Records what the channel says to name-in and what it hears to name-out until the call ends or StopMonitor. Without a
name the files are called like the channel; a relative name lies in monitor/ below astspooldir. The format is wav unless
another is given.

options:
  m  one file of both sides instead, called name.
  b  records only while the channel talks to another one or is in a conference.
  i  nothing of what the channel says.
  o  nothing of what it hears.",
        run: Run::Now(monitor),
    },
    AppRow {
        name: "StopMonitor",
        module: "res_monitor",
        synopsis: "Ends Monitor.",
        syntax: "StopMonitor()",
        description: "Ends what Monitor began on the channel.",
        run: Run::Now(|call, _| {
            call.chan.core(|core| core.monitor_stop(call.chan.id(), |m| m.plan.by == MONITOR));
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
        synopsis: "Lets Monitor go on in other files.",
        syntax: "ChangeMonitor(name)",
        description: "Ends the files that Monitor writes and goes on in others of the same format.",
        run: Run::Now(change_monitor),
    },
];

/// What names the recordings of each application.
const MIX_MONITOR: &str = "MixMonitor";
const MONITOR: &str = "Monitor";

/// Where a name lies: absolute, or below the spool's `monitor/`.
fn spooled(core: &Core, name: &str) -> String {
    if name.starts_with('/') {
        return name.to_owned();
    }
    let spool = core.settings.directories.0.get("spool").map(String::as_str).unwrap_or_default();
    format!("{spool}/monitor/{name}")
}

fn file_name(core: &Core, text: &str) -> Result<FileName, String> {
    let text = text.trim();
    let (path, extension) = text
        .rsplit_once('.')
        .filter(|(path, extension)| !path.is_empty() && !extension.is_empty() && !extension.contains('/'))
        .ok_or_else(|| format!("wants filename.format, not '{text}'"))?;
    Ok((spooled(core, path), extension.to_owned()))
}

fn volume(options: &dialplan::Options, letter: char) -> Result<Option<Gain>, String> {
    let Some(text) = options.arg(letter).filter(|_| options.has(letter)) else { return Ok(None) };
    let step: Option<i8> = text.trim().parse().ok().filter(|step: &i8| step.abs() <= STEP_MAX);
    step.map(|step| Some(Gain::of_step(step)))
        .ok_or_else(|| format!("{letter}({text}): the volume is -4 to 4"))
}

/// How a MixMonitor that was begun is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Its id.
    pub id: String,
    /// The mixed file.
    pub file: String,
    /// The variable that is to hold the id; empty: none.
    pub variable: String,
    /// What was asked for and has no effect.
    pub ignored: Vec<String>,
}

/// Begins a MixMonitor on a channel: for dialplan, console and manager.
pub fn mix_monitor(core: &mut Core, id: ChannelId, text: &str) -> Result<Begun, String> {
    let parts = args::split(text);
    let options = dialplan::Options::parse(args::nth(&parts, 1), "abrtvVWDiSBcdmnpP");
    let mut ignored: Vec<String> = "BcdmnpP".chars().filter(|l| options.has(*l)).map(String::from).collect();
    ignored.extend(options.unknown.iter().map(char::to_string));
    if !args::nth(&parts, 2).trim().is_empty() {
        ignored.push("the command: dialplans may not run programs".to_owned());
    }
    let mut files = vec![(Side::Mixed, file_name(core, args::nth(&parts, 0))?)];
    for (letter, side) in [('r', Side::Heard), ('t', Side::Said)] {
        if let Some(name) = options.arg(letter).filter(|_| options.has(letter)) {
            files.push((side, file_name(core, name)?));
        }
    }
    let both = volume(&options, 'W')?;
    let settings = MonitorSettings {
        heard: volume(&options, 'V')?.or(both).unwrap_or(Gain::UNITY),
        said: volume(&options, 'v')?.or(both).unwrap_or(Gain::UNITY),
        bridged_only: options.has('b'),
        stereo: options.has('D'),
        ..MonitorSettings::default()
    };
    let file = files.first().map(|(_, (path, extension))| format!("{path}.{extension}")).unwrap_or_default();
    let plan = MonitorPlan { by: MIX_MONITOR, files, append: options.has('a'), settings };
    let number = core.monitor_start(id, plan)?;
    let id = core
        .get(id)
        .and_then(|channel| channel.monitors.iter().find(|monitor| monitor.number == number))
        .map(call::monitor::Monitor::id)
        .unwrap_or_default();
    Ok(Begun { id, file, variable: options.arg('i').unwrap_or_default().to_owned(), ignored })
}

/// Whether a recording is one of MixMonitor.
pub fn is_mix_monitor(monitor: &call::monitor::Monitor) -> bool {
    monitor.plan.by == MIX_MONITOR
}

fn mix_monitor_on(call: &Call, text: &str) -> Result<(), String> {
    let begun = call.chan.core(|core| mix_monitor(core, call.chan.id(), text))?;
    for what in &begun.ignored {
        call.log(Level::Warning, &format!("MixMonitor: no effect has {what}"));
    }
    call.set("MIXMONITOR_FILENAME", &begun.file);
    if !begun.variable.is_empty() {
        call.set(&begun.variable, &begun.id);
    }
    Ok(())
}

/// The plan of a Monitor with this base name.
fn monitor_plan(core: &Core, format: &str, base: &str, options: &dialplan::Options) -> MonitorPlan {
    let name = |suffix: &str| (spooled(core, &format!("{base}{suffix}")), format.to_owned());
    let files = if options.has('m') {
        vec![(Side::Mixed, name(""))]
    } else {
        let sides = [(Side::Heard, "-in", 'i'), (Side::Said, "-out", 'o')];
        sides
            .iter()
            .filter(|row| !options.has(row.2))
            .map(|(side, suffix, _)| (*side, name(suffix)))
            .collect()
    };
    let settings = MonitorSettings {
        hears: !options.has('i'),
        says: !options.has('o'),
        bridged_only: options.has('b'),
        ..MonitorSettings::default()
    };
    MonitorPlan { by: MONITOR, files, append: false, settings }
}

fn monitor(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let format = args::nth(&parts, 0).split(':').next().unwrap_or_default().trim();
    let format = if format.is_empty() { "wav" } else { format };
    let own = call.chan.name().replace('/', "-");
    let base = Some(args::nth(&parts, 1).trim()).filter(|base| !base.is_empty()).unwrap_or(&own);
    let options = dialplan::Options::parse(args::nth(&parts, 2), "mbioBc");
    let begun = call.chan.core(|core| {
        let running =
            core.get(call.chan.id()).is_some_and(|c| c.monitors.iter().any(|m| m.plan.by == MONITOR));
        if running {
            return Err("the channel is monitored already".to_owned());
        }
        let plan = monitor_plan(core, format, base, &options);
        core.monitor_start(call.chan.id(), plan)
    });
    if let Err(why) = begun {
        call.log(Level::Warning, &format!("Monitor: {why}"));
    }
    Ok(Flow::Continue)
}

fn pause(call: &Call, paused: bool) -> Outcome {
    call.chan.core(|core| {
        core.monitor_adjust(call.chan.id(), |m| m.plan.by == MONITOR, |settings| settings.paused = paused)
    });
    Ok(Flow::Continue)
}

fn change_monitor(call: &Call, text: &str) -> Outcome {
    let base = text.trim();
    let changed = call.chan.core(|core| {
        let id = call.chan.id();
        let running = core.get(id).and_then(|c| c.monitors.iter().find(|m| m.plan.by == MONITOR));
        let mut plan = running.map(|monitor| monitor.plan.clone()).ok_or("the channel is not monitored")?;
        for (side, (path, _)) in &mut plan.files {
            let suffix = match side {
                Side::Mixed => "",
                Side::Heard => "-in",
                Side::Said => "-out",
            };
            *path = spooled(core, &format!("{base}{suffix}"));
        }
        core.monitor_stop(id, |m| m.plan.by == MONITOR);
        core.monitor_start(id, plan)
    });
    if let Err(why) = changed {
        call.log(Level::Warning, &format!("ChangeMonitor: {why}"));
    }
    Ok(Flow::Continue)
}
