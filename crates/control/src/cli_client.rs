//! The client's end of the control socket, for threads and processes that may block.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::socket::{Frames, Reply, Request};

/// Nobody answers on the control socket.
#[derive(Debug, thiserror::Error)]
#[error("Unable to connect to remote strowger (does {} exist?)", path.display())]
pub struct ConnectError {
    /// Where the socket should be.
    pub path: PathBuf,
    /// What the kernel said.
    pub source: io::Error,
}

impl ConnectError {
    /// What the person at the terminal can do.
    pub fn remedy(&self) -> &'static str {
        match self.source.kind() {
            io::ErrorKind::NotFound => {
                "start it with `strowger`, or name its configuration with -C or its socket with -s"
            }
            io::ErrorKind::ConnectionRefused => {
                "the process that made this socket is gone: start it with `strowger`"
            }
            io::ErrorKind::PermissionDenied => {
                "run this as the user Strowger runs as, or widen astctlpermissions in asterisk.conf [files]"
            }
            _ => "check that the process is healthy",
        }
    }
}

/// A connection to the running process.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    frames: Frames,
}

impl Client {
    /// Connects to the control socket at `path`.
    pub fn connect(path: &Path) -> Result<Self, ConnectError> {
        match UnixStream::connect(path) {
            Ok(stream) => Ok(Self { stream, frames: Frames::default() }),
            Err(source) => Err(ConnectError { path: path.to_owned(), source }),
        }
    }
    /// Sends one request.
    pub fn ask(&mut self, request: &Request) -> io::Result<()> {
        let mut bytes = Vec::new();
        request.write(&mut bytes);
        self.stream.write_all(&bytes)
    }
    /// Waits for the next reply; the end of the stream is `UnexpectedEof`.
    pub fn reply(&mut self) -> io::Result<Reply> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.frames.next_reply() {
                Ok(Some(reply)) => return Ok(reply),
                Ok(None) => {}
                Err(malformed) => return Err(io::Error::new(io::ErrorKind::InvalidData, malformed)),
            }
            match self.stream.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.frames.push(buffer.get(..count).unwrap_or(&[])),
            }
        }
    }
    /// Runs one command, writes its answer to `out` as it comes, and returns its exit status.
    pub fn run(&mut self, line: &str, json: bool, columns: u16, out: &mut dyn Write) -> io::Result<u8> {
        self.ask(&Request::Run { line: line.to_owned(), json, columns })?;
        loop {
            match self.reply()? {
                Reply::Text(text) => out.write_all(text.as_bytes())?,
                Reply::Done { status } => {
                    out.flush()?;
                    return Ok(status);
                }
                // Not for a single command; a console reads them itself.
                Reply::Log(_) | Reply::Candidates(_) => {}
            }
        }
    }
    /// A second handle on the same connection, so that one thread writes while another reads.
    pub(crate) fn writer(&self) -> io::Result<UnixStream> {
        self.stream.try_clone()
    }
}

/// `strowger -rx LINE`: prints the answer, says on `errors` what went wrong, and returns the exit status.
pub fn run_once(path: &Path, line: &str, json: bool, out: &mut dyn Write, errors: &mut dyn Write) -> u8 {
    let mut client = match Client::connect(path) {
        Ok(client) => client,
        Err(error) => {
            // Standard error being closed leaves nobody to tell; the status still says it.
            let _told = writeln!(errors, "{error}: {}; {}", error.source, error.remedy());
            return 1;
        }
    };
    match client.run(line, json, 0, out) {
        // Who asks for the end is answered by it, as scripts expect; a second answer says that it was called off.
        Ok(0) if stops(line) => {
            while client.reply().is_ok_and(|reply| !matches!(reply, Reply::Done { .. })) {}
            0
        }
        Ok(status) => status,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && stops(line) => 0,
        Err(error) => {
            let _told =
                writeln!(errors, "The connection to strowger broke before the answer was complete: {error}");
            1
        }
    }
}

/// Whether the end of the process is the very answer that was asked for.
fn stops(line: &str) -> bool {
    let mut words = line.split_whitespace().filter(|word| *word != "core");
    matches!(words.next(), Some("stop" | "restart")) && words.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{Answer, Call, Commands, Output, Sessions};
    use std::os::unix::net::UnixListener;

    struct Demo;

    impl Commands for Demo {
        fn run(&mut self, call: Call<'_>) -> Answer {
            match call.line {
                "core waitfullybooted" => Answer::ok("Asterisk has fully booted.\n"),
                line => Answer::unknown(line, 0),
            }
        }
        fn complete(&mut self, _line: &str, _: Option<crate::socket::Who>) -> Vec<String> {
            Vec::new()
        }
    }

    /// Serves one client after the other until the listener's file is removed from under the last connection.
    fn serve(listener: UnixListener, clients: usize) -> std::thread::JoinHandle<()> {
        std::thread::spawn(move || {
            for (session, stream) in (0..).zip(listener.incoming().take(clients)) {
                let mut stream = stream.unwrap();
                let mut sessions = Sessions::default();
                sessions.open(session, None);
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    let mut out = Vec::new();
                    if buffer[..count].windows(9).any(|window| window == b"core stop") {
                        break;
                    }
                    sessions.bytes(session, &buffer[..count], &mut Demo, &mut out);
                    for output in out {
                        let Output::Send(_, bytes) = output else { panic!("{output:?}") };
                        stream.write_all(&bytes).unwrap();
                    }
                }
            }
        })
    }

    #[test]
    fn a_single_command_prints_its_answer_and_returns_its_status() {
        let folder = std::env::temp_dir().join(format!("strowger-client-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("asterisk.ctl");
        let server = serve(UnixListener::bind(&path).unwrap(), 3);
        let no_such = "No such command 'x' (type 'core show help x' for other possible commands)\n";
        for (line, text, status) in [
            ("core waitfullybooted", "Asterisk has fully booted.\n", 0),
            ("x", no_such, 1),
            ("core stop now", "", 0),
        ] {
            let (mut out, mut errors) = (Vec::new(), Vec::new());
            let got = run_once(&path, line, false, &mut out, &mut errors);
            assert_eq!((got, String::from_utf8(out).unwrap().as_str()), (status, text), "{line}");
            assert_eq!(errors, b"", "{line}");
        }
        server.join().unwrap();
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        assert_eq!(run_once(&path, "core show version", false, &mut out, &mut errors), 1);
        let errors = String::from_utf8(errors).unwrap();
        assert!(errors.starts_with("Unable to connect to remote strowger (does "), "{errors}");
        assert!(errors.contains("start it with"), "{errors}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
