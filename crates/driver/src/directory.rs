//! What drivers ask of whoever looks objects up in databases.

/// What is known of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// All there is to know is in the configuration, be it that there is no such object.
    Ready,
    /// The driver's `looked_up` follows.
    Awaited,
    /// The database does not say.
    Unavailable,
}
