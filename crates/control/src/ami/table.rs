//! One row an action, one row an event: name, permission, words for the manual, and for actions the code. The manual
//! (`docs/manager.md`), `ListCommands` and the permission check all read these rows.

use std::cell::RefCell;
use std::rc::Rc;

use apps::Call;
use base::{ChannelId, Instant};
use call::Chan;
use dialplan::Rights;
use store::config::manager::Classes;

use super::packet::{Action, Message};
use super::session::{Busy, Login, Session};
use super::{Later, actions as rows, refusals};
use crate::pages::Pages;
use crate::site::Site;
use crate::socket::Commands;

/// One action.
pub struct ActionRow {
    /// Name; any case is understood.
    pub name: &'static str,
    /// Classes of which a user needs one in `write=`; empty: every user may.
    pub class: &'static [&'static str],
    /// One sentence.
    pub synopsis: &'static str,
    /// Headers it reads, beside `ActionID`.
    pub fields: &'static [Field],
    pub(crate) run: fn(&mut Turn<'_>) -> Done,
}

/// One header of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: &'static str,
    /// Whether the action is refused without it.
    pub required: bool,
    /// What it says.
    pub text: &'static str,
}

/// A header that must be there.
pub(crate) const fn must(name: &'static str, text: &'static str) -> Field {
    Field { name, required: true, text }
}

/// A header that may be there.
pub(crate) const fn may(name: &'static str, text: &'static str) -> Field {
    Field { name, required: false, text }
}

impl ActionRow {
    /// Whether `user` may use it.
    pub fn is_allowed(&self, write: Classes) -> bool {
        self.class.is_empty()
            || self.class.iter().filter_map(|name| Classes::named(name)).any(|class| write.intersects(class))
    }
}

/// Every action in the order of the manual.
pub fn actions() -> impl Iterator<Item = &'static ActionRow> {
    rows::ROWS.iter().copied().flatten()
}

/// The row of a name, any case.
pub(crate) fn lookup(name: &str) -> Option<&'static ActionRow> {
    actions().find(|row| row.name.eq_ignore_ascii_case(name))
}

/// What becomes of the session after an action.
pub(crate) enum After {
    /// It goes on.
    Go,
    /// It ends once the answer is sent.
    Close,
    /// It is somebody's from here on.
    LoggedIn(Box<Login>),
    /// Its next action waits for this to end.
    Wait(Busy),
}

/// Why an action was refused, for its `Message` field.
pub(crate) struct Refusal(pub String);

impl From<&str> for Refusal {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// How an action came out.
pub(crate) type Done = Result<After, Refusal>;

/// One action being carried out.
pub(crate) struct Turn<'a> {
    pub site: &'a Rc<Site>,
    pub session: &'a mut Session,
    /// Number of the session.
    pub id: u64,
    pub action: &'a Action,
    pub commands: Option<&'a Rc<RefCell<dyn Commands>>>,
    /// Where answers go that come later.
    pub later: &'a Rc<RefCell<Vec<Later>>>,
    /// Another session of the same user is logged in.
    pub again: bool,
    pub now: Instant,
    /// The answer so far.
    pub out: String,
}

impl Turn<'_> {
    /// ActionID as it came.
    pub fn action_id(&self) -> Option<&str> {
        self.action.get("ActionID")
    }
    /// The action's own name, however it was written.
    fn name(&self) -> &str {
        let written = self.action.get("Action").unwrap_or_default();
        lookup(written).map_or(written, |row| row.name)
    }
    /// A header's value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.action.get(name)
    }
    /// A header that must be there; the refusal is the sentence of the field.
    pub fn need(&self, name: &str) -> Result<&str, Refusal> {
        self.action.get(name).ok_or_else(|| Refusal(refusals::missing(self.name(), name)))
    }
    /// Begins the answer.
    pub fn response(&mut self, kind: &str) -> Message<'_> {
        Message::response(kind, self.action.get("ActionID"), &mut self.out)
    }
    /// Says that it is done.
    pub fn success(&mut self, message: &str) -> Done {
        self.response("Success").field("Message", message).end();
        Ok(After::Go)
    }
    /// Begins the answer of an action that lists.
    pub fn begin_list(&mut self, message: &str) {
        self.response("Success").field("EventList", "start").field("Message", message).end();
    }
    /// One item of a list.
    pub fn item(&mut self, event: &str) -> Message<'_> {
        Message::event(event, self.action.get("ActionID"), &mut self.out)
    }
    /// One item of a list whose ActionID is its last field: [`Turn::end_item`] ends it.
    pub fn plain_item(&mut self, event: &str) -> Message<'_> {
        Message::event(event, None, &mut self.out)
    }
    /// Ends an item that [`Turn::plain_item`] began.
    pub fn end_item(&mut self) {
        let id = self.action.get("ActionID");
        Message::open(&mut self.out).optional("ActionID", id).end();
    }
    /// Begins the end of a list; the caller may add fields.
    pub fn end_list(&mut self, event: &str, items: usize) -> Message<'_> {
        self.item(event).field("EventList", "Complete").field("ListItems", items)
    }
    /// Sends the rest of an answer in pages, at once when one holds it.
    pub fn pages(&mut self, pages: Pages) -> Done {
        match pages.or_whole() {
            Ok(text) => {
                self.out.push_str(&text);
                Ok(After::Go)
            }
            Err(pages) => Ok(After::Wait(Busy::Pages { pages, held: String::new() })),
        }
    }
    /// Who is logged in.
    pub fn login(&self) -> Option<&Login> {
        self.session.login()
    }
    /// Whether the user has this class in `write=`.
    pub fn may(&self, class: &str) -> bool {
        let class = Classes::named(class).unwrap_or(Classes::NONE);
        self.login().is_some_and(|login| login.write.intersects(class))
    }
    /// The channel that a header names.
    pub fn channel(&self, header: &str) -> Result<ChannelId, Refusal> {
        let name = self.need(header)?;
        let found = self.site.shard.core.borrow().by_name(name);
        found.ok_or_else(|| Refusal(refusals::no_channel(self.name(), header, name)))
    }
    /// What text of the user's may touch when it is evaluated: `live_dangerously` opens what is outside, whatever the class.
    pub fn rights(&self) -> Rights {
        let system = self.may("system");
        let outside = self.site.shard.core.borrow().settings.live_dangerously;
        Rights { sets: system || self.may("call"), system, outside }
    }
    /// The same in an action that itself is one that sets.
    pub fn rights_to_set(&self) -> Rights {
        Rights { sets: true, ..self.rights() }
    }
    /// A handle on a channel with the user's rights; without one, functions and globals still answer.
    pub fn call(&self, channel: Option<ChannelId>) -> Call {
        let id = channel.unwrap_or(ChannelId::new(u32::MAX, u32::MAX));
        Call::new(Chan::new(self.site.shard.clone(), id)).with_rights(self.rights())
    }
}
