//! Configuration files through the protocol.

use super::*;
use crate::site::Wish;

const FILE: &str = "; phones\n[base](!)\ncontext = inside\n\n; Alice\n[100](base)\nsecret = a;b ; spoken once\nallow => ulaw\nallow => alaw\n";

fn desk(name: &str) -> Desk {
    let mut desk = Desk::new(name);
    std::fs::write(desk.folder.join("phones.conf"), FILE).unwrap();
    std::fs::write(desk.folder.join("more.conf"), "#include \"phones.conf\"\n[200]\nname = x\n").unwrap();
    desk.login(1, "all");
    desk
}

#[test]
fn files_are_shown_as_the_reader_sees_them() {
    let mut desk = desk("config-read");
    assert_eq!(
        desk.act(1, "GetConfig|ActionID: 1|Filename: phones.conf|Category: 100"),
        "Response: Success\r\nActionID: 1\r\nCategory-000000: 100\r\nTemplates-000000: base\r\n\
         Line-000000-000000: context=inside\r\nLine-000000-000001: secret=a\r\nLine-000000-000002: allow=ulaw\r\n\
         Line-000000-000003: allow=alaw\r\n\r\n"
    );
    let text = desk.act(1, "GetConfig|Filename: more.conf");
    assert!(
        !text.contains("base\r\nIsTemplate"),
        "templates are not shown unless they are asked for: {text}"
    );
    for (filter, lines) in [
        ("", &["Category-000000: 100", "Category-000001: 200", "Line-000001-000000: name=x"][..]),
        (
            "|Filter: TEMPLATES=include",
            &["Category-000000: base", "IsTemplate-000000: 1", "Category-000002: 200"],
        ),
        ("|Filter: TEMPLATES=restrict", &["Category-000000: base", "Line-000000-000000: context=inside"]),
    ] {
        let text = desk.act(1, &format!("GetConfig|Filename: more.conf{filter}"));
        for line in lines {
            assert!(text.contains(&format!("{line}\r\n")), "{line}: {text}");
        }
    }
    for (act, told) in [
        ("GetConfig|Filename: phones.conf|Category: nothing", "No categories found"),
        ("ListCategories|Filename: phones.conf|Match: name=nobody", "Error: no categories found"),
    ] {
        assert_eq!(desk.act(1, act), format!("Response: Success\r\n{told}\r\n\r\n"), "{act}");
    }
    let text = desk.act(1, "GetConfig|Filename: more.conf|Filter: allow=^al");
    assert!(text.contains("Category-000000: 100\r\n") && !text.contains("Category-000001"), "{text}");
    assert_eq!(
        desk.act(1, "ListCategories|Filename: phones.conf"),
        "Response: Success\r\nCategory-000000: 100\r\n\r\n"
    );
    let text = desk.act(1, "GetConfigJSON|Filename: phones.conf|Filter: TEMPLATES=include");
    assert_eq!(
        field(&messages(&text)[0], "JSON").unwrap(),
        r#"{"base":{"istemplate":1,"context":"inside"},"100":{"templates":"base","context":"inside","secret":"a","allow":"ulaw","allow":"alaw"}}"#
    );
}

/// What stands below the head that a manager writes.
fn below_head(text: &str) -> String {
    let head: Vec<&str> = text.lines().take_while(|line| line.starts_with(";!")).collect();
    assert_eq!(head.len(), 6, "{text}");
    assert!(head[2].starts_with(";! Filename: ") && head[3] == ";! Generator: Manager", "{text}");
    text.lines().skip(head.len()).fold(String::new(), |text, line| text + line + "\n")
}

#[test]
fn sections_keep_what_they_inherit_unless_it_is_not_to_be_preserved() {
    const TWO: &str = "[t](!)\ncodec = ulaw\n[a](t)\ncodec = alaw\n[b](t)\nname = x\n";
    const UPDATE: &str = "UpdateConfig|SrcFilename: two.conf|DstFilename: two.conf|Action-000000: Update|Cat-000000: t|Var-000000: codec|\
                          Value-000000: alaw|Options-000000: catfilter=\"TEMPLATES=include\"";
    for (rest, expected) in [
        ("", "[t](!)\ncodec = alaw\n[a](t)\ncodec = alaw\n[b](t)\ncodec = ulaw\nname = x\n"),
        ("|PreserveEffectiveContext: no", "[t](!)\ncodec = alaw\n[a](t)\n[b](t)\nname = x\n"),
    ] {
        let mut desk = desk("config-preserve");
        std::fs::write(desk.folder.join("two.conf"), TWO).unwrap();
        assert_eq!(desk.act(1, &format!("{UPDATE}{rest}")), "Response: Success\r\n\r\n", "{rest}");
        let written = std::fs::read_to_string(desk.folder.join("two.conf")).unwrap();
        assert_eq!(below_head(&written), expected, "{rest}");
    }
}

#[test]
fn errors_that_are_to_be_ignored_are_none() {
    let mut desk = desk("config-ignore");
    for change in
        ["NewCat|Cat-000000: 100", "DelCat|Cat-000000: none", "Delete|Cat-000000: 100|Var-000000: none"]
    {
        let act = format!(
            "UpdateConfig|SrcFilename: phones.conf|DstFilename: phones.conf|Action-000000: {change}|Options-000000: ignoreerror"
        );
        assert_eq!(desk.act(1, &act), "Response: Success\r\n\r\n", "{change}");
    }
}

#[test]
fn every_change_of_update_config_is_made_and_comments_stay() {
    let mut desk = desk("config-write");
    let answer = desk.act(
        1,
        "UpdateConfig|ActionID: 7|SrcFilename: phones.conf|DstFilename: phones.conf|Reload: yes\
         |Action-000000: NewCat|Cat-000000: 300|Options-000000: inherit=\"base\"\
         |Action-000001: Append|Cat-000001: 300|Var-000001: allow|Value-000001: >gsm\
         |Action-000002: Update|Cat-000002: 100|Var-000002: allow|Value-000002: g722|Match-000002: alaw\
         |Action-000003: Delete|Cat-000003: 100|Var-000003: allow|Match-000003: ulaw\
         |Action-000004: Insert|Cat-000004: 100|Var-000004: type|Value-000004: friend|Line-000004: 0\
         |Action-000005: RenameCat|Cat-000005: 300|Value-000005: 301\
         |Action-000006: Update|Cat-000006: base|Var-000006: context|Value-000006: outside\
         |Options-000006: catfilter=\"TEMPLATES=restrict\"",
    );
    assert_eq!(answer, "Response: Success\r\nActionID: 7\r\n\r\n");
    let written = std::fs::read_to_string(desk.folder.join("phones.conf")).unwrap();
    assert_eq!(
        below_head(&written),
        "; phones\n[base](!)\ncontext = outside\n\n; Alice\n[100](base)\ncontext = inside\ntype = friend\nsecret = a;b ; spoken once\n\
         allow => g722\n\n[301](base)\nallow => gsm\n"
    );
    assert_eq!(*desk.site().wishes.borrow(), [Wish::Reload { module: String::new() }]);
    assert!(desk.act(1, "CreateConfig|Filename: copy.conf").starts_with("Response: Success"));
    let answer = desk.act(
        1,
        "UpdateConfig|SrcFilename: phones.conf|DstFilename: copy.conf\
         |Action-000000: EmptyCat|Cat-000000: 100|Action-000001: DelCat|Cat-000001: 301",
    );
    assert_eq!(answer, "Response: Success\r\n\r\n");
    let copy = std::fs::read_to_string(desk.folder.join("copy.conf")).unwrap();
    assert_eq!(
        below_head(&copy),
        "; phones\n[base](!)\ncontext = outside\n\n; Alice\n[100](base)\ncontext = outside\n\n"
    );
    assert_eq!(
        std::fs::read_to_string(desk.folder.join("phones.conf")).unwrap(),
        written,
        "the source stays"
    );
    assert_eq!(
        desk.act(1, "CreateConfig|Filename: new.conf"),
        "Response: Success\r\nMessage: New configuration file created successfully\r\n\r\n"
    );
    assert_eq!(std::fs::read(desk.folder.join("new.conf")).unwrap(), b"");
}

#[test]
fn one_change_that_cannot_be_made_leaves_the_file_as_it_was() {
    let mut desk = desk("config-refuse");
    let change = |rest: &str| {
        format!(
            "UpdateConfig|SrcFilename: phones.conf|DstFilename: phones.conf\
             |Action-000000: Append|Cat-000000: 100|Var-000000: x|Value-000000: y|{rest}"
        )
    };
    for (act, message) in [
        (change("Action-000001: Dance|Cat-000001: 100"), "Unknown action command"),
        (
            change("Action-000001: Append|Cat-000001: 999|Var-000001: a|Value-000001: b"),
            "Given category does not exist",
        ),
        (change("Action-000001: Append|Var-000001: a"), "Category not specified"),
        (
            change("Action-000001: Append|Cat-000001: 100"),
            "Problem with category, value, or line (if required)",
        ),
        (
            change("Action-000001: Append|Cat-000001: 100|Var-000001: #exec id|Value-000001: b"),
            "Problem with category, value, or line (if required)",
        ),
        (
            change("Action-000001: Update|Cat-000001: 100|Var-000001: q"),
            "Update did not complete successfully",
        ),
        (
            change("Action-000001: Delete|Cat-000001: 100|Var-000001: q"),
            "Delete did not complete successfully",
        ),
        (change("Action-000001: NewCat|Cat-000001: 100"), "Create category did not complete successfully"),
        (
            change("Action-000001: NewCat|Cat-000001: a|Options-000001: inherit=\"none\""),
            "Template category not found",
        ),
        ("GetConfig|Filename: nothing.conf".to_owned(), "Config file not found"),
        ("GetConfig|Filename: ../phones.conf".to_owned(), "File requires escalated privileges"),
        ("GetConfigJSON|Filename: /etc/passwd".to_owned(), "File requires escalated privileges"),
        ("ListCategories|Filename: /etc/hostname".to_owned(), "File requires escalated privileges"),
        ("CreateConfig|Filename: ../x.conf".to_owned(), "File requires escalated privileges"),
        ("CreateConfig|Filename: phones.conf".to_owned(), "File exists"),
        (
            "UpdateConfig|SrcFilename: nothing.conf|DstFilename: phones.conf".to_owned(),
            "File requires escalated privileges",
        ),
        (
            "UpdateConfig|SrcFilename: phones.conf|DstFilename: ../x.conf".to_owned(),
            "File requires escalated privileges",
        ),
    ] {
        assert_eq!(desk.act(1, &act), error(message), "{act}");
    }
    assert_eq!(std::fs::read_to_string(desk.folder.join("phones.conf")).unwrap(), FILE);
    let beyond = desk.folder.parent().unwrap().join("x.conf");
    assert!(!beyond.exists(), "{}", beyond.display());
}
