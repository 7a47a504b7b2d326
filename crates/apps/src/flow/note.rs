//! Applications that say something to people and programs outside the call.

use call::{Level, Notice};

use super::rows;
use crate::call_ctx::args;
use crate::{AppRow, Call, Flow, Outcome, Run};

/// Headers of one UserEvent: more than any manager client reads.
const USER_EVENT_FIELDS_MAX: usize = 64;

pub(crate) const ROWS: &[AppRow] = rows! {
    "NoOp" "pbx_builtins" Run::Now(|_, _| Ok(Flow::Continue)),
        "Does nothing; its text is seen in the verbose log.", "NoOp([text])", "Shows its text in the console's step lines, nothing else.";
    "Verbose" "app_verbose" Run::Now(verbose),
        "Writes a line to the verbose log.", "Verbose([level,]message)", "The level is 0 to 9, without one 0.";
    "Log" "app_verbose" Run::Now(log),
        "Writes a line to the log.", "Log(level,message)",
        "The level is one of ERROR, WARNING, NOTICE, DEBUG, VERBOSE, DTMF.";
    "DumpChan" "app_dumpchan" Run::Now(dump),
        "Logs everything about the channel.", "DumpChan([level])",
        "Writes the channel's state and variables to the log at this verbose level.";
    "UserEvent" "app_userevent" Run::Now(user_event),
        "Sends an event of your own to manager clients.",
        "UserEvent(eventname[,body[,...]])",
        "Each body is 'Header: value'; manager clients get a UserEvent with these headers.";
    "HangupCauseClear" "func_hangupcause" Run::Now(hangup_cause_clear),
        "Forgets how dialled channels ended.", "HangupCauseClear()",
        "HANGUPCAUSE_KEYS() is empty after it, and HANGUPCAUSE() knows no channel.";
    "ClearHash" "func_strings" Run::Now(clear_hash),
        "Forgets the keys of a hash.", "ClearHash(hashname)", "All that was set by HASH(hashname,key).";
};

fn hangup_cause_clear(call: &Call, _: &str) -> Outcome {
    call.chan.with(|c| c.hangup_causes.clear())?;
    Ok(Flow::Continue)
}

fn clear_hash(call: &Call, text: &str) -> Outcome {
    let prefix = format!("~HASH~{}~", text.trim());
    call.chan.with(|c| {
        let names: Vec<String> = c
            .vars
            .iter()
            .filter(|(_, name, _)| name.starts_with(&prefix))
            .map(|(_, name, _)| name.to_owned())
            .collect();
        for name in names {
            c.vars.remove(dialplan::Var::named(&name));
        }
    })?;
    Ok(Flow::Continue)
}

fn verbose(call: &Call, text: &str) -> Outcome {
    let (level, message) = match text.split_once(',') {
        Some((level, message)) => match level.trim().parse::<u8>() {
            Ok(level) => (level, message),
            Err(_) => (0, text),
        },
        None => (0, text),
    };
    call.chan.core(|core| core.log(Level::Verbose(level), "app_verbose", message.trim_start()));
    Ok(Flow::Continue)
}

fn log(call: &Call, text: &str) -> Outcome {
    let (level, message) = text.split_once(',').unwrap_or((text, ""));
    let level = match level.trim().to_ascii_uppercase().as_str() {
        "ERROR" => Level::Error,
        "WARNING" => Level::Warning,
        "NOTICE" => Level::Notice,
        "DEBUG" => Level::Debug(0),
        "VERBOSE" => Level::Verbose(0),
        "DTMF" => Level::Dtmf,
        other => {
            call.log(Level::Error, &format!("Log: unknown log level '{other}'"));
            return Ok(Flow::Continue);
        }
    };
    let at = call.here().location();
    let place = format!("Ext. {}", at.exten);
    call.chan.core(|core| core.log(level, &place, message.trim_start()));
    Ok(Flow::Continue)
}

fn dump(call: &Call, level: &str) -> Outcome {
    let level = Level::Verbose(level.trim().parse().unwrap_or(0));
    if !call.chan.core(|core| core.services.log.enabled(level)) {
        return Ok(Flow::Continue);
    }
    call.settle();
    let lines = call.chan.with(|c| {
        let mut lines = vec![
            format!("Name= {}", c.name),
            format!("UniqueID= {}", c.uniqueid),
            format!("LinkedID= {}", c.linkedid),
            format!("CallerIDNum= {}", c.caller.number()),
            format!("CallerIDName= {}", c.caller.name()),
            format!("ConnectedLineIDNum= {}", c.connected.number()),
            format!("ConnectedLineIDName= {}", c.connected.name()),
            format!("DNIDDigits= {}", c.dialed.as_deref().unwrap_or("(N/A)")),
            format!("Language= {}", c.language),
            format!("State= {} ({})", c.state.name(), c.state as u8),
            format!("Context= {}", c.location.context),
            format!("Extension= {}", c.location.exten),
            format!("Priority= {}", c.location.priority),
            format!("Application= {}", c.app),
            format!("Data= {}", c.app_data),
            format!("Format= {}", c.format.name()),
        ];
        lines.extend(
            c.vars.iter().map(|(inherit, name, value)| format!("{}{name}={value}", inherit.prefix())),
        );
        lines
    })?;
    call.chan.core(|core| lines.iter().for_each(|line| core.log(level, "app_dumpchan", line)));
    Ok(Flow::Continue)
}

fn user_event(call: &Call, text: &str) -> Outcome {
    let mut parts = args::split(text).into_iter();
    let name = parts.next().unwrap_or_default();
    if name.trim().is_empty() {
        call.log(Level::Warning, "UserEvent requires an argument (eventname)");
        return Ok(Flow::Continue);
    }
    let field = |body: String| {
        let (key, value) = body.split_once(':').unwrap_or((&body, ""));
        // A header ends at its line: a value from the network must not begin another one.
        let line = |text: &str| text.trim().replace(['\r', '\n'], " ");
        (line(key), line(value))
    };
    let fields =
        parts.filter(|body| !body.trim().is_empty()).take(USER_EVENT_FIELDS_MAX).map(field).collect();
    call.chan.core(|core| {
        call.settle_in(core);
        core.notice_of(call.chan.id(), |channel| Notice::UserEvent {
            channel: Some(channel),
            name: name.trim().to_owned(),
            fields,
        });
    });
    Ok(Flow::Continue)
}
