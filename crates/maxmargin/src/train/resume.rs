//! Continuing from a stored model of structured outputs: its outputs with multipliers are a feasible point of the same
//! problem with another C, and the points of its planes are good for planes there.

use crate::data::Dataset;
use crate::error::{Code, Error, Result};
use crate::model::Model;
use crate::settings::{Settings, Solver};
use crate::solve::{Start, Witness};

impl Model {
    /// The start for another run over the same data. Settings may differ in C, the solver, and when the run stops. An error
    /// if the model has no such start.
    pub fn start_for(&self, data: &Dataset, settings: &Settings) -> Result<Start> {
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help.to_string()));
        if !(self.settings.is_own() || self.settings.abilities(false).structured) {
            return bad(
                "only models of structured outputs, such as rankings by their metric, are continued".to_string(),
                "leave ⟦from⟧ out",
            );
        }
        if settings.solver.is_stochastic() || settings.is_hard_margin() || self.settings.is_hard_margin() {
            return bad(
                "stochastic steps and hard margins do not continue from a model".to_string(),
                "leave ⟦from⟧ out, or use ⟦solver=frank-wolfe⟧",
            );
        }
        let (outputs, cuts) = match &self.witness {
            Some(Witness::Outputs(dual)) if settings.solver != Solver::CuttingPlane => (Some(dual.clone()), None),
            Some(Witness::Cuts(cuts)) if matches!(settings.solver, Solver::Auto | Solver::CuttingPlane) => {
                (None, Some(cuts.clone()))
            }
            Some(Witness::Outputs(_) | Witness::Cuts(_)) => {
                return bad(
                    "the model of ⟦from⟧ was trained by planes for all examples, or by planes for each, and the solver \
                     takes the other kind"
                        .to_string(),
                    "leave ⟦solver⟧ out to continue as the model began",
                );
            }
            _ => {
                return bad(
                    "the model of ⟦from⟧ holds no outputs with multipliers, or planes, to continue from".to_string(),
                    "give a model of structured outputs, with its witness",
                );
            }
        };
        if self.settings.task.task() != settings.task.task() {
            return bad(
                format!("the model of ⟦from⟧ is one of `{}`", self.settings.task.name()),
                "give a model of the same task",
            );
        }
        if let Some(name) = self.settings.differs_from(settings)? {
            return bad(
                format!("⟦{name}⟧ is not that of the model to continue"),
                "use the settings of the model: only C, the solver and when to stop may differ",
            );
        }
        if data.rows() as u64 != self.certificate.rows || data.hash()? != self.certificate.data_hash {
            return Err(self.other_data(data).help("give the data that the model was trained on, or leave ⟦from⟧ out"));
        }
        Ok(match settings.expands() {
            true => Start { outputs, ..Start::default() },
            false => {
                let (weights, thresholds) = (self.scorer.numbers().to_vec(), self.free_scalars());
                Start { weights, thresholds, outputs, cuts, ..Start::default() }
            }
        })
    }
}
