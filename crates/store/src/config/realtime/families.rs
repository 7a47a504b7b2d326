//! Families whose rows stand beside the sections of a file: `musiconhold`, `acls`, `voicemail`, `queues` and what belongs to
//! them.
//!
//! Rows become sections of the file, so that its reader is the only one. What the file itself says goes first: a row with
//! the name of one of its sections, or of one of its mailboxes, is passed over. Columns that are no option, and those that
//! are NULL or empty, say nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use conf::{File, Place, Section, Variable};
use queue::{NewMember, QueueConfig, Skills};

use crate::config::Object as _;
use crate::config::followme::FollowMeProfile;
use crate::config::music::MusicClass;
use crate::config::queues::{QueueSection, QueuesGeneral, queue_of};
use crate::config::voicemail::VoicemailBox;

/// The families, and the columns by which rows are ordered.
pub const FAMILIES: [(&str, &[&str]); 9] = [
    ("acls", &["name"]),
    ("followme", &["name"]),
    ("followme_numbers", &["name", "ordinal"]),
    ("musiconhold", &["name"]),
    ("musiconhold_entry", &["name", "position"]),
    ("voicemail", &["context", "mailbox"]),
    ("queues", &["name"]),
    ("queue_members", &["queue_name", "interface"]),
    ("queue_rules", &["rule_name"]),
];

/// A row: names and values of the columns that hold something.
pub type FamilyRow = Vec<(String, String)>;

/// What databases have of these families.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FamilyRows(BTreeMap<String, Vec<FamilyRow>>);

/// The value of a column; an empty one is none.
fn get<'a>(row: &'a FamilyRow, column: &str) -> Option<&'a str> {
    let found = row.iter().find(|(name, _)| name.eq_ignore_ascii_case(column));
    found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

/// A name that can be that of a section.
fn named<'a>(row: &'a FamilyRow, column: &str) -> Option<&'a str> {
    get(row, column).filter(|name| !name.chars().any(|symbol| symbol.is_control() || "[];".contains(symbol)))
}

/// A line of a row. The first line of a file is 1, so that 0 is a row's.
fn line(family: &str, of: &str, name: &str, value: &str) -> Variable {
    let value: String = value.chars().filter(|symbol| !symbol.is_control()).collect();
    let place = Place::new(format!("{family}/{of}"), 0);
    Variable { name: name.into(), value: value.into(), object: false, place, inherited: false }
}

fn section(family: &str, name: &str, variables: Vec<Variable>) -> Section {
    let place = Place::new(format!("{family}/{name}"), 0);
    Section { name: name.into(), template: false, place, parents: Vec::new(), variables }
}

/// Whether a section or a line is of a row, not of a file.
pub(crate) fn is_row(place: &Place) -> bool {
    place.line == 0
}

/// The options that a row's columns say; `_` in a column is `-` in an option.
fn options(family: &str, name: &str, row: &FamilyRow, known: &[&'static str]) -> Vec<Variable> {
    let option = |(column, value): &(String, String)| {
        if value.trim().is_empty() {
            return None;
        }
        let is = |option: &&&str| {
            option.eq_ignore_ascii_case(column) || option.replace('-', "_").eq_ignore_ascii_case(column)
        };
        known.iter().find(is).map(|option| line(family, name, option, value))
    };
    row.iter().filter_map(option).collect()
}

impl FamilyRows {
    /// Takes the rows of a family; whether they are others than before.
    pub fn take(&mut self, family: &str, rows: Vec<FamilyRow>) -> bool {
        if self.rows(family) == rows {
            return false;
        }
        self.0.insert(family.to_owned(), rows);
        true
    }
    /// Changes rows as a database has: those whose columns `keys` say, in the columns of `sets` that they have.
    pub fn change(&mut self, family: &str, keys: &[(String, String)], sets: &[(String, String)]) {
        let rows = self.0.get_mut(family).into_iter().flatten();
        let is_meant = |row: &&mut FamilyRow| {
            let holds = |(column, value): &(String, String)| {
                row.iter().any(|(name, known)| name.eq_ignore_ascii_case(column) && known == value)
            };
            keys.iter().all(holds)
        };
        for row in rows.filter(is_meant) {
            for (column, value) in sets {
                let of = row.iter_mut().filter(|(name, _)| name.eq_ignore_ascii_case(column));
                of.for_each(|(_, known)| known.clone_from(value));
            }
        }
    }
    /// Forgets families that lie in no database any more; whether there were any.
    pub fn retain(&mut self, lies: impl Fn(&str) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|family, _| lies(family));
        before != self.0.len()
    }
    fn rows(&self, family: &str) -> &[FamilyRow] {
        self.0.get(family).map_or(&[], Vec::as_slice)
    }
    /// Adds to a file what rows have of it. `None` stays where there is neither.
    pub(crate) fn complete(&self, name: &str, file: Option<File>) -> Option<File> {
        let more = match name {
            "acl.conf" => self.acls(),
            "followme.conf" => self.follow_me(),
            "musiconhold.conf" => self.music(),
            "queues.conf" => self.queues(),
            "queuerules.conf" => self.queue_rules(),
            "voicemail.conf" => {
                let mailboxes = self.mailboxes();
                return match (file, mailboxes.is_empty()) {
                    (file, true) => file,
                    (file, false) => Some(with_mailboxes(file.unwrap_or_else(|| nameless(name)), mailboxes)),
                };
            }
            _ => return file,
        };
        if more.is_empty() {
            return file;
        }
        let mut file = file.unwrap_or_else(|| nameless(name));
        let own: BTreeSet<String> =
            file.sections.iter().map(|section| section.name.to_ascii_lowercase()).collect();
        file.sections
            .extend(more.into_iter().filter(|section| !own.contains(&section.name.to_ascii_lowercase())));
        Some(file)
    }
    /// Named lists: a row for each rule, in the order of `rule_order`, else as they come.
    fn acls(&self) -> Vec<Section> {
        let mut rules: Vec<(&str, i64, Variable)> = Vec::new();
        for row in self.rows("acls") {
            let (Some(name), Some(rule)) =
                (named(row, "name"), get(row, "rule").or_else(|| get(row, "prefix")))
            else {
                continue;
            };
            let order = get(row, "rule_order").and_then(|order| order.parse().ok()).unwrap_or(0);
            let sense = get(row, "sense").unwrap_or("deny").to_ascii_lowercase();
            // Whatever is neither is told by the reader, and its list lets nobody in.
            rules.push((name, order, line("acls", name, &sense, rule)));
        }
        rules.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        let mut sections: Vec<Section> = Vec::new();
        for (name, _, rule) in rules {
            match sections.last_mut().filter(|section| &*section.name == name) {
                Some(section) => section.variables.push(rule),
                None => sections.push(section("acls", name, vec![rule])),
            }
        }
        sections
    }
    /// Profiles, and their numbers by `ordinal`. Numbers of one place are called at once.
    fn follow_me(&self) -> Vec<Section> {
        let known: Vec<_> = FollowMeProfile::names();
        let profile = |row: &FamilyRow| {
            let name = named(row, "name")?;
            let mut lines = options("followme", name, row, &known);
            let mut numbers: BTreeMap<u32, (Vec<&str>, &str)> = BTreeMap::new();
            for entry in self.rows("followme_numbers").iter().filter(|entry| get(entry, "name") == Some(name))
            {
                let place = get(entry, "ordinal").and_then(|place| place.parse().ok());
                let (Some(place), Some(number)) = (place, get(entry, "phonenumber")) else { continue };
                let step =
                    numbers.entry(place).or_insert((Vec::new(), get(entry, "timeout").unwrap_or_default()));
                step.0.push(number);
            }
            lines.extend(numbers.into_values().map(|(numbers, timeout)| {
                line("followme_numbers", name, "number", &format!("{},{timeout}", numbers.join("&")))
            }));
            Some(section("followme", name, lines))
        };
        self.rows("followme").iter().filter_map(profile).collect()
    }
    fn music(&self) -> Vec<Section> {
        let known = MusicClass::names();
        let class = |row: &FamilyRow| {
            let name = named(row, "name")?;
            let mut lines = options("musiconhold", name, row, &known);
            let mut entries: Vec<(i64, &str)> = self
                .rows("musiconhold_entry")
                .iter()
                .filter(|entry| get(entry, "name") == Some(name))
                .filter_map(|entry| Some((get(entry, "position")?.parse().ok()?, get(entry, "entry")?)))
                .collect();
            entries.sort_unstable();
            lines.extend(
                entries.into_iter().map(|(_, entry)| line("musiconhold_entry", name, "entry", entry)),
            );
            Some(section("musiconhold", name, lines))
        };
        self.rows("musiconhold").iter().filter_map(class).collect()
    }
    fn queues(&self) -> Vec<Section> {
        let queue = |row: &FamilyRow| Some(queue_section(named(row, "name")?, row));
        self.rows("queues").iter().filter_map(queue).collect()
    }
    fn queue_rules(&self) -> Vec<Section> {
        let mut sections: BTreeMap<&str, Vec<Variable>> = BTreeMap::new();
        for row in self.rows("queue_rules") {
            let (Some(name), Some(time)) = (named(row, "rule_name"), get(row, "time")) else { continue };
            let part = |column| get(row, column).unwrap_or_default();
            let change =
                format!("{time},{},{},{}", part("max_penalty"), part("min_penalty"), part("raise_penalty"));
            sections.entry(name).or_default().push(line("queue_rules", name, "penaltychange", &change));
        }
        sections.into_iter().map(|(name, lines)| section("queue_rules", name, lines)).collect()
    }
    /// Members of queues: the queue's name, and the member.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, NewMember)> {
        self.rows("queue_members")
            .iter()
            .filter_map(|row| Some((get(row, "queue_name")?, member_of_row(row)?)))
    }
    /// Mailboxes by their contexts, as lines.
    fn mailboxes(&self) -> BTreeMap<&str, Vec<Variable>> {
        let known = VoicemailBox::names();
        let mut contexts: BTreeMap<&str, Vec<Variable>> = BTreeMap::new();
        for row in self.rows("voicemail") {
            let Some(mailbox) = named(row, "mailbox") else { continue };
            let context = named(row, "context").unwrap_or("default");
            let part = |column| get(row, column).unwrap_or_default().replace(',', " ");
            let own = options("voicemail", mailbox, row, &known);
            let own: Vec<String> = own
                .iter()
                .map(|option| format!("{}={}", option.name, option.value.replace('|', " ")))
                .collect();
            let head = ["password", "fullname", "email", "pager"].map(part).join(",");
            let text = format!("{head},{}", own.join("|"));
            contexts.entry(context).or_default().push(line("voicemail", mailbox, mailbox, &text));
        }
        contexts
    }
}

fn nameless(name: &str) -> File {
    File { files: vec![Arc::from(name)], ..File::default() }
}

/// Mailboxes go into the section of their context, but for those that it has.
fn with_mailboxes(mut file: File, contexts: BTreeMap<&str, Vec<Variable>>) -> File {
    for (context, mut lines) in contexts {
        let is_it = |section: &Section| !section.template && &*section.name == context;
        let own: BTreeSet<String> = file
            .sections
            .iter()
            .filter(|section| is_it(section))
            .flat_map(|section| section.variables.iter().map(|line| line.name.to_ascii_lowercase()))
            .collect();
        lines.retain(|line| !own.contains(&line.name.to_ascii_lowercase()));
        file.sections.push(section("voicemail", context, lines));
    }
    file
}

fn queue_section(name: &str, row: &FamilyRow) -> Section {
    section("queues", name, options("queues", name, row, &QueueSection::names()))
}

/// A queue of a row of `queues`, without its members; `None` for a row that says something that cannot be.
pub fn queue_of_row(
    row: &FamilyRow,
    general: &QueuesGeneral,
    findings: &mut conf::Findings,
) -> Option<QueueConfig> {
    let name = named(row, "name")?;
    queue_of(&queue_section(name, row), general, findings)
}

/// A member of a row of `queue_members`; `None` for a row without an interface.
pub fn member_of_row(row: &FamilyRow) -> Option<NewMember> {
    let number = |column| get(row, column).and_then(|value| value.parse::<u32>().ok());
    let text = |column| get(row, column).unwrap_or_default().to_owned();
    Some(NewMember {
        interface: get(row, "interface")?.to_owned(),
        name: text("membername"),
        state_interface: text("state_interface"),
        penalty: number("penalty").unwrap_or(0),
        paused: get(row, "paused").is_some_and(|value| conf::boolean(value) == Some(true)),
        paused_reason: text("reason_paused"),
        ring_in_use: get(row, "ringinuse").and_then(conf::boolean),
        wrapup: number("wrapuptime")
            .filter(|seconds| *seconds > 0)
            .map(|seconds| Duration::from_secs(seconds.into())),
        skills: Skills::parse(&text("skills")).unwrap_or_default(),
        state: None,
        row: Some(text("uniqueid")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::acl::NamedAcls;
    use crate::config::music::Music;
    use crate::config::queues::Queues;
    use crate::config::voicemail::VoicemailConf;
    use conf::Findings;

    fn rows(family: &str, rows: &[&[(&str, &str)]]) -> FamilyRows {
        let mut all = FamilyRows::default();
        add(&mut all, family, rows);
        all
    }
    fn add(all: &mut FamilyRows, family: &str, rows: &[&[(&str, &str)]]) {
        let row = |row: &&[(&str, &str)]| {
            row.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert!(all.take(family, rows.iter().map(row).collect()));
    }
    fn file(name: &str, text: &str) -> File {
        let source = conf::Memory::new().with(name, text);
        conf::load(&source, name, conf::Options::default(), &mut Findings::new()).unwrap()
    }
    fn said(findings: &Findings) -> Vec<String> {
        findings.iter().map(|finding| finding.message.clone()).collect()
    }

    #[test]
    fn rows_that_a_call_has_changed_are_known_as_they_were_changed() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let box_of = |mailbox: &'static str, password: &'static str| {
            [("context", "default"), ("mailbox", mailbox), ("password", password)]
        };
        let mut all = rows("voicemail", &[&box_of("100", "1"), &box_of("200", "2")]);
        let keys = [pair("Context", "default"), pair("mailbox", "100")];
        all.change("voicemail", &keys, &[pair("Password", "4711"), pair("unknown", "x")]);
        all.change("voicemail", &[pair("mailbox", "300")], &[pair("password", "7")]);
        all.change("musiconhold", &keys, &[pair("password", "8")]);
        assert_eq!(all, rows("voicemail", &[&box_of("100", "4711"), &box_of("200", "2")]));
    }

    #[test]
    fn rules_of_a_list_come_in_their_order_and_the_file_goes_first() {
        let all = rows(
            "acls",
            &[
                &[("name", "office"), ("rule_order", "2"), ("sense", "permit"), ("rule", "192.0.2.0/24")],
                &[("name", "office"), ("rule_order", "1"), ("sense", "deny"), ("rule", "0.0.0.0/0")],
                &[("name", "own"), ("sense", "deny"), ("prefix", "0.0.0.0/0")],
                &[("name", "bad"), ("sense", "permit"), ("prefix", "everywhere")],
            ],
        );
        let mut findings = Findings::new();
        let whole = all.complete("acl.conf", Some(file("acl.conf", "[own]\npermit=0.0.0.0/0\n"))).unwrap();
        let lists = NamedAcls::read(&whole, &mut findings);
        assert_eq!(lists.names().collect::<Vec<_>>(), ["office", "own"], "a bad rule skips its list");
        let allows = |name: &str, ip: &str| lists.get(name).unwrap().allows(ip.parse().unwrap());
        assert!(allows("office", "192.0.2.7") && !allows("office", "198.51.100.7"));
        assert!(allows("own", "198.51.100.7"), "the file's");
        assert!(said(&findings)[0].contains("everywhere"), "{findings:?}");
        assert_eq!(all.complete("acl.conf", None).unwrap().sections.len(), 3, "without a file");
        assert_eq!(all.complete("rtp.conf", None), None);
    }

    #[test]
    fn profiles_have_their_numbers_by_place_and_the_file_goes_first() {
        let mut all = rows(
            "followme",
            &[
                &[("name", "ann"), ("context", "out"), ("takecall", "4"), ("sorry_prompt", "gone")],
                &[("name", "bob"), ("context", "rowed")],
            ],
        );
        let number = |place, phone, timeout| {
            [("name", "ann"), ("ordinal", place), ("phonenumber", phone), ("timeout", timeout)]
        };
        add(
            &mut all,
            "followme_numbers",
            &[&number("20", "3", "10"), &number("5", "1&2", "15"), &number("20", "4", "30")],
        );
        let mut findings = Findings::new();
        let own = file("followme.conf", "[bob]\ncontext=filed\nnumber=>9\n");
        let whole = all.complete("followme.conf", Some(own)).unwrap();
        let profiles = crate::config::followme::FollowMe::read(&whole, &mut findings).profiles;
        let (ann, bob) = (&profiles["ann"], &profiles["bob"]);
        assert_eq!((ann.context.as_str(), ann.take, ann.prompts.sorry.as_str()), ("out", '4', "gone"));
        let steps: Vec<_> =
            ann.steps.iter().map(|step| (step.numbers.join("&"), step.timeout.as_secs())).collect();
        assert_eq!(steps, [("1&2".to_owned(), 15), ("3&4".to_owned(), 10)]);
        assert_eq!(bob.context, "filed", "the file's");
        assert_eq!(said(&findings), [""; 0]);
    }

    #[test]
    fn classes_of_music_are_folders_or_lists() {
        let mut all = rows(
            "musiconhold",
            &[
                &[
                    ("name", "jazz"),
                    ("mode", "files"),
                    ("directory", "jazz"),
                    ("sort", "alpha"),
                    ("stamp", "2020"),
                ],
                &[("name", "list"), ("mode", "playlist")],
            ],
        );
        let entry = |position, entry| [("name", "list"), ("position", position), ("entry", entry)];
        add(&mut all, "musiconhold_entry", &[&entry("2", "/b.wav"), &entry("1", "/a.wav")]);
        let mut findings = Findings::new();
        let music = Music::read(&all.complete("musiconhold.conf", None).unwrap(), &mut findings);
        assert_eq!(said(&findings), [""; 0]);
        assert_eq!(music.classes["jazz"].directory.to_str(), Some("jazz"));
        assert_eq!(music.classes["list"].entry, ["/a.wav", "/b.wav"]);
    }

    #[test]
    fn queues_have_the_columns_of_the_field_and_members_rows_of_their_own() {
        let mut all = rows(
            "queues",
            &[
                &[
                    ("name", "sales"),
                    ("strategy", "rrmemory"),
                    ("announce_frequency", "30"),
                    ("ringinuse", "0"),
                    ("tenant", "7"),
                ],
                &[("name", "filed"), ("strategy", "linear")],
            ],
        );
        let member = |queue, interface, id| {
            [
                ("queue_name", queue),
                ("interface", interface),
                ("uniqueid", id),
                ("penalty", "3"),
                ("paused", "1"),
                ("reason_paused", "lunch"),
            ]
        };
        let members = [
            member("sales", "PJSIP/1", "11"),
            member("filed", "PJSIP/2", "12"),
            member("gone", "PJSIP/3", "13"),
        ];
        add(&mut all, "queue_members", &[&members[0], &members[1], &members[2]]);
        add(
            &mut all,
            "queue_rules",
            &[&[("rule_name", "wider"), ("time", "30"), ("max_penalty", "+3"), ("min_penalty", "1")]],
        );
        let queues = all
            .complete("queues.conf", Some(file("queues.conf", "[general]\n[filed]\nstrategy=ringall\n")))
            .unwrap();
        let rules = all.complete("queuerules.conf", None).unwrap();
        let mut findings = Findings::new();
        let read = Queues::read(Some(&queues), Some(&rules), all.members(), &mut findings);
        assert_eq!(said(&findings), [""; 0]);
        let [filed, sales] = read.config.queues.as_slice() else { panic!("{:?}", read.config) };
        assert_eq!(
            (filed.name.as_str(), filed.is_row, filed.settings.strategy.name()),
            ("filed", false, "ringall")
        );
        assert_eq!(
            (sales.is_row, sales.settings.strategy.name(), sales.settings.ring_in_use),
            (true, "rrmemory", false)
        );
        assert_eq!(sales.settings.announcing.every.as_secs(), 30);
        let one = &sales.members[0];
        assert_eq!(
            (one.interface.as_str(), one.penalty, one.paused, one.paused_reason.as_str()),
            ("PJSIP/1", 3, true, "lunch")
        );
        assert_eq!((one.row.as_deref(), filed.members[0].row.as_deref()), (Some("11"), Some("12")));
        assert_eq!(read.config.rules[0].1.len(), 1);
    }

    #[test]
    fn mailboxes_are_lines_of_their_contexts() {
        let all = rows(
            "voicemail",
            &[
                &[
                    ("context", "default"),
                    ("mailbox", "100"),
                    ("password", "1234"),
                    ("fullname", "Ann, B"),
                    ("email", "a@example.com"),
                    ("deletevoicemail", "yes"),
                    ("stamp", "x"),
                ],
                &[("mailbox", "200"), ("password", "5")],
                &[("context", "away"), ("mailbox", "100"), ("password", "6")],
            ],
        );
        let mut findings = Findings::new();
        let text = "[general]\n[default]\n200 => 9,Filed\n";
        let whole = all.complete("voicemail.conf", Some(file("voicemail.conf", text))).unwrap();
        let read = VoicemailConf::read(&whole, &mut findings);
        assert_eq!(said(&findings), [""; 0]);
        let boxes: Vec<String> = read
            .voicemail
            .accounts
            .values()
            .map(|of| format!("{} {} {} {}", of.name, of.pin, of.full_name, of.is_row))
            .collect();
        assert_eq!(boxes, ["100@away 6  true", "100@default 1234 Ann  B true", "200@default 9 Filed false"]);
        let rules = &read.voicemail.accounts.values().nth(1).unwrap().rules;
        assert!(rules.delete);
    }
}
