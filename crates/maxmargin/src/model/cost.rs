//! The mean cost of the classes that a model with a cost matrix predicts.

use super::Model;
use crate::data::Dataset;
use crate::error::Result;
use crate::settings::TaskSettings;

impl Model {
    /// The mean cost of the predicted classes by its cost matrix, over the rows whose label it knows,
    /// weighted. `None` if it has no cost matrix, or if no such row has a weight.
    pub fn mean_cost(&self, data: &Dataset) -> Result<Option<f64>> {
        let (TaskSettings::Classify(task), Some(labels)) = (&self.settings.task, self.decoder.labels()) else {
            return Ok(None);
        };
        let Some(matrix) = &task.cost_matrix else { return Ok(None) };
        let (costs, truth, predicted) =
            (matrix.of_classes(labels)?, labels.known_codes(data.targets())?, self.predict(data)?);
        let (mut sum, mut total) = (0.0, 0.0);
        for (row, own) in truth.iter().enumerate() {
            if let (Some(own), Some(class)) = (own, predicted.class(row)) {
                let weight = data.weights().map_or(1.0, |weights| weights[row]);
                sum += weight * costs[*own as usize * labels.len() + class];
                total += weight;
            }
        }
        Ok((total > 0.0).then(|| sum / total))
    }
}
