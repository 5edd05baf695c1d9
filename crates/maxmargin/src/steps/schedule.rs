//! The length of steps, and the weight of each iterate in the average.

use crate::wish::Schedule;

/// Which of the iterates make the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Averaging {
    /// The last one.
    Last,
    /// The mean of all from this step on.
    From(u64),
    /// The mean of all with weights that rise like t: for strongly convex problems this avoids the logarithm in the
    /// rate of the plain mean (Lacoste-Julien, Schmidt & Bach, A simpler approach to obtaining an O(1/t) convergence
    /// rate for the projected stochastic subgradient method, 2012).
    Rising,
    /// The mean of all with weights that rise like t³, for streams: late iterates count more, and the influence of the
    /// first ones falls like t⁻³ (Shamir and Zhang, Stochastic gradient descent for non-smooth optimization, ICML 2013).
    Late,
}

impl Averaging {
    /// The weight of the iterate after step t in the average with the iterates before it; none if there is no average.
    pub(crate) fn weight(self, t: u64) -> Option<f64> {
        match self {
            Averaging::Last => None,
            Averaging::From(start) => Some(1.0 / (1 + t.saturating_sub(start)) as f64),
            Averaging::Rising => Some(2.0 / (t + 2) as f64),
            Averaging::Late => Some(4.0 / (t as f64 + 4.0)),
        }
    }
}

/// A schedule with its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    pub(crate) schedule: Schedule,
    pub(crate) rate: f64,
    pub(crate) lambda: f64,
    /// Whether the iterates are averaged, which allows longer steps.
    pub(crate) averaged: bool,
    /// The maximum length of a step.
    pub(crate) longest: f64,
}

impl Rates {
    /// The length of step t, counted from 0.
    #[inline]
    pub(crate) fn at(&self, t: u64) -> f64 {
        let t = t as f64;
        let rate = match self.schedule {
            Schedule::Bottou => {
                let fall = 1.0 + self.lambda * self.rate * t;
                // The power ¾ by two square roots, which cost a tenth of a general power.
                self.rate / if self.averaged { fall.sqrt() * fall.sqrt().sqrt() } else { fall }
            }
            Schedule::InverseSquareRoot => self.rate / (t + 1.0).sqrt(),
            Schedule::Inverse => self.rate / (t + 1.0),
            Schedule::Constant => self.rate,
        };
        rate.min(self.longest)
    }
}
