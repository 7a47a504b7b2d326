//! `/asterisk`: what the server is, global variables, modules, log files.

use serde_json::json;

use super::super::asked::Asked;
use super::super::table::{Answer, Done, Fault, Method, Operation, path, text};
use super::super::time::stamp;
use super::super::{identity_of, zone_of};
use super::{read_variable, write_variable};
use crate::VERSION;
use crate::site::Wish;

/// Builds can be repeated, so that none says when it was made.
const BUILD_DATE: &str = "1970-01-01 00:00:00 UTC";

const NO_MODULE: (u16, &str) = (404, "there is no such module");

pub(super) const ROWS: &[Operation] = &[
    Operation {
        method: Method::Get,
        path: "/asterisk/info",
        name: "getInfo",
        text: "Tells what the server is.",
        params: &[text("only", "the parts that are wanted")
            .many()
            .words(&["build", "system", "config", "status"])],
        answer: "AsteriskInfo",
        errors: &[],
        run: info,
    },
    Operation {
        method: Method::Get,
        path: "/asterisk/ping",
        name: "ping",
        text: "Shows that the server is there.",
        params: &[],
        answer: "AsteriskPing",
        errors: &[],
        run: ping,
    },
    Operation {
        method: Method::Get,
        path: "/asterisk/modules",
        name: "listModules",
        text: "Lists what modules.conf may switch off.",
        params: &[],
        answer: "List[Module]",
        errors: &[],
        run: modules,
    },
    Operation {
        method: Method::Get,
        path: "/asterisk/modules/{moduleName}",
        name: "getModule",
        text: "Tells whether a module is provided and on.",
        params: &[path("moduleName", "name of the module")],
        answer: "Module",
        errors: &[NO_MODULE, (409, "the module is off")],
        run: module,
    },
    Operation {
        method: Method::Post,
        path: "/asterisk/modules/{moduleName}",
        name: "loadModule",
        text: "Does nothing for a module that is on: all are built in.",
        params: &[path("moduleName", "name of the module")],
        answer: "void",
        errors: &[NO_MODULE, (409, "the module is off: modules.conf says so")],
        run: load,
    },
    Operation {
        method: Method::Put,
        path: "/asterisk/modules/{moduleName}",
        name: "reloadModule",
        text: "Reads the configuration again, all of it; on any error keeps what runs.",
        params: &[path("moduleName", "name of the module")],
        answer: "void",
        errors: &[NO_MODULE, (409, "the module is off")],
        run: reload,
    },
    Operation {
        method: Method::Delete,
        path: "/asterisk/modules/{moduleName}",
        name: "unloadModule",
        text: "Unloads nothing: all modules are built in, and noload of modules.conf switches them off.",
        params: &[path("moduleName", "name of the module")],
        answer: "void",
        errors: &[NO_MODULE, (409, "it is built in")],
        run: unload,
    },
    Operation {
        method: Method::Get,
        path: "/asterisk/logging",
        name: "listLogChannels",
        text: "Lists where log lines go.",
        params: &[],
        answer: "List[LogChannel]",
        errors: &[],
        run: logs,
    },
    Operation {
        method: Method::Post,
        path: "/asterisk/logging/{logChannelName}",
        name: "addLog",
        text: "Writes a log file more, until it is deleted or the server starts anew.",
        params: &[
            path("logChannelName", "name of the file"),
            text("configuration", "levels, comma separated: notice,warning").must(),
        ],
        answer: "void",
        errors: &[(400, "a level is none"), (409, "there is such a file, or there are too many")],
        run: add_log,
    },
    Operation {
        method: Method::Delete,
        path: "/asterisk/logging/{logChannelName}",
        name: "deleteLog",
        text: "Writes a log file that was added no more.",
        params: &[path("logChannelName", "name of the file")],
        answer: "void",
        errors: &[(404, "there is no such file")],
        run: delete_log,
    },
    Operation {
        method: Method::Put,
        path: "/asterisk/logging/{logChannelName}/rotate",
        name: "rotateLog",
        text: "Begins new log files, all of them.",
        params: &[path("logChannelName", "name of the file")],
        answer: "void",
        errors: &[(404, "there is no such file")],
        run: rotate,
    },
    Operation {
        method: Method::Get,
        path: "/asterisk/variable",
        name: "getGlobalVar",
        text: "Reads a global variable or a function.",
        params: &[text("variable", "NAME or NAME(arguments)").must()],
        answer: "Variable",
        errors: &[(400, "no variable is named")],
        run: variable,
    },
    Operation {
        method: Method::Post,
        path: "/asterisk/variable",
        name: "setGlobalVar",
        text: "Sets a global variable or writes a function.",
        params: &[
            text("variable", "NAME or NAME(arguments)").must(),
            text("value", "the value; empty when absent"),
        ],
        answer: "void",
        errors: &[(400, "no variable is named")],
        run: set_variable,
    },
];

fn info(asked: &mut Asked<'_>) -> Done {
    let only = asked.all("only");
    let wants = |part: &str| only.is_empty() || only.iter().any(|one| one == part);
    let snapshot = asked.site.snapshot.borrow().clone();
    let options = &snapshot.asterisk.options;
    let zone = zone_of(asked.site);
    let moment = |seconds: i64| stamp(seconds.saturating_mul(1_000_000), &zone);
    let mut out = serde_json::Map::new();
    if wants("build") {
        let mut os = std::env::consts::OS.to_owned();
        if let Some(first) = os.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let build = json!({
            "os": os,
            "kernel": kernel.trim(),
            "options": concat!("Strowger ", env!("CARGO_PKG_VERSION")),
            "machine": std::env::consts::ARCH,
            "date": BUILD_DATE,
            "user": "strowger",
        });
        out.insert("build".into(), build);
    }
    if wants("system") {
        // Programs read digits and dots.
        let version = VERSION.strip_prefix("Asterisk ").unwrap_or(VERSION);
        let version = version.split(' ').next().unwrap_or(version);
        out.insert("system".into(), json!({ "version": version, "entity_id": identity_of(asked.site) }));
    }
    if wants("config") {
        let settings = asked.site.shard.core.borrow().settings.clone();
        let mut config = json!({
            "name": settings.system_name,
            "default_language": options.defaultlanguage,
            "setid": { "user": "", "group": "" },
        });
        if let Some(config) = config.as_object_mut() {
            if options.maxcalls > 0 {
                config.insert("max_channels".into(), json!(options.maxcalls));
            }
            if options.maxfiles > 0 {
                config.insert("max_open_files".into(), json!(options.maxfiles));
            }
        }
        out.insert("config".into(), config);
    }
    if wants("status") {
        let status = json!({
            "startup_time": moment(asked.site.started_wall),
            "last_reload_time": moment(asked.site.reloaded_wall.get()),
        });
        out.insert("status".into(), status);
    }
    Ok(Answer::Found(out.into()))
}

fn ping(asked: &mut Asked<'_>) -> Done {
    let micros = asked.site.shard.core.borrow().services.wall.now_micros();
    Ok(Answer::Found(json!({
        "asterisk_id": identity_of(asked.site),
        "ping": "pong",
        "timestamp": stamp(micros, &zone_of(asked.site)),
    })))
}

/// Name and whether it is on, of all there are.
fn known(asked: &Asked<'_>) -> Vec<(&'static str, bool)> {
    let snapshot = asked.site.snapshot.borrow();
    let core = asked.site.shard.core.borrow();
    let rows = store::config::modules::known().map(|(name, provides)| {
        let is_off = core.settings.disabled_modules.contains(name)
            || (!provides.is_empty() && !provides.iter().any(|what| snapshot.modules.has(*what)));
        (name, !is_off)
    });
    rows.collect()
}

fn row(name: &str, is_on: bool) -> serde_json::Value {
    json!({
        "name": format!("{name}.so"),
        "description": store::config::modules::title(name).unwrap_or_default(),
        "use_count": 0,
        "status": if is_on { "Running" } else { "Not Running" },
        "support_level": "core",
    })
}

fn modules(asked: &mut Asked<'_>) -> Done {
    let rows: Vec<_> = known(asked).into_iter().map(|(name, is_on)| row(name, is_on)).collect();
    Ok(Answer::Found(rows.into()))
}

/// The module that is meant, which is on.
fn found(asked: &Asked<'_>) -> Result<&'static str, Fault> {
    let wanted = asked.need("moduleName");
    let wanted = wanted.strip_suffix(".so").unwrap_or(wanted);
    match known(asked).into_iter().find(|(name, _)| *name == wanted) {
        Some((name, true)) => Ok(name),
        Some((_, false)) => Err(Fault::new(409, "Module could not be found in running modules")),
        None => Err(Fault::not_found("Module could not be found in running modules")),
    }
}

fn module(asked: &mut Asked<'_>) -> Done {
    Ok(Answer::Found(row(found(asked)?, true)))
}

fn unload(asked: &mut Asked<'_>) -> Done {
    found(asked)?;
    Err(Fault::new(409, "Module could not be unloaded"))
}

fn load(asked: &mut Asked<'_>) -> Done {
    found(asked)?;
    Ok(Answer::Nothing)
}

fn reload(asked: &mut Asked<'_>) -> Done {
    let module = found(asked)?.to_owned();
    asked.site.wish(Wish::Reload { module });
    Ok(Answer::Nothing)
}

fn logs(asked: &mut Asked<'_>) -> Done {
    let rows = asked.site.log.channels();
    let rows: Vec<_> = rows
        .iter()
        .map(|channel| {
            let (name, kind) = target(asked, &channel.target);
            let levels: Vec<&str> = store::config::logger::LogLevel::ALL
                .iter()
                .filter(|level| channel.levels.contains(**level))
                .map(|level| level.name())
                .collect();
            let levels: String = levels.iter().map(|level| format!("{level} ")).collect();
            json!({ "channel": name, "type": kind, "status": "Enabled", "configuration": levels })
        })
        .collect();
    Ok(Answer::Found(rows.into()))
}

/// A channel of the log and its kind; a file by its whole path.
fn target(asked: &Asked<'_>, of: &store::config::logger::Target) -> (String, &'static str) {
    use store::config::logger::Target;
    match of {
        Target::Console => ("Console".to_owned(), "Console"),
        Target::File(name) => {
            let folder = asked.site.snapshot.borrow().asterisk.directories.astlogdir.clone();
            (folder.join(name).display().to_string(), "File")
        }
        Target::Syslog(_) => ("syslog".to_owned(), "Syslog"),
    }
}

/// Whether the file that is named is written, by its path or its name below the folder of logs.
fn has_log(asked: &Asked<'_>) -> bool {
    use store::config::logger::Target;
    let wanted = asked.need("logChannelName");
    let is_meant = |of: &Target| match of {
        Target::File(name) => name == wanted || target(asked, of).0 == wanted,
        _ => target(asked, of).0 == wanted,
    };
    asked.site.log.channels().iter().any(|channel| is_meant(&channel.target))
}

fn add_log(asked: &mut Asked<'_>) -> Done {
    let channel =
        store::config::logger::Channel::named(asked.need("logChannelName"), asked.need("configuration"));
    let channel = channel.map_err(Fault::bad)?;
    if has_log(asked) || !asked.site.log.add(channel) {
        return Err(Fault::new(409, "Log channel already exists"));
    }
    Ok(Answer::Nothing)
}

fn delete_log(asked: &mut Asked<'_>) -> Done {
    let target = store::config::logger::Channel::named(asked.need("logChannelName"), "error");
    match target.is_ok_and(|channel| asked.site.log.remove(&channel.target)) {
        true => Ok(Answer::Nothing),
        false => Err(Fault::not_found("Log channel does not exist")),
    }
}

fn rotate(asked: &mut Asked<'_>) -> Done {
    if !has_log(asked) {
        return Err(Fault::not_found("Log channel does not exist"));
    }
    asked.site.wish(Wish::RotateLogs);
    Ok(Answer::Nothing)
}

fn variable(asked: &mut Asked<'_>) -> Done {
    let value = read_variable(asked, asked.need("variable"));
    Ok(Answer::Found(json!({ "value": value })))
}

fn set_variable(asked: &mut Asked<'_>) -> Done {
    write_variable(asked, asked.need("variable"), asked.get("value").unwrap_or_default());
    Ok(Answer::Nothing)
}
