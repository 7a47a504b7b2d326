//! Skills that callers need and members have.

mod common;

use common::{Desk, join_as, member, queue, settings};
use queue::{Absence, Closed, Config, End, General, SkillChange, Skills, Whom};

const A: &str = "PJSIP/a";
const B: &str = "PJSIP/b";
const NONE: [&str; 0] = [];

#[test]
fn callers_get_members_with_the_skills_that_they_need_and_keep_nobody_from_others() {
    let skilled = |interface: &str, skills: &str| queue::NewMember {
        skills: Skills::parse(skills).unwrap(),
        ..member(interface, 0)
    };
    for (name, a, b, needs, expected) in [
        ("nothing is needed", "german=1", "", ["", ""], vec!["0: ring PJSIP/a", "1: ring PJSIP/b"]),
        ("the second has it", "", "german", ["german", ""], vec!["0: ring PJSIP/b", "1: ring PJSIP/a"]),
        ("the level is too low", "german=2", "german=3", ["german=3", ""], {
            vec!["0: ring PJSIP/b", "1: ring PJSIP/a"]
        }),
        ("who lacks everybody keeps nobody waiting", "", "", ["german", ""], vec!["1: ring PJSIP/a"]),
        ("both need the same one", "german", "", ["german", "german"], vec!["0: ring PJSIP/a"]),
        ("two skills", "german&sales", "german", ["german", "german&sales"], vec!["0: ring PJSIP/a"]),
    ] {
        let mut config = queue("q", settings(), &[]);
        config.members = vec![skilled(A, a), skilled(B, b)];
        let mut desk = Desk::new(vec![config]);
        for (number, needs) in (0..).zip(needs) {
            let join = queue::Join { skills: Skills::parse(needs).unwrap(), ..join_as(number) };
            desk.queues.join("q", join, desk.now, &mut desk.out).unwrap();
        }
        assert_eq!(desk.orders(), expected, "{name}");
    }
}

#[test]
fn what_is_needed_changes_by_rule_and_by_hand() {
    let mut config = queue("q", settings(), &[A]);
    config.settings.default_rule = "less".into();
    let less = ["20,-1", "30,0"].map(|line| SkillChange::parse(line).unwrap());
    let skill_rules = vec![("Less".to_owned(), less.to_vec())];
    let mut desk = Desk::with(Config { queues: vec![config], skill_rules, ..Config::default() });
    let needs = |desk: &mut Desk, number, needs: &str| {
        let join = queue::Join { skills: Skills::parse(needs).unwrap(), ..join_as(number) };
        desk.queues.join("q", join, desk.now, &mut desk.out).unwrap();
    };
    needs(&mut desk, 0, "german=2");
    desk.pass(19);
    assert_eq!(desk.orders(), NONE);
    desk.pass(1);
    assert_eq!(desk.orders(), ["0: skills german=1"]);
    desk.pass(10);
    assert_eq!(desk.orders(), ["0: skills ", "0: ring PJSIP/a"]);
    desk.connect(0, A);
    needs(&mut desk, 1, "sales=4");
    let whom = Whom { queue: None, interface: A, by: "MANAGER" };
    let sales = Skills::parse("sales=4").unwrap();
    assert_eq!(desk.queues.set_skills(whom, &sales, desk.now, &mut desk.out), Ok(1));
    assert!(desk.end(0, End::Agent));
    assert_eq!(desk.orders(), ["1: ring PJSIP/a"]);
    assert!(desk.log().contains(&"MANAGER|q|PJSIP/a|SKILLS|sales=4".to_owned()));
}

#[test]
fn a_queue_may_count_members_without_the_skill_as_absent() {
    let mut config = queue("q", settings(), &[A]);
    config.settings.join_empty = Absence { skill: true, ..Absence::default() };
    let mut desk = Desk::new(vec![config]);
    let join = queue::Join { skills: Skills::parse("german").unwrap(), ..join_as(0) };
    assert_eq!(desk.queues.join("q", join, desk.now, &mut desk.out), Err(Closed::Empty));
    assert_eq!(desk.join("q", 1), Ok(1));
}

#[test]
fn skills_of_dynamic_members_survive() {
    let mut desk = Desk::with(Config {
        queues: vec![queue("q", settings(), &[])],
        general: General { persistent_members: true, ..General::default() },
        ..Config::default()
    });
    let new = queue::NewMember { skills: Skills::parse("b=2&a").unwrap(), ..member(A, 3) };
    desk.queues.add("q", &new, "x", desk.now, &mut desk.out).unwrap();
    let kept = desk.out.iter().find_map(|output| match output {
        queue::Output::Persist { value, .. } => value.clone(),
        _ => None,
    });
    let kept = kept.unwrap();
    assert!(kept.ends_with(";0;a=1&b=2"), "{kept}");
    assert_eq!(queue::parse_persisted(&kept)[0].skills, new.skills);
}
