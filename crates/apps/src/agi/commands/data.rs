//! Commands that read and write: variables, the database, the log.

use call::Level;

use super::super::table::{Desk, Reply};
use super::word;

pub(in super::super) fn db_get(desk: &Desk, words: &[String]) -> Reply {
    Reply::value(desk.call.chan.core(|core| core.services.db.get(word(words, 0), word(words, 1))))
}

pub(in super::super) fn db_put(desk: &Desk, words: &[String]) -> Reply {
    let target = format!("DB({}/{})", word(words, 0), word(words, 1));
    Reply::number(i64::from(desk.call.assign(&target, word(words, 2))))
}

pub(in super::super) fn db_del(desk: &Desk, words: &[String]) -> Reply {
    // Nothing to take away is no failure.
    desk.call.chan.core(|core| core.services.db.delete(word(words, 0), word(words, 1)));
    Reply::number(1)
}

pub(in super::super) fn db_deltree(desk: &Desk, words: &[String]) -> Reply {
    desk.call.chan.core(|core| core.services.db.delete_tree(word(words, 0), word(words, 1)));
    Reply::number(1)
}

pub(in super::super) fn get_variable(desk: &Desk, words: &[String]) -> Reply {
    let name = word(words, 0);
    if name.ends_with(')') {
        return Reply::value(Some(desk.call.read(name)));
    }
    Reply::value(desk.call.get(name))
}

pub(in super::super) fn get_full(desk: &Desk, words: &[String]) -> Reply {
    let chan = &desk.call.chan;
    let name = word(words, 1);
    if name.is_empty() {
        return Reply::value(Some(desk.call.expand(word(words, 0))));
    }
    let other = chan.core(|core| core.by_name(name));
    Reply::value(other.map(|id| desk.call.beside(id).expand(word(words, 0))))
}

pub(in super::super) fn set_variable(desk: &Desk, words: &[String]) -> Reply {
    let (name, value) = (word(words, 0), word(words, 1));
    if name.ends_with(')') {
        desk.call.assign(name, value);
    } else {
        desk.call.set(name, value);
    }
    Reply::number(1)
}

pub(in super::super) fn verbose(desk: &Desk, words: &[String]) -> Reply {
    let level = word(words, 1).parse().unwrap_or(0);
    desk.call.chan.log(Level::Verbose(level), "AGI", word(words, 0));
    Reply::number(1)
}
