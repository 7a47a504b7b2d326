//! A small running system, and what its commands say of it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use apps::hints::Hints;
use base::{FormatId, FormatSet, Instant};
use call::{ChanState, Limits, Location, PartyId};
use driver::sip::{Aor, Auth, Bind, Config, Endpoint, Proof, SipDriver};
use io::media::{Level, MediaFront, MediaSettings, PortRange, Translation};
use serde_json::Value;
use sim::World;
use store::config::logger::Logger;
use store::config::tones::Tones;
use store::log::LogSink;
use store::sounds::{Catalogue, Sounds};
use store::{Defaults, Snapshot, Where};

use super::*;
use crate::site::{Reloaded, When, Wish};

const DIALPLAN: &str = "[globals]\nTRUNK=PJSIP/out\n\
    [default]\nexten => 100,1,Answer()\nsame => n(talk),Wait(600)\nexten => 101,1,Wait(30)\n\
    exten => 6001,hint,Custom:lamp\n";

/// The system, and the folder it writes into.
struct Desk {
    world: World,
    cli: Cli,
    view: View,
    folder: PathBuf,
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Desk {
    fn new(name: &str) -> Self {
        Self::with(name, sip_config())
    }
    fn with(name: &str, sip: Config) -> Self {
        let folder = std::env::temp_dir().join(format!("strowger-cli-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let (program, findings) = sim::parse_dialplan(DIALPLAN, &apps::table::tables());
        assert_eq!(findings, [] as [&str; 0]);
        let world = World::new(program);
        let cli = Cli::new(site(&world, &folder, sip));
        Self { world, cli, view: View::default(), folder }
    }
    /// Runs a command; what it said and its exit status.
    fn run(&mut self, line: &str) -> (String, u8) {
        self.ask(line, false)
    }
    fn ask(&mut self, line: &str, json: bool) -> (String, u8) {
        let call = Call { session: 1, line, json, columns: 0, view: &mut self.view };
        match self.cli.run(call) {
            Answer::Done { text, status } => (text, status),
            Answer::Later => panic!("{line} was to be answered at once"),
        }
    }
    /// Runs a command that succeeds.
    fn text(&mut self, line: &str) -> String {
        let (text, status) = self.run(line);
        assert_eq!(status, 0, "{line}: {text}");
        text
    }
    fn json(&mut self, line: &str) -> Value {
        let (text, status) = self.ask(line, true);
        assert_eq!(status, 0, "{line}: {text}");
        assert_eq!(text.lines().count(), 1, "{line}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{line}: {error}: {text}"))
    }
    fn lines(&mut self, line: &str) -> Vec<String> {
        self.text(line).lines().map(|line| line.trim_end().to_owned()).collect()
    }
    /// A call that runs the dialplan, `at` milliseconds after the start.
    fn call(&mut self, phone: &str, exten: &str) -> base::ChannelId {
        let location = Location { context: "default".into(), exten: exten.into(), priority: 1 };
        let caller = format!("\"Al!ce\x1b\" <{phone}>");
        let id = self.world.incoming(phone, &caller, location.clone(), &[]);
        assert!(apps::pbx::start(&self.world.shard, id, location));
        self.world.run_until(self.world.now());
        id
    }
    fn pass(&mut self, seconds: u64) {
        self.world.run_until(self.world.now() + core::time::Duration::from_secs(seconds));
    }
}

fn site(world: &World, folder: &Path, sip: Config) -> Rc<Site> {
    let defaults = Defaults {
        root: folder.to_owned(),
        data: folder.to_owned(),
        bind: Defaults::BIND,
        secrets: ["a secret of 20 letters".into(), "another one of twenty".into()],
    };
    let (snapshot, _) = Snapshot::load(&Where::Embedded(defaults)).unwrap();
    let (log, sender) = LogSink::start(&Logger::default(), folder, None).unwrap();
    let settings = MediaSettings {
        ports: PortRange { first: 10_000, last: 10_099 },
        workers: Some(1),
        real_time: false,
        lanes: Default::default(),
        random: Box::new(|| 4),
    };
    let (media, _) = MediaFront::start(settings).unwrap();
    let sounds = Sounds::start(Catalogue::default(), Tones::default(), || {}).unwrap();
    let mut hints = Hints::default();
    hints.update(&world.shard);
    let sip = Rc::new(RefCell::new(SipDriver::new(sip, 7, [7; 32], |_| None)));
    let index = world.shard.add_tech(sip.clone());
    sip.borrow_mut().set_tech_index(index);
    Rc::new(Site {
        shard: world.shard.clone(),
        sip,
        hints: Rc::new(RefCell::new(hints)),
        media: Rc::new(RefCell::new(media)),
        translation: Translation::open(Level::best(), folder, store::sounds::speech),
        sounds: Rc::new(RefCell::new(sounds)),
        snapshot: RefCell::new(snapshot),
        log,
        sender,
        started: Instant::ZERO,
        reloaded: Cell::new(Instant::ZERO),
        started_wall: 0,
        reloaded_wall: Cell::new(0),
        wishes: RefCell::default(),
        stopping: Cell::default(),
        last_reload: RefCell::default(),
        reload: RefCell::default(),
        counters: Cell::default(),
        fault_injection: Cell::default(),
    })
}

fn endpoint(name: &str, caller: &str) -> Endpoint {
    let mut allow = FormatSet::EMPTY;
    allow.push(FormatId::ULAW);
    Endpoint {
        name: name.into(),
        context: "default".into(),
        aors: vec![name.into()],
        auths: vec![name.into()],
        allow,
        caller: PartyId::parse(caller),
        force_rport: true,
        rtp_symmetric: true,
        ptime_ms: 20,
        ..Endpoint::default()
    }
}

/// Two endpoints: one with a contact that is written down, one without any.
pub(crate) fn sip_config() -> Config {
    let mut config = Config::default();
    for (name, caller, contacts, max_contacts) in
        [("6001", "Alice <6001>", vec!["sip:6001@192.0.2.7:5070".to_owned()], 0), ("6002", "", Vec::new(), 2)]
    {
        config.endpoints.insert(name.into(), Rc::new(endpoint(name, caller)));
        let aor = Aor {
            name: name.into(),
            contacts,
            max_contacts,
            remove_existing: true,
            remove_unavailable: false,
            default_expiration: 3_600,
            minimum_expiration: 60,
            maximum_expiration: 7_200,
            qualify_frequency: 0,
            qualify_timeout: core::time::Duration::from_secs(3),
            qualify_2xx_only: false,
            support_path: false,
        };
        config.aors.insert(name.into(), Rc::new(aor));
        let auth = Auth {
            username: format!("user{name}"),
            realm: String::new(),
            proof: Proof::Password("very secret words".into()),
            algorithms: Vec::new(),
        };
        config.auths.insert(name.into(), Rc::new(auth));
    }
    config.binds.push(Bind {
        name: "transport-udp".into(),
        id: ::sip::stack::TransportId(0),
        protocol: ::sip::stack::Protocol::Udp,
        local: SocketAddr::from((Ipv4Addr::LOCALHOST, 5060)),
        external_media: None,
        external_signaling: None,
        local_nets: Vec::new(),
        marking: base::Marking::default(),
    });
    config
}

#[test]
fn channels_are_listed_in_the_columns_that_tools_cut() {
    let mut desk = Desk::new("channels");
    desk.call("6001", "100");
    desk.pass(75);
    assert_eq!(
        desk.lines("core show channels"),
        [
            "Channel              Location             State   Application(Data)",
            "SIM/6001-00000000    100@default:2        Up      Wait(600)",
            "1 active channel",
            "1 active call",
            "1 call processed",
        ]
    );
    assert_eq!(desk.text("show channels"), desk.text("core show channels"));
    let concise = desk.text("core show channels concise");
    assert_eq!(concise, "SIM/6001-00000000!default!100!2!Up!Wait!600!6001!!!3!75!!1795262400.0\n");
    assert_eq!(concise.matches('!').count(), 13);
    assert_eq!(
        desk.lines("core show channels verbose")[1],
        "SIM/6001-00000000    default              100                 2 Up      Wait         600                       \
         6001            00:01:15"
    );
    assert_eq!(
        desk.lines("core show channels count"),
        ["1 active channel", "1 active call", "1 call processed"]
    );
    desk.world.shard.core.borrow_mut().admission.set_limits(Limits { max_calls: 8, ..Limits::default() });
    assert_eq!(desk.lines("core show channels count")[1], "1 of 8 max active calls (12.50% of capacity)");
    let json = desk.json("core show channels");
    assert_eq!(json["channels"][0]["name"], "SIM/6001-00000000");
    assert_eq!(json["channels"][0]["caller_name"], "Al!ce\x1b");
    assert_eq!(json["active_calls"], 1);
}

#[test]
fn a_channel_is_shown_by_name_and_by_uniqueid_and_never_steers_the_terminal() {
    let mut desk = Desk::new("channel");
    desk.call("6001", "100");
    desk.pass(1);
    let shown = desk.text("core show channel SIM/6001-00000000");
    for line in [
        " -- General --",
        "           Name: SIM/6001-00000000",
        "      Caller ID: 6001",
        " Caller ID Name: Al!ce?",
        "          State: Up (6)",
        " --   PBX   --",
        "        Context: default",
        "      Extension: 100",
        "       Priority: 2",
        "    Application: Wait",
        "           Data: 600",
    ] {
        assert!(shown.lines().any(|have| have == line), "{line:?} is missing in\n{shown}");
    }
    assert_eq!(desk.text("core show channel 1795262400.0"), shown);
    assert_eq!(desk.json("core show channel 1795262400.0")["state_code"], 6);
    let (text, status) = desk.run("core show channel SIM/none");
    assert_eq!((text.as_str(), status), ("SIM/none is not a known channel\n", 1));
    let (text, status) = desk.ask("core show channel SIM/none", true);
    assert_eq!((text.as_str(), status), ("{\"error\":\"SIM/none is not a known channel\"}\n", 1));
}

#[test]
fn a_channel_is_hung_up_and_sent_on() {
    let mut desk = Desk::new("steer");
    desk.call("6001", "100");
    let kept = desk.call("6002", "100");
    desk.pass(1);
    assert_eq!(
        desk.text("channel redirect SIM/6002-00000001 default,101,1"),
        "Channel 'SIM/6002-00000001' successfully redirected to default,101,1\n"
    );
    assert_eq!(desk.run("channel redirect SIM/6002-00000001 default,999,1").1, 1);
    assert_eq!(
        desk.text("channel request hangup SIM/6001-00000000"),
        "Requested Hangup on channel 'SIM/6001-00000000'\n"
    );
    desk.pass(1);
    assert_eq!(desk.lines("core show channels count")[0], "1 active channel");
    assert_eq!(desk.world.shard.core.borrow().get(kept).unwrap().location.exten, "101");
    assert_eq!(desk.text("channel request hangup all"), "Requested Hangup on channel 'SIM/6002-00000001'\n");
    desk.pass(1);
    assert_eq!(desk.lines("core show channels count")[0], "0 active channels");
    assert_eq!(desk.run("channel request hangup SIM/x"), ("SIM/x is not a known channel\n".into(), 1));
}

#[test]
fn an_originated_call_runs_an_application_or_the_dialplan_and_failure_is_logged() {
    let mut desk = Desk::new("originate");
    let phone = sim::Phone { acts: vec![(100, sim::Act::Ring), (500, sim::Act::Answer)], refuses: None };
    desk.world.phone("6001", phone);
    assert_eq!(desk.text("channel originate SIM/6001 application Wait 600"), "");
    assert_eq!(desk.text("channel originate SIM/6001 extension 100@default"), "");
    desk.pass(0);
    assert_eq!(
        desk.lines("core show channels")[1],
        "SIM/6001-00000000    (None)               Down    AppDial((Outgoing Line))"
    );
    desk.pass(2);
    let shown = desk.lines("core show channels");
    assert_eq!(shown[1], "SIM/6001-00000000    (None)               Up      Wait(600)");
    assert_eq!(shown[2], "SIM/6001-00000001    100@default:2        Up      Wait(600)");
    for (line, said) in [
        ("channel originate 6001 application Wait 1", "'6001' is no TECHNOLOGY/RESOURCE to call\n"),
        ("channel originate DAHDI/1 extension 100", "There is no channel technology 'DAHDI'\n"),
        ("channel originate SIM/6001 application Nothing", "There is no application 'Nothing'\n"),
    ] {
        assert_eq!(desk.run(line), (said.to_owned(), 1), "{line}");
    }
    desk.text("channel originate SIM/nobody extension 100@default");
    desk.pass(1);
    assert_eq!(
        desk.world.log(call::Level::Warning),
        ["the call to SIM/nobody that was originated failed: Unallocated (unassigned) number (1)"]
    );
}

#[test]
fn the_process_says_what_tools_wait_for() {
    let mut desk = Desk::new("process");
    assert!(desk.text("core waitfullybooted").ends_with("Asterisk has fully booted.\n"));
    let version = desk.text("core show version");
    assert!(version.starts_with("Asterisk 23.0.0 (Strowger "), "{version}");
    desk.pass(90_061);
    assert_eq!(
        desk.text("core show uptime"),
        "System uptime: 1 day, 1 hour, 1 minute, 1 second\nLast reload: 1 day, 1 hour, 1 minute, 1 second\n"
    );
    assert_eq!(desk.text("core show uptime seconds"), "System uptime: 90061\nLast reload: 90061\n");
    assert_eq!(desk.text("core show calls"), "0 active calls\n0 calls processed\n");
}

#[test]
fn stopping_and_rotating_are_wishes_to_the_engine() {
    let mut desk = Desk::new("wishes");
    for (line, wish) in [
        ("core stop now", Wish::Stop { when: When::Now, restart: false }),
        ("core stop gracefully", Wish::Stop { when: When::Gracefully, restart: false }),
        ("core stop when convenient", Wish::Stop { when: When::Convenient, restart: false }),
        ("core restart now", Wish::Stop { when: When::Now, restart: true }),
        ("restart gracefully", Wish::Stop { when: When::Gracefully, restart: true }),
        ("core restart when convenient", Wish::Stop { when: When::Convenient, restart: true }),
        ("core abort shutdown", Wish::AbortStop),
        ("logger rotate", Wish::RotateLogs),
        ("core reload", Wish::Reload { module: String::new() }),
        ("module reload res_pjsip.so", Wish::Reload { module: "res_pjsip".into() }),
        ("reload", Wish::Reload { module: String::new() }),
        ("sip reload", Wish::Reload { module: "res_pjsip".into() }),
    ] {
        desk.text(line);
        assert_eq!(*desk.cli.site.wishes.borrow(), [wish], "{line}");
        desk.cli.site.wishes.borrow_mut().clear();
    }
    assert_eq!(desk.run("module reload chan_nothing.so"), ("No such module 'chan_nothing.so'\n".into(), 1));
    assert_eq!(*desk.cli.site.wishes.borrow(), []);
}

#[test]
fn a_reload_tells_how_it_came_out_and_its_status_says_so_too() {
    let mut desk = Desk::new("reload");
    let asked = Rc::new(RefCell::new(Vec::new()));
    let seen = asked.clone();
    let reload = move |module: &str| {
        seen.borrow_mut().push(module.to_owned());
        let taken = module != "res_pjsip";
        Reloaded { taken, said: if taken { vec![] } else { vec!["pjsip.conf:3: no".to_owned()] } }
    };
    *desk.cli.site.reload.borrow_mut() = Some(Box::new(reload));
    assert_eq!(desk.run("dialplan reload"), ("Dialplan reloaded.\n".into(), 0));
    assert_eq!(
        desk.run("pjsip reload"),
        ("pjsip.conf:3: no\nThe configuration was not taken; what ran before goes on.\n".into(), 1)
    );
    assert_eq!(desk.run("core reload"), (String::new(), 0));
    assert_eq!(*asked.borrow(), ["pbx_config", "res_pjsip", ""]);
}

#[test]
fn levels_belong_to_the_console_that_sets_them() {
    let mut desk = Desk::new("levels");
    desk.view.attached = true;
    for (line, said) in [
        ("core set verbose 3", "Console verbose was OFF and is now 3.\n"),
        ("core set verbose 3", "Console verbose is still 3.\n"),
        ("core set verbose atleast 2", "Console verbose is still 3.\n"),
        ("core set verbose atleast 5", "Console verbose was 3 and is now 5.\n"),
        ("core set verbose off", "Console verbose was 5 and is now OFF.\n"),
        ("core set debug 2", "Core debug was OFF and is now 2.\n"),
    ] {
        assert_eq!(desk.text(line), said, "{line}");
    }
    assert_eq!((desk.view.verbose, desk.view.debug), (0, 2));
    assert_eq!(desk.run("core set verbose much").1, 1);
    assert_eq!(desk.text("logger mute"), "Logging to this console is disabled.\n");
    assert!(desk.view.muted);
    desk.view = View::default();
    assert_eq!(desk.text("core set verbose 4"), "Console verbose was 1 and is now 4.\n");
    assert_eq!(desk.text("core set verbose 4"), "Console verbose is still 4.\n");
    assert_eq!(desk.view, View::default());
}

#[test]
fn endpoints_are_shown_in_blocks() {
    let mut desk = Desk::new("endpoints");
    assert_eq!(
        desk.lines("pjsip show endpoints"),
        [
            "",
            " Endpoint:  <Endpoint/CID.....................................>  <State.....>  <Channels.>",
            "    I/OAuth:  <AuthId/UserName...........................................................>",
            "        Aor:  <Aor............................................>  <MaxContact>",
            "      Contact:  <Aor/ContactUri..........................> <Hash....> <Status> <RTT(ms)..>",
            "  Transport:  <TransportId........>  <Type>  <cos>  <tos>  <BindAddress..................>",
            "   Identify:  <Identify/Endpoint.........................................................>",
            "    Channel:  <ChannelId......................................>  <State.....>  <Time.....>",
            "        Exten: <DialedExten...........>  CLCID: <ConnectedLineCID.......>",
            "==========================================================================================",
            "",
            " Endpoint:  6001/\"Alice\" <6001>                                  Not in use    0 of inf",
            "     InAuth:  6001/user6001",
            "        Aor:  6001                                               0",
            "      Contact:  6001/sip:6001@192.0.2.7:5070               HASH NonQual          nan"
                .replace("HASH", &super::sip_tables::hash("sip:6001@192.0.2.7:5070"))
                .as_str(),
            "",
            " Endpoint:  6002                                                 Unavailable   0 of inf",
            "     InAuth:  6002/user6002",
            "        Aor:  6002                                               2",
            "",
            "",
            "Objects found: 2",
            "",
        ]
    );
    let one = desk.text("pjsip show endpoint 6002");
    assert!(one.contains(" ParameterName        : ParameterValue\n"), "{one}");
    assert!(one.contains(" allow                : (ulaw)\n"), "{one}");
    assert!(!one.contains("6001"), "{one}");
    assert_eq!(desk.run("pjsip show endpoint nobody"), ("Unable to find object nobody.\n\n".into(), 1));
    let json = desk.json("pjsip show endpoints");
    assert_eq!(json["endpoints"][0]["aors"][0]["contacts"][0]["uri"], "sip:6001@192.0.2.7:5070");
    assert_eq!(json["endpoints"][1]["state"], "Unavailable");
}

#[test]
fn other_sip_objects_have_their_lists_and_no_secret_is_told() {
    let mut desk = Desk::new("sip");
    assert_eq!(
        desk.lines("pjsip show contacts")[1],
        "  Contact:  <Aor/ContactUri..............................> <Hash....> <Status> <RTT(ms)..>"
    );
    assert!(desk.text("pjsip show contacts").ends_with("\nObjects found: 1\n\n"));
    assert_eq!(
        desk.lines("pjsip show aors")[1..3],
        [
            "      Aor:  <Aor..............................................>  <MaxContact>",
            "    Contact:  <Aor/ContactUri............................> <Hash....> <Status> <RTT(ms)..>",
        ]
    );
    assert_eq!(
        desk.lines("pjsip show transports"),
        [
            "",
            "Transport:  <TransportId........>  <Type>  <cos>  <tos>  <BindAddress....................>",
            "==========================================================================================",
            "",
            "Transport:  transport-udp             udp      0      0  127.0.0.1:5060",
            "",
            "Objects found: 1",
            "",
        ]
    );
    assert_eq!(desk.lines("pjsip show auths")[4], "     Auth:  6001/user6001");
    assert!(desk.text("pjsip show registrations").starts_with("No objects found"));
    assert_eq!(desk.text("pjsip show identifies"), "No objects found.\n\n");
    assert_eq!(
        desk.lines("sip show peers"),
        [
            "Name/username             Host                                    Dyn Forcerport Comedia    ACL Port     \
             Status      Description",
            "6001/user6001             192.0.2.7                                   Yes        Yes            5070     \
             Unmonitored",
            "6002/user6002             (Unspecified)                            D  Yes        Yes            0        \
             UNKNOWN",
            "2 sip peers [Monitored: 0 online, 0 offline Unmonitored: 1 online, 1 offline]",
        ]
    );
    for row in rows().filter(|row| row.shape.contains("auth") || row.shape.contains("endpoint")) {
        let line = row.shape.replace("<auth>", "6001").replace("<endpoint>", "6001");
        assert!(!desk.run(&line).0.contains("very secret"), "{line}");
    }
    assert_eq!(desk.text("pjsip qualify 6001"), "Sending qualify to endpoint 6001\n");
    assert_eq!(desk.run("pjsip qualify 6002"), ("Endpoint 6002 has no contacts to ask\n".into(), 1));
    assert_eq!(desk.run("pjsip qualify 6003"), ("Unable to retrieve endpoint 6003\n".into(), 1));
    assert_eq!(desk.text("sip set debug on"), "PJSIP Logging enabled\n");
    assert!(desk.cli.site.sip.borrow().trace());
    for (line, status) in [
        ("pjsip set logger host 192.0.2.1", 0),
        ("pjsip set logger host 192.0.2.0/24 add", 0),
        ("pjsip set logger host phone.example add", 0),
        ("sip set debug ip 2001:db8::1", 0),
        ("pjsip set logger host 192.0.2.0/33", 1),
        ("pjsip set logger host a&b", 1),
    ] {
        let (said, code) = desk.run(line);
        assert_eq!(code, status, "{line}: {said}");
        assert_eq!(said.starts_with("PJSIP Logging Enabled for host: "), status == 0, "{line}: {said}");
    }
    assert!(desk.cli.site.sip.borrow().trace());
    assert_eq!(desk.text("pjsip set logger off"), "PJSIP Logging disabled\n");
    assert!(!desk.cli.site.sip.borrow().trace());
}

#[test]
fn the_bundled_music_shows_as_the_default_class() {
    let mut desk = Desk::new("moh");
    assert_eq!(desk.lines("moh show classes")[..2], ["Class: default", "\tMode: files"]);
    assert_eq!(desk.json("moh show classes")["classes"][0]["name"], "default");
}

#[test]
fn packets_are_traced_of_everybody_or_one_host() {
    use io::media::{Tracing, Watch};
    let mut desk = Desk::new("trace");
    let host = Watch::Host([192, 0, 2, 1].into(), None);
    let port = Watch::Host([192, 0, 2, 1].into(), Some(4000));
    let said = |what: &str| format!("{what} Packet Debugging Enabled for address: 192.0.2.1\n");
    for (line, text, rtp, rtcp) in [
        ("rtp set debug on", "RTP Packet Debugging Enabled\n".to_owned(), Watch::All, Watch::Off),
        ("rtcp set debug on", "RTCP Packet Debugging Enabled\n".to_owned(), Watch::All, Watch::All),
        ("rtp set debug ip 192.0.2.1", said("RTP"), host, Watch::All),
        ("rtcp set debug ip 192.0.2.1", said("RTCP"), host, host),
        ("rtp set debug ip 192.0.2.1:4000", said("RTP").replace(".1\n", ".1:4000\n"), port, host),
        ("rtp set debug off", "RTP Packet Debugging Disabled\n".to_owned(), Watch::Off, host),
    ] {
        assert_eq!(desk.text(line), text, "{line}");
        assert_eq!(desk.cli.site.media.borrow().tracing(), Tracing { rtp, rtcp }, "{line}");
    }
    let refused = desk.run("rtp set debug ip nobody");
    assert_eq!(refused, ("Could not look up IP address nobody\n".to_owned(), 1));
}

#[test]
fn the_database_is_written_and_read() {
    let mut desk = Desk::new("database");
    for (line, said, status) in [
        ("database put cidname 100 \"Al Ice\"", "Updated database successfully\n", 0),
        ("database get cidname 100", "Value: Al Ice\n", 0),
        ("database get cidname 101", "Database entry not found.\n", 1),
        (
            "database show",
            "/cidname/100                                      : Al Ice                   \n1 results found.\n",
            0,
        ),
        (
            "database showkey 100",
            "/cidname/100                                      : Al Ice                   \n1 results found.\n",
            0,
        ),
        ("database showkey 10", "0 results found.\n", 0),
        ("database del cidname 100", "Database entry removed.\n", 0),
        ("database del cidname 100", "Database entry does not exist.\n", 1),
        ("database put f a 1", "Updated database successfully\n", 0),
        ("database put f b 2", "Updated database successfully\n", 0),
        ("database deltree f", "2 database entries removed.\n", 0),
        ("database deltree f", "Database entry does not exist.\n", 1),
    ] {
        assert_eq!(desk.run(line), (said.to_owned(), status), "{line}");
    }
    let (text, status) = desk.run("database deltree \"\"");
    assert_eq!(status, 1);
    assert!(text.starts_with("Usage: database deltree <family> [<key>]\n"), "{text}");
}

#[test]
fn the_dialplan_is_shown_and_its_globals_set() {
    let mut desk = Desk::new("dialplan");
    assert_eq!(
        desk.lines("dialplan show 101@default"),
        [
            "[ Context 'default' created by 'pbx_config' ]",
            "  '101' =>          1. Wait(30)                                   [extensions.conf:6]",
            "",
            "-= 1 extension (1 priority) in 1 context. =-",
        ]
    );
    assert_eq!(desk.run("dialplan show nowhere"), ("There is no existence of 'nowhere' context\n".into(), 1));
    let json = desk.json("dialplan show default");
    assert_eq!(json["contexts"][0]["extensions"][0]["steps"][1]["label"], "talk");
    assert_eq!(
        desk.text("dialplan set global LINE \"a b\""),
        "\n    -- Global variable 'LINE' set to 'a b'\n"
    );
    assert_eq!(desk.text("dialplan show globals"), "   LINE=a b\n   TRUNK=PJSIP/out\n\n    -- 2 variables\n");
    assert_eq!(
        desk.lines("core show hints"),
        [
            "",
            "    -= Registered Asterisk Dial Plan Hints =-",
            "6001@default                  : Custom:lamp           State:Idle            Presence:not_set         Watchers  0",
            "----------------",
            "- 1 hints registered",
        ]
    );
    assert_eq!(desk.text("devstate change Custom:lamp INUSE"), "Changing Custom:lamp to INUSE\n");
    desk.cli.site.hints.borrow_mut().update(&desk.world.shard);
    assert!(desk.text("core show hint 6001").contains("State:InUse "));
    assert!(desk.text("devstate list").contains("--- Name: 'Custom:lamp'  State: 'INUSE'\n"));
    assert_eq!(desk.run("devstate change PJSIP/6001 INUSE").1, 1);
    assert!(desk.run("devstate change Custom:lamp LIT").0.starts_with("Usage: devstate change"));
}

#[test]
fn applications_and_functions_are_those_of_the_tables() {
    let mut desk = Desk::new("catalogue");
    let listed = desk.lines("core show applications");
    assert_eq!(listed.len(), apps::table::applications().len() + 2);
    assert_eq!(listed[0], "    -= Registered Asterisk Applications =-");
    let like = desk.lines("core show applications like PLAYB");
    assert_eq!(like.len(), 3, "{like:?}");
    assert!(like[1].starts_with("              Playback: "), "{like:?}");
    assert_eq!(like[2], "    -= 1 Applications Matching =-");
    assert!(desk.text("core show application dial").contains("Info about application 'Dial'"));
    assert_eq!(desk.run("core show application Nothing").1, 1);
    assert!(desk.text("core show function len").contains("Info about function 'LEN'"));
    assert!(desk.text("core show functions").ends_with(" custom functions installed.\n"));
    let disabled = BTreeSet::from(["app_playback".to_owned()]);
    desk.world.settings(|settings| settings.disabled_modules = disabled);
    assert_eq!(desk.run("core show application Playback").1, 1);
}

#[test]
fn formats_and_the_ways_between_them_are_shown_as_asterisk_prints_them() {
    let mut desk = Desk::new("codecs");
    let codecs = desk.lines("core show codecs");
    assert!(
        codecs.contains(&"       1 audio ulaw         ulaw             (G.711 u-law)".to_owned()),
        "{codecs:?}"
    );
    assert!(codecs.iter().any(|line| line.contains("audio speex        speex16          (SpeeX 16khz)")));
    assert_eq!(desk.lines("core show codec 3"), ["          3 GSM"]);
    assert_eq!(desk.run("core show codec 99").1, 1);
    let matrix = desk.lines("core show translation");
    assert_eq!(
        matrix[0].trim(),
        "Translation times between formats (in microseconds) for one second of data"
    );
    let figure = |word: &str| word == "-" || word.parse::<u32>().is_ok();
    let row = |name: &str| {
        let is_row = |line: &&String| {
            let mut words = line.split_whitespace();
            words.next() == Some(name) && words.next().is_some_and(figure)
        };
        matrix.iter().find(is_row).unwrap_or_else(|| panic!("{name}: {matrix:?}"))
    };
    assert_eq!(row("ulaw").split_whitespace().nth(1), Some("-"), "no way to itself");
    assert_eq!(row("ulaw").split_whitespace().nth(2), Some("3"), "a table");
    assert!(!matrix.iter().any(|line| line.trim_start().starts_with("g729 ")), "nobody codes it");
    let paths = desk.text("core show translation paths gsm");
    assert!(paths.starts_with("--- Translation paths SRC Codec \"gsm\" sample rate 8000 ---\n"), "{paths}");
    assert!(paths.contains(": (gsm@8000)->(slin@8000)->(slin16@16000)->(g722@16000)\n"), "{paths}");
    assert!(paths.contains("To g729:8000       : No Translation Path\n"), "{paths}");
    assert_eq!(desk.run("core show translation paths nonsense").1, 1);
    assert_eq!(desk.run("core show translation recalc 0").1, 1);
    let json = desk.json("core show translation");
    let rows = json["translations"].as_array().unwrap();
    let found = rows.iter().find(|row| row["from"] == "gsm" && row["to"] == "ilbc").unwrap();
    assert_eq!(found["steps"], 2);
    assert!(found["group_us"].as_f64() < found["alone_us"].as_f64(), "{found}");
}

#[test]
fn what_does_not_exist_is_named_and_wrong_arguments_tell_the_usage() {
    let mut desk = Desk::new("unknown");
    for line in ["iax2 show peers", "!ls", "core show", "x", "!", "fax set debug on"] {
        assert_eq!(
            desk.run(line),
            (
                format!(
                    "No such command '{line}' (type 'core show help {line}' for other possible commands)\n"
                ),
                1
            ),
            "{line}"
        );
    }
    for (line, usage) in [
        ("core show channels all", "Usage: core show channels [concise|verbose|count]\n"),
        ("core show channel", "Usage: core show channel <channel>\n"),
        ("database put a b", "Usage: database put <family> <key> <value>\n"),
        (
            "channel originate SIM/1",
            "Usage: channel originate <dial> application <application> [<data...>]\n",
        ),
        ("pjsip set logger maybe", "Usage: pjsip set logger on|off\n"),
    ] {
        let (text, status) = desk.run(line);
        assert!(text.starts_with(usage), "{line}: {text}");
        assert_eq!(status, 1, "{line}");
    }
}

#[test]
fn help_lists_what_begins_like_it_and_tells_the_usage_of_one() {
    let mut desk = Desk::new("help");
    let all = desk.lines("core show help");
    assert_eq!(all.len(), rows().count());
    let database = desk.lines("core show help database");
    assert_eq!(database.len(), super::database::ROWS.len());
    assert!(desk.text("core show help core show uptime").starts_with("Usage: core show uptime [seconds]\n"));
    assert!(desk.text("help sip reload").starts_with("Usage: pjsip reload\n"));
    assert_eq!(desk.run("core show help nothing here"), ("No such command 'nothing here'.\n".into(), 1));
}

#[test]
fn completion_knows_words_and_names() {
    let mut desk = Desk::new("completion");
    desk.call("6001", "100");
    for (line, expected) in [
        ("core show chann", &["channel", "channels", "channeltypes"][..]),
        ("core show channel ", &["SIM/6001-00000000"]),
        ("CORE show channels ", &["concise", "count", "verbose"]),
        ("core show channels c", &["concise", "count"]),
        ("core show channels count ", &[]),
        ("pjsip show endpoint 600", &["6001", "6002"]),
        ("core show application Playb", &["Playback"]),
        ("core show function le", &["LEN"]),
        ("dialplan show ", &["default", "globals"]),
        ("channel originate SIM/1 ", &["application", "extension"]),
        ("core stop ", &["gracefully", "now", "when"]),
        ("nothing like it ", &[]),
        ("pjsip set logger o", &["off", "on"]),
    ] {
        assert_eq!(desk.cli.complete(line), expected, "{line:?}");
    }
    assert!(desk.cli.complete("").contains(&"core".to_owned()));
    assert!(desk.cli.complete("é").is_empty());
}

/// `a [b c] d` as `a`, `a[].b`, `a[].c`, `d`.
fn keys_of(text: &str) -> BTreeSet<String> {
    let (mut keys, mut list, mut last) = (BTreeSet::new(), None, String::new());
    for word in text.split_whitespace() {
        if let Some(first) = word.strip_prefix('[') {
            list = Some(last.clone());
            keys.insert(format!("{last}[].{}", first.trim_end_matches(']')));
        } else if let Some(of) = &list {
            keys.insert(format!("{of}[].{}", word.trim_end_matches(']')));
        } else {
            last = word.to_owned();
            keys.insert(word.to_owned());
        }
        if word.ends_with(']') {
            list = None;
        }
    }
    keys
}

/// A line that means something in the desk's world for each shape that shows.
fn example(shape: &str) -> String {
    let plain = shape.split('[').next().unwrap_or_default().trim();
    [
        ("<channel>", "SIM/6001-00000000"),
        ("<application>", "Dial"),
        ("<function>", "LEN"),
        ("<exten>", "6001"),
        ("<endpoint>", "6001"),
        ("<aor>", "6001"),
        ("<auth>", "6001"),
        ("<uri>", "sip:6001@192.0.2.7:5070"),
        ("<transport>", "transport-udp"),
        ("<family> <key>", "f k"),
        ("<key>", "k"),
        ("<action>", "Ping"),
        ("<number>", "3"),
        ("<codec>", "gsm"),
        ("<seconds>", "1"),
    ]
    .iter()
    .fold(plain.to_owned(), |line, (name, value)| line.replace(name, value))
}

#[test]
fn every_show_answers_json_with_the_keys_its_row_names() {
    let mut desk = Desk::new("json");
    desk.call("6001", "100");
    desk.text("database put f k v");
    desk.text("devstate change Custom:lamp BUSY");
    for row in rows().filter(|row| !row.keys.is_empty()) {
        let line = example(row.shape);
        if line == "manager show user <user>" {
            let (text, status) = desk.ask("manager show user nobody", true);
            assert_eq!((text.as_str(), status), ("{\"error\":\"There is no manager called nobody\"}\n", 1));
            continue;
        }
        let json = desk.json(&line);
        let named = keys_of(row.keys);
        let top: BTreeSet<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let expected: BTreeSet<&str> =
            named.iter().map(String::as_str).filter(|key| !key.contains('[')).collect();
        assert_eq!(top, expected, "{line}");
        for (list, value) in json.as_object().unwrap() {
            for element in value.as_array().into_iter().flatten().filter_map(Value::as_object) {
                for key in element.keys() {
                    let key = format!("{list}[].{key}");
                    assert!(named.contains(&key), "{line}: {key} is not in the row");
                }
                let wanted = named.iter().filter_map(|key| key.strip_prefix(&format!("{list}[].")));
                for key in wanted {
                    assert!(
                        element.contains_key(key),
                        "{line}: {list}[].{key} is named by the row and missing"
                    );
                }
            }
        }
    }
    for row in rows() {
        let shows = row.shape.split(' ').any(|word| ["show", "showkey", "list", "get"].contains(&word));
        assert_eq!(
            shows && row.shape != "core show help [<command...>]",
            !row.keys.is_empty(),
            "{}: what shows has JSON keys, what does not has none",
            row.shape
        );
    }
}

#[test]
fn manager_clients_are_listed_with_what_they_may() {
    let mut desk = Desk::new("managers");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 40_000));
    desk.cli.set_connected([(3, "admin", address)].into_iter());
    desk.pass(7);
    desk.cli.set_connected([(3, "admin", address), (4, "board", address)].into_iter());
    let json = desk.json("manager show connected");
    assert_eq!(
        (json["clients"][0]["seconds"].as_u64(), json["clients"][1]["seconds"].as_u64()),
        (Some(7), Some(0))
    );
    assert_eq!(
        desk.lines("manager show connected")[1],
        "  admin            127.0.0.1:40000                                7"
    );
    assert!(desk.text("manager show connected").ends_with("\n2 users connected.\n"));
    desk.cli.set_connected(std::iter::empty());
    assert_eq!(desk.json("manager show connected")["clients"], serde_json::json!([]));
}

#[test]
fn what_was_written_is_shown_and_secrets_are_not() {
    let mut desk = Desk::new("written");
    let files = [
        (
            "pjsip.conf",
            "[trunk]\ntype=endpoint\nallow=ulaw\n[trunk-in]\ntype=identify\nendpoint=trunk\n\
             match=192.0.2.0/24,peer.example\nmatch_header=X-Trunk: /a+/\n",
        ),
        ("acl.conf", "[office]\ndeny=0.0.0.0/0\npermit=192.0.2.0/24\n"),
        (
            "manager.conf",
            "[general]\nenabled=no\n[board]\nsecret=not to be told ever\nread=call,cdr\nwrite=\n",
        ),
        ("logger.conf", "[logfiles]\nmessages = notice,warning,error\n"),
        ("extensions.conf", ""),
    ];
    for (name, text) in files {
        std::fs::write(desk.folder.join(name), text).unwrap();
    }
    let (snapshot, _) = Snapshot::load(&Where::Dir(desk.folder.clone())).unwrap();
    *desk.cli.site.snapshot.borrow_mut() = snapshot;
    assert_eq!(
        desk.lines("pjsip show identifies")[5..9],
        [
            " Identify:  trunk-in/trunk",
            "      Match:  192.0.2.0/24",
            "      Match:  peer.example",
            "      Match:  X-Trunk: /a+/",
        ]
    );
    assert_eq!(desk.lines("acl show office")[2..], ["  0: deny  - 0.0.0.0/0", "  1: allow - 192.0.2.0/24"]);
    assert_eq!(desk.lines("acl show"), ["acl", "---", "office"]);
    assert_eq!(desk.run("acl show home"), ("Could not find the named ACL 'home'\n".into(), 1));
    assert!(desk.text("manager show users").ends_with("\n1 manager user configured.\n"));
    let json = desk.json("manager show user board");
    assert_eq!((json["read"].as_str(), json["write"].as_str()), (Some("call,cdr"), Some("")));
    for line in ["manager show user board", "manager show users", "core show settings"] {
        assert!(!desk.text(line).contains("not to be told"), "{line}");
        assert!(!desk.json(line).to_string().contains("not to be told"), "{line}");
    }
    let log = desk.lines("logger show channels");
    assert!(
        log.iter().any(|line| line.contains("/messages") && line.ends_with(" - NOTICE WARNING ERROR")),
        "{log:?}"
    );
}

#[test]
fn no_two_rows_claim_the_same_shape() {
    let mut seen = BTreeSet::new();
    for row in rows() {
        for shape in std::iter::once(&row.shape).chain(row.also) {
            assert!(seen.insert(*shape), "{shape} stands twice");
        }
        assert!(row.summary.ends_with('.'), "{}", row.shape);
    }
}

#[test]
fn forty_thousand_channels_are_listed_in_linear_time_and_whole() {
    let mut desk = Desk::new("many");
    {
        let core = &mut *desk.world.shard.core.borrow_mut();
        for _ in 0..40_000 {
            let new = call::NewChannel {
                base_name: "SIM/6001".into(),
                state: ChanState::Up,
                ..call::NewChannel::default()
            };
            core.create(new).unwrap();
        }
    }
    let text = desk.text("core show channels concise");
    assert_eq!(text.lines().count(), 40_000);
    assert!(text.lines().all(|line| line.matches('!').count() == 13));
    assert_eq!(desk.json("core show channels")["channels"].as_array().unwrap().len(), 40_000);
    assert_eq!(desk.cli.complete("core show channel S").len(), COMPLETIONS_MAX);
}

/// After a change of a row: `UPDATE_DOCS=1 cargo test -p control manual` writes the page anew.
#[test]
fn the_manual_of_commands_is_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let page = manual();
    for row in rows() {
        assert!(page.contains(&format!("### `{}`", row.shape)), "{}", row.shape);
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    if before == page {
        return;
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page).unwrap();
        return;
    }
    let line = before.lines().zip(page.lines()).find(|(old, new)| old != new);
    panic!("docs/commands.md is behind the table, first at {line:?}; see the comment above this test");
}
