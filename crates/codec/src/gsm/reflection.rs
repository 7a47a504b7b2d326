//! Log-area ratios and reflection coefficients: what encoder and decoder both derive from the coded LARs.

use super::FRAME_SAMPLES;
use super::math::mult_r;

/// Reflection coefficients of one stretch of a frame.
pub type Coefficients = [i16; 8];

/// One row a coefficient: offset B doubled, smallest code MIC, inverse slope INVA (tables 4.1 and 4.2).
pub const DEQUANTISE: [(i16, i16, i16); 8] = [
    (0, -32, 13107),
    (0, -32, 13107),
    (4096, -16, 13107),
    (-5120, -16, 13107),
    (188, -8, 19223),
    (-3584, -8, 17476),
    (-682, -4, 31454),
    (-2288, -4, 29708),
];

/// Where the four interpolated filters of a frame hold (table 3.2).
pub const STRETCHES: [core::ops::Range<usize>; 4] = [0..13, 13..27, 27..40, 40..FRAME_SAMPLES];

/// Decodes the coded log-area ratios (§4.2.8).
pub fn dequantise(codes: &[u8; 8]) -> [i16; 8] {
    let mut lar = [0; 8];
    for ((out, &code), (offset, smallest, inverse)) in lar.iter_mut().zip(codes).zip(DEQUANTISE) {
        let value = ((i16::from(code) + smallest) << 10).saturating_sub(offset);
        let value = mult_r(inverse, value);
        *out = value.saturating_add(value);
    }
    lar
}

/// The filters of the four stretches: interpolated with the previous frame's LARs (§4.2.9.1), as reflection
/// coefficients (§4.2.9.2).
pub fn interpolate(previous: &[i16; 8], current: &[i16; 8]) -> [Coefficients; 4] {
    let mut filters = [[0; 8]; 4];
    for (i, (&old, &new)) in previous.iter().zip(current).enumerate() {
        let quarters = (old >> 2).saturating_add(new >> 2);
        filters[0][i] = to_reflection(quarters.saturating_add(old >> 1));
        filters[1][i] = to_reflection((old >> 1).saturating_add(new >> 1));
        filters[2][i] = to_reflection(quarters.saturating_add(new >> 1));
        filters[3][i] = to_reflection(new);
    }
    filters
}

fn to_reflection(lar: i16) -> i16 {
    let magnitude = lar.saturating_abs();
    let value = match magnitude {
        ..11059 => magnitude << 1,
        11059..20070 => magnitude + 11059,
        _ => (magnitude >> 2).saturating_add(26112),
    };
    if lar < 0 { -value } else { value }
}
