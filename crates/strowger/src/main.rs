//! Strowger, the software PBX.
fn main() {}
