//! The manager interface: who may use it, who does, and what it has.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::text::{clean, or, yes_no};
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
        cli.reload_part("manager", "")
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

const fn small(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(",")
}

impl Cli {
    fn manager_show_settings(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let general = &snapshot.manager.general;
        let address = general.bindaddr.map_or_else(|| "0.0.0.0".to_owned(), |bind| bind.ip.to_string());
        let tls = &general.tlscertfile;
        let rows: Vec<(&str, String)> = vec![
            ("Manager (AMI)", yes_no(general.enabled).to_owned()),
            ("Web Manager (AMI/HTTP)", yes_no(general.webenabled).to_owned()),
            ("TCP Bindaddress", format!("{address}:{}", general.port)),
            ("HTTP Timeout (seconds)", general.httptimeout.to_string()),
            ("TLS Enable", yes_no(general.tlsenable).to_owned()),
            (
                "TLS Bindaddress",
                general
                    .tls_address()
                    .filter(|_| general.tlsenable)
                    .map_or("Disabled".to_owned(), |at| at.to_string()),
            ),
            ("TLS Certfile", if tls.is_empty() { "asterisk.pem".to_owned() } else { tls.clone() }),
            ("TLS Privatekey", general.tlsprivatekey.clone()),
            ("TLS Cipher", general.tlscipher.join(":")),
            ("Allow multiple login", yes_no(general.allowmultiplelogin).to_owned()),
            ("Display connects", yes_no(general.displayconnects).to_owned()),
            ("Timestamp events", yes_no(general.timestampevents).to_owned()),
            ("Channel vars", general.channelvars.join("\n                             ")),
            ("Disabled events", general.disabledevents.join(",")),
            ("Debug", "No".to_owned()),
        ];
        let data = || {
            let rows: Vec<Value> =
                rows.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
            json!({ "settings": rows })
        };
        let text = || {
            let mut out = String::from("\nGlobal Settings:\n----------------\n");
            for (name, value) in &rows {
                let _ = writeln!(out, "  {:<25}  {value:<15}", format!("{name}:"));
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
            let mut out = String::from("\nusername\n--------\n");
            let mut shown: Vec<_> = users.iter().collect();
            shown.sort_by_key(|(_, user)| user.origin.place.line);
            for (name, _) in shown {
                let _ = writeln!(out, "{}", clean(name));
            }
            let _ = writeln!(out, "-------------------\n{} manager users configured.", users.len());
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
                ("ACL", small(restricted)),
                ("read perm", &read),
                ("write perm", &write),
                ("displayconnects", small(user.displayconnects)),
                ("allowmultiplelogin", small(user.allowmultiplelogin)),
            ] {
                let _ = writeln!(out, "{title:>18}: {}", clean(value));
            }
            let variables = user.setvar.iter().map(|(name, value)| format!("{name}={value}"));
            let variables: Vec<String> = variables.collect();
            let _ = writeln!(out, "{:>18}: {}", "Variables", clean(&variables.join(", ")));
            out
        };
        ask.show(data, text)
    }

    fn manager_show_connected(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let (now, wall) = {
            let core = self.site.shard.core.borrow();
            (core.now, core.services.wall.now_micros().div_euclid(1_000_000))
        };
        // Permissions as the numbers that the field shows: a bit for each class.
        let masks: Vec<(u32, u32)> = self
            .connected
            .values()
            .map(|client| {
                let user = snapshot.manager.users.get(&client.user);
                user.map_or((0, 0), |user| (user.read.number(), user.write.number()))
            })
            .collect();
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
            let mut out = format!(
                "  {:<15}  {:<55}  {:<10}  {:<10}  {:<8}  {:<8}  {:<10}  {:<10}\n",
                "Username", "IP Address", "Start", "Elapsed", "FileDes", "HttpCnt", "ReadPerms", "WritePerms"
            );
            for (client, mask) in self.connected.values().zip(masks) {
                let seconds = now.since(client.since).as_secs();
                let began = wall - i64::try_from(seconds).unwrap_or(0);
                let _ = writeln!(
                    out,
                    "  {:<15.15}  {:<55.55}  {began:<10}  {seconds:<10}  {:<8}  {:<8}  {:010}  {:010}",
                    clean(&client.user),
                    client.address.ip().to_canonical().to_string(),
                    client.session,
                    0,
                    mask.0,
                    mask.1,
                );
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
