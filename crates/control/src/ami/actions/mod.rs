//! The actions, by topic. Each module owns its rows.

mod talk;

use super::login;
use super::table::ActionRow;

/// All rows in the order of the manual.
pub(super) const ROWS: &[&[ActionRow]] = &[login::ROWS, talk::ROWS];
