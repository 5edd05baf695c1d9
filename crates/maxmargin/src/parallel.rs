//! Parallel loops over numbered jobs, all built on one primitive.
//!
//! [`each`] calls `work(0)`, `work(1)`, …, `work(count − 1)` on the threads of the current pool. It takes the work as a
//! trait object and is compiled once, so a parallel loop adds no more code than a plain one. The other functions are
//! thin wrappers: results in order, pieces of a slice, the first error.
//!
//! **Determinism.** The result of a job must depend on its number alone. Callers cut their data into chunks of fixed
//! size, or into lanes that depend on the data, never into as many pieces as there are threads; partial sums come back
//! in order. The first error, or the first find, is the one with the lowest number, no matter which job ended first.
//!
//! **Cost.** A call through the trait object and a push on the pool's queue, some 50 ns a job: a job should take a
//! microsecond or more. Element-wise loops use [`fill`], [`collect`] and [`all`], which take the number of elements per
//! job.
//!
//! Jobs may run parallel loops themselves.

use crate::error::{Error, Result};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `work` with every number below `count`, on all threads.
pub fn each(count: usize, work: &(dyn Fn(usize) + Sync)) {
    spread(0..count, work);
}

fn spread(jobs: Range<usize>, work: &(dyn Fn(usize) + Sync)) {
    match jobs.len() {
        0 => {}
        1 => work(jobs.start),
        count => {
            let middle = jobs.start + count / 2;
            rayon::join(|| spread(jobs.start..middle, work), || spread(middle..jobs.end, work));
        }
    }
}

/// The results of `work` for every number below `count`, in order.
pub fn map<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    // SAFETY: the slot is written before the closure returns.
    unsafe {
        written(count, &|job, slot| {
            slot.write(work(job));
        })
    }
}

/// The values that `write` puts into the slots. Compiled once for each type of results rather than for each closure.
///
/// # Safety
/// `write` must initialise the slot, unless it panics.
unsafe fn written<T: Send>(count: usize, write: &(dyn Fn(usize, &mut MaybeUninit<T>) + Sync)) -> Vec<T> {
    let mut results = Vec::with_capacity(count);
    let slots = Slots::of(&mut results.spare_capacity_mut()[..count]);
    // SAFETY: every number is a separate job, so each slot is written once and by one thread.
    each(count, &|job| write(job, unsafe { &mut *slots.at(job) }));
    // SAFETY: `each` has returned, so all `count` slots are written. A panic would have left the vector empty.
    unsafe { results.set_len(count) };
    results
}

/// The results of `work` in order, or the error with the lowest number. Jobs after a failed one may be left out.
pub fn try_map<T: Send>(count: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let failure = First::default();
    let results = map(count, |job| {
        if failure.is_before(job) {
            return None;
        }
        work(job).map_err(|error| failure.offer(job, error)).ok()
    });
    match failure.into_inner() {
        Some(error) => Err(error),
        None => Ok(results.into_iter().flatten().collect()),
    }
}

/// Calls `work` with every number below `count`. Returns the error with the lowest number, if there is any.
pub fn try_each(count: usize, work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    find_first(count, |job| work(job).err()).map_or(Ok(()), |error: Error| Err(error))
}

/// The result of `work` with the lowest number, or none. Numbers above one with a result may be left out.
pub fn find_first<T: Send>(count: usize, work: impl Fn(usize) -> Option<T> + Sync) -> Option<T> {
    let first = First::default();
    each(count, &|job| {
        if !first.is_before(job)
            && let Some(found) = work(job)
        {
            first.offer(job, found);
        }
    });
    first.into_inner()
}

/// Gives every item to `work`, with its number. Results come in order.
pub fn map_each<I: Send, T: Send>(items: Vec<I>, work: impl Fn(usize, I) -> T + Sync) -> Vec<T> {
    let items = Items::of(items);
    map(items.len(), |job| items.take(job).map(|item| work(job, item))).into_iter().flatten().collect()
}

/// The same without results. Returns the error with the lowest number, if there is any. Items after a failed one may be
/// left out.
pub fn try_each_of<I: Send>(items: Vec<I>, work: impl Fn(usize, I) -> Result<()> + Sync) -> Result<()> {
    let items = Items::of(items);
    try_each(items.len(), |job| items.take(job).map_or(Ok(()), |item| work(job, item)))
}

/// Gives `work` every piece of `size` values (the last may be shorter), with its number.
pub fn chunks<T: Send>(values: &mut [T], size: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    pieces(values, size, &work);
}

/// The same, compiled once for each type of values rather than for each closure.
fn pieces<T: Send>(values: &mut [T], size: usize, work: &(dyn Fn(usize, &mut [T]) + Sync)) {
    let (size, length) = (size.max(1), values.len());
    let slots = Slots::of(values);
    each(length.div_ceil(size), &|chunk| {
        let start = chunk * size;
        // SAFETY: pieces with different numbers do not overlap, and each number is one job.
        let piece = unsafe { std::slice::from_raw_parts_mut(slots.at(start), size.min(length - start)) };
        work(chunk, piece);
    });
}

/// Gives `work` the pieces of two slices that have the same number.
pub fn chunks_of_two<A: Send, B: Send>(
    first: (&mut [A], usize),
    second: (&mut [B], usize),
    work: impl Fn(usize, &mut [A], &mut [B]) + Sync,
) {
    let pieces = first.0.chunks_mut(first.1.max(1)).zip(second.0.chunks_mut(second.1.max(1)));
    map_each(pieces.collect(), |number, (a, b)| work(number, a, b));
}

/// Writes `value(i)` to place i of `out`, with `run` places per job.
pub fn fill<T: Send>(out: &mut [T], run: usize, value: impl Fn(usize) -> T + Sync) {
    update(out, run, |place, slot| *slot = value(place));
}

/// Changes every value, given its place, with `run` values per job.
pub fn update<T: Send>(values: &mut [T], run: usize, change: impl Fn(usize, &mut T) + Sync) {
    let run = run.max(1);
    chunks(values, run, |chunk, piece| {
        for (place, value) in (chunk * run..).zip(piece) {
            change(place, value);
        }
    });
}

/// `value(i)` for every i below `count`, with `run` of them per job.
pub fn collect<T: Send>(count: usize, run: usize, value: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let run = run.max(1);
    let mut results = Vec::with_capacity(count);
    let slots = Slots::of(results.spare_capacity_mut());
    each(count.div_ceil(run), &|chunk| {
        for place in chunk * run..((chunk + 1) * run).min(count) {
            // SAFETY: runs do not overlap, so each slot is written once and by one thread.
            unsafe { slots.at(place).write(MaybeUninit::new(value(place))) };
        }
    });
    // SAFETY: `each` has returned, so all `count` slots are written. A panic would have left the vector empty.
    unsafe { results.set_len(count) };
    results
}

/// Whether `test` holds for every number below `count`, with `run` of them per job. Stops early if it does not.
pub fn all(count: usize, run: usize, test: impl Fn(usize) -> bool + Sync) -> bool {
    let run = run.max(1);
    find_first(count.div_ceil(run), |chunk| {
        (chunk * run..((chunk + 1) * run).min(count)).any(|place| !test(place)).then_some(())
    })
    .is_none()
}

/// Both results. The two run at the same time if a second thread is free.
pub fn join<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    let (mut a, mut b) = (Some(a), Some(b));
    let (mut first, mut second) = (None, None);
    both(&mut || first = a.take().map(|work| work()), &mut || second = b.take().map(|work| work()));
    match (first, second) {
        (Some(first), Some(second)) => (first, second),
        _ => unreachable!("both were called"),
    }
}

fn both(a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
    rayon::join(a, b);
}

/// How many threads the current pool has.
pub fn threads() -> usize {
    rayon::current_num_threads()
}

/// Work buffers, passed on from one job to the next: no more are made than jobs run at the same time. The result of a
/// job must not depend on which buffer it gets.
#[derive(Debug, Default)]
pub struct Spare<S>(Mutex<Vec<S>>);

impl<S: Default> Spare<S> {
    /// Calls `work` with a buffer that no other job uses.
    pub fn lend<T>(&self, work: impl FnOnce(&mut S) -> T) -> T {
        let spare = self.0.lock().ok().and_then(|mut spares| spares.pop());
        let mut spare = spare.unwrap_or_default();
        let result = work(&mut spare);
        if let Ok(mut spares) = self.0.lock() {
            spares.push(spare);
        }
        result
    }
}

/// Places of a slice that jobs write to, each to its own place.
struct Slots<'a, T> {
    start: *mut T,
    values: PhantomData<&'a mut [T]>,
}

// SAFETY: jobs touch disjoint places, which every use of `at` upholds; the values move between threads, hence `Send`.
unsafe impl<T: Send> Sync for Slots<'_, T> {}

impl<'a, T> Slots<'a, T> {
    fn of(values: &'a mut [T]) -> Slots<'a, T> {
        Slots { start: values.as_mut_ptr(), values: PhantomData }
    }

    /// # Safety
    /// `place` must lie within the slice (or at its end, for a piece without values), and no two threads may touch one
    /// place.
    unsafe fn at(&self, place: usize) -> *mut T {
        // SAFETY: as above.
        unsafe { self.start.add(place) }
    }
}

/// Items that each job takes one of.
struct Items<I>(Vec<Mutex<Option<I>>>);

impl<I> Items<I> {
    fn of(items: Vec<I>) -> Items<I> {
        Items(items.into_iter().map(|item| Mutex::new(Some(item))).collect())
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn take(&self, job: usize) -> Option<I> {
        self.0[job].lock().ok().and_then(|mut item| item.take())
    }
}

/// The value offered with the lowest number.
struct First<T> {
    lowest: AtomicUsize,
    found: Mutex<Option<(usize, T)>>,
}

impl<T> Default for First<T> {
    fn default() -> First<T> {
        First { lowest: AtomicUsize::new(usize::MAX), found: Mutex::new(None) }
    }
}

impl<T> First<T> {
    fn is_before(&self, job: usize) -> bool {
        self.lowest.load(Ordering::Relaxed) < job
    }

    fn offer(&self, job: usize, value: T) {
        self.lowest.fetch_min(job, Ordering::Relaxed);
        if let Ok(mut found) = self.found.lock()
            && found.as_ref().is_none_or(|(lowest, _)| job < *lowest)
        {
            *found = Some((job, value));
        }
    }

    fn into_inner(self) -> Option<T> {
        self.found.into_inner().ok().flatten().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    fn on(threads: usize, work: impl FnOnce() + Send) {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool").install(work);
    }

    #[test]
    fn results_come_in_order_whatever_the_number_of_threads() {
        for threads in [1, 2, 7] {
            on(threads, || {
                for count in [0, 1, 2, 3, 1000] {
                    let expected: Vec<String> = (0..count).map(|job| format!("{job}")).collect();
                    assert_eq!(map(count, |job| format!("{job}")), expected);
                    for run in [0, 1, 3, 4096] {
                        assert_eq!(collect(count, run, |job| format!("{job}")), expected);
                        let mut filled = vec![String::new(); count];
                        fill(&mut filled, run, |job| format!("{job}"));
                        assert_eq!(filled, expected);
                        assert!(all(count, run, |job| job < count));
                        assert_eq!(all(count, run, |job| job != 2), count < 3);
                    }
                    let given = map_each(expected.clone(), |job, item| format!("{job} {item}"));
                    assert_eq!(given, (0..count).map(|job| format!("{job} {job}")).collect::<Vec<_>>());
                }
            });
        }
    }

    #[test]
    fn chunks_cover_a_slice_once() {
        on(2, || {
            for (length, size) in [(0, 3), (1, 3), (9, 3), (10, 3), (10, 100), (10, 0)] {
                let mut values = vec![0; length];
                chunks(&mut values, size, |chunk, piece| piece.iter_mut().for_each(|value| *value += 1 + chunk));
                let expected: Vec<usize> = (0..length).map(|place| 1 + place / size.max(1)).collect();
                assert_eq!(values, expected);
            }
            let (mut a, mut b) = (vec![0; 10], vec![0; 5]);
            chunks_of_two((&mut a, 4), (&mut b, 2), |number, a, b| {
                a.fill(number);
                b.fill(a.len());
            });
            assert_eq!((a, b), (vec![0, 0, 0, 0, 1, 1, 1, 1, 2, 2], vec![4, 4, 4, 4, 2]));
        });
    }

    #[test]
    fn the_error_of_the_lowest_number_is_returned() {
        let work = |job: usize| match job {
            300 | 41 | 999 => Err(Error::new(Code::Internal, format!("job {job}"))),
            _ => Ok(job),
        };
        for threads in [1, 2, 5] {
            on(threads, || {
                assert_eq!(try_map(1000, work).expect_err("fails").message(), "job 41");
                assert_eq!(try_each(1000, |job| work(job).map(|_| ())).expect_err("fails").message(), "job 41");
                let check = |job: usize, item: usize| work(item).map(|item| assert_eq!(item, 1000 + job));
                assert!(try_each_of((1000..2000).collect(), check).is_ok());
                let fail = try_each_of((0..1000).rev().collect(), |_, item| work(item).map(|_| ()));
                assert_eq!(fail.expect_err("fails").message(), "job 999");
                assert_eq!(find_first(1000, |job| (job % 97 == 96).then_some(job)), Some(96));
                assert_eq!(find_first(90, |job| (job % 97 == 96).then_some(job)), None);
                assert_eq!(try_map(40, work).expect("no error"), (0..40).collect::<Vec<_>>());
            });
        }
    }

    #[test]
    fn both_sides_of_a_join_run_and_loops_nest() {
        on(2, || {
            assert_eq!(join(|| 1, || "two"), (1, "two"));
            let sums = map(20, |outer| map(30, |inner| outer * inner).into_iter().sum::<usize>());
            assert_eq!(sums[3], 3 * (0..30).sum::<usize>());
        });
    }

    #[test]
    fn work_buffers_are_reused() {
        on(2, || {
            let spare: Spare<Vec<usize>> = Spare::default();
            each(1000, &|job| spare.lend(|jobs| jobs.push(job)));
            let spares = spare.0.into_inner().expect("no job panicked");
            assert!(spares.len() <= 2);
            let mut jobs = spares.concat();
            jobs.sort_unstable();
            assert_eq!(jobs, (0..1000).collect::<Vec<_>>());
        });
    }

    #[test]
    fn a_panic_in_a_job_reaches_the_caller() {
        let caught = std::panic::catch_unwind(|| map(100, |job| if job == 50 { panic!("job 50") } else { vec![job] }));
        assert!(caught.is_err());
    }
}
