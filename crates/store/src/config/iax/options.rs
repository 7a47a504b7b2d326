//! The options of `iax.conf` and what may be written for them.

use crate::config::acl::Access;
use crate::config::kind::{
    Bind, BindTo, CodecList, Gathered, Hidden, Int, Kind, Lines, Millis, Nets, Pairs, Port, Rules, Seconds,
    Text, Tos, YesNo, choice,
};
use crate::config::options;
use conf::{Finding, Findings, Level, Variable};
use std::time::Duration;

choice! {
    /// `type=`: whether a section calls us, is called, or both.
    IaxType {
        Friend | "friend" "It calls us and is called.";
        User | "user" "It calls us.";
        Peer | "peer" "It is called, and registers.";
    }
}

choice! {
    /// `transfer=`: whether a call may leave us, its two sides talking to each other.
    Transfer {
        Yes | "yes" | "true" | "on" | "1" | "y" | "t" "Signalling and media.";
        No | "no" | "false" | "off" | "0" | "n" | "f" "Neither.";
        MediaOnly | "mediaonly" "Media only, so that we still see when the call ends.";
    }
}

choice! {
    /// `encryption=` and `forceencryption=`.
    Encryption {
        No | "no" | "false" | "off" | "0" | "n" | "f" "In the clear.";
        Yes | "yes" | "aes128" | "true" | "on" | "1" | "y" | "t" "AES of 128 bits.";
    }
}

impl Encryption {
    /// Whether it is asked for.
    pub fn on(self) -> bool {
        self == Self::Yes
    }
}

choice! {
    /// `requirecalltoken=`: whether who calls or registers has to show first that it receives where it says to be.
    RequireToken {
        Yes | "yes" | "true" | "on" | "1" | "y" | "t" "Always.";
        Auto | "auto" "From the first time on that it did.";
        No | "no" | "false" | "off" | "0" | "n" | "f" "Never.";
    }
}

choice! {
    /// `codecpriority=`: whose order of formats decides for a call that comes in.
    CodecPriority {
        Host | "host" "Ours.";
        Caller | "caller" "The caller's.";
        Disabled | "disabled" "The format that the caller asks for, else ours.";
        ReqOnly | "reqonly" "The format that the caller asks for, or none.";
    }
}

choice! {
    /// `amaflags=`: what call records say a call is for.
    AmaFlags {
        Default | "default" "What the system does.";
        Documentation | "documentation" "Documentation.";
        Billing | "billing" "Billing.";
        Omit | "omit" "To be left out.";
    }
}

choice! {
    /// `connectedline=`: whether changes of who is talked to are told.
    ConnectedLine {
        No | "no" | "false" | "off" | "0" | "n" | "f" "Neither way.";
        Yes | "yes" | "true" | "on" | "1" | "y" | "t" "Both ways.";
        Send | "send" "They are sent.";
        Receive | "receive" "They are taken.";
    }
}

choice! {
    /// `bandwidth=`: which formats there are when no `allow=` says so.
    Bandwidth {
        High | "high" "All.";
        Medium | "medium" "Those of 32 kbit/s and less.";
        Low | "low" "Those of 16 kbit/s and less.";
    }
}

/// How it may be proven who calls (`auth=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Methods {
    /// MD5 over a challenge and the password.
    pub md5: bool,
    /// A signature by a key.
    pub rsa: bool,
    /// The password itself.
    pub plaintext: bool,
}

/// Methods of authentication, comma separated.
pub struct MethodList;
impl Kind for MethodList {
    type Value = Methods;
    fn describe() -> String {
        "some of md5, rsa, plaintext, comma separated".into()
    }
    fn set(value: &mut Methods, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        let mut methods = Methods::default();
        for word in variable.value.split([',', ' ']).filter(|word| !word.is_empty()) {
            match word.to_ascii_lowercase().as_str() {
                "md5" => methods.md5 = true,
                "rsa" => methods.rsa = true,
                "plaintext" => methods.plaintext = true,
                _ => {
                    let message =
                        format!("auth={} names the method `{word}`, which there is not", variable.value);
                    return Err(variable.finding(Level::Error, message, "write auth=md5"));
                }
            }
        }
        *value = methods;
        Ok(())
    }
}

/// Addresses to listen on; lines add up.
pub struct Binds;
impl Kind for Binds {
    type Value = Vec<Bind>;
    fn describe() -> String {
        "IP address with an optional port, lines add up".into()
    }
    fn set(value: &mut Vec<Bind>, variable: &Variable, notes: &mut Findings) -> Result<(), Finding> {
        let mut bind = None;
        BindTo::set(&mut bind, variable, notes)?;
        value.extend(bind);
        Ok(())
    }
}

/// An address of ours, with the port if one is written.
pub struct Source;
impl Kind for Source {
    type Value = Option<Bind>;
    fn describe() -> String {
        "IP address with an optional port".into()
    }
    fn set(value: &mut Option<Bind>, variable: &Variable, notes: &mut Findings) -> Result<(), Finding> {
        if variable.value.is_empty() {
            *value = None;
            return Ok(());
        }
        BindTo::set(value, variable, notes)
    }
}

/// What `yes` stands for, ms.
const YES_MILLIS: u64 = 2000;

/// `yes` is two seconds, `no` is nothing, a number is milliseconds.
pub struct Limit;
impl Kind for Limit {
    type Value = Option<Duration>;
    fn describe() -> String {
        "yes, no, or milliseconds".into()
    }
    fn set(value: &mut Option<Duration>, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        *value = match conf::boolean(&variable.value) {
            Some(wanted) => wanted.then_some(Duration::from_millis(YES_MILLIS)),
            None => {
                let millis = variable.integer(0..=60_000_u64)?;
                (millis > 0).then_some(Duration::from_millis(millis))
            }
        };
        Ok(())
    }
}

/// `yes` is zero: when the registration ends; `no` is never.
pub struct AutoClear;
impl Kind for AutoClear {
    type Value = Option<Duration>;
    fn describe() -> String {
        "yes, no, or seconds".into()
    }
    fn set(value: &mut Option<Duration>, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        *value = match conf::boolean(&variable.value) {
            Some(wanted) => wanted.then_some(Duration::ZERO),
            None => {
                let seconds = variable.integer(0..=31_536_000_u64)?;
                (seconds > 0).then_some(Duration::from_secs(seconds))
            }
        };
        Ok(())
    }
}

/// Most numbers that one address can be given: all there are.
const NUMBERS_MAX: u32 = 32_766;

options! {
    /// `[general]` of `iax.conf`.
    IaxGeneral, "iax.conf", "general", IsIgnored;
    bindaddr: Binds = "", "Address to listen on; every one of IPv4 unless written.";
    bindport also "port": Port = "4569", "UDP port, for addresses that are written without one.";
    nochecksums: YesNo = "no", "Send UDP without checksums.",
        Ignored "no" "checksums are computed";
    iaxcompat: YesNo = "no", "Look dialplan switches up on threads of their own.",
        Ignored "*" "no look-up holds anything else up";
    delayreject: YesNo = "no", "Wait a second before a wrong password is refused.";
    srvlookup: YesNo = "no", "Look hosts up by their SRV records, _iax._udp, before their addresses.";
    amaflags: AmaFlags = "default", "What call records say calls are for.";
    accountcode: Text = "", "Account of calls that come in.";
    language: Text = "", "Language of prompts.";
    mohinterpret: Text = "default", "Music class that is heard by who is put on hold by the other side.";
    mohsuggest: Text = "", "Music class that those hear whom it puts on hold, unless they have one of their own.";
    parkinglot: Text = "", "Lot that calls are parked in where a dialplan names none.";
    bandwidth: Bandwidth = "high", "Formats when no allow= is written: all, those of 32 kbit/s and less, or those of 16 kbit/s and less.";
    allow also "disallow": CodecList = "", "Formats, for sections that write none.";
    codecpriority: CodecPriority = "host", "Whose order of formats decides for a call that comes in.";
    auth: MethodList = "md5", "How callers may prove who they are, for sections that do not say. The field takes plaintext too unless it is written; Strowger only when it is.";
    transfer: Transfer = "yes", "Whether a call may leave us, its two sides talking to each other, for sections that do not say.";
    encryption: Encryption = "no", "Encipher calls with those who can. It hides what is said from who only listens and does not know the password; see [iax2.md](iax2.md#enciphered-calls).";
    forceencryption: Encryption = "no", "Have no call that is not enciphered.";
    keyrotate: YesNo = "yes", "Change the keys of calls while they last, with those who can. `no`: ours stay; those of the other side are taken as they come.";
    jitterbuffer: YesNo = "no", "Even out when voice arrives.",
        Ignored "*" "voice is evened out wherever it is not relayed as it comes";
    forcejitterbuffer: YesNo = "no", "Even out when voice arrives where it is relayed, too: it is decoded and encoded anew for that, which costs quality with other formats than G.711.";
    maxjitterbuffer: Millis<20, 10_000> = "1000", "Longest time in milliseconds for which voice is held back to even out when it arrives.";
    trunkfreq: Millis<1, 1_000> = "20", "Milliseconds for which voice waits for that of other calls of a trunk.";
    trunkmtu: Int<0, 65_000> = "1240", "Longest datagram of a trunk in octets; 0 is the longest of IAX2, 1,472.";
    trunkmaxsize: Int<1, 1_000_000> = "128000", "Octets of voice that may wait on a trunk.",
        Ignored "128000" "a trunk is sent when its datagram is full";
    trunktimestamps: YesNo = "yes", "Give the voice of each call of a trunk its time.";
    minregexpire: Seconds<1, 65_535> = "60", "Shortest registration in seconds.";
    maxregexpire: Seconds<1, 65_535> = "60", "Longest registration in seconds.";
    register: Lines = "", "Registers us elsewhere: user:secret@host:port, one a line.";
    maxcallnumbers: Int<1, NUMBERS_MAX> = "2048", "Call numbers that one address may have; an IPv6 /64 counts as one.";
    maxcallnumbers_nonvalidated: Int<0, NUMBERS_MAX> = "8192", "Call numbers that all have together who brought no call token.";
    calltokenoptional: Nets = "", "Networks from which nobody has to bring a call token.";
    requirecalltoken: RequireToken = "yes", "Whether who calls or registers has to show first that it receives where it says to be, for sections that do not say.";
    autokill: Limit = "no", "Milliseconds in which who is called has to take notice of a call, or `yes` for 2000; `no`: a call is given up when its first frame was repeated four times, after 50 s at most.";
    authdebug: YesNo = "yes", "Log who fails to prove who it is.", Ignored "*" "it is logged";
    shrinkcallerid: YesNo = "yes", "Take round brackets, blanks, dots and dashes out of callers' numbers.";
    maxauthreq: Int<0, 32_766> = "3", "Calls of a user from one address that may wait for its proof at once; 0 is no limit. In the field it is one limit for all addresses, which lets strangers shut a user out.";
    connectedline: ConnectedLine = "no", "Whether changes of who is talked to are told (`send`), taken (`receive`), both (`yes`) or neither; between two Strowgers, see [iax2.md](iax2.md#who-is-talked-to).";
    callerid: Text = "", "Caller of calls that come in, for users that write none: \"Name\" and the number in angle brackets.";
    regcontext: Text = "", "Context that gets an extension for each peer while it is registered.";
    tos: Tos = "0", "DSCP and ECN bits of all packets.";
    cos: Int<0, 7> = "0", "Priority (802.1p) of all packets; 7 needs CAP_NET_ADMIN.";
    rtcachefriends: YesNo = "no", "Remember users and peers of a database; else it is asked whenever one is wanted. See [realtime.md](realtime.md#users-and-peers-of-iax2).";
    rtupdate: YesNo = "yes", "Write to the database where peers of it are registered.";
    rtautoclear: AutoClear = "no", "Forget a peer of a database when its registration ends, or what is remembered so many seconds after it was read.";
    rtignoreregexpire: YesNo = "no", "Call peers of a database where it says that they were, after their registration has ended.";
    rtsavesysname: YesNo = "no", "Write the name of the system (systemname of asterisk.conf) with registrations, to column regserver.";
    mailboxdetail: YesNo = "yes", "Tell counts of messages with registrations.",
        Ignored "*" "counts are told where mailbox= is written";
    @recognised {
        "iaxthreadcount" "*" Ignored "one thread serves IAX2 without waiting";
        "iaxmaxthreadcount" "*" Ignored "one thread serves IAX2 without waiting";
        "adsi" "no" Ignored "there are no ADSI telephones";
        "allowfwdownload" "no" Ignored "firmware is not sent";
        "calltokenexpiration" "10" Ignored "call tokens are good for 10 s";
        "pingtime" "*" Ignored "connections are asked every 21 s, less often while they are heard";
        "lagrqtime" "*" Ignored "round trips are asked for every 10 s, less often while they stay the same";
        "maxjitterinterps" "*" Ignored "the jitter buffer adapts";
        "jittertargetextra" "*" Ignored "the jitter buffer adapts";
        "resyncthreshold" "*" Ignored "the jitter buffer adapts";
        "dropcount" "*" Ignored "the jitter buffer adapts";
        "maxexcessbuffer" "*" Ignored "the jitter buffer adapts";
        "minexcessbuffer" "*" Ignored "the jitter buffer adapts";
        "jittershrinkrate" "*" Ignored "the jitter buffer adapts";
        "subscribe_network_change_event" "*" Ignored "addresses are looked up again while they are needed";
        "defaultexpirey" "*" Ignored "minregexpire is its name";
        "static" "*" Ignored "files are never written";
        "writeprotect" "*" Ignored "files are never written";
        "trunk" "*" Ignored "each section says it for itself";
        "qualify" "*" Ignored "each section says it for itself";
        "context" "*" Ignored "each section says it for itself";
        "rtpkeepalive" "*" Ignored "voice goes where signalling goes";
    }
}

options! {
    /// A section of `iax.conf` that calls us, is called, or both.
    IaxPeer, "iax.conf", "user, peer, friend", IsIgnored;
    kind as "type": IaxType = "friend", "user: calls us. peer: is called, and registers. friend: both.";
    username: Text = "", "Name that we say when we call it; unless written, that of the section.";
    secret: Hidden = "", "Password; several, separated by semicolons (written \\;), are all right, and the first is ours.";
    auth: MethodList = "md5", "How it may prove who it is, and how we do.";
    inkeys: Text = "", "Public keys by which it may sign, separated by colons: files of astkeydir/keys, without .pub; see auth=rsa.";
    outkey also "outkeys": Text = "", "Private key by which we sign where the other side takes RSA: a file of astkeydir/keys, without .key.";
    dbsecret: Text = "", "Family and key of a password in the database of the system, as family/key; goes before secret.";
    host: Text = "", "dynamic: it registers. Else its address or name.";
    port: Port = "4569", "Its port.";
    defaultip: Text = "", "Its address while it is not registered.";
    context: Lines = "", "Context of its calls; who asks for another one that is written gets that.";
    peercontext: Text = "", "Context that we ask for when we call it.";
    permit also "deny": Rules = "", "Addresses it may come from.";
    acl: Gathered = "", "Lists of acl.conf that it must pass.";
    allow also "disallow": CodecList = "", "Formats, beginning with those of the general section.";
    codecpriority: CodecPriority = "host", "Whose order of formats decides for a call that comes in.";
    qualify: Limit = "no", "Ask it from time to time whether it is there; longest round trip in milliseconds.";
    qualifyfreqok: Millis<1_000, 86_400_000> = "60000", "Milliseconds between two questions while it answers.";
    qualifyfreqnotok: Millis<1_000, 86_400_000> = "10000", "Milliseconds between two questions while it does not.";
    qualifysmoothing: YesNo = "no", "Judge by the mean of two round trips.";
    trunk: YesNo = "no", "Send voice of several calls together.";
    transfer: Transfer = "yes", "Whether a call may leave us, its two sides talking to each other.";
    encryption: Encryption = "no", "Encipher calls if it can.";
    forceencryption: Encryption = "no", "Have no call with it that is not enciphered.";
    keyrotate: YesNo = "yes", "Change the keys of calls while they last, with those who can. `no`: ours stay; those of the other side are taken as they come.";
    requirecalltoken: RequireToken = "yes", "Whether it has to show first that it receives where it says to be: yes, no, or auto, from the first time on that it did.";
    maxcallnumbers: Int<0, NUMBERS_MAX> = "0", "Call numbers that its address may have for calls to it; 0 is what the sections general and callnumberlimits say.";
    callerid: Text = "", "Caller of its calls: \"Name\" and the number in angle brackets.";
    fullname: Text = "", "Name of the caller, in place of that of callerid.";
    cid_number: Text = "", "Number of the caller, in place of that of callerid.";
    sendani: YesNo = "no", "Tell it the caller's number for billing.";
    setvar: Pairs = "", "Variables of its channels.";
    accountcode: Text = "", "Account of its calls.";
    amaflags: AmaFlags = "default", "What call records say its calls are for.";
    language: Text = "", "Language of prompts.";
    mohinterpret: Text = "default", "Music class that is heard by who is put on hold by it.";
    mohsuggest: Text = "", "Music class that those hear whom it puts on hold, unless they have one of their own.";
    parkinglot: Text = "", "Lot that calls are parked in where a dialplan names none.";
    mailbox: Text = "", "Mailboxes whose messages it is told of, when it registers and when they change.";
    regexten: Text = "", "Extensions in regcontext while it is registered, separated by &, each in another context with @; its name unless written.";
    immediate: YesNo = "no", "A call that it begins without a number goes to extension s at once, instead of waiting for what it dials.";
    connectedline: ConnectedLine = "no", "Whether changes of who is talked to are told (`send`), taken (`receive`), both (`yes`) or neither; between two Strowgers, see [iax2.md](iax2.md#who-is-talked-to).";
    maxauthreq: Int<0, 32_766> = "3", "Calls of it from one address that may wait for its proof at once; 0 is no limit.";
    sourceaddress: Source = "", "Address of ours, with an optional port, from which we talk to it; it is listened on too.";
    description: Text = "", "Text for lists.";
    jitterbuffer: YesNo = "no", "Even out when voice arrives.",
        Ignored "*" "voice is evened out wherever it is not relayed as it comes";
    forcejitterbuffer: YesNo = "no", "Even out when voice arrives where it is relayed, too: it is decoded and encoded anew for that, which costs quality with other formats than G.711.";
    @recognised {
        "timezone" "*" Ignored "dates are sent in UTC";
        "zonetag" "*" Ignored "dates are sent in UTC";
        "adsi" "no" Ignored "there are no ADSI telephones";
        "mask" "*" Ignored "permit and deny say it";
        "hasvoicemail" "*" Ignored "mailbox says it";
        "hasiax" "*" Ignored "the section is for IAX2";
        "user" "*" Ignored "username is its name";
        "nat" "*" Ignored "answers always go where the packet came from";
        "rtignoreregexpire" "*" Ignored "it belongs to [general]";
        "disabled" "*" Ignored "what is written is there; remove the section";
    }
    resolved {
        /// Own rules with the named lists; everyone until `Iax::resolve_acls` ran.
        access: Access;
    }
}
