//! `opentelemetry.conf`: traces of calls for a collector of OpenTelemetry.

use super::kind::{Hidden, Int, Names, Text, YesNo};
use super::{options, read_settings};
use conf::{File, Findings};

/// Port of collectors that take OTLP over HTTP, when none is written after `http://`.
const PORT: u16 = 4318;
/// The same after `https://`.
const TLS_PORT: u16 = 443;
/// Where they take traces, when no path is written.
const PATH: &str = "/v1/traces";

options! {
    /// `[general]` of `opentelemetry.conf`. Without the file nothing is traced.
    TelemetryGeneral, "opentelemetry.conf", "general", IsIgnored;
    enabled: YesNo = "yes", "Send traces of calls to a collector, as OTLP over HTTP (JSON).";
    endpoint: Text = "http://127.0.0.1:4318/v1/traces", "Where the collector takes traces: http://host (port 4318) or https://host (port 443), with path /v1/traces unless written.";
    authorization: Hidden = "", "Header Authorization of each request; empty sends none.";
    service_name: Text = "strowger", "The service that traces are of (service.name).";
    sample: Int<0, 100> = "100", "Calls in a hundred that are traced.";
    details: YesNo = "no", "Name callers, dialled extensions and arguments of applications in spans.";
    omit_applications: Names = "", "Applications whose steps get no span, such as NoOp,Set.";
    @recognised {}
}

/// Where traces go.
#[derive(Debug, Clone, PartialEq)]
pub struct Telemetry {
    /// `http://host:port/path`, or the same with `https`.
    pub url: String,
    /// The rest.
    pub general: TelemetryGeneral,
}

impl Telemetry {
    /// Reads the file; `None` when nothing is to be traced.
    pub fn read(file: &File, findings: &mut Findings) -> Option<Self> {
        let general: TelemetryGeneral = read_settings(file, "general", findings);
        if !general.enabled || general.sample == 0 {
            return None;
        }
        let place = general.origin.place_of("endpoint");
        match url(&general.endpoint) {
            Some(url) => Some(Self { url, general }),
            None => {
                let message =
                    format!("'{}' is no http://host:port/path; nothing is traced", general.endpoint);
                findings.warning(place, message, "write endpoint=http://host:4318, or enabled=no");
                None
            }
        }
    }
}

/// An address with all its parts.
fn url(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let port = match scheme {
        "http" => PORT,
        "https" => TLS_PORT,
        _ => return None,
    };
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (host, port) = super::host_and_port(authority, port)?;
    let path = if path.trim_matches('/').is_empty() { PATH } else { path };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    (plain(path) && plain(&host)).then(|| format!("{scheme}://{host}:{port}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_an_address_of_http() {
        for (text, expected) in [
            ("http://127.0.0.1:4318/v1/traces", Some("http://127.0.0.1:4318/v1/traces")),
            ("http://collector", Some("http://collector:4318/v1/traces")),
            ("http://collector:9/", Some("http://collector:9/v1/traces")),
            ("http://[2001:db8::1]:9/otlp/v1/traces?a=b", Some("http://[2001:db8::1]:9/otlp/v1/traces?a=b")),
            ("https://collector", Some("https://collector:443/v1/traces")),
            ("https://collector:4318/v1/traces", Some("https://collector:4318/v1/traces")),
            ("collector:4318", None),
            ("ftp://collector", None),
            ("http://", None),
            ("http://a:b", None),
            ("http://a/b c", None),
            ("http://a/b\r\nX: y", None),
        ] {
            assert_eq!(url(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn nothing_is_traced_without_a_collector_to_send_it_to() {
        for (name, text, traced, told) in [
            ("as it stands", "[general]\n", true, 0),
            ("off", "[general]\nenabled = no\nendpoint = nonsense\n", false, 0),
            ("no call", "[general]\nsample = 0\n", false, 0),
            ("no address", "[general]\nendpoint = nonsense\n", false, 1),
            ("under TLS", "[general]\nendpoint = https://collector\n", true, 0),
        ] {
            let mut findings = Findings::new();
            let source = conf::Memory::new().with("opentelemetry.conf", text);
            let file =
                conf::load(&source, "opentelemetry.conf", conf::Options::default(), &mut findings).unwrap();
            assert_eq!(Telemetry::read(&file, &mut findings).is_some(), traced, "{name}");
            assert_eq!(findings.iter().count(), told, "{name}");
        }
    }
}
