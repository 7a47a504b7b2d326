//! The dialplans of docs/recipes.md, called as they stand there; phones are of the invented world.

mod common;

use std::sync::Arc;

use base::Cause;
use call::Diversion;
use call::voicemail::{Account, BoxName, Voicemail};
use common::*;
use sim::{Act, World};

/// A recipe, with the context that calls come from at its top.
fn recipe(name: &str) -> String {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recipes.md")).unwrap();
    let (_, rest) = page.split_once(&format!("<!-- recipe: {name} -->\n```\n")).expect("the recipe is there");
    let (text, _) = rest.split_once("```").expect("it ends");
    format!("[default]\ninclude => phones\ninclude => from-outside\n{}", text.replace("PJSIP/", "SIM/"))
}

fn site(name: &str) -> World {
    let mut world = world(&recipe(name));
    world.watch();
    for (phone, acts) in
        [("6001", answers()), ("6002", answers()), ("6003", phone(&[(100, Act::Hangup(Cause::USER_BUSY))]))]
    {
        world.phone(phone, acts);
    }
    world
}

/// A call of `exten` by a phone of this number, for so long.
fn dial(world: &mut World, caller: &str, exten: &str, keys: &[(u64, Act)], ms: u64) {
    let now = world.now().as_millis();
    let mut acts = keys.to_vec();
    acts.push((ms, BYE));
    let place = location("default", exten);
    let id = world.incoming(caller, &format!("<{caller}>"), place.clone(), &acts);
    assert!(apps::pbx::start(&world.shard.clone(), id, place));
    world.run_until(at(now + ms + 40_000));
}

/// Phones that were called since the last time: their names.
fn called(world: &World, from: usize) -> Vec<String> {
    let lines = world.transcript();
    let name = |line: &String| {
        let (_, name) = line.strip_suffix(" is called")?.split_once("SIM/")?;
        Some(name.split('-').next().unwrap_or_default().to_owned())
    };
    lines[from..].iter().filter_map(name).collect()
}

fn state(world: &World, device: &str) -> Option<String> {
    world.stored("CustomDevstate", device)
}

#[test]
fn call_forward_sets_ends_and_obeys_all_three_kinds() {
    let mut world = site("forward");
    let reaches = |world: &mut World, exten: &str, expected: &[&str], when: &str| {
        let from = world.transcript().len();
        dial(world, "6009", exten, &[], 60_000);
        assert_eq!(called(world, from), expected, "{when}: {:#?}", &world.transcript()[from..]);
    };
    reaches(&mut world, "6001", &["6001"], "before");
    dial(&mut world, "6001", "*726002", &[], 9000);
    assert_eq!(world.stored("CFIM", "6001").as_deref(), Some("6002"));
    assert_eq!(state(&world, "CF6001").as_deref(), Some("INUSE"));
    reaches(&mut world, "6001", &["6002"], "all calls");
    dial(&mut world, "6002", "*726001", &[], 9000);
    reaches(&mut world, "6001", &[], "to each other and back");
    dial(&mut world, "6002", "*73", &[], 9000);
    dial(&mut world, "6001", "*73", &[], 9000);
    assert_eq!(state(&world, "CF6001").as_deref(), Some("NOT_INUSE"));
    reaches(&mut world, "6001", &["6001"], "no more");
    dial(&mut world, "6003", "*906001", &[], 9000);
    reaches(&mut world, "6003", &["6003", "6001"], "busy");
    dial(&mut world, "6003", "*91", &[], 9000);
    reaches(&mut world, "6003", &["6003"], "busy no more");
    world.phone("6002", phone(&[(500, Act::Ring)]));
    dial(&mut world, "6002", "*526001", &[], 9000);
    reaches(&mut world, "6002", &["6002", "6001"], "no answer");
    dial(&mut world, "6002", "*53", &[], 9000);
    reaches(&mut world, "6002", &["6002"], "no answer no more");
    assert_eq!(warnings(&world), [""; 0]);
}

#[test]
fn do_not_disturb_is_turned_on_and_off_and_shown() {
    let mut world = site("disturb");
    for (exten, word, expected) in
        [("", None, vec!["6001"]), ("*78", Some("INUSE"), vec![]), ("*79", Some("NOT_INUSE"), vec!["6001"])]
    {
        if !exten.is_empty() {
            dial(&mut world, "6001", exten, &[], 9000);
        }
        assert_eq!(state(&world, "DND6001").as_deref(), word, "{exten}");
        let from = world.transcript().len();
        dial(&mut world, "6009", "6001", &[], 9000);
        assert_eq!(called(&world, from), expected, "after {exten}");
    }
    assert_eq!(warnings(&world), [""; 0]);
}

#[test]
fn what_keys_of_phones_set_is_obeyed() {
    let mut world = site("keys");
    let reaches = |world: &mut World, exten: &str, expected: &[&str], when: &str| {
        let from = world.transcript().len();
        dial(world, "6009", exten, &[], 60_000);
        assert_eq!(called(world, from), expected, "{when}: {:#?}", &world.transcript()[from..]);
    };
    let set = |world: &mut World, diversion, to: Option<&str>| {
        assert!(world.shard.core.borrow_mut().set_diversion("6001", diversion, to));
    };
    for (diversion, to, on, off) in [
        (Diversion::Disturb, "YES", vec![], vec!["6001"]),
        (Diversion::All, "6002", vec!["6002"], vec!["6001"]),
    ] {
        set(&mut world, diversion, Some(to));
        reaches(&mut world, "6001", &on, "set");
        set(&mut world, diversion, None);
        reaches(&mut world, "6001", &off, "no more");
    }
    for (code, expected) in
        [("*78", vec![]), ("*79", vec!["6001"]), ("*726002", vec!["6002"]), ("*73", vec!["6001"])]
    {
        dial(&mut world, "6001", code, &[], 9000);
        reaches(&mut world, "6001", &expected, code);
    }
    world.phone("6001", phone(&[(500, Act::Hangup(Cause::USER_BUSY))]));
    set(&mut world, Diversion::Busy, Some("6002"));
    reaches(&mut world, "6001", &["6001", "6002"], "busy");
    for (rings, rung_ms) in [(None, 20_000), (Some(2), 10_000)] {
        world.phone("6001", phone(&[(0, Act::Ring)]));
        set(&mut world, Diversion::NoAnswer, Some("6002"));
        world.shard.core.borrow_mut().set_rings("6001", rings);
        let (from, begun) = (world.transcript().len(), world.now().as_millis());
        dial(&mut world, "6009", "6001", &[], 60_000);
        assert_eq!(called(&world, from), ["6001", "6002"], "no answer");
        let lines = &world.transcript()[from..];
        let second = lines.iter().find(|line| line.contains("6002") && line.ends_with(" is called"));
        let at: u64 = second
            .and_then(|line| line.split_whitespace().next()?.parse().ok())
            .unwrap_or_else(|| panic!("{lines:#?}"));
        assert_eq!(at.saturating_sub(begun) / 1000 * 1000, rung_ms, "{rings:?}: {lines:#?}");
    }
    assert_eq!(warnings(&world), [""; 0]);
}

#[test]
fn a_colleague_is_called_by_name() {
    let mut world = site("directory");
    let mut voicemail = Voicemail::default();
    let name = BoxName::new("6002", "default").unwrap();
    let account = Account {
        name: name.clone(),
        pin: "1".to_owned(),
        pin_is_fixed: false,
        full_name: "Bob Smith".to_owned(),
        emails: Vec::new(),
        pager: String::new(),
        rules: voicemail.rules.clone(),
        is_row: false,
    };
    voicemail.accounts.insert(name, Arc::new(account));
    world.settings(|settings| settings.voicemail = Arc::new(voicemail));
    let keys = [
        (7000, Act::Press('7')),
        (7500, Act::Press('6')),
        (8000, Act::Press('4')),
        (30_000, Act::Press('1')),
    ];
    dial(&mut world, "6009", "411", &keys, 40_000);
    assert_eq!(called(&world, 0), ["6002"]);
    let from = world.transcript().len();
    dial(&mut world, "6009", "411", &[(7000, Act::Press('0'))], 20_000);
    assert_eq!(called(&world, from), ["6001"], "the operator");
}

#[test]
fn who_is_out_dials_from_inside_after_a_password() {
    for (keys, expected) in [("48151623# 6002", vec!["6002"]), ("48151624# 6002", vec![])] {
        let mut world = site("disa");
        let keys = keys.chars().enumerate().filter(|(_, key)| *key != ' ');
        let keys: Vec<_> = keys.map(|(n, key)| (1000 + 500 * n as u64, Act::Press(key))).collect();
        dial(&mut world, "0301234", "2999", &keys, 30_000);
        assert_eq!(called(&world, 0), expected);
    }
}
