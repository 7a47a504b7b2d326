//! A manager client that asks and waits for the answer.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::median;

/// Bytes at the end of an answer in which its last words are looked for.
const NEAR: usize = 4096;
/// Name and password of the user that [`Manager::file`] has.
const USER: &str = "admin";
const SECRET: &str = "a-long-manager-secret";

/// A program that is logged in.
#[derive(Debug)]
pub struct Manager {
    stream: TcpStream,
    heard: Vec<u8>,
}

impl Manager {
    /// `manager.conf` of a site that listens at this address.
    pub fn file(ip: IpAddr) -> String {
        format!(
            "[general]\nenabled=yes\nport=5038\nbindaddr={ip}\n[{USER}]\nsecret={SECRET}\nread=all\nwrite=all\n"
        )
    }
    /// Logs in, without events.
    pub fn login(ip: IpAddr) -> Self {
        let stream = TcpStream::connect((ip, 5038)).expect("a connection");
        stream.set_nodelay(true).expect("an option");
        let mut client = Self { stream, heard: Vec::new() };
        let login = format!("Action: Login\r\nUsername: {USER}\r\nSecret: {SECRET}\r\nEvents: off\r\n\r\n");
        client.ask(&login, "Authentication accepted");
        client
    }
    /// Asks, and reads until a message ends near whose end these words stand.
    pub fn ask(&mut self, text: &str, last: &str) -> Duration {
        self.heard.clear();
        let begun = Instant::now();
        self.stream.write_all(text.as_bytes()).expect("the connection stands");
        let mut buffer = vec![0; 1 << 16];
        loop {
            let length = self.stream.read(&mut buffer).expect("an answer");
            assert!(length > 0, "the connection is closed after {} bytes", self.heard.len());
            self.heard.extend_from_slice(&buffer[..length]);
            let near = &self.heard[self.heard.len().saturating_sub(NEAR)..];
            if near.ends_with(b"\r\n\r\n") && String::from_utf8_lossy(near).contains(last) {
                return begun.elapsed();
            }
        }
    }
    /// The median of so many questions.
    pub fn times(&mut self, count: usize, text: impl Fn(usize) -> String, last: &str) -> Duration {
        let times: Vec<f64> = (0..count).map(|number| self.ask(&text(number), last).as_secs_f64()).collect();
        Duration::from_secs_f64(median(times))
    }
    /// How often words stand in the last answer.
    pub fn count(&self, words: &str) -> usize {
        String::from_utf8_lossy(&self.heard).matches(words).count()
    }
}
