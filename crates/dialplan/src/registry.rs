//! The function table and the application names: resolved once at load, called by id.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::env::{Env, Fault};
use crate::rights::{Reach, Rights};

/// An application, by its place in the list the loader was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppId(pub u16);

/// A function, by its place in [`Functions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u16);

/// Application names to ids, any case.
#[derive(Debug, Clone, Default)]
pub struct Apps {
    names: Vec<String>,
    ids: HashMap<String, AppId>,
}

impl Apps {
    /// The table of these names; a name's id is its place. A repeated name keeps its first id.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut apps = Self::default();
        for name in names {
            let Ok(id) = u16::try_from(apps.names.len()) else { break };
            apps.names.push(name.to_owned());
            apps.ids.entry(name.to_ascii_lowercase()).or_insert(AppId(id));
        }
        apps
    }
    /// The id of a name, any case.
    pub fn lookup(&self, name: &str) -> Option<AppId> {
        self.ids.get(&name.trim().to_ascii_lowercase()).copied()
    }
    /// The name as the table spells it.
    pub fn name(&self, id: AppId) -> &str {
        self.names.get(usize::from(id.0)).map_or("", String::as_str)
    }
    /// All names in table order.
    pub fn iter(&self) -> impl Iterator<Item = (AppId, &str)> {
        (0u16..).map(AppId).zip(self.names.iter().map(String::as_str))
    }
}

/// Reads a function: what stands in the parentheses, and where the answer is appended.
pub type ReadFn = fn(&mut dyn Env, &str, &mut String) -> Result<(), Fault>;
/// Writes a function: what stands in the parentheses, and the value.
pub type WriteFn = fn(&mut dyn Env, &str, &str) -> Result<(), Fault>;

/// Functions whose answer only the executing channel has; [`Env::channel_read`] and [`Env::channel_write`] serve them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChannelFunction {
    /// CALLERID()
    Callerid,
    /// CHANNEL()
    Channel,
    /// CHANNELS()
    Channels,
    /// CHANNEL_EXISTS()
    ChannelExists,
    /// CDR()
    Cdr,
    /// CDR_PROP()
    CdrProp,
    /// CONNECTEDLINE()
    Connectedline,
    /// REDIRECTING()
    Redirecting,
    /// TIMEOUT()
    Timeout,
    /// DEVICE_STATE()
    DeviceState,
    /// EXTENSION_STATE()
    ExtensionState,
    /// HANGUPCAUSE()
    Hangupcause,
    /// HANGUPCAUSE_KEYS()
    HangupcauseKeys,
    /// HINT()
    Hint,
    /// MESSAGE()
    Message,
    /// MESSAGE_DATA()
    MessageData,
    /// PJSIP_HEADER()
    PjsipHeader,
    /// PJSIP_HEADERS()
    PjsipHeaders,
    /// PJSIP_RESPONSE_HEADER()
    PjsipResponseHeader,
    /// PJSIP_RESPONSE_HEADERS()
    PjsipResponseHeaders,
    /// PJSIP_MEDIA_OFFER()
    PjsipMediaOffer,
    /// PJSIP_DTMF_MODE()
    PjsipDtmfMode,
    /// PJSIP_TRANSFER_HANDLING()
    PjsipTransferHandling,
    /// PJSIP_MOH_PASSTHROUGH()
    PjsipMohPassthrough,
    /// PJSIP_SEND_SESSION_REFRESH()
    PjsipSendSessionRefresh,
    /// PJSIP_HEADER_PARAM()
    PjsipHeaderParam,
    /// PJSIP_INHERITABLE_HEADER()
    PjsipInheritableHeader,
    /// PJSIP_DIAL_CONTACTS()
    PjsipDialContacts,
    /// PJSIP_PARSE_URI()
    PjsipParseUri,
    /// PJSIP_PARSE_URI_FROM()
    PjsipParseUriFrom,
    /// PJSIP_ENDPOINT()
    PjsipEndpoint,
    /// PJSIP_AOR()
    PjsipAor,
    /// PJSIP_CONTACT()
    PjsipContact,
    /// IAXPEER()
    IaxPeer,
    /// VM_INFO()
    VmInfo,
    /// `AGENT()`.
    Agent,
    /// `QUEUE_MEMBER()`.
    QueueMember,
    /// `QUEUE_MEMBER_COUNT()`.
    QueueMemberCount,
    /// `QUEUE_MEMBER_LIST()`.
    QueueMemberList,
    /// `QUEUE_MEMBER_PENALTY()`.
    QueueMemberPenalty,
    /// `QUEUE_VARIABLES()`.
    QueueVariables,
    /// `QUEUE_WAITING_COUNT()`.
    QueueWaitingCount,
    /// `QUEUE_ESTIMATE()`.
    QueueEstimate,
    /// `QUEUE_EXISTS()`.
    QueueExists,
    /// `QUEUE_GET_CHANNEL()`.
    QueueGetChannel,
    /// MINIVMACCOUNT()
    MiniVmAccount,
    /// MINIVMCOUNTER()
    MiniVmCounter,
    /// VMCOUNT()
    VmCount,
    /// MAILBOX_EXISTS()
    MailboxExists,
    /// IAXVAR()
    IaxVar,
    /// REALTIME()
    Realtime,
    /// REALTIME_FIELD()
    RealtimeField,
    /// REALTIME_HASH()
    RealtimeHash,
    /// REALTIME_STORE()
    RealtimeStore,
    /// REALTIME_DESTROY()
    RealtimeDestroy,
    /// ODBC()
    Odbc,
    /// ODBC_FETCH()
    OdbcFetch,
    /// GROUP()
    Group,
    /// GROUP_COUNT()
    GroupCount,
    /// GROUP_LIST()
    GroupList,
    /// GROUP_MATCH_COUNT()
    GroupMatchCount,
    /// MIXMONITOR()
    Mixmonitor,
    /// MASTER_CHANNEL()
    MasterChannel,
    /// IMPORT()
    Import,
    /// PARK_GET_CHANNEL()
    ParkGetChannel,
    /// EXCEPTION()
    Exception,
    /// STACK_PEEK()
    StackPeek,
    /// LOCAL_PEEK()
    LocalPeek,
    /// BLACKLIST()
    Blacklist,
    /// MUTEAUDIO()
    Muteaudio,
    /// VOLUME()
    Volume,
    /// AGC()
    Agc,
    /// DENOISE()
    Denoise,
    /// PITCH_SHIFT()
    PitchShift,
    /// SCRAMBLE()
    Scramble,
    /// FRAME_DROP()
    FrameDrop,
    /// FRAME_TRACE()
    FrameTrace,
    /// HOLD_INTERCEPT()
    HoldIntercept,
    /// FAXOPT()
    FaxOpt,
    /// GEOLOC_PROFILE()
    GeolocProfile,
    /// STIR_SHAKEN()
    StirShaken,
    /// STIR_SHAKEN_ATTESTATION()
    StirShakenAttestation,
    /// CALLCOMPLETION()
    CallCompletion,
    /// SAYFILES()
    SayFiles,
    /// RECORDING_INFO()
    RecordingInfo,
    /// EXPORT()
    Export,
    /// SYSINFO()
    SysInfo,
    /// LOCK()
    Lock,
    /// TRYLOCK()
    TryLock,
    /// UNLOCK()
    Unlock,
    /// ENUMQUERY()
    EnumQuery,
    /// ENUMRESULT()
    EnumResult,
    /// SIPPEER()
    SipPeer,
    /// SIPCHANINFO()
    SipChanInfo,
    /// CHECKSIPDOMAIN()
    CheckSipDomain,
    /// AUDIOHOOK_INHERIT()
    AudiohookInherit,
    /// TALK_DETECT()
    TalkDetect,
    /// TONE_DETECT()
    ToneDetect,
    /// CONFBRIDGE()
    Confbridge,
    /// CONFBRIDGE_INFO()
    ConfbridgeInfo,
    /// CONFBRIDGE_CHANNELS()
    ConfbridgeChannels,
    /// MEETME_INFO()
    MeetmeInfo,
    /// AST_CONFIG()
    AstConfig,
    /// JITTERBUFFER()
    Jitterbuffer,
    /// CURL()
    Curl,
    /// CURLOPT()
    Curlopt,
    /// FEATURE()
    Feature,
    /// FEATUREMAP()
    FeatureMap,
    /// SRVQUERY()
    SrvQuery,
    /// SRVRESULT()
    SrvResult,
    /// PRESENCE_STATE()
    PresenceState,
    /// SHELL()
    Shell,
    /// SIP_HEADER(), the older name of PJSIP_HEADER(read,…)
    SipHeader,
    /// IFMODULE()
    Ifmodule,
    /// VERSION()
    Version,
}

/// How a function is answered.
#[derive(Debug, Clone)]
pub enum Body {
    /// By code of its own.
    Native {
        /// For `${NAME()}`.
        read: Option<ReadFn>,
        /// For `Set(NAME()=…)`.
        write: Option<WriteFn>,
    },
    /// By the channel.
    Channel {
        /// Which.
        function: ChannelFunction,
        /// It can be read.
        read: bool,
        /// It can be written.
        write: bool,
    },
    /// By a database.
    Statement(Arc<Statement>),
}

/// A function that a site has made of statements (`func_odbc.conf`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statement {
    /// Databases that are read from; the next is asked when one cannot be reached.
    pub read_from: Arc<[String]>,
    /// Databases that are written to.
    pub write_to: Arc<[String]>,
    /// What reading sends, with `${ARG1}`…; empty: it cannot be read.
    pub read: String,
    /// What writing sends, with `${VALUE}`, `${VAL1}`…; empty: it cannot be written.
    pub write: String,
    /// What follows a write that changed nothing; empty: nothing.
    pub insert: String,
    /// Reading gives the name of a result that `ODBC_FETCH()` takes rows from.
    pub multirow: bool,
    /// Most rows of an answer; `None`: as many as are taken.
    pub row_limit: Option<u32>,
    /// Commas of values come with a backslash.
    pub escape_commas: bool,
    /// `ARG1`… are there up to this one, empty when no argument is.
    pub min_args: u32,
}

/// One function: what `core show function` prints and how it is called.
#[derive(Debug, Clone)]
pub struct FunctionRow {
    /// Name, upper case.
    pub name: Cow<'static, str>,
    /// Name with its arguments.
    pub syntax: Cow<'static, str>,
    /// One sentence.
    pub synopsis: Cow<'static, str>,
    /// How it is answered.
    pub body: Body,
    /// What it touches.
    pub reach: Reach,
}

impl FunctionRow {
    /// Whether `${NAME()}` works.
    pub fn readable(&self) -> bool {
        match &self.body {
            Body::Native { read, .. } => read.is_some(),
            Body::Channel { read, .. } => *read,
            Body::Statement(of) => !of.read.is_empty(),
        }
    }
    /// Whether somebody with these rights may read it.
    pub fn may_be_read(&self, rights: Rights) -> bool {
        rights.may_read(self.reach.read)
    }
    /// Whether somebody with these rights may write it.
    pub fn may_be_written(&self, rights: Rights) -> bool {
        rights.may_write(self.reach.write)
    }
    /// Whether `Set(NAME()=…)` works.
    pub fn writable(&self) -> bool {
        match &self.body {
            Body::Native { write, .. } => write.is_some(),
            Body::Channel { write, .. } => *write,
            Body::Statement(of) => !of.write.is_empty(),
        }
    }
}

/// The function table. Ids are places in it and stay valid when rows are added.
#[derive(Debug, Clone)]
pub struct Functions {
    rows: Vec<FunctionRow>,
    ids: HashMap<String, FunctionId>,
}

impl Default for Functions {
    fn default() -> Self {
        Self::standard()
    }
}

impl Functions {
    /// Every function of this crate, and the rows that the channel answers.
    pub fn standard() -> Self {
        let empty = Self { rows: Vec::new(), ids: HashMap::new() };
        empty.with(crate::functions::rows())
    }
    /// This table with more rows; a row with a known name replaces it and keeps its id.
    #[must_use]
    pub fn with(mut self, rows: impl IntoIterator<Item = FunctionRow>) -> Self {
        for row in rows {
            let key = row.name.to_ascii_lowercase();
            if let Some(known) = self.ids.get(&key).and_then(|id| self.rows.get_mut(usize::from(id.0))) {
                *known = row;
            } else if let Ok(id) = u16::try_from(self.rows.len()) {
                self.rows.push(row);
                self.ids.insert(key, FunctionId(id));
            }
        }
        self
    }
    /// The id of a name, any case.
    pub fn lookup(&self, name: &str) -> Option<FunctionId> {
        if let Some(id) = self.ids.get(name) {
            return Some(*id);
        }
        self.ids.get(&name.trim().to_ascii_lowercase()).copied()
    }
    /// The row of an id.
    pub fn row(&self, id: FunctionId) -> Option<&FunctionRow> {
        self.rows.get(usize::from(id.0))
    }
    /// Whether somebody with these rights may read the variable or function that `name` names; what is inside the
    /// parentheses is judged when it is evaluated.
    pub fn may_read(&self, rights: Rights, name: &str) -> bool {
        self.called(name).is_none_or(|row| row.map_or(rights.outside, |row| row.may_be_read(rights)))
    }
    /// The same of writing.
    pub fn may_write(&self, rights: Rights, name: &str) -> bool {
        let may = |row: Option<&FunctionRow>| row.map_or(rights.outside, |row| row.may_be_written(rights));
        rights.sets && self.called(name).is_none_or(may)
    }
    /// The row of the function that a name calls, if there is one; `None` when it names a variable.
    fn called(&self, name: &str) -> Option<Option<&FunctionRow>> {
        let (function, _) = name.split_once('(')?;
        Some(self.lookup(function).and_then(|id| self.row(id)))
    }
    /// Whether reading the function of this name asks a database.
    pub fn asks_rows(&self, name: &str) -> bool {
        let row = self.lookup(name).and_then(|id| self.row(id));
        row.is_some_and(crate::functions::rows::asks_when_read)
    }
    /// All rows.
    pub fn iter(&self) -> impl Iterator<Item = &FunctionRow> {
        self.rows.iter()
    }
}

/// What an evaluation is told that may not do what it wants.
pub const REFUSED: &str = "reaches further than whoever asks may";

/// Calls a row's reader; the answer is appended to `out`. Every reading of a function comes by here.
pub fn read_row(row: &FunctionRow, env: &mut dyn Env, args: &str, out: &mut String) -> Result<(), Fault> {
    if !row.may_be_read(env.rights()) {
        return Err(Fault::new(REFUSED));
    }
    match &row.body {
        Body::Native { read: Some(read), .. } => read(env, args, out),
        Body::Channel { function, read: true, .. } => env.channel_read(*function, args, out),
        Body::Statement(of) if row.readable() => env.statement_read(&row.name, of, args, out),
        Body::Native { .. } | Body::Channel { .. } | Body::Statement(_) => Err(Fault::new("cannot be read")),
    }
}

/// Calls a row's writer. Every writing of a function comes by here.
pub fn write_row(row: &FunctionRow, env: &mut dyn Env, args: &str, value: &str) -> Result<(), Fault> {
    if !row.may_be_written(env.rights()) {
        return Err(Fault::new(REFUSED));
    }
    match &row.body {
        Body::Native { write: Some(write), .. } => write(env, args, value),
        Body::Channel { function, write: true, .. } => env.channel_write(*function, args, value),
        Body::Statement(of) if row.writable() => env.statement_write(of, args, value),
        Body::Native { .. } | Body::Channel { .. } | Body::Statement(_) => {
            Err(Fault::new("cannot be written"))
        }
    }
}
