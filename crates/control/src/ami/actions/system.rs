//! Actions on the whole process.

use call::Notice;
use store::date::{Zone, format};

use super::super::PROTOCOL_VERSION;
use super::super::table::{ActionRow, After, Done, Turn, may};
use crate::VERSION;
use crate::cli;
use crate::site::Wish;

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "CoreStatus",
        class: &["system", "reporting"],
        synopsis: "Tells since when the process runs and how many calls are up.",
        fields: &[],
        run: core_status,
    },
    ActionRow {
        name: "CoreSettings",
        class: &["system", "reporting"],
        synopsis: "Tells versions and limits.",
        fields: &[],
        run: core_settings,
    },
    ActionRow {
        name: "Reload",
        class: &["system", "config"],
        synopsis: "Reads the configuration again; on any error keeps what runs and says why.",
        fields: &[may("Module", "what is meant; everything is read in any case")],
        run: reload,
    },
    ActionRow {
        name: "ModuleCheck",
        class: &["system"],
        synopsis: "Tells whether a module of Asterisk is provided and on.",
        fields: &[may("Module", "name, without .so")],
        run: module_check,
    },
    ActionRow {
        name: "ModuleLoad",
        class: &["system"],
        synopsis: "Reads the configuration again (LoadType reload). Nothing is loaded or unloaded: all modules are built in, and noload= of modules.conf switches them off.",
        fields: &[may("Module", "name, without .so"), may("LoadType", "load, unload, reload or refresh")],
        run: module_load,
    },
    ActionRow {
        name: "LoggerRotate",
        class: &["system", "reporting"],
        synopsis: "Rotates the log files.",
        fields: &[],
        run: logger_rotate,
    },
];

/// Date and time of a moment, seconds since the epoch, where the machine stands.
fn date_and_time(seconds: i64) -> (String, String) {
    let (micros, zone) = (seconds.saturating_mul(1_000_000), Zone::local());
    (format(micros, &zone, "%Y-%m-%d"), format(micros, &zone, "%H:%M:%S"))
}

fn core_status(turn: &mut Turn<'_>) -> Done {
    let (start_date, start_time) = date_and_time(turn.site.started_wall);
    let (reload_date, reload_time) = date_and_time(turn.site.reloaded_wall.get());
    let (calls, processed) = {
        let core = turn.site.shard.core.borrow();
        (core.call_count(), core.calls_processed)
    };
    turn.response("Success")
        .field("CoreStartupDate", start_date)
        .field("CoreStartupTime", start_time)
        .field("CoreReloadDate", reload_date)
        .field("CoreReloadTime", reload_time)
        .field("CoreCurrentCalls", calls)
        .field("CoreProcessedCalls", processed)
        .end();
    Ok(After::Go)
}

fn core_settings(turn: &mut Turn<'_>) -> Done {
    let snapshot = turn.site.snapshot.borrow().clone();
    let options = &snapshot.asterisk.options;
    let system_name = turn.site.shard.core.borrow().settings.system_name.clone();
    let has_databases = turn.site.databases.borrow().is_some();
    let yes = |value: bool| if value { "Yes" } else { "No" };
    turn.response("Success")
        .field("AMIversion", PROTOCOL_VERSION)
        .field("AsteriskVersion", VERSION.strip_prefix("Asterisk ").unwrap_or(VERSION))
        .field("SystemName", system_name)
        .field("CoreMaxCalls", options.maxcalls)
        .field("CoreMaxLoadAvg", format_args!("{:.6}", options.maxload))
        .field("CoreRunUser", "")
        .field("CoreRunGroup", "")
        .field("CoreMaxFilehandles", options.maxfiles)
        .field("CoreRealTimeEnabled", yes(has_databases))
        .field("CoreCDRenabled", yes(snapshot.cdr.general.enable))
        .field("CoreHTTPenabled", yes(snapshot.manager.general.webenabled))
        // What a language lacks is looked for in no other folder.
        .field("SoundsSearchCustomDir", "No")
        .end();
    Ok(After::Go)
}

/// What the event Reload says of a module that there is not.
const NOT_FOUND: u8 = 2;

fn reload(turn: &mut Turn<'_>) -> Done {
    let module = turn.get("Module").unwrap_or_default().trim_end_matches(".so").to_owned();
    if !module.is_empty() && !cli::is_reloadable(&module) {
        turn.site.shard.core.borrow_mut().notice(|_| Some(Notice::Reload { module, status: NOT_FOUND }));
        return Err("No such module".into());
    }
    let site = turn.site.clone();
    let Ok(mut reload) = site.reload.try_borrow_mut() else { return Err("A reload is under way".into()) };
    match reload.as_mut() {
        Some(reload) => {
            let outcome = reload(&module);
            if outcome.taken {
                return turn.success("Module Reloaded");
            }
            let said = outcome.said.first().map_or("the configuration is refused", String::as_str);
            Err(format!("Reload failed: {said}").into())
        }
        None => {
            site.wish(Wish::Reload { module });
            turn.success("Module Reloaded")
        }
    }
}

/// Whether a module, without `.so`, is provided and on.
fn is_running(turn: &Turn<'_>, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let provided = store::config::modules::is_provided(&name)
        || apps::table::applications().iter().any(|row| row.module == name);
    provided && !turn.site.snapshot.borrow().modules.disabled().contains(&name)
}

fn module_check(turn: &mut Turn<'_>) -> Done {
    if !is_running(turn, turn.need("Module")?.trim_end_matches(".so")) {
        return Err("Module not loaded".into());
    }
    turn.response("Success").field("Version", "").end();
    Ok(After::Go)
}

fn module_load(turn: &mut Turn<'_>) -> Done {
    let kind = turn.need("LoadType")?.to_ascii_lowercase();
    // A module is a file with its whole name.
    let is_there = turn.get("Module").map(|name| {
        let known = name.strip_suffix(".so").is_some_and(|name| is_running(turn, name));
        known || kind == "reload" && cli::is_part(name)
    });
    if is_there == Some(false) {
        return Err("Module not found.".into());
    }
    match kind.as_str() {
        "reload" => {
            let done = reload(turn)?;
            turn.out.clear();
            turn.success(if is_there.is_some() { "Module reloaded." } else { "All modules reloaded." })?;
            Ok(done)
        }
        "load" | "refresh" | "unload" if is_there.is_none() => Err("Need module name.".into()),
        "load" => turn.success("Module loaded."),
        "refresh" => turn.success("Module refreshed."),
        // What is built in stays: noload= of modules.conf switches it off.
        "unload" => Err("Could not unload module.".into()),
        _ => Err("Incomplete LoadType".into()),
    }
}

fn logger_rotate(turn: &mut Turn<'_>) -> Done {
    turn.site.wish(Wish::RotateLogs);
    turn.success("Reloaded the logger and rotated log files")
}
