//! Every operation of every level this CPU has against its plain meaning, on edge values and on random ones.

use kit::Random;
use lanes::{F32Lanes, F64Lanes, I16Lanes, I32Lanes, Integer, Kernel, Lanes, Level, Mask, Number, Vector};

/// Elements of a trial: a whole number of vectors on every level.
const COUNT: usize = 64;
const TRIALS: u64 = 300;

/// Operands: the edges of each kind of number, and any.
struct Operands(Random);

impl Operands {
    fn pick<T: Copy>(&mut self, edges: &[T], random: impl Fn(u64) -> T) -> T {
        let bits = self.0.bits();
        if bits.is_multiple_of(4) { edges[(bits >> 8) as usize % edges.len()] } else { random(bits >> 8) }
    }
    fn word(&mut self) -> i16 {
        self.pick(&[0, 1, -1, 7, 15, 16, 17, i16::MIN, i16::MIN + 1, i16::MAX, 0x4000, -0x4000], |bits| {
            (bits as i16) >> (bits >> 16 & 15)
        })
    }
    fn long(&mut self) -> i32 {
        let edges =
            [0, 1, -1, 31, 32, 33, i32::MIN, i32::MIN + 1, i32::MAX, 0xffff, 0x10000, -0x8000, 0xff_ffff];
        self.pick(&edges, |bits| (bits as i32) >> (bits >> 32 & 31))
    }
    /// Any float but NaN.
    fn float(&mut self) -> f32 {
        let edges = [0.0, -0.0, 1.0, -1.5, 2.5, f32::MIN_POSITIVE, 1e-40, -1e-40, 8_388_607.5, f32::INFINITY];
        self.pick(&edges, |bits| match f32::from_bits(bits as u32) {
            _ if bits >> 40 & 1 == 0 => ((bits as i32) >> (bits >> 41 & 15)) as f32 / 65536.0,
            float if float.is_nan() => 3.0,
            float => float,
        })
    }
}

/// A table of operations of two operands: a name, what vectors do, what plain numbers do. Makes a test that compares them.
macro_rules! compare {
    ($test:ident, $element:ty, $vector:ident, $draw:ident, $same:expr,
     $($name:literal: |$a:ident, $b:ident| $lanes:expr, |$x:ident, $y:ident| $plain:expr;)*) => {
        #[test]
        fn $test() {
            struct Run<'a>(&'a [$element], &'a [$element]);
            impl Kernel for Run<'_> {
                type Out = Vec<(&'static str, Vec<$element>)>;
                #[inline(always)]
                fn run<L: Lanes>(self) -> Self::Out {
                    let width = L::$vector::LANES;
                    let mut all = Vec::new();
                    $(
                    let mut out = vec![<$element>::default(); COUNT];
                    for at in (0..COUNT).step_by(width) {
                        let $a = L::$vector::load(&self.0[at..]);
                        let $b = L::$vector::load(&self.1[at..]);
                        let _ = $b;
                        let result: L::$vector = $lanes;
                        result.store(&mut out[at..]);
                    }
                    all.push(($name, out));
                    )*
                    all
                }
            }
            for seed in 0..TRIALS {
                let mut random = Operands(Random(seed));
                let left: Vec<$element> = (0..COUNT).map(|_| random.$draw()).collect();
                let right: Vec<$element> = (0..COUNT).map(|_| random.$draw()).collect();
                let plain: Vec<fn($element, $element) -> $element> =
                    vec![$(|$x, $y| { let _ = ($x, $y); $plain }),*];
                for level in Level::all_available() {
                    for ((name, out), plain) in level.run(Run(&left, &right)).into_iter().zip(&plain) {
                        for ((&x, &y), z) in left.iter().zip(&right).zip(out) {
                            let expected = plain(x, y);
                            assert!(
                                ($same)(z, expected),
                                "{level}, seed {seed}: {name} of {x:?} and {y:?} is {z:?}, not {expected:?}"
                            );
                        }
                    }
                }
            }
        }
    };
}

compare!(words_equal_their_plain_twins, i16, I16, word, |a: i16, b: i16| a == b,
    "add": |a, b| a + b, |x, y| x.wrapping_add(y);
    "sub": |a, b| a - b, |x, y| x.wrapping_sub(y);
    "mul": |a, b| a * b, |x, y| x.wrapping_mul(y);
    "neg": |a, b| -a, |x, y| x.wrapping_neg();
    "not": |a, b| !a, |x, y| !x;
    "add_assign": |a, b| { let mut c = a; c += b; c -= a; c }, |x, y| y;
    "and": |a, b| a & b, |x, y| x & y;
    "or": |a, b| a | b, |x, y| x | y;
    "xor": |a, b| a ^ b, |x, y| x ^ y;
    "and_not": |a, b| a.and_not(b), |x, y| !x & y;
    "sat_add": |a, b| a.sat_add(b), |x, y| x.saturating_add(y);
    "sat_sub": |a, b| a.sat_sub(b), |x, y| x.saturating_sub(y);
    "min": |a, b| a.min(b), |x, y| x.min(y);
    "max": |a, b| a.max(b), |x, y| x.max(y);
    "clamp": |a, b| a.clamp(L::I16::splat(-5), L::I16::splat(77)), |x, y| x.clamp(-5, 77);
    "abs": |a, b| a.abs(), |x, y| x.wrapping_abs();
    "sat_abs": |a, b| a.sat_abs(), |x, y| x.saturating_abs();
    "eq": |a, b| L::I16::select(a.eq(b), a, L::I16::splat(9)), |x, y| if x == y { x } else { 9 };
    "gt": |a, b| L::I16::from_mask(a.gt(b)), |x, y| -i16::from(x > y);
    "ge": |a, b| L::I16::from_mask(a.ge(b)), |x, y| -i16::from(x >= y);
    "lt": |a, b| L::I16::from_mask(a.lt(b)), |x, y| -i16::from(x < y);
    "le": |a, b| L::I16::from_mask(a.le(b)), |x, y| -i16::from(x <= y);
    "select": |a, b| L::I16::select(a.gt(b), a, b), |x, y| if x > y { x } else { y };
    "shl": |a, b| a.shl(3), |x, y| x << 3;
    "shl by all bits": |a, b| a.shl(16), |x, y| 0;
    "shr": |a, b| a.shr(5), |x, y| x >> 5;
    "shr by all bits": |a, b| a.shr(16), |x, y| x >> 15;
    "shr_logic": |a, b| a.shr_logic(5), |x, y| (x as u16 >> 5) as i16;
    "shl_each": |a, b| a.shl_each(b), |x, y| if (0..16).contains(&y) { x << y } else { 0 };
    "shr_each": |a, b| a.shr_each(b), |x, y| x >> if (0..16).contains(&y) { y } else { 15 };
    "mul_high": |a, b| a.mul_high(b), |x, y| ((i32::from(x) * i32::from(y)) >> 16) as i16;
    "mul_round": |a, b| a.mul_round(b), |x, y| ((i32::from(x) * i32::from(y) + 0x4000) >> 15) as i16;
    "split, join": |a, b| L::I16::join(a.split()), |x, y| x;
    "widen_zipped, unzip": |a, b| L::I16::unzip(a.widen_zipped()), |x, y| x;
    "mul_wide, unzip": |a, b| L::I16::unzip(a.mul_wide(b)),
        |x, y| (i32::from(x) * i32::from(y)).clamp(-32768, 32767) as i16;
    "mul_wide, shift, unzip": |a, b| L::I16::unzip(a.mul_wide(b).map(|c| c.shr(15))),
        |x, y| ((i32::from(x) * i32::from(y)) >> 15).min(32767) as i16;
    "zip, mul_add_pairs": |a, b| {
            let pairs = a.zip(b);
            let sums = [pairs[0].mul_add_pairs(pairs[0]), pairs[1].mul_add_pairs(pairs[1])];
            L::I16::unzip(sums.map(|sum| sum.shr_logic(16)))
        },
        |x, y| {
            let sum = (i32::from(x) * i32::from(x)).wrapping_add(i32::from(y) * i32::from(y));
            ((sum as u32 >> 16) as i32).min(32767) as i16
        };
    "unzip_mask": |a, b| {
            let (p, q) = (a.widen_zipped(), b.widen_zipped());
            L::I16::from_mask(L::I16::unzip_mask([p[0].gt(q[0]), p[1].gt(q[1])]))
        },
        |x, y| -i16::from(x > y);
    "join saturates": |a, b| L::I16::join(a.split().map(|c| c.shl(2))), |x, y| (i32::from(x) << 2).clamp(-32768, 32767) as i16;
    "lookup of 5": |a, b| L::I16::lookup(&WORDS[..5], a), |x, y| WORDS[..5].get(x as usize).copied().unwrap_or(0);
    "lookup of 8": |a, b| L::I16::lookup(&WORDS[..8], a), |x, y| WORDS[..8].get(x as usize).copied().unwrap_or(0);
    "lookup of 64": |a, b| L::I16::lookup(&WORDS, a), |x, y| WORDS.get(x as usize).copied().unwrap_or(0);
);

const LONG_WORDS: [i32; 40] = {
    let mut words = [0; 40];
    let mut index = 0;
    while index < 40 {
        words[index] = 7_000_001 * (index as i32 - 20);
        index += 1;
    }
    words
};
const WORDS: [i16; 64] = {
    let mut table = [0; 64];
    let mut at = 0;
    while at < table.len() {
        table[at] = (at as i32 * 1021 - 30_000) as i16;
        at += 1;
    }
    table
};

compare!(long_words_equal_their_plain_twins, i32, I32, long, |a: i32, b: i32| a == b,
    "add": |a, b| a + b, |x, y| x.wrapping_add(y);
    "sub": |a, b| a - b, |x, y| x.wrapping_sub(y);
    "mul": |a, b| a * b, |x, y| x.wrapping_mul(y);
    "neg": |a, b| -a, |x, y| x.wrapping_neg();
    "not": |a, b| !a, |x, y| !x;
    "and": |a, b| a & b, |x, y| x & y;
    "or": |a, b| a | b, |x, y| x | y;
    "xor": |a, b| a ^ b, |x, y| x ^ y;
    "and_not": |a, b| a.and_not(b), |x, y| !x & y;
    "sat_add": |a, b| a.sat_add(b), |x, y| x.saturating_add(y);
    "sat_sub": |a, b| a.sat_sub(b), |x, y| x.saturating_sub(y);
    "min": |a, b| a.min(b), |x, y| x.min(y);
    "max": |a, b| a.max(b), |x, y| x.max(y);
    "abs": |a, b| a.abs(), |x, y| x.wrapping_abs();
    "sat_abs": |a, b| a.sat_abs(), |x, y| x.saturating_abs();
    "eq": |a, b| L::I32::from_mask(a.eq(b)), |x, y| -i32::from(x == y);
    "gt": |a, b| L::I32::from_mask(a.gt(b)), |x, y| -i32::from(x > y);
    "ge": |a, b| L::I32::from_mask(a.ge(b)), |x, y| -i32::from(x >= y);
    "lt": |a, b| L::I32::from_mask(a.lt(b)), |x, y| -i32::from(x < y);
    "le": |a, b| L::I32::from_mask(a.le(b)), |x, y| -i32::from(x <= y);
    "and, or, xor, not of masks": |a, b| {
            let (p, q) = (a.gt(b), a.gt(L::I32::splat(0)));
            L::I32::from_mask((p & !q) | (p ^ q))
        },
        |x, y| -i32::from((x > y && x <= 0) || ((x > y) != (x > 0)));
    "shl": |a, b| a.shl(7), |x, y| x << 7;
    "shr": |a, b| a.shr(31), |x, y| x >> 31;
    "shr by more than all bits": |a, b| a.shr(40), |x, y| x >> 31;
    "shr_logic": |a, b| a.shr_logic(9), |x, y| (x as u32 >> 9) as i32;
    "shl_each": |a, b| a.shl_each(b), |x, y| if (0..32).contains(&y) { x << y } else { 0 };
    "shr_each": |a, b| a.shr_each(b), |x, y| x >> if (0..32).contains(&y) { y } else { 31 };
    "leading_zeros": |a, b| a.leading_zeros(), |x, y| x.leading_zeros() as i32;
    "to_f32": |a, b| a.to_f32().to_bits(), |x, y| (x as f32).to_bits() as i32;
    "bits_to_f32": |a, b| a.bits_to_f32().to_bits(), |x, y| x;
    "lookup of 40": |a, b| L::I32::lookup(&LONG_WORDS, a & L::I32::splat(63)), |x, y| LONG_WORDS.get((x & 63) as usize).copied().unwrap_or(0);
    "lookup": |a, b| L::I32::lookup(&[3, -4, 5], a), |x, y| [3, -4, 5].get(x as usize).copied().unwrap_or(0);
    "float lookup": |a, b| L::F32::lookup(&[3.0, -4.0], a).truncate(),
        |x, y| [3, -4].get(x as usize).copied().unwrap_or(0);
);

compare!(floats_equal_their_plain_twins, f32, F32, float, |a: f32, b: f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
    "add": |a, b| a + b, |x, y| x + y;
    "sub": |a, b| a - b, |x, y| x - y;
    "mul": |a, b| a * b, |x, y| x * y;
    "mul and add are rounded apart": |a, b| a * b + a, |x, y| std::hint::black_box(x * y) + x;
    "div": |a, b| a / b, |x, y| x / y;
    "neg": |a, b| -a, |x, y| -x;
    "abs": |a, b| a.abs(), |x, y| x.abs();
    "sqrt": |a, b| a.abs().sqrt(), |x, y| x.abs().sqrt();
    "floor": |a, b| a.floor(), |x, y| x.floor();
    "min": |a, b| a.min(b), |x, y| if x < y { x } else { y };
    "max": |a, b| a.max(b), |x, y| if x > y { x } else { y };
    "eq": |a, b| L::F32::select(a.eq(b), a, L::F32::splat(9.0)), |x, y| if x == y { x } else { 9.0 };
    "gt": |a, b| L::F32::select(a.gt(b), a, b), |x, y| if x > y { x } else { y };
    "ge": |a, b| L::F32::select(a.ge(b), a, b), |x, y| if x >= y { x } else { y };
    "lt": |a, b| L::F32::select(a.lt(b), a, b), |x, y| if x < y { x } else { y };
    "le": |a, b| L::F32::select(a.le(b), a, b), |x, y| if x <= y { x } else { y };
    "truncate": |a, b| a.clamp(L::F32::splat(-1e9), L::F32::splat(1e9)).truncate().to_f32(),
        |x, y| x.clamp(-1e9, 1e9) as i32 as f32;
    "round": |a, b| a.clamp(L::F32::splat(-1e9), L::F32::splat(1e9)).round().to_f32(),
        |x, y| x.clamp(-1e9, 1e9).round_ties_even() as i32 as f32;
    "to_bits": |a, b| a.to_bits().bits_to_f32(), |x, y| x;
    "widen, narrow": |a, b| L::F32::narrow(a.widen()), |x, y| x;
    "sums and products in double": |a, b| {
            let (p, q) = (a.widen(), b.widen());
            let three = L::F64::splat(3.0);
            let one = |p: L::F64, q: L::F64| (p * q + p / three - q).max(-p).min(q.abs());
            L::F32::narrow([one(p[0], q[0]), one(p[1], q[1])])
        },
        |x, y| {
            let (p, q) = (f64::from(x), f64::from(y));
            let r = p * q + p / 3.0 - q;
            let r = if r > -p { r } else { -p };
            (if r < q.abs() { r } else { q.abs() }) as f32
        };
    "square root and floor in double": |a, b| {
            let p = a.widen();
            L::F32::narrow([p[0].abs().sqrt().floor(), p[1].abs().sqrt().floor()])
        },
        |x, y| f64::from(x).abs().sqrt().floor() as f32;
);

#[test]
fn a_fused_product_is_at_least_as_near_as_two_roundings() {
    struct Fused([f32; 16], [f32; 16], [f32; 16]);
    impl Kernel for Fused {
        type Out = Vec<f32>;
        #[inline(always)]
        fn run<L: Lanes>(self) -> Vec<f32> {
            let sum = L::F32::load(&self.0).mul_add(L::F32::load(&self.1), L::F32::load(&self.2));
            L::F32::flat(&[sum]).to_vec()
        }
    }
    let mut random = Random(3);
    for seed in 0..TRIALS {
        let draw = |random: &mut Random| core::array::from_fn(|_| (random.bits() as i16) as f32 / 3.0);
        let (a, b, c): ([f32; 16], [f32; 16], [f32; 16]) =
            (draw(&mut random), draw(&mut random), draw(&mut random));
        for level in Level::all_available() {
            for (lane, result) in level.run(Fused(a, b, c)).into_iter().enumerate() {
                let (once, twice) = (a[lane].mul_add(b[lane], c[lane]), a[lane] * b[lane] + c[lane]);
                let fused = level != Level::portable();
                assert_eq!(result, if fused { once } else { twice }, "{level}, trial {seed}, lane {lane}");
            }
        }
    }
}

#[test]
fn masks_count_their_lanes_from_the_lowest_bit() {
    struct Masks(u32);
    impl Kernel for Masks {
        type Out = ();
        #[inline(always)]
        fn run<L: Lanes>(self) {
            fn check<M: Mask>(bits: u32) {
                let all = 1u64.checked_shl(M::LANES as u32).map_or(u32::MAX, |bit| (bit - 1) as u32);
                let mask = M::from_bits(bits);
                assert_eq!(mask.bits(), bits & all);
                assert_eq!((!mask).bits(), !bits & all);
                assert_eq!((mask.any(), mask.all()), (bits & all != 0, bits & all == all));
                for count in 0..=M::LANES {
                    assert_eq!(M::first(count).bits().count_ones() as usize, count);
                    assert_eq!(M::first(count).bits().trailing_ones() as usize, count);
                }
            }
            check::<L::Mask32>(self.0);
            check::<L::Mask16>(self.0);
            let mut lane = L::I32::splat(0);
            for (number, slot) in L::I32::flat_mut(core::slice::from_mut(&mut lane)).iter_mut().enumerate() {
                *slot = (self.0 >> number & 1) as i32;
            }
            assert_eq!(lane.eq(L::I32::splat(1)).bits(), L::Mask32::from_bits(self.0).bits());
        }
    }
    let mut random = Random(5);
    for level in Level::all_available() {
        for bits in [0, u32::MAX, 1, 0x80, 0x8000].into_iter().chain((0..100).map(|_| random.bits() as u32)) {
            level.run(Masks(bits));
        }
    }
}

#[test]
fn lanes_are_read_written_and_summed_one_by_one() {
    struct One;
    impl Kernel for One {
        type Out = ();
        #[inline(always)]
        fn run<L: Lanes>(self) {
            let mut floats = L::F32::splat(0.5);
            let mut longs = L::I32::splat(i32::MAX);
            for lane in 0..L::N {
                floats.set_lane(lane, lane as f32);
                assert_eq!(floats.lane(lane), lane as f32);
                longs.set_lane(lane, lane as i32);
            }
            let sum = L::N * (L::N - 1) / 2;
            assert_eq!(floats.reduce_add(), sum as f32);
            assert_eq!(longs.reduce_add(), sum as i32);
            // A kernel within the kernel.
            if L::N < 1000 {
                L::call(Inner);
            }
        }
    }
    struct Inner;
    impl Kernel for Inner {
        type Out = ();
        #[inline(always)]
        fn run<L: Lanes>(self) {
            assert_eq!(L::I16::LANES, 2 * L::N);
            assert_eq!(L::F64::LANES * 2, L::N);
        }
    }
    Level::all_available().for_each(|level| level.run(One));
}

/// Gathers streams of unequal lengths and scatters them to others; compared with indices.
macro_rules! transposes {
    ($test:ident, $element:ty, $vector:ident, $rows:expr) => {
        #[test]
        fn $test() {
            struct There<'a>(&'a [&'a [$element]], &'a mut [&'a mut [$element]]);
            impl Kernel for There<'_> {
                type Out = (usize, Vec<$element>);
                #[inline(always)]
                fn run<L: Lanes>(self) -> Self::Out {
                    let mut rows = [L::$vector::splat(77 as $element); $rows];
                    L::$vector::gather(self.0, &mut rows);
                    L::$vector::scatter(&rows, self.1);
                    (L::$vector::LANES, L::$vector::flat(&rows).to_vec())
                }
            }
            for seed in 0..60 {
                let mut random = Random(seed);
                let count = random.bits() as usize % 36;
                let streams: Vec<Vec<$element>> = (0..count)
                    .map(|_| {
                        let length = if seed % 2 == 0 { $rows } else { random.bits() as usize % ($rows + 9) };
                        (0..length).map(|_| random.bits() as i16 as $element).collect()
                    })
                    .collect();
                let mut outs: Vec<Vec<$element>> = (0..random.bits() as usize % 36)
                    .map(|_| vec![5 as $element; random.bits() as usize % ($rows + 9)])
                    .collect();
                for level in Level::all_available() {
                    let from: Vec<&[$element]> = streams.iter().map(|stream| &stream[..]).collect();
                    outs.iter_mut().for_each(|out| out.fill(5 as $element));
                    let mut to: Vec<&mut [$element]> = outs.iter_mut().map(|out| &mut out[..]).collect();
                    let (width, flat) = level.run(There(&from, &mut to));
                    let at = |lane: usize, row: usize| {
                        streams.get(lane).and_then(|stream| stream.get(row)).copied().unwrap_or_default()
                    };
                    for (index, &element) in flat.iter().enumerate() {
                        assert_eq!(
                            element,
                            at(index % width, index / width),
                            "{level}, seed {seed}, {index}"
                        );
                    }
                    for (lane, out) in outs.iter().enumerate() {
                        for (row, &element) in out.iter().enumerate() {
                            let inside = lane < width && row < $rows;
                            let expected = if inside { at(lane, row) } else { 5 as $element };
                            assert_eq!(element, expected, "{level}, seed {seed}, lane {lane}, row {row}");
                        }
                    }
                }
            }
        }
    };
}

transposes!(words_are_transposed_in_blocks_and_at_their_edges, i16, I16, 43);
transposes!(long_words_are_transposed_in_blocks_and_at_their_edges, i32, I32, 22);
transposes!(floats_are_transposed_in_blocks_and_at_their_edges, f32, F32, 22);
transposes!(doubles_are_transposed, f64, F64, 22);
