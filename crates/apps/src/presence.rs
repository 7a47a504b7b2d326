//! Presence states: what people say of themselves, `PRESENCE_STATE()`, and which extensions' hints name it.

use call::{Core, Notice};
use dialplan::functions::{base64_of, text_of_base64};

/// Family of the database that keeps what `PRESENCE_STATE(CustomPresence:…)` was set to.
const FAMILY: &str = "CustomPresence";
/// Longest subtype or message, bytes: a line on a phone's display and far more.
const TEXT_BYTES_MAX: usize = 1024;

/// What somebody says of himself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Presence {
    /// Nothing.
    #[default]
    NotSet,
    /// Not there.
    Unavailable,
    /// There.
    Available,
    /// Back soon.
    Away,
    /// Away for long.
    ExtendedAway,
    /// Glad of company.
    Chat,
    /// Not to be disturbed.
    DoNotDisturb,
}

impl Presence {
    const ALL: [Self; 7] = [
        Self::NotSet,
        Self::Unavailable,
        Self::Available,
        Self::Away,
        Self::ExtendedAway,
        Self::Chat,
        Self::DoNotDisturb,
    ];
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotSet => "not_set",
            Self::Unavailable => "unavailable",
            Self::Available => "available",
            Self::Away => "away",
            Self::ExtendedAway => "xa",
            Self::Chat => "chat",
            Self::DoNotDisturb => "dnd",
        }
    }
    /// Of its word, any case.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name().eq_ignore_ascii_case(word.trim()))
    }
}

/// The same with what else was said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PresenceState {
    /// What.
    pub state: Presence,
    /// More of it.
    pub subtype: String,
    /// For people.
    pub message: String,
}

impl PresenceState {
    /// Of `state[,subtype[,message[,e]]]`; with `e` the last two are Base64. The error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = dialplan::split_args(text);
        let part = |at: usize| parts.get(at).map_or("", |part| part.trim());
        let state = Presence::parse(part(0)).ok_or_else(|| {
            format!("'{}' is none of not_set, unavailable, available, away, xa, chat and dnd", part(0))
        })?;
        let coded = part(3).contains('e');
        let text = |at: usize| match coded {
            true => text_of_base64(part(at)).ok_or_else(|| format!("'{}' is not Base64", part(at))),
            false => Ok(part(at).to_owned()),
        };
        let said = Self { state, subtype: text(1)?, message: text(2)? };
        if said.subtype.len().max(said.message.len()) > TEXT_BYTES_MAX {
            return Err(format!("subtype and message have {TEXT_BYTES_MAX} bytes at most"));
        }
        Ok(said)
    }
    /// As it is kept.
    fn kept(&self) -> String {
        format!("{},{},{},e", self.state.name(), base64_of(&self.subtype), base64_of(&self.message))
    }
}

/// The name of a provider that can be told what it says (`CustomPresence:alice`).
pub fn custom_name(provider: &str) -> Option<&str> {
    let (kind, name) = provider.trim().split_once(':')?;
    (kind.eq_ignore_ascii_case(FAMILY) && !name.is_empty()).then_some(name)
}

/// What a provider says; `None` when there is no such kind of provider.
pub fn state(core: &Core, provider: &str) -> Option<PresenceState> {
    let kept = core.services.db.get(FAMILY, custom_name(provider)?);
    Some(kept.and_then(|text| PresenceState::parse(&text).ok()).unwrap_or_default())
}

/// All providers that were told something, in order.
pub fn all(core: &Core) -> Vec<(String, PresenceState)> {
    let prefix = format!("/{FAMILY}/");
    let row = |(key, text): &(String, String)| {
        let name = key.strip_prefix(&prefix)?;
        Some((format!("{FAMILY}:{name}"), PresenceState::parse(text).unwrap_or_default()))
    };
    core.services.db.list(&format!("/{FAMILY}")).iter().filter_map(row).collect()
}

/// Says something for a provider; those who watch it, and extensions whose hints name it, are told. `false`: there is no
/// such provider, or the database does not keep it.
pub fn set(core: &mut Core, provider: &str, said: &PresenceState) -> bool {
    let Some(name) = custom_name(provider) else { return false };
    if state(core, provider).as_ref() == Some(said) {
        return true;
    }
    if !core.services.db.put(FAMILY, name, &said.kept()) {
        return false;
    }
    // Whoever watches an extension is told anew, whatever its document says of presence.
    let watched: Vec<_> = core.board.extensions().cloned().collect();
    for extension in watched {
        let presence = crate::hints::presence_of(core, &extension.context, &extension.exten);
        let presence = presence.as_deref().and_then(custom_name);
        if presence.is_some_and(|named| named.eq_ignore_ascii_case(name)) {
            core.board.touch(&extension);
        }
    }
    if !core.watched {
        return true;
    }
    let provider = format!("{FAMILY}:{name}");
    let program = core.program.clone();
    let (word, subtype, message) = (said.state.name(), said.subtype.clone(), said.message.clone());
    core.notice(|_| {
        Some(Notice::PresenceStateChange { presentity: provider.clone(), state: word, subtype, message })
    });
    for (context, exten, hint) in program.hints() {
        if custom_name(&hint.presence).is_some_and(|named| named.eq_ignore_ascii_case(name)) {
            let notice = Notice::PresenceStatus {
                exten: exten.to_owned(),
                context: context.to_owned(),
                hint: format!("{},{}", hint.devices, hint.presence),
                state: word,
                subtype: said.subtype.clone(),
                message: said.message.clone(),
            };
            core.notice(|_| Some(notice));
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_kept_and_read_back() {
        let said = |state, subtype: &str, message: &str| {
            Ok(PresenceState { state, subtype: subtype.to_owned(), message: message.to_owned() })
        };
        for (text, expected) in [
            ("away", said(Presence::Away, "", "")),
            ("XA,temporary,Out to lunch", said(Presence::ExtendedAway, "temporary", "Out to lunch")),
            ("dnd,,\"Busy, really\"", said(Presence::DoNotDisturb, "", "Busy, really")),
            ("unavailable,T24gdmFjYXRpb24=,,e", said(Presence::Unavailable, "On vacation", "")),
        ] {
            let parsed = PresenceState::parse(text);
            assert_eq!(parsed, expected, "{text}");
            assert_eq!(PresenceState::parse(&parsed.unwrap().kept()), expected, "{text}");
        }
        for text in ["", "asleep", "away,?,,e", &format!("away,{}", "x".repeat(TEXT_BYTES_MAX + 1))] {
            assert!(PresenceState::parse(text).is_err(), "{text}");
        }
        assert_eq!(custom_name("custompresence:Al"), Some("Al"));
        assert!(["Custom:x", "CustomPresence:", "x"].into_iter().all(|name| custom_name(name).is_none()));
    }
}
