//! `dialplan save`: a loaded dialplan as the text of `extensions.conf`.

use std::fmt::Write as _;

use crate::program::{CallerMatch, Context, Extension, Program};

/// A line of the file; a semicolon in a value would begin a comment.
fn line(out: &mut String, name: &str, arrow: &str, value: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{name} {arrow} {}", value.replace(';', "\\;"));
}

fn yes_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

fn extension(extension: &Extension, own: &impl Fn(&str) -> bool, out: &mut String) {
    let name = match &extension.caller {
        CallerMatch::Any => extension.name.to_string(),
        CallerMatch::Absent => format!("{}/", extension.name),
        CallerMatch::Number { text, .. } => format!("{}/{text}", extension.name),
    };
    if let Some(hint) = extension.hint.as_ref().filter(|hint| own(&hint.place.file)) {
        let presence = if hint.presence.is_empty() { String::new() } else { format!(",{}", hint.presence) };
        line(out, "exten", "=>", &format!("{name},hint,{}{presence}", hint.devices));
    }
    for step in extension.steps.iter().filter(|step| own(&step.place.file)) {
        let label = step.label.as_ref().map_or_else(String::new, |label| format!("({label})"));
        line(out, "exten", "=>", &format!("{name},{}{label},{}({})", step.priority, step.name, step.args));
    }
}

fn context(context: &Context, own: &impl Fn(&str) -> bool, out: &mut String) {
    let mut lines = String::new();
    if context.autohints {
        line(&mut lines, "autohints", "=", "yes");
    }
    context.extensions.iter().for_each(|known| extension(known, own, &mut lines));
    context.includes.iter().for_each(|include| line(&mut lines, "include", "=>", &include.text));
    for switch in &context.switches {
        let name = if switch.late { "eswitch" } else { "switch" };
        line(&mut lines, name, "=>", &format!("{}/{}", switch.engine, switch.data));
    }
    context.ignorepats.iter().for_each(|pattern| line(&mut lines, "ignorepat", "=>", pattern));
    // What only others fill is theirs.
    if !lines.is_empty() || own(&context.place.file) {
        let _ = write!(out, "\n[{}]\n{lines}", context.name);
    }
}

impl Program {
    /// The dialplan as `extensions.conf` would say it, without comments and templates: loading it gives the same contexts,
    /// extensions and steps. Steps whose file `own` does not take are left out: other files make those.
    pub fn to_file(&self, own: impl Fn(&str) -> bool) -> String {
        let general = self.general();
        let mut out = String::from(
            "; Written by dialplan save; comments of the file before it are gone.\n\n[general]\n",
        );
        for (name, value) in [
            ("static", general.static_config),
            ("writeprotect", general.writeprotect),
            ("autofallthrough", general.autofallthrough),
            ("clearglobalvars", general.clearglobalvars),
        ] {
            line(&mut out, name, "=", yes_no(value));
        }
        out.push_str("\n[globals]\n");
        for (name, value) in self.globals() {
            line(&mut out, &name.name, "=", value);
        }
        self.contexts().iter().for_each(|known| context(known, &own, &mut out));
        out
    }
}

#[cfg(test)]
mod tests {
    use crate::load::tests::load_text;
    use crate::registered::Registered;

    /// The listing without the places of its lines.
    fn listing(text: &str) -> Vec<String> {
        let (program, findings) = load_text(text);
        assert!(findings.is_empty(), "{findings:?}");
        let shown = program.show(None, None, &Registered::default()).unwrap();
        shown
            .lines()
            .map(|line| line.split(" [extensions").next().unwrap_or_default().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn what_is_saved_loads_as_what_was_there() {
        let text = "[general]\nstatic=yes\nwriteprotect=no\nclearglobalvars=yes\n[globals]\nTRUNK=PJSIP/a\\;b\n\
            [a]\nexten => 100,1(top),NoOp(x\\;y, \"z\")\nsame => n,GotoIf($[1 > 2]?top)\nsame => n(end),Dial(${TRUNK}&SIP/b,,U(c^d))\n\
            exten => 100,hint,PJSIP/a&Custom:b,CustomPresence:c\nexten => _1XX/5X,1,Answer()\nexten => _[2-4]./,1,Hangup\n\
            include => b,9:00-17:00,mon-fri,*,*\nswitch => IAX2/peer/x\neswitch => Realtime/${CONTEXT}@x\nignorepat => 9\n\
            [b]\nautohints=yes\nexten => s,1,NoOp()\n[empty]\n";
        let (program, _) = load_text(text);
        let saved = program.to_file(|_| true);
        assert_eq!(listing(&saved), listing(text), "{saved}");
        let (again, _) = load_text(&saved);
        assert_eq!(again.general(), program.general());
        let globals = |program: &crate::Program| -> Vec<(String, String)> {
            program.globals().map(|(name, value)| (name.name.to_string(), value.to_owned())).collect()
        };
        assert_eq!(globals(&again), globals(&program));
        assert_eq!(again.to_file(|_| true), saved, "saving twice changes nothing");
    }

    #[test]
    fn what_other_files_make_is_not_saved() {
        let (program, _) = load_text("[a]\nexten => 1,1,NoOp()\n[b]\nexten => 2,1,NoOp()\n");
        let saved = program.to_file(|_| false);
        assert!(!saved.contains("exten") && !saved.contains("[a]"), "{saved}");
    }
}
