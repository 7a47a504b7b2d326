//! `res_parking.conf`: parking lots.

use call::parking::{DEFAULT_LOT, LotSettings, Sides};
use conf::{File, Finding, Findings, Level, Section, Variable};

use super::kind::{Choice, Kind, Seconds, Text, YesNo, choice};
use super::{Origin, options, read_object, read_settings};

impl Choice for Sides {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("no", Self::Nobody),
        ("caller", Self::Caller),
        ("callee", Self::Callee),
        ("both", Self::Both),
        ("parked", Self::Callee),
    ];
}
choice! {
    /// `findslot=`.
    FindSlot {
        First | "first" "The first free space.";
        Next | "next" "The one after the space that was given last.";
    }
}

/// Numbers of the spaces of a lot: `701-720`, or one.
pub struct Spaces;
impl Kind for Spaces {
    type Value = (u32, u32);
    fn describe() -> String {
        "first-last".into()
    }
    fn set(value: &mut (u32, u32), variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        *value = call::parking::spaces(&variable.value).map_err(|why| {
            let message = format!("{}={} {why}", variable.name, variable.value);
            variable.finding(Level::Error, message, "write the first and the last number, such as 701-720")
        })?;
        Ok(())
    }
}

options! {
    /// `[general]` of `res_parking.conf`.
    ParkingGeneral, "res_parking.conf", "general", IsIgnored;
    parkeddynamic: YesNo = "no", "Park() makes lots that no file has, as PARKINGDYNAMIC, PARKINGDYNCONTEXT, PARKINGDYNEXTEN and PARKINGDYNPOS say.";
    @recognised {}
}

options! {
    /// A parking lot.
    LotSection, "res_parking.conf", "lot", IsIgnored;
    parkext: Text = "", "Extension that parks who is sent there; empty: the lot has no extensions.";
    context: Text = "parkedcalls", "Context of that extension, and of one for each space.";
    parkpos: Spaces = "701-750", "Numbers of the spaces.";
    parkext_exclusive: YesNo = "no", "The extension parks in this lot, whatever lot the channel has.";
    parkinghints: YesNo = "no", "Each space has a hint, so that phones can watch it.";
    parkingtime: Seconds<0, 604_800> = "45", "How long a call waits; 0: until it is fetched.";
    findslot: FindSlot = "first", "Which free space is given.";
    parkedmusicclass: Text = "", "Music for those who wait, unless their channel has a class of its own.";
    comebacktoorigin: YesNo = "yes", "A call that waited too long goes back to who parked it; else to comebackcontext.";
    comebackdialtime: Seconds<1, 86_400> = "30", "How long who parked it rings then.";
    comebackcontext: Text = "parkedcallstimeout", "Context with an extension such as PJSIP_6001, else s.";
    courtesytone: Text = "", "Sound that is heard when a call is fetched.";
    parkedplay: Sides = "caller", "Who hears it: who fetches (caller), who was parked (callee), both or none.";
    parkedcalltransfers: Sides = "no", "Who may transfer by keys after that; when a call comes back, caller is the parked one.";
    parkedcallreparking: Sides = "no", "Who may park by a key.";
    parkedcallhangup: Sides = "no", "Who may hang up by a key.";
    parkedcallrecording: Sides = "no", "Who may record by a key.";
    @recognised {
        "adsipark" "*" Ignored "there are no ADSI phones";
    }
}

/// The file as the lots take it.
#[derive(Debug, Clone, PartialEq)]
pub struct ParkingConf {
    /// Lots; there is always one named `default`.
    pub lots: Vec<LotSettings>,
    /// `parkeddynamic`.
    pub dynamic: bool,
}

impl Default for ParkingConf {
    /// Without a file.
    fn default() -> Self {
        Self { lots: vec![LotSettings::default()], dynamic: false }
    }
}

impl ParkingConf {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let general: ParkingGeneral = read_settings(file, "general", findings);
        let mut lots: Vec<LotSettings> = Vec::new();
        for section in file.objects().filter(|section| !section.name.eq_ignore_ascii_case("general")) {
            if let Some(lot) = read_lot(section, findings) {
                match lots.iter().find(|other| other.overlaps(&lot)) {
                    Some(other) => {
                        let message = format!(
                            "parking lot '{}' has extensions of lot '{}' in context '{}' and is left out",
                            lot.name, other.name, lot.context
                        );
                        let remedy = "give it another context, parkext or parkpos; only a parkext that is not exclusive can be shared";
                        findings.error(&section.place, message, remedy);
                    }
                    None => lots.push(lot),
                }
            }
        }
        if !lots.iter().any(|lot| lot.name == DEFAULT_LOT) {
            lots.push(settings(DEFAULT_LOT, &super::Object::blank(Origin::default_of(DEFAULT_LOT))));
        }
        Self { lots, dynamic: general.parkeddynamic }
    }
    /// Rows of the manual.
    pub fn rows() -> Vec<super::Row> {
        use super::Object;
        [ParkingGeneral::rows(), LotSection::rows()].concat()
    }
}

fn read_lot(section: &Section, findings: &mut Findings) -> Option<LotSettings> {
    let lot = read_object::<LotSection>(section, findings, &mut |_, _, _| false)?;
    Some(settings(&section.name, &lot))
}

fn settings(name: &str, lot: &LotSection) -> LotSettings {
    LotSettings {
        name: name.to_owned(),
        extension: lot.parkext.clone(),
        context: lot.context.clone(),
        first: lot.parkpos.0,
        last: lot.parkpos.1,
        exclusive: lot.parkext_exclusive,
        hints: lot.parkinghints,
        time: Some(lot.parkingtime).filter(|time| !time.is_zero()),
        to_origin: lot.comebacktoorigin,
        dial_time: lot.comebackdialtime,
        come_back_context: lot.comebackcontext.clone(),
        courtesy_tone: lot.courtesytone.clone(),
        played_to: lot.parkedplay,
        transfers: lot.parkedcalltransfers,
        reparking: lot.parkedcallreparking,
        hangup: lot.parkedcallhangup,
        recording: lot.parkedcallrecording,
        find_next: lot.findslot == FindSlot::Next,
        music: lot.parkedmusicclass.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> (ParkingConf, String) {
        let mut findings = Findings::new();
        let source = conf::Memory::new().with("res_parking.conf", text);
        let file = conf::load(&source, "res_parking.conf", conf::Options::default(), &mut findings).unwrap();
        let parking = ParkingConf::read(&file, &mut findings);
        (parking, findings.iter().map(|finding| finding.message.clone()).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn without_a_line_there_is_one_lot_as_in_the_field() {
        let expected = ParkingConf { lots: vec![LotSettings::default()], dynamic: false };
        assert_eq!(read_text(""), (expected, String::new()));
    }

    #[test]
    fn lots_are_read_with_all_they_say() {
        let (parking, said) = read_text(
            "[general]\nparkeddynamic=yes\n[default]\nparkext => 700\nparkpos => 701-720\nparkinghints=yes\nparkingtime=0\n\
             findslot=next\ncomebacktoorigin=no\ncourtesytone=beep\nparkedplay=both\nparkedcalltransfers=callee\n\
             parkedcallhangup=parked\nadsipark=yes\n[shop]\nparkext=700\ncontext=shopped\nparkpos=50\n",
        );
        assert!(parking.dynamic && said.is_empty(), "{said}");
        let [lot, shop] = parking.lots.as_slice() else { panic!("{:?}", parking.lots) };
        assert_eq!((lot.extension.as_str(), lot.first, lot.last), ("700", 701, 720));
        assert!(lot.hints && lot.find_next && !lot.to_origin);
        assert_eq!((lot.time, lot.courtesy_tone.as_str()), (None, "beep"));
        assert_eq!((lot.played_to, lot.transfers, lot.hangup), (Sides::Both, Sides::Callee, Sides::Callee));
        assert_eq!((shop.first, shop.last, shop.context.as_str()), (50, 50, "shopped"));
    }

    #[test]
    fn what_cannot_be_is_said_with_a_remedy() {
        for (text, expected) in [
            ("[a]\nparkpos=x-y\n", "is no range"),
            ("[a]\nparkpos=720-701\n", "ends before"),
            ("[a]\nparkpos=1-10001\n", "more than 10000"),
            ("[a]\nparkext=700\n[b]\nparkext=800\nparkpos=750-760\n", "has extensions of lot 'a'"),
            ("[a]\nparkpo=1\n", "parkpo"),
        ] {
            let (_, said) = read_text(text);
            assert!(said.contains(expected), "{text}: {said}");
        }
    }
}
