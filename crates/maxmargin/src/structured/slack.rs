//! Slack rescaling: an output with a small loss needs a small margin, and only its own share of the slack.
//!
//! ```text
//! max_y loss(y) · (1 + score(y) − score(truth))      instead of      max_y loss(y) + score(y) − score(truth)
//! ```

use super::{Plane, Scores, Structure};
use crate::error::Result;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How the loss of an output enters its constraint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rescale {
    /// It is the margin.
    #[default]
    Margin,
    /// It is what one unit of slack is worth; the margin is 1.
    Slack,
}

impl Rescale {
    /// All choices.
    pub const ALL: [Rescale; 2] = [Rescale::Margin, Rescale::Slack];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Rescale::Margin => "margin",
            Rescale::Slack => "slack",
        }
    }

    /// The structure with this form of constraints.
    pub(crate) fn of(self, structure: Box<dyn Structure>) -> Box<dyn Structure> {
        match self {
            Rescale::Margin => structure,
            Rescale::Slack => Box::new(BySlack(structure)),
        }
    }
}

/// A structure with rescaled slack: the plane of an output is loss · (1 + slope · score).
struct BySlack(Box<dyn Structure>);

impl Structure for BySlack {
    fn examples(&self) -> usize {
        self.0.examples()
    }

    fn rows(&self, example: usize) -> Range<usize> {
        self.0.rows(example)
    }

    fn outputs(&self) -> usize {
        self.0.outputs()
    }

    fn shared(&self) -> usize {
        self.0.shared()
    }

    fn weight(&self, example: usize) -> f64 {
        self.0.weight(example)
    }

    fn largest_loss(&self) -> f64 {
        self.0.largest_loss()
    }

    fn prepare(&self, shared: &[f64]) -> Result<()> {
        self.0.prepare(shared)
    }

    fn most_violated(&self, example: usize, at: Scores<'_>, output: &mut Vec<u32>) -> Result<()> {
        self.0.most_violated_by_slack(example, at, output)
    }

    fn plane(&self, example: usize, output: &[u32], plane: &mut Plane) -> Result<()> {
        self.0.plane(example, output, plane)?;
        let loss = plane.loss;
        plane.rows.iter_mut().chain(&mut plane.shared).for_each(|entry| entry.1 *= loss);
        Ok(())
    }
}
