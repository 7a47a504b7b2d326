//! Device states and hints: what a device is doing, and who is told when that changes.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use base::ChannelId;
use call::{CUSTOM_FAMILY, Chan, Core, DeviceState, Notice, Shard, Watched};
use dialplan::{Addition, Program};

use crate::Call;

/// The name of a custom device (`Custom:lamp`).
pub fn custom_name(device: &str) -> Option<&str> {
    let (tech, name) = device.split_once(':')?;
    tech.eq_ignore_ascii_case("Custom").then_some(name)
}

/// The state of one device, `PJSIP/6001` or `Custom:lamp`, here and on servers that tell us.
pub fn device_state(shard: &Rc<Shard>, device: &str) -> DeviceState {
    let own = own_state(shard, device);
    shard.core.borrow().with_elsewhere(device, own)
}

/// The state of one device as it is here.
fn own_state(shard: &Rc<Shard>, device: &str) -> DeviceState {
    if let Some(name) = custom_name(device) {
        let core = shard.core.borrow();
        if let Some((_, then)) = core.custom_then.as_ref().filter(|(of, _)| of.eq_ignore_ascii_case(name)) {
            return *then;
        }
        let word = core.services.db.get(CUSTOM_FAMILY, name);
        return word.and_then(|word| DeviceState::parse(&word)).unwrap_or_default();
    }
    if let Some(agent) =
        device.get(..6).filter(|tech| tech.eq_ignore_ascii_case("Agent:")).and(device.get(6..))
    {
        let core = shard.core.borrow();
        return core.agents.get(agent).map_or(DeviceState::Invalid, call::Agent::device);
    }
    if let Some(queue) =
        device.get(..6).filter(|tech| tech.eq_ignore_ascii_case("Queue:")).and(device.get(6..))
    {
        return queue_state(&shard.core.borrow(), queue);
    }
    if let Some(space) =
        device.get(..5).filter(|tech| tech.eq_ignore_ascii_case("park:")).and(device.get(5..))
    {
        return space_state(&shard.core.borrow(), space);
    }
    if let Some(name) =
        device.get(..11).filter(|tech| tech.eq_ignore_ascii_case("confbridge:")).and(device.get(11..))
    {
        return conference_state(&shard.core.borrow(), name);
    }
    if let Some(mailbox) =
        device.get(..4).filter(|tech| tech.eq_ignore_ascii_case("MWI:")).and(device.get(4..))
    {
        let waits = shard.core.borrow().mailbox(mailbox).is_some_and(|messages| messages.new > 0);
        return if waits { DeviceState::InUse } else { DeviceState::NotInUse };
    }
    let Some((tech, resource)) = device.split_once('/') else { return DeviceState::Invalid };
    match shard.tech_named(tech) {
        Some(tech) => tech.borrow().device_state(&shard.core.borrow(), resource),
        None => DeviceState::Invalid,
    }
}

/// `Queue:NAME` rings while callers wait; `Queue:NAME_avail` is in use while no member is free; `Queue:NAME_pause_INTERFACE`
/// while that member is paused.
fn queue_state(core: &Core, text: &str) -> DeviceState {
    let lamp = |is_on: bool| if is_on { DeviceState::InUse } else { DeviceState::NotInUse };
    if let Some(queue) = core.queues.get(text) {
        return if queue.callers().is_empty() { DeviceState::NotInUse } else { DeviceState::Ringing };
    }
    if let Some(queue) = text.strip_suffix("_avail").and_then(|name| core.queues.get(name)) {
        return lamp(core.queues.available(queue, core.now) == 0);
    }
    let paused = text.split_once("_pause_");
    let member = paused.and_then(|(name, interface)| core.queues.get(name)?.member(interface));
    member.map_or(DeviceState::Invalid, |member| lamp(member.paused))
}

/// What a device of a queue or a mailbox was before anything has happened there: nobody waits, and nobody is a member.
fn state_before(device: &str) -> Option<DeviceState> {
    if device.starts_with("MWI:") {
        return Some(DeviceState::NotInUse);
    }
    let name = device.strip_prefix("Queue:")?;
    match () {
        () if name.ends_with("_avail") => Some(DeviceState::InUse),
        () if name.contains("_pause_") => None,
        () => Some(DeviceState::NotInUse),
    }
}

/// `confbridge:ROOM` is in use while there is that conference.
fn conference_state(core: &Core, name: &str) -> DeviceState {
    match core.conferences.get(name) {
        Some(_) => DeviceState::InUse,
        None => DeviceState::NotInUse,
    }
}

/// `park:701@parkedcalls` is in use while somebody is parked there.
fn space_state(core: &Core, text: &str) -> DeviceState {
    let taken = text
        .split_once('@')
        .and_then(|(space, context)| core.parking.is_taken(context, space.trim().parse().ok()?));
    match taken {
        Some(true) => DeviceState::InUse,
        Some(false) => DeviceState::NotInUse,
        None => DeviceState::Invalid,
    }
}

/// The state of a member's device: `PJSIP/6001`, `Custom:desk`, `hint:6001@default`.
pub fn member_state(shard: &Rc<Shard>, device: &str) -> DeviceState {
    let hint = device.get(..5).filter(|tech| tech.eq_ignore_ascii_case("hint:")).and(device.get(5..));
    let Some(hint) = hint else {
        // `/n` and the like behind a Local channel are no part of its device.
        let plain = device.strip_prefix("Local/").and_then(|rest| rest.rsplit_once('/'));
        return match plain {
            Some((plain, _)) => device_state(shard, &format!("Local/{plain}")),
            None => device_state(shard, device),
        };
    };
    let (exten, context) = hint.split_once('@').unwrap_or((hint, "default"));
    let devices = devices_of(&shard.core.borrow(), context, exten);
    let Some(devices) = devices else { return DeviceState::Invalid };
    let nobody = Call::new(Chan::new(shard.clone(), ChannelId::new(u32::MAX, u32::MAX)));
    hint_state(shard, &nobody.expand_at(context, exten, &devices))
}

/// Tells a queue what those devices of its members do of which it has not heard.
pub fn ask_members(shard: &Rc<Shard>, queue: &str) {
    let unasked = {
        let core = shard.core.borrow();
        core.queues.get(queue).map(|queue| core.queues.unasked(queue)).unwrap_or_default()
    };
    ask_devices(shard, &unasked);
}

fn ask_devices(shard: &Rc<Shard>, devices: &[Rc<str>]) {
    for device in devices {
        let state = member_state(shard, device);
        shard.core.borrow_mut().with_queues(|queues, now, out| queues.learn(device, state, now, out));
    }
}

/// The same, and waits first until all is known of members that a database will tell.
pub(crate) async fn look_members_up(shard: &Rc<Shard>, queue: &str) {
    let devices = {
        let core = shard.core.borrow();
        core.queues.get(queue).map(|queue| core.queues.unasked_or_invalid(queue)).unwrap_or_default()
    };
    let phones: Vec<(&str, &str)> = devices.iter().filter_map(|device| device.split_once('/')).collect();
    shard.look_all_up(&phones).await;
    ask_devices(shard, &devices);
}

/// The state of a hint: its devices, joined by `&`, together.
pub fn hint_state(shard: &Rc<Shard>, devices: &str) -> DeviceState {
    DeviceState::combine(devices.split('&').map(|device| device_state(shard, device.trim())))
}

/// Whether the dialplan in force has a hint for an extension; for [`call::Core::hinted`].
pub fn hinted(core: &Core, context: &str, exten: &str) -> bool {
    devices_of(core, context, exten).is_some()
}

/// The devices of the hint that an extension has, by its own name, a pattern or an included context.
fn devices_of(core: &Core, context: &str, exten: &str) -> Option<String> {
    let context = core.program.context_id(context)?;
    let query = dialplan::Query { context, exten, caller: "" };
    core.program.hint(query, &crate::env::CoreCalendar(core)).map(|hint| hint.devices.to_string())
}

/// The presence provider of the hint that an extension has.
pub(crate) fn presence_of(core: &Core, context: &str, exten: &str) -> Option<String> {
    let context = core.program.context_id(context)?;
    let query = dialplan::Query { context, exten, caller: "" };
    core.program.hint(query, &crate::env::CoreCalendar(core)).map(|hint| hint.presence.to_string())
}

/// One hint as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HintRow {
    /// Extension; a pattern keeps its `_`.
    pub exten: String,
    /// Context.
    pub context: String,
    /// Devices joined by `&`, `${…}` expanded.
    pub devices: String,
    /// Presence provider; empty without one.
    pub presence: String,
    /// The devices' state together.
    pub state: DeviceState,
}

impl HintRow {
    /// What the dialplan has in place of an application: devices, and behind a comma who says whether people are there.
    pub fn text(&self) -> String {
        hint_text(&self.devices, &self.presence)
    }
}

/// A hint as it is written.
pub(crate) fn hint_text(devices: &str, presence: &str) -> String {
    if presence.is_empty() { devices.to_owned() } else { format!("{devices},{presence}") }
}

/// Most devices whose last state is remembered: more than the phones, queues and agents of any one server. Changes of
/// others are told although nothing has changed.
const DEVICES_MAX: usize = 65_536;

/// Hints beyond which none is made by itself: a site has fewer phones.
const AUTO_HINTS_MAX: usize = 20_000;

/// All hints of the dialplan in force, with the states that were last told.
#[derive(Default)]
pub struct Hints {
    program: Option<Arc<Program>>,
    rows: Vec<HintRow>,
    /// Lower-case device to the rows that name it.
    by_device: HashMap<String, Vec<usize>>,
    devices: HashMap<String, DeviceState>,
    /// What other servers were told of devices, by lower-case name.
    told: HashMap<String, DeviceState>,
    /// Extensions that somebody outside watches, and their devices; a pattern's hint has one for each number asked for.
    followed: HashMap<Rc<Watched>, String>,
    /// Lower-case device to the followed extensions that it is one of.
    followed_by: HashMap<String, Vec<Rc<Watched>>>,
}

impl Hints {
    /// Looks at the devices that were touched since the last call and tells watchers what has become another. The
    /// shard's owner calls it each turn; with nothing touched and the same dialplan it does nothing.
    pub fn update(&mut self, shard: &Rc<Shard>) {
        let (touched, program, watched) = {
            let mut core = shard.core.borrow_mut();
            core.light_diversions();
            let same = self.program.as_ref().is_some_and(|known| Arc::ptr_eq(known, &core.program));
            let idle = core.touched_devices.is_empty() && !core.board.has_requests();
            if idle && same && !core.outward.wants_all {
                return;
            }
            (std::mem::take(&mut core.touched_devices), (!same).then(|| core.program.clone()), core.watched)
        };
        if let Some(program) = program {
            self.read(shard, program);
            let all: Vec<Rc<Watched>> = self.followed.keys().cloned().collect();
            all.into_iter().for_each(|extension| self.follow(shard, extension));
        }
        let (begun, ended) = shard.core.borrow_mut().board.take_requests();
        ended.iter().for_each(|extension| self.unfollow(extension));
        begun.into_iter().for_each(|extension| self.follow(shard, extension));
        let mut touched = touched;
        self.make_hints(shard, &touched);
        // Each change is told, however soon the next one has followed.
        let changes = std::mem::take(&mut shard.core.borrow_mut().custom_changes);
        for (name, state) in changes {
            let device = format!("Custom:{name}");
            shard.core.borrow_mut().custom_then = Some((name, state));
            self.touch(shard, device, watched);
        }
        shard.core.borrow_mut().custom_then = None;
        while !touched.is_empty() {
            for device in touched {
                self.tell_queues(shard, &device);
                self.touch(shard, device, watched);
            }
            // What the queues have told of themselves meanwhile; no queue has a queue for a member.
            touched = std::mem::take(&mut shard.core.borrow_mut().touched_devices);
        }
        let core = &mut *shard.core.borrow_mut();
        if core.outward.wants_all {
            core.outward.wants_all = false;
            // A pattern has no state of its own.
            let rows = self.rows.iter().filter(|row| !row.exten.starts_with('_'));
            rows.for_each(|row| tell_outward(core, row));
            if core.outward.wants_devices {
                let prefix = format!("/{CUSTOM_FAMILY}");
                let custom = core.services.db.list(&prefix).into_iter().filter_map(|(key, word)| {
                    let name = key.strip_prefix(&prefix)?.strip_prefix('/')?;
                    Some((format!("Custom:{name}"), DeviceState::parse(&word)?))
                });
                core.outward.devices.extend(custom);
            }
        }
    }
    /// Devices that do something for the first time get a hint in each context with `autohints=yes` that has none for them.
    fn make_hints(&mut self, shard: &Rc<Shard>, touched: &[String]) {
        let Some(program) = self.program.clone() else { return };
        let contexts: Vec<&str> = program
            .contexts()
            .iter()
            .filter(|context| context.autohints)
            .map(|context| &*context.name)
            .collect();
        if contexts.is_empty() {
            return;
        }
        let mut new = Vec::new();
        for device in touched {
            let Some(name) = auto_name(device) else { continue };
            for context in &contexts {
                let is_there = |row: &HintRow| {
                    row.context == *context && (row.exten == name || row.devices.eq_ignore_ascii_case(device))
                };
                let is_new = |new: &Addition<'_>| new.context == *context && new.exten == name;
                if !self.rows.iter().any(is_there) && !new.iter().any(is_new) {
                    new.push(Addition {
                        context,
                        exten: name,
                        priority: "hint",
                        app: device,
                        data: "",
                        replace: false,
                    });
                }
            }
        }
        if new.is_empty() || self.rows.len() + new.len() > AUTO_HINTS_MAX {
            return;
        }
        let more =
            dialplan::extend(&program, &program.tables(), (&new, "autohints"), &mut conf::Findings::new());
        let more = Arc::new(more);
        shard.core.borrow_mut().program = more.clone();
        self.read(shard, more);
    }
    /// Members of queues whose device was touched, or whose hint names it.
    fn tell_queues(&self, shard: &Rc<Shard>, device: &str) {
        let rows = self.by_device.get(&device.to_ascii_lowercase());
        let hints = rows.into_iter().flatten().filter_map(|index| self.rows.get(*index));
        let hints = hints.map(|row| format!("hint:{}@{}", row.exten, row.context));
        for name in hints.chain([device.to_owned()]) {
            if shard.core.borrow().queues.has_device(&name) {
                let state = member_state(shard, &name);
                shard.core.borrow_mut().with_queues(|queues, now, out| queues.device(&name, state, now, out));
            }
        }
    }
    /// The hints, in the order of the dialplan.
    pub fn rows(&self) -> &[HintRow] {
        &self.rows
    }

    fn read(&mut self, shard: &Rc<Shard>, program: Arc<Program>) {
        let before = std::mem::take(&mut self.rows);
        self.by_device.clear();
        let is_reloaded = std::mem::take(&mut shard.core.borrow_mut().reloaded_hints);
        // Hints belong to no call: their `${…}` see globals only.
        let nobody = Call::new(Chan::new(shard.clone(), ChannelId::new(u32::MAX, u32::MAX)));
        for (context, exten, hint) in program.hints() {
            let devices = nobody.expand(&hint.devices);
            let state = hint_state(shard, &devices);
            for device in devices.split('&').map(str::trim) {
                self.by_device.entry(device.to_ascii_lowercase()).or_default().push(self.rows.len());
            }
            let presence = nobody.expand(&hint.presence);
            let row =
                HintRow { exten: exten.to_owned(), context: context.to_owned(), devices, presence, state };
            let known = before.iter().find(|old| (&old.exten, &old.context) == (&row.exten, &row.context));
            match known {
                Some(old) if old.state != state || is_reloaded && !row.exten.starts_with('_') => {
                    tell(&mut shard.core.borrow_mut(), &row);
                }
                Some(_) => {}
                None => tell_outward(&mut shard.core.borrow_mut(), &row),
            }
            self.rows.push(row);
        }
        let core = &mut *shard.core.borrow_mut();
        let is_there = |old: &HintRow| {
            self.rows.iter().any(|row| (&old.exten, &old.context) == (&row.exten, &row.context))
        };
        if core.outward.wants_extensions {
            for old in before.iter().filter(|old| !is_there(old)) {
                let extension = Watched { context: old.context.clone(), exten: old.exten.clone() };
                core.outward.extensions.push((extension, None));
            }
        }
        self.program = Some(program);
    }
    /// Somebody outside watches this extension, or the dialplan is another: its devices are those of its hint.
    fn follow(&mut self, shard: &Rc<Shard>, extension: Rc<Watched>) {
        self.unfollow(&extension);
        let devices = devices_of(&shard.core.borrow(), &extension.context, &extension.exten);
        let state = devices.map(|devices| {
            let nobody = Call::new(Chan::new(shard.clone(), ChannelId::new(u32::MAX, u32::MAX)));
            let devices = nobody.expand_at(&extension.context, &extension.exten, &devices);
            for device in devices.split('&').map(str::trim) {
                self.followed_by.entry(device.to_ascii_lowercase()).or_default().push(extension.clone());
            }
            let state = hint_state(shard, &devices);
            shard.core.borrow_mut().board.stands_for(&extension, &devices);
            self.followed.insert(extension.clone(), devices);
            state
        });
        shard.core.borrow_mut().board.tell(&extension, state);
    }
    fn unfollow(&mut self, extension: &Rc<Watched>) {
        let Some(devices) = self.followed.remove(extension) else { return };
        for device in devices.split('&').map(|device| device.trim().to_ascii_lowercase()) {
            if let Some(list) = self.followed_by.get_mut(&device) {
                list.retain(|other| other != extension);
                if list.is_empty() {
                    self.followed_by.remove(&device);
                }
            }
        }
    }
    fn touch(&mut self, shard: &Rc<Shard>, device: String, watched: bool) {
        let key = device.to_ascii_lowercase();
        for extension in self.followed_by.get(&key).into_iter().flatten() {
            let state = self.followed.get(extension).map(|devices| hint_state(shard, devices));
            shard.core.borrow_mut().board.tell(extension, state);
        }
        self.tell_own(shard, &key, &device);
        let hinted = self.by_device.get(&key);
        if hinted.is_none() && !watched {
            self.devices.remove(&key);
            return;
        }
        let state = device_state(shard, &device);
        let is_local = key.starts_with("local/");
        // Forgotten, so that names made up by callers do not pile up, and leave room for those that are known.
        let room = if is_unknown(state) { DEVICES_MAX / 2 } else { DEVICES_MAX };
        let before = match () {
            () if hinted.is_none() && (is_local || self.devices.len() >= room) => self.devices.remove(&key),
            () => self.devices.insert(key, state).or_else(|| state_before(&device)),
        };
        if before != Some(state) || is_local {
            let notice = Notice::DeviceStateChange { device, state: state.name() };
            shard.core.borrow_mut().notice(|_| Some(notice));
        }
        for index in hinted.into_iter().flatten() {
            let Some(row) = self.rows.get_mut(*index) else { continue };
            let state = hint_state(shard, &row.devices);
            if row.state != state {
                row.state = state;
                tell(&mut shard.core.borrow_mut(), row);
            }
        }
    }
}

impl Hints {
    /// Tells other servers, when they want to be told, what a device does here.
    fn tell_own(&mut self, shard: &Rc<Shard>, key: &str, device: &str) {
        if !shard.core.borrow().outward.wants_devices {
            self.told.clear();
            return;
        }
        let state = own_state(shard, device);
        // Forgotten while idle, as above.
        let before =
            if is_idle(state) { self.told.remove(key) } else { self.told.insert(key.to_owned(), state) };
        // Of a phone of theirs there is nothing to tell them.
        let is_known = !matches!(state, DeviceState::Invalid | DeviceState::Unknown);
        if before != Some(state) && (is_known || before.is_some()) {
            shard.core.borrow_mut().outward.devices.push((device.to_owned(), state));
        }
    }
}

/// Tells other servers, when they want to be told, what an extension does.
fn tell_outward(core: &mut Core, row: &HintRow) {
    if core.outward.wants_extensions && !row.exten.starts_with('_') {
        let extension = Watched { context: row.context.clone(), exten: row.exten.clone() };
        core.outward.extensions.push((extension, Some(row.state)));
    }
}

/// The extension that a device's own hint has: its name without the technology. Names of Local channels are made up by
/// callers and have none.
fn auto_name(device: &str) -> Option<&str> {
    let at = device.find(['/', ':'])?;
    let (tech, name) = (device.get(..at)?, device.get(at + 1..)?);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
    let fits = !name.is_empty() && !name.starts_with('_') && name.bytes().all(is_plain);
    (fits && !tech.eq_ignore_ascii_case("Local")).then_some(name)
}

/// Nothing here has the name.
fn is_unknown(state: DeviceState) -> bool {
    matches!(state, DeviceState::Unknown | DeviceState::Invalid)
}

fn is_idle(state: DeviceState) -> bool {
    matches!(
        state,
        DeviceState::NotInUse | DeviceState::Unknown | DeviceState::Invalid | DeviceState::Unavailable
    )
}

fn tell(core: &mut Core, row: &HintRow) {
    tell_outward(core, row);
    core.notice(|_| {
        Some(Notice::ExtensionStatus {
            exten: row.exten.clone(),
            context: row.context.clone(),
            hint: row.text(),
            state: row.state,
        })
    });
}
