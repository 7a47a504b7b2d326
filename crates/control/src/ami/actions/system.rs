//! Actions on the whole process.

use store::date::{Zone, format};

use super::super::PROTOCOL_VERSION;
use super::super::table::{ActionRow, After, Done, Turn, may, must};
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
        class: &["config", "system"],
        synopsis: "Reads the configuration again; on any error keeps what runs and says why.",
        fields: &[may("Module", "what is meant; everything is read in any case")],
        run: reload,
    },
    ActionRow {
        name: "ModuleCheck",
        class: &["system"],
        synopsis: "Tells whether a module of Asterisk is provided and on.",
        fields: &[must("Module", "name, without .so")],
        run: module_check,
    },
    ActionRow {
        name: "ModuleLoad",
        class: &["system"],
        synopsis: "Reads the configuration again (LoadType reload). Nothing is loaded or unloaded: all modules are built in, and noload= of modules.conf switches them off.",
        fields: &[may("Module", "name, without .so"), must("LoadType", "load, unload, reload or refresh")],
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
    let calls = turn.site.shard.core.borrow().call_count();
    turn.response("Success")
        .field("CoreStartupDate", start_date)
        .field("CoreStartupTime", start_time)
        .field("CoreReloadDate", reload_date)
        .field("CoreReloadTime", reload_time)
        .field("CoreCurrentCalls", calls)
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
        .field("CoreHTTPenabled", yes(snapshot.http.enabled))
        .end();
    Ok(After::Go)
}

fn reload(turn: &mut Turn<'_>) -> Done {
    let module = turn.get("Module").unwrap_or_default().trim_end_matches(".so").to_owned();
    if !module.is_empty() && !cli::is_reloadable(&module) {
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

fn module_check(turn: &mut Turn<'_>) -> Done {
    let name = turn.need("Module")?.trim_end_matches(".so").to_ascii_lowercase();
    let provided = store::config::modules::is_provided(&name)
        || apps::table::applications().iter().any(|row| row.module == name);
    let disabled = turn.site.snapshot.borrow().modules.disabled().contains(&name);
    if !provided || disabled {
        return Err("Module not loaded".into());
    }
    turn.response("Success").field("Version", "").end();
    Ok(After::Go)
}

fn module_load(turn: &mut Turn<'_>) -> Done {
    match turn.need("LoadType")?.to_ascii_lowercase().as_str() {
        "reload" => reload(turn),
        "load" | "refresh" => {
            if turn.get("Module").is_none() {
                return Err("Need module name.".into());
            }
            module_check(turn)?;
            turn.out.clear();
            turn.success("Module loaded.")
        }
        "unload" => {
            Err("Could not unload module: it is built in; write noload= in modules.conf and reload".into())
        }
        _ => Err("Incomplete LoadType".into()),
    }
}

fn logger_rotate(turn: &mut Turn<'_>) -> Done {
    turn.site.wish(Wish::RotateLogs);
    turn.success("Rotated Logger")
}
