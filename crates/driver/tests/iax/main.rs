//! The IAX2 driver against another one, on invented time and through a network that loses frames.

mod calls;
mod door;
mod lab;
mod lookups;
mod peers;
mod registrations;
mod switches;
mod trial;
mod video;
