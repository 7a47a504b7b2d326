//! Queues on the console, many of them.

use queue::{Config, NewMember, QueueConfig};

use super::*;

fn fill(desk: &Desk, queues: usize, members: usize) {
    let member = |number| NewMember { interface: format!("PJSIP/{number}"), ..NewMember::default() };
    let queue = |number| QueueConfig {
        name: format!("q{number:05}"),
        members: (0..members).map(member).collect(),
        ..QueueConfig::default()
    };
    let config = Config { queues: (0..queues).map(queue).collect(), ..Config::default() };
    let mut core = desk.world.shard.core.borrow_mut();
    core.with_queues(|queues, now, out| queues.configure(&config, now, out));
}

#[test]
fn all_queues_are_shown_however_many_there_are() {
    let mut desk = Desk::new("queues-many");
    assert_eq!(desk.text("queue show"), "No queues.\n");
    assert_eq!(desk.json("queue show"), serde_json::json!({ "queues": [], "more": 0 }));
    for (queues, members) in [(1, 0), (2, 3), (3_000, 2)] {
        fill(&desk, queues, members);
        let text = desk.text("queue show");
        assert_eq!(text.matches("has 0 calls").count(), queues, "{queues}");
        assert_eq!(text.matches("PJSIP/").count(), queues * members, "{queues}");
        let json = desk.json("queue show");
        let listed = json["queues"].as_array().unwrap();
        assert_eq!((listed.len(), &json["more"]), (queues, &Value::from(0)));
        assert_eq!(listed[queues - 1]["members"].as_array().unwrap().len(), members);
    }
}

#[test]
fn a_long_list_comes_in_pages_and_queues_that_go_meanwhile_do_not_end_it() {
    let mut desk = Desk::new("queues-pages");
    fill(&desk, 3_000, 2);
    let call = Call {
        session: 1,
        who: None,
        line: "queue show",
        json: false,
        columns: 0,
        may_wait: true,
        may_reach_outside: true,
        rights: dialplan::Rights::ALL,
        view: &mut desk.view,
    };
    let Answer::Pages(pages) = desk.cli.run(call) else { panic!("it fits one page") };
    let first = pages.next().unwrap();
    assert!(first.len() <= crate::pages::PAGE_BYTES && first.contains("q00000 has"), "{}", first.len());
    fill(&desk, 10, 1);
    let rest: String = std::iter::from_fn(|| pages.next()).collect();
    assert!(!rest.contains("q01500 has"), "queues that are gone are not shown");
    assert_eq!(desk.text("queue show Q00003").matches("PJSIP/").count(), 1);
    assert!(desk.run("queue show q00010").0.contains("No such queue: q00010."));
}

#[test]
fn skills_are_given_and_shown() {
    let mut desk = Desk::new("queues-skills");
    fill(&desk, 2, 2);
    let said = desk.text("queue set skills German=3&sales on PJSIP/1 in q00001");
    assert_eq!(said, "Set skills german=3&sales=1 on interface 'PJSIP/1' in queue 'q00001'\n");
    let shown = desk.text("queue show");
    assert_eq!(shown.matches("PJSIP/1 (skills german=3&sales=1)").count(), 1, "{shown}");
    let json = desk.json("queue show q00001");
    assert_eq!(json["queues"][0]["members"][1]["skills"], "german=3&sales=1");
    assert_eq!(desk.run("queue set skills very,good on PJSIP/1").1, 1);
}
