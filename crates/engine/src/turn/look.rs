//! What is looked at once in a while: load, recordings, and what threads and the kernel cannot do.

use std::time::Duration;

use base::Instant;
use call::Level;

use super::Engine;
use crate::telemetry::Traces;

/// How often the machine's load is looked at while `maxload` is set.
const LOAD_EVERY: Duration = Duration::from_secs(5);
/// How often the workers' is, over which they measure it, while there are calls that `maxbusy` may refuse.
const BUSY_EVERY: Duration = Duration::from_secs(1);
/// How often streams are asked for their totals.
const QUALITY_EVERY: Duration = Duration::from_secs(1);
/// How often recordings are asked whether they can be written.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After this long without it, a want of descriptors is worth another line.
const RESTS_QUIET: Duration = Duration::from_secs(60);

impl Engine {
    /// What the threads that write cannot do, and connections that nobody can take for want of descriptors.
    pub(super) fn tell_troubles(&mut self) {
        let records = self.records.trouble().into_iter().chain(self.queue_log.trouble());
        let records = records.chain(self.events.trouble());
        let log = self.site.log.trouble();
        let mut core = self.site.shard.core.borrow_mut();
        let db = core.services.db.trouble();
        let others = [("astdb", db), ("logger", log)];
        let others = others.into_iter().filter_map(|(place, trouble)| Some((place, trouble?)));
        let traces = self.traces.as_ref().and_then(Traces::trouble).map(|told| ("opentelemetry", told));
        for (place, trouble) in records.chain(others).chain(traces) {
            core.log(Level::Error, place, &trouble);
        }
        for (level, line) in self.externals.news() {
            core.log(level, "codec", &line);
        }
        let rests = self.net.stats().rests;
        if rests > self.rests_told {
            // Once until it is over: a listener rests again and again while there is no descriptor.
            if self.rests_quiet_until.is_none_or(|until| until <= core.now) {
                let line = "no descriptor is left for a connection, which has to wait; raise the limit on open files \
                            (ulimit -n, LimitNOFILE= of the systemd unit)";
                core.log(Level::Error, "strowger", line);
            }
            (self.rests_told, self.rests_quiet_until) = (rests, Some(core.now + RESTS_QUIET));
        }
    }
    /// The machine's load, looked at only while a limit wants it.
    pub(super) fn read_load(&mut self, now: Instant) {
        let mut core = self.site.shard.core.borrow_mut();
        if core.admission.limits().max_load_centi == 0 {
            self.load_at = None;
            return;
        }
        let load = std::fs::read_to_string("/proc/loadavg").ok();
        let minute = load.as_deref().and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        core.admission.set_load((minute.unwrap_or(0.0) * 100.0) as u32);
        self.load_at = Some(now + LOAD_EVERY);
    }

    /// What media workers have to do.
    pub(super) fn read_busy(&mut self, now: Instant) {
        let mut core = self.site.shard.core.borrow_mut();
        let calls = core.call_count();
        if core.admission.limits().max_busy_permille == 0 || calls < call::CALLS_ALWAYS {
            if self.busy_at.take().is_some() {
                core.admission.set_busy(0, calls);
            }
            return;
        }
        let loads = self.site.media.borrow().loads();
        let least = loads.workers().map(|load| load.busy_permille).min().unwrap_or(0);
        core.admission.set_busy(least as u32, calls);
        self.busy_at = Some(now + BUSY_EVERY);
    }

    /// Asks how calls fare, while somebody watches who is told at their ends.
    pub(super) fn ask_quality(&mut self, now: Instant) {
        if self.quality_at.is_some_and(|at| at > now) {
            return;
        }
        let mut core = self.site.shard.core.borrow_mut();
        let asks = core.watched && core.call_count() > 0;
        self.quality_at = asks.then_some(now + QUALITY_EVERY);
        if asks {
            core.ask_quality();
        }
    }

    /// Ends recordings that cannot be written, once in a while and as long as there are any.
    pub(super) fn look_at_recordings(&mut self, now: Instant) {
        let mut core = self.site.shard.core.borrow_mut();
        if self.look_at.is_some_and(|at| at <= now) {
            self.look_at = None;
            core.monitor_look();
        }
        if core.services.recorder.state().running > 0 || core.monitor_waits() {
            self.look_at.get_or_insert(now + LOOK_EVERY);
        }
    }
}
