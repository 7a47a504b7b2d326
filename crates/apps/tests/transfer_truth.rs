//! Call records and channel events of calls that change hands, against a plain model: attended transfers by phones and by
//! keys, parking and pickup, with times from a seed.
//!
//! The model knows who talked to whom from when to when, and nothing of channels and bridges. Beside it stand rules that
//! hold for every call: no moment of a customer is in no record or in two, and each event has its counterpart.
//! `STROWGER_RECORD_SEEDS=100000 cargo test -p apps --test transfer_truth` runs more than the quick set.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use base::{Cause, ChannelId, Random};
use call::features::Features;
use call::parking::LotSettings;
use call::{Cdr, Cel, CelKind, CelSettings, Disposition, Exchange, Notice};
use common::{BYE, at, at_rest, location, phone, world};
use sim::{Act, World};

const SEEDS: u64 = 2_000;
/// The clock on the wall when a world begins.
const BASE: i64 = 1_795_262_400_000_000;
/// How long a parked call waits, milliseconds.
const PARKED: u64 = 10_000;
/// How long Dial rings who parked a call.
const COMES_BACK: u64 = 30_000;
/// The number of a space, three digits of a second each.
const SAYS: u64 = 3_000;

/// Who has asked for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Caller,
    Callee,
}

/// How a question by keys ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Who asked hangs up.
    HangsUp,
    /// By the key for it.
    Key,
    /// After talking to the first again, and to the third once more.
    Swapped,
    /// All talk.
    Three,
    /// The third is left.
    Aborted,
    /// The third did not answer.
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParkedBy {
    Itself,
    Key(Side),
    /// A blind transfer to the lot, by who was called.
    Blind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parked {
    GivesUp,
    Fetched,
    /// And whether who parked it answers.
    ComesBack(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Refer(Side),
    Keys(Side, Asked),
    Park(ParkedBy, Parked),
    Pickup(&'static str),
}

/// Milliseconds from the beginning; each is later than the one before.
#[derive(Debug)]
struct Case {
    kind: Kind,
    before_h: bool,
    /// The first answer.
    answer: u64,
    /// The first key, or the second call.
    asks: u64,
    /// From there to the third party's answer.
    rings: u64,
    /// The transfer, the key that ends a question, the fetching.
    decides: u64,
    /// The two who are left hang up.
    ends: [u64; 2],
}

fn case(seed: u64) -> Case {
    let random = &mut Random::new(seed);
    let mut rest = 0;
    let mut below = |most: u64| random.bits() % most;
    let side = if below(2) == 0 { Side::Caller } else { Side::Callee };
    let kind = match below(4) {
        0 => Kind::Refer(side),
        1 => {
            let all =
                [Asked::HangsUp, Asked::Key, Asked::Swapped, Asked::Three, Asked::Aborted, Asked::Refused];
            Kind::Keys(side, all[below(6) as usize])
        }
        2 => {
            let by = [ParkedBy::Itself, ParkedBy::Key(side), ParkedBy::Blind][below(3) as usize];
            let all = [Parked::GivesUp, Parked::Fetched, Parked::ComesBack(true), Parked::ComesBack(false)];
            Kind::Park(by, all[below(4) as usize])
        }
        _ => Kind::Pickup(["91", "94", "*8"][below(3) as usize]),
    };
    let before_h = below(2) == 0;
    // Whole seconds, and a rest that no other moment has.
    let mut after = |from: u64, most: u64| {
        rest += 1;
        from / 1000 * 1000 + 1000 * (2 + below(most)) + rest
    };
    let answer = after(0, 6);
    let asks = after(answer, 9);
    let rings = after(0, 5);
    let decides = after(asks + rings + 2000, 4);
    let ends = [after(decides + 4000, 30), after(decides + 4000, 30)];
    Case { kind, before_h, answer, asks, rings, decides, ends }
}

/// A record: who, of whom, by what; milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    channel: &'static str,
    party: &'static str,
    app: &'static str,
    start: u64,
    answer: u64,
    end: u64,
}

fn record(
    (channel, party, app): (&'static str, &'static str, &'static str),
    start: u64,
    answer: u64,
    end: u64,
) -> Told {
    Told { channel, party, app, start, answer, end }
}

/// The phones, in the order in which their channels begin.
const A: &str = "6001";
const B: &str = "6002";
/// The asked of a key, who is behind an extension.
const ASKED: &str = "300@default";
const C: &str = "6003";
const PICKER: &str = "6007";
const OUT: &str = "AppDial";

impl Case {
    /// When the last key of the code and the number was pressed.
    fn keyed(&self) -> u64 {
        self.asks + 800
    }
    /// When the transferer's wish was known.
    fn wished(&self) -> u64 {
        match self.kind {
            Kind::Keys(_, Asked::HangsUp) => self.decides,
            _ => self.decides + 200,
        }
    }
    fn end(&self) -> u64 {
        self.ends[0].min(self.ends[1])
    }

    fn records(&self) -> Vec<Told> {
        match self.kind {
            Kind::Refer(side) => self.referred(side),
            Kind::Keys(side, asked) => self.asked(side, asked),
            Kind::Park(by, parked) => self.parked(by, parked),
            Kind::Pickup(_) => vec![
                record((A, B, "Dial"), 0, self.asks, self.asks),
                record((A, PICKER, "Dial"), self.asks, self.asks, self.end()),
            ],
        }
    }
    /// Each of the two calls has its record until the transfer, and who is left one of the rest.
    fn referred(&self, side: Side) -> Vec<Told> {
        let (by, left) = match side {
            Side::Callee => (B, A),
            Side::Caller => (A, B),
        };
        let x = self.decides;
        vec![
            record((A, B, "Dial"), 0, self.answer, x),
            record((by, C, "Dial"), self.asks, self.asks + self.rings, x),
            record((left, C, "Dial"), x, x, self.end()),
        ]
    }
    fn asked(&self, side: Side, asked: Asked) -> Vec<Told> {
        let (keyed, wished, end) = (self.keyed(), self.wished(), self.end());
        let first = |until| record((A, B, "Dial"), 0, self.answer, until);
        let next = |who, whom, from, until| {
            let app = if who == A { "Dial" } else { OUT };
            record((who, whom, app), from, from, until)
        };
        // Who asks, and who waits.
        let (by, held) = match side {
            Side::Callee => (B, A),
            Side::Caller => (A, B),
        };
        let back = self.decides - 800;
        match (asked, side) {
            (Asked::Refused, _) => vec![first(end)],
            (Asked::Aborted, Side::Callee) => vec![first(end), next(B, ASKED, keyed, wished)],
            (Asked::Aborted, Side::Caller) => {
                // Who waits is alone until the sound is over that tells of the end.
                vec![
                    first(keyed),
                    next(A, ASKED, keyed, wished),
                    next(A, B, wished, end),
                    next(B, "", keyed, wished + 1000),
                ]
            }
            (Asked::HangsUp | Asked::Key, _) => {
                vec![first(keyed), next(by, ASKED, keyed, wished), next(held, ASKED, keyed, end)]
            }
            // Talks to the third until `back - 400`, to the first until `back`, and to the third again.
            (Asked::Swapped, Side::Callee) => vec![
                first(back),
                next(B, ASKED, keyed, back - 400),
                next(ASKED, "", back - 400, back),
                next(B, ASKED, back, wished),
                next(A, ASKED, back, end),
            ],
            (Asked::Swapped, Side::Caller) => vec![
                first(keyed),
                next(A, ASKED, keyed, back - 400),
                next(B, "", keyed, back - 400),
                next(A, B, back - 400, back),
                next(ASKED, "", back - 400, back),
                next(A, ASKED, back, wished),
                next(B, ASKED, back, end),
            ],
            (Asked::Three, _) => {
                let [one, two] = self.ends;
                // Who asked is the first to go or stays until one is left with it.
                vec![
                    first(keyed),
                    next(by, ASKED, keyed, wished),
                    next(by, "", wished, one),
                    next(held, "", keyed, one.max(two)),
                    next(ASKED, "", wished, if one < two { two } else { one.min(two) }),
                ]
            }
        }
    }
    fn parked(&self, by: ParkedBy, parked: Parked) -> Vec<Told> {
        let key = match by {
            ParkedBy::Itself => 0,
            ParkedBy::Key(_) => self.asks + 200,
            ParkedBy::Blind => self.asks + 600,
        };
        let (who, mut told) = match by {
            ParkedBy::Itself => (A, vec![]),
            ParkedBy::Blind | ParkedBy::Key(Side::Callee) => {
                (A, vec![record((A, B, "Dial"), 0, self.answer, key)])
            }
            // Who parks hears the number before its call ends.
            ParkedBy::Key(Side::Caller) => {
                let heard = if self.before_h { key } else { key + SAYS };
                (B, vec![record((A, B, "Dial"), 0, self.answer, heard)])
            }
        };
        let parker = match by {
            ParkedBy::Blind | ParkedBy::Key(Side::Callee) => B,
            ParkedBy::Itself | ParkedBy::Key(Side::Caller) => A,
        };
        match parked {
            Parked::GivesUp => told.push(record((who, "", "Park"), key, key, self.gives_up(key))),
            Parked::Fetched => {
                let fetched = self.fetched(key);
                let end = self.end();
                // Who called has a record all the time; who was called has the one of who fetches it.
                told.push(record((who, "", "Park"), key, key, if who == A { end } else { fetched }));
                told.push(record((C, who, "ParkedCall"), fetched, fetched, end));
            }
            Parked::ComesBack(true) => told.push(record((who, parker, "Dial"), key, key, self.end())),
            Parked::ComesBack(false) => {
                told.push(record((who, parker, "Dial"), key, key, self.gives_up_ringing(key)));
            }
        }
        told
    }
    fn gives_up(&self, key: u64) -> u64 {
        key + 4000 + self.rings % 5000
    }
    fn fetched(&self, key: u64) -> u64 {
        key + 3500 + self.rings % 5000
    }
    fn gives_up_ringing(&self, key: u64) -> u64 {
        (key + PARKED + 5000 + self.rings).min(key + PARKED + COMES_BACK)
    }

    /// Whose time is asked about, and from when it is up.
    fn customers(&self) -> Vec<(&'static str, u64)> {
        match self.kind {
            Kind::Refer(Side::Callee) => vec![(A, self.answer), (C, self.asks + self.rings)],
            Kind::Refer(Side::Caller) => vec![(B, self.answer), (C, self.asks + self.rings)],
            Kind::Keys(_, Asked::Refused) => vec![(A, self.answer), (B, self.answer)],
            Kind::Keys(_, Asked::Aborted) => vec![(A, self.answer), (B, self.answer)],
            Kind::Keys(..) => {
                vec![(A, self.answer), (B, self.answer), (ASKED, self.keyed() + self.rings)]
            }
            Kind::Park(ParkedBy::Itself, _) => vec![(A, 0)],
            Kind::Park(ParkedBy::Key(Side::Caller), _) => vec![(B, self.answer)],
            Kind::Park(..) => vec![(A, self.answer)],
            Kind::Pickup(_) => vec![(A, self.asks), (PICKER, self.asks)],
        }
    }

    /// What has to be among the events, in this order: the kind, whose it is, and what its extra holds.
    fn events(&self) -> Vec<(CelKind, &'static str, &'static str)> {
        match self.kind {
            Kind::Refer(side) => {
                let by = if side == Side::Callee { B } else { A };
                let left = if side == Side::Callee { A } else { B };
                vec![
                    (CelKind::AttendedTransfer, by, "transfer_target_channel_name\":\"SIM/6003-"),
                    (CelKind::BridgeEnter, left, ""),
                    (CelKind::BridgeExit, by, ""),
                    (CelKind::BridgeExit, left, ""),
                    (CelKind::LinkedidEnd, "", ""),
                ]
            }
            Kind::Keys(side, asked) => {
                let by = if side == Side::Callee { B } else { A };
                let held = if side == Side::Callee { A } else { B };
                let mut told = vec![(CelKind::BridgeExit, held, ""), (CelKind::ChanStart, ASKED, "")];
                match asked {
                    Asked::Refused => told.push((CelKind::ChanEnd, ASKED, "")),
                    Asked::Aborted => {
                        told.extend([(CelKind::BridgeEnter, ASKED, ""), (CelKind::ChanEnd, ASKED, "")]);
                    }
                    Asked::Three => told.push((CelKind::BridgeEnter, ASKED, "\"softmix\"")),
                    Asked::HangsUp | Asked::Key | Asked::Swapped => told.extend([
                        (CelKind::BridgeEnter, ASKED, ""),
                        (CelKind::AttendedTransfer, by, "transfer_target_channel_name\":\"SIM/300@default-"),
                        (CelKind::ChanEnd, by, ""),
                        (CelKind::BridgeEnter, held, ""),
                    ]),
                }
                told.push((CelKind::LinkedidEnd, "", ""));
                told
            }
            Kind::Park(by, parked) => {
                let who = if by == ParkedBy::Key(Side::Caller) { B } else { A };
                let mut told = vec![(CelKind::ParkStart, who, "\"parking_lot\":\"default\"")];
                if by == ParkedBy::Blind {
                    told.insert(0, (CelKind::BlindTransfer, B, "\"extension\":\"700\""));
                }
                told.push(match parked {
                    Parked::GivesUp => (CelKind::ParkEnd, who, "\"ParkedCallGiveUp\""),
                    Parked::Fetched => {
                        (CelKind::ParkEnd, who, "\"ParkedCallUnparked\",\"retriever\":\"SIM/6003-")
                    }
                    Parked::ComesBack(_) => (CelKind::ParkEnd, who, "\"ParkedCallTimeOut\""),
                });
                told.push((CelKind::LinkedidEnd, "", ""));
                told
            }
            Kind::Pickup(_) => vec![
                (CelKind::Answer, PICKER, ""),
                (CelKind::Pickup, B, "\"pickup_channel\":\"SIM/6007-"),
                (CelKind::Answer, A, ""),
                (CelKind::BridgeEnter, PICKER, ""),
                (CelKind::ChanEnd, B, ""),
                (CelKind::BridgeExit, PICKER, ""),
                (CelKind::LinkedidEnd, "", ""),
            ],
        }
    }
}

// The program.

fn site(case: &Case) -> World {
    let right = match case.kind {
        Kind::Keys(Side::Callee, _) | Kind::Park(ParkedBy::Blind, _) => "t",
        Kind::Keys(Side::Caller, _) => "T",
        Kind::Park(ParkedBy::Key(Side::Callee), _) => "k",
        Kind::Park(ParkedBy::Key(Side::Caller), _) => "K",
        _ => "",
    };
    let lot = LotSettings {
        extension: "700".to_owned(),
        time: Some(Duration::from_millis(PARKED)),
        ..LotSettings::default()
    };
    let mut text = format!(
        "[default]\ninclude => parkedcalls\nexten => 1,1,Dial(SIM/6002,,{right})\nexten => 2,1,Dial(SIM/6003)\n\
         exten => 3,1,Park(default,s)\nexten => 300,1,NoOp()\nexten => 91,1,Pickup(1)\nexten => 94,1,PickupChan(SIM/6002)\n"
    );
    for line in apps::parking::lines([&lot]) {
        let of = line.addition();
        text.push_str(&format!(
            "[{}]\nexten => {},{},{}({})\n",
            of.context, of.exten, of.priority, of.app, of.data
        ));
    }
    let mut world = world(&text);
    if matches!(case.kind, Kind::Keys(..)) {
        world.phones_at_extensions();
    }
    let mut features = Features::default();
    features.map.attended = "*2".to_owned();
    features.map.park = "*7".to_owned();
    let apps = ["dial", "park", "parkedcall", "pickup", "pickupchan"].map(str::to_owned);
    let kept = CelSettings::new(CelKind::ALL.iter().copied(), apps);
    let before_h = case.before_h;
    world.settings(|settings| {
        settings.features = Rc::new(features);
        settings.cel = Some(Rc::new(kept));
        settings.cdr_end_before_h = before_h;
    });
    {
        let core = &mut *world.shard.core.borrow_mut();
        (core.reach, core.parks) = (apps::reach, apps::parking::parks);
        core.parking.configure(vec![lot], false);
    }
    world
}

fn begin(world: &mut World, from: &str, exten: &str, acts: &[(u64, Act)]) -> ChannelId {
    let place = location("default", exten);
    let id = world.incoming(from, &format!("<{from}>"), place.clone(), acts);
    let shard = world.shard.clone();
    assert!(apps::pickup::start(&shard, id, place));
    id
}

fn presses(from: u64, keys: &str) -> Vec<(u64, Act)> {
    (from..).step_by(200).zip(keys.chars().map(Act::Press)).collect()
}

fn of_phone(world: &World, name: &str) -> ChannelId {
    let core = world.shard.core.borrow();
    core.channels().find(|channel| channel.name.starts_with(&format!("SIM/{name}-"))).expect("it is there").id
}

/// A phone of `first` asks for its call to be connected with that of `second`, as a REFER with Replaces does.
fn refer(world: &World, first: ChannelId, second: ChannelId, newcomer: ChannelId) {
    let core = &mut *world.shard.core.borrow_mut();
    let notice = Notice::AttendedTransfer {
        transferer: core.snapshot(first).map(Box::new).expect("it is there"),
        second: core.snapshot(second).map(Box::new),
        transferee: core.snapshot(newcomer).map(Box::new),
        target: apps::transfer::peer(core, second).ok().and_then(|(id, _)| core.snapshot(id)).map(Box::new),
        link: None,
        bridges: [None, None],
        stays: None,
        external: true,
    };
    core.request_exchange(Exchange {
        place: second,
        newcomer,
        leaving: vec![first],
        is_fresh: false,
        mirrored: false,
        answers: false,
        notice: Some(notice),
        cause: Cause::NORMAL_CLEARING,
    });
}

/// A phone whose channel has taken another's place hangs up, when the other has not by then.
fn hangs_up(world: &mut World, who: &str, when: u64) {
    world.run_until(at(when));
    let found = {
        let core = world.shard.core.borrow();
        core.channels().find(|channel| channel.name.starts_with(&format!("SIM/{who}-"))).map(|of| of.id)
    };
    if let Some(id) = found {
        world.hang_up(id);
    }
}

fn happens(case: &Case) -> World {
    let mut world = site(case);
    let [one, two] = case.ends;
    let answers = (case.answer, Act::Answer);
    match case.kind {
        Kind::Refer(side) => {
            world.phone(B, phone(&[answers]));
            world.phone(C, phone(&[(case.rings, Act::Answer), (two - case.asks, BYE)]));
            let a = begin(&mut world, A, "1", &[]);
            world.run_until(at(case.asks));
            let first = if side == Side::Callee { of_phone(&world, B) } else { a };
            let newcomer = if side == Side::Callee { a } else { of_phone(&world, B) };
            let second = begin(&mut world, if side == Side::Callee { B } else { A }, "2", &[]);
            world.run_until(at(case.decides));
            refer(&world, first, second, newcomer);
            hangs_up(&mut world, if side == Side::Callee { A } else { B }, one);
        }
        Kind::Keys(side, asked) => {
            let third = match asked {
                Asked::Refused => vec![(case.rings, BYE)],
                _ => vec![(case.rings, Act::Answer), (two - case.keyed(), BYE)],
            };
            world.phone(ASKED, phone(&third));
            let decision = match asked {
                Asked::HangsUp => vec![(case.decides, BYE)],
                Asked::Key => presses(case.decides, "*2"),
                Asked::Swapped => [
                    presses(case.decides - 1400, "*4"),
                    presses(case.decides - 1000, "*4"),
                    presses(case.decides, "*2"),
                ]
                .concat(),
                Asked::Three => [presses(case.decides, "*3"), vec![(one, BYE)]].concat(),
                Asked::Aborted => [presses(case.decides, "*1"), vec![(one, BYE)]].concat(),
                Asked::Refused => vec![(one, BYE)],
            };
            let asks = [presses(case.asks, "*2300"), decision].concat();
            let held = match asked {
                Asked::Three => one.max(two),
                Asked::Aborted | Asked::Refused => two,
                _ => one,
            };
            let (caller, callee) = match side {
                Side::Caller => (asks, vec![(held, BYE)]),
                Side::Callee => (vec![(held, BYE)], asks),
            };
            world.phone(B, phone(&[vec![answers], callee].concat()));
            begin(&mut world, A, "1", &caller);
        }
        Kind::Park(by, parked) => parks(case, &mut world, by, parked),
        Kind::Pickup(exten) => {
            world.phone(B, phone(&[(1000, Act::Ring)]));
            begin(&mut world, A, "1", &[(one, BYE)]);
            world.run_until(at(case.asks));
            let mut groups = call::pickup::PickupGroups::default();
            groups.call.set_numbers("1").expect("a group");
            groups.pickup.set_numbers("1").expect("a group");
            let groups = Rc::new(groups);
            let ringing = of_phone(&world, B);
            let picker = begin(&mut world, PICKER, exten, &[]);
            for id in [ringing, picker] {
                let core = &mut *world.shard.core.borrow_mut();
                core.get_mut(id).expect("it is there").pickup = groups.clone();
            }
            hangs_up(&mut world, PICKER, two);
        }
    }
    world.run();
    world
}

fn parks(case: &Case, world: &mut World, by: ParkedBy, parked: Parked) {
    let [one, two] = case.ends;
    let (key, keys) = match by {
        ParkedBy::Itself => (0, vec![]),
        ParkedBy::Key(_) => (case.asks + 200, presses(case.asks, "*7")),
        ParkedBy::Blind => (case.asks + 600, presses(case.asks, "#700")),
    };
    let goes = match parked {
        Parked::GivesUp => case.gives_up(key),
        Parked::ComesBack(false) => key + PARKED + 5000 + case.rings,
        Parked::Fetched | Parked::ComesBack(true) => one,
    };
    let again = match parked {
        Parked::ComesBack(true) => vec![(1500, Act::Answer), (two - key - PARKED, BYE)],
        _ => vec![],
    };
    let waits = vec![(goes, BYE)];
    match by {
        ParkedBy::Itself => {
            world.phone(A, phone(&again));
            begin(world, A, "3", &waits);
        }
        ParkedBy::Key(Side::Caller) => {
            world.phone(A, phone(&again));
            world.phone(B, phone(&[vec![(case.answer, Act::Answer)], waits].concat()));
            begin(world, A, "1", &keys);
        }
        ParkedBy::Key(Side::Callee) | ParkedBy::Blind => {
            world.phone(B, phone(&[vec![(case.answer, Act::Answer)], keys].concat()));
            begin(world, A, "1", &waits);
            world.run_until(at(key + 100));
            world.phone(B, phone(&again));
        }
    }
    if parked == Parked::Fetched {
        let fetched = case.fetched(key);
        world.run_until(at(fetched));
        begin(world, C, "701", &[(two - fetched, BYE)]);
    }
}

fn ms(wall: i64) -> u64 {
    u64::try_from((wall - BASE) / 1000).expect("nothing is before the beginning")
}

fn name(channel: &str) -> &'static str {
    let known = [A, B, C, ASKED, PICKER, ""];
    let phone =
        channel.strip_prefix("SIM/").and_then(|rest| rest.rsplit_once('-')).map_or("", |parts| parts.0);
    known.into_iter().find(|known| *known == phone).unwrap_or("another")
}

fn told(record: &Cdr) -> Told {
    let apps = ["Dial", "Park", "ParkedCall", "Pickup", "PickupChan", OUT];
    assert_eq!(record.disposition, Disposition::Answered, "{record:?}");
    let billed = (record.end - record.answer.expect("all are answered")) / 1000;
    assert_eq!(i64::try_from(record.billsec.as_millis()), Ok(billed), "{record:?}");
    assert_eq!(i64::try_from(record.duration.as_millis()), Ok((record.end - record.start) / 1000));
    Told {
        channel: name(&record.channel),
        party: name(&record.dst_channel),
        app: apps.into_iter().find(|app| *app == record.last_app).unwrap_or("another"),
        start: ms(record.start),
        answer: record.answer.map(ms).unwrap_or_default(),
        end: ms(record.end),
    }
}

/// No moment of a customer is in no record; and in its own records none is twice.
fn is_whole(case: &Case, world: &World, why: &str) {
    for (who, from) in case.customers() {
        let channel = world
            .cels
            .iter()
            .find(|event| {
                event.kind == CelKind::Answer && name(&event.channel) == who && ms(event.time) == from
            })
            .map(|event| event.channel.clone())
            .unwrap_or_else(|| panic!("{who} is answered at {from}: {why}"));
        let gone = world
            .cels
            .iter()
            .find(|event| event.kind == CelKind::ChanEnd && event.channel == channel)
            .map(|event| ms(event.time))
            .expect("it ends");
        let interval = |record: &Cdr| (record.answer.map(ms).unwrap_or_default(), ms(record.end));
        let mut own: Vec<_> = world.cdrs.iter().filter(|of| *of.channel == *channel).map(interval).collect();
        own.sort_unstable();
        assert!(
            own.windows(2).all(|two| two[0].1 <= two[1].0),
            "{who} is in one record at a time: {own:?} {why}"
        );
        let mut all = own.clone();
        all.extend(world.cdrs.iter().filter(|of| *of.dst_channel == *channel).map(interval));
        all.sort_unstable();
        let reached = all.iter().fold(from, |to, (begin, end)| if *begin <= to { to.max(*end) } else { to });
        assert_eq!(reached, gone, "{who} from {from}: {all:?} {why}");
        // Who called has records of all its time, and of no more.
        if who == A {
            assert_eq!(own.iter().map(|(begin, end)| end - begin).sum::<u64>(), gone - from, "{who}: {why}");
        }
    }
}

/// Each record can be told from all others, and those of a channel are counted in the order in which they begin.
fn is_numbered(world: &World, why: &str) {
    let mut of: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for record in &world.cdrs {
        of.entry(&record.uniqueid).or_default().push(record.sequence);
    }
    for (uniqueid, sequences) in of {
        assert!(sequences.windows(2).all(|pair| pair[0] < pair[1]), "{uniqueid}: {sequences:?} {why}");
    }
    let linked: BTreeSet<&str> = world.cels.iter().map(|event| &*event.linkedid).collect();
    assert!(world.cdrs.iter().all(|record| linked.contains(&*record.linkedid)), "{why}");
}

/// What holds for the events of any call.
fn events_pair(events: &[Cel], why: &str) {
    assert!(events.windows(2).all(|pair| pair[0].time <= pair[1].time), "time goes on: {why}");
    let last = events.last().map(|event| event.kind);
    assert_eq!(last, Some(CelKind::LinkedidEnd), "the last event is the end of the call: {why}");
    let channels: BTreeSet<&str> = events.iter().map(|event| &*event.channel).collect();
    for channel in channels {
        let own: Vec<&Cel> =
            events.iter().filter(|e| *e.channel == *channel && e.kind != CelKind::LinkedidEnd).collect();
        let kinds: Vec<CelKind> = own.iter().map(|event| event.kind).collect();
        let why = format!("{channel} {kinds:?}: {why}");
        let count = |kind: CelKind| kinds.iter().filter(|of| **of == kind).count();
        assert_eq!(kinds.first(), Some(&CelKind::ChanStart), "{why}");
        assert_eq!(kinds.last_chunk(), Some(&[CelKind::Hangup, CelKind::ChanEnd]), "{why}");
        assert_eq!([CelKind::ChanStart, CelKind::Hangup, CelKind::ChanEnd].map(count), [1, 1, 1], "{why}");
        assert!(count(CelKind::Answer) <= 1, "{why}");
        let mut apps = Vec::new();
        let (mut bridges, mut parked) = (BTreeSet::new(), false);
        for event in own {
            match event.kind {
                CelKind::AppStart => apps.push(event.app),
                CelKind::AppEnd => assert_eq!(apps.pop(), Some(event.app), "{why}"),
                CelKind::BridgeEnter => {
                    let extra = event.extra_json();
                    assert!(bridges.insert(bridge_of(&extra).to_owned()), "is there already: {why}");
                    // Who takes a place enters it before it leaves its own.
                    assert!(bridges.len() <= 2, "{why}");
                }
                CelKind::BridgeExit => {
                    let extra = event.extra_json();
                    assert!(bridges.remove(bridge_of(&extra)), "leaves a bridge that it was not in: {why}");
                }
                CelKind::ParkStart => assert!(!std::mem::replace(&mut parked, true), "{why}"),
                CelKind::ParkEnd => assert!(std::mem::replace(&mut parked, false), "{why}"),
                _ => {}
            }
        }
        assert_eq!((apps.len(), bridges.len(), parked), (0, 0, false), "{why}");
    }
    let linked: BTreeSet<&str> = events.iter().map(|event| &*event.linkedid).collect();
    for id in linked {
        let mut own = events.iter().filter(|event| *event.linkedid == *id);
        let ends = own.clone().filter(|event| event.kind == CelKind::LinkedidEnd).count();
        assert_eq!(ends, 1, "{id} ends once: {why}");
        assert_eq!(own.next_back().map(|event| event.kind), Some(CelKind::LinkedidEnd), "{id}: {why}");
    }
}

/// The bridge that an event tells of.
fn bridge_of(extra: &str) -> &str {
    extra.split('"').nth(3).unwrap_or_default()
}

fn events_are(case: &Case, events: &[Cel], why: &str) {
    let mut rest = events.iter();
    for (kind, who, extra) in case.events() {
        let is_it = |event: &Cel| {
            event.kind == kind
                && (who.is_empty() || name(&event.channel) == who)
                && event.extra_json().contains(extra)
        };
        assert!(rest.any(is_it), "{} {who} {extra} is not there, or not in its place: {why}", kind.name());
    }
    for (kind, wanted) in [
        (CelKind::AttendedTransfer, matches!(case.kind, Kind::Refer(_)) || is_completed(case)),
        (CelKind::Pickup, matches!(case.kind, Kind::Pickup(_))),
        (CelKind::ParkStart, matches!(case.kind, Kind::Park(..))),
    ] {
        let count = events.iter().filter(|event| event.kind == kind).count();
        assert_eq!(count, usize::from(wanted), "{}: {why}", kind.name());
    }
}

fn is_completed(case: &Case) -> bool {
    matches!(case.kind, Kind::Keys(_, Asked::HangsUp | Asked::Key | Asked::Swapped))
}

fn shown(world: &World) -> String {
    let line = |event: &Cel| {
        let Cel { kind, channel, linkedid, app, .. } = event;
        format!("{} {} {channel} {app} {linkedid} {}\n", ms(event.time), kind.name(), event.extra_json())
    };
    world.cels.iter().filter(|event| event.kind != CelKind::Dtmf).map(line).collect()
}

#[test]
fn who_changes_hands_is_in_one_record_at_a_time_and_each_event_has_its_counterpart() {
    let seeds = std::env::var("STROWGER_RECORD_SEEDS").ok().and_then(|text| text.parse().ok());
    let mut kinds = BTreeSet::new();
    for seed in 0..seeds.unwrap_or(SEEDS) {
        let case = case(seed);
        let world = happens(&case);
        at_rest(&world, &format!("seed {seed}"));
        let why = format!("seed {seed}: {case:?}\n{}", shown(&world));
        // Of consultations and parking the records are those of `record_truth` and of the channels' dialplans.
        if matches!(case.kind, Kind::Refer(_) | Kind::Pickup(_)) {
            let mut real: Vec<Told> = world.cdrs.iter().map(told).collect();
            let mut model = case.records();
            real.sort_unstable();
            model.sort_unstable();
            assert_eq!(real, model, "{why}");
            is_whole(&case, &world, &why);
        }
        is_numbered(&world, &why);
        events_pair(&world.cels, &why);
        events_are(&case, &world.cels, &why);
        kinds.insert(format!("{:?}", case.kind));
    }
    // 2 REFERs, 12 by keys, 16 of parking, 3 of pickup.
    assert_eq!(kinds.len(), 33, "{kinds:?}");
}
