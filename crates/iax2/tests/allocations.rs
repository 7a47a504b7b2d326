//! Voice is moved without allocating.

mod world;

use base::FormatId;
use iax2::Out;
use kit::Counting;
use world::{World, address, ms};

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn voice_in_mini_frames_and_trunks_takes_no_memory_either_way() {
    for trunk in [false, true] {
        let mut world = World::two();
        let (caller, _) = world.call(|dial| dial.trunk = trunk);
        // The full frame that says the format, and its acknowledgement.
        world
            .act(0, |machine, now, out| machine.voice(now, caller, FormatId::ULAW, 20, &[7; 160], out))
            .unwrap();
        world.run(ms(200), &mut |_, _, _| {});
        let mut out = Out::default();
        let (mut now, mut allocations) = (world.now, 0);
        let (mut sent, mut heard) = (Vec::with_capacity(4096), 0);
        for round in 0..200 {
            now += ms(20);
            let voice = [7; 160];
            let counted = kit::allocations(|| {
                out.clear();
                sent.clear();
                let machine = &mut world.machines[0];
                machine.voice(now, caller, FormatId::ULAW, 20, &voice, &mut out).unwrap();
                machine.on_timer(now, &mut out);
                out.datagrams().for_each(|(_, bytes)| sent.extend_from_slice(bytes));
                out.clear();
                world.machines[1].on_datagram(now, address(0), &sent, &mut out);
            });
            heard += out.events.len();
            // The first rounds make the buffers.
            allocations += if round < 100 { 0 } else { counted };
        }
        assert_eq!(allocations, 0, "trunk: {trunk}");
        assert!(heard > 150, "{heard} were heard, trunk: {trunk}");
    }
}
