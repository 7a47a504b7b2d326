//! What the commands do, by topic.

pub(super) mod call;
pub(super) mod data;
pub(super) mod place;
pub(super) mod record;
pub(super) mod sound;
pub(super) mod speech;
pub(super) mod text;

/// A word of a command; empty when it is not there.
fn word(words: &[String], index: usize) -> &str {
    words.get(index).map_or("", String::as_str)
}
