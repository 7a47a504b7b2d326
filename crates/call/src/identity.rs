//! Who calls, who is called, and who sent the call on.

/// Whether a number or name may be shown, and who vouches for it (Q.931 octet 3a: presentation and screening).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Presentation {
    /// May be shown; the user gave it, nobody checked.
    #[default]
    AllowedNotScreened,
    /// May be shown; checked and found right.
    AllowedPassedScreen,
    /// May be shown; checked and found wrong.
    AllowedFailedScreen,
    /// May be shown; the network gave it.
    Allowed,
    /// Hidden; not checked.
    ProhibNotScreened,
    /// Hidden; checked and found right.
    ProhibPassedScreen,
    /// Hidden; checked and found wrong.
    ProhibFailedScreen,
    /// Hidden; the network gave it.
    Prohib,
    /// No number is to be had.
    Unavailable,
}

const PRESENTATIONS: [(Presentation, &str, u8); 9] = [
    (Presentation::AllowedNotScreened, "allowed_not_screened", 0x00),
    (Presentation::AllowedPassedScreen, "allowed_passed_screen", 0x01),
    (Presentation::AllowedFailedScreen, "allowed_failed_screen", 0x02),
    (Presentation::Allowed, "allowed", 0x03),
    (Presentation::ProhibNotScreened, "prohib_not_screened", 0x20),
    (Presentation::ProhibPassedScreen, "prohib_passed_screen", 0x21),
    (Presentation::ProhibFailedScreen, "prohib_failed_screen", 0x22),
    (Presentation::Prohib, "prohib", 0x23),
    (Presentation::Unavailable, "unavailable", 0x43),
];

impl Presentation {
    /// The name dialplans use (`prohib_passed_screen`).
    pub fn name(self) -> &'static str {
        PRESENTATIONS.iter().find(|row| row.0 == self).map_or("allowed_not_screened", |row| row.1)
    }
    /// The octet value (`CALLINGPRES`).
    pub fn code(self) -> u8 {
        PRESENTATIONS.iter().find(|row| row.0 == self).map_or(0, |row| row.2)
    }
    /// Parses the dialplan's name or the decimal octet.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let code = text.parse::<u8>().ok();
        PRESENTATIONS
            .iter()
            .find(|row| row.1.eq_ignore_ascii_case(text) || Some(row.2) == code)
            .map(|row| row.0)
    }
    /// Whether the number must not be shown to the other party.
    pub fn is_hidden(self) -> bool {
        self.code() & 0x60 != 0
    }
}

/// One party's number and name; `None` is "not given", different from empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartyId {
    /// Number.
    pub number: Option<String>,
    /// Display name.
    pub name: Option<String>,
    /// Presentation of the number.
    pub number_presentation: Presentation,
    /// Presentation of the name.
    pub name_presentation: Presentation,
    /// Tag the dialplan may attach; never sent.
    pub tag: String,
}

impl PartyId {
    /// `"name" <number>`, `name`, `<number>` or empty, as CDRs and `CALLERID(all)` write it.
    pub fn all(&self) -> String {
        match (
            self.name.as_deref().filter(|n| !n.is_empty()),
            self.number.as_deref().filter(|n| !n.is_empty()),
        ) {
            (Some(name), Some(number)) => format!("\"{name}\" <{number}>"),
            (Some(name), None) => name.to_owned(),
            (None, Some(number)) => number.to_owned(),
            (None, None) => String::new(),
        }
    }
    /// Parses what `callerid=` and `CALLERID(all)` take: `"Name" <123>`, `Name <123>`, `<123>`, `123`, `Name`.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let mut party = Self::default();
        let named = |name: &str| {
            let name = name.trim().trim_matches('"').replace("\\\"", "\"");
            (!name.is_empty()).then_some(name)
        };
        match (text.find('<'), text.rfind('>')) {
            (Some(open), Some(close)) if open < close => {
                party.name = named(text.get(..open).unwrap_or_default());
                party.number =
                    text.get(open + 1..close).map(|n| n.trim().to_owned()).filter(|n| !n.is_empty());
            }
            _ if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b"+*#-(). ".contains(&b)) => {
                party.number = Some(text.to_owned());
            }
            _ => party.name = named(text),
        }
        party
    }
    /// The number, empty when not given.
    pub fn number(&self) -> &str {
        self.number.as_deref().unwrap_or_default()
    }
    /// The name, empty when not given.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

/// Who sent the call on (RFC 5806 Diversion, RFC 7044 History-Info).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redirecting {
    /// Who redirected first.
    pub orig: PartyId,
    /// Who redirected last.
    pub from: PartyId,
    /// To whom.
    pub to: PartyId,
    /// Why, in the dialplan's words (`cfb`, `cfu`, `cfnr`, `unknown` …).
    pub reason: String,
    /// How often.
    pub count: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caller_id_text_is_read_in_every_usual_form() {
        for (text, name, number) in [
            ("\"Alice B\" <6001>", Some("Alice B"), Some("6001")),
            ("Alice <6001>", Some("Alice"), Some("6001")),
            ("<6001>", None, Some("6001")),
            ("6001", None, Some("6001")),
            ("+49 30 123", None, Some("+49 30 123")),
            ("Alice", Some("Alice"), None),
            ("", None, None),
            (">odd<", Some(">odd<"), None),
        ] {
            let party = PartyId::parse(text);
            assert_eq!((party.name.as_deref(), party.number.as_deref()), (name, number), "{text}");
        }
    }

    #[test]
    fn q931_presentation_names_and_octets_agree() {
        for (presentation, name, code) in PRESENTATIONS {
            assert_eq!(Presentation::parse(name), Some(presentation));
            assert_eq!(Presentation::parse(&code.to_string()), Some(presentation));
            assert_eq!(presentation.is_hidden(), code >= 0x20, "{name}");
        }
    }
}
