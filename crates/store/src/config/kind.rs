//! Kinds of option values: how text becomes a field, and what the manual calls it.
//!
//! The module is private; its types are public because the fields of configuration objects are made from them.

mod number;

use base::{Coded, FormatId, FormatSet};
use conf::{Finding, Findings, Level, Variable};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::acl::{Acl, Net};
use number::{decimal, no_effect, whole};

/// How the text of an option becomes the field of an object.
pub trait Kind {
    /// Type of the field.
    type Value: Default;
    /// What the manual calls it.
    fn describe() -> String;
    /// Applies one line. An `Err` of level error skips the object; of a lower level, the line.
    fn set(value: &mut Self::Value, variable: &Variable, notes: &mut Findings) -> Result<(), Finding>;
}

fn items(variable: &Variable) -> impl Iterator<Item = &str> {
    variable.value.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// What there is to say of text behind `what` a value is, which the field does not read either.
pub(crate) fn tell_rest(variable: &Variable, what: &str, rest: &str, notes: &mut Findings) {
    if !rest.is_empty() {
        let (name, value, rest) = (&variable.name, &variable.value, rest.trim());
        let message = format!("{name}={value}: `{rest}` behind the {what} is not read");
        notes.push(variable.finding(Level::Warning, message, "remove it; a comment begins with `;`"));
    }
}

/// Text, last line wins.
pub struct Text;
impl Kind for Text {
    type Value = String;
    fn describe() -> String {
        "text".into()
    }
    fn set(value: &mut String, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        *value = variable.value.to_string();
        Ok(())
    }
}

/// Yes or no.
pub struct YesNo;
impl Kind for YesNo {
    type Value = bool;
    fn describe() -> String {
        "yes, no".into()
    }
    fn set(value: &mut bool, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        *value = variable.boolean()?;
        Ok(())
    }
}

/// A folder.
pub struct Folder;
impl Kind for Folder {
    type Value = PathBuf;
    fn describe() -> String {
        "folder".into()
    }
    fn set(value: &mut PathBuf, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        *value = PathBuf::from(&*variable.value);
        Ok(())
    }
}

/// Whole number in a range.
pub struct Int<const LOW: u32, const HIGH: u32>;
impl<const LOW: u32, const HIGH: u32> Kind for Int<LOW, HIGH> {
    type Value = u32;
    fn describe() -> String {
        if HIGH == u32::MAX { format!("number from {LOW}") } else { format!("number {LOW} to {HIGH}") }
    }
    fn set(value: &mut u32, variable: &Variable, notes: &mut Findings) -> Result<(), Finding> {
        *value = whole(variable, LOW..=HIGH, notes)?;
        Ok(())
    }
}

/// UDP or TCP port.
pub struct Port;
impl Kind for Port {
    type Value = u16;
    fn describe() -> String {
        "port".into()
    }
    fn set(value: &mut u16, variable: &Variable, notes: &mut Findings) -> Result<(), Finding> {
        if variable.value.is_empty() {
            return Err(no_effect(variable, "is empty", "write a port, or remove the line"));
        }
        let port = variable.leading_integer().and_then(|(port, rest)| Some((port.try_into().ok()?, rest)));
        let Some((port, rest)) = port else {
            *value = variable.integer(0..=u16::MAX)?;
            return Ok(());
        };
        tell_rest(variable, "number", rest, notes);
        *value = port;
        Ok(())
    }
}

/// Decimal number from 0.
pub struct Decimal;
impl Kind for Decimal {
    type Value = f64;
    fn describe() -> String {
        "decimal number".into()
    }
    fn set(value: &mut f64, variable: &Variable, notes: &mut Findings) -> Result<(), Finding> {
        *value = decimal(variable, 0.0..=1e9, notes)?;
        Ok(())
    }
}

/// Decibels by which something becomes louder, or quieter.
pub struct Decibels;
impl Kind for Decibels {
    type Value = base::Gain;
    fn describe() -> String {
        "decibels, -48 to 48".into()
    }
    fn set(value: &mut base::Gain, variable: &Variable, notes: &mut Findings) -> Result<(), Finding> {
        *value = base::Gain::of_decibels(decimal(variable, -48.0..=48.0, notes)?);
        Ok(())
    }
}

/// Whole seconds in a range.
pub struct Seconds<const LOW: u32, const HIGH: u32>;
impl<const LOW: u32, const HIGH: u32> Kind for Seconds<LOW, HIGH> {
    type Value = Duration;
    fn describe() -> String {
        format!("seconds, {LOW} to {HIGH}")
    }
    fn set(value: &mut Duration, variable: &Variable, notes: &mut Findings) -> Result<(), Finding> {
        *value = Duration::from_secs(whole(variable, LOW..=HIGH, notes)?.into());
        Ok(())
    }
}

/// Seconds with decimals.
pub struct DecimalSeconds;
impl Kind for DecimalSeconds {
    type Value = Duration;
    fn describe() -> String {
        "seconds, decimals allowed".into()
    }
    fn set(value: &mut Duration, variable: &Variable, notes: &mut Findings) -> Result<(), Finding> {
        *value = Duration::from_secs_f64(decimal(variable, 0.0..=86_400.0, notes)?);
        Ok(())
    }
}

/// Whole milliseconds in a range.
pub struct Millis<const LOW: u32, const HIGH: u32>;
impl<const LOW: u32, const HIGH: u32> Kind for Millis<LOW, HIGH> {
    type Value = Duration;
    fn describe() -> String {
        format!("milliseconds, {LOW} to {HIGH}")
    }
    fn set(value: &mut Duration, variable: &Variable, notes: &mut Findings) -> Result<(), Finding> {
        *value = Duration::from_millis(whole(variable, LOW..=HIGH, notes)?.into());
        Ok(())
    }
}

/// Names separated by commas; the last line wins.
pub struct Names;
impl Kind for Names {
    type Value = Vec<String>;
    fn describe() -> String {
        "names, comma separated".into()
    }
    fn set(value: &mut Vec<String>, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        *value = items(variable).map(str::to_owned).collect();
        Ok(())
    }
}

/// Cipher suites as OpenSSL lists them: separated by commas, colons or blanks; the last line wins.
pub struct Ciphers;
impl Kind for Ciphers {
    type Value = Vec<String>;
    fn describe() -> String {
        "suites by OpenSSL's names, comma or colon separated".into()
    }
    fn set(value: &mut Vec<String>, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        let items = variable.value.split([',', ':', ' ']).map(str::trim).filter(|item| !item.is_empty());
        *value = items.map(str::to_owned).collect();
        Ok(())
    }
}

/// Names separated by commas; lines add up.
pub struct Gathered;
impl Kind for Gathered {
    type Value = Vec<String>;
    fn describe() -> String {
        "names, comma separated, lines add up".into()
    }
    fn set(value: &mut Vec<String>, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        value.extend(items(variable).map(str::to_owned));
        Ok(())
    }
}

/// Numbered groups of call pickup.
pub struct GroupNumbers;
impl Kind for GroupNumbers {
    type Value = String;
    fn describe() -> String {
        "0 to 63, comma separated, with ranges such as 3-5".into()
    }
    fn set(value: &mut String, variable: &Variable, notes: &mut Findings) -> Result<(), Finding> {
        let is_group = |part: &&str| call::pickup::Groups::default().set_numbers(part).is_ok();
        let (groups, others): (Vec<&str>, Vec<&str>) = items(variable).partition(is_group);
        for part in others {
            let message = format!(
                "{}={} holds `{part}`, which is no group and is ignored",
                variable.name, variable.value
            );
            let remedy = "write numbers from 0 to 63, or use named_call_group";
            notes.push(variable.finding(Level::Warning, message, remedy));
        }
        *value = groups.join(",");
        Ok(())
    }
}

/// One item a line; lines add up.
pub struct Lines;
impl Kind for Lines {
    type Value = Vec<String>;
    fn describe() -> String {
        "text, lines add up".into()
    }
    fn set(value: &mut Vec<String>, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        value.push(variable.value.to_string());
        Ok(())
    }
}

/// `name=value`; lines add up.
pub struct Pairs;
impl Kind for Pairs {
    type Value = Vec<(String, String)>;
    fn describe() -> String {
        "name=value, lines add up".into()
    }
    fn set(value: &mut Vec<(String, String)>, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        let Some((name, text)) = variable.value.split_once('=') else {
            let message = format!("{}={} has no second `=`", variable.name, variable.value);
            return Err(variable.finding(
                Level::Error,
                message,
                format!("write {}=NAME=value", variable.name),
            ));
        };
        value.push((name.trim().to_owned(), text.trim().to_owned()));
        Ok(())
    }
}

/// A password or a hash that stands for one. Printing it for debugging shows nothing of it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
    /// The secret itself; call this only where it is used.
    pub fn expose(&self) -> &str {
        &self.0
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "(no secret)" } else { "(secret)" })
    }
}

/// A password.
pub struct Hidden;
impl Kind for Hidden {
    type Value = Secret;
    fn describe() -> String {
        "secret".into()
    }
    fn set(value: &mut Secret, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        *value = Secret::new(&*variable.value);
        Ok(())
    }
}

fn bad(variable: &Variable, wanted: &str, remedy: &str) -> Finding {
    variable.finding(Level::Error, format!("{}={} is not {wanted}", variable.name, variable.value), remedy)
}

/// Address to listen on, with the port if one is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bind {
    /// Address; unspecified means every one of its family.
    pub ip: IpAddr,
    /// Port, if written.
    pub port: Option<u16>,
}

impl Bind {
    /// With a port for when none is written.
    pub fn or_port(self, port: u16) -> SocketAddr {
        SocketAddr::new(self.ip, self.port.unwrap_or(port))
    }
    fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Some(Self { ip: address.ip(), port: Some(address.port()) });
        }
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        bare.parse().ok().map(|ip| Self { ip, port: None })
    }
}

/// An address to listen on.
pub struct BindTo;
impl Kind for BindTo {
    type Value = Option<Bind>;
    fn describe() -> String {
        "IP address with an optional port".into()
    }
    fn set(value: &mut Option<Bind>, variable: &Variable, notes: &mut Findings) -> Result<(), Finding> {
        let (text, rest) = variable.value.split_once(char::is_whitespace).unwrap_or((&*variable.value, ""));
        let bind = Bind::parse(text);
        if bind.is_some() {
            tell_rest(variable, "address", rest, notes);
        }
        *value = Some(bind.ok_or_else(|| {
            bad(
                variable,
                "an address to listen on",
                "write 0.0.0.0, 192.0.2.1:5060, [::] or [2001:db8::1]:5060",
            )
        })?);
        Ok(())
    }
}

/// Servers with an optional port after an `@`; lines add up.
pub struct Servers;
impl Kind for Servers {
    type Value = Vec<Bind>;
    fn describe() -> String {
        "IP address, optional @port; lines add up".into()
    }
    fn set(value: &mut Vec<Bind>, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        let (ip, port) =
            variable.value.split_once('@').map_or((&*variable.value, None), |(ip, port)| (ip, Some(port)));
        let server =
            ip.trim().parse().ok().zip(port.map_or(Some(None), |port| port.trim().parse().ok().map(Some)));
        let (ip, port) = server
            .ok_or_else(|| bad(variable, "a server", "write 192.0.2.53, 192.0.2.53@5353 or 2001:db8::53"))?;
        value.push(Bind { ip, port });
        Ok(())
    }
}

/// Networks; lines add up.
pub struct Nets;
impl Kind for Nets {
    type Value = Vec<Net>;
    fn describe() -> String {
        "networks, comma separated, lines add up".into()
    }
    fn set(value: &mut Vec<Net>, variable: &Variable, notes: &mut Findings) -> Result<(), Finding> {
        for item in items(variable) {
            let (net, rest) = Net::leading(item)
                .ok_or_else(|| bad(variable, "a network", "write 192.0.2.0/24 or 2001:db8::/32"))?;
            tell_rest(variable, "network", rest, notes);
            value.push(net);
        }
        Ok(())
    }
}

/// `permit=` and `deny=` lines in one list; lines add up.
pub struct Rules;
impl Kind for Rules {
    type Value = Acl;
    fn describe() -> String {
        "networks, comma separated, lines add up".into()
    }
    fn set(value: &mut Acl, variable: &Variable, notes: &mut Findings) -> Result<(), Finding> {
        let permit = variable.name.to_ascii_lowercase().ends_with("permit");
        for rest in
            items(variable).filter_map(|item| Some(Net::leading(item.trim_start_matches('!').trim())?.1))
        {
            tell_rest(variable, "network", rest, notes);
        }
        value.add(permit, &variable.value).map_err(|item| {
            let message = format!("{}={} holds `{item}`, which is no network", variable.name, variable.value);
            variable.finding(
                Level::Error,
                message,
                "write 192.0.2.0/24, 192.0.2.0/255.255.255.0 or 2001:db8::/32",
            )
        })
    }
}

/// DSCP and ECN bits of an IP packet.
pub struct Tos;
impl Kind for Tos {
    type Value = u8;
    fn describe() -> String {
        "cs0 to cs7, af11 to af43, ef, or a number".into()
    }
    fn set(value: &mut u8, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        let parsed = parse_tos(&variable.value.to_ascii_lowercase());
        *value = parsed.ok_or_else(|| bad(variable, "a type of service", "write ef, cs3, af41 or 0xb8"))?;
        Ok(())
    }
}

/// RFC 2474 class selectors, RFC 2597 assured forwarding, RFC 3246 expedited forwarding.
fn parse_tos(text: &str) -> Option<u8> {
    if let Some(digit) = text.strip_prefix("cs") {
        return digit.parse::<u8>().ok().filter(|class| *class <= 7).map(|class| class << 5);
    }
    if let Some([class @ b'1'..=b'4', drop @ b'1'..=b'3']) = text.strip_prefix("af").map(str::as_bytes) {
        return Some((class - b'0') << 5 | (drop - b'0') << 3);
    }
    match text {
        "ef" => Some(0xb8),
        "none" | "" => Some(0),
        "lowdelay" => Some(0x10),
        "throughput" => Some(0x08),
        "reliability" => Some(0x04),
        "mincost" => Some(0x02),
        _ => {
            text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u8::from_str_radix(hex, 16).ok())
        }
    }
}

/// Formats an endpoint may use, in order of preference.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Codecs {
    /// Formats of sound of this build, in order of preference.
    pub formats: FormatSet,
    /// Formats of video, in order of preference.
    pub video: FormatSet,
    /// Packet length asked for with `codec:ms`, in milliseconds.
    pub packet_ms: Vec<(FormatId, u16)>,
    /// Allowed formats that this build does not have.
    pub missing: Vec<&'static str>,
    /// `allow=all`, and formats that were taken out afterwards.
    all: bool,
    refused: FormatSet,
}

impl Codecs {
    /// Takes the formats of external codecs in, where all are allowed.
    pub fn resolve(&mut self, coded: Coded) {
        for format in coded.iter().filter(|format| self.all && !self.refused.contains(*format)) {
            self.formats.push(format);
        }
    }
    /// Packet length asked for, in milliseconds.
    pub fn packet_ms(&self, format: FormatId) -> Option<u16> {
        self.packet_ms.iter().find(|(id, _)| *id == format).map(|&(_, ms)| ms)
    }
}

/// Formats that Asterisk names and this build cannot code.
const NOT_BUILT: &[&str] = &[
    "g719", "silk8", "silk12", "silk16", "silk24", "slin96", "slin192", "testlaw", "jpeg", "png", "red",
    "t140", "evs", "amr", "amrwb", "celt", "g723.1", "silk", "t38",
];

/// Longest packet a `codec:ms` may ask for, in milliseconds.
const PACKET_MS_MAX: u16 = 300;

/// `allow=` and `disallow=` in the order of the lines.
pub struct CodecList;
impl Kind for CodecList {
    type Value = Codecs;
    fn describe() -> String {
        "formats, comma separated, in order of preference; !name removes, all means every one that is coded \
         here, and all video"
            .into()
    }
    fn set(value: &mut Codecs, variable: &Variable, notes: &mut Findings) -> Result<(), Finding> {
        let disallow = variable.is("disallow");
        let items = variable.value.split([',', '&', '|']).map(str::trim).filter(|item| !item.is_empty());
        let mut unknown = None;
        for item in items {
            let (item, negated) = item.strip_prefix('!').map_or((item, false), |item| (item.trim(), true));
            let (name, packet) = item.split_once(':').map_or((item, None), |(name, ms)| (name, Some(ms)));
            let add = disallow == negated;
            if name.eq_ignore_ascii_case("all") {
                *value = Codecs::default();
                if add {
                    value.formats = FormatId::coded().collect();
                    value.video = FormatId::VIDEO.iter().copied().collect();
                    value.all = true;
                }
                continue;
            }
            let lower = name.to_ascii_lowercase();
            if let Some(format) = FormatId::from_name(name) {
                if add {
                    value.formats.push(format);
                } else {
                    value.formats.remove(format);
                    value.refused.push(format);
                }
                let said = packet.filter(|_| add);
                let length = said.and_then(|ms| ms.trim().parse::<u16>().ok());
                let length = length.filter(|ms| (10..=PACKET_MS_MAX).contains(ms));
                if let (Some(said), None) = (said, length) {
                    let message = format!("{name}:{said} is no packet length; that of {name} holds");
                    let remedy = format!("write {name}:20, or {name} alone");
                    notes.push(variable.finding(Level::Warning, message, remedy));
                }
                if let Some(ms) = length {
                    value.packet_ms.retain(|(id, _)| *id != format);
                    value.packet_ms.push((format, ms));
                }
            } else if let Some(format) = FormatId::video_from_name(name) {
                if add {
                    value.video.push(format);
                } else {
                    value.video.remove(format);
                }
            } else if let Some(missing) = NOT_BUILT.iter().find(|known| **known == lower) {
                value.missing.retain(|name| name != missing);
                if add {
                    value.missing.push(missing);
                    notes.push(variable.finding(
                        Level::Warning,
                        format!("{missing} is not built in; calls use the other formats of the list"),
                        "list the formats that are built in with `core show codecs`",
                    ));
                }
            } else {
                unknown = unknown.or(Some(name));
            }
        }
        let Some(name) = unknown else { return Ok(()) };
        let message =
            format!("{}={} names the format `{name}`, which does not exist", variable.name, variable.value);
        Err(variable.finding(Level::Error, message, "correct the name; `core show codecs` lists them"))
    }
}

/// One word of several. Made by `choice!`.
pub trait Choice: Sized + Copy + Default + 'static {
    /// Words and what they mean, the first word of a value being its own.
    const WORDS: &'static [(&'static str, Self)];
}

/// How a value of several words is written.
pub fn word_of<T: Choice + PartialEq>(value: T) -> &'static str {
    T::WORDS.iter().find(|(_, other)| *other == value).map_or("", |(word, _)| word)
}

impl<T: Choice> Kind for T {
    type Value = T;
    fn describe() -> String {
        T::WORDS.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
    }
    fn set(value: &mut T, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        let is = |wanted: &str| T::WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(wanted));
        // `y`, `t`, `on` and `1` are as good as `yes` wherever that is a word.
        let as_boolean = || is(if conf::boolean(&variable.value)? { "yes" } else { "no" });
        let found = is(&variable.value).or_else(as_boolean);
        let &(_, choice) = found
            .ok_or_else(|| bad(variable, "one of its words", &format!("write one of: {}", T::describe())))?;
        *value = choice;
        Ok(())
    }
}

/// An option that takes one of some words: an enum, its words, and its kind. The first variant is the default.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $first:ident $(| $first_word:literal)+ $first_doc:literal; $($variant:ident $(| $word:literal)+ $doc:literal;)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $name {
            #[doc = $first_doc]
            #[default]
            $first,
            $(#[doc = $doc] $variant,)*
        }
        impl $crate::config::kind::Choice for $name {
            const WORDS: &'static [(&'static str, Self)] =
                &[$(($first_word, Self::$first),)+ $($(($word, Self::$variant),)+)*];
        }
    };
}
pub(crate) use choice;
