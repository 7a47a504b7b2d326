//! What a script is told before it says its first command.

use std::fmt::Write as _;

use crate::Call;

/// The first lines of a conversation, each `agi_name: value`, ended by an empty line.
pub(super) struct Environment<'a> {
    /// What was asked for: the script's name or the URL.
    pub(super) request: &'a str,
    /// The path of a server's URL.
    pub(super) network: Option<&'a str>,
    /// The caller's audio can be read.
    pub(super) enhanced: bool,
    /// The arguments.
    pub(super) words: &'a [String],
}

impl Environment<'_> {
    pub(super) fn block(&self, call: &Call) -> String {
        let mut out = String::new();
        if let Some(script) = self.network {
            line(&mut out, "network", "yes");
            line(&mut out, "network_script", script);
        }
        line(&mut out, "request", self.request);
        let place = call.here().location();
        let version = call.read("VERSION()");
        let thread = call.chan.id().slot + 1;
        let filled = call.chan.with(|c| {
            let known = |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
            let tech = c.name.split('/').next().unwrap_or_default();
            let from = c.redirecting.from.number();
            let rows: [(&str, String); 19] = [
                ("channel", c.name.to_string()),
                ("language", c.language.clone()),
                ("type", tech.to_owned()),
                ("uniqueid", c.uniqueid.to_string()),
                ("version", version.clone()),
                ("callerid", known(c.caller.number())),
                ("calleridname", known(c.caller.name())),
                ("callingpres", c.caller.number_presentation.code().to_string()),
                ("callingani2", c.ani2.to_string()),
                ("callington", "0".to_owned()),
                ("callingtns", "0".to_owned()),
                ("dnid", known(c.dialed.as_deref().unwrap_or_default())),
                ("rdnis", known(from)),
                ("context", place.context.clone()),
                ("extension", place.exten.clone()),
                ("priority", place.priority.to_string()),
                ("enhanced", if self.enhanced { "1.0" } else { "0.0" }.to_owned()),
                ("accountcode", c.account.clone()),
                ("threadid", thread.to_string()),
            ];
            rows.iter().for_each(|(name, value)| line(&mut out, name, value));
        });
        // A channel that is gone tells nothing of itself.
        let _ = filled;
        for (index, word) in self.words.iter().enumerate() {
            line(&mut out, &format!("arg_{}", index + 1), word);
        }
        out.push('\n');
        out
    }
}

/// A value never breaks its line: what comes from the network must not make up others.
fn line(out: &mut String, name: &str, value: &str) {
    let value: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "agi_{name}: {value}");
}
