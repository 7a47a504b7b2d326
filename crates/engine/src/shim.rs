#![allow(missing_docs)]
use base::Instant;
use control::site::*;
use control::socket::*;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
pub struct Manager;
impl Manager {
    pub fn new(_: Rc<Site>) -> Self {
        Self
    }
    pub fn set_commands(&mut self, _: Rc<RefCell<control::cli::Cli>>) {}
    pub fn configure(&mut self) {}
    pub fn open(&mut self, _: u64, _: SocketAddr, _: Instant, _: &mut Vec<Output>) {}
    pub fn bytes(&mut self, _: u64, _: &[u8], _: Instant, _: &mut Vec<Output>) {}
    pub fn closed(&mut self, _: u64) {}
    pub fn due(&mut self, _: Instant, _: &mut Vec<Output>) {}
    pub fn deadline(&self) -> Option<Instant> {
        None
    }
    pub fn notices(&mut self, _: &[call::Notice], _: &mut Vec<Output>) {}
    pub fn watching(&self) -> bool {
        false
    }
    pub fn authenticated(&mut self) -> Vec<u64> {
        vec![]
    }
    pub fn flush(&mut self, _: &mut Vec<Output>) {}
}
