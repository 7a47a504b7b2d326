//! A configuration folder of a test.

use crate::place::{Place, address, free_ports};
use crate::tone;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// A configuration as a site would have it, in a folder and on an address of its own.
#[derive(Debug)]
pub struct Site {
    /// Where everything lies.
    pub place: Place,
    /// Where SIP listens, by UDP and TCP.
    pub sip: SocketAddr,
    files: BTreeMap<String, String>,
    /// What the program finds in its environment beside what every test gives it.
    pub(crate) environment: Vec<(&'static str, &'static str)>,
    /// Most descriptors that the program may have.
    pub(crate) descriptors: Option<u32>,
}

/// What moves the packets: the same for root and for everyone else, unless `E2E_MEDIA_IO` names another back-end.
fn media_io() -> String {
    std::env::var("E2E_MEDIA_IO").unwrap_or_else(|_| "epoll".into())
}

/// Password of every phone of a test.
pub const SECRET: &str = "correct-horse-battery";

impl Site {
    /// A site with transports, no phones, no dialplan, and a log that tells everything.
    pub fn new(name: &str) -> Self {
        Self::at(name, SocketAddr::new(address(), 5060))
    }

    /// A site on the IPv6 loopback, where there is one address for all.
    pub fn on_ipv6(name: &str) -> Self {
        let ip: IpAddr = std::net::Ipv6Addr::LOCALHOST.into();
        Self::at(name, SocketAddr::new(ip, free_ports(ip, 1)))
    }

    /// A site whose SIP listens there.
    pub fn at(name: &str, sip: SocketAddr) -> Self {
        let place = Place::new(name);
        let mut site =
            Self { place, sip, files: BTreeMap::new(), environment: Vec::new(), descriptors: None };
        let folders = ["etc", "moddir", "varlib", "db", "key", "data", "agi", "spool", "run", "log", "cache"];
        let options = [
            "astetcdir",
            "astmoddir",
            "astvarlibdir",
            "astdbdir",
            "astkeydir",
            "astdatadir",
            "astagidir",
            "astspooldir",
            "astrundir",
            "astlogdir",
            "astcachedir",
        ];
        let mut text = String::from("[directories]\n");
        for (option, folder) in options.iter().zip(folders) {
            let _ = writeln!(text, "{option} => {}", site.place.join(folder).display());
        }
        text.push_str("[options]\nverbose = 3\n");
        site.files.insert("asterisk.conf".into(), text);
        for (name, text) in [
            ("extensions.conf", "[general]\nstatic = yes\n[globals]\n".to_owned()),
            ("pjsip.conf", transports(sip)),
            ("rtp.conf", format!("[general]\nrtpstart = 20000\nrtpend = 29999\nmedia_io = {}\n", media_io())),
            (
                "logger.conf",
                "[general]\n[logfiles]\nfull => notice,warning,error,verbose,security\n".to_owned(),
            ),
            ("cdr.conf", "[general]\nenable = yes\n[csv]\nloguniqueid = yes\n".to_owned()),
            ("musiconhold.conf", "[default]\nmode = files\ndirectory = moh\n".to_owned()),
        ] {
            site.files.insert(name.into(), text);
        }
        site
    }

    /// Path of its asterisk.conf.
    pub fn config(&self) -> PathBuf {
        self.place.join("etc/asterisk.conf")
    }

    /// Puts a variable into the program's environment.
    #[must_use]
    pub fn environment(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, value));
        self
    }

    /// Lets the program have this many descriptors and no more.
    #[must_use]
    pub fn descriptors(mut self, most: u32) -> Self {
        self.descriptors = Some(most);
        self
    }

    /// Adds text to one of its files.
    #[must_use]
    pub fn add(mut self, file: &str, text: &str) -> Self {
        self.append(file, text);
        self
    }

    /// Adds text to one of its files.
    pub fn append(&mut self, file: &str, text: &str) {
        let content = self.files.entry(file.to_owned()).or_default();
        content.push_str(text);
        content.push('\n');
    }

    /// Adds to the dialplan.
    #[must_use]
    pub fn dialplan(self, text: &str) -> Self {
        self.add("extensions.conf", text)
    }

    /// A phone that registers: an endpoint, an auth and an AOR of one name, calls in context `test`.
    #[must_use]
    pub fn phone(self, name: &str) -> Self {
        self.phone_with(name, "")
    }

    /// A phone with more lines for its endpoint; `allow=` among them replaces the codecs.
    #[must_use]
    pub fn phone_with(self, name: &str, endpoint: &str) -> Self {
        let allow = if endpoint.contains("allow") { "" } else { "allow=ulaw\n" };
        self.add(
            "pjsip.conf",
            &format!(
                "[{name}]\ntype=endpoint\ncontext=test\ndisallow=all\n{allow}direct_media=no\nauth={name}\naors={name}\n\
                 callerid=\"Phone {name}\" <{name}>\n{endpoint}\n\
                 [{name}]\ntype=auth\nauth_type=userpass\nusername={name}\npassword={SECRET}\n\
                 [{name}]\ntype=aor\nmax_contacts=4\nminimum_expiration=5\n"
            ),
        )
    }

    /// An endpoint at a fixed contact that needs no password, recognised by its address.
    #[must_use]
    pub fn trunk(self, name: &str, contact: SocketAddr) -> Self {
        self.add(
            "pjsip.conf",
            &format!(
                "[{name}]\ntype=endpoint\ncontext=test\ndisallow=all\nallow=ulaw\ndirect_media=no\naors={name}\n\
                 [{name}]\ntype=aor\ncontact=sip:{name}@{contact}\n\
                 [{name}]\ntype=identify\nendpoint={name}\nmatch={}\n",
                contact.ip()
            ),
        )
    }

    /// A prompt that is a steady tone, under its name.
    #[must_use]
    pub fn prompt(self, name: &str, hertz: f64, seconds: f64) -> Self {
        self.place.write(
            &format!("data/sounds/en/{name}.wav"),
            tone::wav(8000, 1, &tone::sine(8000, hertz, seconds)),
        );
        self
    }

    /// A prompt of speech at 8 kHz, under its name.
    #[must_use]
    pub fn spoken(self, name: &str, speech: &[i16]) -> Self {
        self.place.write(&format!("data/sounds/en/{name}.wav"), tone::wav(8000, 1, speech));
        self
    }

    /// Music of the class `default` that is a steady tone.
    #[must_use]
    pub fn music(self, hertz: f64, seconds: f64) -> Self {
        self.place.write("data/moh/tone.wav", tone::wav(8000, 1, &tone::sine(8000, hertz, seconds)));
        self
    }

    /// Writes all files.
    pub fn write(&self) {
        for (name, text) in &self.files {
            self.place.write(&format!("etc/{name}"), text);
        }
    }

    /// Writes one file anew, as an administrator would before a reload.
    pub fn rewrite(&mut self, name: &str, text: &str) {
        self.files.insert(name.to_owned(), text.to_owned());
        self.place.write(&format!("etc/{name}"), text);
    }

    /// The text of one of its files.
    pub fn text(&self, name: &str) -> &str {
        self.files.get(name).map_or("", String::as_str)
    }
}

fn transports(sip: SocketAddr) -> String {
    ["udp", "tcp"]
        .iter()
        .map(|protocol| format!("[{protocol}]\ntype=transport\nprotocol={protocol}\nbind={sip}\n"))
        .collect()
}
