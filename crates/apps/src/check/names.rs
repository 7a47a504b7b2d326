//! What steps name: places in the dialplan, devices, queues, mailboxes, sounds and so on.
//!
//! Only what is known without a call is found. Names hold [`UNKNOWN`] where a call decides.

use dialplan::args::{split_app, split_raw, unquote};
use dialplan::{Options, Program, Step};

use super::fixed::{Constants, UNKNOWN, function_reads};
use crate::table;

/// Applications inside applications that are followed; deeper ones are not written by anybody.
const DEPTH_MAX: u32 = 8;

/// Something that a step, a hint or an option names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// A place that calls go to; `None` stays as it is.
    Place {
        /// Context.
        context: Option<String>,
        /// Extension.
        exten: Option<String>,
        /// Priority or label.
        priority: String,
    },
    /// A context, of which nothing else is known.
    Context(String),
    /// What is called: `PJSIP/6001`.
    Device(String),
    /// What has a state: `PJSIP/6001`, `Custom:lamp`.
    State(String),
    /// A queue.
    Queue(String),
    /// A rule of queuerules.conf or queueskillrules.conf.
    QueueRule(String),
    /// A mailbox, `6001@office`.
    Mailbox(String),
    /// A bridge profile of confbridge.conf.
    BridgeProfile(String),
    /// A user profile of confbridge.conf.
    UserProfile(String),
    /// A menu of confbridge.conf.
    Menu(String),
    /// A class of music.
    Music(String),
    /// A parking lot.
    Lot(String),
    /// A sound.
    Sound(String),
    /// A section of followme.conf.
    FollowMe(String),
    /// A function that is read or written.
    Function(String),
}

/// A name and who says it.
#[derive(Debug, Clone)]
pub struct Use<'p> {
    /// The context in which it stands.
    pub context: &'p str,
    /// The extension in which it stands.
    pub exten: &'p str,
    /// The step; its `place` is the file and line.
    pub step: &'p Step,
    /// The application, as the table spells it.
    pub app: &'static str,
    /// What it names.
    pub named: Named,
}

/// All that the steps of a program name.
pub fn uses<'p>(program: &'p Program, constants: &Constants<'_>) -> Vec<Use<'p>> {
    let mut found = Vec::new();
    for context in program.contexts() {
        for extension in &context.extensions {
            for step in &extension.steps {
                let mut named = Vec::new();
                names_of(constants, &step.name, &step.args, DEPTH_MAX, &mut named);
                found.extend(named.into_iter().map(|(app, named)| Use {
                    context: &context.name,
                    exten: &extension.name,
                    step,
                    app,
                    named,
                }));
            }
        }
    }
    found
}

/// What an application with these arguments names, outside of a dialplan: of features, menus and managers.
pub fn names(constants: &Constants<'_>, app: &str, args: &str) -> Vec<Named> {
    let mut named = Vec::new();
    names_of(constants, app, args, DEPTH_MAX, &mut named);
    named.into_iter().map(|(_, named)| named).collect()
}

/// The devices of a hint or of an argument, each by itself.
pub fn devices(constants: &Constants<'_>, text: &str) -> Vec<String> {
    let text = constants.expand(text);
    text.split('&').map(|device| device.trim().to_owned()).filter(|device| !device.is_empty()).collect()
}

/// Looks at one application after another.
struct Look<'a, 'p> {
    constants: &'a Constants<'p>,
    app: &'static str,
    found: &'a mut Vec<(&'static str, Named)>,
}

/// Adds what an application names. `depth` is how many more inside of it are followed.
fn names_of(
    constants: &Constants<'_>,
    app: &str,
    args: &str,
    depth: u32,
    found: &mut Vec<(&'static str, Named)>,
) {
    let Some(row) = table::lookup(app) else { return };
    let mut look = Look { constants, app: row.name, found };
    if depth == DEPTH_MAX {
        look.reads(args);
    }
    let inner = |text: &str, found: &mut Vec<(&'static str, Named)>| {
        let (name, args, _) = split_app(text);
        if depth > 0 && !name.is_empty() {
            names_of(constants, name, args, depth - 1, found);
        }
    };
    match row.name {
        "ExecIf" => branches(args).for_each(|text| inner(text, look.found)),
        "ExecIfTime" => args.split_once('?').into_iter().for_each(|(_, text)| inner(text, look.found)),
        "Exec" | "TryExec" => inner(args, look.found),
        "Originate" => {
            let parts = look.parts(args);
            look.device(part(&parts, 0));
            match part(&parts, 1) {
                "app" => inner(&format!("{}({})", part(&parts, 2), part(&parts, 3)), look.found),
                "exten" => {
                    let or = |at: usize, own: &str| match part(&parts, at) {
                        "" => own.to_owned(),
                        text => text.to_owned(),
                    };
                    let (context, exten) = (or(2, "default"), or(3, "s"));
                    look.add(Named::Place {
                        context: Some(context),
                        exten: Some(exten),
                        priority: or(4, "1"),
                    });
                }
                _ => {}
            }
        }
        _ => look.application(args),
    }
}

/// `a:b` behind the question mark, without those that are empty.
pub(super) fn branches(args: &str) -> impl Iterator<Item = &str> {
    let rest = split_raw(args, '?').get(1).copied().unwrap_or("");
    split_raw(rest, ':').into_iter().filter(|text| !text.trim().is_empty())
}

fn part(parts: &[String], at: usize) -> &str {
    parts.get(at).map_or("", |part| part.trim())
}

impl Look<'_, '_> {
    fn add(&mut self, named: Named) {
        self.found.push((self.app, named));
    }
    /// The arguments, constants in place.
    fn parts(&self, args: &str) -> Vec<String> {
        split_raw(&self.constants.expand(args), ',').into_iter().map(unquote).collect()
    }
    /// A name, where it is known.
    fn name(&mut self, text: &str, named: fn(String) -> Named) {
        let text = text.trim();
        if !text.is_empty() && !text.contains(UNKNOWN) {
            self.add(named(text.to_owned()));
        }
    }
    fn device(&mut self, text: &str) {
        for device in text.split('&').map(str::trim).filter(|device| !device.is_empty()) {
            self.add(Named::Device(device.to_owned()));
        }
    }
    fn sounds(&mut self, text: &str) {
        text.split('&').for_each(|sound| self.name(sound, Named::Sound));
    }
    /// `prio`, `exten,prio` or `context,exten,prio`, by commas or `^`.
    fn place(&mut self, text: &str, separator: char) {
        let head = text.split_once('(').map_or(text, |(head, _)| head);
        let parts: Vec<&str> = head.splitn(3, separator).map(str::trim).collect();
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let (context, exten, priority) = match parts[..] {
            [priority] => (None, None, priority),
            [exten, priority] => (None, given(exten), priority),
            [context, exten, priority] => (given(context), given(exten), priority),
            _ => return,
        };
        if !priority.is_empty() {
            self.add(Named::Place { context, exten, priority: priority.to_owned() });
        }
    }
    /// `context^exten^priority(args)` of Dial's options, of which the later parts are named first when it is short.
    fn routine(&mut self, text: Option<&str>) {
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            let separator = if text.contains('^') { '^' } else { ',' };
            self.place(text, separator);
        }
    }
    fn subroutine(&mut self, context: &str) {
        let (context, exten) = (Some(context.trim().to_owned()), Some("s".to_owned()));
        if context.as_deref().is_some_and(|context| !context.is_empty()) {
            self.add(Named::Place { context, exten, priority: "1".to_owned() });
        }
    }

    fn application(&mut self, args: &str) {
        let parts = self.parts(args);
        let at = |index: usize| part(&parts, index);
        match self.app {
            "Goto" | "Gosub" => self.place(&self.constants.expand(args), ','),
            "GotoIf" | "GosubIf" | "GotoIfTime" => {
                branches(args).for_each(|text| self.place(&self.constants.expand(text), ','));
            }
            "ChannelRedirect" => {
                if let Some((_, place)) = self.constants.expand(args).split_once(',') {
                    self.place(place, ',');
                }
            }
            "Macro" | "MacroExclusive" => self.subroutine(&format!("macro-{}", at(0))),
            "MacroIf" => {
                for branch in branches(args) {
                    let text = self.constants.expand(branch);
                    let name = text.split(',').next().unwrap_or("");
                    self.subroutine(&format!("macro-{}", name.trim()));
                }
            }
            "Dial" | "RetryDial" => self.dial(&parts),
            "Page" | "ChanIsAvail" | "PickupChan" => self.device(at(0)),
            "Set" => self.assign(args),
            "MSet" => split_raw(args, ',').into_iter().for_each(|part| self.assign(part)),
            _ => self.services(&parts),
        }
    }

    /// Applications that name something of another file.
    fn services(&mut self, parts: &[String]) {
        let at = |index: usize| part(parts, index);
        match self.app {
            "Queue" => {
                self.name(at(0), Named::Queue);
                self.options(at(1));
                self.sounds(at(3));
                // As the application reads it: with ten parts there is a macro before the routine, as in Asterisk 20.
                let late = usize::from(parts.len() > 9);
                self.routine(Some(at(6 + late)));
                self.name(at(7 + late), Named::QueueRule);
            }
            "AddQueueMember" => {
                self.name(at(0), Named::Queue);
                self.device(at(1));
            }
            "RemoveQueueMember" | "PauseQueueMember" | "UnpauseQueueMember" | "QueueUpdate"
            | "QueueCallback" => self.name(at(0), Named::Queue),
            "VoiceMail" => at(0).split('&').for_each(|mailbox| self.mailbox(mailbox)),
            "VoiceMailMain" | "VMAuthenticate" | "VMSayName" => self.mailbox(at(0)),
            "ConfBridge" => {
                self.name(at(1), Named::BridgeProfile);
                self.name(at(2), Named::UserProfile);
                self.name(at(3), Named::Menu);
            }
            "MusicOnHold" | "StartMusicOnHold" | "SetMusicOnHold" => self.name(at(0), Named::Music),
            "Park" | "ParkedCall" | "ParkAndAnnounce" => self.name(at(0), Named::Lot),
            "Playback" | "ControlPlayback" => self.sounds(at(0)),
            "BackGround" => {
                self.sounds(at(0));
                self.name(at(3), Named::Context);
            }
            "Read" => self.sounds(at(1)),
            "FollowMe" => self.name(at(0), Named::FollowMe),
            "DISA" if !at(1).is_empty() => self.name(at(1), Named::Context),
            "ReadExten" => self.name(at(2), Named::Context),
            "Pickup" => {
                for (_, context) in at(0).split('&').filter_map(|group| group.split_once('@')) {
                    if context != "PICKUPMARK" {
                        self.name(context, Named::Context);
                    }
                }
            }
            _ => {}
        }
    }

    /// `@office` asks for the number, so it names no mailbox.
    fn mailbox(&mut self, text: &str) {
        if !text.trim().starts_with('@') {
            self.name(text, Named::Mailbox);
        }
    }

    fn dial(&mut self, parts: &[String]) {
        let (targets, options) = if self.app == "RetryDial" { (3, 5) } else { (0, 2) };
        self.device(part(parts, targets));
        let letters = part(parts, options);
        self.options(letters);
        let given = Options::parse(letters, "FGUMA");
        self.routine(given.arg('G'));
        self.routine(given.arg('F'));
        if let Some(text) = given.arg('U') {
            self.subroutine(text.split('^').next().unwrap_or(""));
        }
        if let Some(text) = given.arg('M') {
            self.subroutine(&format!("macro-{}", text.split('^').next().unwrap_or("")));
        }
        if let Some(text) = given.arg('A') {
            text.split(':').for_each(|sound| self.name(sound, Named::Sound));
        }
    }

    /// Routines of the callee and the caller, and the music.
    fn options(&mut self, text: &str) {
        let given = Options::parse(text, "bBm");
        self.routine(given.arg('b'));
        self.routine(given.arg('B'));
        if let Some(class) = given.arg('m') {
            self.name(class, Named::Music);
        }
    }

    /// `name=value` of Set and MSet.
    fn assign(&mut self, text: &str) {
        let Some((target, value)) = split_assignment(text) else { return };
        let value = self.constants.expand(value);
        let value = value.trim();
        if let Some((name, args)) = target.split_once('(').map(|(name, args)| (name.trim(), args)) {
            if !name.contains('$') {
                self.add(Named::Function(name.to_owned()));
            }
            let args = args.trim_end().strip_suffix(')').unwrap_or(args).trim();
            if name.eq_ignore_ascii_case("CHANNEL") {
                match args {
                    "musicclass" => self.name(value, Named::Music),
                    "parkinglot" => self.name(value, Named::Lot),
                    "hangup_handler_push" | "hangup_handler_wipe" => self.place(value, ','),
                    _ => {}
                }
            }
            return;
        }
        if target.trim().trim_start_matches('_') == "TRANSFER_CONTEXT" {
            self.name(value, Named::Context);
        }
    }

    /// Functions in the whole text of a step, those that name something among them.
    fn reads(&mut self, args: &str) {
        for (name, inner) in function_reads(args) {
            self.add(Named::Function(name.to_owned()));
            let inner = self.constants.expand(inner);
            let first = inner.split(',').next().unwrap_or("");
            match name {
                "QUEUE_MEMBER"
                | "QUEUE_MEMBER_COUNT"
                | "QUEUE_MEMBER_LIST"
                | "QUEUE_WAITING_COUNT"
                | "QUEUE_VARIABLES" => self.name(first, Named::Queue),
                "VM_INFO" | "VMCOUNT" => self.mailbox(first),
                "DEVICE_STATE" => self.name(&inner, Named::State),
                _ => {}
            }
        }
    }
}

/// Cuts at the `=` that stands outside brackets.
pub(super) fn split_assignment(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_u32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'{' | b'[' => depth += 1,
            b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            b'=' if depth == 0 => return text.get(..at).zip(text.get(at + 1..)),
            _ => {}
        }
    }
    None
}
