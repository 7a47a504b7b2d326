//! `Local/…` channels: what one half is told the other hears, and neither outlives the other.

use std::cell::RefCell;
use std::rc::Rc;

use base::{Cause, ChannelId};
use call::charge::{Advice, Item, Rate};
use call::{Chan, ChanState, Indication, PartyId, Reach, Request};
use driver::local::LocalDriver;
use sim::World;

struct Lab {
    world: World,
    local: Rc<RefCell<LocalDriver>>,
    heard: Rc<RefCell<Vec<String>>>,
}

impl Lab {
    fn new() -> Self {
        let world = World::new(dialplan::Program::default());
        let local = Rc::new(RefCell::new(LocalDriver::default()));
        let index = world.shard.add_tech(local.clone());
        local.borrow_mut().set_tech_index(index);
        world.shard.core.borrow_mut().reach =
            |_, _, exten, _| if exten == "nobody" { Reach::None } else { Reach::Whole };
        Self { world, local, heard: Rc::default() }
    }
    fn request(&self, resource: &str) -> Result<ChannelId, Cause> {
        let request = Request {
            resource: resource.to_owned(),
            caller: Some(PartyId::parse("\"Al\" <6001>")),
            variables: vec![("plain".to_owned(), "1".to_owned())],
            ..Request::default()
        };
        self.world.shard.request("Local", &request)
    }
    /// Calls the first half; the second, whose dialplan would begin.
    fn call(&mut self, first: ChannelId) -> ChannelId {
        let shard = &self.world.shard;
        shard.with_tech(first, |tech, core| tech.call(core, first)).unwrap().unwrap();
        let (second, place) = self.local.borrow_mut().take_started().pop().expect("a second half");
        assert_eq!((place.exten.as_str(), place.context.as_str()), ("100", "sales"));
        shard.core.borrow_mut().enter_pbx(second);
        for (id, name) in [(first, "first"), (second, "second")] {
            let (chan, heard) = (Chan::new(shard.clone(), id), self.heard.clone());
            shard.spawn(Some(id), async move {
                while let Ok(event) = chan.event(None).await {
                    heard.borrow_mut().push(format!("{name} {:?}", event.unwrap()));
                }
                let cause = chan.core(|core| core.get(id).and_then(|c| c.hangup)).unwrap_or_default();
                heard.borrow_mut().push(format!("{name} hangs up with {}", cause.0));
                chan.shard().finish(id, cause);
            });
        }
        second
    }
    fn heard(&mut self) -> Vec<String> {
        self.world.run();
        std::mem::take(&mut self.heard.borrow_mut())
    }
    fn left(&self) -> usize {
        self.world.shard.core.borrow().channel_count()
    }
}

#[test]
fn the_halves_hear_each_other_ring_answer_and_hang_up() {
    for second_ends in [true, false] {
        let mut lab = Lab::new();
        let first = lab.request("100@sales/n").unwrap();
        let second = lab.call(first);
        {
            let core = lab.world.shard.core.borrow();
            let (a, b) = (core.get(first).unwrap(), core.get(second).unwrap());
            assert!(a.name.starts_with("Local/100@sales-") && a.name.ends_with(";1"), "{}", a.name);
            assert_eq!(b.name.strip_suffix(";2"), a.name.strip_suffix(";1"));
            assert_eq!((a.state, b.state), (ChanState::Down, ChanState::Ring));
            assert_eq!(b.caller.all(), "\"Al\" <6001>");
            assert_eq!(b.vars.get_name("plain"), Some("1"));
        }
        lab.world.shard.indicate(second, &Indication::Ringing);
        lab.world.shard.answer(second);
        assert_eq!(lab.heard(), ["first Ringing", "first Answered"]);
        let price = Advice::Setup { item: Item::BasicCommunication, rate: Rate::Free };
        let told = lab.world.shard.with_tech(second, |tech, core| tech.advise_charge(core, second, &price));
        assert_eq!(told, Some(Ok(())));
        let told = "first Charge(Setup { item: BasicCommunication, rate: Free })";
        assert_eq!(lab.heard(), [told], "what one half is told of charges the other's side hears");
        let (ends, other) = if second_ends { (second, "first") } else { (first, "second") };
        lab.world.shard.finish(ends, Cause::USER_BUSY);
        let heard = lab.heard();
        assert!(heard.contains(&format!("{other} hangs up with 17")), "{heard:?}");
        assert_eq!(lab.left(), 0);
    }
}

#[test]
fn a_half_that_was_never_called_goes_with_the_other() {
    let lab = Lab::new();
    assert_eq!(lab.request("nobody@sales"), Err(Cause::UNALLOCATED));
    let first = lab.request("100@sales").unwrap();
    assert_eq!(lab.left(), 2);
    lab.world.shard.finish(first, Cause::NORMAL_CLEARING);
    assert_eq!(lab.left(), 0);
}

#[test]
fn an_ear_is_two_answered_halves_of_which_neither_outlives_the_other() {
    for second_ends in [true, false] {
        let lab = Lab::new();
        let on = lab.request("100@sales").unwrap();
        let halves = {
            let core = &mut *lab.world.shard.core.borrow_mut();
            call::Tech::ear(&mut *lab.local.borrow_mut(), core, on, Some("mine".to_owned()))
        };
        let halves = halves.expect("there is room");
        let core = lab.world.shard.core.borrow();
        let [own, ear] = halves.map(|id| core.get(id).unwrap());
        assert!(own.name.starts_with("Snoop/") && *ear.name == *format!("{};2", own.name), "{}", own.name);
        assert_eq!((&*own.uniqueid, &*ear.uniqueid), ("mine", "mine;2"));
        assert_eq!((own.state, ear.state), (ChanState::Up, ChanState::Up));
        drop(core);
        let ends = halves[usize::from(second_ends)];
        lab.world.shard.core.borrow_mut().request_hangup(on, Cause::NORMAL_CLEARING);
        lab.world.shard.finish(ends, Cause::NORMAL_CLEARING);
        let core = lab.world.shard.core.borrow();
        let left = halves.into_iter().filter_map(|id| core.get(id)).all(|half| half.hangup.is_some());
        assert!(left, "the other is told");
    }
}

/// A call is sent on so often and no more (`CHANNEL(max_forwards)`): each channel that is called for another has one less.
#[test]
fn a_dialplan_that_dials_itself_ends() {
    for (name, left, hops, hops_left) in
        [("as the field has it", None, None, None), ("as the dialplan says", Some(3), Some(70), Some(70))]
    {
        let mut lab = Lab::new();
        let mut at = lab.request("100@sales/n").unwrap();
        {
            let mut core = lab.world.shard.core.borrow_mut();
            let caller = core.get_mut(at).unwrap();
            (caller.forwards, caller.hops) = (left.unwrap_or(caller.forwards), hops);
        }
        at = lab.call(at);
        let mut rounds = 0;
        let refused = loop {
            let request =
                Request { resource: "100@sales/n".to_owned(), requestor: Some(at), ..Request::default() };
            let made = lab.world.shard.request("Local", &request);
            match made {
                Ok(first) => at = lab.call(first),
                Err(cause) => break cause,
            }
            rounds += 1;
            assert!(rounds <= 100, "{name}: it goes on for ever");
        };
        assert_eq!(
            (refused, rounds),
            (Cause::NO_ROUTE_DESTINATION, left.unwrap_or(call::FORWARDS)),
            "{name}"
        );
        assert_eq!(lab.world.shard.core.borrow().get(at).unwrap().hops, hops_left, "{name}");
        let log = lab.world.log(call::Level::Warning);
        assert!(log.last().is_some_and(|line| line.contains("max forwards exceeded")), "{name}: {log:?}");
    }
}

#[test]
fn the_second_half_is_called_by_whom_the_first_was_asked_for_also_on_behalf_of_a_channel() {
    for (name, on_behalf, is_told_later, expected) in [
        ("of its own accord", false, false, "6001"),
        ("on behalf of a channel", true, false, "6001"),
        ("told later, which nobody does here", true, true, ""),
    ] {
        let mut lab = Lab::new();
        let requestor = on_behalf.then(|| lab.request("100@sales/n").unwrap());
        let request = Request {
            resource: "100@sales/n".to_owned(),
            requestor,
            caller: Some(PartyId::parse("\"Al\" <6001>")),
            is_told_later,
            ..Request::default()
        };
        let first = lab.world.shard.request("Local", &request).unwrap();
        let second = lab.call(first);
        let core = lab.world.shard.core.borrow();
        assert_eq!(core.get(second).unwrap().caller.number(), expected, "{name}");
    }
}
