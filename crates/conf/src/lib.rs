//! The `.conf` language: sections, templates, filters, includes, comments.
//!
//! Bytes come in through a [`Source`], a [`File`] of sections in file order comes out, and everything a person
//! should hear about goes to [`Findings`] with file, line and remedy. This room knows no option of any file: what
//! a name means is the business of `store` and `dialplan`. It opens nothing and runs nothing itself.
//!
//! The rules it follows are numbered in the tests: 1 bytes and lines, 2 comments, 3 the first character,
//! 4 section headers, 5 same-named sections, 6 variables, 7 directives, 8 booleans.
#![forbid(unsafe_code)]

pub mod edit;
mod file;
mod finding;
mod lines;
mod reader;
mod source;
mod value;

pub use file::{File, Section, Variable};
pub use finding::{Finding, Findings, Level, Place};
pub use lines::{COMMENT_DEPTH_MAX, LINE_BYTES_MAX};
pub use reader::{BYTES_MAX, INCLUDE_DEPTH_MAX, INCLUDES_MAX, LoadError, Options, load};
pub use source::{Memory, ReadError, Source, glob_matches, is_glob};
pub use value::boolean;
