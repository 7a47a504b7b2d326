//! `cli_aliases.conf`: commands of the console under other names.

use super::kind::Gathered;
use super::{options, read_settings};
use conf::{File, Findings};

options! {
    /// `[general]` of `cli_aliases.conf`.
    AliasesGeneral, "cli_aliases.conf", "general", IsIgnored;
    template: Gathered = "", "Sections whose lines hold: each is an alias and the command it stands for.";
    @recognised {}
}

/// Aliases of commands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Aliases {
    /// Alias and command, in file order.
    pub known: Vec<(String, String)>,
}

impl Aliases {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let general: AliasesGeneral = read_settings(file, "general", findings);
        let mut known = Vec::new();
        for template in &general.template {
            let mut sections = file.named(template).peekable();
            if sections.peek().is_none() {
                let place = general.origin.place_of("template");
                let message = format!("template={template} names no section; it holds no alias");
                findings.warning(place, message, "write the section's name as it stands between [ and ]");
            }
            let lines = sections.flat_map(|section| &section.variables);
            known.extend(lines.map(|line| (line.name.to_string(), line.value.trim().to_owned())));
        }
        known.retain(|(alias, command)| !alias.trim().is_empty() && !command.is_empty());
        Self { known }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sections_that_templates_name_hold_aliases() {
        let text = "[general]\ntemplate = friendly\ntemplate = none\n[friendly]\nhangup request=channel request hangup\n\
                    empty=\n[other]\nx=core show uptime\n";
        let mut findings = Findings::new();
        let source = conf::Memory::new().with("cli_aliases.conf", text);
        let file = conf::load(&source, "cli_aliases.conf", conf::Options::default(), &mut findings).unwrap();
        let aliases = Aliases::read(&file, &mut findings);
        assert_eq!(aliases.known, [("hangup request".to_owned(), "channel request hangup".to_owned())]);
        assert_eq!(findings.iter().filter(|found| found.message.contains("template=none")).count(), 1);
    }
}
