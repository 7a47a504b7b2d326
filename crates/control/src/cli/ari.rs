//! The REST interface: who may use it, which programs are connected, and what each listens to.

use std::fmt::Write as _;

use call::stasis::Topic;
use serde_json::{Value, json};

use super::text::{clean, yes_no};
use super::{Ask, Cli, Row, Said, show, verb};

pub(super) const ROWS: &[Row] = &[
    show(
        "ari show status",
        "Shows whether the REST interface is served, and how much it is used.",
        "enabled users connections channels events requests",
        Cli::ari_show_status,
    ),
    show(
        "ari show users",
        "Lists users of the REST interface.",
        "users [name read_only]",
        Cli::ari_show_users,
    ),
    show(
        "ari show user <user>",
        "Shows one user of the REST interface; never its password.",
        "name read_only restricted",
        Cli::ari_show_user,
    ),
    show(
        "ari show apps",
        "Lists applications that programs hear for.",
        "apps [name active subscribes_all channels debug]",
        Cli::ari_show_apps,
    ),
    show(
        "ari show app <app>",
        "Shows what one application listens to.",
        "name active subscribes_all debug channels bridges endpoints devices",
        Cli::ari_show_app,
    ),
    verb(
        "ari mkpasswd <password>",
        "Prints the lines of ari.conf that keep a password as crypt(3) makes it.",
        Cli::ari_mkpasswd,
    ),
    verb(
        "ari set debug <app> on|off",
        "Logs events of one application, as they are sent, or logs them no more.",
        Cli::ari_set_debug,
    ),
];

impl Cli {
    fn ari_show_status(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let core = self.site.shard.core.borrow();
        let sight = self.site.ari.borrow();
        let enabled = snapshot.ari.is_served() && snapshot.http.enabled;
        let channels = core.stasis.channel_count();
        let data = || {
            json!({
                "enabled": enabled,
                "users": snapshot.ari.users.len(),
                "connections": sight.connected.len(),
                "channels": channels,
                "events": sight.events,
                "requests": sight.requests,
            })
        };
        let text = || {
            let general = &snapshot.ari.general;
            let mut out = format!("ARI Status:\nEnabled: {}\n", yes_no(enabled));
            let _ = writeln!(out, "Output format: {}", if general.pretty { "pretty" } else { "compact" });
            let _ = writeln!(out, "Auth realm: {}", clean(&general.auth_realm));
            let _ = writeln!(out, "Allowed Origins: {}", clean(&general.allowed_origins.join(",")));
            out
        };
        ask.show(data, text)
    }

    fn ari_show_users(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let users = &snapshot.ari.users;
        let data = || {
            let rows: Vec<Value> = users
                .iter()
                .map(|(name, user)| json!({ "name": name, "read_only": user.read_only }))
                .collect();
            json!({ "users": rows })
        };
        let text = || {
            let mut out = String::from("r/o?  ACL?  Username\n----  ----  --------\n");
            for (name, user) in users {
                let (read_only, restricted) = (yes_no(user.read_only), yes_no(!user.access.is_empty()));
                let _ = writeln!(out, "{read_only:<4}  {restricted:<4}  {}", clean(name));
            }
            out
        };
        ask.show(data, text)
    }

    fn ari_show_user(&self, ask: &mut Ask<'_>) -> Said {
        let snapshot = self.site.snapshot.borrow();
        let name = ask.need("user");
        let Some(user) = snapshot.ari.users.get(name) else {
            return Said::failed(format!("User '{}' not found\n", clean(name)));
        };
        let restricted = !user.access.is_empty();
        let data = || json!({ "name": name, "read_only": user.read_only, "restricted": restricted });
        let text = || {
            format!(
                "Username: {}\nRead only?: {}\nACL: {}\n",
                clean(name),
                yes_no(user.read_only),
                yes_no(restricted)
            )
        };
        ask.show(data, text)
    }

    fn ari_mkpasswd(&self, ask: &mut Ask<'_>) -> Said {
        let mut bytes = [0; 12];
        let made = match getrandom::fill(&mut bytes) {
            Ok(()) => {
                crate::crypt::made(ask.need("password"), &crate::base64::encode(&bytes).replace('+', "."))
            }
            Err(_) => None,
        };
        let Some(made) = made else { return Said::failed("No password was made\n".to_owned()) };
        Said::done(format!(
            "; Copy the following two lines into ari.conf\npassword_format = crypt\npassword = {made}\n"
        ))
    }

    fn ari_show_apps(&self, ask: &mut Ask<'_>) -> Said {
        let core = self.site.shard.core.borrow();
        let sight = self.site.ari.borrow();
        let rows: Vec<_> = core
            .stasis
            .apps()
            .map(|(name, app)| {
                (name, app, core.stasis.channels_of(name).count(), sight.debug.contains(&**name))
            })
            .collect();
        let data = || {
            let rows: Vec<Value> = rows
                .iter()
                .map(|(name, app, channels, debug)| {
                    json!({
                        "name": &***name, "active": app.is_active, "subscribes_all": app.subscribes_all,
                        "channels": channels, "debug": debug,
                    })
                })
                .collect();
            json!({ "apps": rows })
        };
        let text = || {
            let mut out = format!("{:<25}\n{}\n", "Application Name", "=".repeat(25));
            for (name, ..) in &rows {
                let _ = writeln!(out, "{:<25}", clean(name));
            }
            out
        };
        ask.show(data, text)
    }

    fn ari_show_app(&self, ask: &mut Ask<'_>) -> Said {
        let core = self.site.shard.core.borrow();
        let sight = self.site.ari.borrow();
        let name = ask.need("app");
        let Some(app) = core.stasis.app(name) else {
            return Said::failed(format!("No such application '{}'\n", clean(name)));
        };
        let debug = sight.debug.contains(name);
        let (mut channels, mut bridges, mut endpoints, mut devices) = (vec![], vec![], vec![], vec![]);
        for topic in app.listens_to() {
            match topic {
                Topic::Channel(id) => channels.push(or_all(id)),
                Topic::Bridge(id) => bridges.push(or_all(id)),
                Topic::Endpoint(tech, None) => endpoints.push(tech.clone()),
                Topic::Endpoint(tech, Some(resource)) => endpoints.push(format!("{tech}/{resource}")),
                Topic::DeviceState(name) => devices.push(name.clone()),
            }
        }
        let data = || {
            json!({
                "name": name, "active": app.is_active, "subscribes_all": app.subscribes_all, "debug": debug,
                "channels": channels, "bridges": bridges, "endpoints": endpoints, "devices": devices,
            })
        };
        let text = || {
            let mut out = format!("Name: {}\n", clean(name));
            let _ = writeln!(out, "  Active: {}", yes_no(app.is_active));
            let _ = writeln!(out, "  Subscribed to all: {}", yes_no(app.subscribes_all));
            let _ = writeln!(out, "  Debug: {}", yes_no(debug));
            for (title, list) in [
                ("Channels", &channels),
                ("Bridges", &bridges),
                ("Endpoints", &endpoints),
                ("Devices", &devices),
            ] {
                let _ = writeln!(out, "  {title}: {}", list.len());
                for item in list {
                    let _ = writeln!(out, "    {}", clean(item));
                }
            }
            out
        };
        ask.show(data, text)
    }

    fn ari_set_debug(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("app").to_owned();
        let on = ask.choice() == Some("on");
        if on && self.site.shard.core.borrow().stasis.app(&name).is_none() {
            return Said::failed(format!("No such application '{}'\n", clean(&name)));
        }
        let mut sight = self.site.ari.borrow_mut();
        match on {
            true => sight.debug.insert(name.clone()),
            false => sight.debug.remove(&name),
        };
        let state = if on { "on" } else { "off" };
        Said::done(format!("Debugging on '{}' {state}\n", clean(&name)))
    }
}

/// An empty id stands for all.
fn or_all(id: &str) -> String {
    if id.is_empty() { "(all)".to_owned() } else { id.to_owned() }
}
