//! G.722 of many streams at once, one in each 32-bit lane; the same bits as [`Encoder`] and [`Decoder`] alone.
//!
//! Equal steps for all lanes: what is a branch in the plain form is a mask here. Where the plain form limits what cannot
//! be reached from the initial state, this one does not.

use lanes::{I32Lanes, Integer, Lanes, Level, Number, Vector};

use super::{Band, Decoder, Encoder, ILB, Q2, Q6, QM2, QM4, QM6, QMF, WH, WL};
use crate::pairs::{self, BLOCK, Coders, Decodes, Encodes, Stream};

/// Pairs of samples that the filter looks back, and the one it works on.
const TAPS: usize = 12;
/// Numbers in the state of a band.
const BAND: usize = 22;
/// Numbers in the state of an encoder or decoder.
const MEMORY: usize = 2 * BAND + 2 * TAPS;

/// One packet of one stream to encode, at 16 kHz.
pub type EncodeJob<'a> = pairs::EncodeJob<'a, Encoder>;
/// One packet of one stream to decode, at 16 kHz.
pub type DecodeJob<'a> = pairs::DecodeJob<'a, Decoder>;

/// Encodes each job as [`Encoder::encode`] would. Any number of jobs, each of another stream.
///
/// Neighbours of equal length share a group. Should it panic, every job is either done or untouched.
pub fn encode(level: Level, jobs: &mut [EncodeJob<'_>]) {
    pairs::run(level, jobs);
}

/// Decodes each job as [`Decoder::decode`] would. Any number of jobs, each of another stream.
///
/// Neighbours of equal length share a group. Should it panic, every job is either done or untouched.
pub fn decode(level: Level, jobs: &mut [DecodeJob<'_>]) {
    pairs::run(level, jobs);
}

impl Stream<MEMORY> for Encoder {
    type Coders<L: Lanes> = Both<L::I32>;

    fn memory(&self) -> [i32; MEMORY] {
        memory(&self.low, &self.high, &self.x)
    }
    fn recall(&mut self, memory: &[i32; MEMORY]) {
        recall(&mut self.low, &mut self.high, &mut self.x, memory);
    }
}
impl Encodes<MEMORY> for Encoder {
    fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> usize {
        self.encode(pcm, out)
    }
}
impl Stream<MEMORY> for Decoder {
    type Coders<L: Lanes> = Both<L::I32>;

    fn memory(&self) -> [i32; MEMORY] {
        memory(&self.low, &self.high, &self.x)
    }
    fn recall(&mut self, memory: &[i32; MEMORY]) {
        recall(&mut self.low, &mut self.high, &mut self.x, memory);
    }
}
impl Decodes<MEMORY> for Decoder {
    fn decode(&mut self, payload: &[u8], pcm: &mut [i16]) -> usize {
        self.decode(payload, pcm)
    }
}

impl Band {
    fn memory(&self) -> [i32; BAND] {
        let Self { nb, det, s, sz, r, p, a, b, d } = self;
        let mut memory = [0; BAND];
        let parts: [&[i32]; 9] = [&[*nb], &[*det], &[*s], &[*sz], r, p, a, b, d];
        for (slot, number) in memory.iter_mut().zip(parts.into_iter().flatten()) {
            *slot = *number;
        }
        memory
    }
    fn recall(&mut self, memory: &[i32; BAND]) {
        let [nb, det, s, sz, r0, r1, p0, p1, a0, a1, rest @ ..] = *memory;
        let [b0, b1, b2, b3, b4, b5, d0, d1, d2, d3, d4, d5] = rest;
        *self = Self {
            nb,
            det,
            s,
            sz,
            r: [r0, r1],
            p: [p0, p1],
            a: [a0, a1],
            b: [b0, b1, b2, b3, b4, b5],
            d: [d0, d1, d2, d3, d4, d5],
        };
    }
}

/// The state of a stream as numbers in a row.
fn memory(low: &Band, high: &Band, x: &[i32; 2 * TAPS]) -> [i32; MEMORY] {
    let mut memory = [0; MEMORY];
    memory[..BAND].copy_from_slice(&low.memory());
    memory[BAND..2 * BAND].copy_from_slice(&high.memory());
    memory[2 * BAND..].copy_from_slice(x);
    memory
}

/// The inverse of [`memory`].
fn recall(low: &mut Band, high: &mut Band, x: &mut [i32; 2 * TAPS], memory: &[i32; MEMORY]) {
    if let Some((first, rest)) = memory.split_first_chunk()
        && let Some((second, rest)) = rest.split_first_chunk()
    {
        low.recall(first);
        high.recall(second);
        x.copy_from_slice(rest);
    }
}

/// A band of each lane; names as in [`Band`].
struct Bands<V> {
    nb: V,
    det: V,
    s: V,
    sz: V,
    r: [V; 2],
    p: [V; 2],
    a: [V; 2],
    b: [V; 6],
    d: [V; 6],
}

#[inline(always)]
fn saturate<V: I32Lanes>(value: V) -> V {
    value.clamp(V::splat(-32768), V::splat(32767))
}

/// `value` where `sign` is 0, its negative where it is -1.
#[inline(always)]
fn signed<V: I32Lanes>(value: V, sign: V) -> V {
    (value ^ sign) - sign
}

impl<V: I32Lanes> Bands<V> {
    #[inline(always)]
    fn new(rows: &[V]) -> Self {
        Self {
            nb: rows[0],
            det: rows[1],
            s: rows[2],
            sz: rows[3],
            r: [rows[4], rows[5]],
            p: [rows[6], rows[7]],
            a: [rows[8], rows[9]],
            b: [rows[10], rows[11], rows[12], rows[13], rows[14], rows[15]],
            d: [rows[16], rows[17], rows[18], rows[19], rows[20], rows[21]],
        }
    }

    #[inline(always)]
    fn save(&self, rows: &mut [V]) {
        (rows[0], rows[1], rows[2], rows[3]) = (self.nb, self.det, self.s, self.sz);
        rows[4..6].copy_from_slice(&self.r);
        rows[6..8].copy_from_slice(&self.p);
        rows[8..10].copy_from_slice(&self.a);
        rows[10..16].copy_from_slice(&self.b);
        rows[16..22].copy_from_slice(&self.d);
    }

    /// LOGSCL and SCALEL, or LOGSCH and SCALEH.
    #[inline(always)]
    fn scale(&mut self, step: V, limit: i32, shift: i32) {
        let nb = ((self.nb.shl(7) - self.nb).shr(7) + step).clamp(V::splat(0), V::splat(limit));
        let mantissa = V::lookup(&ILB, nb.shr(6) & V::splat(31));
        // One place further to the left, so that no count is negative.
        let count = V::splat(shift + 1) - nb.shr(11);
        self.det = mantissa.shl(1).shr_each(count).shl(2);
        self.nb = nb;
    }

    /// Block 4.
    #[inline(always)]
    fn predict(&mut self, d: V) {
        let zero = V::splat(0);
        let r = saturate(self.s + d);
        let p = saturate(self.sz + d);
        let [a1, a2] = self.a;
        let (differs1, differs2) = ((p ^ self.p[0]).shr(31), (p ^ self.p[1]).shr(31));

        // UPPOL2: the negative of the smallest is one less than it should be, hence the limit.
        let four_a1 = saturate(a1.shl(2));
        let towards = signed(four_a1, !differs1).min(V::splat(32767));
        let a2 = towards.shr(7) + signed(V::splat(128), differs2) + (a2 * V::splat(32512)).shr(15);
        let a2 = a2.clamp(V::splat(-12288), V::splat(12288));
        // UPPOL1
        let limit = V::splat(15360) - a2;
        let a1 = signed(V::splat(192), differs1) + (a1 * V::splat(32640)).shr(15);
        let a1 = a1.clamp(zero - limit, limit);
        // UPZERO, DELAYA, FILTEZ
        let step = V::select(d.eq(zero), zero, V::splat(128));
        let [d0, d1, d2, d3, d4, d5] = self.d;
        let mut sz = zero;
        let past = [d0, d1, d2, d3, d4, d5];
        let next = [d, d0, d1, d2, d3, d4];
        let mut tap = 0;
        while tap < 6 {
            let towards = signed(step, (d ^ past[tap]).shr(31));
            let b = towards + (self.b[tap] * V::splat(32640)).shr(15);
            self.b[tap] = b;
            // Differences never reach half of the range: twice one needs no limit.
            sz += (b * next[tap]).shr(14);
            tap += 1;
        }
        self.d = next;
        self.r = [r, self.r[0]];
        self.p = [p, self.p[0]];
        self.a = [a1, a2];
        // FILTEP, PREDIC
        let first = (a1 * saturate(r + r)).shr(15);
        let second = (a2 * saturate(self.r[1] + self.r[1])).shr(15);
        self.sz = saturate(sz);
        self.s = saturate(saturate(first + second) + self.sz);
    }

    /// As [`Band::adapt_low`], by the upper four bits of the code.
    #[inline(always)]
    fn adapt_low(&mut self, code: V) {
        let d = (self.det * V::lookup(&QM4, code)).shr(15);
        self.scale(V::lookup(&WL, code), 18432, 8);
        self.predict(d);
    }

    /// As [`Band::adapt_high`], by the code.
    #[inline(always)]
    fn adapt_high(&mut self, code: V) -> V {
        let d = (self.det * V::lookup(&QM2, code)).shr(15);
        self.scale(V::lookup(&WH, code), 22528, 10);
        self.predict(d);
        d
    }

    /// As [`Encoder::encode_low`].
    #[inline(always)]
    fn encode_low(&mut self, x: V) -> V {
        let error = saturate(x - self.s);
        let sign = error.shr(31);
        // `magnitude >= level * det >> 12` without the shift.
        let bound = ((error ^ sign) + V::splat(1)).shl(12);
        let mut level = V::splat(1);
        let mut index = 1;
        while index < Q6.len() {
            level -= V::from_mask(bound.gt(V::splat(Q6[index]) * self.det));
            index += 1;
        }
        // Codes fall as levels rise, the two smallest negative ones apart at the end.
        let small = sign & V::from_mask(V::splat(3).gt(level)) & V::splat(30);
        let code = V::splat(62) + (sign & V::splat(-28)) - level + small;
        self.adapt_low(code.shr(2));
        code
    }

    /// As [`Encoder::encode_high`].
    #[inline(always)]
    fn encode_high(&mut self, x: V) -> V {
        let error = saturate(x - self.s);
        let sign = error.shr(31);
        let outer = V::from_mask((error ^ sign).ge((V::splat(Q2) * self.det).shr(12)));
        // 3 positive inner, 2 positive outer, 1 negative inner, 0 negative outer.
        let code = V::splat(3) + outer + (sign & V::splat(-2));
        self.adapt_high(code);
        code
    }
}

/// The filter's memory of a block, samples of even and odd number apart.
pub struct Window<V> {
    even: [V; TAPS - 1 + BLOCK],
    odd: [V; TAPS - 1 + BLOCK],
}

impl<V: I32Lanes> Window<V> {
    #[inline(always)]
    fn new(past: &[V]) -> Self {
        let zero = V::splat(0);
        let mut window = Self { even: [zero; TAPS - 1 + BLOCK], odd: [zero; TAPS - 1 + BLOCK] };
        // The oldest pair is shifted out by the first one that comes.
        let mut index = 0;
        while index < TAPS - 1 {
            window.even[index] = past[2 * index + 2];
            window.odd[index] = past[2 * index + 3];
            index += 1;
        }
        window
    }

    /// The earliest pair that the filter sees at a place in the block, and that it sees there for the last time.
    #[inline(always)]
    const fn first(&self, at: usize) -> [V; 2] {
        [self.even[at], self.odd[at]]
    }

    /// Takes the pair of a place in the block; returns the filter's two sums.
    #[inline(always)]
    fn push(&mut self, at: usize, first: V, second: V) -> [V; 2] {
        self.even[at + TAPS - 1] = first;
        self.odd[at + TAPS - 1] = second;
        let even = &self.even[at..at + TAPS];
        let odd = &self.odd[at..at + TAPS];
        let [mut from_even, mut from_odd] = [V::splat(0); 2];
        let mut tap = 0;
        while tap < TAPS {
            from_even += even[tap] * V::splat(QMF[tap]);
            from_odd += odd[tap] * V::splat(QMF[TAPS - 1 - tap]);
            tap += 1;
        }
        [from_even, from_odd]
    }

    /// Moves the last pairs of a block of `count` to the front.
    #[inline(always)]
    fn slide(&mut self, count: usize) {
        self.even.copy_within(count..count + TAPS - 1, 0);
        self.odd.copy_within(count..count + TAPS - 1, 0);
    }

    /// The memory after a block that [`slide`](Self::slide) ended, `oldest` the pair before it.
    #[inline(always)]
    fn save(&self, oldest: [V; 2], past: &mut [V]) {
        past[..2].copy_from_slice(&oldest);
        let mut index = 0;
        while index < TAPS - 1 {
            past[2 * index + 2] = self.even[index];
            past[2 * index + 3] = self.odd[index];
            index += 1;
        }
    }
}

/// Both bands of each lane, and the pair of samples that left the filter last.
pub struct Both<V> {
    low: Bands<V>,
    high: Bands<V>,
    oldest: [V; 2],
}

impl<L: Lanes> Coders<L> for Both<L::I32> {
    type Window = Window<L::I32>;

    #[inline(always)]
    fn load(rows: &[L::I32]) -> (Self, Self::Window) {
        let past = &rows[2 * BAND..];
        let (low, high) = (Bands::new(&rows[..BAND]), Bands::new(&rows[BAND..2 * BAND]));
        (Self { low, high, oldest: [past[0], past[1]] }, Window::new(past))
    }
    #[inline(always)]
    fn save(&self, window: &Self::Window, rows: &mut [L::I32]) {
        self.low.save(&mut rows[..BAND]);
        self.high.save(&mut rows[BAND..2 * BAND]);
        window.save(self.oldest, &mut rows[2 * BAND..]);
    }
    #[inline(always)]
    fn encode(&mut self, window: &mut Self::Window, number: usize, [first, second]: [L::I32; 2]) -> L::I32 {
        self.oldest = window.first(number);
        let [from_even, from_odd] = window.push(number, first, second);
        let low = self.low.encode_low((from_odd + from_even).shr(14));
        let high = self.high.encode_high((from_odd - from_even).shr(14));
        high.shl(6) | low
    }
    #[inline(always)]
    fn decode(&mut self, window: &mut Self::Window, number: usize, byte: L::I32) -> [L::I32; 2] {
        let (bottom, top) = (L::I32::splat(-16384), L::I32::splat(16383));
        let code = byte & L::I32::splat(63);
        let difference = (self.low.det * L::I32::lookup(&QM6, code)).shr(15);
        let low = (self.low.s + difference).clamp(bottom, top);
        self.low.adapt_low(code.shr(2));
        let predicted = self.high.s;
        let high = (predicted + self.high.adapt_high(byte.shr(6))).clamp(bottom, top);
        self.oldest = window.first(number);
        let [second, first] = window.push(number, low + high, low - high);
        [saturate(first.shr(11)), saturate(second.shr(11))]
    }
    #[inline(always)]
    fn end_block(window: &mut Self::Window, count: usize) {
        window.slide(count);
    }
}
