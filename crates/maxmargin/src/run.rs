//! How a long job talks to its surroundings: it reports [`Event`]s to an [`Observer`] and polls a [`Cancel`] flag.

use crate::error::{Code, Error, Result};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// A flag that asks a job to stop. Solvers and readers poll it at least every 50 ms.
#[derive(Clone, Debug)]
pub struct Cancel {
    state: Arc<AtomicU8>,
    /// From which state on the flag counts as raised.
    from: u8,
}

const RAISED: u8 = 1;
const ABANDONED: u8 = 2;

impl Default for Cancel {
    fn default() -> Cancel {
        Cancel { state: Arc::default(), from: RAISED }
    }
}

impl Cancel {
    /// A flag nobody has raised.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Asks the job to stop and to state what it has.
    pub fn raise(&self) {
        self.state.fetch_max(RAISED, Ordering::Relaxed);
    }

    /// Asks the job to stop, and nobody wants what it has: sums end anywhere, and it ends in an error.
    pub fn abandon(&self) {
        self.state.fetch_max(ABANDONED, Ordering::Relaxed);
    }

    /// The same flag, which counts as raised only once the job is abandoned: for the last pass of a job that was asked to stop
    /// and has to state what it has.
    pub(crate) fn until_abandoned(&self) -> Cancel {
        Cancel { state: Arc::clone(&self.state), from: ABANDONED }
    }

    /// Whether somebody asked.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.state.load(Ordering::Relaxed) >= self.from
    }

    /// Whether nobody wants what the job has: then it may be anything.
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.state.load(Ordering::Relaxed) == ABANDONED
    }

    /// An error once the flag is raised, for jobs that have nothing to keep.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_raised() { Err(interrupted()) } else { Ok(()) }
    }

    /// An error once nobody wants what the job has: to state it would take a pass over the data.
    pub(crate) fn check_wanted(&self) -> Result<()> {
        if self.is_abandoned() { Err(interrupted()) } else { Ok(()) }
    }
}

fn interrupted() -> Error {
    Error::new(Code::Interrupted, "interrupted; nothing was written")
}

/// Something worth telling while a job runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A solver finished a pass over the data.
    Pass {
        /// Passes so far.
        pass: u64,
        /// The primal objective of the best model so far.
        objective: f64,
        /// The best lower bound so far, where the method has one.
        lower_bound: Option<f64>,
        /// That model's weights.
        weights: &'a [f64],
        /// That model's free scalars.
        thresholds: &'a [f64],
        /// The metric on held-out data, where there are any.
        held_out: Option<f64>,
    },
    /// Cross-validation finished a setting on all folds.
    Setting {
        /// The weight of the sum of losses.
        c: f64,
        /// γ of the kernel, where there is one.
        gamma: Option<f64>,
        /// The mean of the metric that decides.
        quality: f64,
        /// Seconds taken.
        seconds: f64,
        /// Settings finished so far.
        done: usize,
        /// Settings in all.
        total: usize,
    },
    /// A bootstrap finished some of its resamples.
    Resamples {
        /// Resamples finished so far.
        done: usize,
        /// Resamples in all.
        total: usize,
    },
}

/// Receives events; may end the job by breaking.
pub trait Observer {
    /// Takes one event.
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()>;
}

/// An observer that does not care.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn report(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
