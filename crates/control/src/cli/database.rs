//! The internal database.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::text::clean;
use super::{Ask, Cli, Row, Said, show, verb};

pub(super) const ROWS: &[Row] = &[
    verb("database put <family> <key> <value>", "Sets a value.", Cli::database_put),
    show("database get <family> <key>", "Shows a value.", "family key value", Cli::database_get),
    show(
        "database show [<family> [<key>]]",
        "Lists what the database holds: all of it, a family, or what lies under a key.",
        "entries [key value]",
        |cli, ask| {
            let prefix = match (ask.arg("family"), ask.arg("key")) {
                (Some(family), Some(key)) => format!("/{family}/{key}"),
                (Some(family), None) => format!("/{}", family.trim_start_matches('/')),
                (None, _) => String::new(),
            };
            cli.database_show(ask, &prefix, |_| true)
        },
    ),
    show("database showkey <key>", "Lists a key in every family.", "entries [key value]", |cli, ask| {
        let end = format!("/{}", ask.need("key"));
        cli.database_show(ask, "", |key| key.ends_with(&end))
    }),
    verb("database del <family> <key>", "Deletes a value.", Cli::database_del),
    verb(
        "database deltree <family> [<key>]",
        "Deletes a family, or what lies under a key in it.",
        Cli::database_deltree,
    ),
];

impl Cli {
    pub(super) fn families(&self) -> Vec<String> {
        let entries = self.site.shard.core.borrow().services.db.list("");
        let family = |key: &str| Some(key.strip_prefix('/')?.rsplit_once('/')?.0.to_owned());
        let mut families: Vec<String> = entries.iter().filter_map(|(key, _)| family(key)).collect();
        families.dedup();
        families
    }

    fn database_put(&self, ask: &mut Ask<'_>) -> Said {
        let (family, key, value) = (ask.need("family"), ask.need("key"), ask.need("value"));
        if self.site.shard.core.borrow_mut().services.db.put(family, key, value) {
            self.when_saved(ask, "Updated database successfully\n".to_owned())
        } else {
            Said::failed("Failed to update entry.\n")
        }
    }

    fn database_get(&self, ask: &mut Ask<'_>) -> Said {
        let (family, key) = (ask.need("family"), ask.need("key"));
        match self.site.shard.core.borrow().services.db.get(family, key) {
            Some(value) => ask.show(
                || json!({ "family": family, "key": key, "value": value }),
                || format!("Value: {}\n", clean(&value)),
            ),
            None => Said::failed("Database entry not found.\n"),
        }
    }

    fn database_show(&self, ask: &mut Ask<'_>, prefix: &str, wanted: impl Fn(&str) -> bool) -> Said {
        let entries = self.site.shard.core.borrow().services.db.list(prefix);
        let entries: Vec<_> = entries.into_iter().filter(|(key, _)| wanted(key)).collect();
        let data = || {
            let rows: Vec<Value> =
                entries.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect();
            json!({ "entries": rows })
        };
        let text = || {
            let mut out = String::new();
            for (key, value) in &entries {
                let _ = writeln!(out, "{:<50}: {:<25}", clean(key), clean(value));
            }
            let _ = writeln!(out, "{} results found.", entries.len());
            out
        };
        ask.show(data, text)
    }

    /// Says so when what was changed is on the disk; at once to who cannot wait.
    fn when_saved(&self, ask: &Ask<'_>, text: String) -> Said {
        if self.site.is_saved() || !ask.may_wait {
            return Said::Done(text);
        }
        let (finished, session) = (self.finished.clone(), ask.session);
        let spawned = self.site.when_saved(move |is_saved| {
            let (text, status) = match is_saved {
                true => (text, 0),
                false => ("Changed, but it does not come to the disk.\n".to_owned(), 1),
            };
            finished.borrow_mut().push(super::Finished { session, text, status });
        });
        if spawned { Said::Later } else { Said::failed("There are too many stories.\n") }
    }

    fn database_del(&self, ask: &mut Ask<'_>) -> Said {
        let (family, key) = (ask.need("family"), ask.need("key"));
        if self.site.shard.core.borrow_mut().services.db.delete(family, key) {
            self.when_saved(ask, "Database entry removed.\n".to_owned())
        } else {
            Said::failed("Database entry could not be removed.\n")
        }
    }

    fn database_deltree(&self, ask: &mut Ask<'_>) -> Said {
        let (family, key) = (ask.need("family"), ask.arg("key").unwrap_or_default());
        // An empty family would be everything; nobody who means that writes two quotes.
        if family.is_empty() {
            return Said::Usage;
        }
        let count = self.site.shard.core.borrow_mut().services.db.delete_tree(family, key);
        match count {
            0 => Said::failed("Database entries do not exist.\n"),
            count => self.when_saved(ask, format!("{count} database entries removed.\n")),
        }
    }
}
