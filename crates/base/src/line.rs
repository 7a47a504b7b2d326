//! Live sound on its way from one stream to another, whichever workers they are on: a ring of samples without locks.
//!
//! Both ends are called at ticks, and ticks of two streams do not fall together: the ring gives nothing before a little
//! has come, so that it does not run dry between two of them, and drops the oldest when a reader fell behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicI16, AtomicUsize, Ordering};

use crate::{AudioSink, AudioSource, SampleRate};

/// What is there before the first sample is given: one packet of the longest kind.
const BEGIN_MS: usize = 60;
/// More than this is delay that would never end: it is brought back to [`BEGIN_MS`].
const MOST_MS: usize = 200;
/// What has room: twice that, for a reader that sleeps.
const ROOM_MS: usize = 400;

struct Shared {
    samples: Box<[AtomicI16]>,
    /// Samples since the beginning; they wrap around.
    written: AtomicUsize,
    read: AtomicUsize,
}

impl Shared {
    fn at(&self, position: usize) -> Option<&AtomicI16> {
        self.samples.get(position % self.samples.len().max(1))
    }
}

/// Where a line begins.
pub struct LineIn(Arc<Shared>);

/// Where it ends.
pub struct LineOut {
    shared: Arc<Shared>,
    /// Samples of [`BEGIN_MS`] and [`MOST_MS`].
    begin: usize,
    most: usize,
    runs: bool,
}

/// A line for sound at this rate.
pub fn line(rate: SampleRate) -> (LineIn, LineOut) {
    let samples = |ms: usize| rate.0 as usize * ms / 1000;
    // A power of two, so that positions stay true when they wrap.
    let room = samples(ROOM_MS).next_power_of_two();
    let shared = Arc::new(Shared {
        samples: (0..room).map(|_| AtomicI16::new(0)).collect(),
        written: AtomicUsize::new(0),
        read: AtomicUsize::new(0),
    });
    let out =
        LineOut { shared: shared.clone(), begin: samples(BEGIN_MS), most: samples(MOST_MS), runs: false };
    (LineIn(shared), out)
}

impl AudioSink for LineIn {
    fn write(&mut self, samples: &[i16]) -> usize {
        let shared = &*self.0;
        let written = shared.written.load(Ordering::Relaxed);
        let waiting = written.wrapping_sub(shared.read.load(Ordering::Acquire));
        let count = samples.len().min(shared.samples.len().saturating_sub(waiting));
        for (n, sample) in samples.iter().take(count).enumerate() {
            if let Some(place) = shared.at(written.wrapping_add(n)) {
                place.store(*sample, Ordering::Relaxed);
            }
        }
        shared.written.store(written.wrapping_add(count), Ordering::Release);
        count
    }
}

impl AudioSource for LineOut {
    fn read(&mut self, samples: &mut [i16]) -> usize {
        let Self { shared, begin, most, runs } = self;
        let mut read = shared.read.load(Ordering::Relaxed);
        let mut waiting = shared.written.load(Ordering::Acquire).wrapping_sub(read);
        if waiting > *most {
            read = read.wrapping_add(waiting - *begin);
            waiting = *begin;
        }
        *runs = (*runs || waiting >= *begin) && waiting >= samples.len();
        let count = if *runs { samples.len() } else { 0 };
        for (n, sample) in samples.iter_mut().take(count).enumerate() {
            if let Some(place) = shared.at(read.wrapping_add(n)) {
                *sample = place.load(Ordering::Relaxed);
            }
        }
        shared.read.store(read.wrapping_add(count), Ordering::Release);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a reader of frames of 20 ms at 1 kHz gets while this is written before each.
    fn given(written: &[usize]) -> Vec<usize> {
        let (mut to, mut from) = line(SampleRate(1000));
        let mut next = 0;
        let mut expected = None;
        written
            .iter()
            .map(|count| {
                let said: Vec<i16> = (next..).take(*count).collect();
                next += to.write(&said) as i16;
                let mut frame = [-1; 20];
                let read = from.read(&mut frame);
                if read > 0 {
                    assert!(
                        expected.is_none_or(|first| first <= frame[0]),
                        "what is old does not come again"
                    );
                    assert!(frame.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{frame:?}");
                    expected = Some(frame[19] + 1);
                }
                read
            })
            .collect()
    }

    #[test]
    fn nothing_is_given_before_a_packet_of_the_longest_kind_has_come_and_then_every_frame() {
        for (name, written, expected) in [
            ("even", vec![20; 6], vec![0, 0, 20, 20, 20, 20]),
            ("in long packets", vec![60, 0, 0, 60, 0, 0], vec![20; 6]),
            ("run dry it begins anew", vec![60, 0, 0, 0, 20, 20, 20], vec![20, 20, 20, 0, 0, 0, 20]),
            ("nothing", vec![0; 3], vec![0; 3]),
        ] {
            assert_eq!(given(&written), expected, "{name}");
        }
    }

    #[test]
    fn a_reader_that_fell_behind_hears_what_is_new_and_a_full_line_takes_no_more() {
        let (mut to, mut from) = line(SampleRate(1000));
        let said: Vec<i16> = (0..600).collect();
        assert_eq!(to.write(&said), 512);
        assert_eq!(to.write(&said), 0);
        let mut frame = [0; 20];
        assert_eq!(from.read(&mut frame), 20);
        assert_eq!((frame[0], frame[19]), (512 - 60, 512 - 41));
        assert_eq!(to.write(&said), 472);
    }

    #[test]
    fn two_threads_lose_nothing_that_fits() {
        let (mut to, mut from) = line(SampleRate(8000));
        let writer = std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                let mut next = 0i16;
                while next < 30_000 {
                    let frame: Vec<i16> = (next..next + 160).collect();
                    let mut rest = frame.as_slice();
                    while !rest.is_empty() {
                        rest = &rest[to.write(rest)..];
                        std::hint::spin_loop();
                    }
                    next += 160;
                }
            });
            let (mut last, mut frame) = (-1, [0; 80]);
            while !writer.is_finished() {
                if from.read(&mut frame) > 0 {
                    assert!(frame[0] > last, "{} after {last}", frame[0]);
                    assert!(frame.windows(2).all(|pair| pair[0] + 1 == pair[1]));
                    last = frame[79];
                }
            }
            writer.join()
        });
        assert!(writer.is_ok());
    }
}
