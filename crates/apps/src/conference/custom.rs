//! `CONFBRIDGE()`: profiles that a dialplan makes for one channel.

use call::Level;
use call::conference::{
    BRIDGE_ROWS, BridgeProfile, Custom, Field, Menu, OptionRow, Profiles, SOUND_ROWS, USER_ROWS, UserProfile,
    row,
};
use dialplan::Fault;

use crate::Call;
use crate::functions::Read;

/// The bridge profile, menu or user profile that the function means.
enum Kind {
    Bridge,
    User,
    Menu,
}

fn split(text: &str) -> Result<(Option<Kind>, &str), Fault> {
    let (kind, option) = text.split_once(',').unwrap_or((text, ""));
    let kind = match kind.trim().to_ascii_lowercase().as_str() {
        "bridge" => Some(Kind::Bridge),
        "user" => Some(Kind::User),
        "menu" => Some(Kind::Menu),
        "clear" => None,
        other => return Err(Fault::new(format!("'{other}' is none of bridge, user, menu, clear"))),
    };
    Ok((kind, option.trim()))
}

fn option<P>(tables: &[&'static [OptionRow<P>]], name: &str) -> Result<&'static OptionRow<P>, Fault> {
    let found = tables.iter().find_map(|rows| row(rows, name));
    found.ok_or_else(|| Fault::new(format!("there is no option '{name}'")))
}

/// `Set(CONFBRIDGE(type,option)=value)`.
pub(crate) fn write_custom(call: &Call, text: &str, value: &str) -> Read {
    let (kind, name) = split(text)?;
    let profiles = call.chan.core(|core| core.settings.conferences.clone());
    let own = call
        .chan
        .with(|channel| channel.conference.clone())
        .map_err(|_| Fault::new("the channel is gone"))?;
    let mut custom = own.map(|own| *own).unwrap_or_default();
    match kind {
        None => custom = Custom::default(),
        Some(kind) => change(call, &mut custom, &kind, &profiles, (name, value.trim()))?,
    }
    let kept = (custom != Custom::default()).then(|| Box::new(custom));
    call.chan.with(|channel| channel.conference = kept).map_err(|_| Fault::new("the channel is gone"))
}

fn change(
    call: &Call,
    custom: &mut Custom,
    kind: &Kind,
    profiles: &Profiles,
    (name, value): (&str, &str),
) -> Read {
    let lower = name.to_ascii_lowercase();
    let missing = || Fault::new(format!("confbridge.conf has no profile '{value}'"));
    match (kind, lower.as_str()) {
        (Kind::Bridge, "clear") => custom.bridge = None,
        (Kind::User, "clear") => custom.user = None,
        (Kind::Menu, "clear") => custom.menu = None,
        (Kind::Bridge, "template") => {
            custom.bridge = Some(BridgeProfile::clone(&*profiles.bridge(value).ok_or_else(missing)?));
        }
        (Kind::User, "template") => {
            custom.user = Some(UserProfile::clone(&*profiles.user(value).ok_or_else(missing)?));
        }
        (Kind::Menu, "template") => {
            custom.menu = Some(Menu::clone(&*profiles.menu(value).ok_or_else(missing)?));
        }
        // A part of it might be a value of the call, and a shell would read it.
        (Kind::Bridge, "record_command") => {
            return Err(Fault::new(
                "record_command is what confbridge.conf says; name a template that has it",
            ));
        }
        (Kind::Bridge, _) => {
            let default =
                || profiles.bridge("").map(|found| BridgeProfile::clone(&found)).unwrap_or_default();
            let profile = custom.bridge.get_or_insert_with(default);
            set(call, option(&[BRIDGE_ROWS, SOUND_ROWS], name)?, profile, value)?;
        }
        (Kind::User, _) => {
            let default = || profiles.user("").map(|found| UserProfile::clone(&found)).unwrap_or_default();
            let profile = custom.user.get_or_insert_with(default);
            set(call, option(&[USER_ROWS], name)?, profile, value)?;
        }
        (Kind::Menu, _) => {
            let default = || profiles.menu("").map(|found| Menu::clone(&found)).unwrap_or_default();
            custom.menu.get_or_insert_with(default).set(name, value).map_err(Fault::new)?;
        }
    }
    Ok(())
}

fn set<P: Clone + Default>(call: &Call, row: &OptionRow<P>, profile: &mut P, value: &str) -> Read {
    if let Field::Not(harmless, _, instead) = row.field
        && harmless != "*"
        && !harmless.eq_ignore_ascii_case(value)
    {
        call.log(Level::Warning, &format!("CONFBRIDGE(): {}={value} has no effect: {instead}", row.name));
    }
    match row.set(profile, value) {
        true => Ok(()),
        false => Err(Fault::new(format!("{}={value} is none of: {}", row.name, row.kind()))),
    }
}

/// `${CONFBRIDGE(type,option)}`: what the profile that a dialplan has made says, else the default one.
pub(crate) fn read_custom(call: &Call, text: &str, out: &mut String) -> Read {
    let (kind, name) = split(text)?;
    let profiles = call.chan.core(|core| core.settings.conferences.clone());
    let custom = call.chan.with(|channel| channel.conference.clone()).ok().flatten().unwrap_or_default();
    let shown = match kind {
        Some(Kind::Bridge) => {
            let known = || profiles.bridge("").map(|found| BridgeProfile::clone(&found));
            option(&[BRIDGE_ROWS, SOUND_ROWS], name)?.show(&custom.bridge.or_else(known).unwrap_or_default())
        }
        Some(Kind::User) => {
            let known = || profiles.user("").map(|found| UserProfile::clone(&found));
            option(&[USER_ROWS], name)?.show(&custom.user.or_else(known).unwrap_or_default())
        }
        Some(Kind::Menu) => {
            let menu = custom.menu.or_else(|| profiles.menu("").map(|found| Menu::clone(&found)));
            let keys = menu.map(|menu| menu.keys).unwrap_or_default();
            let found = keys.iter().find(|(digits, _)| digits == name);
            let spelt = |actions: &Vec<call::conference::Action>| {
                actions.iter().map(call::conference::Action::spell).collect::<Vec<_>>().join(",")
            };
            found.map(|(_, actions)| spelt(actions)).unwrap_or_default()
        }
        None => return Err(Fault::new("clear can only be written")),
    };
    out.push_str(&shown);
    Ok(())
}
