//! Identifiers. Each carries a generation, so that a late message about something gone finds nothing.

macro_rules! generational {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            /// Index into the owner's slab; reused.
            pub slot: u32,
            /// Counts the uses of the slot; an id of an earlier use finds nothing.
            pub generation: u32,
        }
        impl $name {
            /// The id for `slot` in its use number `generation`.
            pub const fn new(slot: u32, generation: u32) -> Self {
                Self { slot, generation }
            }
        }
    };
}

generational!(
    /// A channel: one leg of a call as the dialplan sees it. Owned by the call core.
    ChannelId
);
generational!(
    /// A media stream of one leg. Minted by the signalling plane, owned by a media worker.
    StreamId
);
generational!(
    /// A bridge between channels.
    BridgeId
);
generational!(
    /// A room in which streams hear each other. Minted by the signalling plane, mixed by a media worker.
    RoomId
);

/// One request to play something; tells the answer to an old request from the answer to the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlayId(pub u32);
