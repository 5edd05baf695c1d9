//! What a run tells besides its passes: the columns of an output code, searches for most violated outputs, and rounds of
//! cutting planes beside the bound of their theorem.

use crate::format;
use maxmargin::run::Event;
use serde_json::{Value, json};

/// See the top of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// Passes and seconds of each column of an output code.
    pub(crate) columns: Vec<(u64, f64)>,
    /// Number of searches, and the seconds they took on all threads.
    searches: Option<(u64, f64)>,
    rounds: Option<Rounds>,
}

#[derive(Clone, Copy, Debug)]
struct Rounds {
    rounds: u64,
    planes: u64,
    most: Option<f64>,
    square: f64,
    loss: f64,
    accuracy: f64,
}

impl Told {
    /// Keeps what an event tells.
    pub(crate) fn hear(&mut self, event: &Event<'_>) {
        match *event {
            Event::Column { passes, seconds, .. } => self.columns.push((passes, seconds)),
            Event::Searches { calls, seconds } => self.searches = Some((calls, seconds)),
            Event::Rounds { rounds, planes, most, square, loss, accuracy } => {
                self.rounds = Some(Rounds { rounds, planes, most, square, loss, accuracy });
            }
            _ => {}
        }
    }

    /// The sentences about searches and rounds.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let searches = self.searches.map(|(calls, seconds)| {
            let calls =
                format::counted(calls, "search for the most violated output", "searches for the most violated output");
            format!("{calls}, {} in all threads", format::seconds(seconds))
        });
        let rounds = self.rounds.map(|own| {
            let made = format!(
                "{} with {}",
                format::counted(own.rounds, "round", "rounds"),
                format::counted(own.planes, "plane", "planes")
            );
            let number = |value: f64| format::significant(value, 3);
            match own.most {
                Some(most) => format!(
                    "{made}; the theorem on cutting planes allows {} (R² {}, largest loss {}, ε {})",
                    number(most),
                    number(own.square),
                    number(own.loss),
                    format::scientific(own.accuracy, 2)
                ),
                None => made,
            }
        });
        searches.into_iter().chain(rounds).collect()
    }

    /// Adds the numbers to a JSON object that has `seconds`.
    pub(crate) fn add_to(&self, object: &mut Value) {
        if let Some((calls, seconds)) = self.searches {
            object["searches"] = json!(calls);
            object["seconds"]["searches"] = json!(seconds);
        }
        if let Some(own) = self.rounds {
            object["rounds"] = json!({
                "rounds": own.rounds,
                "planes": own.planes,
                "most": own.most,
                "largest_square": own.square,
                "largest_loss": own.loss,
                "accuracy": own.accuracy,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_and_rounds_are_told_in_words_and_in_numbers() {
        let mut told = Told::default();
        assert!(told.sentences().is_empty());
        told.hear(&Event::Searches { calls: 12_345, seconds: 1.3 });
        let (most, accuracy) = (Some(64_000.0), 1e-3);
        told.hear(&Event::Rounds { rounds: 12, planes: 340, most, square: 4.0, loss: 1.0, accuracy });
        assert_eq!(
            told.sentences(),
            [
                "12,345 searches for the most violated output, 1.30 s in all threads",
                "12 rounds with 340 planes; the theorem on cutting planes allows 64,000 (R² 4, largest loss 1, ε 1.00e-3)",
            ]
        );
        let mut object = json!({ "seconds": { "train": 2.0 } });
        told.add_to(&mut object);
        assert_eq!(object["searches"], 12_345);
        assert_eq!(object["seconds"], json!({ "train": 2.0, "searches": 1.3 }));
        assert_eq!(object["rounds"]["most"], 64_000.0);
    }
}
