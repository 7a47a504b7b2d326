//! AVX-512 and AVX2: the types, the way in, and what both share.
//!
//! Soundness: the types below are private to this crate, so other code meets them only as the `L` of a
//! [`Kernel`](crate::Kernel), which only [`Level::run`](crate::Level::run) supplies, for instructions that were found in
//! this CPU. Therefore each of their operations may use those instructions.

#[macro_use]
mod shared;

mod avx2;
mod avx512;
mod transpose;

pub use avx2::Avx2;
pub use avx512::Avx512;

use crate::Kernel;

/// Whether this CPU, and the system on it, have what [`enter_avx512`] is compiled for.
pub fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && has_avx2()
}

/// Whether this CPU, and the system on it, have what [`enter_avx2`] is compiled for.
pub fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

/// Runs a kernel with everything of x86-64-v4.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
pub fn enter_avx512<K: Kernel>(kernel: K) -> K::Out {
    kernel.run::<Avx512>()
}

/// Runs a kernel with everything of x86-64-v3.
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
pub fn enter_avx2<K: Kernel>(kernel: K) -> K::Out {
    kernel.run::<Avx2>()
}
