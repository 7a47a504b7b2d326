//! Functions that the channel answers, and applications that leave something behind.

mod common;

use core::time::Duration;

use base::Cause;
use call::{Level, Notice};
use common::{call, noted, run, steps, warnings, world};
use sim::Act;

/// One call each: what its dialplan sets before, what is read after it, what comes out.
#[test]
fn channel_functions_read_and_write() {
    for (name, before, read, expected) in [
        ("CALLERID(all)", "", "${CALLERID(all)}", "\"Alice\" <6001>"),
        (
            "CALLERID(num) and name",
            "Set(CALLERID(name)=Bob B)",
            "${CALLERID(num)} ${CALLERID(name)}",
            "6001 Bob B",
        ),
        (
            "CALLERID(all) splits",
            "Set(CALLERID(all)=Eve <77>)",
            "${CALLERID(name)}|${CALLERID(number)}|${CALLERID(ani)}",
            "Eve|77|77",
        ),
        ("CALLERID of a given caller id", "", "${CALLERID(num,\"X\" <42>)}", "42"),
        (
            "CALLERID(pres)",
            "Set(CALLERID(pres)=prohib_passed_screen)",
            "${CALLERID(num-pres)} ${CALLINGPRES}",
            "prohib_passed_screen 33",
        ),
        (
            "CALLERID(dnid) and rdnis",
            "Set(CALLERID(rdnis)=5)",
            "${CALLERID(dnid)}-${CALLERID(rdnis)}-${REDIRECTING(from-num)}",
            "-5-5",
        ),
        (
            "CHANNEL items",
            "",
            "${CHANNEL(name)} ${CHANNEL(state)} ${CHANNEL(exten)} ${CHANNEL(language)}",
            "SIM/6001-00000000 Ring 1 en",
        ),
        ("CHANNEL(language) is written", "Set(CHANNEL(language)=de)", "${CHANNEL(language)}", "de"),
        ("CHANNEL(channeltype)", "", "${CHANNEL(channeltype)}", "SIM"),
        (
            "CDR fields",
            "Set(CDR(own)=x)",
            "${CDR(src)} ${CDR(dst)} ${CDR(own)} ${CDR(disposition)} ${CDR(amaflags)}",
            "6001 1 x NO ANSWER DOCUMENTATION",
        ),
        ("CDR(start)", "", "${CDR(start)} ${CDR(start,u)}", "2026-11-21 12:00:00 1795262400.000000"),
        (
            "TIMEOUT",
            "Set(TIMEOUT(digit)=2.5)",
            "${TIMEOUT(digit)} ${TIMEOUT(response)} ${TIMEOUT(absolute)}",
            "2.500 10.000 0",
        ),
        (
            "GROUP and its counts",
            "Set(GROUP(cat)=g)",
            "${GROUP(cat)} ${GROUP_COUNT(g@cat)} ${GROUP_COUNT(x@cat)} ${GROUP_LIST()}",
            "g 1 0 g@cat",
        ),
        (
            "DEVICE_STATE of a custom device",
            "Set(DEVICE_STATE(Custom:a)=RINGING)",
            "${DEVICE_STATE(Custom:a)} ${DEVICE_STATE(Nope/1)}",
            "RINGING INVALID",
        ),
        (
            "PRESENCE_STATE",
            "Set(PRESENCE_STATE(CustomPresence:a)=xa,lunch,out)",
            "${PRESENCE_STATE(CustomPresence:a,value)} ${PRESENCE_STATE(CustomPresence:a,subtype,e)} \
             ${PRESENCE_STATE(CustomPresence:a,message)} ${PRESENCE_STATE(CustomPresence:b,value)}",
            "xa bHVuY2g= out not_set",
        ),
        (
            "CONFBRIDGE_INFO of nobody's conference",
            "",
            "${CONFBRIDGE_INFO(parties,1)}${CONFBRIDGE_INFO(Locked,1)}[${CONFBRIDGE_INFO(colour,1)}${CONFBRIDGE_INFO(parties,)}]",
            "00[]",
        ),
        ("AUDIOHOOK_INHERIT", "Set(AUDIOHOOK_INHERIT(MixMonitor)=yes)", "a", "a"),
        ("SHARED", "Set(SHARED(x)=1)", "${SHARED(x)} ${SHARED(x,SIM/6001-00000000)}", "1 1"),
        (
            "IMPORT and MASTER_CHANNEL",
            "Set(v=7)",
            "${IMPORT(SIM/6001-00000000,v)} ${MASTER_CHANNEL(v)}",
            "7 7",
        ),
        ("CONNECTEDLINE", "Set(CONNECTEDLINE(num,i)=9)", "${CONNECTEDLINE(num)}", "9"),
        ("a function of the technology", "Set(PJSIP_HEADER(add,X-A)=b)", "${PJSIP_HEADER(add,X-A)}", "b"),
        ("built-ins", "", "${UNIQUEID} ${EPOCH} ${CHANNEL}", "1795262400.0 1795262400 SIM/6001-00000000"),
        ("Set inherits its prefix away", "Set(__a=1)", "${a}", "1"),
        ("MSet", "MSet(a=1,b=2)", "${a}${b}", "12"),
        ("SetGlobalVar", "SetGlobalVar(g=1)", "${GLOBAL(g)}${g}", "11"),
        ("ImportVar", "ImportVar(x=SIM/6001-00000000,EXTEN)", "${x}", "1"),
        ("DBput and DBget", "DBput(a/b=c)", "${DB(a/b)}", "c"),
        ("TryExec of nothing", "TryExec(NoSuch(x))", "${TRYSTATUS}", "NOAPP"),
        ("TryExec of Hangup goes on", "TryExec(Hangup())", "${TRYSTATUS}", "FAILED"),
        ("TryExec of Set", "TryExec(Set(k=3))", "${TRYSTATUS} ${k}", "SUCCESS 3"),
        ("SendText", "SendText(hi)", "${SENDTEXTSTATUS}", "SUCCESS"),
        ("Transfer elsewhere", "Transfer(Other/1)", "${TRANSFERSTATUS}", "UNSUPPORTED"),
        ("WaitUntil in the past", "WaitUntil(5)", "${WAITUNTILSTATUS}", "PAST"),
        ("WaitUntil", "WaitUntil(1795262403)", "${WAITUNTILSTATUS} ${EPOCH}", "OK 1795262403"),
        ("WaitDigit runs out", "WaitDigit(1)", "${WAITDIGITSTATUS}${WAITDIGITRESULT}", "TIMEOUT"),
        ("EXCEPTION without one", "", "-${EXCEPTION(reason)}-", "--"),
        ("HANGUPCAUSE before the end", "", "${HANGUPCAUSE}", "0"),
    ] {
        let before = if before.is_empty() { "NoOp(nothing before)" } else { before };
        let world = run(&format!("[default]\nexten => 1,1,{before}\n same => n,NoOp({read})\n"), "1", &[]);
        assert_eq!(
            noted(&world).last().map(String::as_str),
            Some(expected),
            "{name}: {:?}",
            warnings(&world)
        );
    }
}

#[test]
fn an_item_that_does_not_exist_is_empty_and_named_in_the_log() {
    let world = run("[default]\nexten => 1,1,NoOp(-${CALLERID(nope)}-${CHANNEL(nope)}-)\n", "1", &[]);
    assert_eq!(noted(&world), ["---"]);
    let said = warnings(&world).join("\n");
    assert!(said.contains("CALLERID(nope)") && said.contains("CHANNEL(nope)"), "{said}");
}

#[test]
fn watchers_hear_of_variables_caller_ids_and_user_events() {
    let world = run(
        "[default]\nexten => 1,1,Set(a=1)\n same => n,Set(CALLERID(num)=5)\n same => n,UserEvent(Test,Key: value,X:y z)\n",
        "1",
        &[],
    );
    let told: Vec<String> = world
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::VarSet { variable, value, .. } => Some(format!("{variable}={value}")),
            Notice::NewCallerId(channel) => Some(format!("caller {}", channel.caller.number())),
            Notice::UserEvent { name, fields, .. } => Some(format!("{name} {fields:?}")),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["a=1", "caller 5", "Test [(\"Key\", \"value\"), (\"X\", \"y z\")]"]);
}

#[test]
fn nothing_is_made_for_watchers_while_nobody_watches() {
    let mut world = world("[default]\nexten => 1,1,Answer(0)\n same => n,Set(a=1)\n same => n,NoOp(x)\n");
    call(&mut world, "1", &[]);
    world.run();
    assert!(world.notices.is_empty());
    assert_eq!(world.cdrs.len(), 1);
}

#[test]
fn busy_refuses_an_unanswered_caller_and_sounds_for_an_answered_one() {
    for (dialplan, expected) in [
        ("exten => 1,1,Busy(5)", vec!["0 SIM/6001-00000000 ends with 17"]),
        ("exten => 1,1,Congestion()", vec!["0 SIM/6001-00000000 ends with 34"]),
        (
            "exten => 1,1,Answer(0)\n same => n,Busy(5)",
            vec![
                "0 SIM/6001-00000000 is answered",
                "0 #1 hears tone busy",
                "5000 SIM/6001-00000000 ends with 17",
            ],
        ),
        (
            "exten => 1,1,Progress()\n same => n,Ringing()\n same => n,Hangup(21)",
            vec![
                "0 SIM/6001-00000000 is told of early audio",
                "0 SIM/6001-00000000 is told it rings",
                "0 SIM/6001-00000000 ends with 21",
            ],
        ),
    ] {
        let world = run(&format!("[default]\n{dialplan}\n"), "1", &[]);
        assert_eq!(world.transcript(), expected, "{dialplan}");
    }
}

#[test]
fn answer_waits_for_media_at_most_half_a_second_or_its_own_delay() {
    for (dialplan, expected) in [("Answer()", 1_795_262_400), ("Answer(2000)", 1_795_262_402)] {
        let world =
            run(&format!("[default]\nexten => 1,1,{dialplan}\n same => n,NoOp(${{EPOCH}})\n"), "1", &[]);
        assert_eq!(noted(&world), [expected.to_string()], "{dialplan}");
    }
}

#[test]
fn saying_plays_the_files_one_after_the_other_and_a_digit_may_interrupt_it() {
    let world = run(
        "[default]\nexten => 1,1,Answer(0)\n same => n,SayDigits(12)\n same => n,SayNumber(30)\n",
        "1",
        &[],
    );
    let heard: Vec<String> = world.transcript().into_iter().filter(|line| line.contains("hears")).collect();
    assert_eq!(heard, ["0 #1 hears digits/1", "1000 #1 hears digits/2", "2000 #1 hears digits/30"]);

    let interrupted = run(
        "[default]\nexten => 1,1,Answer(0)\n same => n,Set(SAY_DTMF_INTERRUPT=true)\n same => n,SayDigits(1234)\n same => n,NoOp(no)\nexten => 5,1,NoOp(five)\n",
        "1",
        &[(1500, Act::Press('5'))],
    );
    assert_eq!(noted(&interrupted), ["five"], "{:?}", steps(&interrupted));
}

#[test]
fn macro_exclusive_lets_one_channel_in_at_a_time() {
    let mut world = world(
        "[default]\nexten => 1,1,MacroExclusive(m,${CHANNEL})\n[macro-m]\nexten => s,1,NoOp(in)\n same => n,Wait(2)\n same => n,NoOp(out)\n",
    );
    world.watch();
    call(&mut world, "1", &[]);
    call(&mut world, "1", &[]);
    world.run();
    assert_eq!(noted(&world), ["in", "out", "in", "out"]);
}

#[test]
fn records_can_be_switched_off_reset_and_forked() {
    for (name, dialplan, records) in [
        ("CDR_PROP(disable)", "exten => 1,1,Set(CDR_PROP(disable)=1)", 0),
        (
            "ResetCDR(e) switches on again",
            "exten => 1,1,Answer(0)\n same => n,Set(CDR_PROP(disable)=1)\n same => n,ResetCDR(e)",
            1,
        ),
        ("ForkCDR", "exten => 1,1,Answer(0)\n same => n,ForkCDR()", 2),
        (
            "ForkCDR without end",
            "exten => 1,1,Answer(0)\n same => n,Set(i=0)\n same => n,While($[${i} < 40])\n same => n,ForkCDR()\n same => n,Set(i=$[${i} + 1])\n same => n,EndWhile()",
            41,
        ),
    ] {
        let world = run(&format!("[default]\n{dialplan}\n"), "1", &[]);
        assert_eq!(world.cdrs.len(), records, "{name}");
        let order: Vec<u32> = world.cdrs.iter().map(|record| record.sequence).collect();
        assert!(order.is_sorted(), "{name}: {order:?}");
    }
    let reset = run(
        "[default]\nexten => 1,1,Answer(0)\n same => n,Wait(5)\n same => n,ResetCDR()\n same => n,Wait(2)\n",
        "1",
        &[],
    );
    assert_eq!(reset.cdrs[0].duration.as_secs(), 2);
}

#[test]
fn a_fork_begins_another_record_as_its_options_say() {
    // Answered after 1 s, forked after 3 s, ended after 6 s; what each record says, in order.
    for (options, records) in [
        ("", [("x", 6, 5), ("", 6, 5)]),
        ("a", [("x", 6, 5), ("", 6, 3)]),
        ("r", [("x", 6, 5), ("", 3, 3)]),
        ("v", [("x", 6, 5), ("x", 6, 5)]),
        ("e", [("x", 3, 2), ("", 6, 5)]),
        ("er", [("x", 3, 2), ("", 3, 3)]),
        ("erv", [("x", 3, 2), ("x", 3, 3)]),
    ] {
        let world = run(
            &format!(
                "[default]\nexten => 1,1,Wait(1)\n same => n,Answer(0)\n same => n,Set(CDR(own)=x)\n \
                 same => n,Wait(2)\n same => n,ForkCDR({options})\n same => n,Wait(3)\n"
            ),
            "1",
            &[],
        );
        let told: Vec<(&str, u64, u64)> = world
            .cdrs
            .iter()
            .map(|r| (r.custom.first().map_or("", |(_, own)| own), r.duration.as_secs(), r.billed))
            .collect();
        assert_eq!(told, records, "ForkCDR({options})");
        assert_eq!((world.cdrs[0].sequence, world.cdrs[1].sequence), (0, 1), "ForkCDR({options})");
    }
    // What is set after the fork is set in both, and reset in both.
    let both = run(
        "[default]\nexten => 1,1,Answer(0)\n same => n,ForkCDR()\n same => n,Set(CDR(late)=y)\n \
         same => n,Set(CDR(userfield)=u)\n same => n,NoOp(${CDR(sequence)})\n same => n,ResetCDR(v)\n",
        "1",
        &[],
    );
    assert_eq!(both.cdrs.len(), 2);
    for record in &both.cdrs {
        assert_eq!(record.custom, [("late".to_owned(), "y".to_owned())]);
        assert_eq!(record.user_field, "u");
        assert_eq!(record.duration, Duration::ZERO);
    }
}

#[test]
fn records_begin_switched_off_where_the_site_says_so() {
    for (name, dialplan, records) in [
        ("no word of it", "Answer(0)", 0),
        ("asked for", "Set(CDR_PROP(disable)=0)\n same => n,Answer(0)", 1),
    ] {
        let mut world = world(&format!("[default]\nexten => 1,1,{dialplan}\n"));
        world.settings(|settings| settings.cdr_on_request = true);
        call(&mut world, "1", &[]);
        world.run();
        assert_eq!(world.cdrs.len(), records, "{name}");
    }
}

#[test]
fn a_begun_second_is_billed_whole_where_the_site_says_so() {
    for (name, up, wait, billed) in
        [("cut", false, "2.3", 2), ("rounded up", true, "2.3", 3), ("whole", true, "2", 2)]
    {
        let mut world = world(&format!("[default]\nexten => 1,1,Answer(0)\n same => n,Wait({wait})\n"));
        world.settings(|settings| settings.cdr_initiated_seconds = up);
        call(&mut world, "1", &[]);
        world.run();
        assert_eq!(world.cdrs[0].billed, billed, "{name}: {:?}", world.cdrs[0]);
    }
}

#[test]
fn endbeforehexten_ends_the_record_before_h() {
    let mut world = world(
        "[default]\nexten => 1,1,Answer(0)\n same => n,Wait(3)\nexten => h,1,Set(CDR(userfield)=late)\n",
    );
    world.settings(|settings| settings.cdr_end_before_h = true);
    call(&mut world, "1", &[]);
    world.run();
    assert_eq!(world.cdrs.len(), 1);
    assert_eq!((world.cdrs[0].user_field.as_str(), world.cdrs[0].last_app.as_str()), ("", "Wait"));
}

#[test]
fn a_handle_on_a_channel_without_a_dialplan_runs_routines_and_returns_to_nothing() {
    let mut world = world(
        "[sub]\nexten => s,1,NoOp(${ARG1} ${CHANNEL})\n same => n,Set(GOSUB_RESULT=ABORT)\n same => n,Return()\n",
    );
    world.watch();
    let id = world.incoming("6002", "<6002>", common::location("default", "9"), &[]);
    let shard = world.shard.clone();
    let handle = apps::Call::new(call::Chan::new(shard.clone(), id));
    let inner = handle.clone();
    assert!(shard.spawn(Some(id), async move {
        let outcome = inner.gosub("sub,s,1(hello)").await;
        inner.set("outcome", &format!("{outcome:?}"));
    }));
    world.run();
    assert_eq!(noted(&world), ["hello SIM/6002-00000000"]);
    assert_eq!(handle.get("GOSUB_RESULT").as_deref(), Some("ABORT"));
    assert_eq!(handle.get("outcome").as_deref(), Some("Ok(Continue)"));
    assert_eq!(handle.get("EXTEN").as_deref(), Some("9"));
}

#[test]
fn how_dialled_channels_ended_can_be_asked() {
    let mut world = world(
        "[default]\nexten => 1,1,Wait(1)\n same => n,NoOp(${HANGUPCAUSE_KEYS()} ${HANGUPCAUSE(SIM/x-1,tech)} ${HANGUPCAUSE(SIM/x-1,ast)} ${HANGUPCAUSE})\n",
    );
    world.watch();
    let id = call(&mut world, "1", &[]);
    let handle = apps::Call::new(call::Chan::new(world.shard.clone(), id));
    handle.note_hangup("SIM/x-1", Cause::USER_BUSY, "SIP 486 Busy Here");
    world.run();
    assert_eq!(noted(&world), ["SIM/x-1 SIP 486 Busy Here User busy 17"]);
}

#[test]
fn check_names_dial_options_and_modules_that_are_switched_off() {
    let (program, _) = sim::parse_dialplan(
        "[default]\nexten => 1,1,Dial(SIM/1,20,jg${X})\n same => n,Dial(SIM/1,20,U(tj)g)\n same => n,Verbose(y)\n",
        &apps::table::tables(),
    );
    let disabled = ["app_verbose".to_owned()].into();
    let concerns = apps::check(&program, &disabled);
    let lines: Vec<String> = concerns.iter().map(|concern| concern.message.clone()).collect();
    for (line, expected) in lines.iter().zip(["Dial option 'j'", "module app_verbose"]) {
        assert!(line.contains(expected), "{line}");
    }
    assert_eq!(lines.len(), 2, "{lines:?}");
}

#[test]
fn log_and_verbose_write_to_their_levels() {
    let mut world = world(
        "[default]\nexten => 1,1,Log(WARNING,careful, now)\n same => n,Verbose(2,two)\n same => n,Verbose(plain)\n same => n,Log(LOUD,x)\n",
    );
    world.verbose(2);
    call(&mut world, "1", &[]);
    world.run();
    assert_eq!(world.log(Level::Warning), ["careful, now"]);
    assert_eq!(world.log(Level::Verbose(2)), ["two"]);
    assert_eq!(world.log(Level::Verbose(0)), ["plain"]);
    assert!(world.log(Level::Error).iter().any(|line| line.contains("unknown log level 'LOUD'")));
}

/// A machine with one file and one variable of the environment besides what every machine has.
struct OneFile;

impl call::Outside for OneFile {
    fn environment(&self, name: &str) -> Option<String> {
        ["ASTETCDIR", "SECRET"].contains(&name).then(|| format!("value of {name}"))
    }
    fn file_facts(&self, path: &str) -> Option<dialplan::FileFacts> {
        (path == "/etc/one").then_some(dialplan::FileFacts {
            directory: false,
            file: true,
            size: 12,
            mode: 0o640,
            modified: 3,
            accessed: 2,
            changed: 1,
        })
    }
    fn file_text(&self, path: &str, most: usize) -> Option<String> {
        (path == "/etc/one" && most == 64 * 1024).then(|| "twelve bytes".to_owned())
    }
}

#[test]
fn a_dialplan_sees_files_and_the_environment() {
    let read =
        "${ENV(ASTETCDIR)}|${ENV(SECRET)}|${STAT(e,/etc/one)}${STAT(s,/etc/one)}|${FILE(/etc/one,0,6)}";
    let mut world = world(&format!("[default]\nexten => 1,1,NoOp({read})\n"));
    world.shard.core.borrow_mut().services.outside = Box::new(OneFile);
    world.watch();
    call(&mut world, "1", &[]);
    world.run();
    assert_eq!(noted(&world), ["value of ASTETCDIR|value of SECRET|112|twelve"]);
}

/// A DNS that knows one number, and is slow about it: what is known, and what has been asked for.
#[derive(Clone, Default)]
struct SlowDns {
    known: std::rc::Rc<std::cell::RefCell<Option<call::DnsAnswer>>>,
    asked: std::rc::Rc<std::cell::RefCell<Vec<String>>>,
}

impl call::Outside for SlowDns {
    fn dns(&self, question: &base::dns::Question) -> call::DnsAnswer {
        self.asked.borrow_mut().push(question.name.clone());
        self.known.borrow().clone().unwrap_or(call::DnsAnswer::Loading)
    }
}

fn naptr_records() -> call::DnsAnswer {
    let record = |order, service: &str, regexp: &str| base::dns::Naptr {
        order,
        preference: 10,
        flags: "u".to_owned(),
        service: service.to_owned(),
        regexp: regexp.to_owned(),
        replacement: String::new(),
    };
    let records = [
        record(20, "E2U+sip", r"!^\+49(.*)$!sip:\1@second.example!"),
        record(10, "E2U+sip", r"!^\+49(.*)$!sip:\1@first.example!"),
        record(30, "E2U+tel", "!^.*$!tel:+49999!"),
    ];
    call::DnsAnswer::Ready(base::dns::Records::Naptr(records.into()))
}

#[test]
fn rfc6116_a_step_waits_for_the_dns_and_others_do_not() {
    let dns = SlowDns::default();
    let mut world = world(
        "[default]\nexten => _+X.,1,Set(count=${EnumLookup(${EXTEN},ALL,c)})\n same => n,Dial(SIM/${ENUMLOOKUP(${EXTEN},sip,,2)},5)\n same => n,NoOp(${count} ${ENUMLOOKUP(${EXTEN})})\nexten => 1,1,NoOp(at once)\n",
    );
    world.shard.core.borrow_mut().services.outside = Box::new(dns.clone());
    world.watch();
    call(&mut world, "+4930", &[]);
    let start = world.now();
    world.run_until(start + Duration::from_millis(900));
    call(&mut world, "1", &[]);
    world.run_until(start + Duration::from_secs(1));
    assert_eq!(noted(&world), ["at once"]);
    *dns.known.borrow_mut() = Some(naptr_records());
    world.shard.core.borrow_mut().outside_changed();
    world.run();
    assert_eq!(noted(&world), ["at once", "3 30@first.example"]);
    let dialled = world.notices.iter().any(|notice| {
        matches!(notice, call::Notice::NewExten { application: "Dial", data, .. } if data == "SIM/30@second.example,5")
    });
    assert!(dialled, "{:?}", world.notices);
    assert!(dns.asked.borrow().iter().all(|name| name == "0.3.9.4.e164.arpa"), "{:?}", dns.asked);
}

#[test]
fn a_dns_that_says_nothing_holds_a_call_for_five_seconds_and_a_hang_up_ends_the_wait() {
    for (hang_up, expected) in
        [(&[][..], vec!["-1[]"]), (&[(2_000, Act::Hangup(Cause::NORMAL_CLEARING))][..], vec!["h -1"])]
    {
        let dns = SlowDns::default();
        let mut world = world(
            "[default]\nexten => 1,1,NoOp(${ENUMLOOKUP(+49,sip,c)}[${ENUMLOOKUP(+49)}])\nexten => h,1,NoOp(h ${ENUMLOOKUP(+49,ALL,c)})\n",
        );
        world.shard.core.borrow_mut().services.outside = Box::new(dns);
        world.watch();
        let start = world.now();
        call(&mut world, "1", hang_up);
        world.run();
        let noted = noted(&world);
        assert_eq!(noted[..expected.len()], expected, "{noted:?}");
        let seconds = (world.now() - start).as_secs();
        assert!((5..=11).contains(&seconds), "{seconds}");
        assert!(!world.log(Level::Warning).is_empty(), "why there is no answer is in the log");
    }
}

#[test]
fn the_quality_of_the_audio_can_be_asked_during_the_call_and_after_it() {
    let mut world = world(
        "[default]\nexten => 1,1,Answer()\n same => n,NoOp(${CHANNEL(rtcp,rxcount)} ${CHANNEL(rtcp,rtt,audio)} ${Channel(rtpqos,audio,local_ssrc)})\n same => n,NoOp(${CHANNEL(rtcp,all)})\n same => n,NoOp(${CHANNEL(rtcp,maxrtt)} ${CHANNEL(rtcp,remote_maxjitter)})\n same => n,Wait(1)\nexten => 2,1,Answer()\n same => n,Hangup()\nexten => h,1,NoOp(${RTPAUDIOQOS})\n same => n,NoOp(${RTPAUDIOQOSJITTER}${RTPAUDIOQOSRTT}${RTPAUDIOQOSLOSS}${RTPAUDIOQOSMES})\n",
    );
    world.watch();
    world.stats(base::StreamStats {
        sent_packets: 50,
        received_packets: 40,
        lost_packets: 3,
        peer_lost_packets: 4,
        jitter_us: 1_500,
        peer_jitter_us: 2_500,
        round_trip_us: 20_000,
        ssrc: 7,
        peer_ssrc: 9,
        ..base::StreamStats::default()
    });
    // The variables are set when the phone hangs up, and when a channel goes that we end: after `h`.
    call(&mut world, "1", &[(500, Act::Hangup(Cause::NORMAL_CLEARING))]);
    world.run();
    let all = "ssrc=7;themssrc=9;lp=3;rxjitter=0.002500;rxcount=40;txjitter=0.001500;txcount=50;rlp=4;rtt=0.020000;\
               rxmes=0.000000;txmes=0.000000";
    let none = |blanks: &str, what: &str| {
        ["min", "max", "avg", "stdev"].map(|part| format!("{blanks}{part}{what}=000.000000;")).concat()
    };
    let spreads = [
        none("", "rxjitter") + &none("", "txjitter"),
        none("     ", "rtt"),
        none("  ", "rxlost") + &none("  ", "txlost"),
        none("   ", "rxmes") + &none("   ", "txmes"),
    ];
    assert_eq!(noted(&world), ["40 0.020000 7", all, "0.000000 0.000000", all, &spreads.concat()]);
    call(&mut world, "2", &[]);
    world.run();
    assert_eq!(noted(&world)[5..], ["", ""]);
}

/// The scripts that were started, each with its values.
fn shells(world: &sim::World) -> Vec<String> {
    let line = |want: &call::LinkWant| match want {
        call::LinkWant::Program { path, args, .. } if path == "/bin/sh" => args[1..].join("|"),
        other => panic!("{other:?}"),
    };
    world.wanted_links().iter().map(line).collect()
}

#[test]
fn a_command_gets_values_as_arguments_and_its_end_is_told() {
    for (step, exit, started, status) in [
        ("System(echo \"${CALLERID(name)}\" > /tmp/x)", 0, "echo \"${1}\" > /tmp/x|sh|Alice", "SUCCESS"),
        ("TrySystem(rm ${X})", 1, "rm ${1:+\"${1}\"}|sh|a|b", "APPERROR"),
        ("System(nosuch)", 127, "nosuch|sh", "FAILURE"),
        ("ExecIf($[1]?System(rm ${X}):NoOp(a))", 0, "rm ${1:+\"${1}\"}|sh|a|b", "SUCCESS"),
        ("ExecIf($[0]?System(rm ${P}):System(ls ${P}))", 0, "ls ${1:+\"${1}\"}|sh|):System(id", "SUCCESS"),
    ] {
        let plan = format!(
            "[default]\nexten => 1,1,Set(X=a|b)\n same => n,Set(P=):System(id)\n same => n,{step}\n same => n,NoOp(${{SYSTEMSTATUS}})\n"
        );
        for watched in [true, false] {
            let mut world = world(&plan);
            world.watch();
            world.verbose(if watched { 3 } else { 0 });
            world.script("/bin/sh", sim::Script { exit, ..sim::Script::of(&["what it writes"]) });
            call(&mut world, "1", &[]);
            world.run();
            assert_eq!(shells(&world), [format!("exec </dev/null >/dev/null\n{started}")], "{step}");
            let told = world.notices.iter().filter_map(|notice| match notice {
                call::Notice::NewExten { application: "NoOp", data, .. } => Some(data.as_str()),
                _ => None,
            });
            assert_eq!(told.collect::<Vec<_>>(), [status], "{step}: {:?}", warnings(&world));
        }
    }
}

#[test]
fn no_text_that_was_put_together_elsewhere_is_a_command() {
    for step in [
        "Exec(System(ls))",
        "TryExec(System(ls))",
        "ExecIf(${ALL}?NoOp(a))",
        "Exec(${X})",
        "Set(r=${EVAL(${Y})})",
        "NoOp(SHELL(ls))",
        "System(eval ${Z})",
    ] {
        let plan = format!(
            "[default]\nexten => 1,1,Set(ALL=1?System(ls):)\n same => n,Set(X=System(ls))\n same => n,Set(Y=\\$\\{{SHELL(ls)\\}})\n \
             same => n,Set(Z=x\\;y)\n same => n,{step}\n"
        );
        let mut world = world(&plan);
        world.script("/bin/sh", sim::Script::of(&[]));
        call(&mut world, "1", &[]);
        world.run();
        assert_eq!(shells(&world), Vec::<String>::new(), "{step}");
    }
}

#[test]
fn shell_gives_what_its_command_writes() {
    let plan = "[default]\nexten => 1,1,Set(a=${SHELL(echo ${CALLERID(num)}):0:-1})\n same => n,NoOp(${a})\n";
    let mut world = world(plan);
    world.watch();
    world.script("/bin/sh", sim::Script::of(&["one two"]));
    let id = call(&mut world, "1", &[]);
    let handle = apps::Call::new(call::Chan::new(world.shard.clone(), id));
    assert_eq!(handle.read("SHELL(id)"), "", "a manager's Getvar");
    world.run();
    assert_eq!(noted(&world), ["one two"]);
    assert_eq!(shells(&world), ["exec </dev/null\necho ${1:+\"${1}\"}|sh|6001"]);
}

#[test]
fn a_command_that_does_not_end_holds_nobody_up_for_ever() {
    let plan =
        "[default]\nexten => 1,1,System(sleep 1d)\n same => n,NoOp(${SYSTEMSTATUS})\nexten => h,1,NoOp(h)\n";
    for (acts, expected) in [
        (&[][..], ["FAILURE", "h"].as_slice()),
        (&[(2000, sim::Act::Hangup(Cause::NORMAL_CLEARING))], &["h"]),
    ] {
        let mut world = world(plan);
        world.watch();
        world.script("/bin/sh", sim::Script { stays: true, ..sim::Script::of(&[]) });
        call(&mut world, "1", acts);
        world.run();
        assert_eq!(noted(&world), expected);
        common::at_rest(&world, "sleep");
    }
}

fn srv_records() -> call::DnsAnswer {
    let record = |priority, weight, port, target: &str| base::dns::Srv {
        priority,
        weight,
        port,
        target: target.to_owned(),
    };
    let records = [record(20, 0, 5061, "b.example"), record(10, 5, 5060, "a.example")];
    call::DnsAnswer::Ready(base::dns::Records::Srv(records.into()))
}

#[test]
fn rfc2782_who_serves_a_service_can_be_asked_in_the_order_of_trial() {
    let query = "Set(ID=${SRVQUERY(_sip._udp.Example.com)})";
    for (name, before, read, expected, asked) in [
        ("how many", query, "${SRVRESULT(${ID},getnum)}", "2", 1),
        (
            "each field",
            query,
            "${SRVRESULT(${ID},1,host)} ${SRVRESULT(${ID},1,port)} ${SRVRESULT(${ID},1,priority)} \
             ${SRVRESULT(${ID},1,weight)} ${SRVRESULT(${ID},2)}",
            "a.example 5060 10 5 b.example",
            1,
        ),
        ("without a query it is asked", "NoOp()", "${SRVRESULT(_sip._udp.example.com,1)}", "a.example", 1),
        ("again", query, "${SRVRESULT(${SRVQUERY(_sip._udp.example.com)},2,port)}", "5061", 2),
        (
            "no such result",
            query,
            "[${SRVRESULT(${ID},3)}${SRVRESULT(${ID},0)}${SRVRESULT(${ID},x)}]",
            "[]",
            1,
        ),
        ("no such field", query, "[${SRVRESULT(${ID},1,colour)}]", "[]", 1),
        ("what is no name", "Set(ID=${SRVQUERY(a..b)})", "[${ID}${SRVRESULT(x y,1)}]", "[]", 0),
    ] {
        let dns = SlowDns::default();
        *dns.known.borrow_mut() = Some(srv_records());
        let mut world = world(&format!(
            "[default]\nexten => 1,1,{before}\n same => n,Set(x={read})\n same => n,NoOp(${{x}})\n"
        ));
        world.shard.core.borrow_mut().services.outside = Box::new(dns.clone());
        world.watch();
        call(&mut world, "1", &[]);
        world.run();
        assert_eq!(noted(&world).last().map(String::as_str), Some(expected), "{name}");
        assert_eq!(dns.asked.borrow().len(), asked, "{name}");
        assert_eq!(
            !world.log(Level::Warning).is_empty(),
            expected == "[]",
            "{name}: {:?}",
            world.log(Level::Warning)
        );
    }
}

#[test]
fn a_service_of_which_the_dns_says_nothing_has_no_id() {
    let dns = SlowDns::default();
    let mut world =
        world("[default]\nexten => 1,1,Set(x=[${SRVQUERY(_sip._udp.example.com)}])\n same => n,NoOp(${x})\n");
    world.shard.core.borrow_mut().services.outside = Box::new(dns);
    world.watch();
    let start = world.now();
    call(&mut world, "1", &[]);
    world.run();
    assert_eq!(noted(&world), ["[]"]);
    assert!(world.now() - start >= Duration::from_secs(5), "it was waited for");
    assert!(world.log(Level::Warning).iter().any(|line| line.contains("gave no answer")));
}

/// Files by their full names.
struct Disk(&'static [(&'static str, &'static str)]);

impl call::Outside for Disk {
    fn file_facts(&self, path: &str) -> Option<dialplan::FileFacts> {
        let (_, text) = self.0.iter().find(|(name, _)| *name == path)?;
        Some(dialplan::FileFacts {
            directory: false,
            file: true,
            size: text.len() as u64,
            mode: 0o644,
            modified: 0,
            accessed: 0,
            changed: 0,
        })
    }
    fn file_text(&self, path: &str, most: usize) -> Option<String> {
        let (_, text) = self.0.iter().find(|(name, _)| *name == path)?;
        Some(text.chars().take(most).collect())
    }
}

const FILES: &[(&str, &str)] = &[
    (
        "/etc/strowger/shop.conf",
        "[base](!)\nopen=no\n[door](base)\nname=red\nname=blue\nname = green\nopen=yes\n#include more.conf\n",
    ),
    ("/etc/strowger/more.conf", "[more]\ncolour=white\n"),
    ("/else/a.conf", "[a]\nb=c\n"),
];

#[test]
fn values_of_configuration_files_can_be_read_and_nothing_above_their_folder() {
    for (read, expected, why) in [
        ("shop.conf,door,name", "red", ""),
        ("shop.conf,DOOR,Name,0", "red", ""),
        ("shop.conf,door,name,2", "green", ""),
        ("shop.conf,door,name,-1", "green", ""),
        ("shop.conf,door,open", "no", ""),
        ("shop.conf,door,open,-1", "yes", ""),
        ("shop.conf,more,colour", "white", ""),
        ("/else/a.conf,a,b", "c", ""),
        ("shop.conf,door,name,3", "", "no such 'name'"),
        ("shop.conf,door,name,-2", "", "neither -1 nor 0"),
        ("shop.conf,door,name,last", "", "is no number"),
        ("shop.conf,base,open", "", "no such 'open'"),
        ("shop.conf,door", "", "name of the variable is missing"),
        ("shop.conf,,name", "", "the category is missing"),
        (",door,name", "", "the file is missing"),
        ("nosuch.conf,a,b", "", "cannot be read"),
        ("../else/a.conf,a,b", "", "leads out"),
    ] {
        let mut world = world(&format!(
            "[default]\nexten => 1,1,Set(x=${{AST_CONFIG({read})}})\n same => n,NoOp(${{x}})\n"
        ));
        {
            let core = &mut *world.shard.core.borrow_mut();
            core.services.outside = Box::new(Disk(FILES));
            let directories = call::Directories([("etc".to_owned(), "/etc/strowger".to_owned())].into());
            core.settings = call::Settings { directories, ..(*core.settings).clone() }.into();
        }
        world.watch();
        call(&mut world, "1", &[]);
        world.run();
        assert_eq!(noted(&world), [expected], "{read}");
        let said = world.log(Level::Warning);
        assert!(
            if why.is_empty() { said.is_empty() } else { said.iter().any(|line| line.contains(why)) },
            "{read}: {said:?}"
        );
    }
}
