//! Queues that lie in databases: how their rows are read, and rows that are written behind, those of members who changed
//! here and those of the log.

use std::rc::Rc;

use base::Instant;
use call::{Core, Level, MemberRow, QueueTables};
use conf::Findings;
use dialplan::Wall;
use queue::{Line, MemberChange, NewMember, QueueConfig};
use store::Snapshot;
use store::config::queues::QueuesGeneral;
use store::config::realtime::{member_of_row, queue_of_row};

use crate::databases::{Asker, Shared};
use crate::family::{Places, places};
use crate::writer::{Write, Writer};

/// The families.
const QUEUES: &str = "queues";
const MEMBERS: &str = "queue_members";
const LOG: &str = "queue_log";
/// Columns of data that a row of the log has.
const DATA_MAX: usize = 5;

/// How rows become queues and members.
struct Reader {
    general: QueuesGeneral,
    has_queues: bool,
    has_members: bool,
}

impl QueueTables for Reader {
    fn has_queues(&self) -> bool {
        self.has_queues
    }
    fn has_members(&self) -> bool {
        self.has_members
    }
    fn queue(&self, row: &[(String, String)]) -> Option<QueueConfig> {
        // What a row says that cannot be has been told when all rows were read.
        queue_of_row(&row.to_vec(), &self.general, &mut Findings::new())
    }
    fn member(&self, row: &[(String, String)]) -> Option<NewMember> {
        member_of_row(&row.to_vec())
    }
}

/// See the module's page.
pub(crate) struct QueueRows {
    members: Writer<String>,
    log: Writer<u64>,
    has_log: bool,
    next: u64,
}

impl QueueRows {
    pub(crate) fn new(databases: &Shared) -> Self {
        let writer = |asker, what| Writer::new(databases.clone(), asker, what, Places::new());
        Self {
            members: writer(Asker::QueueMembers, "members of queues"),
            log: Writer::new(databases.clone(), Asker::QueueLog, "the log of queues", Places::new()),
            has_log: false,
            next: 0,
        }
    }
    /// A configuration says which families there are.
    pub(crate) fn configure(&mut self, snapshot: &Snapshot, core: &mut Core) {
        let [queues, members, log] = [QUEUES, MEMBERS, LOG].map(|family| places(&snapshot.realtime, family));
        let general = snapshot.queues.general.clone();
        let reader = Reader { general, has_queues: !queues.is_empty(), has_members: !members.is_empty() };
        core.queue_tables = (reader.has_queues || reader.has_members).then(|| Rc::new(reader) as _);
        self.members.set_places(members);
        self.has_log = !log.is_empty();
        self.log.set_places(log);
    }
    /// Whether lines of the log become rows.
    pub(crate) fn has_log(&self) -> bool {
        self.has_log
    }
    /// Notes lines of the log, with times in the zone of the machine, or in UTC.
    pub(crate) fn note(&mut self, core: &Core, lines: &[Line], utc: bool) {
        for line in lines {
            self.next += 1;
            self.log.put(self.next, Write::Add(cells(core, line, utc)), core.now);
        }
    }
    /// Notes what has changed about members, and sends what is due.
    pub(crate) fn follow(&mut self, core: &mut Core) -> Vec<(Level, String)> {
        let now = core.now;
        for changed in core.take_queue_rows() {
            let (key, write) = member_write(&changed);
            self.members.put(key, write, now);
        }
        if self.deadline().is_some_and(|at| at <= now) {
            self.members.due(now);
            self.log.due(now);
        }
        core.queue_rows_written(self.members.len());
        let mut lines = self.members.take_lines();
        lines.extend(self.log.take_lines());
        lines
    }
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.members.deadline().into_iter().chain(self.log.deadline()).min()
    }
    /// What databases have answered.
    pub(crate) fn take_in(&mut self, now: Instant) {
        self.members.take_in(now);
        self.log.take_in(now);
    }
    /// The process ends: sends all that waits; whether anything still does that a database may take.
    pub(crate) fn hurry(&mut self, now: Instant) -> bool {
        self.take_in(now);
        self.members.hurry(now);
        self.log.hurry(now);
        let waits = |len: usize, is_away: bool| len > 0 && !is_away;
        waits(self.members.len(), self.members.is_away()) || waits(self.log.len(), self.log.is_away())
    }
    /// Rows that wait, that were written, and that were lost.
    pub(crate) fn written(&self) -> [u64; 3] {
        let (members, log) = (self.members.counts(), self.log.counts());
        [members[0] + log[0], members[1] + log[1], members[2] + log[2]]
    }
}

/// What a change of a member writes, and by which name: a later one of the same kind takes its place.
fn member_write(changed: &MemberRow) -> (String, Write) {
    let (queue, member) = (&changed.queue, &changed.member);
    let keys = match member.row.as_deref().filter(|id| !id.is_empty()) {
        Some(id) => vec![("uniqueid".to_owned(), id.to_owned())],
        None => vec![
            ("queue_name".to_owned(), queue.to_string()),
            ("interface".to_owned(), member.interface.to_string()),
        ],
    };
    let flag = |is: bool| Some(u8::from(is).to_string());
    let (what, sets) = match changed.change {
        MemberChange::Penalty => ("penalty", vec![("penalty".to_owned(), Some(member.penalty.to_string()))]),
        MemberChange::RingInUse => ("ringinuse", vec![("ringinuse".to_owned(), flag(member.ring_in_use))]),
        _ => {
            let reason = Some(member.paused_reason.clone());
            let sets = vec![("paused".to_owned(), flag(member.paused)), ("reason_paused".to_owned(), reason)];
            ("paused", sets)
        }
    };
    (format!("{queue}/{}/{what}", member.interface), Write::Update(keys, sets))
}

/// A row of the log.
fn cells(core: &Core, line: &Line, utc: bool) -> Vec<(String, Option<String>)> {
    let offset = match utc {
        true => dialplan::Offset::default(),
        false => core.services.wall.offset(line.time, ""),
    };
    let mut time = String::new();
    let wall = Wall { seconds: line.time, micros: 0 };
    dialplan::strftime::format(wall, &offset, "%Y-%m-%d %H:%M:%S", &mut time);
    let data = line.entry.data();
    let mut cells = vec![
        ("time".to_owned(), Some(time)),
        ("callid".to_owned(), Some(line.call.to_string())),
        ("queuename".to_owned(), Some(line.queue.to_string())),
        ("agent".to_owned(), Some(line.agent.to_string())),
        ("event".to_owned(), Some(line.entry.name().to_owned())),
        // Tables of before Asterisk 1.8 have all in one column.
        ("data".to_owned(), Some(data.join("|"))),
    ];
    let numbered = (1..=DATA_MAX)
        .map(|number| (format!("data{number}"), Some(data.get(number - 1).cloned().unwrap_or_default())));
    cells.extend(numbered);
    cells
}
