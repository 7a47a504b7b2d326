//! Strowger, the software PBX: reads the command line and becomes what it asks for.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod check;
mod convert;
mod db;
mod doctor;
mod embedded;
mod front;
mod process;
mod settings;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Context;
use args::{Args, Mode};

/// The shard frees what other threads have made and the other way round, in small pieces, for weeks. Beside glibc's
/// allocator a Ping takes a twentieth less and a registration of IAX2 a tenth; a process at rest has 1.5 MB more. Huge pages
/// would make that 30.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit status of a command line that cannot be obeyed (EX_USAGE of sysexits.h), which is none of those of `check`.
const MISUSED: u8 = 64;

fn main() -> ExitCode {
    match run() {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("strowger: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<u8> {
    let mut words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).peekable();
    if words.next_if(|word| word == "load").is_some() {
        return loadtest::command::run(words);
    }
    let args = match args::parse(words) {
        Ok(args) => args,
        Err(error) => {
            eprintln!("strowger: {error}");
            return Ok(MISUSED);
        }
    };
    if args.mode == Mode::Doctor {
        return Ok(doctor::run(&args));
    }
    // A folder is judged by itself: what stands in this machine's own asterisk.conf does not matter.
    if let Mode::Check { folder } = &args.mode {
        return check::run(folder, (args.json, args.exec_includes));
    }
    if let Mode::CodecBench(job) = &args.mode {
        return bench::run(job, args.json);
    }
    if let Mode::Db(job) = &args.mode {
        return db::run(job, args.json);
    }
    let settings = settings::read(args.config.as_deref(), args.exec_includes)?;
    let options = &settings.options;
    let args = Args {
        quiet: args.quiet || options.quiet,
        no_color: args.no_color || options.nocolor,
        console: args.console || (options.console && args.mode == Mode::Serve),
        ..args
    };
    let socket = args.socket.clone().unwrap_or_else(|| settings.control_socket());
    if let Some(status) = front::run(&args, &socket) {
        return Ok(status);
    }
    match &args.mode {
        Mode::Serve => serve(&args, &settings, &socket),
        Mode::Codec(job) => convert::run(job),
        // `front` has done all others.
        _ => Ok(0),
    }
}

fn serve(
    args: &Args,
    settings: &store::config::asterisk::Asterisk,
    socket: &std::path::Path,
) -> anyhow::Result<u8> {
    let options = &settings.options;
    if let Some(status) = process::go_to_background(process::forks(args, options.nofork, options.alwaysfork))?
    {
        return Ok(status);
    }
    let named = |first: &Option<String>, second: &str| {
        first.clone().or_else(|| (!second.is_empty()).then(|| second.to_owned()))
    };
    let (user, group) = (named(&args.user, &options.runuser), named(&args.group, &options.rungroup));
    let mut notes = Vec::new();
    let wanted = process::Wanted {
        core_files: args.core_files || options.dumpcore,
        high_priority: args.high_priority || options.highpriority,
        user: user.as_deref(),
        group: group.as_deref(),
        run_folder: &settings.directories.astrundir,
    };
    let files = process::settle(wanted, &mut notes)?;
    notes.iter().for_each(|note| eprintln!("strowger: {note}"));
    let stamped = args.timestamps || options.timestamp;
    let place = match settings::site(args.config.as_deref()) {
        Some(path) => store::Where::Site(path),
        None => embedded::prepare(args.quiet)?,
    };
    let options = engine::Options {
        place,
        console: (!args.console).then(|| Box::new(std::io::stdout()) as _),
        verbose: args.verbose,
        debug: args.debug,
        socket: Some(socket.to_owned()),
        files,
        timestamps: stamped,
        asked: engine::Asked { max_calls: args.max_calls, max_load: args.max_load },
        workers: None,
        fault_injection: std::env::var_os(control::cli::FAULT_INJECTION).is_some(),
    };
    process::tell_panics_briefly();
    let mut engine = engine::Engine::start(options).context("cannot start")?;
    let _pid_file = process::write_pid(wanted.run_folder)?;
    let console = if args.console {
        let (args, socket) = (Args { timestamps: stamped, ..args.clone() }, socket.to_owned());
        let attach = move || front::attach(&args, &socket, control::console::Seat::Local);
        Some(std::thread::Builder::new().name("terminal".into()).spawn(attach)?)
    } else {
        None
    };
    io::process::forget_start();
    process::ready()?;
    let end = engine.run()?;
    drop(engine);
    if let Some(console) = console.filter(|_| std::io::stdin().is_terminal()) {
        // The console sees the end of its connection and gives the terminal back as it was. One that reads from a
        // pipe has nothing to give back and may wait there for ever.
        let _status = console.join();
    }
    match end {
        engine::End::Stop => Ok(0),
        engine::End::Restart => process::start_again(),
    }
}
