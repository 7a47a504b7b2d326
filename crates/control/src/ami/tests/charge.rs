//! What managers say and read of the costs of calls.

use super::*;

#[test]
fn aoc_messages_are_told_as_events_or_refused_with_what_is_missing() {
    let mut desk = Desk::new("charges");
    desk.login(1, "all");
    desk.act(1, "Events|EventMask: aoc");
    desk.call("alice", "100");
    desk.pass_to(100);
    desk.sent(1);
    type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)]);
    let told: [Row; 8] = [
        (
            "Channel: SIM/alice-00000000|MsgType: D|ChargeType: Currency|CurrencyName: Eurodollars Ltd|CurrencyAmount: 16|CurrencyMultiplier: OneHundredth|AOCBillingId: ReverseCharge|TotalType: SubTotal",
            "AOC-D",
            &[
                ("Type", "Currency"),
                ("BillingID", "Reverse"),
                ("TotalType", "SubTotal"),
                ("Name", "Eurodollar"),
                ("Cost", "16"),
                ("Multiplier", "1/100"),
            ],
        ),
        (
            "ChannelPrefix: sim/al|MsgType: D|ChargeType: FREE",
            "AOC-D",
            &[("Type", "Free"), ("TotalType", "Total")],
        ),
        (
            "ChannelPrefix: SIM/|MsgType: d|ChargeType: Unit|UnitAmount(0): 3|UnitType(0): 2|UnitAmount(1): 4",
            "AOC-D",
            &[
                ("Type", "Units"),
                ("Units", "7"),
                ("NumberOf", "3,4"),
                ("TypeOf", "2,"),
                ("BillingID", "NotAvailable"),
            ],
        ),
        (
            "ChannelPrefix: SIM/|MsgType: E|ChargeType: NA|ChargingAssociationId: -7",
            "AOC-E",
            &[("Type", "NotAvailable"), ("ChargingAssociation", "ID"), ("ID", "-7")],
        ),
        (
            "ChannelPrefix: SIM/|MsgType: E|ChargeType: FREE|ChargingAssociationNumber: 555|ChargingAssociationPlan: 1|AOCBillingId: CallTransfer",
            "AOC-E",
            &[("Type", "Free"), ("ChargingAssociation", "Number"), ("Number", "555"), ("Plan", "1")],
        ),
        (
            "ChannelPrefix: SIM/|MsgType: S|ChargedItem: BasicCommunication|RateType: Duration|CurrencyName: EUR|CurrencyAmount: 2|CurrencyMultiplier: One|Time: 1|TimeScale: Minute|Granularity: 6|GranularityTimeScale: Second|ChargingType: StepFunction",
            "AOC-S",
            &[
                ("Chargeable", "BasicCommunication"),
                ("RateType", "Duration"),
                ("Cost", "2"),
                ("Length", "1"),
                ("Scale", "Minute"),
                ("Granularity", "6"),
                ("ChargingType", "StepFunction"),
            ],
        ),
        (
            "ChannelPrefix: SIM/|MsgType: S|ChargedItem: CallSetup|RateType: Volume|CurrencyAmount: 2|CurrencyMultiplier: Thousand|VolumeUnit: Segment",
            "AOC-S",
            &[("RateType", "Volume"), ("Unit", "Segment"), ("Multiplier", "1000")],
        ),
        (
            "ChannelPrefix: SIM/|MsgType: S|ChargedItem: SpecialArrangement|Code: 4",
            "AOC-S",
            &[("Chargeable", "SpecialArrangement"), ("SpecialCode", "4")],
        ),
    ];
    for (act, event, fields) in told {
        let answer = desk.act(1, &format!("AOCMessage|{act}"));
        assert!(answer.contains("Message: AOC Message successfully queued on channel"), "{act}: {answer}");
        desk.pass_to(desk.world.now().as_millis() + 10);
        let text = format!("{answer}{}", desk.sent(1));
        let said = messages(&text).into_iter().find(|m| field(m, "Event") == Some(event));
        let said = said.unwrap_or_else(|| panic!("{act}: {text}"));
        assert_eq!(field(&said, "Channel"), Some("SIM/alice-00000000"));
        // What the console says of the fields of a channel is what is sent.
        let row = crate::ami::EVENTS.iter().find(|row| row.name == event).unwrap();
        let of_channel: Vec<String> =
            row.all_fields().into_iter().take_while(|name| name != "Charge").collect();
        let missing = of_channel.iter().take(14).find(|name| field(&said, name).is_none());
        assert_eq!(missing, None, "{event}");
        for (name, value) in fields {
            assert_eq!(field(&said, name), Some(*value), "{act}: {name}");
        }
    }
    let money = "Channel: SIM/alice-00000000|MsgType: D|ChargeType: Currency";
    for (act, expected) in [
        (
            "MsgType: D|ChargeType: FREE",
            "Channel and PartialChannel are not specified. Specify at least one of these.",
        ),
        ("Channel: SIM/none|MsgType: D|ChargeType: FREE", "No such channel"),
        ("ChannelPrefix: SIM/é|MsgType: D|ChargeType: FREE", "No such channel"),
        ("ChannelPrefix: SIM/|ChargeType: FREE", "MsgType not specified"),
        ("ChannelPrefix: SIM/|MsgType: X|ChargeType: FREE", "Invalid MsgType"),
        ("ChannelPrefix: SIM/|MsgType: D", "ChargeType not specified"),
        ("ChannelPrefix: SIM/|MsgType: D|ChargeType: dear", "ChargeType is one of NA, FREE, Currency, Unit"),
        ("ChannelPrefix: SIM/|MsgType: D|ChargeType: Unit", "UnitAmount(0) not specified"),
        (
            "ChannelPrefix: SIM/|MsgType: D|ChargeType: Unit|UnitAmount(0): 1|UnitType(0): 17",
            "UnitType(0) is 1 to 16",
        ),
        (
            "ChannelPrefix: SIM/|MsgType: D|ChargeType: FREE|AOCBillingId: CallTransfer",
            "AOCBillingId is for MsgType E only",
        ),
        ("ChannelPrefix: SIM/|MsgType: S|ChargedItem: NA|RateType: SpecialCode|Code: 11", "Code is 1 to 10"),
        ("ChannelPrefix: SIM/|MsgType: S|RateType: Free", "ChargedItem not specified"),
    ] {
        let answer = desk.act(1, &format!("AOCMessage|{act}"));
        assert!(answer.starts_with(&format!("Response: Error\r\nMessage: {expected}")), "{act}: {answer}");
    }
    for (rest, expected) in [
        ("CurrencyMultiplier: One", "CurrencyAmount not specified"),
        (
            "CurrencyAmount: 4",
            "ChargeMultiplier unspecified, ChargeMultiplier is required when ChargeType is Currency.",
        ),
        ("CurrencyAmount: -4|CurrencyMultiplier: One", "CurrencyAmount is not a number that it can be"),
    ] {
        let answer = desk.act(1, &format!("AOCMessage|{money}|{rest}"));
        assert!(answer.contains(&format!("Message: {expected}")), "{rest}: {answer}");
    }
}
