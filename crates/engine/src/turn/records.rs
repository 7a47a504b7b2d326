//! Call records, channel events and the log of queues, on their way from the core to files and databases.

use base::Instant;
use call::Level;

use super::Engine;
use crate::cel::Events;
use crate::ledger::{Entry, Ledger};

impl Engine {
    pub(super) fn write_records(&mut self) {
        let mut core = self.site.shard.core.borrow_mut();
        self.queue_log.write(&mut core, self.queue_rows.as_mut());
        Self::write_events(&mut self.events, self.ledger.as_mut(), &mut core);
        let finished = std::mem::take(&mut core.cdrs);
        if finished.is_empty() {
            return;
        }
        if let Some(ledger) = &mut self.ledger {
            let now = core.now;
            let lost = ledger.write(&core, finished.iter().map(Entry::Call), now);
            if lost > 0 {
                let line = format!("{lost} call records were lost: too many wait for their databases");
                core.log(Level::Error, "cdr", &line);
            }
        }
        self.count(|counters| counters.records += finished.len() as u64);
        self.records.write(&mut core, finished);
    }
    /// Channel events go where they are wanted.
    fn write_events(events: &mut Events, ledger: Option<&mut Ledger>, core: &mut call::Core) {
        let happened = std::mem::take(&mut core.cels);
        if happened.is_empty() {
            return;
        }
        if let Some(ledger) = ledger {
            let now = core.now;
            let lost = ledger.write(core, happened.iter().map(Entry::Event), now);
            if lost > 0 {
                let line = format!("{lost} channel events were lost: too many wait for their databases");
                core.log(Level::Error, "cel", &line);
            }
        }
        events.write(core, &happened);
    }
    /// Call records that are due go to their databases.
    pub(super) fn follow_ledger(&mut self, now: Instant) {
        let Some(ledger) = &mut self.ledger else { return };
        if ledger.deadline().is_some_and(|at| at <= now) {
            ledger.due(now);
        }
        if let Some(figures) = ledger.take_figures() {
            *self.site.record_tables.borrow_mut() = figures;
        }
        for (level, line) in ledger.take_lines() {
            self.log(level, "cdr", &line);
        }
    }
}
