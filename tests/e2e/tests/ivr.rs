//! ExternalIVR with a real program and a real server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;

use e2e::{Phone, Server, Site, wait};

/// Plays a sound to its end, then another until a key, and leaves both in variables.
const MENU: &str = r#"#!/bin/sh
echo P
read line
echo "V,told=$(echo "${line#P,*,}" | tr , ' ')"
echo S,low
while read line; do case "$line" in F,*,low) break ;; esac; done
echo O,autoclear
echo S,low
while read line; do case "$line" in [0-9],*) key=${line%%,*}; break ;; esac; done
read line
echo "V,key=$key,next=${line%%,*}"
echo E,done
"#;
const HANGS: &str = "#!/bin/sh\nexec sleep 120\n";
const FLOODS: &str = "#!/bin/sh\nexec yes L,x\n";

const DIALPLAN: &str = "
[test]
exten => menu,1,ExternalIVR(menu.sh(one,two words))
 same => n,Set(DB(ivr/told)=${told} ${key} ${next})
exten => net,1,ExternalIVR(ivr://SERVER(a,b),n)
exten => hangs,1,Answer()
 same => n,ExternalIVR(hangs.sh)
exten => floods,1,Answer()
 same => n,ExternalIVR(floods.sh)
exten => none,1,ExternalIVR(none.sh)
 same => n,Set(DB(ivr/none)=on)
exten => quick,1,Answer()
 same => n,Set(DB(ivr/quick)=yes)
exten => h,1,Set(DB(ended/call)=yes)
";

fn server(name: &str, to: SocketAddr) -> Server {
    let site = Site::new(name)
        .phone_with("alice", "allow=ulaw\n")
        .phone_with("bob", "allow=ulaw\n")
        .prompt("low", 500.0, 1.0);
    for (file, text) in [("menu.sh", MENU), ("hangs.sh", HANGS), ("floods.sh", FLOODS)] {
        let path = site.place.write(&format!("agi/{file}"), text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    }
    Server::start(site.dialplan(&DIALPLAN.replace("SERVER", &to.to_string())))
}

fn alone(name: &str) -> Server {
    server(name, SocketAddr::new(e2e::address(), 2949))
}

#[test]
fn a_program_plays_sounds_and_hears_of_keys_meanwhile() {
    let server = alone("ivr-program");
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("menu");
    wait::until_true("the second sound", || alice.media.heard().tone(500.0) >= 1200);
    alice.media.type_digits("7");
    assert_eq!(server.database("ivr", "told"), "menu.sh one two words 7 T");
    alice.until_hung_up();
    server.until_idle();
}

#[test]
fn a_server_answers_the_call_and_is_told_of_its_end() {
    let listener = TcpListener::bind((e2e::address(), 0)).expect("a listener");
    let server = server("ivr-server", listener.local_addr().expect("an address"));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.begin("net");
    let (stream, _) = listener.accept().expect("a connection");
    stream.set_read_timeout(Some(wait::SOON)).expect("a limit");
    let mut other = BufReader::new(stream);
    let mut heard = |say: &str| {
        other.get_mut().write_all(say.as_bytes()).expect("it is taken");
        let mut line = String::new();
        other.read_line(&mut line).expect("a line");
        let mut parts = line.trim_end().splitn(3, ',').map(str::to_owned);
        let (tag, seconds) = (parts.next().unwrap(), parts.next().unwrap());
        assert!(seconds.parse::<u64>().is_ok(), "{line}");
        format!("{tag} {}", parts.next().unwrap_or_default())
    };
    let told = heard("P,0\n");
    assert!(told.starts_with("P ivr://") && told.ends_with(",a,b"), "{told}");
    assert_eq!(heard("S,nothing\n"), "Z nothing");
    assert_eq!(heard("T,0\nG,EXTEN\n"), "G EXTEN=net");
    assert_eq!(alice.outcome().status(), Some(200));
    alice.hang_up();
    assert_eq!(heard(""), "H ");
    assert_eq!(server.database("ended", "call"), "yes");
    server.until_idle();
}

#[test]
fn one_that_hangs_or_floods_delays_nobody() {
    let mut server = alone("ivr-hangs");
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, "bob"));
    for bad in ["hangs", "floods"] {
        alice.must_call(bad);
        bob.must_call("quick");
        assert_eq!(server.database("ivr", "quick"), "yes");
        bob.until_hung_up();
        server.cli("database del ivr quick");
        alice.hang_up();
    }
    bob.begin("none");
    bob.outcome();
    server.until_logged(&["none.sh", "cannot be started"]);
    server.until_idle();
    server.assert_healthy();
}
