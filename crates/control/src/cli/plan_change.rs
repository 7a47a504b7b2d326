//! Changing the dialplan while calls go on, writing it down, and asking a function.

use std::sync::Arc;

use dialplan::{Addition, ChangeError, ContextLine, Program};
use store::editable::Editable;

use super::text::clean;
use super::{Ask, Cli, OUTSIDE, Row, Said, verb};

/// Where the dialplan is written when no file is named.
const FILE: &str = "extensions.conf";

pub(super) const ROWS: &[Row] = &[
    verb(
        "dialplan add extension <exten,priority,application> into <context> [replace]",
        "Adds a step to the dialplan, until that is loaded again; the context is made when there is none.",
        Cli::dialplan_add_extension,
    )
    .detail("For example: dialplan add extension 6123,1,Dial(PJSIP/6123,20) into internal. hint is a priority, too."),
    verb(
        "dialplan remove extension <exten@context> [<priority>]",
        "Takes an extension, as it is written, or one of its steps out of the dialplan, until that is loaded again.",
        Cli::dialplan_remove_extension,
    ),
    verb(
        "dialplan remove context <context>",
        "Takes a whole context out of the dialplan, until that is loaded again.",
        Cli::dialplan_remove_context,
    ),
    verb(
        "dialplan add include <context,times> into <context>",
        "Includes a context in another one, until the dialplan is loaded again.",
        |cli, ask| cli.dialplan_line(ask, ContextLine::Include, true),
    )
    .detail("Times are as in extensions.conf: dialplan add include night,18:00-08:00,mon-fri,*,* into internal"),
    verb(
        "dialplan remove include <context,times> from <context>",
        "Takes an include, as it is written, out of a context, until the dialplan is loaded again.",
        |cli, ask| cli.dialplan_line(ask, ContextLine::Include, false),
    ),
    verb(
        "dialplan add ignorepat <pattern> into <context>",
        "Adds a pattern after which dial tone goes on, until the dialplan is loaded again.",
        |cli, ask| cli.dialplan_line(ask, ContextLine::IgnorePattern, true),
    ),
    verb(
        "dialplan remove ignorepat <pattern> from <context>",
        "Takes such a pattern out of a context, until the dialplan is loaded again.",
        |cli, ask| cli.dialplan_line(ask, ContextLine::IgnorePattern, false),
    ),
    verb(
        "dialplan save [<file>]",
        "Writes the dialplan as it runs into extensions.conf, or another file of the configuration folder.",
        Cli::dialplan_save,
    )
    .detail(
        "[general] of extensions.conf must say static=yes and writeprotect=no. Comments, templates and includes of files are\n\
         lost: the file then holds everything itself.",
    ),
    verb(
        "dialplan set chanvar <channel> <name> <value>",
        "Sets a variable of a channel.",
        Cli::dialplan_set_chanvar,
    )
    .also(&["core set chanvar <channel> <name> <value>"]),
    verb(
        "dialplan eval function <function...>",
        "Reads a function outside of any call, such as DEVICE_STATE(PJSIP/6001).",
        Cli::dialplan_eval,
    ),
];

impl Cli {
    /// Puts a changed dialplan in force; calls look their place up in it at their next step.
    fn dialplan_take(
        &self,
        ask: &Ask<'_>,
        changed: impl FnOnce(&Program) -> Result<Program, ChangeError>,
        exists: &str,
        missing: &str,
        done: String,
    ) -> Said {
        if !ask.may_reach_outside {
            return Said::refused(OUTSIDE);
        }
        let program = self.site.shard.core.borrow().program.clone();
        match changed(&program) {
            Ok(program) => {
                self.site.shard.core.borrow_mut().program = Arc::new(program);
                Said::Done(done)
            }
            Err(ChangeError::Exists) => Said::refused(exists),
            Err(ChangeError::Missing) => Said::refused(missing),
            Err(ChangeError::Invalid(why)) => Said::refused(format!("{}\n", clean(&why))),
        }
    }

    fn dialplan_add_extension(&self, ask: &mut Ask<'_>) -> Said {
        let (text, context) = (ask.need("exten,priority,application"), ask.need("context"));
        let mut parts = text.splitn(3, ',').map(str::trim);
        let (Some(exten), Some(priority), Some(step)) = (parts.next(), parts.next(), parts.next()) else {
            return Said::Usage;
        };
        // Both ways of writing it: App(data) and App,data.
        let (app, data) = match step.split_once(['(', ',']) {
            Some((app, data)) if step.as_bytes().get(app.len()) == Some(&b'(') => {
                (app.trim(), data.strip_suffix(')').unwrap_or(data))
            }
            Some((app, data)) => (app.trim(), data),
            None => (step, ""),
        };
        let is_hint = priority.eq_ignore_ascii_case("hint");
        if !is_hint && apps::table::lookup(app).is_none() {
            return Said::failed(format!("Unknown application '{}'\n", clean(app)));
        }
        let app = if is_hint { step } else { app };
        let replace = ask.choice().is_some();
        let new = Addition { context, exten, priority, app, data: if is_hint { "" } else { data }, replace };
        let done = format!(
            "Extension '{},{},{}({})' added into '{}' context\n",
            clean(exten),
            clean(priority),
            clean(app),
            clean(data),
            clean(context)
        );
        let exists = format!(
            "Extension {}@{} with priority {} already exists\n",
            clean(exten),
            clean(context),
            clean(priority)
        );
        self.dialplan_take(ask, |program| dialplan::add(program, &program.tables(), &new), &exists, "", done)
    }

    fn dialplan_remove_extension(&self, ask: &mut Ask<'_>) -> Said {
        let Some((exten, context)) = ask.need("exten@context").rsplit_once('@') else { return Said::Usage };
        let priority = match ask.arg("priority").map(str::parse::<u32>) {
            None => None,
            Some(Ok(priority)) => Some(priority),
            Some(Err(_)) => return Said::Usage,
        };
        let place = format!("{}@{}", clean(exten), clean(context));
        let done = match priority {
            Some(priority) => format!("Extension {place} with priority {priority} removed\n"),
            None => format!("Whole extension {place} removed\n"),
        };
        let missing = format!("There is no such extension or priority: {place}\n");
        let changed =
            |program: &Program| dialplan::remove(program, &program.tables(), context, exten, priority);
        self.dialplan_take(ask, changed, "", &missing, done)
    }

    fn dialplan_remove_context(&self, ask: &mut Ask<'_>) -> Said {
        let context = ask.need("context");
        let missing = format!("There is no existence of '{}' context\n", clean(context));
        let done = format!("Context '{}' removed\n", clean(context));
        self.dialplan_take(
            ask,
            |program| dialplan::remove_context(program, &program.tables(), context),
            "",
            &missing,
            done,
        )
    }

    /// Adds a line to a context or takes it out.
    fn dialplan_line(&self, ask: &mut Ask<'_>, line: ContextLine, add: bool) -> Said {
        let context = ask.need("context");
        let text = match line {
            ContextLine::Include => ask.need("context,times"),
            ContextLine::IgnorePattern => ask.need("pattern"),
        };
        let (shown, place) = (clean(text), clean(context));
        let why = match (line, add) {
            (ContextLine::Include, true) => {
                format!("Context '{shown}' already included in '{place}' context\n")
            }
            (ContextLine::IgnorePattern, true) => {
                format!("Ignore pattern '{shown}' already included in '{place}' context\n")
            }
            (ContextLine::Include, false) => {
                format!("Failed to remove '{shown}' include from '{place}' context\n")
            }
            (ContextLine::IgnorePattern, false) => {
                format!("There is no ignore pattern '{shown}' in '{place}' context\n")
            }
        };
        let done = match (line, add) {
            (ContextLine::Include, true) => format!("Context '{shown}' included in '{place}' context\n"),
            (ContextLine::Include, false) => {
                format!("The dialplan no longer includes '{shown}' into '{place}'\n")
            }
            (ContextLine::IgnorePattern, true) => {
                format!("Ignore pattern '{shown}' added into '{place}' context\n")
            }
            (ContextLine::IgnorePattern, false) => {
                format!("Ignore pattern '{shown}' removed from '{place}' context\n")
            }
        };
        let changed = |program: &Program| match add {
            true => dialplan::add_line(program, &program.tables(), context, line, text),
            false => dialplan::remove_line(program, &program.tables(), context, line, text),
        };
        self.dialplan_take(ask, changed, &why, &why, done)
    }

    fn dialplan_save(&self, ask: &mut Ask<'_>) -> Said {
        if !ask.may_reach_outside {
            return Said::refused(OUTSIDE);
        }
        let program = self.site.shard.core.borrow().program.clone();
        let snapshot = self.site.snapshot.borrow();
        if snapshot.is_embedded() {
            return Said::failed("There is no configuration folder: the built-in configuration runs\n");
        }
        let general = program.general();
        if !general.static_config || general.writeprotect {
            return Said::failed(
                "The dialplan is not saved: [general] of extensions.conf must say static=yes and writeprotect=no\n",
            );
        }
        let folder = &snapshot.asterisk.directories.astetcdir;
        let name = ask.arg("file").unwrap_or(FILE);
        let text = program.to_file(|file| file != apps::parking::FILE);
        match Editable::new(folder).write(name, text.as_bytes()) {
            Ok(()) => {
                Said::done(format!("Dialplan successfully saved into '{}'\n", folder.join(name).display()))
            }
            Err(why) => Said::failed(format!("{} was not written: {why}\n", clean(name))),
        }
    }

    fn dialplan_set_chanvar(&self, ask: &mut Ask<'_>) -> Said {
        let (channel, name, value) = (ask.need("channel"), ask.need("name"), ask.need("value"));
        let Some(id) = self.site.shard.core.borrow().by_name(channel) else {
            return Said::failed(format!("{} is not a known channel\n", clean(channel)));
        };
        if name.contains('(') {
            return Said::failed(
                "This sets variables; functions are set by the dialplan or by Setvar of the manager\n",
            );
        }
        apps::Call::new(call::Chan::new(self.site.shard.clone(), id)).set(name, value);
        Said::done("")
    }

    fn dialplan_eval(&self, ask: &mut Ask<'_>) -> Said {
        let text = ask.need("function");
        let text = text.strip_prefix("${").and_then(|inner| inner.strip_suffix('}')).unwrap_or(text);
        let name = text.split('(').next().unwrap_or_default().trim();
        let may = {
            let core = self.site.shard.core.borrow();
            let functions = core.program.functions();
            let row = functions.lookup(name).and_then(|id| functions.row(id));
            match row {
                None => {
                    return Said::failed(format!("No function by that name registered: {}\n", clean(name)));
                }
                Some(row) if !row.readable() => {
                    return Said::failed(format!("{} can only be set\n", clean(name)));
                }
                Some(row) => row.may_be_read(ask.rights),
            }
        };
        if !may {
            return Said::refused(OUTSIDE);
        }
        let nobody = base::ChannelId::new(u32::MAX, u32::MAX);
        let call = apps::Call::new(call::Chan::new(self.site.shard.clone(), nobody)).with_rights(ask.rights);
        let text = if text.contains('(') { text.to_owned() } else { format!("{text}()") };
        let value = call.read(&text);
        Said::Done(format!("Return Value: Success (0)\nResult: {}\n", clean(&value)))
    }
}
