//! `cli_permissions.conf`: which commands those may run who come to the control socket, by the user that the kernel says
//! they are.

use super::kind::choice;
use super::{Object as _, Row, Status, options, read_settings};
use conf::{File, Findings, Section};

options! {
    /// `[general]` of `cli_permissions.conf`.
    PermissionsGeneral, "cli_permissions.conf", "general", IsIgnored;
    default_perm: DefaultPermission = "permit", "What holds for whom no section names, and for commands that no line of theirs names.";
    @recognised {}
}

choice! {
    /// `default_perm=`.
    DefaultPermission {
        Permit | "permit" "Every command.";
        Deny | "deny" "No command.";
    }
}

/// Rows for the manual.
pub(super) fn rows() -> Vec<Row> {
    let row = |name, doc| Row {
        file: "cli_permissions.conf",
        section: "USER, or @GROUP",
        name,
        kind: "beginning of a command, or all".to_owned(),
        default: "",
        doc,
        status: Status::Supported,
    };
    let mut rows = PermissionsGeneral::rows();
    rows.push(row(
        "permit",
        "Commands that begin so are run. Of several lines that name a command the last one holds.",
    ));
    rows.push(row("deny", "Commands that begin so are not."));
    rows
}

/// Who is at the other end of the control socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Who {
    /// The user.
    pub uid: u32,
    /// The user's group.
    pub gid: u32,
}

/// Whom a section is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A user.
    User(u32),
    /// A group: all whose own group it is.
    Group(u32),
}

/// A line of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// It lets run, or it does not.
    pub permit: bool,
    /// How the command begins, in lower case and with single blanks, or `all`.
    pub command: String,
}

impl Rule {
    /// Whether it is about a command that is spelt as rules are; `*` and `[…]` stand for what they stand for in names of
    /// files.
    fn names(&self, command: &str) -> bool {
        self.is_of_all() || begins(&self.command, command)
    }
    fn is_of_all(&self) -> bool {
        self.command == "all"
    }
}

/// A section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permitted {
    /// As it is written, with the `@` of a group.
    pub name: String,
    /// Whom it is about.
    pub subject: Subject,
    /// In the order of the file.
    pub rules: Vec<Rule>,
}

/// The whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    /// What holds where nothing is written.
    pub default: bool,
    /// Everybody of whom something is written.
    pub sections: Vec<Permitted>,
}

impl Default for Permissions {
    fn default() -> Self {
        Self { default: true, sections: Vec::new() }
    }
}

/// What the system's files of accounts say.
struct Accounts {
    users: String,
    groups: String,
}

impl Accounts {
    /// What is not there names nobody.
    fn read() -> Self {
        let text = |path| std::fs::read_to_string(path).unwrap_or_default();
        Self { users: text("/etc/passwd"), groups: text("/etc/group") }
    }
    fn subject(&self, name: &str) -> Option<Subject> {
        let number = |text: &str, name: &str| {
            let of = text.lines().find_map(|line| {
                let mut fields = line.split(':');
                (fields.next() == Some(name)).then(|| fields.nth(1)).flatten()
            });
            of.unwrap_or(name).parse::<u32>().ok()
        };
        match name.strip_prefix('@') {
            Some(group) => number(&self.groups, group).map(Subject::Group),
            None => number(&self.users, name).map(Subject::User),
        }
    }
}

impl Permissions {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        Self::read_with(file, &Accounts::read(), findings)
    }
    fn read_with(file: &File, accounts: &Accounts, findings: &mut Findings) -> Self {
        let general: PermissionsGeneral = read_settings(file, "general", findings);
        let is_subject = |section: &&Section| !section.template && &*section.name != "general";
        let mut sections = Vec::new();
        for section in file.sections.iter().filter(is_subject) {
            let Some(subject) = accounts.subject(&section.name) else {
                let (kind, list) = match section.name.starts_with('@') {
                    true => ("group", "/etc/group"),
                    false => ("user", "/etc/passwd"),
                };
                let message =
                    format!("{list} knows no {kind} [{}]; the section holds for nobody", section.name);
                findings.warning(&section.place, message, "write the number in place of the name");
                continue;
            };
            sections.push(Permitted {
                name: section.name.to_string(),
                subject,
                rules: rules(section, findings),
            });
        }
        Self { default: general.default_perm == DefaultPermission::Permit, sections }
    }
    /// Whether somebody may run a command that is known by these names, the one that was typed first. What the file denies
    /// under one name is denied under all.
    pub fn allows(&self, who: Who, names: &[String]) -> bool {
        let Some(typed) = names.first() else { return false };
        let is_denied =
            |name: &String| self.rule(who, name).is_some_and(|rule| !rule.permit && !rule.is_of_all());
        self.rule(who, typed).map_or(self.default, |rule| rule.permit) && !names.iter().any(is_denied)
    }
    /// The line that decides: a user's own before those of the group.
    fn rule(&self, who: Who, command: &str) -> Option<&Rule> {
        let last = |subject| {
            let of = self.sections.iter().filter(|section| section.subject == subject);
            of.flat_map(|section| &section.rules).rfind(|rule| rule.names(command))
        };
        last(Subject::User(who.uid)).or_else(|| last(Subject::Group(who.gid)))
    }
}

fn rules(section: &Section, findings: &mut Findings) -> Vec<Rule> {
    let mut rules = Vec::new();
    for line in &section.variables {
        let words: Vec<String> = line.value.split_whitespace().map(str::to_ascii_lowercase).collect();
        let permit = match (line.is("permit"), line.is("deny")) {
            (false, false) => {
                let message =
                    format!("[{}] has no option `{}`; the line is ignored", section.name, line.name);
                findings.warning(&line.place, message, "write permit= or deny=");
                continue;
            }
            (permit, _) => permit,
        };
        if words.is_empty() {
            let message = format!("{}= names no command; the line is ignored", line.name);
            findings.warning(&line.place, message, "write the beginning of a command, or all");
            continue;
        }
        rules.push(Rule { permit, command: words.join(" ") });
    }
    rules
}

/// Whether a text begins as a pattern says, in which `*` is anything and `[a-z]` one of these.
fn begins(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut to) = (0, 0);
    // Where to go on when what followed the last star does not fit.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let Some(symbol) = pattern.get(at) else { return true };
        if *symbol == b'*' {
            at += 1;
            star = Some((at, to));
            continue;
        }
        let (fits, length) = one(pattern.get(at..).unwrap_or_default(), text.get(to).copied());
        match (fits, star) {
            (true, _) => (at, to) = (at + length, to + 1),
            (false, Some((after, from))) if from < text.len() => {
                (at, to) = (after, from + 1);
                star = Some((after, from + 1));
            }
            (false, _) => return false,
        }
    }
}

/// Whether a byte is what a pattern begins with, and how long that is.
fn one(pattern: &[u8], byte: Option<u8>) -> (bool, usize) {
    let Some(byte) = byte else { return (false, 0) };
    let end = pattern.iter().position(|symbol| *symbol == b']').filter(|end| *end > 1);
    let (Some(b'['), Some(end)) = (pattern.first(), end) else { return (pattern.first() == Some(&byte), 1) };
    let mut set = pattern.get(1..end).unwrap_or_default();
    let mut fits = false;
    while let Some((first, rest)) = set.split_first() {
        set = match rest {
            [b'-', last, rest @ ..] => {
                fits |= (*first..=*last).contains(&byte);
                rest
            }
            rest => {
                fits |= *first == byte;
                rest
            }
        };
    }
    (fits, end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: Who = Who { uid: 1001, gid: 100 };
    const BOB: Who = Who { uid: 1002, gid: 200 };
    const EVE: Who = Who { uid: 666, gid: 666 };

    fn read(text: &str) -> (Permissions, Findings) {
        let accounts = Accounts {
            users: "root:x:0:0::/root:/bin/sh\nada:x:1001:100::/:/bin/sh\nbob:x:1002:200::/:/bin/sh\n".into(),
            groups: "root:x:0:\nadm:x:200:bob\n".into(),
        };
        let mut findings = Findings::new();
        let source = conf::Memory::new().with("cli_permissions.conf", text);
        let file =
            conf::load(&source, "cli_permissions.conf", conf::Options::default(), &mut findings).unwrap();
        (Permissions::read_with(&file, &accounts, &mut findings), findings)
    }

    #[test]
    fn the_last_line_that_names_a_command_holds_and_a_users_before_a_groups() {
        let all = "[general]\ndefault_perm=permit\n[support](!)\ndeny=all\npermit=Core  Show\n\
                   [ada](support)\ndeny=core show channels\npermit=channel originate SIP/[0-9]* extension *\n\
                   [@adm]\ndeny=core stop\ndeny=dialplan*\n[bob]\npermit=dialplan show\n";
        let strict = "[general]\ndefault_perm=deny\n[1001]\npermit=all\n";
        for (name, text, who, command, allowed) in [
            ("without the file", "", EVE, "core stop now", true),
            ("named by nobody", all, EVE, "core stop now", true),
            ("all but", all, ADA, "core show uptime", true),
            ("not", all, ADA, "core stop now", false),
            ("a later line", all, ADA, "core show channels", false),
            ("of which it is the beginning", all, ADA, "core show channels count", false),
            ("a pattern", all, ADA, "channel originate sip/100 extension 5", true),
            ("not its application", all, ADA, "channel originate sip/100 application echo", false),
            ("not its technology", all, ADA, "channel originate iax2/100 extension 5", false),
            ("his group's", all, BOB, "core stop now", false),
            ("what nobody names", all, BOB, "core show uptime", true),
            ("his own before his group's", all, BOB, "dialplan show default", true),
            ("his group's beside it", all, BOB, "dialplan reload", false),
            ("by number", strict, ADA, "core stop now", true),
            ("by default", strict, EVE, "core show uptime", false),
        ] {
            let (permissions, findings) = read(text);
            assert_eq!(findings.iter().count(), 0, "{name}: {findings}");
            assert_eq!(permissions.allows(who, &[command.to_owned()]), allowed, "{name}");
        }
    }

    #[test]
    fn what_is_denied_under_one_name_is_denied_under_all() {
        let names = ["sip reload".to_owned(), "pjsip reload".to_owned()];
        for (name, text, allowed) in [
            ("its name", "[ada]\ndeny=pjsip reload\n", false),
            ("the other one", "[ada]\ndeny=sip reload\n", false),
            ("permitted as it was typed", "[ada]\ndeny=all\npermit=sip\n", true),
            ("permitted under another name", "[ada]\ndeny=all\npermit=pjsip\n", false),
        ] {
            assert_eq!(read(text).0.allows(ADA, &names), allowed, "{name}");
        }
    }

    #[test]
    fn what_holds_for_nobody_is_told() {
        for (name, text, told) in [
            ("a user", "[eve]\ndeny=all\n", "/etc/passwd knows no user [eve]"),
            ("a group", "[@ada]\ndeny=all\n", "/etc/group knows no group [@ada]"),
            ("another option", "[ada]\nallow=all\n", "has no option `allow`"),
            ("no command", "[ada]\ndeny=\n", "names no command"),
            ("no default", "[general]\ndefault_perm=maybe\n", "default_perm"),
        ] {
            let (_, findings) = read(text);
            assert!(findings.iter().any(|found| found.message.contains(told)), "{name}: {findings}");
        }
    }

    #[test]
    fn patterns_end_in_time() {
        let stars = "*a".repeat(4_000) + "b";
        assert!(!begins(&stars, &"a".repeat(4_000)));
        assert!(
            begins("a[", "a[b")
                && begins("[]x", "[]x")
                && !begins("[b-d]e", "ae")
                && begins("*[b-d]e", "xxce")
        );
    }
}
