//! Finished records as cdr_custom.conf, cdr_sqlite3_custom.conf and the manager's event see them.

mod common;

use apps::records::{Pattern, cdr_field, event_fields};
use common::{run, warnings};
use sim::World;

const DIALPLAN: &str = "[globals]\nSITE=north\n[default]\nexten => 1,1,Wait(1)\n same => n,Answer(0)\n \
                        same => n,Set(CDR(userfield)=say \"hi\", twice)\n same => n,Set(CDR(own)=$[1+1])\n \
                        same => n,Wait(2.25)\n";

fn filled(world: &World, text: &str) -> String {
    Pattern::new(text).fill(&mut world.shard.core.borrow_mut(), &world.cdrs[0], "cdr_custom.conf")
}

#[test]
fn a_pattern_reads_the_record_and_what_needs_no_channel() {
    let world = run(DIALPLAN, "1", &[]);
    for (text, expected) in [
        ("${CDR(src)} ${CDR(dst)}@${CDR(dcontext)}", "6001 1@default"),
        ("${CSV_QUOTE(${CDR(clid)})}", r#""""Alice"" <6001>""#),
        ("${CSV_QUOTE(${CDR(userfield)})}", r#""say ""hi"", twice""#),
        (
            "${CDR(start)} ${CDR(answer)} ${CDR(end)}",
            "2026-11-21 12:00:00 2026-11-21 12:00:01 2026-11-21 12:00:03",
        ),
        ("${CDR(end,u)}", "1795262403.250000"),
        ("${CDR(duration)} ${CDR(billsec)}", "3 2"),
        ("${CDR(duration,f)} ${CDR(billsec,f)}", "3.250000 2.250000"),
        ("${CDR(disposition)} ${CDR(disposition,u)} ${CDR(amaflags)}", "ANSWERED 8 DOCUMENTATION"),
        ("${CDR(lastapp)}(${CDR(lastdata)})", "Wait(2.25)"),
        ("${CDR(nothing)}${CDR(accountcode)}", ""),
        ("${SITE} ${IF($[${CDR(billsec)} > 1]?long:short)}", "north long"),
        ("${TOUPPER(${CDR(channel)})}", "SIM/6001-00000000"),
        ("${STRFTIME(${CDR(start,u)},UTC,%d.%m.%Y)}", "21.11.2026"),
        ("plain, with a comma", "plain, with a comma"),
        ("${CHANNEL(name)}${unset}", ""),
    ] {
        assert_eq!(filled(&world, text), expected, "{text}");
    }
    let told = warnings(&world);
    assert!(told.iter().any(|line| line.contains("there is no channel any more")), "{told:?}");
}

#[test]
fn what_a_caller_says_is_text_and_is_not_expanded() {
    let world = run(
        "[default]\nexten => 1,1,Answer(0)\n same => n,Set(d=$)\n same => n,Set(CDR(userfield)=${d}{SITE}${d}[1+1])\n",
        "1",
        &[],
    );
    assert_eq!(world.cdrs[0].user_field, "${SITE}$[1+1]");
    assert_eq!(filled(&world, "${CDR(userfield)}"), "${SITE}$[1+1]");
}

#[test]
fn the_event_has_the_fields_of_the_record() {
    let world = run(DIALPLAN, "1", &[]);
    let core = world.shard.core.borrow();
    let fields = event_fields(&core, &world.cdrs[0]);
    for (name, expected) in [
        ("Source", "6001"),
        ("Destination", "1"),
        ("StartTime", "2026-11-21 12:00:00"),
        ("AnswerTime", "2026-11-21 12:00:01"),
        ("Duration", "3"),
        ("BillableSeconds", "2"),
        ("Disposition", "ANSWERED"),
        ("AMAFlags", "DOCUMENTATION"),
    ] {
        let found = fields.iter().find(|(field, _)| *field == name);
        assert_eq!(found.map(|(_, value)| value.as_str()), Some(expected), "{name}");
    }
    assert_eq!(cdr_field(&core, &world.cdrs[0], "OWN"), "2");
}
