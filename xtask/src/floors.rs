//! Which crate may know which. The map is in `ARCHITECTURE.md` under "Rooms"; this is where it is held.

use crate::workspace::{Member, Workspace};

/// A crate's floor, and the crates of ours that it may be built with.
struct Room {
    name: &'static str,
    floor: u8,
    may_know: &'static [&'static str],
}

const fn room(name: &'static str, floor: u8, may_know: &'static [&'static str]) -> Room {
    Room { name, floor, may_know }
}

const EVERYTHING: &[&str] = &[
    "base", "lanes", "bound", "conf", "sip", "stir", "rtp", "srtp", "iax2", "tdm", "ilbc", "speex", "codec",
    "media", "dialplan", "queue", "call", "driver", "apps", "io", "odbc", "realtime", "store", "cluster",
    "control", "engine",
];

/// What the command line knows: the running system, and the load generator for others like it.
const COMMANDS: &[&str] =
    &["base", "codec", "conf", "control", "engine", "io", "loadtest", "realtime", "store"];

/// Protocols do not know each other; `call` knows no protocol; `driver` translates; `apps` sees only channels.
const ROOMS: &[Room] = &[
    room("base", 0, &[]),
    room("lanes", 0, &[]),
    // Libraries in C behind a safe front: no clock, socket, thread or lock, but C. Not built for wasm.
    room("bound", 0, &[]),
    room("conf", 1, &["base"]),
    room("sip", 1, &["base"]),
    // Certificates are read by libraries of others (x509-parser); their arithmetic is done on floor 3.
    room("stir", 1, &["base"]),
    room("rtp", 1, &["base"]),
    // Ciphers of others (RustCrypto): arithmetic, and a look at what the processor can.
    room("srtp", 1, &["base"]),
    room("iax2", 1, &["base", "lanes"]),
    // What Strowger and the program that speaks ODBC say to each other.
    room("odbc", 1, &[]),
    room("tdm", 1, &["base"]),
    room("ilbc", 1, &["lanes"]),
    room("speex", 1, &["lanes"]),
    room("codec", 1, &["base", "lanes", "bound", "ilbc", "speex"]),
    room("media", 2, &["base", "lanes", "rtp", "srtp", "codec"]),
    room("dialplan", 2, &["base", "conf"]),
    room("queue", 1, &["base"]),
    room("call", 2, &["base", "dialplan", "queue"]),
    room("driver", 2, &["base", "call", "dialplan", "lanes", "sip", "stir", "rtp", "iax2", "tdm"]),
    room("apps", 2, &["base", "conf", "call", "dialplan", "queue"]),
    room("io", 3, &["base", "lanes", "media", "rtp", "codec"]),
    // Databases on threads of their own: what a table means stands above.
    room("realtime", 3, &["base", "conf", "io", "odbc"]),
    room("store", 3, &["base", "call", "codec", "conf", "dialplan", "io", "queue", "realtime"]),
    room("cluster", 3, &["base", "io"]),
    room("control", 3, &["apps", "base", "conf", "call", "dialplan", "driver", "queue", "store", "io"]),
    // The running system, wired; `strowger` is its command line and `loadtest` its opposite.
    room("engine", 4, EVERYTHING),
    room("strowger", 4, COMMANDS),
    // Libraries of others in a process of its own: nothing of ours but the words.
    room("strowger-odbc", 4, &["odbc"]),
    room("loadtest", 4, &["base", "codec", "iax2", "io", "rtp", "sip"]),
    room("sim", 4, EVERYTHING),
    // The real program seen from outside: it knows the crates no better than a phone does.
    room("e2e", 4, &["oracle"]),
    room("loadbench", 4, &["base", "e2e", "iax2", "io", "loadtest", "realtime"]),
    // What tests of several crates share.
    room("kit", 4, &[]),
    // C libraries of Debian, to compare with.
    room("oracle", 4, &[]),
    room("xtask", 4, &[]),
];

/// Floors whose crates are pure machines: no clock, socket, thread, lock.
pub const PURE_FLOORS: u8 = 2;

/// Crates of others that would bring a clock, a socket, a thread or a lock into a pure machine, or hidden randomness.
const IMPURE: &[&str] = &[
    "async-std",
    "chrono",
    "crossbeam-channel",
    "fastrand",
    "getrandom",
    "libc",
    "mio",
    "nix",
    "parking_lot",
    "polling",
    "rand",
    "rayon",
    "rustix",
    "smol",
    "socket2",
    "time",
    "tokio",
];

/// The floor of a crate; `None` when it is not on the map.
pub fn floor(name: &str) -> Option<u8> {
    find(name).map(|room| room.floor)
}

fn find(name: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.name == name)
}

/// Every dependency that the map does not allow.
pub fn check(workspace: &Workspace) -> Vec<String> {
    workspace.members.iter().flat_map(check_member).collect()
}

fn check_member(member: &Member) -> Vec<String> {
    let Some(room) = find(&member.name) else {
        return vec![format!(
            "crate '{}' is not on the map: give it a floor in xtask/src/floors.rs",
            member.name
        )];
    };
    let mut broken = Vec::new();
    for dependency in &member.dependencies {
        if find(dependency).is_some() {
            if !room.may_know.contains(&dependency.as_str()) {
                broken.push(format!("'{}' (floor {}) must not know '{dependency}'", room.name, room.floor));
            }
        } else if room.floor <= PURE_FLOORS && IMPURE.contains(&dependency.as_str()) {
            broken.push(format!(
                "'{}' is a pure machine: '{dependency}' brings in a clock, a socket, a thread, a lock or randomness",
                room.name
            ));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, dependencies: &[&str]) -> Member {
        let dependencies = dependencies.iter().map(|&name| name.to_owned()).collect();
        Member { name: name.into(), folder: "/".into(), dependencies, benches: Vec::new() }
    }

    #[test]
    fn what_the_map_allows_passes_and_what_it_forbids_is_named() {
        for (name, dependencies, broken) in [
            ("sip", &["base", "memchr"][..], 0),
            ("sip", &["rtp"], 1),
            ("call", &["base", "sip"], 1),
            ("base", &["thiserror", "libc"], 1),
            ("media", &["base", "rtp", "codec"], 0),
            ("io", &["libc", "base", "media"], 0),
            ("apps", &["driver", "tokio"], 2),
            ("nowhere", &[], 1),
        ] {
            let found = check_member(&member(name, dependencies));
            assert_eq!(found.len(), broken, "{name} {dependencies:?}: {found:?}");
        }
    }

    #[test]
    fn the_map_itself_never_points_up() {
        for room in ROOMS {
            for known in room.may_know {
                let below = floor(known).is_some_and(|floor| floor <= room.floor);
                assert!(below, "{} must not know {known}", room.name);
            }
        }
    }
}
