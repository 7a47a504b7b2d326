//! What the first argument of AGI names.

use core::net::IpAddr;
use core::time::Duration;

use base::dns::{Kind, Question, Records, by_rank};
use call::{LinkWant, Stop};

use crate::Call;

/// The port of AGI servers.
const PORT: u16 = 4573;
/// How long a call waits for the DNS to name the servers of hagi://.
const LOOKUP: Duration = Duration::from_secs(5);
/// Servers that are tried, one after the other.
const SERVERS_MAX: usize = 8;

/// Whom a call is steered by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// A program: a path, or a name in `astagidir`.
    Program(String),
    /// A server.
    Server {
        /// As it was written.
        url: String,
        host: String,
        port: Option<u16>,
        script: String,
        /// `hagi://`: the DNS is to say which servers there are (RFC 2782).
        by_service: bool,
    },
    /// Managers.
    Managers,
}

impl Target {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("AGI requires an argument (script)".to_owned());
        }
        if text.eq_ignore_ascii_case("agi:async") {
            return Ok(Self::Managers);
        }
        for (scheme, by_service) in [("agi://", false), ("hagi://", true)] {
            if let Some(rest) = text.get(..scheme.len()).filter(|s| s.eq_ignore_ascii_case(scheme)) {
                let rest = text.get(rest.len()..).unwrap_or_default();
                let (authority, script) = rest.split_once('/').unwrap_or((rest, ""));
                let (host, port) =
                    authority_of(authority).ok_or_else(|| format!("'{text}' names no host"))?;
                let (url, script) = (text.to_owned(), script.to_owned());
                // A port that is written leaves the DNS nothing to say, nor does an address.
                let by_service = by_service && port.is_none() && host.parse::<IpAddr>().is_err();
                return Ok(Self::Server { url, host, port, script, by_service });
            }
        }
        if text.split('/').any(|part| part == "..") {
            return Err(format!("the script '{text}' is not started: a name must not lead upwards"));
        }
        if text.contains(['\0', '\n', '\r']) {
            return Err("the name of the script is no name".to_owned());
        }
        Ok(Self::Program(text.to_owned()))
    }

    /// The path of a server's URL.
    pub(super) fn script(&self) -> Option<&str> {
        match self {
            Self::Server { script, .. } => Some(script),
            Self::Program(_) | Self::Managers => None,
        }
    }

    /// The name whose servers the DNS is to name.
    pub(super) fn service(&self) -> Option<&str> {
        match self {
            Self::Server { host, by_service: true, .. } => Some(host),
            Self::Server { .. } | Self::Program(_) | Self::Managers => None,
        }
    }

    /// What is to be opened, and what the script is told that it was asked for as.
    pub(super) fn want(
        self,
        call: &Call,
        words: &[String],
        audio: bool,
        found: Vec<(String, u16)>,
    ) -> Result<(LinkWant, String), String> {
        match self {
            Self::Program(name) => Ok(program(call, &name, words, audio)),
            Self::Server { .. } if audio => Err("EAGI is for programs: a server hears nothing".to_owned()),
            Self::Server { url, host, port, by_service: false, .. } => {
                Ok((LinkWant::Server { hosts: vec![(host, port.unwrap_or(PORT))] }, url))
            }
            Self::Server { url, by_service: true, .. } if found.is_empty() => {
                Err(format!("{url}: the DNS names no server in SRV records of _agi._tcp"))
            }
            Self::Server { url, by_service: true, .. } => Ok((LinkWant::Server { hosts: found }, url)),
            Self::Managers => Err("managers are not connected to".to_owned()),
        }
    }
}

/// Servers of a name in the order in which they are to be tried (RFC 2782); none when the DNS names none in time.
pub(super) async fn servers(call: &Call, name: &str) -> Result<Vec<(String, u16)>, Stop> {
    let question = Question::new(Kind::Srv, &format!("_agi._tcp.{name}"));
    if !question.is_askable() {
        return Ok(Vec::new());
    }
    // A call that has ended before is steered all the same.
    let after_end = call.chan.check().is_err();
    let records = call.chan.dns(&question, call.chan.now() + LOOKUP, after_end).await?;
    let Some(Records::Srv(records)) = records else { return Ok(Vec::new()) };
    let ranked = call.chan.core(|core| {
        by_rank(&records, &mut |most| (core.random() % (u64::from(most) + 1)) as u32)
            .into_iter()
            .take(SERVERS_MAX)
            .map(|server| (server.target.trim_end_matches('.').to_owned(), server.port))
            .collect()
    });
    Ok(ranked)
}

/// Host and port of `host[:port]`, `[address]:port`.
pub(crate) fn authority_of(text: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':'))
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = match port {
        None | Some("") => None,
        Some(port) => Some(port.parse().ok().filter(|port| *port > 0)?),
    };
    (!host.is_empty() && !host.contains(char::is_whitespace)).then(|| (host.to_owned(), port))
}

/// Folders that scripts are told of, as (variable, directory of asterisk.conf).
const FOLDERS: [(&str, &str); 9] = [
    ("AST_CONFIG_DIR", "etc"),
    ("AST_MODULE_DIR", "mod"),
    ("AST_SPOOL_DIR", "spool"),
    ("AST_VAR_DIR", "varlib"),
    ("AST_DATA_DIR", "data"),
    ("AST_LOG_DIR", "log"),
    ("AST_AGI_DIR", "agi"),
    ("AST_KEY_DIR", "key"),
    ("AST_RUN_DIR", "run"),
];

/// A program of `astagidir`, or of an absolute path, with what it finds in its environment; and its name.
pub(crate) fn program(call: &Call, name: &str, words: &[String], audio: bool) -> (LinkWant, String) {
    let folders = call.chan.core(|core| core.settings.clone());
    let folder = |name: &str| folders.directories.0.get(name).cloned().unwrap_or_default();
    let path = if name.starts_with('/') { name.to_owned() } else { format!("{}/{name}", folder("agi")) };
    let mut environment: Vec<(String, String)> =
        FOLDERS.iter().map(|(variable, name)| ((*variable).to_owned(), folder(name))).collect();
    environment.push(("AST_MONITOR_DIR".to_owned(), format!("{}/monitor", folder("spool"))));
    environment.push(("AST_CONFIG_FILE".to_owned(), format!("{}/asterisk.conf", folder("etc"))));
    (LinkWant::Program { path, args: words.to_vec(), environment, audio }, name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str, host: &str, port: Option<u16>, script: &str, by_service: bool) -> Target {
        Target::Server {
            url: url.to_owned(),
            host: host.to_owned(),
            port,
            script: script.to_owned(),
            by_service,
        }
    }

    #[test]
    fn a_target_is_a_program_a_server_or_managers() {
        for (text, expected) in [
            ("hello.py", Some(Target::Program("hello.py".to_owned()))),
            ("/opt/agi/hello", Some(Target::Program("/opt/agi/hello".to_owned()))),
            ("sub/hello.py", Some(Target::Program("sub/hello.py".to_owned()))),
            ("name..with..dots", Some(Target::Program("name..with..dots".to_owned()))),
            ("agi:async", Some(Target::Managers)),
            ("AGI:Async", Some(Target::Managers)),
            ("agi://h", Some(server("agi://h", "h", None, "", false))),
            ("agi://h/", Some(server("agi://h/", "h", None, "", false))),
            ("agi://h:99/a?b=c", Some(server("agi://h:99/a?b=c", "h", Some(99), "a?b=c", false))),
            ("agi://[::1]:99/a", Some(server("agi://[::1]:99/a", "::1", Some(99), "a", false))),
            ("agi://[::1]", Some(server("agi://[::1]", "::1", None, "", false))),
            ("hagi://h/a", Some(server("hagi://h/a", "h", None, "a", true))),
            ("hagi://h:99/a", Some(server("hagi://h:99/a", "h", Some(99), "a", false))),
            ("hagi://192.0.2.1/a", Some(server("hagi://192.0.2.1/a", "192.0.2.1", None, "a", false))),
            ("", None),
            ("../etc/x", None),
            ("a/../../x", None),
            ("/opt/../bin/sh", None),
            ("..", None),
            ("a\nb", None),
            ("agi://", None),
            ("agi:///x", None),
            ("agi://h:0/x", None),
            ("agi://h:99999/x", None),
            ("agi://h:x/x", None),
            ("agi://[::1/x", None),
        ] {
            assert_eq!(Target::parse(text).ok(), expected, "{text:?}");
        }
    }
}
