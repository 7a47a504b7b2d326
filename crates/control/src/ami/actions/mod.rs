//! The actions, by topic. Each module owns its rows.

mod agents;
mod agi;
mod bridges;
mod channels;
mod charge;
mod conferences;
mod config;
mod database;
mod iax;
mod monitors;
mod originate;
mod parking;
mod plan;
mod queues;
mod sip;
mod sip_objects;
mod sorcery;
mod system;
mod talk;
mod variables;
mod voicemail;
mod watch;

pub(crate) use agi::allowed as agi_allowed;
pub(crate) use bridges::TECHNOLOGIES;
pub(crate) use queues::shift as penalty_shift;
#[cfg(test)]
pub(crate) use talk::OLDER;

use apps::Call;

use super::login;
use super::table::{ActionRow, Turn};

/// All rows in the order of the manual.
pub(super) const ROWS: &[&[ActionRow]] = &[
    login::ROWS,
    talk::ROWS,
    system::ROWS,
    channels::ROWS,
    charge::ROWS,
    agi::ROWS,
    bridges::ROWS,
    conferences::ROWS,
    queues::ROWS,
    parking::ROWS,
    agents::ROWS,
    monitors::ROWS,
    originate::ROWS,
    variables::ROWS,
    plan::ROWS,
    database::ROWS,
    config::ROWS,
    sip::ROWS,
    iax::ROWS,
    sorcery::ROWS,
    watch::ROWS,
    voicemail::ROWS,
];

/// Items of a comma-separated list; a comma inside parentheses or quotation marks, or after a backslash, separates
/// nothing.
fn split_list(text: &str) -> Vec<String> {
    let (mut items, mut item) = (Vec::new(), String::new());
    let (mut depth, mut quoted, mut escaped) = (0u32, false, false);
    for c in text.chars() {
        match c {
            _ if escaped => {
                if c != ',' {
                    item.push('\\');
                }
                item.push(c);
                escaped = false;
                continue;
            }
            '\\' => {
                escaped = true;
                continue;
            }
            '"' => quoted = !quoted,
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 && !quoted => {
                items.push(std::mem::take(&mut item));
                continue;
            }
            _ => {}
        }
        item.push(c);
    }
    if escaped {
        item.push('\\');
    }
    items.push(item);
    items.iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

/// Whether the user may read this variable or function; what is inside its parentheses is judged as it is evaluated.
fn may_read(turn: &Turn<'_>, name: &str) -> bool {
    turn.site.shard.core.borrow().program.functions().may_read(turn.rights(), name)
}

/// Whether the user may write this variable or function.
fn may_write(turn: &Turn<'_>, name: &str) -> bool {
    turn.site.shard.core.borrow().program.functions().may_write(turn.rights_to_set(), name)
}

/// Whether the user may originate any application, and send AGI commands that reach the database.
/// `live_dangerously` lets every user, as the site that wrote it wants.
fn is_trusted(turn: &Turn<'_>) -> bool {
    turn.may("system") || turn.site.shard.core.borrow().settings.live_dangerously
}

/// A variable's or function's value; empty when there is none. Arguments of functions are taken as they are.
fn value_of(call: &Call, name: &str) -> String {
    if name.contains('(') { call.read(name) } else { call.get(name).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::split_list;

    #[test]
    fn a_list_is_cut_at_commas_that_stand_alone() {
        for (text, items) in [
            ("", vec![]),
            ("a=1", vec!["a=1"]),
            ("a=1,b=2", vec!["a=1", "b=2"]),
            ("CALLERID(name,x)=2, c=3", vec!["CALLERID(name,x)=2", "c=3"]),
            ("a=\"1,2\",b=3", vec!["a=\"1,2\"", "b=3"]),
            ("a=1\\,2,b=C:\\x", vec!["a=1,2", "b=C:\\x"]),
            (",,a,", vec!["a"]),
            ("a=)1,b=2", vec!["a=)1", "b=2"]),
            ("a=(1,b=2", vec!["a=(1,b=2"]),
        ] {
            assert_eq!(split_list(text), items, "{text:?}");
        }
    }
}
