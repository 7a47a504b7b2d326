//! Commands of speech recognition, for which nothing is built in.

use call::Level;

use super::super::table::{Desk, Reply};

pub(in super::super) fn unavailable(desk: &Desk, _: &[String]) -> Reply {
    desk.call.log(Level::Notice, "a script asks for speech recognition, which is not built in");
    Reply::number(0)
}
