//! Helpers that sign and check, so that the thread of all calls does not.
//!
//! Jobs and answers go through bounded queues; the driver hands out no more than a few at a time, of each address in turn.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex};

use driver::iax::{KeyAnswer, KeyJob};

/// Threads: what a stranger has checked takes no more than these of the machine.
const THREADS: usize = 2;
/// Jobs that wait for them; more than the driver hands out at once.
const JOBS_MAX: usize = 64;

/// Rings for the loop when there are answers.
type Ring = Arc<dyn Fn() + Send + Sync>;

/// The loop's end. The threads begin with the first job, and end with this.
pub(crate) struct Pool {
    ring: Ring,
    jobs: Option<SyncSender<KeyJob>>,
    done: Receiver<(u64, KeyAnswer)>,
    tell: Sender<(u64, KeyAnswer)>,
}

impl Pool {
    pub(crate) fn new(ring: Ring) -> Self {
        let (tell, done) = channel();
        Self { ring, jobs: None, done, tell }
    }
    /// Has a job done. What cannot be done has failed, and is told like any other.
    pub(crate) fn ask(&mut self, job: KeyJob) {
        let jobs = match &self.jobs {
            Some(jobs) => jobs,
            None => self.jobs.insert(self.start()),
        };
        if let Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) = jobs.try_send(job) {
            // The other end is here as well.
            let _ = self.tell.send((job.id, job.work.failed()));
            (self.ring)();
        }
    }
    /// The answers that have come, as many as there were jobs at most.
    pub(crate) fn take_done(&self) -> Vec<(u64, KeyAnswer)> {
        self.done.try_iter().collect()
    }
    fn start(&self) -> SyncSender<KeyJob> {
        let (jobs, inbox) = sync_channel(JOBS_MAX);
        let inbox = Arc::new(Mutex::new(inbox));
        for _ in 0..THREADS {
            let (inbox, tell, ring) = (inbox.clone(), self.tell.clone(), self.ring.clone());
            // Without any thread the queue has no other end, and every job fails.
            let _ =
                std::thread::Builder::new().name("keys".into()).spawn(move || serve(&inbox, &tell, &*ring));
        }
        jobs
    }
}

/// One helper. Only helpers share the lock, and who holds it has nothing else to do.
fn serve(inbox: &Mutex<Receiver<KeyJob>>, tell: &Sender<(u64, KeyAnswer)>, ring: &(dyn Fn() + Send + Sync)) {
    loop {
        let next = inbox.lock().map(|inbox| inbox.recv());
        let Ok(Ok(job)) = next else { return };
        let answer = catch_unwind(AssertUnwindSafe(|| job.carry_out()));
        if tell.send((job.id, answer.unwrap_or_else(|_| job.work.failed()))).is_err() {
            return;
        }
        ring();
    }
}

#[cfg(test)]
mod tests {
    use driver::iax::{KeySet, KeyWork};

    use super::*;

    /// Signs, panics, or does not come back before it is let.
    struct Odd(Mutex<Receiver<()>>);

    impl KeySet for Odd {
        fn work(&self, work: &KeyWork) -> KeyAnswer {
            match work {
                KeyWork::Sign { key, .. } if key == "panics" => panic!("of a key"),
                KeyWork::Sign { key, .. } if key == "waits" => {
                    // Let, or the test is over.
                    let _ = self.0.lock().unwrap().recv();
                    KeyAnswer::Signed(None)
                }
                KeyWork::Sign { key, .. } => KeyAnswer::Signed(Some(key.clone().into_bytes())),
                KeyWork::Check { .. } => KeyAnswer::Checked(true),
            }
        }
    }

    fn job(id: u64, key: &str, keys: &Arc<Odd>) -> KeyJob {
        let work = KeyWork::Sign { key: key.to_owned(), challenge: Vec::new() };
        KeyJob { id, keys: Some(keys.clone()), work }
    }

    #[test]
    fn every_job_is_answered_once_also_one_that_panics_and_one_too_many() {
        let (go, wait) = channel();
        let keys = Arc::new(Odd(Mutex::new(wait)));
        let (rung, rings) = channel();
        let rung = Mutex::new(rung);
        let mut pool = Pool::new(Arc::new(move || rung.lock().unwrap().send(()).unwrap()));
        for id in 0..THREADS as u64 {
            pool.ask(job(id, "panics", &keys));
            rings.recv().unwrap();
        }
        let mut said = pool.take_done();
        said.sort_by_key(|(id, _)| *id);
        assert_eq!(said, [(0, KeyAnswer::Signed(None)), (1, KeyAnswer::Signed(None))]);
        // All helpers are busy, and the queue is full.
        let most = (THREADS + JOBS_MAX) as u64;
        for id in 0..most + 10 {
            pool.ask(job(id, "waits", &keys));
        }
        // Those that found no room have failed at once; helpers may not have taken theirs yet.
        let at_once = pool.take_done().len();
        assert!((10..=10 + THREADS).contains(&at_once), "{at_once}");
        drop(go);
        let mut answers = at_once;
        while answers < (most + 10) as usize {
            rings.recv().unwrap();
            answers += pool.take_done().len();
        }
        pool.ask(job(7, "us", &keys));
        // The rings of those before may still be there.
        let last = loop {
            if let Some(last) = pool.take_done().pop() {
                break last;
            }
            rings.recv().unwrap();
        };
        assert_eq!(last, (7, KeyAnswer::Signed(Some(b"us".to_vec()))));
    }
}
