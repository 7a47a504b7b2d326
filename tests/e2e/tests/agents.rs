//! A customer's call through a queue to an agent who sends it on: what the records say of it, and what the phones hear.

use std::collections::BTreeMap;

use e2e::{Phone, Server, Site, Speak, wait};

const QUEUES: &str = "
[sales]
strategy=linear
timeout=15
retry=1
ringinuse=no
musicclass=default
member => Local/1001@agents,0,Anna,Agent:1001
";

const DIALPLAN: &str = "
[test]
exten => login,1,Set(CDR_PROP(disable)=1)
 same => n,AgentLogin(1001,s)
exten => 300,1,Answer()
 same => n,CELGenUserEvent(Waits,for sales)
 same => n,Set(__TRANSFER_CONTEXT=test)
 same => n,Queue(sales,t)
 same => n,Hangup()
exten => 200,1,Dial(PJSIP/boss,20)
 same => n,Hangup()
[agents]
exten => _1XXX,1,Set(CDR_PROP(disable)=1)
 same => n,AgentRequest(${EXTEN})
 same => n,Hangup()
";

const CEL: &str = "[general]\nenable=yes\nevents=ALL\napps=queue,agentlogin,dial\n";
/// Kind, UNIQUEID, LINKEDID, channel, its peers, what the site calls it, and the rest, which may have commas.
const LINES: &str = "[mappings]\nall.csv => ${eventtype},${CHANNEL(uniqueid)},${CHANNEL(linkedid)},${CHANNEL(channame)},\
                     ${userdeftype},${CHANNEL(appname)},${eventextra}\n";

const MUSIC: f64 = 350.0;
const CALLER: f64 = 440.0;
const ANNA: f64 = 620.0;
const BOSS: f64 = 880.0;
const ENOUGH: u32 = 300;

fn hears(phone: &Phone, hertz: f64) {
    phone.media.forget();
    wait::until_true("it is heard", || phone.media.heard().tone(hertz) >= ENOUGH);
}

/// One line of `all.csv`.
#[derive(Debug)]
struct Event {
    kind: String,
    uniqueid: String,
    linkedid: String,
    channel: String,
    named: String,
    app: String,
    extra: String,
}

fn events(server: &Server) -> Vec<Event> {
    let text = std::fs::read_to_string(server.site.place.join("log/cel-custom/all.csv")).unwrap_or_default();
    let event = |line: &str| {
        let mut fields = line.splitn(7, ',').map(str::to_owned);
        let mut next = || fields.next().expect("seven fields");
        Event {
            kind: next(),
            uniqueid: next(),
            linkedid: next(),
            channel: next(),
            named: next(),
            app: next(),
            extra: next(),
        }
    };
    text.lines().map(event).collect()
}

#[test]
fn a_call_through_a_queue_to_an_agent_who_sends_it_on_has_one_truth() {
    let site = Site::new("agent-truth").phone("caller").phone("anna").phone("boss").dialplan(DIALPLAN);
    let site = site
        .add("queues.conf", QUEUES)
        .add("agents.conf", "[1001]\nfullname=Anna\nmusiconhold=default\ncustom_beep=\n")
        .add("cel.conf", CEL)
        .add("cel_custom.conf", LINES)
        .music(MUSIC, 4.0);
    let server = Server::start(site);
    let status = server.cli("cel show status");
    for line in [
        "CEL Logging: Enabled",
        "CEL Tracking Event: CHAN_START",
        "CEL Event Subscriber: CEL Custom CSV Logging",
    ] {
        assert!(status.contains(line), "{status}");
    }
    let sip = server.site.sip;
    let phone = |name: &str, hertz| {
        let phone = Phone::new(sip, name);
        phone.media.speak(Speak::Tone(hertz));
        phone
    };
    let (mut caller, mut anna, mut boss) =
        (phone("caller", CALLER), phone("anna", ANNA), phone("boss", BOSS));
    boss.must_register();
    anna.must_call("login");
    hears(&anna, MUSIC);
    wait::until_true("Anna is logged in", || server.cli("agent show online").contains("NOT_INUSE"));

    caller.must_call("300");
    hears(&caller, ANNA);
    hears(&anna, CALLER);
    assert!(server.cli("agent show 1001").contains("TalkingWith: Local/1001@agents-"));
    let channels = server.json("core show channels");
    let name = |phone: &str| {
        let all = channels["channels"].as_array().expect("channels");
        let names = all.iter().filter_map(|one| one["name"].as_str());
        names
            .into_iter()
            .find(|name| name.starts_with(&format!("PJSIP/{phone}-")))
            .expect("its channel")
            .to_owned()
    };
    let (of_caller, of_anna) = (name("caller"), name("anna"));
    // The agent's phone sends its keys to the agent's bridge, they cross the Local channel, and mean something in that of
    // the queue.
    anna.media.type_digits("#200");
    let invite = boss.ring();
    boss.take(&invite);
    hears(&caller, BOSS);
    hears(&boss, CALLER);
    hears(&anna, MUSIC);
    boss.hang_up();
    caller.until_hung_up();
    anna.hang_up();
    server.until_idle();

    // Two conversations of one caller are two records of one call; the parts between have none.
    let records = wait::until("both records", || Some(server.records()).filter(|all| all.len() >= 2));
    assert_eq!(records.len(), 2, "{records:#?}");
    let (first, second) = (&records[0], &records[1]);
    const CHANNEL: usize = 5;
    const DST_CHANNEL: usize = 6;
    const LAST_APP: usize = 7;
    const DISPOSITION: usize = 14;
    assert!(first[CHANNEL] == of_caller && second[CHANNEL] == of_caller, "{records:#?}");
    assert!(first[DST_CHANNEL].starts_with("Local/1001@agents-"), "{first:?}");
    assert!(second[DST_CHANNEL].starts_with("PJSIP/boss-"), "{second:?}");
    assert_eq!((first[LAST_APP].as_str(), second[LAST_APP].as_str()), ("Queue", "Dial"));
    assert_eq!((first[DISPOSITION].as_str(), second[DISPOSITION].as_str()), ("ANSWERED", "ANSWERED"));

    let all = wait::until("all events", || {
        let all = events(&server);
        (all.iter().filter(|event| event.kind == "LINKEDID_END").count() >= 2).then_some(all)
    });
    let mut lives: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for event in &all {
        lives.entry(&event.uniqueid).or_default().push(&event.kind);
    }
    assert_eq!(lives.len(), 5, "caller, two halves of Local, agent and boss: {all:#?}");
    for (uniqueid, kinds) in &lives {
        let count = |kind: &str| kinds.iter().filter(|known| **known == kind).count();
        assert_eq!(kinds.first(), Some(&"CHAN_START"), "{uniqueid}: {kinds:?}");
        for once in ["CHAN_START", "CHAN_END", "HANGUP", "ANSWER"] {
            assert_eq!(count(once), 1, "{once} of {uniqueid}: {kinds:?}");
        }
        assert_eq!(count("BRIDGE_ENTER"), count("BRIDGE_EXIT"), "{uniqueid}: {kinds:?}");
        assert_eq!(count("APP_START"), count("APP_END"), "{uniqueid}: {kinds:?}");
    }
    let own = all.iter().find(|event| event.kind == "USER_DEFINED").expect("the dialplan's own");
    assert_eq!((own.named.as_str(), own.extra.as_str()), ("Waits", "{\"extra\":\"for sales\"}"));
    assert_eq!(own.channel, of_caller);
    let apps = |kind: &str, channel: &str| -> Vec<&str> {
        let of = all.iter().filter(|event| event.kind == kind && event.channel == channel);
        of.map(|event| event.app.as_str()).collect()
    };
    assert_eq!(apps("APP_START", &of_caller), ["Queue", "Dial"]);
    assert_eq!(apps("APP_END", &of_caller), ["Queue", "Dial"]);
    assert_eq!(apps("APP_START", &of_anna), ["AgentLogin"]);
    let moved = all.iter().find(|event| event.kind == "BLINDTRANSFER").expect("the transfer");
    assert!(moved.channel.starts_with("Local/1001@agents-"), "{moved:?}");
    assert!(moved.extra.starts_with("{\"extension\":\"200\",\"context\":\"test\""), "{moved:?}");
    assert!(moved.extra.contains(&of_caller), "{moved:?}");
    // The agent's call is the older one: whoever talks to the agent belongs to it from then on, and so does what follows.
    let first_of =
        |channel: &str| all.iter().find(|event| event.channel == channel).expect("its first event");
    let (customer, agent) = (first_of(&of_caller), first_of(&of_anna));
    for event in &all {
        assert!([&customer.uniqueid, &agent.uniqueid].contains(&&event.linkedid), "{event:?}");
        assert!(event.channel != of_anna || event.linkedid == agent.uniqueid, "{event:?}");
    }
    let talks = |event: &&Event| event.kind == "BRIDGE_EXIT" && event.channel.ends_with(";2");
    assert_eq!(all.iter().find(talks).expect("the conversation").linkedid, agent.uniqueid);
}
