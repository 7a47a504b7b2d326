//! Which instructions this CPU has, found out once, and the way into code compiled for them.

use core::fmt;

use crate::{Lanes, portable};

/// A computation over lanes, generic over their width.
pub trait Kernel {
    /// What it leaves behind.
    type Out;
    /// The computation. Must be `#[inline(always)]`, as must be everything it calls with vectors.
    fn run<L: Lanes>(self) -> Self::Out;
}

/// A set of instructions that this CPU is known to have.
///
/// There is no way to make one for a CPU that lacks them: whoever holds a `Level` may [`run`](Self::run) on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Level(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

/// Every level there is, the best first.
const ALL: &[Level] = &[
    #[cfg(target_arch = "x86_64")]
    Level(Kind::Avx512),
    #[cfg(target_arch = "x86_64")]
    Level(Kind::Avx2),
    Level(Kind::Portable),
];

impl Level {
    /// The one with the widest lanes.
    pub fn best() -> Self {
        Self::all_available().next().unwrap_or(Self::portable())
    }

    /// Plain arrays, 8 lanes; what every CPU has.
    pub const fn portable() -> Self {
        Self(Kind::Portable)
    }

    /// `avx512`, `avx2` or `portable`; `None` when there is no such level or this CPU lacks it.
    pub fn named(name: &str) -> Option<Self> {
        Self::all_available().find(|level| level.name() == name)
    }

    /// What this CPU has, the best first; `portable` is always among them.
    pub fn all_available() -> impl Iterator<Item = Self> + Clone {
        ALL.iter().copied().filter(|level| level.is_available())
    }

    /// The level that a setting asks for: the best one for none, the empty one and `auto`.
    ///
    /// # Errors
    /// [`UnknownLevel`] says what this CPU has instead.
    pub fn from_setting(setting: Option<&str>) -> Result<Self, UnknownLevel> {
        match setting {
            None | Some("" | "auto") => Ok(Self::best()),
            Some(name) => Self::named(name).ok_or_else(|| UnknownLevel { name: name.into() }),
        }
    }

    /// Whether it is the one of plain arrays, whose groups gain least over code for one stream.
    pub const fn is_portable(self) -> bool {
        matches!(self.0, Kind::Portable)
    }

    /// Its name, as settings write it.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            Kind::Portable => "portable",
        }
    }

    /// Streams in a group of 32-bit lanes ([`Lanes::N`]); 16-bit lanes hold twice as many.
    pub fn lanes(self) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => crate::x86::Avx512::N,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => crate::x86::Avx2::N,
            Kind::Portable => portable::Portable::N,
        }
    }

    /// The level for a group of only so many streams in 32-bit lanes: AVX2 where the lanes of AVX-512 would be half empty, for
    /// its instructions cost less there; else this one. For 16-bit lanes ask for half as many.
    #[must_use]
    pub fn narrowed(self, streams: usize) -> Self {
        #[cfg(target_arch = "x86_64")]
        if self.0 == Kind::Avx512 && streams <= crate::x86::Avx2::N {
            return Self(Kind::Avx2); // which this CPU has: `has_avx512` asks for both
        }
        let _ = streams;
        self
    }

    /// Runs a kernel with this level's instructions.
    pub fn run<K: Kernel>(self, kernel: K) -> K::Out {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => {
                // SAFETY: a level is handed out by `all_available` only, which found these instructions in this CPU.
                unsafe { crate::x86::enter_avx512(kernel) }
            }
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => {
                // SAFETY: as above.
                unsafe { crate::x86::enter_avx2(kernel) }
            }
            Kind::Portable => portable::enter(kernel),
        }
    }

    fn is_available(self) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => crate::x86::has_avx512(),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => crate::x86::has_avx2(),
            Kind::Portable => true,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A setting names a level that does not exist or that this CPU lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLevel {
    name: String,
}

impl fmt::Display for UnknownLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = if ALL.iter().any(|level| level.name() == self.name) {
            "is not available on this CPU"
        } else {
            "does not exist"
        };
        write!(f, "SIMD level '{}' {fault}; use auto", self.name)?;
        for level in Level::all_available() {
            write!(f, ", {level}")?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownLevel {}

#[cfg(test)]
mod tests {
    use super::*;

    struct Count;
    impl Kernel for Count {
        type Out = (usize, usize);
        #[inline(always)]
        fn run<L: Lanes>(self) -> (usize, usize) {
            use crate::Vector;
            (L::F32::LANES, L::I16::LANES)
        }
    }

    #[test]
    fn every_available_level_is_found_by_its_name_and_runs_with_its_width() {
        for level in Level::all_available() {
            assert_eq!(Level::named(level.name()), Some(level));
            assert_eq!(level.run(Count), (level.lanes(), 2 * level.lanes()), "{level}");
        }
        assert_eq!(Level::all_available().last(), Some(Level::portable()));
        assert_eq!(Level::all_available().next(), Some(Level::best()));
    }

    #[test]
    fn a_group_that_half_the_lanes_hold_gets_a_narrower_level_of_this_cpu() {
        for level in Level::all_available() {
            for streams in 1..=level.lanes() {
                let narrowed = level.narrowed(streams);
                assert!(narrowed.lanes() >= streams && Level::named(narrowed.name()) == Some(narrowed));
                assert_eq!(narrowed == level, streams > 8 || level.lanes() == 8, "{level}, {streams}");
            }
            assert_eq!(level.narrowed(usize::MAX), level);
        }
    }

    #[test]
    fn a_setting_picks_a_level_and_a_wrong_one_says_what_there_is() {
        for setting in [None, Some(""), Some("auto")] {
            assert_eq!(Level::from_setting(setting), Ok(Level::best()));
        }
        assert_eq!(Level::from_setting(Some("portable")), Ok(Level::portable()));
        let error = Level::from_setting(Some("avx9")).unwrap_err().to_string();
        assert!(error.starts_with("SIMD level 'avx9' does not exist; use auto, "), "{error}");
        assert!(error.ends_with("portable"), "{error}");
    }
}
