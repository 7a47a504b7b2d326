//! Codecs that libraries in C make: Opus in all its rates, Speex in all its bands and bit rates, Codec 2.
//!
//! One front for three libraries: states are made once and cost an allocation then; a frame costs none. What comes from
//! outside is measured before a library sees it, and what is malformed is concealed and told ([`Concealed`]).
//! This room knows samples, bytes and the libraries; no format ids, no packets, no configuration.
//!
//! - [`opus`]: libopus, built from source into the program (BSD-3-Clause) behind the safe `opus` crate.
//! - [`speex`], [`codec2`]: `libspeex.so.1` (BSD-3-Clause) and `libcodec2` (LGPL-2.1, for which a library of its own is
//!   a condition), looked for when first needed. Without them the codecs are [`Unavailable`], and all else works.

mod library;

pub mod codec2;
pub mod opus;
pub mod speex;

use core::fmt;

/// A library that is not on this machine, or not in a form we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unavailable {
    /// The library, as the dynamic loader knows it.
    pub library: &'static str,
    /// Debian's package that has it.
    pub package: &'static str,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be loaded (install {})", self.library, self.package)
    }
}

impl std::error::Error for Unavailable {}

/// A payload that is not what it should be; so many samples were made up in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concealed(pub usize);

impl fmt::Display for Concealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed payload, {} samples concealed", self.0)
    }
}

impl std::error::Error for Concealed {}

/// What an encoder made of a packet's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoded {
    /// Bytes written.
    pub bytes: usize,
    /// Whether the packet need not be sent: silence under discontinuous transmission.
    pub silent: bool,
}
