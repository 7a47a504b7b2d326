//! Lists of queues that are longer than a page.

use queue::{Config, NewMember, QueueConfig};

use super::*;

/// As many queues with two members each.
fn fill(desk: &Desk, queues: usize) {
    let member = |number| NewMember { interface: format!("PJSIP/{number}"), ..NewMember::default() };
    let queue = |number| QueueConfig {
        name: format!("q{number:05}"),
        members: vec![member(2 * number), member(2 * number + 1)],
        ..QueueConfig::default()
    };
    let config = Config { queues: (0..queues).map(queue).collect(), ..Config::default() };
    let mut core = desk.world.shard.core.borrow_mut();
    core.with_queues(|queues, now, out| queues.configure(&config, now, out));
}

/// What a session is sent until no page is left, and in how many turns.
fn read(desk: &mut Desk, session: u64) -> (String, usize) {
    let (mut text, mut turns) = (String::new(), 0);
    while desk.manager.reading().any(|reading| reading == session) {
        let now = desk.world.now();
        desk.manager.turn_page(session, now, &mut desk.out);
        text += &desk.sent(session);
        turns += 1;
    }
    (text, turns)
}

#[test]
fn a_list_that_fits_a_page_is_answered_at_once_and_names_one_queue_in_any_case() {
    let mut desk = Desk::new("queues-few");
    fill(&desk, 3);
    desk.login(1, "all");
    let all = desk.act(1, "QueueStatus|ActionID: 7");
    let members: Vec<_> =
        messages(&all).into_iter().filter(|item| field(item, "Event") == Some("QueueMember")).collect();
    assert_eq!(members.len(), 6, "{all}");
    // As the field has it, ActionID is the last line of an item.
    assert!(members.iter().all(|member| member.last() == Some(&("ActionID", "7"))), "{all}");
    assert!(all.ends_with("EventList: Complete\r\nListItems: 9\r\n\r\n"), "{all}");
    let one = desk.act(1, "QueueStatus|Queue: Q00001|Member: PJSIP/3");
    assert!(one.contains("Queue: q00001\r\nName: PJSIP/3"), "{one}");
    assert!(one.ends_with("ListItems: 2\r\n\r\n"), "{one}");
    let none = desk.act(1, "QueueSummary|Queue: q9");
    assert!(
        none.ends_with("Event: QueueSummaryComplete\r\nEventList: Complete\r\nListItems: 0\r\n\r\n"),
        "{none}"
    );
}

#[test]
fn a_long_list_comes_in_pages_and_what_happens_meanwhile_is_told_behind_it() {
    let mut desk = Desk::new("queues-list");
    fill(&desk, 2_000);
    desk.login(1, "all");
    desk.act(1, "Events|EventMask: on");
    let begun = desk.act(1, "QueueStatus|ActionID: 7");
    assert!(begun.contains("EventList: start") && !begun.contains("QueueParams"), "{begun}");
    assert_eq!(desk.act(1, "Ping|ActionID: 8"), "", "it waits for the end of the list");
    desk.world.shard.core.borrow_mut().notice(|_| Some(Notice::Reload { module: "queue".into(), status: 0 }));
    desk.pass_to(10);
    assert_eq!(desk.sent(1), "");
    let (text, turns) = read(&mut desk, 1);
    assert!(turns > 10, "{turns}");
    let before = text.find("ListItems: 6000").unwrap();
    let (reload, ping) = (text.find("Event: Reload").unwrap(), text.find("ActionID: 8").unwrap());
    assert!(before < reload && reload < ping, "{before} {reload} {ping}");
    assert_eq!(text.matches("Event: QueueMember\r\n").count(), 4_000);
}

#[test]
fn a_command_of_many_lines_is_one_response_in_pages() {
    let mut desk = Desk::new("queues-command");
    desk.login(1, "all");
    let begun = desk.act(1, "Command|Command: count|ActionID: 3");
    assert_eq!(begun, "Response: Success\r\nActionID: 3\r\nMessage: Command output follows\r\n");
    let (text, turns) = read(&mut desk, 1);
    assert!(turns > 3, "{turns}");
    assert_eq!(text.lines().filter(|line| line.starts_with("Output: 0000")).count(), 10_000);
    assert!(text.ends_with("Output: 000009999\r\n\r\n"));
}

#[test]
fn who_does_not_read_while_much_happens_is_let_go() {
    let mut desk = Desk::new("queues-deaf");
    fill(&desk, 2_000);
    desk.login(1, "all");
    desk.act(1, "Events|EventMask: on");
    desk.act(1, "QueueStatus");
    let module = "x".repeat(10_000);
    for _ in 0..150 {
        let module = module.clone();
        desk.world.shard.core.borrow_mut().notice(|_| Some(Notice::Reload { module, status: 0 }));
    }
    desk.pass_to(10);
    assert_eq!(desk.sent(1), "<closed>");
    assert_eq!(desk.manager.reading().next(), None);
}
