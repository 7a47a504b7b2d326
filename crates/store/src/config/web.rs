//! `http.conf` and `prometheus.conf`: the HTTP server, and the metrics that it serves.

use super::acl::{Access, Acl, NamedAcls};
use super::kind::{Bind, BindTo, Ciphers, Hidden, Kind, Names, Port, Text, YesNo};
use super::{options, read_settings};
use conf::{File, Finding, Findings, Level, Variable};
use std::net::SocketAddr;

/// Paths and where they lead; lines add up.
pub struct Redirects;
impl Kind for Redirects {
    type Value = Vec<(String, String)>;
    fn describe() -> String {
        "two paths, lines add up".into()
    }
    fn set(value: &mut Self::Value, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        let mut words = variable.value.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some(from), Some(to), None) if from.starts_with('/') => {
                value.push((from.to_owned(), to.to_owned()));
                Ok(())
            }
            _ => {
                let message = format!("redirect={} is not two paths", variable.value);
                Err(variable.finding(Level::Error, message, "write redirect = /from /to"))
            }
        }
    }
}

options! {
    /// `[general]` of `http.conf`.
    HttpGeneral, "http.conf", "general", IsIgnored;
    enabled: YesNo = "no", "Serve HTTP.";
    bindaddr: BindTo = "127.0.0.1", "Address to listen on.";
    bindport: Port = "8088", "TCP port.";
    prefix: Text = "", "First part of every path: prefix=asterisk makes /metrics /asterisk/metrics.";
    servername: Text = "Asterisk", "What the header Server of answers says; nothing when empty.";
    ws_allowed_origins: Names = "", "Origins whose pages may speak SIP over WebSocket, such as `https://phone.example.com`; empty: every page, and what is no browser says nothing.";
    enable_status: YesNo = "no", "Serve a page at /httpstatus that says what the server is called and where it listens, to everybody.";
    enablestatic also "enable_static": YesNo = "no", "Serve the files of the folder static-http below astdatadir at /static, to everybody; not what is hidden, nor in a folder named private.";
    redirect: Redirects = "", "Where a path leads to, `/from /to`, whole paths with the prefix.";
    tlsenable also "sslenable": YesNo = "no", "Serve it under TLS too.";
    tlsbindaddr also "sslbindaddr": BindTo = "", "Address and port to listen on under TLS; unless written, that of bindaddr, port 8089.";
    tlsbindport also "sslbindport": Port = "8089", "Port under TLS when tlsbindaddr names none.";
    tlscertfile also "sslcert": Text = "asterisk.pem", "Certificate in PEM, then those between it and its authority.";
    tlsprivatekey also "sslprivatekey": Text = "", "Its key in PEM, without a password; empty: it is in tlscertfile.";
    tlscipher also "sslcipher": Ciphers = "", "Suites of TLS, preferred first; empty: all that are built in.";
    tlsdisablev12: YesNo = "no", "Speak TLS 1.3 only.";
    @recognised {
        "tlsdisablev1" "*" Ignored "TLS 1.0 is not built in";
        "tlsdisablev11" "*" Ignored "TLS 1.1 is not built in";
        "tlscafile" "*" Ignored "clients are asked for no certificate";
        "tlscapath" "*" Ignored "clients are asked for no certificate";
        "tlscadir" "*" Ignored "clients are asked for no certificate";
        "tlsverifyclient" "no" Later "clients are asked for no certificate";
        "tlsclientmethod" "*" Ignored "no server is called by it";
        "tlsdontverifyserver" "*" Ignored "no server is called by it";
        "tlsservercipherorder" "*" Ignored "the order of tlscipher holds";
        "sessionlimit" "*" Ignored "each answer ends its connection, and a connection without a request ends soon";
        "session_inactivity" "*" Ignored "each answer ends its connection";
        "session_keep_alive" "*" Ignored "each answer ends its connection";
    }
}

options! {
    /// `[general]` of `prometheus.conf`.
    Prometheus, "prometheus.conf", "general", IsIgnored;
    enabled: YesNo = "no", "Serve metrics to Prometheus, by the server of http.conf.";
    core_metrics_enabled: YesNo = "yes", "Give the metrics that begin with asterisk_core, which say how long the process runs and its version.";
    uri: Text = "metrics", "Where they are, below the prefix of http.conf.";
    auth_username: Text = "", "User of HTTP Basic authentication; everybody may read when it is empty.";
    auth_password: Hidden = "", "Password of that user.";
    auth_realm: Text = "Asterisk Prometheus Metrics", "Realm that the password is asked for.";
    @recognised {}
}

/// A section of `http.conf` with `type=restriction`: who may ask for paths that begin in one way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Restriction {
    /// What paths begin with, below the prefix of the file or with it, as [`plain_path`] spells it.
    pub path: String,
    /// Who may ask.
    pub access: Access,
}

impl Restriction {
    /// Reads the sections. What is not understood lets nobody in, so that a typing error opens no door.
    pub fn read(file: &File, named: &NamedAcls, findings: &mut Findings) -> Vec<Self> {
        let is_one = |section: &&conf::Section| {
            section
                .variables
                .iter()
                .any(|line| line.is("type") && line.value.eq_ignore_ascii_case("restriction"))
        };
        file.objects().filter(is_one).map(|section| Self::of(section, named, findings)).collect()
    }
    fn of(section: &conf::Section, named: &NamedAcls, findings: &mut Findings) -> Self {
        let (mut path, mut own, mut lists, mut is_shut) = (String::new(), Acl::default(), Vec::new(), false);
        for line in &section.variables {
            let value = line.value.trim();
            if line.is("path") {
                path = plain_path(value);
            } else if line.is("acl") {
                lists.extend(
                    value.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()),
                );
            } else if line.is("permit") || line.is("deny") {
                if let Err(item) = own.add(line.is("permit"), value) {
                    let message =
                        format!("`{item}` is no network; the restriction [{}] lets nobody in", section.name);
                    findings.push(line.finding(Level::Error, message, "write 192.0.2.0/24 or 2001:db8::/32"));
                    is_shut = true;
                }
            } else if !line.is("type") {
                let message = format!("`{}` is no option of a restriction and is ignored", line.name);
                findings.push(line.finding(
                    Level::Warning,
                    message,
                    "options are path, acl, permit and deny",
                ));
            }
        }
        let mut access = named.access(&own, &lists, &section.place, findings);
        if is_shut {
            access.shut();
        }
        Self { path, access }
    }
    /// Whether it lets this address ask for this path, which [`plain_path`] has spelt. `prefix` is that of the file.
    pub fn allows(&self, prefix: &str, path: &str, peer: std::net::IpAddr) -> bool {
        let below = path.strip_prefix(plain_path(prefix).as_str()).unwrap_or(path);
        let is_meant = path.starts_with(&self.path) || below.starts_with(&self.path);
        !is_meant || self.access.allows(peer)
    }
}

/// A path in one spelling, so that no other gets past a restriction: percent signs are read (RFC 3986 §2.1), slashes stand
/// alone, letters are small, and one stands at its beginning.
pub fn plain_path(path: &str) -> String {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let (mut bytes, mut rest) = (Vec::with_capacity(path.len() + 1), path.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let hex = (first == b'%').then(|| after.first_chunk::<2>()).flatten();
        let hex = hex.and_then(|pair| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok());
        bytes.push(hex.unwrap_or(first).to_ascii_lowercase());
        rest = if hex.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    let decoded = String::from_utf8_lossy(&bytes);
    let mut out = String::with_capacity(decoded.len() + 1);
    for part in decoded.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            let up = out.rfind('/').unwrap_or(0);
            out.truncate(up);
            continue;
        }
        out.push('/');
        out.push_str(part);
    }
    out
}

impl HttpGeneral {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        read_settings(file, "general", findings)
    }
    /// Where to listen; `None` when nothing is served.
    pub fn address(&self) -> Option<SocketAddr> {
        self.bindaddr.filter(|_| self.enabled).map(|bind| SocketAddr::new(bind.ip, self.bindport))
    }
    /// Where to listen under TLS; `None` when nothing is served so.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        let bind = self.tlsbindaddr.or(self.bindaddr.map(|bind| Bind { port: None, ..bind }));
        bind.filter(|_| self.enabled && self.tlsenable).map(|bind| bind.or_port(self.tlsbindport))
    }
    /// Whether it serves something by itself.
    pub fn has_pages(&self) -> bool {
        self.enable_status || self.enablestatic || !self.redirect.is_empty()
    }
    /// The path of what lies below the prefix.
    pub fn path(&self, below: &str) -> String {
        let part = |text: &str| match text.trim_matches('/') {
            "" => String::new(),
            name => format!("/{name}"),
        };
        format!("{}{}", part(&self.prefix), part(below))
    }
}

impl Prometheus {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        read_settings(file, "general", findings)
    }
    /// What does not fit together.
    pub(crate) fn check(&self, http: &HttpGeneral, findings: &mut Findings) {
        if self.enabled && !http.enabled {
            let message = "metrics are enabled, and http.conf serves nothing";
            findings.warning(
                self.origin.place_of("enabled"),
                message,
                "write enabled=yes in [general] of http.conf",
            );
        }
        if self.auth_username.is_empty() != self.auth_password.is_empty() {
            let message = "auth_username and auth_password go together; nobody may read the metrics";
            findings.warning(self.origin.place_of("auth_username"), message, "write both, or neither");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_two_paths() {
        let to = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        for (name, lines, expected, told) in [
            ("none", "", vec![], 0),
            (
                "two of them",
                "redirect = / /a\nredirect=/b  https://c.example/d\n",
                vec![to("/", "/a"), to("/b", "https://c.example/d")],
                0,
            ),
            ("one path", "redirect = /a\n", vec![], 1),
            ("three", "redirect = /a /b /c\n", vec![], 1),
            ("no path", "redirect = a /b\nredirect = /c /d\n", vec![to("/c", "/d")], 1),
        ] {
            let mut findings = Findings::new();
            let source = conf::Memory::new().with("http.conf", format!("[general]\n{lines}"));
            let file = conf::load(&source, "http.conf", conf::Options::default(), &mut findings).unwrap();
            let http = HttpGeneral::read(&file, &mut findings);
            assert_eq!((http.redirect, findings.iter().count()), (expected, told), "{name}");
        }
    }
}
