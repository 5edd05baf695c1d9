//! x
/// x
pub struct Scale;
/// x
pub struct Scaling;
