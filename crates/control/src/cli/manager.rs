//! The manager interface: who may use it, who does, and what it has.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::text::{clean, or, s, yes_no};
use super::{Ask, Cli, Row, Said, show, verb};
use crate::ami;

pub(super) const ROWS: &[Row] = &[
    show(
        "manager show settings",
        "Shows what manager.conf set.",
        "settings [name value]",
        Cli::manager_show_settings,
    ),
    show(
        "manager show users",
        "Lists users of the manager interface.",
        "users [name read write]",
        Cli::manager_show_users,
    )
    .also(&["manager list users"]),
    show(
        "manager show user <user>",
        "Shows one user of the manager interface; never its secret.",
        "name read write restricted",
        Cli::manager_show_user,
    ),
    show(
        "manager show connected",
        "Lists clients that are logged in.",
        "clients [user address seconds read write]",
        Cli::manager_show_connected,
    ),
    show(
        "manager show commands",
        "Lists the actions of the manager interface.",
        "actions [name classes summary]",
        Cli::manager_show_commands,
    )
    .also(&["manager list commands"]),
    show(
        "manager show command <action>",
        "Shows one action of the manager interface: who may use it and what it reads.",
        "name classes summary fields [name required text]",
        Cli::manager_show_command,
    ),
    verb("manager reload", "Reads manager.conf again, and everything else with it.", |cli, _| {
        cli.reload("manager", "")
    }),
    show(
        "manager show events",
        "Lists the events of the manager interface.",
        "events [name class summary]",
        Cli::manager_show_events,
    )
    .also(&["manager list events"]),
    show(
        "manager show event <event>",
        "Shows one event of the manager interface: who hears it and its headers.",
        "name class summary fields",
        Cli::manager_show_event,
    ),
];

fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(",")
}

impl Cli {
    fn manager_show_settings(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let general = &snapshot.manager.general;
        let address = general.bindaddr.map_or_else(|| "0.0.0.0".to_owned(), |bind| bind.ip.to_string());
        let rows: Vec<(&str, String)> = vec![
            ("Manager (AMI)", yes_no(general.enabled).to_owned()),
            ("TCP Bindaddress", format!("{address}:{}", general.port)),
            ("Allow multiple login", yes_no(general.allowmultiplelogin).to_owned()),
            ("Display connects", yes_no(general.displayconnects).to_owned()),
            ("Timestamp events", yes_no(general.timestampevents).to_owned()),
        ];
        let data = || {
            let rows: Vec<Value> =
                rows.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
            json!({ "settings": rows })
        };
        let text = || {
            let mut out = String::from("\nGlobal Settings:\n----------------\n");
            for (name, value) in &rows {
                let _ = writeln!(out, "  {:<28} {value}", format!("{name}:"));
            }
            out
        };
        ask.show(data, text)
    }

    fn manager_show_users(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let users = &snapshot.manager.users;
        let data = || {
            let rows: Vec<Value> = users
                .iter()
                .map(|(name, user)| {
                    json!({ "name": name, "read": joined(user.read.names()), "write": joined(user.write.names()) })
                })
                .collect();
            json!({ "users": rows })
        };
        let text = || {
            let rule = "-".repeat(20);
            let mut out = format!("\nUsername\n{rule}\n");
            for name in users.keys() {
                let _ = writeln!(out, "{}", clean(name));
            }
            let _ = writeln!(out, "{rule}\n{} manager user{} configured.", users.len(), s(users.len()));
            out
        };
        ask.show(data, text)
    }

    fn manager_show_user(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let name = ask.need("user");
        let Some(user) = snapshot.manager.users.get(name) else {
            return Said::failed(format!("There is no manager called {}\n", clean(name)));
        };
        let (read, write) = (joined(user.read.names()), joined(user.write.names()));
        let restricted = !user.access.is_empty();
        let data = || json!({ "name": name, "read": read, "write": write, "restricted": restricted });
        let text = || {
            let secret = "<Set>";
            let mut out = String::from("\n");
            for (title, value) in [
                ("username", name),
                ("secret", secret),
                ("ACL", yes_no(restricted)),
                ("read perm", &read),
                ("write perm", &write),
                ("displayconnects", yes_no(user.displayconnects)),
                ("allowmultiplelogin", yes_no(user.allowmultiplelogin)),
            ] {
                let _ = writeln!(out, "{title:>20}: {}", clean(value));
            }
            out
        };
        ask.show(data, text)
    }

    fn manager_show_connected(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let now = self.site.shard.core.borrow().now;
        let clients: Vec<_> = self
            .connected
            .values()
            .map(|client| {
                let user = snapshot.manager.users.get(&client.user);
                let read = user.map_or_else(String::new, |user| joined(user.read.names()));
                let write = user.map_or_else(String::new, |user| joined(user.write.names()));
                (&client.user, client.address.to_string(), now.since(client.since).as_secs(), read, write)
            })
            .collect();
        let data = || {
            let rows: Vec<Value> = clients
                .iter()
                .map(|(user, address, seconds, read, write)| {
                    json!({
                        "user": user, "address": address, "seconds": seconds, "read": read, "write": write,
                    })
                })
                .collect();
            json!({ "clients": rows })
        };
        let text = || {
            let line = |user: &str, address: &str, elapsed: &str, read: &str, write: &str| {
                format!("  {user:<15.15}  {address:<45.45}  {elapsed:<10.10}  {read:<30.30}  {write}\n")
            };
            let mut out = line("Username", "IP Address", "Elapsed", "Read", "Write");
            for (user, address, seconds, read, write) in &clients {
                out += &line(&clean(user), address, &seconds.to_string(), read, write);
            }
            let _ = writeln!(out, "{} users connected.", clients.len());
            out
        };
        ask.show(data, text)
    }

    fn manager_show_commands(&self, ask: &mut Ask<'_>) -> Said {
        let data = || {
            let rows: Vec<Value> = ami::actions()
                .map(|action| {
                    json!({ "name": action.name, "classes": action.class, "summary": action.synopsis })
                })
                .collect();
            json!({ "actions": rows })
        };
        let text = || {
            let mut out = format!("  {:<30}  Synopsis\n  {:<30}  --------\n", "Action", "------");
            for action in ami::actions() {
                let _ = writeln!(out, "  {:<30}  {}", action.name, action.synopsis);
            }
            out
        };
        ask.show(data, text)
    }

    fn manager_show_command(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("action");
        let Some(action) = ami::actions().find(|action| action.name.eq_ignore_ascii_case(name)) else {
            return Said::failed(format!("There is no manager action called {}\n", clean(name)));
        };
        let data = || {
            let fields: Vec<Value> = action
                .fields
                .iter()
                .map(|field| json!({ "name": field.name, "required": field.required, "text": field.text }))
                .collect();
            json!({
                "name": action.name, "classes": action.class, "summary": action.synopsis, "fields": fields,
            })
        };
        let text = || {
            let mut out = format!("[Synopsis]\n{}\n\n[Privilege]\n", action.synopsis);
            let _ = writeln!(out, "{}\n\n[Headers]", or(&action.class.join(","), "<none>"));
            for field in action.fields {
                let needed = if field.required { " (required)" } else { "" };
                let _ = writeln!(out, "{}{needed}: {}", field.name, field.text);
            }
            out
        };
        ask.show(data, text)
    }

    fn manager_show_events(&self, ask: &mut Ask<'_>) -> Said {
        let data = || {
            let rows = ami::EVENTS
                .iter()
                .map(|event| json!({ "name": event.name, "class": event.class, "summary": event.synopsis }));
            json!({ "events": rows.collect::<Vec<_>>() })
        };
        let text = || {
            let mut out = format!("  {:<30}  Synopsis\n  {:<30}  --------\n", "Event", "-----");
            for event in ami::EVENTS {
                let _ = writeln!(out, "  {:<30}  {}", event.name, event.synopsis);
            }
            out
        };
        ask.show(data, text)
    }

    fn manager_show_event(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("event");
        let Some(event) = ami::EVENTS.iter().find(|event| event.name.eq_ignore_ascii_case(name)) else {
            return Said::failed(format!("Could not find event '{}'\n", clean(name)));
        };
        let data = || {
            json!({
                "name": event.name, "class": event.class, "summary": event.synopsis, "fields": event.all_fields(),
            })
        };
        let text = || {
            let mut out = format!(
                "Event: {}\n[Synopsis]\n{}\n\n[Privilege]\n{}\n\n[Syntax]\n",
                event.name,
                event.synopsis,
                or(event.class, "<none>")
            );
            for field in event.all_fields() {
                let _ = writeln!(out, "{field}:");
            }
            out
        };
        ask.show(data, text)
    }
}
