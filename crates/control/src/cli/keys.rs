//! `features show`: what keys do during a conversation.

use std::fmt::Write as _;

use call::features::{Features, PressedBy, RunsOn};
use serde_json::{Value, json};

use super::{Ask, Cli, Row, Said, show, verb};

pub(super) const ROWS: &[Row] = &[
    show(
        "features show",
        "Shows which keys do what during a conversation.",
        "builtin [feature option default current] dynamic [name current runs_on pressed_by application arguments] \
         groups [name features [feature current]]",
        Cli::features_show,
    )
    .also(&["show features"]),
    verb("features reload", "Reads features.conf again, and everything else with it.", |cli, _| {
        cli.reload_part("features", "")
    }),
];

/// What the field calls the features, their options in `[featuremap]`, and their codes.
fn builtin(features: &Features) -> [(&'static str, &'static str, &str); 6] {
    let map = &features.map;
    [
        ("Blind Transfer", "blindxfer", &map.blind),
        ("Attended Transfer", "atxfer", &map.attended),
        ("One Touch Monitor", "automon", &map.monitor),
        ("Disconnect Call", "disconnect", &map.disconnect),
        ("Park Call", "parkcall", &map.park),
        ("One Touch MixMonitor", "automixmon", &map.mix_monitor),
    ]
}

impl Cli {
    fn features_show(&self, ask: &mut Ask<'_>) -> Said {
        let core = self.site.shard.core.borrow();
        let (features, default) = (&*core.settings.features, Features::default());
        let rows = || builtin(&default).into_iter().zip(builtin(features));
        let data = || {
            let builtin: Vec<Value> = rows()
                .map(|((feature, option, default), (.., current))| {
                    json!({ "feature": feature, "option": option, "default": default, "current": current })
                })
                .collect();
            let dynamic = features.apps.iter().map(|(name, of)| {
                let runs_on = match of.runs_on {
                    RunsOn::Own => "self",
                    RunsOn::Peer => "peer",
                };
                let pressed_by = match of.pressed_by {
                    PressedBy::Both => "both",
                    PressedBy::Caller => "caller",
                    PressedBy::Callee => "callee",
                };
                json!({
                    "name": name, "current": of.code, "runs_on": runs_on, "pressed_by": pressed_by,
                    "application": of.app, "arguments": of.args,
                })
            });
            let groups = features.groups.iter().map(|(name, members)| {
                let members = members.iter().map(|(name, code)| json!({ "feature": name, "current": code }));
                json!({ "name": name, "features": members.collect::<Vec<_>>() })
            });
            let (dynamic, groups): (Vec<_>, Vec<_>) = (dynamic.collect(), groups.collect());
            json!({ "builtin": builtin, "dynamic": dynamic, "groups": groups })
        };
        let text = || {
            let mut out = String::new();
            head(&mut out, "Builtin Feature");
            let _ =
                writeln!(out, "{:<25} {:<7} {:<7}", "Pickup", default.pickup_exten, features.pickup_exten);
            // Monitor is a thing of old systems, whose key is shown where it has one.
            let shown =
                rows().filter(|((_, option, _), (.., current))| *option != "automon" || !current.is_empty());
            for ((feature, _, default), (.., current)) in shown {
                let _ = writeln!(out, "{feature:<25} {default:<7} {current:<7}");
            }
            out.push('\n');
            head(&mut out, "Dynamic Feature");
            for (name, feature) in &features.apps {
                let _ = writeln!(out, "{name:<25} {:<7} {:<7}", "no def", feature.code);
            }
            out.push_str(if features.apps.is_empty() { "(none)\n" } else { "" });
            out.push_str("\nFeature Groups:\n---------------\n");
            for (name, members) in &features.groups {
                let _ = writeln!(out, "===> Group: {name}");
                for (name, code) in members {
                    let _ = writeln!(out, "===> --> {name} ({code})");
                }
            }
            out.push_str(if features.groups.is_empty() { "(none)\n" } else { "" });
            out
        };
        ask.show(data, text)
    }
}

fn head(out: &mut String, title: &str) {
    let _ = writeln!(out, "{title:<25} {:<7} {:<7}", "Default", "Current");
    let _ = writeln!(out, "{:<25} {:<7} {:<7}", "-".repeat(title.len()), "-------", "-------");
}
