//! Filled by its first part.
#![forbid(unsafe_code)]
