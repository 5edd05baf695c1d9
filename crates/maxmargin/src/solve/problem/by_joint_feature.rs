//! [`ByJointFeature`]: structured outputs whose shared scores are the weights of the columns, as for oracles of the user.
//!
//! The data have a row for each example, the joint feature of its right output, so that their hash tells examples apart. To
//! the solvers this is a structure over rows without columns, see [`ByOracle`]: here the two views are exchanged.

use super::{ByOracle, Meaning, Problem, ProblemShape, Run, Stated, Values, weights_of};
use crate::certificate::Scorer;
use crate::data::{Dense, Design, Matrix, Scale, Scaling};
use crate::error::{Code, Error, Result};
use crate::run::{Cancel, Event, Observer};
use crate::settings::Settings;
use crate::solve::{CurvedRisk, Machine, Referee, Sampled, Solution, Start};
use crate::structured::Structure;
use crate::task::{Abilities, Intercept, LearningTask};
use std::ops::ControlFlow;

/// See the top of the file.
pub struct ByJointFeature {
    inner: ByOracle,
    weights: usize,
}

impl ByJointFeature {
    /// A problem with C = 1. `unit` is what one example is called, in words.
    pub fn new(structure: Box<dyn Structure>, unit: &'static str, meaning: Meaning) -> ByJointFeature {
        ByJointFeature { weights: structure.shared(), inner: ByOracle::new(structure, unit, meaning) }
    }

    /// Refuses settings that change columns: the searches know nothing of them.
    pub fn check(settings: &Settings) -> Result<()> {
        let refuse = |what: &str, help: &str| {
            Err(Error::new(Code::Unsupported, format!("{what} does not apply to the joint features of an oracle"))
                .help(help))
        };
        if settings.scale != Scale::None {
            return refuse("⟦scale⟧", "leave ⟦scale⟧ out, and scale the features in the oracle");
        }
        if settings.kernel != Default::default() {
            return refuse("⟦kernel⟧", "leave ⟦kernel⟧ out, and map the features in the oracle");
        }
        Ok(())
    }

    /// The rows as the inner problem sees them: without columns.
    fn rows(&self, design: &Design) -> Result<Design> {
        if design.cols() != self.weights {
            let message = format!("{} columns stand for joint features of length {}", design.cols(), self.weights);
            return Err(Error::new(Code::Internal, message));
        }
        Scaling::default().apply(&Matrix::DenseF64(Dense::new(Vec::new(), design.rows(), 0)?), None)
    }
}

/// Reports shared scores as weights.
struct Exchanging<'a>(&'a mut dyn Observer);

impl Observer for Exchanging<'_> {
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let mut event = event.clone();
        if let Event::Pass { weights, thresholds, .. } = &mut event {
            *weights = std::mem::take(thresholds);
        }
        self.0.report(&event)
    }
}

impl Problem for ByJointFeature {
    fn task(&self) -> &dyn LearningTask {
        self.inner.task()
    }

    fn task_mut(&mut self) -> &mut dyn LearningTask {
        self.inner.task_mut()
    }

    fn abilities(&self) -> Abilities {
        self.inner.abilities()
    }

    fn rule(&self) -> Intercept {
        Intercept::None
    }

    fn shape(&self) -> ProblemShape {
        ProblemShape { outputs: 1, free: 0, ..self.inner.shape() }
    }

    fn solve(&self, run: &mut Run<'_>) -> Result<Solution> {
        let rows = self.rows(run.design)?;
        let start = run.start.map(|start| {
            let Start { weights, outputs, cuts, .. } = start.clone();
            Start { thresholds: weights, outputs, cuts, ..Start::default() }
        });
        let measure = run.referee.map(|referee| move |_: &[f64], shared: &[f64]| (referee.measure)(shared, &[]));
        let referee = run.referee.zip(measure.as_ref()).map(|(referee, measure)| Referee { measure, ..*referee });
        let mut observer = Exchanging(&mut *run.observer);
        let mut inner = Run {
            data: run.data,
            design: &rows,
            settings: run.settings,
            solver: run.solver,
            start: start.as_ref(),
            for_model: run.for_model,
            polishes: run.polishes,
            machine: None,
            referee: referee.as_ref(),
            observer: &mut observer,
            cancel: run.cancel,
        };
        let solution = self.inner.solve(&mut inner)?;
        let solver = inner.solver;
        run.solver = solver;
        Ok(Solution { weights: solution.thresholds, thresholds: Vec::new(), ..solution })
    }

    fn certify(&self, stated: &Stated<'_>, design: &Design, settings: &Settings, cancel: &Cancel) -> Result<Values> {
        let weights = weights_of(stated.scorer)?;
        let none = Scorer::Linear { weights: Vec::new(), outputs: 1, intercepts: Vec::new() };
        let stated = Stated { scorer: &none, free: weights, ..*stated };
        self.inner.certify(&stated, &self.rows(design)?, settings, cancel)
    }

    fn risk<'a>(&'a self, design: &'a Design, cancel: &'a Cancel) -> Result<Box<dyn CurvedRisk + 'a>> {
        self.inner.risk(design, cancel)
    }

    fn machine(&self, design: &Design, settings: &Settings, bytes: u64, cancel: &Cancel) -> Result<Machine> {
        self.inner.machine(design, settings, bytes, cancel)
    }

    fn kernel_scores(&self, machine: &Machine, solution: &Solution, cancel: &Cancel) -> Vec<f64> {
        self.inner.kernel_scores(machine, solution, cancel)
    }

    fn sampled(&self, settings: &Settings) -> Result<Box<dyn Sampled + '_>> {
        self.inner.sampled(settings)
    }
}
