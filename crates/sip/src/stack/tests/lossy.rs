//! Many calls over a bad network: every one is completed or fails for a reason, and nothing is left.

use super::*;
use std::collections::BTreeMap;

/// What a call of the simulation has come to, seen from the caller.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fate {
    answered: u32,
    failed: u32,
    ended: u32,
}

/// What each call wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    Talk,
    Busy,
    Cancel,
    Hold,
}

const PLANS: [Plan; 4] = [Plan::Talk, Plan::Busy, Plan::Cancel, Plan::Hold];

struct Simulation {
    world: World,
    calls: BTreeMap<DialogId, (Plan, Fate)>,
    /// When somebody does something: moment, side, dialog.
    agenda: BTreeMap<(Instant, usize, DialogId), Deed>,
    plans: BTreeMap<Vec<u8>, Plan>,
    called_ended: BTreeMap<DialogId, u32>,
}

#[derive(Debug, Clone, Copy)]
enum Deed {
    Answer(u16),
    Cancel,
    Reinvite,
    Bye,
}

impl Simulation {
    fn start(&mut self, plan: Plan) {
        let subject = format!("{plan:?}");
        let headers = [("Subject", subject.as_str())];
        let request = Outgoing { headers: &headers, ..outgoing(CONTACTS[0], NAMES[1]) };
        let (dialog, events) =
            self.world.with(0, |stack, now, out| stack.invite(&request, now, out).unwrap());
        assert!(events.is_empty());
        self.plans.insert(subject.into_bytes(), plan);
        self.calls.insert(dialog, (plan, Fate::default()));
        if plan == Plan::Cancel {
            self.agenda.insert((self.world.now + Duration::from_millis(700), 0, dialog), Deed::Cancel);
        }
    }

    fn later(&mut self, millis: u64, side: usize, dialog: DialogId, deed: Deed) {
        self.agenda.insert((self.world.now + Duration::from_millis(millis), side, dialog), deed);
    }

    fn do_due(&mut self) {
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= self.world.now) {
            let ((_, side, dialog), deed) = entry.remove_entry();
            // The dialog may have ended in the meantime: then there is nothing to do.
            let (_, events) = self.world.with(side, |stack, now, out| match deed {
                Deed::Answer(status) => stack.answer(dialog, &Answer::new(status), now, out),
                Deed::Cancel => stack.hang_up(dialog, 0, &[], now, out),
                Deed::Reinvite => stack.reinvite(dialog, &[], None, now, out),
                Deed::Bye => stack.bye(dialog, &[], now, out),
            });
            events.into_iter().for_each(|event| self.happened(side, event));
        }
    }

    fn happened(&mut self, side: usize, event: Event) {
        match event {
            Event::Invite(incoming) => {
                let subject = incoming.message.view().header(HeaderName::Subject).unwrap().to_vec();
                let accept = Accept { contact: CONTACTS[1], symmetric: false, unproved: false };
                let dialog =
                    self.world.with(1, |stack, now, _| stack.accept_invite(&incoming, &accept, now)).0;
                let Ok(dialog) = dialog else { return };
                self.called_ended.insert(dialog, 0);
                match self.plans[&subject] {
                    Plan::Talk | Plan::Hold => {
                        self.later(100, 1, dialog, Deed::Answer(180));
                        self.later(500, 1, dialog, Deed::Answer(200));
                    }
                    Plan::Busy => self.later(50, 1, dialog, Deed::Answer(486)),
                    Plan::Cancel => {
                        self.later(100, 1, dialog, Deed::Answer(180));
                        // Sometimes the answer crosses the CANCEL.
                        let crossing = 600 + self.world.random.below(200);
                        self.later(crossing, 1, dialog, Deed::Answer(200));
                    }
                }
            }
            Event::InDialog { request, .. } => {
                self.world.with(side, |stack, now, out| {
                    stack.respond(request, &Answer::new(200), now, out).unwrap()
                });
            }
            Event::Answered { dialog, .. } => {
                self.world.with(side, |stack, _, out| stack.ack(dialog, None, out).unwrap());
                if side == 0 {
                    let (plan, fate) = self.calls.get_mut(&dialog).unwrap();
                    fate.answered += 1;
                    let plan = *plan;
                    if plan == Plan::Hold && self.calls[&dialog].1.answered < 3 {
                        self.later(2000, 0, dialog, Deed::Reinvite);
                    } else {
                        self.later(3000, 0, dialog, Deed::Bye);
                    }
                }
            }
            Event::Failed { dialog, .. } if side == 0 => self.calls.get_mut(&dialog).unwrap().1.failed += 1,
            Event::Ended { dialog, .. } if side == 0 => self.calls.get_mut(&dialog).unwrap().1.ended += 1,
            Event::Ended { dialog, .. } | Event::Canceled { dialog, .. } => {
                *self.called_ended.get_mut(&dialog).unwrap() += 1;
            }
            // The ACK before it is still on its way (§14.2), or it met nobody.
            Event::ReinviteFailed { dialog, .. } => self.later(3000, side, dialog, Deed::Bye),
            Event::Failed { .. } => panic!("{side} {event:?}"),
            _ => {}
        }
    }

    fn run(&mut self, until: Instant) {
        loop {
            let deed = self.agenda.first_key_value().map_or(until, |((at, ..), _)| *at).min(until);
            match self.world.step(deed) {
                Some(events) => events.into_iter().for_each(|(side, event)| self.happened(side, event)),
                None if deed == until => break,
                None => {
                    self.world.now = self.world.now.max(deed);
                    self.do_due();
                }
            }
        }
        self.world.now = until;
    }
}

fn simulate(weather: Weather, seed: u128, calls: usize) -> (usize, usize) {
    let world = World { keep_log: false, ..World::new(weather, seed) };
    let mut simulation = Simulation {
        world,
        calls: BTreeMap::new(),
        agenda: BTreeMap::new(),
        plans: BTreeMap::new(),
        called_ended: BTreeMap::new(),
    };
    for n in 0..calls {
        simulation.start(PLANS[n % PLANS.len()]);
        simulation.run(ms(20 * (n as u64 + 1)));
    }
    simulation.run(ms(600_000));
    if weather.lost_percent > 5 {
        // A BYE that no repetition brings over leaves the other side up, a lost refusal leaves it ringing: what session
        // timers and the patience of Dial are for.
        let calling = simulation.calls.keys().map(|dialog| (0, *dialog));
        let called = simulation.called_ended.keys().map(|dialog| (1, *dialog));
        for (side, dialog) in calling.chain(called).collect::<Vec<_>>() {
            simulation.later(0, side, dialog, Deed::Cancel);
        }
        simulation.run(ms(1_000_000));
    }
    for (side, stack) in simulation.world.stacks.iter().enumerate() {
        assert_eq!(stack.load(), Load::default(), "seed {seed}, side {side}");
        assert_eq!(stack.deadline(), None, "seed {seed}, side {side}");
    }
    let mut as_wanted = 0;
    for (plan, fate) in simulation.calls.values() {
        assert_eq!(fate.failed + fate.ended, 1, "seed {seed}: {plan:?} ends once: {fate:?}");
        as_wanted += usize::from(match plan {
            Plan::Talk => fate.answered == 1 && fate.ended == 1,
            Plan::Hold => fate.answered == 3 && fate.ended == 1,
            Plan::Busy | Plan::Cancel => fate.failed == 1 || fate.answered == 1,
        });
    }
    // A refused INVITE has no end but its refusal; every other one is ended once.
    assert!(simulation.called_ended.values().all(|ended| *ended <= 1), "seed {seed}");
    (as_wanted, simulation.calls.len())
}

#[test]
fn rfc3261_17_every_call_goes_as_wanted_over_a_fine_network() {
    assert_eq!(simulate(FINE, 1, 200), (200, 200));
}

#[test]
fn rfc3261_17_calls_survive_loss_doubling_and_reordering() {
    let rough = Weather { lost_percent: 5, doubled_percent: 2, delay_ms: (5, 55) };
    let (mut wanted, mut calls) = (0, 0);
    for seed in 0..4 {
        let (as_wanted, of) = simulate(rough, 1000 * seed, 250);
        (wanted, calls) = (wanted + as_wanted, calls + of);
    }
    assert!(wanted * 1000 >= calls * 999, "{wanted} of {calls}");
}

#[test]
fn rfc3261_17_a_network_that_loses_nearly_everything_leaves_nothing_behind() {
    for (seed, lost_percent) in [(1, 50), (2, 80), (3, 95)] {
        let (_, calls) =
            simulate(Weather { lost_percent, doubled_percent: 2, delay_ms: (5, 200) }, seed, 100);
        assert_eq!(calls, 100);
    }
}
