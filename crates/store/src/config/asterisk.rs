//! `asterisk.conf`: where everything lies, and how the process behaves.

use super::kind::{Decimal, Folder, Int, Nets, Seconds, Text, YesNo};
use super::{options, read_settings};
use conf::{File, Findings};
use std::path::PathBuf;

options! {
    /// `[directories]`: the twelve folders.
    Directories, "asterisk.conf", "directories", IsIgnored;
    astetcdir: Folder = "/etc/asterisk", "Configuration files.";
    astmoddir: Folder = "/usr/lib/asterisk/modules", "Modules; Strowger has none and only tells the name.";
    astvarlibdir: Folder = "/var/lib/asterisk", "State that lives long.";
    astdbdir: Folder = "/var/lib/asterisk", "The internal database astdb.sqlite3 and the registration journal.";
    astkeydir: Folder = "/var/lib/asterisk", "Keys and certificates.";
    astdatadir: Folder = "/var/lib/asterisk", "Prompts under sounds/ and music under moh/.";
    astagidir: Folder = "/var/lib/asterisk/agi-bin", "AGI programs.";
    astspooldir: Folder = "/var/spool/asterisk", "Recordings and call files.";
    astrundir: Folder = "/var/run/asterisk", "Control socket and process id file.";
    astlogdir: Folder = "/var/log/asterisk", "Logs and call detail records.";
    astsbindir: Folder = "/usr/sbin", "Programs; only told.";
    astcachedir: Folder = "/var/cache/asterisk", "Files that can be made again.";
    @recognised {}
}

options! {
    /// `[options]`: how the process behaves.
    ProcessOptions, "asterisk.conf", "options", IsIgnored;
    verbose: Int<0, 99> = "0", "Verbosity of the console at start, as -v.";
    debug: Int<0, 99> = "0", "Debug level at start, as -d.";
    nocolor: YesNo = "no", "No colours on the console, as -n.";
    nofork: YesNo = "no", "Stay in the foreground, as -f.";
    alwaysfork: YesNo = "no", "Go to the background even with -v or -d, as -F.";
    console: YesNo = "no", "Run with a console, as -c.";
    quiet: YesNo = "no", "No start messages, as -q.";
    timestamp: YesNo = "no", "Time before each console line, as -T.";
    execincludes: YesNo = "no", "Let #exec in configuration files run commands.";
    runuser: Text = "", "User to become after start, as -U.";
    rungroup: Text = "", "Group to become after start, as -G.";
    defaultlanguage: Text = "en", "Language of channels that name none.";
    systemname: Text = "", "Name of this system; goes before every UNIQUEID.";
    autosystemname: YesNo = "no", "Take the host name as systemname.";
    maxcalls: Int<0, {u32::MAX}> = "0", "Most calls at once; 0 is no limit. What is over it gets 503.";
    maxcps: Int<0, {u32::MAX}> = "0", "Most new calls a second, with a second's worth at once; 0 is no limit. Ours, not Asterisk's.";
    maxload: Decimal = "0", "Load average above which new calls get 503; 0 is no limit.";
    maxbusy: Int<0, 100> = "95", "Percent of its time that the least busy media worker may be at work; new calls beyond get 503. 0 is no limit. Ours, not Asterisk's.";
    maxfiles: Int<0, {u32::MAX}> = "0", "Open file limit to set at start; 0 leaves it.",
        Ignored "*" "the limit is raised as far as the system allows";
    minmemfree: Int<0, {u32::MAX}> = "0", "Free memory in MB below which new calls are refused; 0 is no limit.",
        Later "0" "free memory is not looked at; use maxcalls";
    transmit_silence: YesNo = "no", "Send silence to who is answered and has nothing to hear: while it waits, dials, records, or hears another phone ring nowhere.";
    transcode_via_sln: YesNo = "yes", "Build transcoding paths over signed linear; always so here.",
        Ignored "*" "it is always so";
    live_dangerously: YesNo = "no", "Let functions that reach files, the environment, databases, locks or programs be used from the manager and REST; without it they are the dialplan's alone, whatever the class of a user.";
    entityid: Text = "", "Identity of this system in MAC address form.";
    rtp_use_dynamic: YesNo = "yes", "Use dynamic RTP payload types for codecs that have no static one.",
        Ignored "*" "no format here needs it";
    rtp_pt_dynamic: Int<0, 127> = "35", "First dynamic RTP payload type below 96 that may be used when 96 to 127 are full.",
        Ignored "*" "payload types begin at 96 and are never used up";
    stdexten: Text = "gosub", "How the demonstration dialplan calls its subroutines.",
        Ignored "*" "the demonstration dialplan is not read";
    hideconnect: YesNo = "no", "Say nothing when a remote console connects.",
        Later "no,yes" "remote consoles are not told of";
    lockconfdir: YesNo = "no", "Lock the configuration folder while writing to it.",
        Ignored "*" "nothing here writes configuration files";
    dumpcore: YesNo = "no", "Dump core on a crash, as -g.";
    highpriority: YesNo = "no", "Run with real-time priority, as -p.";
    initcrypto: YesNo = "no", "Ask for key passphrases at start, as -i.",
        Ignored "*" "there are no private keys";
    mindtmfduration: Int<0, 10_000> = "80", "Shortest digit passed on, in milliseconds.",
        Later "80" "digits are passed on with the length they had";
    documentation_language: Text = "en_US", "Language of the built-in documentation.",
        Ignored "*" "the documentation is in English";
    @recognised {
        "trace" "0" Ignored "debug says how much is told";
        "refdebug" "no" Ignored "no references are counted by hand";
        "transmit_silence_during_record" "no" Later "write transmit_silence, which holds for all who hear nothing";
        "dontwarn" "no" Ignored "start messages are few, and all matter";
        "cache_record_files" "no" Later "recordings are written to their folder directly";
        "record_cache_dir" "*" Later "recordings are written to their folder directly";
        "sendfullybooted" "no" Later "the FullyBooted event is sent as by default";
        "languageprefix" "yes" Later "sounds are looked up with the language first";
        "phoneprov" "*" Ignored "phone provisioning is not part of this process";
        "forceblackbackground" "no" Ignored "the console keeps the colours of the terminal";
        "lightbackground" "no" Ignored "the console keeps the colours of the terminal";
        "internal_timing" "*" Ignored "media is always timed by its own clock";
        "cache_media_frames" "yes" Ignored "prompts are always shared and read once";
        "hide_messaging_ami_events" "no" Later "no messaging events are sent";
        "disable_remote_console_shell" "no" Ignored "a remote console never gives a shell";
        "sounds_search_custom_dir" "no" Later "the folder sounds/custom is not searched first";
        "sounds_search_custom" "no" Later "the folder sounds/custom is not searched first";
        "channel_storage_backend" "*" Ignored "channels are stored one way";
        "astctlpermissions" "*" Ignored "it belongs to [files]";
        "timing" "*" Ignored "media is always timed by its own clock";
        "forcefork" "no" Ignored "alwaysfork is its name";
    }
}

options! {
    /// `[files]`: the control socket.
    ControlFiles, "asterisk.conf", "files", IsIgnored;
    astctl: Text = "asterisk.ctl", "Name of the control socket in astrundir.";
    astctlpermissions: Text = "0660", "Mode of the control socket, octal.";
    astctlowner: Text = "", "Owner of the control socket; empty is the user Strowger runs as.";
    astctlgroup: Text = "", "Group of the control socket; empty is the group Strowger runs as.";
    @recognised {}
}

options! {
    /// `[bans]`: who guesses passwords is not listened to for a while. The section is ours, not Asterisk's.
    BanOptions, "asterisk.conf", "bans", IsIgnored;
    enabled: YesNo = "yes", "Ban who gives too many wrong passwords, by SIP, IAX2, the manager interface or HTTP.";
    maxretry: Int<1, 100_000> = "10", "Wrong passwords of one user from one address within findtime; after them that user's are not looked at from there.";
    maxretry_address: Int<1, 100_000> = "30", "Wrong passwords from one address, whoever the user; after them nothing from there is read, unless a phone has registered from it or identify names it.";
    findtime: Seconds<1, 86_400> = "60", "Span they are counted in.";
    bantime: Seconds<1, 604_800> = "600", "Length of the first ban; each further one within a day is twice as long.";
    maxbantime: Seconds<1, 604_800> = "86400", "Length of the longest.";
    ignoreip: Nets = "", "Networks that are never banned.";
    loopback: YesNo = "no", "Ban 127.0.0.0/8 and ::1 too; behind a proxy on this machine everybody comes from there.";
    @recognised {}
}

/// `asterisk.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Asterisk {
    /// Folders.
    pub directories: Directories,
    /// Options of the process.
    pub options: ProcessOptions,
    /// Control socket.
    pub files: ControlFiles,
    /// Guessing.
    pub bans: BanOptions,
}

impl Directories {
    /// Changes each of them but astetcdir.
    pub(crate) fn each(&mut self, mut change: impl FnMut(&mut PathBuf)) {
        for folder in [
            &mut self.astvarlibdir,
            &mut self.astdbdir,
            &mut self.astkeydir,
            &mut self.astdatadir,
            &mut self.astagidir,
            &mut self.astspooldir,
            &mut self.astrundir,
            &mut self.astlogdir,
        ] {
            change(folder);
        }
    }
}

impl Asterisk {
    /// Reads the file. The database follows astvarlibdir unless it is placed itself.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let mut directories: Directories = read_settings(file, "directories", findings);
        if directories.origin.has("astvarlibdir") && !directories.origin.has("astdbdir") {
            directories.astdbdir = directories.astvarlibdir.clone();
        }
        let files: ControlFiles = read_settings(file, "files", findings);
        let asterisk = Self {
            directories,
            options: read_settings(file, "options", findings),
            files,
            bans: read_settings(file, "bans", findings),
        };
        if u32::from_str_radix(&asterisk.files.astctlpermissions, 8).is_err() {
            let place = asterisk.files.origin.place_of("astctlpermissions");
            let message = format!(
                "astctlpermissions={} is no octal mode; 0660 holds",
                asterisk.files.astctlpermissions
            );
            findings.warning(place, message, "write 0660");
        }
        asterisk
    }
    /// Path of the control socket.
    pub fn control_socket(&self) -> PathBuf {
        self.directories.astrundir.join(&self.files.astctl)
    }
    /// Mode of the control socket.
    pub fn control_mode(&self) -> u32 {
        u32::from_str_radix(&self.files.astctlpermissions, 8).unwrap_or(0o660) & 0o777
    }
}
