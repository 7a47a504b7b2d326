//! The dialplan: what is loaded, globals, and loading it again.

use std::fmt::Write as _;

use dialplan::{Inherit, Var};
use serde_json::{Value, json};

use super::text::clean;
use super::{Ask, Cli, Row, Said, show, verb};

pub(super) const ROWS: &[Row] = &[
    show(
        "dialplan show [<exten@context>]",
        "Shows the dialplan: all of it, a context, or what takes a number (100@context, or 100@ in every context).",
        "contexts [name extensions includes ignorepats switches]",
        Cli::dialplan_show,
    )
    .also(&["show dialplan [<exten@context>]"])
    .detail(
        "JSON: an extension has name, caller_match, hint and steps; a step has priority, label, application, data,\n\
         file and line.",
    ),
    show("dialplan show globals", "Lists global variables.", "globals [name value]", Cli::dialplan_globals)
        .also(&["show globals"]),
    verb("dialplan set global <name> <value>", "Sets a global variable.", Cli::dialplan_set_global)
        .also(&["set global <name> <value>"]),
    verb("dialplan reload", "Reads extensions.conf again, and everything else with it.", |cli, _| {
        cli.reload_part("pbx_config", "Dialplan reloaded.\n")
    })
    .also(&["extensions reload"]),
];

fn extension_json(extension: &dialplan::Extension) -> Value {
    let caller = match &extension.caller {
        dialplan::program::CallerMatch::Any => None,
        dialplan::program::CallerMatch::Absent => Some(""),
        dialplan::program::CallerMatch::Number { text, .. } => Some(&**text),
    };
    let steps: Vec<Value> = extension
        .steps
        .iter()
        .map(|step| {
            json!({
                "priority": step.priority, "label": step.label.as_deref(), "application": &*step.name,
                "data": &*step.args, "file": &*step.place.file, "line": step.place.line,
            })
        })
        .collect();
    json!({
        "name": &*extension.name, "caller_match": caller,
        "hint": extension.hint.as_ref().map(|hint| &*hint.devices), "steps": steps,
    })
}

/// An extension of somebody who is registered.
fn registered_json(exten: &str, holder: &dialplan::Holder) -> Value {
    let step = json!({
        "priority": 1, "label": null, "application": "NoOp", "data": &*holder.name, "file": holder.registrar, "line": 0,
    });
    json!({ "name": exten, "caller_match": null, "hint": null, "steps": [step] })
}

fn context_json(
    context: &dialplan::Context,
    exten: Option<&str>,
    registered: &dialplan::Registered,
) -> Option<Value> {
    let mut extensions: Vec<Value> = context
        .extensions
        .iter()
        .filter(|extension| {
            exten.is_none_or(|exten| &*extension.name == exten || extension.pattern.fit(exten).matches())
        })
        .map(extension_json)
        .collect();
    let wanted = |own: &str| exten.is_none_or(|exten| own == exten);
    let registered = registered.of(&context.name).filter(|(own, _)| wanted(own));
    extensions.extend(registered.map(|(own, holder)| registered_json(own, holder)));
    if exten.is_some() && extensions.is_empty() {
        return None;
    }
    let includes: Vec<&str> = context.includes.iter().map(|include| &*include.text).collect();
    let ignorepats: Vec<&str> = context.ignorepats.iter().map(|pattern| &**pattern).collect();
    let switches: Vec<String> =
        context.switches.iter().map(|switch| format!("{}/{}", switch.engine, switch.data)).collect();
    Some(json!({
        "name": &*context.name, "extensions": extensions, "includes": includes,
        "ignorepats": ignorepats, "switches": switches,
    }))
}

impl Cli {
    pub(super) fn context_names(&self) -> Vec<String> {
        let program = self.site.shard.core.borrow().program.clone();
        program.contexts().iter().map(|context| context.name.to_string()).collect()
    }

    fn dialplan_show(&self, ask: &mut Ask<'_>) -> Said {
        let program = self.site.shard.core.borrow().program.clone();
        let asked = ask.arg("exten@context").unwrap_or_default();
        let filled = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned());
        let (exten, context) = match asked.split_once('@') {
            Some((exten, context)) => (filled(exten), filled(context)),
            None => (None, filled(asked)),
        };
        let (exten, context) = (exten.as_deref(), context.as_deref());
        if ask.json {
            let wanted =
                program.contexts().iter().filter(|found| context.is_none_or(|name| *found.name == *name));
            let registered = &self.site.shard.core.borrow().registered;
            let contexts: Vec<Value> =
                wanted.filter_map(|context| context_json(context, exten, registered)).collect();
            if !contexts.is_empty() {
                return Said::Done(format!("{}\n", json!({ "contexts": contexts })));
            }
        }
        match program.show(exten, context, &self.site.shard.core.borrow().registered) {
            Ok(text) => Said::Done(text),
            Err(why) => Said::refused(format!("{}\n", clean(&why))),
        }
    }

    fn dialplan_globals(&self, ask: &mut Ask<'_>) -> Said {
        let core = self.site.shard.core.borrow();
        let mut globals: Vec<(&str, &str)> =
            core.globals.iter().map(|(_, name, value)| (name, value)).collect();
        globals.sort_unstable();
        let data = || {
            let rows: Vec<Value> =
                globals.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
            json!({ "globals": rows })
        };
        let text = || {
            let mut out = String::new();
            for (name, value) in &globals {
                let _ = writeln!(out, "   {}={}", clean(name), clean(value));
            }
            let _ = writeln!(out, "\n    -- {} variable(s)", globals.len());
            out
        };
        ask.show(data, text)
    }

    fn dialplan_set_global(&self, ask: &mut Ask<'_>) -> Said {
        let (name, value) = (ask.need("name"), ask.need("value"));
        let core = &mut *self.site.shard.core.borrow_mut();
        if !core.globals.set(Var::named(name), value, Inherit::Never) {
            return Said::failed(format!("The global variable '{}' cannot be set\n", clean(name)));
        }
        let (variable, text) = (name.to_owned(), value.to_owned());
        core.notice(|_| Some(call::Notice::VarSet { channel: None, variable, value: text }));
        Said::done(format!("\n    -- Global variable '{}' set to '{}'\n", clean(name), clean(value)))
    }
}
