//! The dialplan as it is changed, saved and asked on the console.

use super::*;

/// Steps of an extension, as `dialplan show` has them.
fn steps(desk: &mut Desk, place: &str) -> Vec<String> {
    let (text, _) = desk.run(&format!("dialplan show {place}"));
    let step = |line: &str| Some(line.split_once(". ")?.1.split(" [").next()?.trim().to_owned());
    text.lines().filter(|line| !line.starts_with("-=")).filter_map(step).collect()
}

#[test]
fn steps_includes_and_contexts_come_and_go() {
    let mut desk = Desk::new("plan");
    for (line, said) in [
        (
            "dialplan add extension 700,1,NoOp(a) into new",
            "Extension '700,1,NoOp(a)' added into 'new' context\n",
        ),
        (
            "dialplan add extension 700,2,Wait,5 into new",
            "Extension '700,2,Wait(5)' added into 'new' context\n",
        ),
        (
            "dialplan add extension \"700,3(end),Dial(PJSIP/a, 20)\" into new",
            "Extension '700,3(end),Dial(PJSIP/a, 20)' added into 'new' context\n",
        ),
        (
            "dialplan add extension 700,1,Answer into new replace",
            "Extension '700,1,Answer()' added into 'new' context\n",
        ),
        ("dialplan add include default into new", "Context 'default' included in 'new' context\n"),
        ("dialplan add ignorepat 9 into new", "Ignore pattern '9' added into 'new' context\n"),
    ] {
        assert_eq!(desk.text(line), said, "{line}");
    }
    assert_eq!(steps(&mut desk, "700@new"), ["Answer()", "Wait(5)", "Dial(PJSIP/a, 20)"]);
    let shown = desk.text("dialplan show new");
    assert!(shown.contains("'default'") && shown.contains("Ignore pattern"), "{shown}");
    for (line, said) in [
        (
            "dialplan add extension 700,1,NoOp() into new",
            "Extension 700@new with priority 1 already exists\n",
        ),
        ("dialplan add include default into new", "Context 'default' already included in 'new' context\n"),
        ("dialplan add ignorepat 9 into new", "Ignore pattern '9' already included in 'new' context\n"),
        ("dialplan remove include other from new", "Failed to remove 'other' include from 'new' context\n"),
        ("dialplan remove ignorepat 8 from new", "There is no ignore pattern '8' in 'new' context\n"),
        ("dialplan remove extension 701@new", "There is no such extension or priority: 701@new\n"),
        ("dialplan remove extension 700@new 9", "There is no such extension or priority: 700@new\n"),
        ("dialplan remove context none", "There is no existence of 'none' context\n"),
    ] {
        assert_eq!(desk.run(line), (format!("{said}Command '{line}' failed.\n"), 1), "{line}");
    }
    let line = "dialplan add extension 700,4,Frob() into new";
    assert_eq!(desk.run(line), ("Unknown application 'Frob'\n".to_owned(), 1));
    for wrong in [
        "dialplan add extension 700,1 into new",
        "dialplan remove extension 700",
        "dialplan remove extension 700@new x",
    ] {
        let (text, status) = desk.run(wrong);
        assert!(text.starts_with("Usage: ") && status == 1, "{wrong}: {text}");
    }
    assert_eq!(
        desk.text("dialplan remove extension 700@new 2"),
        "Extension 700@new with priority 2 removed\n"
    );
    assert_eq!(steps(&mut desk, "700@new"), ["Answer()", "Dial(PJSIP/a, 20)"]);
    desk.text("dialplan remove ignorepat 9 from new");
    desk.text("dialplan remove include default from new");
    assert_eq!(desk.text("dialplan remove extension 700@new"), "Whole extension 700@new removed\n");
    desk.text("dialplan remove context new");
    let told = "There is no existence of 'new' context\nCommand 'dialplan show new' failed.\n";
    assert_eq!(desk.run("dialplan show new"), (told.into(), 1));
}

#[test]
fn a_call_goes_on_in_a_dialplan_that_lost_another_context() {
    let mut desk = Desk::new("plan-call");
    desk.text("dialplan add extension 1,1,NoOp() into before");
    desk.text("dialplan add extension 800,1,Wait(1) into after");
    desk.text("dialplan add extension 800,2,Wait(60) into after");
    let location = Location { context: "after".into(), exten: "800".into(), priority: 1 };
    let id = desk.world.incoming("6001", "<6001>", location.clone(), &[]);
    assert!(apps::pbx::start(&desk.world.shard, id, location));
    desk.text("dialplan remove context before");
    desk.pass(5);
    let core = desk.cli.site.shard.core.borrow();
    let channel = core.get(id).expect("the call is up");
    assert_eq!((&*channel.location.context, channel.location.priority), ("after", 2));
}

#[test]
fn a_function_is_read_and_a_variable_of_a_channel_is_set() {
    let mut desk = Desk::new("plan-eval");
    desk.call("6001", "100");
    for (function, value) in [
        ("LEN(abc)", "3"),
        ("${LEN(a b)}", "3"),
        ("MATH(2+3,int)", "5"),
        ("DEVICE_STATE(Custom:lamp)", "UNKNOWN"),
    ] {
        let said = format!("Return Value: Success (0)\nResult: {value}\n");
        assert_eq!(desk.text(&format!("dialplan eval function {function}")), said, "{function}");
    }
    assert_eq!(
        desk.run("dialplan eval function NOTHING(1)"),
        ("No function by that name registered: NOTHING\n".into(), 1)
    );
    assert_eq!(desk.text("dialplan set chanvar SIM/6001-00000000 COLOUR blue"), "");
    let shown = desk.text("core show channel SIM/6001-00000000");
    assert!(shown.contains("COLOUR=blue"), "{shown}");
    assert_eq!(desk.run("dialplan set chanvar SIM/9 A 1"), ("SIM/9 is not a known channel\n".into(), 1));
}

#[test]
fn who_may_act_on_calls_alone_reaches_no_file_and_no_dialplan() {
    let mut desk = Desk::new("plan-outside");
    for line in [
        "dialplan save",
        "dialplan add extension 700,1,System(id) into new",
        "dialplan remove context default",
        "dialplan eval function SHELL(id)",
        "dialplan eval function FILE(/etc/passwd)",
        "channel originate SIM/6002 application System id",
    ] {
        let told = format!("{OUTSIDE}Command '{line}' failed.\n");
        assert_eq!(desk.run_as_caller(line), (told, 1), "{line}");
    }
    for line in
        ["dialplan eval function LEN(abc)", "channel originate SIM/6002 application Wait 1", "dialplan show"]
    {
        assert_eq!(desk.run_as_caller(line).1, 0, "{line}");
    }
}

#[test]
fn the_dialplan_is_saved_where_the_file_allows_it() {
    let mut desk = Desk::new("plan-save");
    let refused = "There is no configuration folder: the built-in configuration runs\n";
    assert_eq!(desk.run("dialplan save"), (refused.into(), 1));
    let folder = desk.folder.join("etc");
    std::fs::create_dir_all(&folder).unwrap();
    let conf = folder.join("asterisk.conf");
    std::fs::write(&conf, format!("[directories]\nastetcdir => {}\n", folder.display())).unwrap();
    std::fs::write(folder.join("extensions.conf"), "[default]\nexten => 1,1,NoOp()\n").unwrap();
    let (snapshot, _) = Snapshot::load(&Where::Site(conf)).unwrap();
    *desk.cli.site.snapshot.borrow_mut() = snapshot;
    let refused =
        "The dialplan is not saved: [general] of extensions.conf must say static=yes and writeprotect=no\n";
    assert_eq!(desk.run("dialplan save"), (refused.into(), 1), "writeprotect is on by default");
    let text = format!("[general]\nstatic=yes\nwriteprotect=no\n{DIALPLAN}");
    let (program, findings) = sim::parse_dialplan(&text, &apps::table::tables());
    assert_eq!(findings, [] as [&str; 0]);
    desk.cli.site.shard.core.borrow_mut().program = std::sync::Arc::new(program);
    desk.text("dialplan add extension 777,1,Playback(a;b) into default");
    assert!(desk.run("dialplan save ../else.conf").0.contains("outside the configuration folder"));
    let said = desk.text("dialplan save");
    assert_eq!(
        said,
        format!("Dialplan successfully saved into '{}'\n", folder.join("extensions.conf").display())
    );
    let saved = std::fs::read_to_string(folder.join("extensions.conf")).unwrap();
    assert!(saved.contains("\nexten => 777,1,Playback(a\\;b)\n"), "{saved}");
    assert!(saved.contains("\nexten => 6001,hint,Custom:lamp\n"), "{saved}");
    let (again, findings) = sim::parse_dialplan(&saved, &apps::table::tables());
    assert_eq!(findings, [] as [&str; 0]);
    assert_eq!(again.to_file(|_| true), saved);
}

#[test]
fn a_step_that_is_added_knows_the_functions_of_func_odbc() {
    let mut desk = Desk::new("plan-odbc");
    let line = "dialplan add extension 1,1,NoOp(${ODBC_LINES(1)}) into default";
    let before = desk.run(line);
    let statement = dialplan::Statement {
        read_from: vec!["db".into()].into(),
        write_to: Vec::new().into(),
        read: "SELECT 1".into(),
        write: String::new(),
        insert: String::new(),
        multirow: false,
        row_limit: None,
        escape_commas: true,
        min_args: 0,
    };
    let row = dialplan::FunctionRow {
        name: "ODBC_LINES".into(),
        syntax: "ODBC_LINES(id)".into(),
        synopsis: "Lines.".into(),
        body: dialplan::Body::Statement(std::sync::Arc::new(statement)),
        reach: dialplan::Reach::OUTSIDE,
    };
    let mut tables = apps::table::tables();
    tables.functions = std::sync::Arc::new((*tables.functions).clone().with([row]));
    let (program, _) = sim::parse_dialplan(DIALPLAN, &tables);
    desk.cli.site.shard.core.borrow_mut().program = std::sync::Arc::new(program);
    let told = format!("function ODBC_LINES() does not exist\nCommand '{line}' failed.\n");
    assert_eq!(before, (told, 1));
    assert_eq!(desk.text(line), "Extension '1,1,NoOp(${ODBC_LINES(1)})' added into 'default' context\n");
}
