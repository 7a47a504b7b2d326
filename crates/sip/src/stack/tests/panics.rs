//! What a panic costs: one dialog, and no other.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn a_panic_names_its_dialog_and_the_others_go_on() {
    let mut world = World::new(FINE, 61);
    let (_, sound) = world.call_up();
    let (caller, guilty) = world.call_up();
    assert!(world.stacks[1].inject_panic(guilty));
    let options = (Method::Options, &[][..], None);
    world.with(0, |stack, now, out| stack.request_inside(caller, options, now, out).unwrap());
    let until = world.now + Duration::from_secs(1);
    let outcome = catch_unwind(AssertUnwindSafe(|| world.run(until)));
    assert!(outcome.is_err(), "the fault was not injected");
    let (blamed, events) = world.with(1, Stack::recover);
    assert_eq!((blamed, events.len()), (Some(guilty), 0));
    world.with(1, |stack, now, out| stack.hang_up(guilty, 500, &[], now, out).unwrap());
    world.with(1, |stack, now, out| stack.bye(sound, &[], now, out).unwrap());
    let mut ended = words(&world.run_out());
    ended.sort();
    // The OPTIONS is sent again and finds a dialog that is ending or gone.
    assert_eq!(ended, ["0 Ended Bye", "0 Ended Bye", "0 Response 481", "1 Ended Local", "1 Ended Local"]);
}

#[test]
fn a_panic_of_a_transaction_is_told_as_its_failure() {
    for (name, side, expected) in [("client", 0, "Failed Transport"), ("server", 1, "Ended PeerLost")] {
        let mut world = World::new(FINE, 62);
        world.call();
        world.stacks[side].layer.blame_one();
        let (blamed, events) = world.with(side, Stack::recover);
        assert_eq!(blamed, None, "{name}: nothing is left to end");
        assert_eq!(events.iter().map(word).collect::<Vec<_>>(), [expected], "{name}");
        assert_eq!(world.stacks[side].load(), Load::default(), "{name}");
    }
}
