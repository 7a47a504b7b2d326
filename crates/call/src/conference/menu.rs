//! Menus of confbridge.conf: what keys do in a conference.

use crate::{Key, keys::CODE_MAX};

/// What a key does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The member is muted, or heard again.
    ToggleMute,
    /// Nothing.
    NoOp,
    /// The member hears these sounds.
    Playback(Vec<String>),
    /// The same, and digits end them and go on what was pressed.
    PlaybackAndContinue(Vec<String>),
    /// How loud the others are for the member.
    Listening(Step),
    /// How loud the member is for the others.
    Talking(Step),
    /// There is no binaural sound: nothing.
    ToggleBinaural,
    /// The member leaves for a place in the dialplan, and comes back when that ends.
    Dialplan {
        /// Context.
        context: String,
        /// Extension.
        exten: String,
        /// Priority or label.
        priority: String,
    },
    /// The member leaves.
    Leave,
    /// The last who came is sent out.
    KickLast,
    /// The conference is locked, or opened.
    ToggleLock,
    /// All but administrators are muted, or heard again.
    ToggleParticipants,
    /// The member is told how many others there are.
    Count,
    /// Its video is the one that is seen.
    TakeVideo,
    /// It is not any more.
    ReleaseVideo,
}

/// A step of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Louder.
    Up,
    /// Quieter.
    Down,
    /// As it was.
    Reset,
}

/// Words of actions without arguments.
const WORDS: &[(&str, Action)] = &[
    ("toggle_mute", Action::ToggleMute),
    ("no_op", Action::NoOp),
    ("increase_listening_volume", Action::Listening(Step::Up)),
    ("decrease_listening_volume", Action::Listening(Step::Down)),
    ("reset_listening_volume", Action::Listening(Step::Reset)),
    ("increase_talking_volume", Action::Talking(Step::Up)),
    ("decrease_talking_volume", Action::Talking(Step::Down)),
    ("reset_talking_volume", Action::Talking(Step::Reset)),
    ("toggle_binaural", Action::ToggleBinaural),
    ("leave_conference", Action::Leave),
    ("admin_kick_last", Action::KickLast),
    ("admin_toggle_conference_lock", Action::ToggleLock),
    ("admin_toggle_mute_participants", Action::ToggleParticipants),
    ("participant_count", Action::Count),
    ("set_as_single_video_src", Action::TakeVideo),
    ("release_as_single_video_src", Action::ReleaseVideo),
];

impl Action {
    /// Only administrators may use it.
    pub fn is_for_administrators(&self) -> bool {
        matches!(self, Self::KickLast | Self::ToggleLock | Self::ToggleParticipants)
    }
    /// Why it does nothing, if it does.
    pub fn is_without_effect(&self) -> Option<&'static str> {
        match self {
            Self::ToggleBinaural => Some("there is no binaural sound"),
            _ => None,
        }
    }
    fn parse(text: &str) -> Result<Self, String> {
        let (word, rest) = text.split_once('(').map_or((text, None), |(word, rest)| (word, Some(rest)));
        let word = word.trim().to_ascii_lowercase();
        let args = rest.map(|rest| rest.trim_end().strip_suffix(')').unwrap_or(rest).trim());
        let sounds = || {
            let sounds = args.unwrap_or_default().split('&').map(str::trim).filter(|sound| !sound.is_empty());
            Some(sounds.map(str::to_owned).collect::<Vec<_>>()).filter(|sounds| !sounds.is_empty())
        };
        match word.as_str() {
            "playback" => {
                sounds().map(Self::Playback).ok_or(format!("{word} wants sounds: {word}(name&name)"))
            }
            "playback_and_continue" => sounds()
                .map(Self::PlaybackAndContinue)
                .ok_or(format!("{word} wants sounds: {word}(name&name)")),
            "dialplan_exec" => {
                let mut parts = args.unwrap_or_default().split(',').map(|part| part.trim().to_owned());
                let mut part = || parts.next().unwrap_or_default();
                let (context, exten, priority) = (part(), part(), part());
                if context.is_empty() || exten.is_empty() || priority.is_empty() {
                    return Err(format!("{word} wants a place: {word}(context,extension,priority)"));
                }
                Ok(Self::Dialplan { context, exten, priority })
            }
            _ => {
                let known = WORDS.iter().find(|(known, _)| *known == word);
                known.map(|(_, action)| action.clone()).ok_or(format!("there is no action '{word}'"))
            }
        }
    }
    /// As a file spells it.
    pub fn spell(&self) -> String {
        match self {
            Self::Playback(sounds) => format!("playback({})", sounds.join("&")),
            Self::PlaybackAndContinue(sounds) => format!("playback_and_continue({})", sounds.join("&")),
            Self::Dialplan { context, exten, priority } => {
                format!("dialplan_exec({context},{exten},{priority})")
            }
            _ => WORDS.iter().find(|(_, known)| known == self).map_or("", |(word, _)| word).to_owned(),
        }
    }
}

/// A menu: keys, and what each does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Menu {
    /// Name of its section.
    pub name: String,
    /// Digits, and what they do, in turn.
    pub keys: Vec<(String, Vec<Action>)>,
}

impl Menu {
    /// Gives digits something to do, instead of what they did. The error says what is wrong.
    pub fn set(&mut self, digits: &str, actions: &str) -> Result<(), String> {
        if Key::new(digits, 0).is_none() {
            return Err(format!("'{digits}' cannot be pressed: 1 to {CODE_MAX} of 0-9, *, # and A-D"));
        }
        let actions = split(actions).into_iter().map(Action::parse).collect::<Result<Vec<_>, _>>()?;
        if actions.is_empty() {
            return Err(format!("'{digits}' has nothing to do"));
        }
        self.keys.retain(|(known, _)| known != digits);
        self.keys.push((digits.to_owned(), actions));
        Ok(())
    }
}

/// Parts at commas outside parentheses; empty ones are left out.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let parts = text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_one_action_or_several_which_are_spelt_as_they_were_written() {
        for (digits, text) in [
            ("1", "toggle_mute"),
            ("*", "playback_and_continue(conf-usermenu&beep)"),
            ("*12", "playback(a&b),toggle_mute,dialplan_exec(menu,s,1),leave_conference"),
            ("#", "admin_toggle_conference_lock,participant_count"),
        ] {
            let mut menu = Menu::default();
            menu.set(digits, text).unwrap();
            let (keys, actions) = &menu.keys[0];
            let spelt: Vec<_> = actions.iter().map(Action::spell).collect();
            assert_eq!((keys.as_str(), spelt.join(",").as_str()), (digits, text));
        }
    }

    #[test]
    fn what_is_no_key_or_no_action_is_refused_with_words() {
        for (digits, text, words) in [
            ("x", "toggle_mute", "cannot be pressed"),
            ("123456789012", "toggle_mute", "cannot be pressed"),
            ("1", "dance", "no action 'dance'"),
            ("1", "", "nothing to do"),
            ("1", "playback()", "wants sounds"),
            ("1", "dialplan_exec(menu,s)", "wants a place"),
        ] {
            let mut menu = Menu::default();
            let why = menu.set(digits, text).unwrap_err();
            assert!(why.contains(words), "{digits}={text}: {why}");
            assert_eq!(menu, Menu::default(), "{digits}={text}");
        }
    }

    #[test]
    fn the_last_line_of_a_key_holds() {
        let mut menu = Menu::default();
        menu.set("1", "no_op").unwrap();
        menu.set("1", "leave_conference").unwrap();
        assert_eq!(menu.keys, [("1".to_owned(), vec![Action::Leave])]);
    }
}
