//! The innermost loops over one row, with the instruction set chosen at run time.
//!
//! All sums are in f64. The same machine always takes the same path, so results do not depend on threads.
//!
//! Weights of sparse rows are loaded one by one. Loading sixteen at a time with AVX-512 gathers took a tenth longer,
//! because a gather waits until earlier stores have reached the cache, and a load does not.
//!
//! Indices are checked when they are used. Another process can change a mapped file at any time, and that must never
//! cause an access outside the buffers. An index past the end counts as a zero weight.

use std::sync::OnceLock;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
}

/// A stored feature value: f32 or f64.
pub trait Value: sealed::Sealed + Copy + Send + Sync + PartialEq + std::fmt::Debug + 'static {
    /// Widened, exactly.
    fn wide(self) -> f64;
    /// Rounded to the stored type.
    fn narrow(value: f64) -> Self;
}

/// A stored feature index: u16 or u32.
pub trait Index: sealed::Sealed + Copy + Send + Sync + Ord + std::fmt::Debug + 'static {
    /// As a position.
    fn position(self) -> usize;
    /// From a position that fits.
    fn from_position(position: usize) -> Self;
}

impl Value for f32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn narrow(value: f64) -> f32 {
        value as f32
    }
}
impl Value for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
    #[inline(always)]
    fn narrow(value: f64) -> f64 {
        value
    }
}
impl Index for u16 {
    #[inline(always)]
    fn position(self) -> usize {
        self as usize
    }
    #[inline(always)]
    fn from_position(position: usize) -> u16 {
        debug_assert!(position <= u16::MAX as usize);
        position as u16
    }
}
impl Index for u32 {
    #[inline(always)]
    fn position(self) -> usize {
        self as usize
    }
    #[inline(always)]
    fn from_position(position: usize) -> u32 {
        debug_assert!(position <= u32::MAX as usize);
        position as u32
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

#[inline(always)]
fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
            {
                return Level::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Level::Avx2;
            }
        }
        Level::Portable
    })
}

/// Compiles a function twice, for any processor and for processors with AVX-512, and calls the version that suits this
/// machine. It is for loops that the compiler vectorises, or turns into selects, without help.
macro_rules! for_this_machine {
    (
        $(#[$meta:meta])*
        $visibility:vis fn $name:ident[$($generics:tt)*]($($argument:ident: $type:ty),* $(,)?) -> $result:ty = $body:ident
    ) => {
        $(#[$meta])*
        $visibility fn $name<$($generics)*>($($argument: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,bmi1,bmi2")]
                fn wide<$($generics)*>($($argument: $type),*) -> $result {
                    $body($($argument),*)
                }
                if $crate::data::row_loops::has_avx512() {
                    // SAFETY: the processor has these features.
                    return unsafe { wide($($argument),*) };
                }
            }
            $body($($argument),*)
        }
    };
}
pub(crate) use for_this_machine;

/// Whether the processor has AVX-512 and the features that come with it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn has_avx512() -> bool {
    level() == Level::Avx512
}

const LANES: usize = 16;

#[inline(always)]
fn fold(lanes: [f64; LANES]) -> f64 {
    let mut width = LANES / 2;
    let mut lanes = lanes;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn multiply_add<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn dense_dot_lanes<V: Value, const FUSED: bool>(x: &[V], w: &[f64]) -> f64 {
    let w = &w[..x.len()];
    let mut lanes = [0.0; LANES];
    let (x_chunks, x_rest) = x.as_chunks::<LANES>();
    let (w_chunks, w_rest) = w.as_chunks::<LANES>();
    for (xs, ws) in x_chunks.iter().zip(w_chunks) {
        for lane in 0..LANES {
            lanes[lane] = multiply_add::<FUSED>(xs[lane].wide(), ws[lane], lanes[lane]);
        }
    }
    for (lane, (&x, &w)) in x_rest.iter().zip(w_rest).enumerate() {
        lanes[lane] = multiply_add::<FUSED>(x.wide(), w, lanes[lane]);
    }
    fold(lanes)
}

#[inline(always)]
fn dense_axpy_lanes<V: Value, const FUSED: bool>(scale: f64, x: &[V], w: &mut [f64]) {
    let w = &mut w[..x.len()];
    for (w, &x) in w.iter_mut().zip(x) {
        *w = multiply_add::<FUSED>(scale, x.wide(), *w);
    }
}

#[inline(always)]
fn weight_at<I: Index>(w: &[f64], index: I) -> f64 {
    w.get(index.position()).copied().unwrap_or(0.0)
}

#[inline(always)]
fn sparse_dot_lanes<I: Index, V: Value, const FUSED: bool>(indices: &[I], values: &[V], w: &[f64]) -> f64 {
    let mut lanes = [0.0; 4];
    let (index_chunks, index_rest) = indices.as_chunks::<4>();
    let (value_chunks, value_rest) = values.as_chunks::<4>();
    for (indices, values) in index_chunks.iter().zip(value_chunks) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum = multiply_add::<FUSED>(values[lane].wide(), weight_at(w, indices[lane]), *sum);
        }
    }
    let mut rest = 0.0;
    for (&index, &value) in index_rest.iter().zip(value_rest) {
        rest = multiply_add::<FUSED>(value.wide(), weight_at(w, index), rest);
    }
    (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]) + rest
}

#[inline(always)]
fn sparse_axpy_lanes<I: Index, V: Value, const FUSED: bool>(scale: f64, indices: &[I], values: &[V], w: &mut [f64]) {
    for (&index, &value) in indices.iter().zip(values) {
        if let Some(slot) = w.get_mut(index.position()) {
            *slot = multiply_add::<FUSED>(scale, value.wide(), *slot);
        }
    }
}

macro_rules! fused {
    ($feature:literal, $dot:ident, $axpy:ident, $sparse_dot:ident, $sparse_axpy:ident) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $feature)]
        #[inline]
        fn $dot<V: Value>(x: &[V], w: &[f64]) -> f64 {
            dense_dot_lanes::<V, true>(x, w)
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $feature)]
        #[inline]
        fn $axpy<V: Value>(scale: f64, x: &[V], w: &mut [f64]) {
            dense_axpy_lanes::<V, true>(scale, x, w);
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $feature)]
        #[inline]
        fn $sparse_dot<I: Index, V: Value>(indices: &[I], values: &[V], w: &[f64]) -> f64 {
            sparse_dot_lanes::<I, V, true>(indices, values, w)
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $feature)]
        #[inline]
        fn $sparse_axpy<I: Index, V: Value>(scale: f64, indices: &[I], values: &[V], w: &mut [f64]) {
            sparse_axpy_lanes::<I, V, true>(scale, indices, values, w);
        }
    };
}
fused!("avx2,fma", dense_dot_avx2, dense_axpy_avx2, sparse_dot_avx2, sparse_axpy_avx2);
fused!(
    "avx512f,avx512vl,avx512bw,avx2,fma",
    dense_dot_avx512,
    dense_axpy_avx512,
    sparse_dot_avx512,
    sparse_axpy_avx512
);

/// Prefetches the cache line of one item.
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T], at: usize) {
    if let Some(item) = items.get(at) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch reads nothing that the program sees, and the address is that of an item.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = item;
    }
}

/// Prefetching stops after this many bytes. From there on, the processor's own prefetching has seen the pattern.
const PREFETCHED: usize = 1024;
const CACHE_LINE: usize = 64;

/// Prefetches the beginning of a run of items, or all of a short run.
#[inline(always)]
pub(crate) fn prefetch_all<T>(items: &[T]) {
    let step = CACHE_LINE / size_of::<T>();
    for at in (0..items.len().min(PREFETCHED / size_of::<T>())).step_by(step) {
        prefetch(items, at);
    }
}

/// x · w over a dense row.
#[inline(always)]
pub(crate) fn dense_dot<V: Value>(x: &[V], w: &[f64]) -> f64 {
    assert!(w.len() >= x.len());
    match level() {
        Level::Portable => dense_dot_lanes::<V, false>(x, w),
        // SAFETY: the level says that the features are there.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { dense_dot_avx2(x, w) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { dense_dot_avx512(x, w) },
    }
}

/// w += scale · x over a dense row.
#[inline(always)]
pub(crate) fn dense_axpy<V: Value>(scale: f64, x: &[V], w: &mut [f64]) {
    assert!(w.len() >= x.len());
    match level() {
        Level::Portable => dense_axpy_lanes::<V, false>(scale, x, w),
        // SAFETY: the level says that the features are there.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { dense_axpy_avx2(scale, x, w) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { dense_axpy_avx512(scale, x, w) },
    }
}

/// x · w over a sparse row.
#[inline(always)]
pub(crate) fn sparse_dot<I: Index, V: Value>(indices: &[I], values: &[V], w: &[f64]) -> f64 {
    match level() {
        Level::Portable => sparse_dot_lanes::<I, V, false>(indices, values, w),
        // SAFETY: the level says that the features are there.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { sparse_dot_avx2(indices, values, w) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { sparse_dot_avx512(indices, values, w) },
    }
}

/// w += scale · x over a sparse row.
#[inline(always)]
pub(crate) fn sparse_axpy<I: Index, V: Value>(scale: f64, indices: &[I], values: &[V], w: &mut [f64]) {
    match level() {
        Level::Portable => sparse_axpy_lanes::<I, V, false>(scale, indices, values, w),
        // SAFETY: the level says that the features are there.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { sparse_axpy_avx2(scale, indices, values, w) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { sparse_axpy_avx512(scale, indices, values, w) },
    }
}

/// sums_o += value · w_o for the weights of one feature. The weights of all outputs are next to each other.
#[inline(always)]
fn add_product(value: f64, w: &[f64], sums: &mut [f64]) {
    sums.iter_mut().zip(w).for_each(|(sum, w)| *sum += value * w);
}

/// Sums for a number of outputs that is known at compile time, so that the sums stay in registers.
#[inline(always)]
fn dense_dots_of<V: Value, const OUTPUTS: usize>(x: &[V], w: &[f64], out: &mut [f64]) {
    // Separate sums for even and odd features, so that they do not wait for each other.
    let mut sums = [[0.0; OUTPUTS]; 2];
    let (w, _) = w.as_chunks::<OUTPUTS>();
    let (x_pairs, x_rest) = x.as_chunks::<2>();
    let (w_pairs, w_rest) = w[..x.len()].as_chunks::<2>();
    for (x, w) in x_pairs.iter().zip(w_pairs) {
        for (side, sums) in sums.iter_mut().enumerate() {
            add_product(x[side].wide(), &w[side], sums);
        }
    }
    for (x, w) in x_rest.iter().zip(w_rest) {
        add_product(x.wide(), w, &mut sums[0]);
    }
    out.iter_mut().zip(sums[0]).zip(sums[1]).for_each(|((out, even), odd)| *out = even + odd);
}

#[inline(always)]
fn dense_dots_plainly<V: Value>(x: &[V], w: &[f64], out: &mut [f64]) {
    assert!(w.len() >= x.len() * out.len());
    match out.len() {
        2 => dense_dots_of::<V, 2>(x, w, out),
        3 => dense_dots_of::<V, 3>(x, w, out),
        4 => dense_dots_of::<V, 4>(x, w, out),
        outputs if outputs.is_multiple_of(8) && outputs > 0 => dense_dots_in_runs(x, w, out),
        outputs => {
            out.fill(0.0);
            x.iter().zip(w.chunks_exact(outputs.max(1))).for_each(|(x, w)| add_product(x.wide(), w, out));
        }
    }
}

#[inline(always)]
fn dense_axpys_plainly<V: Value>(scales: &[f64], x: &[V], w: &mut [f64]) {
    assert!(w.len() >= x.len() * scales.len());
    x.iter().zip(w.chunks_exact_mut(scales.len().max(1))).for_each(|(x, w)| add_product(x.wide(), scales, w));
}

/// For a multiple of eight outputs: runs of them at a time, so that their sums stay in registers.
#[inline(always)]
fn dense_dots_in_runs<V: Value>(x: &[V], w: &[f64], out: &mut [f64]) {
    let outputs = out.len();
    let mut from = 0;
    while from + 32 <= outputs {
        dense_run::<V, 32>(x, w, outputs, from, out);
        from += 32;
    }
    if from + 16 <= outputs {
        dense_run::<V, 16>(x, w, outputs, from, out);
        from += 16;
    }
    if from < outputs {
        dense_run::<V, 8>(x, w, outputs, from, out);
    }
}

#[inline(always)]
fn dense_run<V: Value, const RUN: usize>(x: &[V], w: &[f64], outputs: usize, from: usize, out: &mut [f64]) {
    // Separate sums for even and odd features, so that they do not wait for each other.
    let mut sums = [[0.0; RUN]; 2];
    let mut add = |side: usize, x: &V, w: &[f64]| {
        if let Some(w) = w[from..].first_chunk::<RUN>() {
            add_product(x.wide(), w, &mut sums[side]);
        }
    };
    let (pairs, rest) = x.as_chunks::<2>();
    for (x, w) in pairs.iter().zip(w.chunks_exact(2 * outputs)) {
        add(0, &x[0], &w[..outputs]);
        add(1, &x[1], &w[outputs..]);
    }
    if let [x] = rest {
        add(0, x, &w[2 * pairs.len() * outputs..]);
    }
    let out = &mut out[from..from + RUN];
    out.iter_mut().zip(sums[0]).zip(sums[1]).for_each(|((out, even), odd)| *out = even + odd);
}

/// The position of the weights of a feature, with `outputs` weights next to each other.
#[inline(always)]
fn span_of<I: Index>(index: I, outputs: usize) -> std::ops::Range<usize> {
    let start = index.position().saturating_mul(outputs);
    start..start.saturating_add(outputs)
}

#[inline(always)]
fn sparse_dots_plainly<I: Index, V: Value>(indices: &[I], values: &[V], w: &[f64], out: &mut [f64]) {
    let outputs = out.len();
    if outputs.is_multiple_of(8) && outputs > 0 {
        let mut from = 0;
        while from + 32 <= outputs {
            sparse_run::<I, V, 32>(indices, values, w, from, out);
            from += 32;
        }
        if from + 16 <= outputs {
            sparse_run::<I, V, 16>(indices, values, w, from, out);
            from += 16;
        }
        if from < outputs {
            sparse_run::<I, V, 8>(indices, values, w, from, out);
        }
        return;
    }
    out.fill(0.0);
    for (at, (&index, &value)) in indices.iter().zip(values).enumerate() {
        if let Some(&later) = indices.get(at + FEATURES_AHEAD)
            && let Some(w) = w.get(span_of(later, out.len()))
        {
            prefetch_all(w);
        }
        if let Some(w) = w.get(span_of(index, out.len())) {
            add_product(value.wide(), w, out);
        }
    }
}

/// The sums of a run of outputs, which stay in registers.
#[inline(always)]
fn sparse_run<I: Index, V: Value, const RUN: usize>(
    indices: &[I],
    values: &[V],
    w: &[f64],
    from: usize,
    out: &mut [f64],
) {
    let outputs = out.len();
    // Separate sums for even and odd features, so that they do not wait for each other.
    let mut sums = [[0.0; RUN]; 2];
    let of = |index: I| w.get(span_of(index, outputs)).and_then(|w| w[from..].first_chunk::<RUN>());
    let mut add = |side: usize, index: I, value: V| {
        if let Some(w) = of(index) {
            add_product(value.wide(), w, &mut sums[side]);
        }
    };
    let (pairs, rest) = indices.as_chunks::<2>();
    let (value_pairs, value_rest) = values.as_chunks::<2>();
    for (at, (index, value)) in pairs.iter().zip(value_pairs).enumerate() {
        if let Some(later) = pairs.get(at + FEATURES_AHEAD) {
            later.iter().filter_map(|&index| of(index)).for_each(|w| prefetch_all(w));
        }
        add(0, index[0], value[0]);
        add(1, index[1], value[1]);
    }
    if let ([index], [value]) = (rest, value_rest) {
        add(0, *index, *value);
    }
    let out = &mut out[from..from + RUN];
    out.iter_mut().zip(sums[0]).zip(sums[1]).for_each(|((out, even), odd)| *out = even + odd);
}

/// How many features ahead the weights of all outputs are prefetched.
const FEATURES_AHEAD: usize = 2;

#[inline(always)]
fn sparse_axpys_plainly<I: Index, V: Value>(scales: &[f64], indices: &[I], values: &[V], w: &mut [f64]) {
    for (&index, &value) in indices.iter().zip(values) {
        if let Some(w) = w.get_mut(span_of(index, scales.len())) {
            add_product(value.wide(), scales, w);
        }
    }
}

for_this_machine! {
    /// out_o = Σ_j x_j · w_(j, o) over a dense row. The weights of one feature are next to each other.
    pub(crate) fn dense_dots[V: Value](x: &[V], w: &[f64], out: &mut [f64]) -> () = dense_dots_plainly
}

for_this_machine! {
    /// w_(j, o) += scale_o · x_j over a dense row.
    pub(crate) fn dense_axpys[V: Value](scales: &[f64], x: &[V], w: &mut [f64]) -> () = dense_axpys_plainly
}

for_this_machine! {
    /// out_o = Σ_j x_j · w_(j, o) over a sparse row. Each index is looked up once for all outputs.
    pub(crate) fn sparse_dots[I: Index, V: Value](indices: &[I], values: &[V], w: &[f64], out: &mut [f64]) -> () =
        sparse_dots_plainly
}

for_this_machine! {
    /// w_(j, o) += scale_o · x_j over a sparse row.
    pub(crate) fn sparse_axpys[I: Index, V: Value](scales: &[f64], indices: &[I], values: &[V], w: &mut [f64]) -> () =
        sparse_axpys_plainly
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_outputs_are_as_many_single_ones() {
        for outputs in (1..8).chain([8, 16, 24, 32, 40, 56, 64, 104]) {
            let weight = |at: usize| ((at * 37 % 101) as f64 - 50.0) / 7.0;
            let w: Vec<f64> = (0..40 * outputs).map(weight).collect();
            let scales: Vec<f64> = (0..outputs).map(|output| output as f64 - 1.25).collect();
            for length in 0..12u32 {
                let values: Vec<f32> = (0..length).map(|i| (i as f32 * 0.37).sin()).collect();
                // One index past the end.
                let indices: Vec<u32> = (0..length).map(|i| if i == 10 { u32::MAX } else { i * 3 }).collect();
                let (mut dense, mut sparse) = (vec![f64::NAN; outputs], vec![f64::NAN; outputs]);
                dense_dots(&values, &w, &mut dense);
                sparse_dots(&indices, &values, &w, &mut sparse);
                let (mut dense_sum, mut sparse_sum) = (w.clone(), w.clone());
                dense_axpys(&scales, &values, &mut dense_sum);
                sparse_axpys(&scales, &indices, &values, &mut sparse_sum);
                for output in 0..outputs {
                    let own = |w: &[f64]| w.iter().skip(output).step_by(outputs).copied().collect::<Vec<f64>>();
                    let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
                    assert!(close(dense[output], dense_dot(&values, &own(&w))));
                    assert!(close(sparse[output], sparse_dot(&indices, &values, &own(&w))));
                    let (mut one, mut other) = (own(&w), own(&w));
                    dense_axpy(scales[output], &values, &mut one);
                    sparse_axpy(scales[output], &indices, &values, &mut other);
                    assert!(one.iter().zip(own(&dense_sum)).all(|(a, b)| close(*a, b)));
                    assert!(other.iter().zip(own(&sparse_sum)).all(|(a, b)| close(*a, b)));
                }
            }
        }
    }

    #[test]
    fn an_index_past_the_weights_counts_as_zero() {
        let (w, mut sum) = ([1.0, 2.0], [0.0, 0.0]);
        for past in [2u32, 17, 1 << 31, u32::MAX] {
            assert_eq!(sparse_dot(&[1, past], &[3.0f32, 5.0], &w), 6.0);
            sparse_axpy(1.0, &[past], &[5.0f64], &mut sum);
        }
        assert_eq!(sum, [0.0, 0.0]);
    }

    #[test]
    fn every_length_agrees_with_the_plain_loop() {
        let w: Vec<f64> = (0..500).map(|i| ((i * 37 % 101) as f64 - 50.0) / 7.0).collect();
        for length in 0..70 {
            let values: Vec<f32> = (0..length).map(|i| (i as f32 * 0.37).sin()).collect();
            let indices16: Vec<u16> = (0..length as u16).map(|i| i * 7).collect();
            let indices32: Vec<u32> = indices16.iter().map(|&i| u32::from(i)).collect();
            let expected: f64 = indices16.iter().zip(&values).map(|(&i, &x)| f64::from(x) * w[i as usize]).sum();
            let (short, long) = (sparse_dot(&indices16, &values, &w), sparse_dot(&indices32, &values, &w));
            assert!((short - expected).abs() < 1e-10, "{length}: {short} {expected}");
            assert_eq!(short, long);
            let dense: f64 = values.iter().zip(&w).map(|(&x, &w)| f64::from(x) * w).sum();
            assert!((dense_dot(&values, &w) - dense).abs() < 1e-10);

            let mut sum = w.clone();
            sparse_axpy(0.5, &indices16, &values, &mut sum);
            for (&i, &x) in indices16.iter().zip(&values) {
                assert!((sum[i as usize] - w[i as usize] - 0.5 * f64::from(x)).abs() < 1e-12);
            }
        }
    }
}
