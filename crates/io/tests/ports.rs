//! Ports are given back at once.
//!
//! In a process of its own: a child that another test has just forked holds all sockets until it runs its program.

#[path = "backends/world.rs"]
#[allow(dead_code, reason = "the tests of back-ends need more of it")]
mod world;

use std::net::{SocketAddr, UdpSocket};

use base::{Command, Event, StreamId};
use io::media::IoWish;
use world::{Phone, World, await_event, plan};

#[test]
fn ports_are_free_as_soon_as_a_call_or_the_whole_media_plane_has_ended() {
    let world = World::loopback().unwrap();
    for (wish, workers) in [(IoWish::Epoll, 2), (IoWish::Uring, 1), (IoWish::Uring, 2)] {
        for round in 0..3 {
            let mut front = match world.front(wish, workers) {
                Ok(front) => front,
                Err(why) => {
                    println!("skipped: {why}");
                    continue;
                }
            };
            let mut phones: Vec<Phone> = (0..8).map(|number| world.phone(number)).collect();
            let streams: Vec<StreamId> = phones
                .iter_mut()
                .map(|phone| {
                    let mut plan = plan(Some(phone.address()));
                    // With a socket for reports too.
                    plan.rtcp_interval_ms = 5000;
                    let (stream, port) = front.open(world.ip, plan).unwrap();
                    phone.to = SocketAddr::new(world.ip, port);
                    front.command(Command::Echo { stream, on: true });
                    phone.say(round);
                    assert_eq!(phone.hear().1, round);
                    stream
                })
                .collect();
            let are_free = |phone: &Phone| {
                let port = phone.to.port();
                [port, port + 1].map(|port| UdpSocket::bind((world.ip, port)).map(drop).err())
            };
            for (phone, &stream) in phones.iter().zip(&streams).take(4) {
                front.command(Command::Close { stream });
                await_event(&mut front, |event| matches!(event, Event::Closed { .. }));
                assert!(are_free(phone).iter().all(Option::is_none), "{}", wish.name());
            }
            // A packet that nobody has looked at is no reason to hold a port.
            phones.iter_mut().for_each(|phone| phone.say(1));
            drop(front);
            for phone in &phones {
                let errors = are_free(phone);
                assert!(errors.iter().all(Option::is_none), "{}, {workers}: {errors:?}", wish.name());
            }
        }
    }
}
