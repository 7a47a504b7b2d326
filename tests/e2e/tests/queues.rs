//! Queue(): who waits hears music, who is called answers, and what is written says so.

use e2e::{Phone, Server, Site, Speak, Sqlite, wait};

const QUEUES: &str = "
[general]
persistentmembers=yes
[sales]
strategy=linear
timeout=2
retry=1
musicclass=default
context=keys
monitor-type=MixMonitor
monitor-format=wav
member => PJSIP/anna,0,Anna
member => PJSIP/ben,0,Ben
[nobody]
joinempty=no
[skilled]
strategy=linear
musicclass=default
defaultrule=less
member => PJSIP/anna,0,Anna,,,,,german=1
member => PJSIP/ben,0,Ben,,,,,german=4
[late]
strategy=ringall
musicclass=default
context=keys
";

const RULES: &str = "[less]\nskillchange => 3,german=-8\n";

const DIALPLAN: &str = "
[test]
exten => 300,1,Answer()
 same => n,Queue(sales,c,,,60)
 same => n,Set(DB(queue/status)=${QUEUESTATUS})
 same => n,Hangup()
exten => 301,1,Queue(nobody)
 same => n,Set(DB(queue/status)=${QUEUESTATUS})
exten => 302,1,Answer()
 same => n,Queue(late)
exten => 303,1,Answer()
 same => n,Queue(late,,,,3)
 same => n,Set(DB(queue/status)=${QUEUESTATUS})
exten => 304,1,Answer()
 same => n,Set(QUEUE_SKILLS=german=4)
 same => n,Queue(skilled)
exten => 305,1,Answer()
 same => n,Set(QUEUE_SKILLS=german=9)
 same => n,Queue(skilled)
exten => join,1,Answer()
 same => n,AddQueueMember(late,PJSIP/anna)
 same => n,Set(DB(queue/joined)=${AQMSTATUS})
exten => leave,1,Answer()
 same => n,RemoveQueueMember(late,PJSIP/anna)
 same => n,Set(DB(queue/left)=${RQMSTATUS})
exten => caller,1,Set(CALLERID(num)=100)
 same => n,Dial(PJSIP/caller,20)
[keys]
exten => 9,1,QueueCallback(late,Local/${CALLERID(num)}@test/n)
 same => n,Set(DB(queue/callback)=${QUEUECALLBACKSTATUS})
 same => n,Hangup()
exten => 0,1,Set(DB(queue/key)=pressed)
 same => n,Hangup()
";

/// Hertz of what is heard.
const MUSIC: f64 = 350.0;
const CALLER: f64 = 440.0;
const ANNA: f64 = 620.0;
const BEN: f64 = 880.0;
/// Milliseconds of a tone that nobody takes for noise.
const ENOUGH: u32 = 300;

struct Office {
    server: Server,
    caller: Phone,
    anna: Phone,
    ben: Phone,
}

fn office(name: &str) -> Office {
    let site = Site::new(name).phone("caller").phone("anna").phone("ben").dialplan(DIALPLAN);
    let site = site.add("queues.conf", QUEUES).add("queuerules.conf", RULES);
    let server = Server::start(site.music(MUSIC, 4.0));
    let sip = server.site.sip;
    let phone = |name: &str, hertz| {
        let phone = Phone::new(sip, name);
        phone.media.speak(Speak::Tone(hertz));
        phone
    };
    let (caller, mut anna, mut ben) = (phone("caller", CALLER), phone("anna", ANNA), phone("ben", BEN));
    anna.must_register();
    ben.must_register();
    Office { server, caller, anna, ben }
}

fn hears(phone: &Phone, hertz: f64) {
    phone.media.forget();
    wait::until_true("it is heard", || phone.media.heard().tone(hertz) >= ENOUGH);
}

/// Anna joins the queue, in which the caller is first, and takes the call; then the caller is called, and both talk.
fn until_called_back(caller: &mut Phone, anna: &mut Phone) {
    anna.must_call("join");
    anna.until_hung_up();
    let at_member = anna.ring();
    anna.take(&at_member);
    let at_caller = caller.ring();
    caller.take(&at_caller);
    hears(anna, CALLER);
    hears(caller, ANNA);
}

/// Events of queue_log, without time and call: `queue|agent|event`.
fn written(server: &Server) -> Vec<String> {
    let text = std::fs::read_to_string(server.site.place.join("log/queue_log")).unwrap_or_default();
    let event = |line: &str| {
        let fields: Vec<&str> = line.split('|').collect();
        Some(fields.get(2..5)?.join("|"))
    };
    text.lines().filter_map(event).collect()
}

fn until_written(server: &Server, event: &str) {
    wait::until_true(event, || written(server).iter().any(|line| line.contains(event)));
}

#[test]
fn who_waits_hears_music_until_a_member_answers_and_then_both_hear_each_other_and_are_recorded() {
    let Office { server, mut caller, mut anna, .. } = office("queue-answer");
    caller.must_call("300");
    hears(&caller, MUSIC);
    let invite = anna.ring();
    anna.take(&invite);
    hears(&caller, ANNA);
    hears(&anna, CALLER);
    assert!(server.cli("queue show sales").contains("Anna"), "{}", server.cli("queue show sales"));
    anna.hang_up();
    caller.until_hung_up();
    assert_eq!(server.database("queue", "status"), "CONTINUE");
    until_written(&server, "COMPLETEAGENT");
    let events: Vec<String> =
        written(&server).into_iter().filter(|line| line.starts_with("sales|")).collect();
    assert_eq!(events, ["sales|NONE|ENTERQUEUE", "sales|Anna|CONNECT", "sales|Anna|COMPLETEAGENT"]);
    let recordings =
        || std::fs::read_dir(server.site.place.join("spool/monitor")).into_iter().flatten().count();
    wait::until_true("the recording is there", || recordings() == 1);
    server.until_idle();
}

#[test]
fn a_member_who_does_not_answer_is_followed_by_the_next() {
    let Office { server, mut caller, mut anna, mut ben } = office("queue-next");
    caller.must_call("300");
    let unanswered = anna.ring();
    let cancel = anna.expect("CANCEL");
    anna.respond(&cancel, 200, "OK", false);
    anna.refuse(&unanswered, 487, "Request Terminated");
    let invite = ben.ring();
    ben.take(&invite);
    hears(&caller, BEN);
    caller.hang_up();
    ben.until_hung_up();
    until_written(&server, "COMPLETECALLER");
    let events = written(&server);
    let place = |event: &str| events.iter().position(|line| line == event);
    assert!(place("sales|Anna|RINGNOANSWER") < place("sales|Ben|CONNECT"), "{events:?}");
    server.until_idle();
}

#[test]
fn a_digit_leads_out_of_the_queue_and_a_queue_without_members_lets_nobody_in() {
    let Office { server, mut caller, .. } = office("queue-out");
    caller.must_call("300");
    hears(&caller, MUSIC);
    caller.media.type_digits("0");
    caller.until_hung_up();
    assert_eq!(server.database("queue", "key"), "pressed");
    until_written(&server, "EXITWITHKEY");
    // The rest of the digit would be one of the next call.
    wait::until_true("it is typed", || caller.media.typed());
    caller.call("301");
    wait::until_true("it is told", || server.database("queue", "status") == "JOINEMPTY");
    caller.must_call("303");
    hears(&caller, MUSIC);
    caller.until_hung_up();
    assert_eq!(server.database("queue", "status"), "TIMEOUT");
    server.until_idle();
}

#[test]
fn a_phone_joins_a_queue_is_a_member_after_a_restart_and_leaves() {
    let Office { mut server, mut caller, mut anna, .. } = office("queue-dynamic");
    anna.must_call("join");
    anna.until_hung_up();
    assert_eq!(server.database("queue", "joined"), "ADDED");
    server.signal("TERM");
    wait::until("it ends", || server.ended());
    server.kill_and_restart();
    anna.must_register();
    assert!(server.cli("queue show late").contains("PJSIP/anna"), "{}", server.cli("queue show late"));
    caller.must_call("302");
    let invite = anna.ring();
    anna.take(&invite);
    hears(&caller, ANNA);
    caller.hang_up();
    anna.until_hung_up();
    anna.must_call("leave");
    anna.until_hung_up();
    assert_eq!(server.database("queue", "left"), "REMOVED");
    server.until_idle();
}

#[test]
fn a_caller_talks_to_who_has_the_skill_and_after_a_while_to_who_has_less_of_it() {
    let Office { server, mut caller, mut anna, mut ben } = office("queue-skill");
    caller.must_call("304");
    let invite = ben.ring();
    ben.take(&invite);
    hears(&caller, BEN);
    assert!(!anna.comes("INVITE", std::time::Duration::from_millis(200)), "Anna knows too little");
    caller.hang_up();
    ben.until_hung_up();
    caller.must_call("305");
    hears(&caller, MUSIC);
    let shown = server.cli("queue show skilled");
    assert!(shown.contains("needs german=9)") && shown.contains("(skills german=4)"), "{shown}");
    let invite = anna.ring();
    anna.take(&invite);
    hears(&caller, ANNA);
    anna.hang_up();
    caller.until_hung_up();
    server.until_idle();
}

#[test]
fn forty_thousand_queues_load_and_the_console_shows_each_and_all_of_them() {
    use std::fmt::Write as _;
    const QUEUES: usize = 40_000;
    const MEMBERS: usize = 75_000;
    let mut text = String::from("[general]\n");
    let mut member = 0;
    for queue in 0..QUEUES {
        writeln!(text, "[q{queue}]\nstrategy=rrmemory\ntimeout=15").expect("text");
        while member * QUEUES < (queue + 1) * MEMBERS {
            writeln!(text, "member => PJSIP/{member},0,Agent {member}").expect("text");
            member += 1;
        }
    }
    let server =
        Server::start(Site::new("queue-many").phone("caller").dialplan(DIALPLAN).add("queues.conf", &text));
    let took = |command: &str| {
        let began = std::time::Instant::now();
        let said = server.cli(command);
        (said, began.elapsed())
    };
    let (last, one) = took("queue show q39999");
    assert!(last.contains("q39999 has 0 calls") && last.contains("PJSIP/74999"), "{last}");
    let (all, many) = took("queue show");
    assert_eq!((all.matches("has 0 calls").count(), all.matches("PJSIP/").count()), (QUEUES, MEMBERS));
    let (_, again) = took("queue reload all");
    println!(
        "figures: one queue {one:?}, all of them {many:?}, all files again {again:?}, each with a process of its own"
    );
}

#[test]
fn who_presses_a_key_hangs_up_keeps_the_place_and_is_called_when_a_member_has_answered() {
    let Office { mut server, mut caller, mut anna, mut ben } = office("queue-callback");
    caller.must_register();
    caller.must_call("302");
    hears(&caller, MUSIC);
    // Somebody comes later.
    ben.must_call("302");
    until_written(&server, "late|NONE|ENTERQUEUE");
    caller.media.type_digits("9");
    caller.until_hung_up();
    assert_eq!(server.database("queue", "callback"), "SUCCESS");
    let shown = server.cli("queue show late");
    let first = shown.lines().find(|line| line.trim_start().starts_with("1. ")).unwrap_or_default();
    assert!(first.contains("Local/caller@test"), "{shown}");
    until_called_back(&mut caller, &mut anna);
    hears(&ben, MUSIC);
    let lines = written(&server);
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line.rsplit('|').next()).collect();
    for kind in ["ENTERQUEUE", "EXITWITHKEY", "CALLBACK", "CONNECT"] {
        assert!(kinds.contains(&kind), "{kind}: {lines:?}");
    }
    ben.hang_up();
    anna.hang_up();
    caller.until_hung_up();
    until_written(&server, "late|PJSIP/anna|COMPLETEAGENT");
    server.until_idle();
    server.assert_healthy();
}

#[test]
fn who_is_to_be_called_back_is_called_by_the_process_after_the_one_that_was_killed() {
    let Office { mut server, mut caller, mut anna, mut ben } = office("queue-callback-kill");
    // A row that is not ours, which is on the disk before what comes later.
    server.cli("database put Queue/Callbacks 77 somebody=else");
    caller.must_register();
    caller.must_call("302");
    hears(&caller, MUSIC);
    caller.media.type_digits("9");
    caller.until_hung_up();
    // What it said before it was killed is all that it has promised.
    assert_eq!(server.database("queue", "callback"), "SUCCESS");
    server.kill_and_restart();
    server.until_logged(&["NOTICE", "1 callers are still to be called back"]);
    server.until_logged(&["ERROR", "1 rows of Queue/Callbacks in the database are not followed"]);
    server.cli("database del Queue/Callbacks 77");
    let stands = |server: &Server| {
        wait::until_true("it stands", || server.cli("queue show late").contains("Local/caller@test"));
    };
    stands(&server);
    // Nor does an end that waits for calls wait for it, or forget it.
    server.run("core stop gracefully");
    wait::until("it ends", || server.ended());
    server.kill_and_restart();
    stands(&server);
    ben.must_call("302");
    until_called_back(&mut caller, &mut anna);
    hears(&ben, MUSIC);
    ben.hang_up();
    let rows = || server.cli("database show Queue/Callbacks");
    assert!(rows().contains("0 results found"), "{}", rows());
    until_written(&server, "late|NONE|ABANDON");
    // Who talks is called no more.
    server.kill_and_restart();
    assert!(server.cli("queue show late").contains("No Callers"), "{}", server.cli("queue show late"));
    assert_eq!(server.channels(), 0);
    server.assert_healthy();
}

#[test]
fn nobody_is_told_of_a_call_back_that_the_disk_has_not_taken_and_nobody_else_waits_for_the_disk() {
    if !e2e::installed(&["sqlite3"]) {
        return;
    }
    let Office { mut server, mut caller, mut anna, .. } = office("queue-callback-disk");
    let file = Sqlite { path: server.site.place.join("db/astdb.sqlite3") };
    let held = file.hold();
    caller.must_call("302");
    hears(&caller, MUSIC);
    caller.media.type_digits("9");
    until_written(&server, "late|NONE|EXITWITHKEY");
    // Meanwhile others are served.
    anna.must_call("303");
    hears(&anna, MUSIC);
    caller.until_hung_up();
    assert_eq!(server.database("queue", "callback"), "UNSAVED");
    anna.until_hung_up();
    drop(held);
    wait::until_true("the disk has all", || {
        file.sql("SELECT value FROM astdb WHERE key = '/queue/callback'") == "UNSAVED"
    });
    assert_eq!(file.sql("SELECT count(*) FROM astdb WHERE key LIKE '/Queue/Callbacks/%'"), "0");
    server.until_idle();
    server.assert_healthy();
}
