//! Where the windows lie: for voicing around onsets, for analysis in step with the pitch.

use super::FRAME_SAMPLES;

/// Shortest and longest window, in samples.
const WINDOW_MIN: usize = 90;
pub const WINDOW_MAX: usize = 156;
/// Where the windows of a frame may lie.
const RANGE_START: usize = FRAME_SAMPLES + 1;
const RANGE_END: usize = 3 * FRAME_SAMPLES;
/// The voicing window without onsets.
pub const DEFAULT: Window = Window { first: 307, last: 462 };

/// Positions in the analysis span, both included.
#[derive(Debug, Clone, Copy, Default)]
pub struct Window {
    pub first: usize,
    pub last: usize,
}

impl Window {
    pub fn len(self) -> usize {
        self.last + 1 - self.first
    }
    /// The same samples a frame later: no window begins before the second frame of the span.
    pub fn shifted(self) -> Self {
        Self { first: self.first - FRAME_SAMPLES, last: self.last - FRAME_SAMPLES }
    }
    fn at(first: usize, length: usize) -> Self {
        Self { first, last: first + length - 1 }
    }
}

/// Which ends of a voicing window are onsets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    pub start: bool,
    pub end: bool,
}

/// The voicing window of the newest frame, given that of the frame before.
pub fn voicing_window(onsets: &[usize], previous: Window) -> (Window, Bounds) {
    let after = previous.last + 1;
    let range_start = after.max(RANGE_START);
    let within = onsets.partition_point(|&onset| onset <= RANGE_END);
    let inside = onsets.get(..within).unwrap_or_default();
    // The onsets of this frame are the last run of those not before the range.
    let start = inside.iter().rposition(|&onset| onset < range_start).map_or(0, |index| index + 1);
    let Some((&first, later)) = inside.get(start..).and_then(<[usize]>::split_first) else {
        let window = Window::at(after.max(DEFAULT.first), WINDOW_MAX);
        return (window, Bounds::default());
    };
    let another_far_on = later.iter().any(|&onset| onset - first >= WINDOW_MIN);
    if !another_far_on && first > (2 * FRAME_SAMPLES).max(range_start + WINDOW_MIN - 1) {
        let last = first - 1;
        let window = Window { first: range_start.max((last + 1).saturating_sub(WINDOW_MAX)), last };
        return (window, Bounds { start: false, end: true });
    }
    let next = later.iter().find(|&&onset| onset >= first + WINDOW_MIN);
    match next {
        Some(&onset) if onset <= first + WINDOW_MAX => {
            (Window { first, last: onset - 1 }, Bounds { start: true, end: true })
        }
        _ => {
            let last = (first + WINDOW_MAX - 1).min(RANGE_END);
            (Window { first, last }, Bounds { start: true, end: false })
        }
    }
}

/// What [`analysis_windows`] goes by.
pub struct Placing {
    /// Pitch period in samples.
    pub lag: usize,
    /// Voicing of the last half two frames back, of the halves of the frame before, and of this one.
    pub voiced: [bool; 5],
    pub voicing_window: Window,
    pub bounds: Bounds,
    /// The analysis window of the frame before, in this frame's positions.
    pub previous: Window,
}

/// The windows for the coefficients and for the energy.
pub fn analysis_windows(placing: &Placing) -> (Window, Window) {
    let &Placing { lag, voiced, voicing_window, bounds, .. } = placing;
    let any = voiced[3] || voiced[4];
    let in_phase = voiced.iter().all(|&v| v) || any && bounds == Bounds::default();
    let window = if in_phase { phased_window(placing) } else { voicing_window };
    // The energy is taken over whole periods.
    let whole = window.len() / lag * lag;
    let energy = if whole == 0 || !any {
        voicing_window
    } else if !in_phase && bounds == (Bounds { start: false, end: true }) {
        Window { first: window.last + 1 - whole, last: window.last }
    } else {
        Window::at(window.first, whole)
    };
    (window, energy)
}

/// A window of full length, whole periods after the one before, as near the middle of the voicing window as can be.
fn phased_window(placing: &Placing) -> Window {
    let &Placing { lag, voicing_window, bounds, previous, .. } = placing;
    let (lag, before) = (lag as i32, previous.first as i32);
    let (start, end) = (RANGE_START as i32, RANGE_END as i32);
    let (length, voicing) = (WINDOW_MAX as i32, [voicing_window.first as i32, voicing_window.last as i32]);
    let phase = (start + lag - 1 - before) / lag * lag + before;
    let middle = (voicing[0] + voicing[1] + 1 - length) / 2;
    let mut first = phase + ((middle - phase) as f32 / lag as f32).round() as i32 * lag;
    if bounds.end && first + length - 1 > voicing[1] {
        first -= lag;
    }
    if bounds.start && first < voicing[0] {
        first += lag;
    }
    while first + length - 1 > end {
        first -= lag;
    }
    while first < start {
        first += lag;
    }
    Window::at(first as usize, WINDOW_MAX)
}
