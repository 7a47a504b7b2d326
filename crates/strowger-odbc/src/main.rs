//! `strowger-odbc`: one connection to a database through unixODBC, for Strowger, which starts one for each.
//!
//! A driver is a library of others: what it does wrong ends this process and no call. Questions come on standard input,
//! which is a socket, and answers go the same way (see the crate `odbc`); there is nothing else to be had here.

mod bounds;
mod serve;

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

const USAGE: &str =
    "strowger-odbc speaks ODBC for strowger, which starts it by itself; there is nothing to start it for.";

fn main() -> ExitCode {
    if std::env::args_os().len() > 1 {
        println!("strowger-odbc {}\n{USAGE}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    if rustix::net::getpeername(std::io::stdin()).is_err() {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    }
    let socket = match bounds::settle().and_then(|()| std::io::stdin().as_fd().try_clone_to_owned()) {
        Ok(socket) => socket,
        Err(error) => {
            eprintln!("the process cannot be bounded: {error}");
            return ExitCode::FAILURE;
        }
    };
    match serve::serve(UnixStream::from(socket)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
