//! "Did you mean …?": the known name nearest to a mistyped one.

/// The number of letters to insert, drop, replace or swap with a neighbour to get from one word to the other.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// The candidate nearest to `word`, if it is near enough.
pub fn nearest<S: AsRef<str>>(word: &str, candidates: impl IntoIterator<Item = S>) -> Option<String> {
    // Longer names are not misspelt versions of known ones, and the cost of the distance is the product of the lengths.
    const LONGEST: usize = 64;
    let word = word.to_lowercase();
    let length = word.chars().count();
    candidates
        .into_iter()
        .filter(|candidate| length <= LONGEST && (1..=LONGEST).contains(&candidate.as_ref().chars().count()))
        .map(|candidate| (edit_distance(&word, &candidate.as_ref().to_lowercase()), candidate.as_ref().to_string()))
        .filter(|(distance, candidate)| *distance <= 1 + length.min(candidate.chars().count()) / 3)
        .filter(|(distance, candidate)| *distance < candidate.chars().count())
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("nadcg", "ndacg"), 1);
        assert_eq!(edit_distance("ab", "ba"), 1);
        assert_eq!(nearest("accuracy", ["acuracy", "auc"]).as_deref(), Some("acuracy"));
        assert_eq!(nearest("zzz", ["acuracy", "auc"]), None);
    }
}
