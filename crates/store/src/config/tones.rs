//! `indications.conf`: the tones of a country, with a built-in table for when the file does not have it.
//!
//! Frequencies and cadences of the table are those of ITU-T E.180 supplement 2, “Various tones used in national networks”.

use super::kind::Text;
use super::{options, read_settings};
use conf::{File, Findings, Section};
use std::collections::BTreeMap;

/// One part of a tone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TonePart {
    /// First frequency in hertz; 0 with a second frequency of 0 is silence.
    pub first_hz: u16,
    /// Second frequency in hertz, or 0.
    pub second_hz: u16,
    /// The second frequency modulates the first instead of being added.
    pub modulated: bool,
    /// How long, in milliseconds; 0 is for ever.
    pub ms: u32,
    /// Played only the first time round.
    pub once: bool,
}

/// A tone: parts that are played one after the other and then again.
pub type Tone = Vec<TonePart>;

/// Most parts a tone may have; the longest in use has 30.
const PARTS_MAX: usize = 256;

/// Reads a tone: `[!][M]freq[+freq|*freq][/ms]`, comma separated (`|` is the old separator). `M` says that frequencies are
/// MIDI notes. Of sums of three and more the first two are heard, which is what fits two generators. `None` when it is none.
pub fn parse_tone(text: &str) -> Option<Tone> {
    let parts = text.split([',', '|']).map(str::trim).filter(|part| !part.is_empty());
    let parts: Option<Tone> = parts.map(tone_part).collect();
    parts.filter(|parts| !parts.is_empty() && parts.len() <= PARTS_MAX)
}

fn tone_part(text: &str) -> Option<TonePart> {
    let (text, once) = text.strip_prefix('!').map_or((text, false), |text| (text.trim_start(), true));
    let (tone, ms) = match text.split_once('/') {
        Some((tone, ms)) => (tone.trim(), ms.trim().parse().ok()?),
        None => (text, 0),
    };
    let modulated = tone.contains('*');
    let mut hz = tone.split(['+', '*']).map(|one| frequency(one.trim()));
    let (first_hz, second_hz) = (hz.next()??, hz.next().unwrap_or(Some(0))?);
    // The others have to be frequencies, too.
    hz.all(|one| one.is_some()).then_some(TonePart { first_hz, second_hz, modulated, ms, once })
}

/// Hertz, or the note of MIDI behind an `M`: 69 is 440 Hz, each further one a twelfth of an octave. What a sound of 8,000
/// samples a second does not have is silence.
fn frequency(text: &str) -> Option<u16> {
    let hz = match text.strip_prefix(['M', 'm']) {
        Some(note) => {
            let note = note.parse::<u8>().ok().filter(|note| *note <= NOTE_MAX)?;
            (440.0 * 2.0_f64.powf((f64::from(note) - 69.0) / 12.0)).round() as u32
        }
        None => text.parse::<u32>().ok()?,
    };
    Some(if hz < HZ_MAX { hz as u16 } else { 0 })
}

/// Frequencies from here on are not in a sound of 8,000 samples a second.
const HZ_MAX: u32 = 4_000;
/// The highest note of MIDI.
const NOTE_MAX: u8 = 127;

options! {
    /// `[general]` of `indications.conf`.
    TonesGeneral, "indications.conf", "general", IsIgnored;
    country: Text = "us", "Country whose tones are played when a channel names none.";
    @recognised {}
}

/// The text of a tone, as it stands in the file.
pub fn tone_text(tone: &[TonePart]) -> String {
    let mut text = String::new();
    for part in tone {
        if !text.is_empty() {
            text.push(',');
        }
        let once = if part.once { "!" } else { "" };
        let joined = match (part.second_hz, part.modulated) {
            (0, _) => String::new(),
            (second, true) => format!("*{second}"),
            (second, false) => format!("+{second}"),
        };
        text.push_str(&format!("{once}{}{joined}", part.first_hz));
        if part.ms > 0 {
            text.push_str(&format!("/{}", part.ms));
        }
    }
    text
}

/// Tones of a country.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Zone {
    /// Its name.
    pub description: String,
    /// Ring cadence in milliseconds: ring, pause, ring, pause.
    pub ring_cadence: Vec<u32>,
    /// Tones by name: dial, busy, ring, congestion, callwaiting, dialrecall, record, info, stutter.
    pub tones: BTreeMap<String, Tone>,
    /// Their names as the file has them in order; empty for one that is built in.
    pub order: Vec<String>,
}

/// `indications.conf` as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Tones {
    /// `[general]`.
    pub general: TonesGeneral,
    /// Countries by code in lower case, those of the built-in table included.
    pub zones: BTreeMap<String, Zone>,
    /// Those of them that the file has.
    pub written: Vec<String>,
}

impl Default for Tones {
    fn default() -> Self {
        Self { general: TonesGeneral::default(), zones: built_in(), written: Vec::new() }
    }
}

impl Tones {
    /// Reads the file over the built-in table.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let general = read_settings(file, "general", findings);
        let mut tones = Self { general, zones: built_in(), written: Vec::new() };
        let mut aliases = Vec::new();
        for section in file.objects().filter(|section| !section.name.eq_ignore_ascii_case("general")) {
            let code = section.name.to_ascii_lowercase();
            if let Some(alias) = section.last("alias") {
                aliases.push((code, alias.clone()));
                continue;
            }
            tones.written.push(code.clone());
            tones.zones.insert(code, zone(section, findings));
        }
        for (code, alias) in aliases {
            match tones.zones.get(&alias.value.to_ascii_lowercase()).cloned() {
                Some(zone) => {
                    tones.written.push(code.clone());
                    tones.zones.insert(code, zone);
                }
                None => findings.warning(
                    &alias.place,
                    format!("alias={} of [{code}] names a country that is not there", alias.value),
                    "correct the code",
                ),
            }
        }
        let country = tones.general.country.to_ascii_lowercase();
        if !tones.zones.contains_key(&country) {
            findings.warning(
                tones.general.origin.place_of("country"),
                format!("country={country} has no tones here or in the built-in table; us holds"),
                format!("add a section [{country}]"),
            );
            tones.general.country = "us".into();
        }
        tones
    }
    /// A country by its code in any case, or the default country.
    pub fn zone(&self, code: &str) -> Option<&Zone> {
        let wanted = self.zones.get(&code.to_ascii_lowercase());
        wanted.or_else(|| self.zones.get(&self.general.country.to_ascii_lowercase()))
    }
}

fn zone(section: &Section, findings: &mut Findings) -> Zone {
    let mut zone = Zone::default();
    for variable in &section.variables {
        match variable.name.to_ascii_lowercase().as_str() {
            "description" => zone.description = variable.value.to_string(),
            "ringcadence" => match cadence(&variable.value) {
                Some(cadence) => zone.ring_cadence = cadence,
                None => findings.warning(
                    &variable.place,
                    format!("ringcadence={} is no list of milliseconds", variable.value),
                    "write ringcadence=2000,4000",
                ),
            },
            name => match parse_tone(&variable.value) {
                Some(tone) => {
                    if zone.tones.insert(name.to_owned(), tone).is_none() {
                        zone.order.push(name.to_owned());
                    }
                }
                None => findings.warning(
                    &variable.place,
                    format!("{name}={} is no tone and is ignored", variable.value),
                    "write frequencies and milliseconds: 480+620/500,0/500",
                ),
            },
        }
    }
    zone
}

/// Milliseconds of ring and pause in turn. A part may have a frequency before a `/`, as parts of tones do.
fn cadence(text: &str) -> Option<Vec<u32>> {
    let parts = text.split([',', '|', '/']).map(str::trim).filter(|part| !part.is_empty());
    parts.map(|ms| ms.parse().ok()).collect()
}

const SIT: &str = "!950/330,!1400/330,!1800/330,0";
type Country = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Code, name, ring cadence, tones.
#[rustfmt::skip]
const COUNTRIES: &[Country] = &[
    ("us", "United States / North America", "2000,4000", &[
        ("dial", "350+440"), ("busy", "480+620/500,0/500"), ("ring", "440+480/2000,0/4000"),
        ("congestion", "480+620/250,0/250"), ("callwaiting", "440/300,0/10000"),
        ("dialrecall", "!350+440/100,!0/100,!350+440/100,!0/100,!350+440/100,!0/100,350+440"),
        ("record", "1400/500,0/15000"), ("info", SIT),
        ("stutter", "!350+440/100,!0/100,!350+440/100,!0/100,!350+440/100,!0/100,!350+440/100,!0/100,350+440"),
    ]),
    ("uk", "United Kingdom", "400,200,400,2000", &[
        ("dial", "350+440"), ("busy", "400/375,0/375"), ("ring", "400+450/400,0/200,400+450/400,0/2000"),
        ("congestion", "400/400,0/350,400/225,0/525"), ("callwaiting", "400/100,0/4000"), ("dialrecall", "350+440"),
        ("record", "1400/500,0/60000"), ("info", "950/330,0/15,1400/330,0/15,1800/330,0/1000"),
        ("stutter", "350+440/750,440/750"),
    ]),
    ("de", "Germany", "1000,4000", &[
        ("dial", "425"), ("busy", "425/480,0/480"), ("ring", "425/1000,0/4000"), ("congestion", "425/240,0/240"),
        ("callwaiting", "!425/200,!0/200,!425/200,!0/5000,!425/200,!0/200,!425/200,0"),
        ("dialrecall", "!425/100,!0/100,!425/100,!0/100,!425/100,!0/100,425"), ("record", "1400/80,0/15000"),
        ("info", "950/330,1400/330,1800/330,0/1000"), ("stutter", "425+400"),
    ]),
    ("fr", "France", "1500,3500", &[
        ("dial", "440"), ("busy", "440/500,0/500"), ("ring", "440/1500,0/3500"), ("congestion", "440/250,0/250"),
        ("callwaiting", "440/300,0/10000"), ("dialrecall", "!440/100,!0/100,!440/100,!0/100,!440/100,!0/100,440"),
        ("record", "1400/500,0/15000"), ("info", SIT), ("stutter", "!440/100,!0/100,!440/100,!0/100,440"),
    ]),
    ("nl", "Netherlands", "1000,4000", &[
        ("dial", "425"), ("busy", "425/500,0/500"), ("ring", "425/1000,0/4000"), ("congestion", "425/250,0/250"),
        ("callwaiting", "425/500,0/9500"), ("dialrecall", "425/500,0/50"), ("record", "1400/500,0/15000"),
        ("info", "950/330,1400/330,1800/330,0/1000"), ("stutter", "425/500,0/50"),
    ]),
    ("se", "Sweden", "1000,5000", &[
        ("dial", "425"), ("busy", "425/250,0/250"), ("ring", "425/1000,0/5000"), ("congestion", "425/250,0/750"),
        ("callwaiting", "425/200,0/500,425/200,0/9100"),
        ("dialrecall", "!425/100,!0/100,!425/100,!0/100,!425/100,!0/100,425"), ("record", "1400/500,0/15000"),
        ("info", "!950/332,!0/24,!1400/332,!0/24,!1800/332,0"), ("stutter", "425/320,0/20"),
    ]),
    ("au", "Australia", "400,200,400,2000", &[
        ("dial", "413+438"), ("busy", "425/375,0/375"), ("ring", "413+438/400,0/200,413+438/400,0/2000"),
        ("congestion", "425/375,0/375,420/375,0/375"), ("callwaiting", "425/200,0/200,425/200,0/4400"),
        ("dialrecall", "413+438"), ("record", "!425/1000,!0/15000,425/360,0/15000"), ("info", "425/2500,0/500"),
        ("stutter", "413+438/100,0/40"),
    ]),
    ("jp", "Japan", "1000,2000", &[
        ("dial", "400"), ("busy", "400/500,0/500"), ("ring", "400*16/1000,0/2000"), ("congestion", "400/500,0/500"),
        ("callwaiting", "400*16/500,0/8000"), ("dialrecall", "!400/200,!0/200,!400/200,!0/200,400"),
        ("record", "1400/500,0/15000"), ("info", SIT), ("stutter", "!400/100,!0/100,!400/100,!0/100,400"),
    ]),
    ("it", "Italy", "1000,4000", &[
        ("dial", "425/200,0/200,425/600,0/1000"), ("busy", "425/500,0/500"), ("ring", "425/1000,0/4000"),
        ("congestion", "425/200,0/200"), ("callwaiting", "425/400,0/100,425/250,0/100,425/150,0/14000"),
        ("dialrecall", "470/400,425/400"), ("record", "1400/400,0/15000"), ("info", SIT), ("stutter", "470/400,425/400"),
    ]),
    ("es", "Spain", "1500,3000", &[
        ("dial", "425"), ("busy", "425/200,0/200"), ("ring", "425/1500,0/3000"),
        ("congestion", "425/200,0/200,425/200,0/200,425/200,0/600"), ("callwaiting", "425/175,0/175,425/175,0/3500"),
        ("dialrecall", "!425/200,!0/200,!425/200,!0/200,425"), ("record", "1400/500,0/15000"), ("info", "950/330,0/1000"),
        ("stutter", "!425/200,!0/200,!425/200,!0/200,425"),
    ]),
    ("at", "Austria", "1000,5000", &[
        ("dial", "420"), ("busy", "420/400,0/400"), ("ring", "420/1000,0/5000"), ("congestion", "420/200,0/200"),
        ("callwaiting", "420/40,0/1960"), ("dialrecall", "420"), ("record", "1400/80,0/14920"),
        ("info", "950/330,1450/330,1850/330,0/1000"), ("stutter", "380+420"),
    ]),
    ("ch", "Switzerland", "1000,4000", &[
        ("dial", "425"), ("busy", "425/500,0/500"), ("ring", "425/1000,0/4000"), ("congestion", "425/200,0/200"),
        ("callwaiting", "425/200,0/200,425/200,0/4000"), ("dialrecall", "!425/100,!0/100,!425/100,!0/100,425"),
        ("record", "1400/80,0/15000"), ("info", "950/330,1400/330,1800/330,0/1000"), ("stutter", "425+340/1100,0/1100"),
    ]),
];

fn built_in() -> BTreeMap<String, Zone> {
    let zones = COUNTRIES.iter().map(|&(code, description, cadence, tones)| {
        let zone = Zone {
            description: description.to_owned(),
            ring_cadence: cadence.split(',').filter_map(|ms| ms.parse().ok()).collect(),
            tones: tones
                .iter()
                .filter_map(|&(name, tone)| Some((name.to_owned(), parse_tone(tone)?)))
                .collect(),
            order: Vec::new(),
        };
        (code.to_owned(), zone)
    });
    zones.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_country_of_the_table_has_all_nine_tones() {
        for (code, zone) in built_in() {
            let names: Vec<_> = zone.tones.keys().map(String::as_str).collect();
            let all = [
                "busy",
                "callwaiting",
                "congestion",
                "dial",
                "dialrecall",
                "info",
                "record",
                "ring",
                "stutter",
            ];
            assert_eq!(names, all, "{code}");
            assert!(zone.ring_cadence.len() >= 2, "{code}");
        }
    }

    #[test]
    fn a_tone_is_frequencies_and_milliseconds() {
        let part =
            |first_hz, second_hz, ms| TonePart { first_hz, second_hz, modulated: false, ms, once: false };
        for (text, expected) in [
            ("350+440", Some(vec![part(350, 440, 0)])),
            ("480+620/500,0/500", Some(vec![part(480, 620, 500), part(0, 0, 500)])),
            ("425/200|0/200", Some(vec![part(425, 0, 200), part(0, 0, 200)])),
            ("400*16/1000", Some(vec![TonePart { modulated: true, ..part(400, 16, 1000) }])),
            ("!950/330, 0", Some(vec![TonePart { once: true, ..part(950, 0, 330) }, part(0, 0, 0)])),
            ("", None),
            ("beep", None),
            ("425/", None),
            ("425+/5", None),
            ("350+375+400", Some(vec![part(350, 375, 0)])),
            ("350+375+400/500,0/500", Some(vec![part(350, 375, 500), part(0, 0, 500)])),
            ("350+375+x", None),
            ("1000/400,10000/400", Some(vec![part(1000, 0, 400), part(0, 0, 400)])),
            (
                "! 950 / 330 | 1400/330",
                Some(vec![TonePart { once: true, ..part(950, 0, 330) }, part(1400, 0, 330)]),
            ),
            ("M69/500", Some(vec![part(440, 0, 500)])),
            ("M69+M81/500", Some(vec![part(440, 880, 500)])),
            ("M69*M57", Some(vec![TonePart { modulated: true, ..part(440, 220, 0) }])),
            ("M128", None),
            ("-5/5", None),
        ] {
            assert_eq!(parse_tone(text), expected, "{text:?}");
        }
    }
}
