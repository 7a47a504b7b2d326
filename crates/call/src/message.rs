//! Text that is sent from one to another outside of calls.

/// Data that a message carries beside its text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageData {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
    /// It leaves with the message as a header.
    pub goes_out: bool,
}

/// Most data of one message: as many headers as anybody's phone sends.
const DATA_MAX: usize = 96;

/// A text inside a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// What it says.
    pub body: String,
    /// Its media type.
    pub kind: String,
}

impl Text {
    /// Plain text.
    pub fn plain(body: impl Into<String>) -> Box<Self> {
        Box::new(Self { body: body.into(), kind: PLAIN.to_owned() })
    }
    /// Whether it is plain text, which every technology carries.
    pub fn is_plain(&self) -> bool {
        self.kind == PLAIN
    }
}

/// The media type of plain text.
const PLAIN: &str = "text/plain";

/// A message, as `MESSAGE()` and `MESSAGE_DATA()` show it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextMessage {
    /// To whom, with its technology: `pjsip:100@pbx`.
    pub to: String,
    /// From whom.
    pub from: String,
    /// To, as who sends it wants that to read; empty: the destination.
    pub said_to: String,
    /// The text.
    pub body: String,
    /// What else is known of it.
    pub data: Vec<MessageData>,
}

impl TextMessage {
    /// The value of this name, any case; empty when there is none.
    pub fn get(&self, name: &str) -> &str {
        self.data.iter().find(|data| data.name.eq_ignore_ascii_case(name)).map_or("", |data| &data.value)
    }
    /// Sets a value; an empty one takes it away. `false` when there are too many.
    pub fn set(&mut self, name: &str, value: &str, goes_out: bool) -> bool {
        self.data.retain(|data| !data.name.eq_ignore_ascii_case(name));
        if value.is_empty() {
            return true;
        }
        let room = self.data.len() < DATA_MAX;
        if room {
            self.data.push(MessageData { name: name.to_owned(), value: value.to_owned(), goes_out });
        }
        room
    }
    /// Lets all data leave with the message, or none.
    pub fn mark_all(&mut self, goes_out: bool) {
        self.data.iter_mut().for_each(|data| data.goes_out = goes_out);
    }
}

/// What became of a message that was to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// It has left.
    Sent,
    /// The destination means nobody that could be reached.
    InvalidUri,
    /// It could not leave.
    Failed,
}
