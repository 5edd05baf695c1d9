//! The best sequence of tags of a first-order chain, by the algorithm of Viterbi.
//!
//! ```text
//! max over y   start[y_1] + Σ_t (score_t[y_t] + bias[y_t] + loss_t[y_t]) + Σ_t transition[y_t, y_t+1] + end[y_T]
//! ```
//! The loss of a tag is what training adds where it is not the true one. Two times the tags in numbers of additions and
//! comparisons per tag and row, in a loop over the next tags that the compiler turns into vector instructions. The best
//! last tag of each step is found on the way back, so that the loop keeps values alone. Of equal sequences, the one with
//! the lower tags wins, looking from the end.

use crate::data::row_loops::for_this_machine;

/// Where the weights of a chain stand among its shared scores: a bias of each tag, then the weights of being first, then of
/// being last, then those of transitions, from each tag to each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    /// Number of tags.
    pub(crate) tags: usize,
}

/// Tags that a step of the loop takes together.
const LANES: usize = 8;

impl Chain {
    /// Number of shared scores.
    pub(crate) fn shared(self) -> usize {
        self.tags * (self.tags + 3)
    }

    /// The place of the bias of a tag.
    pub(crate) fn bias(self, tag: usize) -> usize {
        tag
    }

    /// The place of the weight of being the first tag.
    pub(crate) fn start(self, tag: usize) -> usize {
        self.tags + tag
    }

    /// The place of the weight of being the last tag.
    pub(crate) fn end(self, tag: usize) -> usize {
        2 * self.tags + tag
    }

    /// The place of the weight of one tag after another.
    pub(crate) fn transition(self, from: usize, to: usize) -> usize {
        3 * self.tags + from * self.tags + to
    }

    /// Writes the tags with the largest sum. `wrong` is the true tags, and what each other tag gains.
    pub(crate) fn best(self, scores: &[f64], shared: &[f64], wrong: Option<(&[u32], f64)>, best: &mut Vec<u32>) {
        let tags = self.tags;
        let length = scores.len() / tags.max(1);
        best.clear();
        if length == 0 {
            return;
        }
        let stride = tags.next_multiple_of(LANES);
        let mut transitions = vec![f64::NEG_INFINITY; tags * stride];
        for (from, row) in transitions.chunks_exact_mut(stride).enumerate() {
            row[..tags].copy_from_slice(&shared[self.transition(from, 0)..][..tags]);
        }
        let mut values = vec![f64::NEG_INFINITY; length * stride];
        let bias = &shared[..tags];
        for (row, (own, scores)) in values.chunks_exact_mut(stride).zip(scores.chunks_exact(tags)).enumerate() {
            own.iter_mut().zip(scores.iter().zip(bias)).for_each(|(own, (score, bias))| *own = score + bias);
            if let Some((truth, loss)) = wrong {
                let right = truth[row] as usize;
                let kept = own[right];
                own[..tags].iter_mut().for_each(|own| *own += loss);
                own[right] = kept;
            }
        }
        let starts = &shared[self.start(0)..][..tags];
        values.iter_mut().zip(starts).for_each(|(own, start)| *own += start);
        let (mut before, mut rest) = values.split_at_mut(stride);
        while !rest.is_empty() {
            let (own, after) = rest.split_at_mut(stride);
            step(before, &transitions, own);
            (before, rest) = (own, after);
        }
        let ends = &shared[self.end(0)..][..tags];
        let last = values.len() - stride;
        let mut tag = first_largest((0..tags).map(|tag| values[last + tag] + ends[tag]));
        best.resize(length, 0);
        for row in (0..length).rev() {
            best[row] = tag as u32;
            if row > 0 {
                let before = &values[(row - 1) * stride..][..tags];
                tag = first_largest((0..tags).map(|from| before[from] + transitions[from * stride + tag]));
            }
        }
    }
}

/// The place of the largest number, the first of equal ones.
fn first_largest(numbers: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (place, number) in numbers.enumerate() {
        if number > best.1 {
            best = (place, number);
        }
    }
    best.0
}

for_this_machine! {
    /// Adds to the value of each tag the largest one of the tags before it, with the weight of the transition.
    fn step[](before: &[f64], transitions: &[f64], own: &mut [f64]) -> () = step_plainly
}

#[inline(always)]
fn step_plainly(before: &[f64], transitions: &[f64], own: &mut [f64]) {
    let stride = own.len();
    for (place, own) in own.chunks_exact_mut(LANES).enumerate() {
        let mut best = [f64::NEG_INFINITY; LANES];
        for (row, &value) in transitions.chunks_exact(stride).zip(before) {
            let weights = &row[place * LANES..][..LANES];
            for lane in 0..LANES {
                let sum = value + weights[lane];
                best[lane] = if sum > best[lane] { sum } else { best[lane] };
            }
        }
        own.iter_mut().zip(best).for_each(|(own, best)| *own += best);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The sum of a sequence, by the formula.
    fn sum(chain: Chain, scores: &[f64], shared: &[f64], wrong: Option<(&[u32], f64)>, own: &[u32]) -> f64 {
        let own: Vec<usize> = own.iter().map(|&tag| tag as usize).collect();
        let mut sum = shared[chain.start(own[0])] + shared[chain.end(own[own.len() - 1])];
        for (row, &tag) in own.iter().enumerate() {
            sum += scores[row * chain.tags + tag] + shared[chain.bias(tag)];
            if let Some((truth, loss)) = wrong {
                sum += if truth[row] as usize == tag { 0.0 } else { loss };
            }
        }
        sum + own.windows(2).map(|pair| shared[chain.transition(pair[0], pair[1])]).sum::<f64>()
    }

    #[test]
    fn no_other_sequence_of_tags_has_a_larger_sum() {
        let mut random = Random::new(11, 1, 0);
        let mut best = Vec::new();
        for case in 0..4000 {
            let tags = 1 + random.below(9) as usize;
            let most: usize = if tags > 4 { 3 } else { 5 };
            let length = 1 + random.below(most as u64) as usize;
            let chain = Chain { tags };
            // Whole numbers in every other case, so that many sequences are equal.
            let round = |number: f64| if case % 2 == 0 { number.round() } else { number };
            let scores: Vec<f64> = (0..length * tags).map(|_| round(2.0 * random.normal())).collect();
            let shared: Vec<f64> = (0..chain.shared()).map(|_| round(random.normal())).collect();
            let truth: Vec<u32> = (0..length).map(|_| random.below(tags as u64) as u32).collect();
            let wrong = (case % 3 > 0).then_some((&truth[..], 1.0 / (1 + case % 4) as f64));
            chain.best(&scores, &shared, wrong, &mut best);
            let found = sum(chain, &scores, &shared, wrong, &best);
            let mut other = vec![0u32; length];
            'all: loop {
                let own = sum(chain, &scores, &shared, wrong, &other);
                assert!(own <= found + 1e-12 * (1.0 + found.abs()), "{case}: {own} {found}");
                let Some(place) = other.iter().rposition(|tag| (*tag as usize) + 1 < tags) else { break 'all };
                other[place] += 1;
                other[place + 1..].fill(0);
            }
        }
    }

    #[test]
    fn scores_that_are_no_numbers_do_not_stop_it() {
        let chain = Chain { tags: 3 };
        let mut best = Vec::new();
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            chain.best(&[odd; 12], &vec![odd; chain.shared()], None, &mut best);
            assert_eq!(best.len(), 4);
        }
        chain.best(&[], &vec![0.0; chain.shared()], None, &mut best);
        assert!(best.is_empty());
    }
}
