//! How a long job communicates: it reports [`Event`]s to an [`Observer`] and polls a [`Cancel`] flag.

use crate::error::{Code, Error, Result};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// A flag that asks a job to stop. Solvers and readers poll it at least every 50 ms.
#[derive(Clone, Debug)]
pub struct Cancel {
    state: Arc<AtomicU8>,
    /// The first state that counts as raised.
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
    /// A flag that is not raised.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Asks the job to stop and to return what it has.
    pub fn raise(&self) {
        self.state.fetch_max(RAISED, Ordering::Relaxed);
    }

    /// Asks the job to stop and to discard what it has. Sums may be incomplete, and the job returns an error.
    pub fn abandon(&self) {
        self.state.fetch_max(ABANDONED, Ordering::Relaxed);
    }

    /// The same flag, but raised only when the job is abandoned. It is for the last pass of a job that was asked to
    /// stop and still has to compute its result.
    pub(crate) fn until_abandoned(&self) -> Cancel {
        Cancel { state: Arc::clone(&self.state), from: ABANDONED }
    }

    /// Whether the job was asked to stop.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.state.load(Ordering::Relaxed) >= self.from
    }

    /// Whether the result is discarded, so that its value does not matter.
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.state.load(Ordering::Relaxed) == ABANDONED
    }

    /// Returns an error if the flag is raised. It is for jobs without a partial result.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_raised() { Err(interrupted()) } else { Ok(()) }
    }

    /// Returns an error if the result is discarded, because computing it would take a pass over the data.
    pub(crate) fn check_wanted(&self) -> Result<()> {
        if self.is_abandoned() { Err(interrupted()) } else { Ok(()) }
    }
}

pub(crate) fn interrupted() -> Error {
    Error::new(Code::Interrupted, "interrupted; nothing was written")
}

/// A progress report of a running job.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A solver finished a pass over the data.
    Pass {
        /// Number of passes so far.
        pass: u64,
        /// The primal objective of the best model so far.
        objective: f64,
        /// The best lower bound so far, if the method has one.
        lower_bound: Option<f64>,
        /// That model's weights.
        weights: &'a [f64],
        /// That model's free scalars.
        thresholds: &'a [f64],
        /// The metric on held-out data, if there are any.
        held_out: Option<f64>,
    },
    /// One of several independent problems, the columns of an output code, is solved. They are reported in order.
    Column {
        /// The number of the column.
        column: usize,
        /// Number of columns.
        columns: usize,
        /// Passes over its rows.
        passes: u64,
        /// Its primal objective.
        objective: f64,
        /// The lower bound of that, if the method has one.
        lower_bound: Option<f64>,
        /// Seconds that it took, beside other columns.
        seconds: f64,
    },
    /// The searches for most violated outputs of a run.
    Searches {
        /// Number of searches.
        calls: u64,
        /// The seconds they took, added up over threads.
        seconds: f64,
    },
    /// The rounds of cutting planes of a run, beside the number that their theorem allows.
    Rounds {
        /// Rounds made.
        rounds: u64,
        /// Planes found.
        planes: u64,
        /// The most that the theorem allows: planes with a slack for each example, or rounds with one slack. None if the
        /// run ended without a gap.
        most: Option<f64>,
        /// R², the largest square of the length of the slopes of a plane.
        square: f64,
        /// The largest loss of an output.
        loss: f64,
        /// ε, the gap divided by C and the number of examples.
        accuracy: f64,
    },
    /// The solution meets the tolerance, and polishing to the last digits begins.
    Polishing,
    /// Cross-validation finished a setting on all folds.
    Setting {
        /// The weight of the sum of losses.
        c: f64,
        /// γ of the kernel, if there is one.
        gamma: Option<f64>,
        /// The mean of the metric used for the choice.
        quality: f64,
        /// Seconds that it took.
        seconds: f64,
        /// Settings finished so far.
        done: usize,
        /// Total number of settings.
        total: usize,
    },
    /// A bootstrap finished some of its resamples.
    Resamples {
        /// Resamples finished so far.
        done: usize,
        /// Total number of resamples.
        total: usize,
    },
}

/// Receives events. It can end the job by returning `Break`.
pub trait Observer {
    /// Takes one event.
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()>;
}

/// An observer that ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn report(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
