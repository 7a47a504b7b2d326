//! Configuration files, read and changed by programs. Nothing outside the configuration folder is within reach, whatever
//! a client calls it; what a file includes is shown, and changed only in the file that holds it.

use conf::edit::{Choice, Document, EditError, NewSection, Templates};
use conf::{File, Findings, LoadError, Section};
use dialplan::ere::Matcher;
use store::Folder;
use store::editable::{Editable, FileError};

use super::super::table::{ActionRow, After, Done, Refusal, Turn, may, must};
use crate::site::Wish;

/// Changes that one `UpdateConfig` may make: more than its headers can name.
const CHANGES_MAX: u32 = 1_000_000;

pub(super) const ROWS: &[ActionRow] = &[
    ActionRow {
        name: "GetConfig",
        class: &["system", "config"],
        synopsis: "Shows a configuration file: Category-NNNNNN for each section and Line-NNNNNN-NNNNNN for each variable.",
        fields: &[
            must("Filename", "file in the configuration folder"),
            may("Category", "only sections of this name"),
            may(
                "Filter",
                "only sections with these variables: NAME=expression, comma separated; TEMPLATES=include or restrict",
            ),
        ],
        run: get_config,
    },
    ActionRow {
        name: "GetConfigJSON",
        class: &["system", "config"],
        synopsis: "Shows a configuration file as one JSON object.",
        fields: &[
            must("Filename", "file in the configuration folder"),
            may("Category", "only sections of this name"),
            may("Filter", "as of GetConfig"),
        ],
        run: get_config_json,
    },
    ActionRow {
        name: "ListCategories",
        class: &["config"],
        synopsis: "Lists the sections of a configuration file.",
        fields: &[
            must("Filename", "file in the configuration folder"),
            may("Match", "as Filter of GetConfig"),
        ],
        run: list_categories,
    },
    ActionRow {
        name: "CreateConfig",
        class: &["config"],
        synopsis: "Makes an empty configuration file.",
        fields: &[must("Filename", "file in the configuration folder that is not there yet")],
        run: create_config,
    },
    ActionRow {
        name: "UpdateConfig",
        class: &["config"],
        synopsis: "Changes a configuration file: all of the changes or none. Comments and what is not named stay as they are; the file is replaced in one step.",
        fields: &[
            must("SrcFilename", "file that is read"),
            must("DstFilename", "file that is written"),
            may("Reload", "yes, or the module to load again afterwards"),
            may(
                "PreserveEffectiveContext",
                "yes (default): what sections inherit is written into them, so that they keep it; no: a changed template changes those that inherit from it",
            ),
            may(
                "Action-000000",
                "NewCat, RenameCat, DelCat, EmptyCat, Update, Delete, Append or Insert; further changes are numbered on",
            ),
            may("Cat-000000", "the section"),
            may("Var-000000", "the variable"),
            may("Value-000000", "its value, a leading > for =>; the new name for RenameCat"),
            may(
                "Match-000000",
                "only the variable with this value; for NewCat the section before which it goes",
            ),
            may("Line-000000", "number of the variable in its section, from 0"),
            may(
                "Options-000000",
                "for NewCat allowdups, template, inherit=\"A,B\", ignoreerror (as for DelCat and Delete); for the others catfilter=\"NAME=expression,…\" with TEMPLATES=include or restrict",
            ),
        ],
        run: update_config,
    },
];

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Outside => "File requires escalated privileges".into(),
            FileError::Missing => "Config file not found".into(),
            FileError::Exists => "File exists".into(),
            FileError::TooLarge | FileError::Failed(_) => {
                format!("Config file cannot be used: {error}").into()
            }
        }
    }
}

impl From<EditError> for Refusal {
    fn from(error: EditError) -> Self {
        match error {
            EditError::NoSection => "Given category does not exist".into(),
            EditError::NoTemplate => "Template category not found".into(),
            EditError::Exists => "Create category did not complete successfully".into(),
            EditError::NoVariable => "Update did not complete successfully".into(),
            EditError::Unwritable => "Problem with category, value, or line (if required)".into(),
            EditError::Entangled => "The line is part of a comment block and is left alone".into(),
        }
    }
}

/// The configuration folder, when there is one.
fn folder(turn: &Turn<'_>) -> Result<(Editable, std::path::PathBuf), Refusal> {
    let snapshot = turn.site.snapshot.borrow();
    if snapshot.is_embedded() {
        return Err("There is no configuration folder: the built-in configuration runs".into());
    }
    let folder = snapshot.asterisk.directories.astetcdir.clone();
    Ok((Editable::new(&folder), folder))
}

/// The file with what it includes, as the configuration's own reader sees it.
fn read(turn: &Turn<'_>) -> Result<File, Refusal> {
    let (files, folder) = folder(turn)?;
    let path = files.path(turn.need("Filename")?)?;
    let text = path.to_str().ok_or("Config file cannot be used: its name is not UTF-8")?;
    // No command runs for a client, whatever `execincludes` says.
    let file = conf::load(&Folder::new(folder), text, conf::Options::default(), &mut Findings::new());
    file.map_err(|error| match error {
        LoadError::Missing => "Config file not found".into(),
        LoadError::Invalid => "Config file has invalid format".into(),
    })
}

/// Which sections an expression chooses: `NAME=expression,…`.
struct Wanted {
    templates: Templates,
    with: Vec<(String, Matcher)>,
}

impl Wanted {
    fn parse(text: &str) -> Result<Self, Refusal> {
        let mut wanted = Self { templates: Templates::Without, with: Vec::new() };
        for item in super::split_list(text) {
            let (name, value) = item.split_once('=').ok_or("Invalid filter")?;
            if name.eq_ignore_ascii_case("TEMPLATES") {
                wanted.templates = match value.to_ascii_lowercase().as_str() {
                    "include" => Templates::With,
                    "restrict" => Templates::Only,
                    _ => return Err("Invalid filter".into()),
                };
                continue;
            }
            let pattern = Matcher::new(value).map_err(|why| format!("Invalid filter: {why}"))?;
            wanted.with.push((name.to_owned(), pattern));
        }
        Ok(wanted)
    }
    fn takes(&self, section: &Section) -> bool {
        let kind = match self.templates {
            Templates::Without => !section.template,
            Templates::With => true,
            Templates::Only => section.template,
        };
        let has = |(name, pattern): &(String, Matcher)| section.all(name).any(|v| pattern.is_match(&v.value));
        kind && self.with.iter().all(has)
    }
}

/// The sections that an action shows.
fn sections<'a>(turn: &Turn<'_>, file: &'a File, filter: &str) -> Result<Vec<&'a Section>, Refusal> {
    let wanted = Wanted::parse(turn.get(filter).unwrap_or_default())?;
    let only = turn.get("Category");
    let is_meant = |section: &&Section| only.is_none_or(|name| name.eq_ignore_ascii_case(&section.name));
    Ok(file.sections.iter().filter(is_meant).filter(|section| wanted.takes(section)).collect())
}

/// Ends an answer with a line that is no header.
fn end_with(turn: &mut Turn<'_>, line: &str) -> Done {
    turn.out.push_str(line);
    turn.out.push_str("\r\n\r\n");
    Ok(After::Go)
}

fn get_config(turn: &mut Turn<'_>) -> Done {
    let file = read(turn)?;
    let sections = sections(turn, &file, "Filter")?;
    if sections.is_empty() {
        let _ = turn.response("Success");
        return end_with(turn, "No categories found");
    }
    let mut message = turn.response("Success");
    for (number, section) in sections.into_iter().enumerate() {
        message = message.field(&format!("Category-{number:06}"), &section.name);
        if section.template {
            message = message.field(&format!("IsTemplate-{number:06}"), 1);
        }
        if !section.parents.is_empty() {
            message = message.field(&format!("Templates-{number:06}"), section.parents.join(","));
        }
        for (line, variable) in section.variables.iter().enumerate() {
            let name = format!("Line-{number:06}-{line:06}");
            message = message.field(&name, format_args!("{}={}", variable.name, variable.value));
        }
    }
    message.end();
    Ok(After::Go)
}

fn get_config_json(turn: &mut Turn<'_>) -> Done {
    use serde_json::Value;
    let file = read(turn)?;
    let text = |text: &str| Value::from(text).to_string();
    // A name that comes again is a key that comes again, which no map would keep.
    let object = |section: &&Section| {
        let template = section.template.then(|| "\"istemplate\":1".to_owned());
        let parents = (!section.parents.is_empty())
            .then(|| format!("\"templates\":{}", text(&section.parents.join(","))));
        let variables = section.variables.iter().map(|of| format!("{}:{}", text(&of.name), text(&of.value)));
        let members: Vec<String> = template.into_iter().chain(parents).chain(variables).collect();
        format!("{}:{{{}}}", text(&section.name), members.join(","))
    };
    let all: Vec<String> = sections(turn, &file, "Filter")?.iter().map(object).collect();
    turn.response("Success").field("JSON", format_args!("{{{}}}", all.join(","))).end();
    Ok(After::Go)
}

fn list_categories(turn: &mut Turn<'_>) -> Done {
    let file = read(turn)?;
    let sections = sections(turn, &file, "Match")?;
    if sections.is_empty() {
        let _ = turn.response("Success");
        return end_with(turn, "Error: no categories found");
    }
    let names = sections.into_iter().enumerate();
    let message = names.fold(turn.response("Success"), |message, (number, section)| {
        message.field(&format!("Category-{number:06}"), &section.name)
    });
    message.end();
    Ok(After::Go)
}

fn create_config(turn: &mut Turn<'_>) -> Done {
    let (files, _) = folder(turn)?;
    files.create(turn.need("Filename")?)?;
    turn.success("New configuration file created successfully")
}

fn update_config(turn: &mut Turn<'_>) -> Done {
    let (files, folder) = folder(turn)?;
    let (from, to) = (turn.need("SrcFilename")?, turn.need("DstFilename")?);
    // Both are looked at before anything is read. What is not there is not within reach.
    if files.path(from).is_err() || files.path(to).is_err() {
        return Err(FileError::Outside.into());
    }
    let mut document = Document::parse(&files.read(from)?);
    document.note_inherited();
    for number in numbers(turn) {
        change(turn, &number, &mut document)?;
    }
    match turn.get("PreserveEffectiveContext").and_then(conf::boolean) {
        Some(false) => document.drop_inherited(),
        _ => document.keep_inherited(),
    }
    document.head(MARK, &head(turn, to, &folder.join(to)));
    files.write(to, &document.to_bytes()).map_err(|error| match error {
        FileError::Outside => Refusal::from(error),
        _ => "Save of config failed".into(),
    })?;
    match turn.get("Reload") {
        None => {}
        Some(word) => match conf::boolean(word) {
            Some(false) => {}
            Some(true) => turn.site.wish(Wish::Reload { module: String::new() }),
            None => turn.site.wish(Wish::Reload { module: word.trim_end_matches(".so").to_owned() }),
        },
    }
    turn.response("Success").end();
    Ok(After::Go)
}

/// How the lines of the head of a file begin that a manager has written.
const MARK: &str = ";!";

/// The head of a file that a manager has written.
fn head(turn: &Turn<'_>, name: &str, path: &std::path::Path) -> Vec<String> {
    let micros = turn.site.shard.core.borrow().services.wall.now_micros();
    let date = store::date::format(micros, &store::date::Zone::local(), "%a %b %e %H:%M:%S %Y");
    let lines = [
        String::new(),
        " Automatically generated configuration file".to_owned(),
        format!(" Filename: {name} ({})", path.display()),
        " Generator: Manager".to_owned(),
        format!(" Creation Date: {date}"),
        String::new(),
    ];
    lines.into_iter().map(|line| format!("{MARK}{line}")).collect()
}

/// The numbers of the changes, in their order.
fn numbers(turn: &Turn<'_>) -> Vec<String> {
    let number = |key: &str| {
        let (word, digits) = key.split_at_checked("Action-".len())?;
        let number = digits.parse::<u32>().ok().filter(|number| *number < CHANGES_MAX)?;
        word.eq_ignore_ascii_case("Action-").then(|| (number, digits.to_owned()))
    };
    let mut found: Vec<(u32, String)> = turn.action.headers().filter_map(|(key, _)| number(key)).collect();
    found.sort();
    found.dedup_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, digits)| digits).collect()
}

/// The value of an option: `inherit="a,b"`.
fn option(text: &str, name: &str) -> Option<String> {
    let items = super::split_list(text);
    let value = items.iter().filter_map(|item| item.split_once('=')).find(|(key, _)| key.trim() == name)?.1;
    Some(value.trim().trim_matches('"').to_owned())
}

fn change(turn: &Turn<'_>, number: &str, document: &mut Document) -> Result<(), Refusal> {
    let part = |name: &str| turn.get(&format!("{name}-{number}"));
    let need = |name: &str| -> Result<&str, Refusal> {
        let problem = if name == "Cat" {
            "Category not specified"
        } else {
            "Problem with category, value, or line (if required)"
        };
        part(name).ok_or_else(|| problem.into())
    };
    let options = part("Options").unwrap_or_default();
    let wanted = Wanted::parse(&option(options, "catfilter").unwrap_or_default())?;
    let conditions: Vec<_> = wanted
        .with
        .iter()
        .map(|(name, pattern)| (name.as_str(), move |value: &str| pattern.is_match(value)))
        .collect();
    let with = conditions.iter().map(|(name, is)| (*name, is as &dyn Fn(&str) -> bool)).collect();
    let choice = Choice { templates: wanted.templates, with };
    let is_object = part("Match").is_some_and(|word| word.eq_ignore_ascii_case("object"));
    let (value, object) = part("Value").map_or(("", is_object), |value| match value.strip_prefix('>') {
        Some(value) => (value.trim_start(), true),
        None => (value, is_object),
    });
    let forgives = super::split_list(options).iter().any(|flag| flag.eq_ignore_ascii_case("ignoreerror"));
    let line = match part("Line").map(str::parse::<usize>) {
        None => None,
        Some(Ok(line)) => Some(line),
        Some(Err(_)) => return Err("Problem with category, value, or line (if required)".into()),
    };
    let category = need("Cat")?;
    let action = part("Action").unwrap_or_default().to_ascii_lowercase();
    match action.as_str() {
        "newcat" => {
            let flags = super::split_list(options);
            let has = |flag: &str| flags.iter().any(|known| known.eq_ignore_ascii_case(flag));
            let inherited = option(options, "inherit").unwrap_or_default();
            let parents: Vec<&str> =
                inherited.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
            document.add_section(&NewSection {
                name: category,
                template: has("template"),
                parents: &parents,
                doubled: has("allowdups"),
                before: part("Match"),
            })
        }
        "renamecat" => document.rename_section(category, need("Value")?, &choice),
        "delcat" => document.delete_section(category, &choice),
        "emptycat" => document.empty_section(category, &choice),
        "update" => document.update(category, &choice, need("Var")?, value, part("Match")),
        "delete" => match (part("Var"), line) {
            (Some(name), line) => document.delete(category, &choice, name, part("Match"), line),
            (None, Some(line)) => document.delete_line(category, &choice, line),
            (None, None) => return Err("Problem with category, value, or line (if required)".into()),
        },
        "append" => document.add(category, &choice, (need("Var")?, value, object), None),
        "insert" => {
            need("Line")?;
            document.add(category, &choice, (need("Var")?, value, object), line)
        }
        _ => return Err("Unknown action command".into()),
    }
    .or_else(|error| match (error, action.as_str()) {
        (EditError::Exists, "newcat") | (EditError::NoSection, "delcat") if forgives => Ok(()),
        (EditError::NoVariable, "delete") if forgives => Ok(()),
        (error, _) => Err(error),
    })
    .map_err(|error| match (error, action.as_str()) {
        (EditError::NoVariable, "delete") => "Delete did not complete successfully".into(),
        (error, _) => error.into(),
    })
}
