//! The media plane on real sockets of the loopback interface, looked into by io_uring.

#[path = "media.rs"]
mod media;
