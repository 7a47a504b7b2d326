//! The option letters of MeetMe, typed.

use core::time::Duration;

use call::conference::{Menu, Seat, UserProfile};
use dialplan::Options;

use super::millis;
use crate::call_ctx::args;
use crate::monitor::Unmet;

const SUPPORTED: &str = "1aAcCdDeEFGiIklLmMnopPqrsStTvwxX";
/// Letters that Asterisk knows and that do nothing here, and why.
const UNSUPPORTED: &[(char, &str)] = &[('b', "option b: no AGI script runs beside a conference")];

/// Typed options.
#[derive(Debug, Clone, Default)]
pub(super) struct MeetOptions {
    pub(super) is_admin: bool,
    pub(super) goes_on: bool,
    pub(super) dynamic: bool,
    pub(super) chooses_pin: bool,
    pub(super) empty: bool,
    pub(super) empty_without_pin: bool,
    pub(super) asks_always: bool,
    pub(super) is_quiet: bool,
    pub(super) records: bool,
    pub(super) exits: bool,
    pub(super) closes: bool,
    pub(super) intro: String,
    pub(super) limit: Option<Duration>,
    pub(super) patience: Option<Duration>,
    pub(super) without_effect: Vec<String>,
    profile: UserProfile,
    has_menu: bool,
    only_listens: bool,
    /// Who talks is seen.
    pub(super) has_video: bool,
    exit_keys: String,
}

/// Who was let in.
#[derive(Debug, Clone, Default)]
pub(super) struct Newcomer {
    pub(super) is_admin: bool,
    /// The PIN of a conference that begins with it.
    pub(super) pin: String,
}

impl MeetOptions {
    pub(super) fn parse(text: &str) -> Self {
        let given = read(text);
        let arg = |letter: char| given.arg(letter).unwrap_or_default().trim();
        let seconds = |letter: char| {
            let seconds = arg(letter).parse().ok().filter(|seconds: &u64| *seconds > 0);
            seconds.filter(|_| given.has(letter)).map(Duration::from_secs)
        };
        let mut limits = arg('L').split(':');
        let whole = limits.next().and_then(millis).filter(|_| given.has('L'));
        let exit_keys = match (given.has('p'), arg('p')) {
            (false, _) => String::new(),
            (true, "") => "#".to_owned(),
            (true, keys) => keys.to_owned(),
        };
        Self {
            is_admin: given.has('a'),
            goes_on: given.has('C'),
            dynamic: given.has('d') || given.has('D'),
            chooses_pin: given.has('D'),
            empty: given.has('e'),
            empty_without_pin: given.has('E'),
            asks_always: given.has('P'),
            is_quiet: given.has('q'),
            records: given.has('r'),
            exits: given.has('X'),
            closes: given.has('k'),
            intro: arg('G').to_owned(),
            limit: [whole, seconds('S')].into_iter().flatten().min(),
            patience: seconds('w'),
            without_effect: without_effect(&given),
            profile: profile(&given),
            has_menu: given.has('s'),
            only_listens: given.has('l'),
            has_video: given.has('v'),
            exit_keys,
        }
    }
    /// How somebody takes part.
    pub(super) fn user(&self, newcomer: &Newcomer) -> UserProfile {
        let mut user = self.profile.clone();
        user.seat.is_admin = newcomer.is_admin;
        user
    }
    /// What its keys do.
    pub(super) fn menu(&self, is_admin: bool) -> Menu {
        let mut menu = Menu::default();
        let mut set = |digits: &str, action: &str| drop(menu.set(digits, action));
        if self.has_menu {
            set("*", &format!("playback_and_continue(conf-{}menu)", if is_admin { "admin" } else { "user" }));
            if !self.only_listens {
                set("*1", "toggle_mute");
            }
            if is_admin {
                set("*2", "admin_toggle_conference_lock");
                set("*3", "admin_kick_last");
            }
            set("*4", "decrease_listening_volume");
            set("*6", "increase_listening_volume");
            set("*7", "decrease_talking_volume");
            set("*9", "increase_talking_volume");
            set("*8", "no_op");
        }
        for key in self.exit_keys.chars() {
            set(&key.to_string(), "leave_conference");
        }
        menu
    }
}

fn read(text: &str) -> Options {
    let known: String = SUPPORTED.chars().chain(UNSUPPORTED.iter().map(|(letter, _)| *letter)).collect();
    Options::parse(text, &known)
}

fn profile(given: &Options) -> UserProfile {
    let music = given.has('M');
    let mut seat = Seat {
        is_marked: given.has('A'),
        waits_marked: given.has('w'),
        ends_marked: given.has('x'),
        tells_talking: given.has('T'),
        ..Seat::default()
    };
    seat.mixing.muted = given.has('m') || given.has('l');
    seat.mixing.deaf = given.has('t');
    seat.mixing.drop_silence = given.has('o');
    UserProfile {
        name: "meetme".to_owned(),
        seat,
        // Who waits for a marked user hears music, as in the field.
        has_music: music || given.has('w'),
        music_class: given.arg('M').unwrap_or_default().to_owned(),
        is_quiet: given.has('q'),
        hears_count: given.has('c'),
        hears_that_it_is_alone: !given.has('1'),
        tells_name: given.has('i') || given.has('I'),
        reviews_name: given.has('i'),
        passes_digits: given.has('F'),
        ..UserProfile::default()
    }
}

fn without_effect(given: &Options) -> Vec<String> {
    let known = UNSUPPORTED.iter().filter(|(letter, _)| given.has(*letter)).map(|(_, why)| (*why).to_owned());
    let unknown = given.unknown.iter().map(|letter| format!("option {letter}: there is none"));
    let warns = given.has('L') && given.arg('L').is_some_and(|limits| limits.contains(':'));
    let warnings = warns.then(|| "option L: the warnings before the end".to_owned());
    known.chain(unknown).chain(warnings).collect()
}

/// What of these arguments has no effect.
pub(crate) fn unmet(parts: &[String]) -> Vec<Unmet> {
    let what = without_effect(&read(args::nth(parts, 1))).into_iter();
    what.map(|what| Unmet { what, remedy: "leave it out" }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_is_obeyed_or_said_to_have_no_effect() {
        for letter in "1aAbcCdDeEFGiIklLmMnopPqrsStTvwxX".chars() {
            let has_effect = SUPPORTED.contains(letter);
            let options = MeetOptions::parse(&letter.to_string());
            assert_eq!(options.without_effect.is_empty(), has_effect, "{letter}");
        }
        assert_eq!(MeetOptions::parse("z").without_effect, ["option z: there is none"]);
        assert_eq!(MeetOptions::parse("L(60000:10000)").without_effect.len(), 1);
    }

    #[test]
    fn letters_become_a_profile_and_a_menu() {
        let options = MeetOptions::parse("Aw(30)xmotTsp(*#)S(60)L(90000)M(jazz)1i");
        let user = options.user(&Newcomer { is_admin: true, pin: String::new() });
        let seat = user.seat;
        assert!(
            seat.is_admin && seat.is_marked && seat.waits_marked && seat.ends_marked && seat.tells_talking
        );
        assert!(seat.mixing.muted && seat.mixing.deaf && seat.mixing.drop_silence);
        assert_eq!((user.music_class.as_str(), user.has_music), ("jazz", true));
        assert!(!user.hears_that_it_is_alone && user.reviews_name);
        assert_eq!(
            (options.limit, options.patience),
            (Some(Duration::from_secs(60)), Some(Duration::from_secs(30)))
        );
        let keys = |menu: Menu| menu.keys.into_iter().map(|(digits, _)| digits).collect::<Vec<_>>().join(" ");
        assert_eq!(
            keys(options.menu(true)),
            "*1 *2 *3 *4 *6 *7 *9 *8 * #",
            "a key of p goes before the menu"
        );
        assert_eq!(
            keys(MeetOptions::parse("ls").menu(false)),
            "* *4 *6 *7 *9 *8",
            "who only listens has no key to talk"
        );
    }
}
