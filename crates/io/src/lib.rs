//! Filled by its first part.
