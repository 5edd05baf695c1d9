//! [`Margin`]: whether a margin may be missed.

use serde::{Deserialize, Serialize};

/// Whether a margin may be missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Margin {
    /// At a cost.
    #[default]
    Soft,
    /// Never: the smallest weights that reach every margin, or an error that names contradicting rows. There is neither
    /// a loss nor a weight of the loss.
    Hard,
}

impl Margin {
    /// Both.
    pub const ALL: [Margin; 2] = [Margin::Soft, Margin::Hard];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Margin::Soft => "soft",
            Margin::Hard => "hard",
        }
    }
}
