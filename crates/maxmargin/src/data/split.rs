//! x
/// x
pub fn folds() {}
/// x
pub fn holdout() {}
