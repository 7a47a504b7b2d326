use std::sync::Arc;

use conf::{Finding, Findings, Memory, Options};

use super::change::*;
use super::*;
use crate::find::Query;
use crate::testenv::TestEnv;

pub(crate) const APPS: &[&str] = &[
    "NoOp",
    "Set",
    "Goto",
    "GotoIf",
    "GotoIfTime",
    "Gosub",
    "GosubIf",
    "Return",
    "ExecIf",
    "ExecIfTime",
    "Exec",
    "Hangup",
    "Dial",
    "Answer",
    "Playback",
    "MSet",
    "While",
    "EndWhile",
];

fn tables() -> Tables {
    Tables { apps: Arc::new(Apps::new(APPS.iter().copied())), functions: Arc::new(Functions::standard()) }
}

pub(crate) fn load_text(text: &str) -> (Program, Vec<Finding>) {
    let tables = tables();
    let mut findings = Findings::new();
    let source = Memory::new().with("extensions.conf", text.as_bytes());
    let file = conf::load(&source, "extensions.conf", Options::default(), &mut findings).expect("readable");
    let program = load(&file, &tables, &[], None, &mut findings);
    (program, findings.iter().cloned().collect())
}

/// `exten prio[label]:App(args)@line` of every step of a context.
fn shown(program: &Program, context: &str) -> Vec<String> {
    let id = program.context_id(context).expect("context");
    let context = program.context(id).expect("context");
    let mut lines = Vec::new();
    for extension in &context.extensions {
        for step in &extension.steps {
            let label = step.label.as_deref().map(|label| format!("[{label}]")).unwrap_or_default();
            let (name, priority, line) = (&extension.name, step.priority, step.place.line);
            lines.push(format!("{name} {priority}{label}:{}({})@{line}", step.name, step.args));
        }
    }
    lines
}

fn messages(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("{finding}\n")).collect()
}

#[test]
fn section_4_priorities_count_on_and_carry_over_between_extensions() {
    let (program, findings) = load_text(
        "[c]\n\
         exten => a,1,NoOp(one)\n\
         exten => a,n(start),NoOp(two)\n\
         exten => a,n+5,NoOp(eight)\n\
         exten => b,n,NoOp(nine)\n\
         same => s,NoOp(b has nine already)\n\
         same => n(x)+1,NoOp(eleven)\n\
         exten => a,start+1,NoOp(three)\n\
         same => next,NoOp(four)\n\
         exten => sameday,1,NoOp(begins with same)\n\
         same => n,NoOp()\n",
    );
    assert_eq!(
        shown(&program, "c"),
        [
            "a 1:NoOp(one)@2",
            "a 2[start]:NoOp(two)@3",
            "a 3:NoOp(three)@8",
            "a 4:NoOp(four)@9",
            "a 8:NoOp(eight)@4",
            "b 9:NoOp(nine)@5",
            "b 11[x]:NoOp(eleven)@7",
            "sameday 1:NoOp(begins with same)@10",
            "sameday 2:NoOp()@11",
        ]
    );
    assert_eq!(findings.len(), 1, "{}", messages(&findings));
    assert!(messages(&findings).contains("extension b has priority 9 already"));
}

#[test]
fn section_4_what_is_wrong_is_a_finding_with_its_line() {
    for (line, expected) in [
        ("same => n,NoOp()", "same => before any exten"),
        ("exten => 1,n,NoOp()", "priority n before any numbered priority"),
        ("exten => 1,1,Frobnicate(x)", "application Frobnicate() does not exist"),
        ("exten => 1,1,NoOp(${FROB(x)})", "function FROB() does not exist"),
        ("exten => 1,1,Set(FROB(x)=1)", "function FROB() does not exist"),
        ("exten => 1,1,ExecIf($[1]?Frob(a):NoOp())", "application Frob() in ExecIf does not exist"),
        ("exten => 1,1,NoOp(${x)", "never closed"),
        ("exten => 1,1,NoOp(x", "the closing parenthesis is missing"),
        ("exten => 1,1", "the application is missing"),
        ("exten => 1", "the priority is missing"),
        ("exten => ,1,NoOp()", "the extension's name is missing"),
        ("exten => 1,0,NoOp()", "neither a priority from 1 nor a label"),
        ("exten => 1,nowhere,NoOp()", "neither a priority from 1 nor a label"),
        ("exten => _[12,1,NoOp()", "no closing `]`"),
        ("exten => _.,1,NoOp()", "takes the special extensions"),
        ("include => nowhere", "which does not exist"),
        ("include => c,25:00-26:00,*,*,*", "is not understood"),
        ("switch => Lua/x", "no engine answers it yet"),
        ("frob => x", "has no option frob"),
        ("exten => 1,1,Goto(nowhere,s,1)", "context [nowhere] does not exist"),
        ("exten => 1,1,GotoIf($[1]?lost)", "no extension has a label lost"),
        ("exten => 1,1,GotoIfTime(9-5,*,*,*?1)", "time `9-5` is not understood"),
    ] {
        let (_, findings) = load_text(&format!("[c]\n{line}\n"));
        let text = messages(&findings);
        assert!(text.contains(expected) && text.contains("extensions.conf:2"), "{line}: {text}");
    }
}

#[test]
fn section_4_labels_are_unique_and_duplicates_lose_to_the_first() {
    let (program, findings) = load_text(
        "[c]\nexten => 1,1(a),NoOp(1)\nsame => n(a),NoOp(2)\nexten => 1,2,NoOp(again)\nexten => 2,1(a),NoOp(other)\n",
    );
    assert_eq!(shown(&program, "c"), ["1 1[a]:NoOp(1)@2", "1 2:NoOp(2)@3", "2 1[a]:NoOp(other)@5"]);
    assert_eq!(findings.len(), 2, "{}", messages(&findings));
}

#[test]
fn section_4_contexts_merge_and_globals_substitute_in_order() {
    let (program, findings) = load_text(
        "[globals]\nA=1\nB=${A}2\n[c]\nexten => ${B},1,NoOp()\n[globals]\nC=${B}3\nA=9\n[c]\nexten => 7,1,NoOp()\n\
         include => d${A}\n[d9]\n",
    );
    assert!(findings.is_empty(), "{}", messages(&findings));
    let globals: Vec<String> =
        program.globals().map(|(name, value)| format!("{}={value}", name.name)).collect();
    assert_eq!(globals, ["A=9", "B=12", "C=123"]);
    assert_eq!(shown(&program, "c"), ["12 1:NoOp()@5", "7 1:NoOp()@10"]);
    assert!(program.context(program.context_id("c").unwrap()).unwrap().includes[0].context.is_some());
}

#[test]
fn section_4_arguments_run_from_the_first_to_the_last_parenthesis() {
    let (program, _) =
        load_text("[c]\nexten => 1,1,NoOp(a(b),c) ignored\nsame => n,NoOp\nsame => n,noop( x )\n");
    assert_eq!(shown(&program, "c"), ["1 1:NoOp(a(b),c)@2", "1 2:NoOp()@3", "1 3:noop( x )@4"]);
}

#[test]
fn section_4_hints_join_devices_and_name_a_presence_provider() {
    let (program, findings) =
        load_text("[c]\nexten => 100,hint,PJSIP/a&Custom:x,CustomPresence:y\nexten => 100,1,NoOp()\n");
    assert!(findings.is_empty(), "{}", messages(&findings));
    let env = TestEnv::new();
    let context = program.context_id("c").unwrap();
    let hint = program.hint(Query { context, exten: "100", caller: "" }, &env).unwrap();
    assert_eq!((&*hint.devices, &*hint.presence), ("PJSIP/a&Custom:x", "CustomPresence:y"));
    assert_eq!(program.hints().count(), 1);
}

#[test]
fn a_step_that_is_added_or_removed_leaves_everything_else_where_it_was() {
    let tables = tables();
    let (program, _) = load_text(
        "[a]\nexten => _1XX,1,NoOp(x)\n same => n(here),Goto(there)\n same => n(there),Hangup()\n[b]\ninclude => a\n",
    );
    let step = Addition { context: "a", exten: "200", priority: "1", app: "Goto", data: "1", replace: false };
    let names = |program: &Program, context: &str| -> Vec<String> {
        shown(program, context)
            .into_iter()
            .map(|line| line.split('@').next().unwrap_or_default().to_owned())
            .collect()
    };
    let before = names(&program, "a");
    let more = add(&program, &tables, &step).expect("it fits");
    let expected: Vec<String> = before.iter().cloned().chain(["200 1:Goto(1)".to_owned()]).collect();
    let mut found = names(&more, "a");
    found.sort_by_key(|line| line.starts_with("200"));
    assert_eq!(found, expected);
    assert_eq!(add(&more, &tables, &step).err(), Some(ChangeError::Exists));
    let replaced = add(&more, &tables, &Addition { app: "NoOp", data: "new", replace: true, ..step });
    assert!(names(&replaced.expect("it fits"), "a").contains(&"200 1:NoOp(new)".to_owned()));
    let labelled = Addition { exten: "_1XX", priority: "4(last)", ..step };
    let labelled = add(&more, &tables, &labelled).expect("it fits");
    assert!(labelled.label_id("last").is_some() && labelled.label_id("there") == program.label_id("there"));
    let elsewhere = add(&more, &tables, &Addition { context: "new", exten: "s", ..step }).expect("it fits");
    assert_eq!(names(&elsewhere, "new"), ["s 1:Goto(1)"]);
    let hint = Addition { priority: "hint", app: "PJSIP/200", data: "", ..step };
    assert_eq!(add(&more, &tables, &hint).expect("it fits").hints().count(), 1);
    for wrong in [
        Addition { exten: "_[", ..step },
        Addition { priority: "0", ..step },
        Addition { exten: " ", ..step },
    ] {
        assert!(matches!(add(&program, &tables, &wrong), Err(ChangeError::Invalid(_))), "{wrong:?}");
    }
    assert_eq!(names(&remove(&more, &tables, "a", "200", None).expect("it is there"), "a"), before);
    assert_eq!(names(&remove(&program, &tables, "a", "_1XX", Some(2)).expect("it is there"), "a").len(), 2);
    for (context, exten, priority) in [("c", "200", None), ("a", "300", None), ("a", "_1XX", Some(9))] {
        assert_eq!(
            remove(&program, &tables, context, exten, priority).err(),
            Some(ChangeError::Missing),
            "{exten}"
        );
    }
    let b = more.context_id("b").and_then(|id| more.context(id)).expect("it stays");
    assert_eq!(b.includes[0].context, more.context_id("a"));
}

#[test]
fn includes_ignore_patterns_and_contexts_come_and_go_while_calls_go_on() {
    let tables = tables();
    let (program, _) = load_text(
        "[a]\nexten => 100,1,NoOp(x)\nignorepat => 9\nignorepat => 8\n[b]\ninclude => a\n[c]\nexten => 1,1,NoOp()\n",
    );
    let included = |program: &Program, context: &str| -> Vec<String> {
        let context = program.context_id(context).and_then(|id| program.context(id)).expect("it is there");
        context.includes.iter().map(|include| include.text.to_string()).collect()
    };
    let more = add_line(&program, &tables, "b", ContextLine::Include, "c,9:00-17:00,*,*,*").expect("it fits");
    assert_eq!(included(&more, "b"), ["a", "c,9:00-17:00,*,*,*"]);
    let made = add_line(&program, &tables, "new", ContextLine::IgnorePattern, "7").expect("it fits");
    assert!(made.context_id("new").is_some());
    let less = remove_line(&more, &tables, "b", ContextLine::Include, "a").expect("it is there");
    assert_eq!(included(&less, "b"), ["c,9:00-17:00,*,*,*"]);
    let quiet = remove_line(&program, &tables, "a", ContextLine::IgnorePattern, "9").expect("it is there");
    let context = quiet.context_id("a").and_then(|id| quiet.context(id)).expect("it stays");
    assert_eq!(context.ignorepats, ["8".into()]);
    let id = quiet.context_id("a").expect("it stays");
    assert!(quiet.ignores(id, "8") && !quiet.ignores(id, "9"));
    let gone = remove_context(&program, &tables, "a").expect("it is there");
    assert!(gone.context_id("a").is_none());
    let c = gone.context_id("c").and_then(|id| gone.context(id)).expect("it stays");
    assert_eq!(&*c.name, "c");
    let b = gone.context_id("b").and_then(|id| gone.context(id)).expect("it stays");
    assert_eq!(b.includes.first().and_then(|include| include.context), None, "what it included is gone");
    for (context, line, text, why) in [
        ("b", ContextLine::Include, "a", ChangeError::Exists),
        ("a", ContextLine::IgnorePattern, "9", ChangeError::Exists),
    ] {
        assert_eq!(add_line(&program, &tables, context, line, text).err(), Some(why), "{context} {text}");
    }
    for (context, line, text) in [
        ("b", ContextLine::Include, "c"),
        ("a", ContextLine::IgnorePattern, "1"),
        ("none", ContextLine::Include, "a"),
    ] {
        let missing = Some(ChangeError::Missing);
        assert_eq!(remove_line(&program, &tables, context, line, text).err(), missing, "{context} {text}");
    }
    assert!(matches!(
        add_line(&program, &tables, "b", ContextLine::Include, "c,99:99"),
        Err(ChangeError::Invalid(_))
    ));
    assert_eq!(remove_context(&program, &tables, "none").err(), Some(ChangeError::Missing));
}

#[test]
fn a_registered_extension_has_priority_1_and_what_is_written_for_its_number_goes_on() {
    let (tables, mut findings) = (tables(), Findings::new());
    let text = "[phones]\ninclude => reg\ninclude => made\n[reg]\nexten => _6XXX,1,Hangup()\nexten => _6XXX,2,Dial(PJSIP/${EXTEN})\n\
                exten => 6001,1,Answer()\n";
    let source = Memory::new().with("extensions.conf", text.as_bytes());
    let file = conf::load(&source, "extensions.conf", Options::default(), &mut findings).unwrap();
    let program = load(&file, &tables, &["reg", "made"], None, &mut findings);
    assert!(findings.iter().next().is_none(), "the context that is not written is made: {findings:?}");
    let mut env = TestEnv::with(program);
    let program = env.program.clone();
    let steps = |env: &TestEnv, context: &str, exten: &str| -> Vec<String> {
        let context = program.context_id(context).unwrap();
        let route = program.route(Query { context, exten, caller: "" }, env);
        assert!(route.timed, "who is registered is asked at each step");
        let step = |priority| Some(program.step(program.at_priority(&route, priority)?)?.name.to_string());
        [1, 2].into_iter().map_while(step).collect()
    };
    let more = |env: &TestEnv, context: &str, exten: &str| {
        let query = Query { context: program.context_id(context).unwrap(), exten, caller: "" };
        (program.can_match(query, env), program.match_more(query, env))
    };
    assert_eq!(steps(&env, "phones", "6001"), ["Answer", "Dial"]);
    assert_eq!(steps(&env, "phones", "7001"), [""; 0]);
    assert_eq!(more(&env, "made", "70"), (false, false));
    env.registered.add("reg", "6001", "PJSIP", "6001");
    env.registered.add("made", "7001", "IAX2", "seven");
    env.registered.add("elsewhere", "8001", "IAX2", "eight");
    assert_eq!(
        steps(&env, "phones", "6001"),
        ["NoOp", "Dial"],
        "it takes the place of a step with its priority"
    );
    assert_eq!(steps(&env, "phones", "7001"), ["NoOp"]);
    assert_eq!(steps(&env, "phones", "8001"), [""; 0]);
    assert_eq!((more(&env, "made", "70"), more(&env, "made", "7001")), ((true, true), (true, false)));
    // A change by hand leaves them where they are.
    let step = Addition { context: "made", exten: "9", priority: "1", app: "NoOp", data: "", replace: false };
    let changed = Arc::new(add(&program, &tables, &step).unwrap());
    let query = Query { context: changed.context_id("made").unwrap(), exten: "7001", caller: "" };
    assert!(changed.exists(query, &env));
    env.registered.remove("made", "7001", "IAX2", "seven");
    assert!(!changed.exists(query, &env));
}

#[test]
fn ids_stay_the_same_over_a_reload() {
    let (first, _) = load_text("[c]\nexten => 1,1,NoOp(${a}${b})\n");
    let tables = Tables { apps: first.apps.clone(), functions: first.functions.clone() };
    let mut findings = Findings::new();
    let source = Memory::new().with("extensions.conf", "[c]\nexten => 1,1,NoOp(${z}${b})\n".as_bytes());
    let file = conf::load(&source, "extensions.conf", Options::default(), &mut findings).unwrap();
    let second = load(&file, &tables, &[], Some(&first), &mut findings);
    for name in ["a", "b"] {
        assert_eq!(first.symbols().lookup(name), second.symbols().lookup(name), "{name}");
    }
    assert!(second.symbols().lookup("z").is_some());
}

proptest::proptest! {
    #[test]
    fn no_configuration_panics(lines in proptest::collection::vec(
        r"(exten|same|include|ignorepat|switch) => [_0-9XNZ.!n,()\[\]{}$/+a-c:?&=-]{0,30}", 0..8)) {
        load_text(&format!("[c]\n{}\n", lines.join("\n")));
    }

    #[test]
    fn no_step_panics_and_both_ways_of_preparing_agree(
        app in "(Set|Goto|GotoIf|Gosub|GosubIf|ExecIf|NoOp)",
        args in r#"([a-c0-2,?:=(){}$\[\]"\\+]{0,16}|[01]\?|\$\[\$\{b\}=12\]\?)(NoOp\(|Set\(x=|c,a,1\(|lost)?(\$\{a\}|\$\{b\}|\$\[\$\{a\}=1\])?\)?:?(NoOp\(|2\()?[a-c0-2,?:=()"]{0,10}"#,
        a in r#"[a-c0-2,?:=()"\\]{0,4}"#,
    ) {
        let (program, _) = load_text(&format!("[c]\nexten => 1,1,{app}({args})\n"));
        let mut env = TestEnv::with(program);
        env.set("a", &a);
        env.set("b", "12");
        let program = Arc::clone(&env.program);
        let Some(context) = program.context_id("c") else { return Ok(()) };
        let Some(at) = program.find(Query { context, exten: "1", caller: "" }, 1, &env) else { return Ok(()) };
        let step = program.step(at).unwrap();
        let (mut fast, mut slow) = (crate::Scratch::default(), crate::Scratch::default());
        let fast = normal(&mut env, step.prepare(&mut TestEnv::with_vars(&program, &a), &mut fast));
        let slow = normal(&mut env, step.prepare_by_text(&mut TestEnv::with_vars(&program, &a), &mut slow));
        proptest::prop_assert_eq!(fast, slow);
    }
}

/// What a step asks for, without how it was found.
fn normal(env: &mut TestEnv, ready: crate::Ready<'_>) -> String {
    use crate::Ready::*;
    match ready {
        Set { target, value } => {
            target.assign(env, value);
            let mut set: Vec<String> =
                env.vars.iter().map(|(_, name, value)| format!("{name}={value}")).collect();
            set.sort();
            format!("set {set:?}")
        }
        Goto(to) => format!("goto {:?}", to.map(|to| to.into_owned())),
        Gosub(call) => {
            format!("gosub {:?}", call.map(|call| (call.destination.into_owned(), call.args.join("\u{1}"))))
        }
        Exec(nested) => format!("exec {nested:?}"),
        Run(text) => format!("run {text}"),
        Command(written) => format!("run {}", written.text),
        Bad(why) => format!("bad {why}"),
    }
}
