//! [`RowCache`]: the most recently used kernel rows, within a budget of bytes.

use super::Element;
use std::sync::Arc;

/// Kernel rows by number. A missing row is computed when it is requested, and replaces the least recently used row.
#[derive(Debug)]
pub(crate) struct RowCache<T> {
    length: usize,
    most: usize,
    slots: Vec<Slot<T>>,
    /// The slot of each row, or none.
    slot_of: Vec<Option<u32>>,
    /// For rows from some number on, the earlier row whose values each of them shares: the second copies of ties.
    shared: Option<(usize, Arc<[u32]>)>,
    now: u64,
    asked: u64,
    computed: u64,
}

#[derive(Debug)]
struct Slot<T> {
    owner: usize,
    last_used: u64,
    values: Box<[T]>,
}

impl<T: Element> RowCache<T> {
    /// A cache for `rows` rows of `length` values within `bytes` bytes. It holds at least `least` rows, which are
    /// needed at once.
    pub(crate) fn new(rows: usize, length: usize, bytes: u64, least: usize) -> RowCache<T> {
        let row_bytes = (length.max(1) * size_of::<T>()) as u64;
        let most = usize::try_from(bytes / row_bytes).unwrap_or(usize::MAX).max(least).min(rows.max(1));
        let slot_of = vec![None; rows];
        RowCache { length, most, slots: Vec::new(), slot_of, shared: None, now: 0, asked: 0, computed: 0 }
    }

    /// Lets the rows from `first` on share the values of the listed earlier ones.
    pub(crate) fn sharing(mut self, first: usize, with: Arc<[u32]>) -> RowCache<T> {
        self.shared = Some((first, with));
        self
    }

    /// The row that holds the values of a row.
    #[inline]
    fn key(&self, row: usize) -> usize {
        match &self.shared {
            Some((first, with)) if row >= *first => with[row - first] as usize,
            _ => row,
        }
    }

    /// The maximum number of rows it holds.
    pub(crate) fn capacity(&self) -> usize {
        self.most
    }

    /// Makes all these rows available; `fill` computes the missing ones. There must be no more rows than the cache
    /// holds.
    pub(crate) fn prepare(&mut self, rows: &[usize], fill: impl FnOnce(&[usize], Vec<&mut [T]>)) {
        self.now += 1;
        self.asked += rows.len() as u64;
        let mut missing = Vec::new();
        let mut keys: Vec<usize> = rows.iter().map(|&row| self.key(row)).collect();
        if self.shared.as_ref().is_some_and(|(_, with)| !with.is_empty()) {
            keys.sort_unstable();
            keys.dedup();
        }
        for row in keys {
            match self.slot_of[row] {
                Some(slot) => self.slots[slot as usize].last_used = self.now,
                None => missing.push(row),
            }
        }
        if missing.is_empty() {
            return;
        }
        self.computed += missing.len() as u64;
        let fresh = missing.len().min(self.most.saturating_sub(self.slots.len()));
        let mut free: Vec<u32> = (self.slots.len()..self.slots.len() + fresh).map(|slot| slot as u32).collect();
        if free.len() < missing.len() {
            let mut old: Vec<(u64, u32)> = (0u32..)
                .zip(&self.slots)
                .filter(|(_, slot)| slot.last_used < self.now)
                .map(|(at, slot)| (slot.last_used, at))
                .collect();
            let wanted = (missing.len() - free.len()).min(old.len());
            if wanted > 0 && wanted < old.len() {
                old.select_nth_unstable(wanted - 1);
            }
            let mut old: Vec<u32> = old[..wanted].iter().map(|&(_, at)| at).collect();
            old.sort_unstable();
            free.extend(old);
        }
        let length = self.length;
        self.slots.extend((0..fresh).map(|_| Slot {
            owner: usize::MAX,
            last_used: 0,
            values: vec![T::ZERO; length].into_boxed_slice(),
        }));
        for (&row, &slot) in missing.iter().zip(&free) {
            let place = &mut self.slots[slot as usize];
            if let Some(before) = self.slot_of.get_mut(place.owner) {
                *before = None;
            }
            (place.owner, place.last_used) = (row, self.now);
            self.slot_of[row] = Some(slot);
        }
        // The rows to be filled, in the order of `missing`.
        let mut targets: Vec<Option<&mut [T]>> = missing.iter().map(|_| None).collect();
        let mut place: Vec<(u32, usize)> = free.iter().copied().zip(0..).collect();
        place.sort_unstable();
        let mut wanted = place.into_iter().peekable();
        for (at, slot) in (0u32..).zip(&mut self.slots) {
            if let Some((_, target)) = wanted.next_if(|next| next.0 == at) {
                targets[target] = Some(&mut slot.values);
            }
        }
        fill(&missing, targets.into_iter().flatten().collect());
    }

    /// A row that was prepared.
    pub(crate) fn row(&self, row: usize) -> &[T] {
        self.slot_of[self.key(row)].map_or(&[], |slot| &self.slots[slot as usize].values)
    }

    /// Drops all rows and releases their memory.
    pub(crate) fn clear(&mut self) {
        self.slots = Vec::new();
        self.slot_of.fill(None);
    }

    /// Rows requested, and how many of these were computed.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.asked, self.computed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_until_others_need_their_room() {
        let mut cache = RowCache::new(10, 2, 3 * 8, 1);
        assert_eq!(cache.most, 3);
        let ask = |cache: &mut RowCache<f32>, rows: &[usize]| {
            let mut filled = Vec::new();
            cache.prepare(rows, |missing, outs| {
                filled.extend_from_slice(missing);
                assert_eq!(outs.len(), missing.len());
                for (&row, out) in missing.iter().zip(outs) {
                    out.fill(row as f32);
                }
            });
            for &row in rows {
                assert_eq!(cache.row(row), [row as f32; 2]);
            }
            filled
        };
        assert_eq!(ask(&mut cache, &[4, 1]), [4, 1]);
        assert_eq!(ask(&mut cache, &[1, 7]), [7]);
        assert_eq!(ask(&mut cache, &[7, 1]), [0usize; 0]);
        // Row 4 is the least recently used.
        assert_eq!(ask(&mut cache, &[9, 7]), [9]);
        assert_eq!(ask(&mut cache, &[1]), [0usize; 0]);
        assert_eq!(ask(&mut cache, &[4, 2, 9]), [4, 2]);
        assert_eq!(cache.counts(), (12, 6));
        // A budget of one byte still holds what is needed at once.
        assert_eq!(RowCache::<f32>::new(10, 100, 1, 2).most, 2);
    }

    #[test]
    fn rows_that_share_values_are_computed_once() {
        let mut cache: RowCache<f32> = RowCache::new(5, 1, 1000, 1).sharing(3, vec![2, 0].into());
        let mut filled = Vec::new();
        let mut prepare = |cache: &mut RowCache<f32>, rows: &[usize]| {
            cache.prepare(rows, |missing, outs| {
                missing.iter().zip(outs).for_each(|(&row, out)| out[0] = row as f32);
                filled.extend_from_slice(missing);
            });
        };
        prepare(&mut cache, &[3, 2, 1]);
        prepare(&mut cache, &[4, 0, 3]);
        assert_eq!((cache.row(3), cache.row(4), cache.row(0)), (&[2.0][..], &[0.0][..], &[0.0][..]));
        assert_eq!(filled, [1, 2, 0]);
    }
}
