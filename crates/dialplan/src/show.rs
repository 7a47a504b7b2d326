//! `dialplan show`: the listing in the shape that existing tools match.

use std::fmt::Write as _;

use conf::Place;

use crate::load::change::MADE_BY;
use crate::pattern::Pattern;
use crate::program::{CallerMatch, Context, Extension, Program};
use crate::registered::Registered;

/// The name of who made a line, as the field's tools expect it for lines without a source.
const REGISTRAR: &str = "pbx_config";

/// File name without its folders, and the line; the registrar for what no file has.
fn source(place: &Place) -> String {
    if place.line == 0 {
        let maker = if &*place.file == MADE_BY { REGISTRAR } else { &place.file };
        return maker.to_owned();
    }
    let file = place.file.rsplit('/').next().unwrap_or(&place.file);
    format!("{file}:{}", place.line)
}

fn line(out: &mut String, left: &str, middle: &str, source: &str) {
    let _ = writeln!(out, "  {left:<17} {middle:<45} [{source}]");
}

fn extension_lines(extension: &Extension, out: &mut String) {
    let mut left = format!("'{}' =>", extension.name);
    match &extension.caller {
        CallerMatch::Any => {}
        CallerMatch::Absent => left = format!("'{}' (CID match '') => ", extension.name),
        CallerMatch::Number { text, .. } => left = format!("'{}' (CID match '{text}') => ", extension.name),
    }
    if let Some(hint) = &extension.hint {
        let presence = if hint.presence.is_empty() { String::new() } else { format!(",{}", hint.presence) };
        line(out, &left, &format!("hint: {}{presence}", hint.devices), &source(&hint.place));
        left = String::new();
    }
    for step in &extension.steps {
        if let Some(label) = &step.label {
            if !left.is_empty() {
                line(out, &left, "", REGISTRAR);
            }
            left = format!("   [{label}]");
        }
        let middle = format!("{}. {}({})", step.priority, step.name, step.args);
        line(out, &left, &middle, &source(&step.place));
        left = String::new();
    }
}

impl Context {
    /// Appends the context as `dialplan show` prints it; `exten` limits it to what takes that number.
    pub fn show(&self, exten: Option<&str>, registered: &Registered, out: &mut String) -> (usize, usize) {
        let _ = writeln!(out, "[ Context '{}' created by '{REGISTRAR}' ]", self.name);
        let (mut extensions, mut priorities) = (0, 0);
        for extension in &self.extensions {
            let shown =
                exten.is_none_or(|exten| &*extension.name == exten || extension.pattern.fit(exten).matches());
            if !shown {
                continue;
            }
            extensions += 1;
            priorities += extension.steps.len() + usize::from(extension.hint.is_some());
            extension_lines(extension, out);
        }
        let wanted = |own: &str| exten.is_none_or(|exten| Pattern::key(own) == Pattern::key(exten));
        for (own, holder) in registered.of(&self.name).filter(|(own, _)| wanted(own)) {
            (extensions, priorities) = (extensions + 1, priorities + 1);
            line(out, &format!("'{own}' =>"), &format!("1. NoOp({})", holder.name), holder.registrar);
        }
        for include in &self.includes {
            line(out, "Include =>", &format!("'{}'", include.text), REGISTRAR);
        }
        for pattern in &self.ignorepats {
            line(out, "Ignore pattern =>", &format!("'{pattern}'"), REGISTRAR);
        }
        for switch in &self.switches {
            let text = format!("'{}/{}'", switch.engine, switch.data);
            line(out, "Alt. Switch =>", &text, REGISTRAR);
        }
        (extensions, priorities)
    }
}

impl Program {
    /// The whole listing, or that of one context, or of what takes `exten` in it (and in its includes).
    /// `Err` holds the sentence for a context or extension that is not there.
    pub fn show(
        &self,
        exten: Option<&str>,
        context: Option<&str>,
        registered: &Registered,
    ) -> Result<String, String> {
        let mut out = String::new();
        let (mut contexts, mut extensions, mut priorities) = (0usize, 0, 0);
        for candidate in self.contexts() {
            if context.is_some_and(|name| *candidate.name != *name) {
                continue;
            }
            let mut text = String::new();
            let (found, steps) = candidate.show(exten, registered, &mut text);
            if exten.is_some() && found == 0 {
                continue;
            }
            contexts += 1;
            extensions += found;
            priorities += steps;
            out.push_str(&text);
            out.push('\n');
        }
        if contexts == 0 {
            return Err(match (exten, context) {
                (Some(exten), Some(context)) if self.context_id(context).is_some() => {
                    format!("There is no existence of {exten}@{context} extension")
                }
                (_, Some(context)) => format!("There is no existence of '{context}' context"),
                (Some(exten), None) => format!("There is no existence of '{exten}' extension"),
                (None, None) => "There are no contexts".to_owned(),
            });
        }
        let plural =
            |count: usize, one: &'static str, many: &'static str| if count == 1 { one } else { many };
        let _ = writeln!(
            out,
            "-= {extensions} {} ({priorities} {}) in {contexts} {}. =-",
            plural(extensions, "extension", "extensions"),
            plural(priorities, "priority", "priorities"),
            plural(contexts, "context", "contexts"),
        );
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tests::load_text;

    #[test]
    fn listing_has_the_shape_that_tools_match() {
        let (program, _) = load_text(
            "[c]\nexten => 100,1,NoOp(hi)\nsame => n(end),Hangup()\nexten => _1X/_5X,1,Answer()\nexten => 100,hint,PJSIP/a\n\
             include => d\nignorepat => 9\nswitch => Lua/x\n[d]\n",
        );
        let mut registered = Registered::default();
        let nobody = registered.clone();
        let text = program.show(None, Some("c"), &nobody).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(
            lines,
            [
                "[ Context 'c' created by 'pbx_config' ]",
                "  '100' =>          hint: PJSIP/a                                 [extensions.conf:5]",
                "                    1. NoOp(hi)                                   [extensions.conf:2]",
                "     [end]          2. Hangup()                                   [extensions.conf:3]",
                "  '_1X' (CID match '_5X') =>  1. Answer()                                   [extensions.conf:4]",
                "  Include =>        'd'                                           [pbx_config]",
                "  Ignore pattern => '9'                                           [pbx_config]",
                "  Alt. Switch =>    'Lua/x'                                       [pbx_config]",
                "",
                "-= 2 extensions (4 priorities) in 1 context. =-",
            ]
        );
        assert_eq!(program.show(Some("100"), Some("c"), &nobody).unwrap().matches("Answer").count(), 0);
        assert!(program.show(Some("777"), Some("c"), &nobody).unwrap_err().contains("777@c"));
        assert!(program.show(None, Some("zz"), &nobody).unwrap_err().contains("'zz' context"));
        assert!(program.show(None, None, &nobody).unwrap().ends_with("in 2 contexts. =-\n"));
        registered.add("c", "6001", "PJSIP", "alice");
        let text = program.show(Some("6001"), Some("c"), &registered).unwrap();
        let line = "  '6001' =>         1. NoOp(alice)                                [PJSIP]";
        assert_eq!(text.lines().nth(1), Some(line));
        assert!(text.ends_with("-= 1 extension (1 priority) in 1 context. =-\n"));
    }
}
