//! ITU-T G.711: µ-law and A-law, one byte a sample, no state.
//!
//! One sample is encoded by arithmetic without branches, many by a table that the compiler fills with it; decoding is
//! a table too. All can be checked over their whole domain. The direct conversions equal decode-then-encode bit for bit.

/// µ-law for a linear zero; what silence is filled with.
pub const ULAW_SILENCE: u8 = 0xff;
/// A-law for a linear zero; what silence is filled with.
pub const ALAW_SILENCE: u8 = 0xd5;

/// Linear 16-bit sample → µ-law (G.711 table 2a). Truncates to the table's 14 bits towards minus infinity.
#[inline]
pub const fn ulaw_encode_one(sample: i16) -> u8 {
    let sign = (sample >> 15) as i32; // all ones or all zeros
    let magnitude = ((((sample >> 2) as i32) ^ sign) - sign) as u32 + 33;
    let magnitude = if magnitude > 0x1fff { 0x1fff } else { magnitude };
    let segment = 26 - magnitude.leading_zeros(); // 33..=0x1fff has its top bit at 5..=12
    let code = (segment << 4) | ((magnitude >> (segment + 1)) & 0x0f);
    (code as u8 ^ 0x7f) | (!sign as u8 & 0x80)
}

/// µ-law → linear 16-bit sample (G.711 table 2a).
#[inline]
pub const fn ulaw_decode_one(code: u8) -> i16 {
    ULAW_TO_LINEAR[code as usize]
}

/// Linear 16-bit sample → A-law with the even bits inverted (G.711 table 1a; 13 significant bits).
#[inline]
pub const fn alaw_encode_one(sample: i16) -> u8 {
    let negative = (sample >> 15) as u16;
    let magnitude = ((sample as u16 ^ negative) >> 4) as u32;
    let shift = 27 - (magnitude | 16).leading_zeros();
    let code = (shift << 4) + (magnitude >> shift);
    (code as u8 | (!negative as u8 & 0x80)) ^ 0x55
}

/// A-law → linear 16-bit sample (G.711 table 1a).
#[inline]
pub const fn alaw_decode_one(code: u8) -> i16 {
    ALAW_TO_LINEAR[code as usize]
}

/// µ-law → A-law without the linear step.
#[inline]
pub const fn ulaw_to_alaw_one(code: u8) -> u8 {
    ULAW_TO_ALAW[code as usize]
}

/// A-law → µ-law without the linear step.
#[inline]
pub const fn alaw_to_ulaw_one(code: u8) -> u8 {
    ALAW_TO_ULAW[code as usize]
}

const fn ulaw_expand(code: u8) -> i16 {
    let code = !code;
    let magnitude = ((((code & 0x0f) as i16) << 3) + 0x84) << ((code & 0x70) >> 4);
    if code & 0x80 != 0 { 0x84 - magnitude } else { magnitude - 0x84 }
}

const fn alaw_expand(code: u8) -> i16 {
    let code = code ^ 0x55;
    let mantissa = ((code & 0x0f) as i16) << 4;
    let segment = (code & 0x70) >> 4;
    let magnitude = if segment == 0 { mantissa + 8 } else { (mantissa + 0x108) << (segment - 1) };
    if code & 0x80 != 0 { magnitude } else { -magnitude }
}

const fn fill_linear(alaw: bool) -> [i16; 256] {
    let mut table = [0; 256];
    let mut code = 0;
    while code < 256 {
        table[code] = if alaw { alaw_expand(code as u8) } else { ulaw_expand(code as u8) };
        code += 1;
    }
    table
}

const fn fill_direct(from_alaw: bool) -> [u8; 256] {
    let mut table = [0; 256];
    let mut code = 0;
    while code < 256 {
        table[code] = if from_alaw {
            ulaw_encode_one(alaw_expand(code as u8))
        } else {
            alaw_encode_one(ulaw_expand(code as u8))
        };
        code += 1;
    }
    table
}

static ULAW_TO_LINEAR: [i16; 256] = fill_linear(false);
static ALAW_TO_LINEAR: [i16; 256] = fill_linear(true);
pub(crate) static ULAW_TO_ALAW: [u8; 256] = fill_direct(false);
pub(crate) static ALAW_TO_ULAW: [u8; 256] = fill_direct(true);

/// µ-law by the 14 bits that matter.
static LINEAR_TO_ULAW: [u8; 1 << 14] = {
    let mut table = [0; 1 << 14];
    let mut index = 0;
    while index < table.len() {
        table[index] = ulaw_encode_one((index << 2) as u16 as i16);
        index += 1;
    }
    table
};
/// A-law by the 12 bits that matter.
static LINEAR_TO_ALAW: [u8; 1 << 12] = {
    let mut table = [0; 1 << 12];
    let mut index = 0;
    while index < table.len() {
        table[index] = alaw_encode_one((index << 4) as u16 as i16);
        index += 1;
    }
    table
};

fn each<A: Copy, B>(input: &[A], output: &mut [B], step: impl Fn(A) -> B) -> usize {
    for (out, &value) in output.iter_mut().zip(input) {
        *out = step(value);
    }
    input.len().min(output.len())
}

/// Encodes as many samples as both slices hold; returns how many.
pub fn ulaw_encode(linear: &[i16], coded: &mut [u8]) -> usize {
    each(linear, coded, |sample| LINEAR_TO_ULAW[usize::from(sample as u16 >> 2)])
}
/// Decodes as many samples as both slices hold; returns how many.
pub fn ulaw_decode(coded: &[u8], linear: &mut [i16]) -> usize {
    each(coded, linear, ulaw_decode_one)
}
/// Encodes as many samples as both slices hold; returns how many.
pub fn alaw_encode(linear: &[i16], coded: &mut [u8]) -> usize {
    each(linear, coded, |sample| LINEAR_TO_ALAW[usize::from(sample as u16 >> 4)])
}
/// Decodes as many samples as both slices hold; returns how many.
pub fn alaw_decode(coded: &[u8], linear: &mut [i16]) -> usize {
    each(coded, linear, alaw_decode_one)
}
/// Converts as many samples as both slices hold; returns how many.
pub fn ulaw_to_alaw(ulaw: &[u8], alaw: &mut [u8]) -> usize {
    each(ulaw, alaw, ulaw_to_alaw_one)
}
/// Converts as many samples as both slices hold; returns how many.
pub fn alaw_to_ulaw(alaw: &[u8], ulaw: &mut [u8]) -> usize {
    each(alaw, ulaw, alaw_to_ulaw_one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::golden;

    #[test]
    fn g711_every_code_survives_decode_and_encode() {
        for code in 0..=255 {
            // µ-law has two zeros; the negative one comes back as the positive one.
            let expected = if code == 0x7f { 0xff } else { code };
            assert_eq!(ulaw_encode_one(ulaw_decode_one(code)), expected, "µ-law {code:#04x}");
            assert_eq!(alaw_encode_one(alaw_decode_one(code)), code, "A-law {code:#04x}");
        }
    }

    #[test]
    fn g711_tables_1_and_2_known_points() {
        for (linear, ulaw, alaw) in [
            (0, 0xff, 0xd5),
            (-1, 0x7e, 0x55),
            (32767, 0x80, 0xaa),
            (-32768, 0x00, 0x2a),
            (1000, 0xce, 0xfa),
            (-1000, 0x4e, 0x7a),
            (8159, 0x9f, 0x8a),
        ] {
            assert_eq!(ulaw_encode_one(linear), ulaw, "µ-law of {linear}");
            assert_eq!(alaw_encode_one(linear), alaw, "A-law of {linear}");
        }
        assert_eq!(ulaw_decode_one(0x80), 32124);
        assert_eq!(alaw_decode_one(0xaa), 32256);
    }

    #[test]
    fn g711_every_sample_lands_on_its_own_or_the_neighbouring_step() {
        for sample in i16::MIN..=i16::MAX {
            let (u, a) = (ulaw_decode_one(ulaw_encode_one(sample)), alaw_decode_one(alaw_encode_one(sample)));
            let (value, clipped) = (i32::from(sample), i32::from(sample).clamp(-32635, 32635));
            assert!((i32::from(u) - clipped).abs() <= (value.abs() >> 5) + 8, "µ-law {sample} -> {u}");
            assert!((i32::from(a) - value).abs() <= (value.abs() >> 5) + 16, "A-law {sample} -> {a}");
        }
    }

    #[test]
    fn g711_arithmetic_and_table_equal_a_search_of_the_decision_values() {
        // G.711 tables 1 and 2: where each of the 128 intervals of a sign begins, in 14 and 13 bits.
        let intervals = || (0..8).flat_map(|segment| (0..16).map(move |step| (segment, step)));
        let ulaw_decisions: Vec<i32> = intervals().map(|(s, step)| ((32 + 2 * step) << s) - 33).collect();
        let alaw_decisions: Vec<i32> =
            intervals().map(|(s, step)| if s == 0 { step } else { (16 + step) << (s - 1) }).collect();
        let (mut ulaw, mut alaw) = ([0], [0]);
        for sample in i16::MIN..=i16::MAX {
            let magnitude = i32::from(sample >> 2).abs();
            let positive = u8::from(sample >= 0) << 7;
            let passed = ulaw_decisions.iter().skip(1).take_while(|&&d| magnitude >= d).count() as u8;
            let expected = (0x7f - passed) | positive;
            assert_eq!(ulaw_encode_one(sample), expected, "µ-law {sample}");
            ulaw_encode(&[sample], &mut ulaw);
            assert_eq!(ulaw, [expected], "µ-law table {sample}");

            let magnitude = i32::from(sample >> 4) ^ i32::from(sample >> 15);
            let passed = alaw_decisions.iter().skip(1).take_while(|&&d| magnitude >= d).count() as u8;
            let expected = (passed | positive) ^ 0x55;
            assert_eq!(alaw_encode_one(sample), expected, "A-law {sample}");
            alaw_encode(&[sample], &mut alaw);
            assert_eq!(alaw, [expected], "A-law table {sample}");
        }
    }

    #[test]
    fn g711_direct_conversion_equals_the_way_through_linear() {
        for code in 0..=255 {
            assert_eq!(ulaw_to_alaw_one(code), alaw_encode_one(ulaw_decode_one(code)), "{code:#04x}");
            assert_eq!(alaw_to_ulaw_one(code), ulaw_encode_one(alaw_decode_one(code)), "{code:#04x}");
        }
    }

    #[test]
    fn g711_equals_the_golden_files() {
        for name in ["libilbc_sample", "es_en-gb"] {
            let (Some(pcm), Some(ulaw), Some(alaw)) = (
                golden(&format!("{name}.pcm")),
                golden(&format!("{name}.ulaw")),
                golden(&format!("{name}.alaw")),
            ) else {
                return;
            };
            let samples = pcm.chunks_exact(2).map(|b| i16::from_le_bytes([b[0], b[1]]));
            for (index, (sample, (&u, &a))) in samples.zip(ulaw.iter().zip(&alaw)).enumerate() {
                assert_eq!(ulaw_encode_one(sample), u, "{name} sample {index} = {sample}, µ-law");
                assert_eq!(alaw_encode_one(sample), a, "{name} sample {index} = {sample}, A-law");
            }
        }
    }
}
