//! House-keeping for developers: `cargo xtask tidy`.
fn main() {}
