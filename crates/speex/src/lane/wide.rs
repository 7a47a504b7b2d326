//! Lanes in double precision, where C promotes to it: as many as there are of `f32`, in two vectors.

use std::ops::{Add, Div, Mul, Sub};

use lanes::{F32Lanes, F64Lanes, Lanes, Vector};

/// `L::N` doubles.
#[derive(Clone, Copy)]
pub struct Wide<L: Lanes>([L::F64; 2]);

impl<L: Lanes> Wide<L> {
    #[inline(always)]
    pub fn of(x: L::F32) -> Self {
        Self(x.widen())
    }
    #[inline(always)]
    pub fn splat(x: f64) -> Self {
        Self([L::F64::splat(x); 2])
    }
    #[inline(always)]
    pub fn narrow(self) -> L::F32 {
        L::F32::narrow(self.0)
    }
    #[inline(always)]
    pub fn sqrt(self) -> Self {
        Self([self.0[0].sqrt(), self.0[1].sqrt()])
    }
    #[inline(always)]
    pub fn min(self, other: Self) -> Self {
        Self([self.0[0].min(other.0[0]), self.0[1].min(other.0[1])])
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident),*) => {
        $(impl<L: Lanes> $trait for Wide<L> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self([self.0[0].$method(other.0[0]), self.0[1].$method(other.0[1])])
            }
        })*
    };
}
operators!(Add add, Sub sub, Mul mul, Div div);
