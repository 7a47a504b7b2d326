//! G.726 of many streams at once, one in each 32-bit lane; the same bits as [`Encoder`] and [`Decoder`] alone.
//!
//! Equal steps for all lanes: what is a branch in the plain form is a mask here.

use lanes::{F32Lanes, I32Lanes, Integer, Lanes, Level, Vector};

use super::{Core, DQLN, Decoder, Encoder, FI, Float, LEVELS, Packing, TONE, WI};
use crate::pairs::{self, Coders, Decodes, Encodes, Stream};

/// Numbers in the state of a [`Core`].
const CORE: usize = 40;
/// Numbers in the state of an encoder or decoder, the last of which says its packing.
const MEMORY: usize = CORE + 1;

/// One packet of one stream to encode, at 8 kHz.
pub type EncodeJob<'a> = pairs::EncodeJob<'a, Encoder>;
/// One packet of one stream to decode, at 8 kHz.
pub type DecodeJob<'a> = pairs::DecodeJob<'a, Decoder>;

/// Encodes each job as [`Encoder::encode`] would. Any number of jobs, each of another stream, of either packing.
///
/// Neighbours of equal length share a group. Should it panic, every job is either done or untouched.
pub fn encode(level: Level, jobs: &mut [EncodeJob<'_>]) {
    pairs::run(level, jobs);
}

/// Decodes each job as [`Decoder::decode`] would. Any number of jobs, each of another stream, of either packing.
///
/// Neighbours of equal length share a group. Should it panic, every job is either done or untouched.
pub fn decode(level: Level, jobs: &mut [DecodeJob<'_>]) {
    pairs::run(level, jobs);
}

impl Stream<MEMORY> for Encoder {
    type Coders<L: Lanes> = Packed<L::I32>;

    fn memory(&self) -> [i32; MEMORY] {
        memory(&self.core, self.packing)
    }
    fn recall(&mut self, memory: &[i32; MEMORY]) {
        self.core = Core::recall(memory);
    }
}
impl Encodes<MEMORY> for Encoder {
    fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> usize {
        self.encode(pcm, out)
    }
}
impl Stream<MEMORY> for Decoder {
    type Coders<L: Lanes> = Packed<L::I32>;

    fn memory(&self) -> [i32; MEMORY] {
        memory(&self.core, self.packing)
    }
    fn recall(&mut self, memory: &[i32; MEMORY]) {
        self.core = Core::recall(memory);
    }
}
impl Decodes<MEMORY> for Decoder {
    fn decode(&mut self, payload: &[u8], pcm: &mut [i16]) -> usize {
        self.decode(payload, pcm)
    }
}

/// The state of a stream as numbers in a row; the last is -1 where the earlier code is in the upper half of a byte.
fn memory(core: &Core, packing: Packing) -> [i32; MEMORY] {
    let mut memory = core.memory();
    memory[CORE] = -i32::from(packing == Packing::Aal2);
    memory
}

impl Core {
    fn memory(&self) -> [i32; MEMORY] {
        let Self { b, dq, a, sr, pk, dms, dml, ap, yu, yl, td } = self;
        let mut memory = [0; MEMORY];
        let parts: [&[i32]; 9] = [b, a, pk, &[*dms], &[*dml], &[*ap], &[*yu], &[*yl], &[*td]];
        for (slot, number) in memory.iter_mut().zip(parts.into_iter().flatten()) {
            *slot = *number;
        }
        let floats = dq.iter().chain(sr).flat_map(|f| [f.exponent, f.mantissa, f.sign]);
        for (slot, number) in memory[16..].iter_mut().zip(floats) {
            *slot = number;
        }
        memory
    }
    fn recall(memory: &[i32; MEMORY]) -> Self {
        let [b0, b1, b2, b3, b4, b5, a0, a1, pk0, pk1, dms, dml, ap, yu, yl, td, floats @ ..] = *memory;
        let float = |index: usize| match floats.as_chunks::<3>().0.get(index) {
            Some(&[exponent, mantissa, sign]) => Float { exponent, mantissa, sign },
            None => Float::ZERO,
        };
        Self {
            b: [b0, b1, b2, b3, b4, b5],
            dq: core::array::from_fn(float),
            a: [a0, a1],
            sr: [float(6), float(7)],
            pk: [pk0, pk1],
            dms,
            dml,
            ap,
            yu,
            yl,
            td,
        }
    }
}

/// As [`Float`].
#[derive(Clone, Copy)]
struct Floats<V> {
    exponent: V,
    mantissa: V,
    sign: V,
}

/// `value` where `sign` is 0, its negative where it is -1.
#[inline(always)]
fn signed<V: I32Lanes>(value: V, sign: V) -> V {
    (value ^ sign) - sign
}

impl<V: I32Lanes<F32 = F>, F: F32Lanes<I32 = V>> Floats<V> {
    /// As [`Float::new`]: the conversion to `f32`, exact for so few bits, normalises.
    #[inline(always)]
    fn new(magnitude: V, sign: V) -> Self {
        let bits = magnitude.to_f32().to_bits();
        let exponent = (bits.shr(23) - V::splat(126)).max(V::splat(0));
        let mantissa = V::splat(32) | (bits.shr(18) & V::splat(31));
        Self { exponent, mantissa, sign }
    }

    #[inline(always)]
    fn times(self, coefficient: V) -> V {
        let sign = coefficient.shr(31);
        let an = Self::new(signed(coefficient.shr(2), sign), sign);
        let mantissa = (self.mantissa * an.mantissa + V::splat(48)).shr(4);
        let count = V::splat(28) - self.exponent - an.exponent;
        let magnitude = mantissa.shl(9).shr_each(count) & V::splat(0x7fff);
        signed(magnitude, self.sign ^ sign)
    }
}

/// As [`Core`], of each lane.
struct Cores<V> {
    b: [V; 6],
    dq: [Floats<V>; 6],
    a: [V; 2],
    sr: [Floats<V>; 2],
    pk: [V; 2],
    dms: V,
    dml: V,
    ap: V,
    yu: V,
    yl: V,
    td: V,
}

/// As [`super::Estimate`].
struct Estimates<V> {
    se: V,
    sez: V,
    y: V,
}

impl<V: I32Lanes<F32 = F>, F: F32Lanes<I32 = V>> Cores<V> {
    #[inline(always)]
    fn new(rows: &[V]) -> Self {
        let zero = V::splat(0);
        let mut floats = [Floats { exponent: zero, mantissa: zero, sign: zero }; 8];
        let mut index = 0;
        while index < 8 {
            let at = 16 + 3 * index;
            floats[index] = Floats { exponent: rows[at], mantissa: rows[at + 1], sign: rows[at + 2] };
            index += 1;
        }
        Self {
            b: [rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]],
            dq: [floats[0], floats[1], floats[2], floats[3], floats[4], floats[5]],
            a: [rows[6], rows[7]],
            sr: [floats[6], floats[7]],
            pk: [rows[8], rows[9]],
            dms: rows[10],
            dml: rows[11],
            ap: rows[12],
            yu: rows[13],
            yl: rows[14],
            td: rows[15],
        }
    }

    #[inline(always)]
    fn save(&self, rows: &mut [V]) {
        rows[..6].copy_from_slice(&self.b);
        rows[6..8].copy_from_slice(&self.a);
        rows[8..10].copy_from_slice(&self.pk);
        rows[10..16].copy_from_slice(&[self.dms, self.dml, self.ap, self.yu, self.yl, self.td]);
        let mut index = 0;
        while index < 8 {
            let float = if index < 6 { self.dq[index] } else { self.sr[index - 6] };
            let at = 16 + 3 * index;
            (rows[at], rows[at + 1], rows[at + 2]) = (float.exponent, float.mantissa, float.sign);
            index += 1;
        }
    }

    #[inline(always)]
    fn estimate(&self) -> Estimates<V> {
        let mut sezi = V::splat(0);
        let mut tap = 0;
        while tap < 6 {
            sezi += self.dq[tap].times(self.b[tap]);
            tap += 1;
        }
        let sei = sezi + self.sr[0].times(self.a[0]) + self.sr[1].times(self.a[1]);
        let al = self.ap.shr(2).min(V::splat(64));
        let slow = self.yl.shr(6);
        let difference = self.yu - slow;
        let sign = difference.shr(31);
        let y = slow + signed((signed(difference, sign) * al).shr(6), sign);
        // Sixteen bits with their sign, halved.
        Estimates { se: sei.shl(16).shr(17), sez: sezi.shl(16).shr(17), y }
    }

    /// As [`Core::adapt`], the code as its sign (-1 or 0) and magnitude.
    #[inline(always)]
    fn adapt(&mut self, sign: V, size: V, estimates: &Estimates<V>) -> V {
        let &Estimates { se, sez, y } = estimates;
        let zero = V::splat(0);
        let dql = V::lookup(&DQLN, size) + y.shr(2);
        let mantissa = ((dql & V::splat(127)) + V::splat(128)).shl(7);
        let dqmag = dql.shr(31).and_not(mantissa.shr_each(V::splat(14) - dql.shr(7)));
        let dq = signed(dqmag, sign);
        // TRANS
        let exponent = self.yl.shr(15);
        let fraction = V::splat(32) + (self.yl.shr(10) & V::splat(31));
        let threshold = fraction.shl_each(exponent);
        let threshold = V::select(exponent.gt(V::splat(9)), V::splat(31 << 10), threshold);
        let threshold = (threshold + threshold.shr(1)).shr(1);
        let tone = self.td.gt(zero);
        let transition = V::from_mask(dqmag.gt(threshold) & tone);

        let sr = dq + se;
        let partial = dq + sez;
        let pk0 = partial.shr(31);
        self.poles(pk0, V::from_mask(partial.eq(zero)), transition);
        self.zeros(dqmag, sign, transition);
        let td = transition.and_not(V::from_mask(V::splat(TONE).gt(self.a[1]))) & V::splat(1);
        self.td = td;
        self.scale(size, y, transition);

        let [q0, q1, q2, q3, q4, _] = self.dq;
        self.dq = [Floats::new(dqmag, sign), q0, q1, q2, q3, q4];
        let sr_sign = sr.shr(31);
        self.sr = [Floats::new(signed(sr, sr_sign), sr_sign), self.sr[0]];
        self.pk = [pk0, self.pk[0]];
        sr
    }

    #[inline(always)]
    fn poles(&mut self, pk0: V, still: V, transition: V) {
        let [a1, a2] = self.a;
        let (differs1, differs2) = (pk0 ^ self.pk[0], pk0 ^ self.pk[1]);
        let fa = a1.clamp(V::splat(-8191), V::splat(8191)).shl(2);
        let up2 = (signed(V::splat(16384), differs2) + signed(fa, !differs1)).shr(7);
        let up1 = signed(V::splat(192), differs1);
        let a2 = a2 + still.and_not(up2) - a2.shr(7);
        let a2 = a2.clamp(V::splat(-12288), V::splat(12288));
        let limit = V::splat(15360) - a2;
        let a1 = (a1 + still.and_not(up1) - a1.shr(8)).clamp(V::splat(0) - limit, limit);
        self.a = [transition.and_not(a1), transition.and_not(a2)];
    }

    #[inline(always)]
    fn zeros(&mut self, dqmag: V, sign: V, transition: V) {
        let step = V::select(dqmag.eq(V::splat(0)), V::splat(0), V::splat(128));
        let mut tap = 0;
        while tap < 6 {
            let b = self.b[tap];
            let b = b + signed(step, sign ^ self.dq[tap].sign) - b.shr(8);
            self.b[tap] = transition.and_not(b.shl(16).shr(16));
            tap += 1;
        }
    }

    #[inline(always)]
    fn scale(&mut self, size: V, y: V, transition: V) {
        let weight = V::lookup(&FI, size);
        self.dms = self.dms + (weight.shl(9) - self.dms).shr(5);
        self.dml = self.dml + (weight.shl(11) - self.dml).shr(7);
        let unsteady = (self.dms.shl(2) - self.dml).abs().ge(self.dml.shr(3));
        let fast = unsteady | V::splat(1536).gt(y) | self.td.gt(V::splat(0));
        let target = V::from_mask(fast) & V::splat(1 << 9);
        let ap = self.ap + (target - self.ap).shr(4);
        self.ap = transition.and_not(ap) | (transition & V::splat(256));
        let yu = y + (V::lookup(&WI, size).shl(5) - y).shr(5);
        self.yu = yu.clamp(V::splat(544), V::splat(5120));
        self.yl = self.yl + self.yu + (V::splat(0) - self.yl).shr(6);
    }

    /// As [`Encoder::encode_one`].
    #[inline(always)]
    fn encode(&mut self, sample: V) -> V {
        let estimates = self.estimate();
        let d = sample.shr(2) - estimates.se;
        let sign = d.shr(31);
        let magnitude = signed(d, sign);
        let bits = magnitude.to_f32().to_bits();
        // Exponent and mantissa of the float are the logarithm; nothing has none.
        let dl = (bits.shr(16) - V::splat(127 << 7)).max(V::splat(0));
        let dln = dl - estimates.y.shr(2);
        let mut size = V::splat(0);
        let mut index = 0;
        while index < LEVELS.len() {
            size -= V::from_mask(dln.ge(V::splat(LEVELS[index])));
            index += 1;
        }
        let negative = sign | V::from_mask(size.eq(V::splat(0)));
        self.adapt(negative, size, &estimates);
        // Negative codes are the complements.
        (size ^ negative) & V::splat(15)
    }

    /// As [`Decoder::decode_one`].
    #[inline(always)]
    fn decode(&mut self, code: V) -> V {
        let estimates = self.estimate();
        let sign = V::splat(0) - code.shr(3);
        let size = (code ^ sign) & V::splat(7);
        let sr = self.adapt(sign, size, &estimates);
        sr.clamp(V::splat(-8192), V::splat(8191)).shl(2)
    }
}

/// The cores of all lanes, and how they pack their codes.
pub struct Packed<V> {
    cores: Cores<V>,
    /// All bits set in lanes whose earlier code is in the upper half of a byte.
    upper_first: V,
}

impl<L: Lanes> Coders<L> for Packed<L::I32> {
    type Window = ();

    #[inline(always)]
    fn load(rows: &[L::I32]) -> (Self, ()) {
        (Self { cores: Cores::new(rows), upper_first: rows[CORE] }, ())
    }
    #[inline(always)]
    fn save(&self, (): &(), rows: &mut [L::I32]) {
        self.cores.save(rows);
    }
    #[inline(always)]
    fn encode(&mut self, (): &mut (), _: usize, [first, second]: [L::I32; 2]) -> L::I32 {
        let first = self.cores.encode(first);
        let second = self.cores.encode(second);
        let [low, high] = self.in_order([first, second]);
        low | high.shl(4)
    }
    #[inline(always)]
    fn decode(&mut self, (): &mut (), _: usize, byte: L::I32) -> [L::I32; 2] {
        let [first, second] = self.in_order([byte & L::I32::splat(15), byte.shr(4)]);
        [self.cores.decode(first), self.cores.decode(second)]
    }
    #[inline(always)]
    fn end_block((): &mut (), _: usize) {}
}

impl<V: I32Lanes> Packed<V> {
    /// Codes in the order of time ↔ codes from the lower half of a byte on.
    #[inline(always)]
    fn in_order(&self, [a, b]: [V; 2]) -> [V; 2] {
        let upper = self.upper_first;
        [upper.and_not(a) | (upper & b), upper.and_not(b) | (upper & a)]
    }
}
