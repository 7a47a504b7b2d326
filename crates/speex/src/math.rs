//! Functions whose last bit decides a frame, in a form that is the same on every machine and in every lane.

use std::f64::consts::{FRAC_PI_2, PI};

/// Coefficients of the cosine polynomial, constant term first; below pi/2 only.
pub const COS: [f32; 4] = [0.999_993_3, -0.499_912_44, 0.041_487_747, -0.001_271_209_5];
/// Cosine of an angle of 0 to pi, by the reference's polynomial.
#[inline]
pub fn cos(angle: f32) -> f32 {
    let mirrored = angle >= std::f32::consts::FRAC_PI_2;
    let x = if mirrored { (PI - f64::from(angle)) as f32 } else { angle };
    let x = x * x;
    let y = COS[0] + x * (COS[1] + x * (COS[2] + COS[3] * x));
    if mirrored { -y } else { y }
}

/// Numerator of the rational function R of the arc sine, asin(x) = x + x R(x^2) for |x| <= 1/2.
pub const ASIN_P: [f64; 6] = [
    1.666_666_666_666_666_6e-1,
    -3.255_658_186_224_009e-1,
    2.012_125_321_348_629_3e-1,
    -4.005_553_450_067_941e-2,
    7.915_349_942_898_145e-4,
    3.479_331_075_960_212e-5,
];
/// Denominator of R, without its leading one.
pub const ASIN_Q: [f64; 4] =
    [-2.403_394_911_734_414, 2.020_945_760_233_505_7, -6.882_839_716_054_533e-1, 7.703_815_055_590_194e-2];

/// Arc cosine, -1 to 1, within an ulp of double precision: rounded to `f32` it is the reference's `acos`.
///
/// One expression for the whole range, so that lanes compute the same.
#[inline]
pub fn acos(x: f64) -> f64 {
    let inner = x.abs() < 0.5;
    let z = if inner { x * x } else { (1.0 - x.abs()) * 0.5 };
    let s = if inner { x } else { z.sqrt() };
    let [p0, p1, p2, p3, p4, p5] = ASIN_P;
    let [q1, q2, q3, q4] = ASIN_Q;
    let p = z * (p0 + z * (p1 + z * (p2 + z * (p3 + z * (p4 + z * p5)))));
    let q = 1.0 + z * (q1 + z * (q2 + z * (q3 + z * q4)));
    let asin = s + s * (p / q);
    if inner {
        FRAC_PI_2 - asin
    } else if x > 0.0 {
        2.0 * asin
    } else {
        PI - 2.0 * asin
    }
}

/// Excitation gain of each of the 32 codes: exp(code / 3.5).
pub const GAIN: [f32; 32] = [
    1.0,
    1.330_712_2,
    1.770_795,
    2.356_418_4,
    3.135_714_8,
    4.172_734,
    5.552_707_7,
    7.389_056,
    9.832_707,
    13.084_503,
    17.411_709,
    23.169_971,
    30.832_565,
    41.029_27,
    54.598_15,
    72.654_43,
    96.682_13,
    128.656_08,
    171.204_22,
    227.823_55,
    303.167_57,
    403.428_8,
    536.847_6,
    714.389_65,
    950.647_03,
    1_265.037_6,
    1_683.401,
    2_240.122_3,
    2_980.958,
    3_966.797,
    5_278.665_5,
    7_024.384_3,
];

/// Smallest gain coded as 1, 2, .. 31: where floor(0.5 + 3.5 ln gain) steps.
#[expect(clippy::approx_constant, reason = "one is the float above e")]
pub const GAIN_STEP: [f32; 31] = [
    1.153_565,
    1.535_063,
    2.042_727_2,
    2.718_282,
    3.617_251,
    4.813_52,
    6.405_41,
    8.523_757,
    11.342_668,
    15.093_825,
    20.085_537,
    26.728_07,
    35.567_368,
    47.329_933,
    62.982_517,
    83.811_61,
    111.529_12,
    148.413_16,
    197.495_21,
    262.809_3,
    349.723_5,
    465.381_35,
    619.288_64,
    824.095,
    1_096.633_2,
    1_459.303_2,
    1_941.912_5,
    2_584.126_7,
    3_438.729,
    4_575.958_5,
    6_089.283_7,
];

/// Code of an excitation gain, 0 to 31.
#[inline]
pub fn gain_code(gain: f32) -> usize {
    GAIN_STEP.iter().filter(|step| gain >= **step).count()
}

/// Root mean square with the reference's floor of 0.1 under the mean.
#[inline]
pub fn rms(signal: &[f32]) -> f32 {
    let sum = signal.iter().fold(0.0f32, |sum, x| sum + x * x);
    (0.1 + f64::from(sum / signal.len() as f32)).sqrt() as f32
}

/// Inner product in the order of four-wide SSE, which decides its last bits. Lengths are multiples of four.
#[inline]
pub fn inner_product(a: &[f32], b: &[f32]) -> f32 {
    let mut part = [0.0f32; 4];
    for (a, b) in a.as_chunks::<4>().0.iter().zip(b.as_chunks::<4>().0) {
        for lane in 0..4 {
            part[lane] += a[lane] * b[lane];
        }
    }
    (part[0] + part[2]) + (part[1] + part[3])
}

/// The reference's random numbers: uniform, of the given standard deviation.
#[inline]
pub fn random(deviation: f32, seed: &mut u32) -> f32 {
    *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    let unit = f32::from_bits(0x3f80_0000 | (0x007f_ffff & *seed));
    (3.4642 * f64::from(deviation) * f64::from((f64::from(unit) - 1.5) as f32)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acos_rounds_as_the_library_function_does() {
        let mut differing = 0;
        for n in 0..2_000_000u32 {
            let x = ((f64::from(n) * 1e-6) - 1.0) as f32;
            differing += u32::from(acos(f64::from(x)) as f32 != f64::from(x).acos() as f32);
        }
        assert_eq!(differing, 0);
    }

    #[test]
    fn gains_and_their_steps_are_those_of_exp_and_log() {
        for (code, gain) in GAIN.iter().enumerate() {
            assert_eq!(*gain, (code as f64 / 3.5).exp() as f32, "code {code}");
        }
        for (code, step) in GAIN_STEP.iter().enumerate() {
            let formula = |gain: f32| (0.5 + 3.5 * f64::from(gain).ln()).floor() as usize;
            assert_eq!(formula(*step), code + 1);
            assert_eq!(formula(step.next_down()), code);
            assert_eq!(gain_code(*step), code + 1);
            assert_eq!(gain_code(step.next_down()), code);
        }
    }

    #[test]
    fn the_cosine_stays_within_its_polynomial_error() {
        for n in 0..=3141 {
            let angle = n as f32 / 1000.0;
            assert!((cos(angle) - angle.cos()).abs() < 2e-4, "{angle}");
        }
    }
}
