//! The output about kernels after training, as text and as JSON.

use crate::dialect::Flags;
use crate::format;
use crate::report::Report;
use maxmargin::data::Dataset;
use maxmargin::error::{Code, Result};
use maxmargin::kernel::{Approximation, Kernel, KernelKind};
use maxmargin::memory::check_mapped;
use maxmargin::model::{Mapped, Scorer};
use maxmargin::run::Cancel;
use maxmargin::settings::Settings;
use maxmargin::solve::{Merging, Stop};
use maxmargin::train::{ApproximationLoss, Compared, Trained, approximation_loss};
use maxmargin::wording::render;
use serde_json::{Value, json};

/// Returns an error if the mapped features of the rows do not fit into free memory.
pub(crate) fn check_free_memory(data: &Dataset, settings: &Settings) -> Result<()> {
    crate::machine::free_memory().map_or(Ok(()), |free| check_mapped(data, settings, free))
}

/// A kernel and, if it is approximated, the loss of the approximation.
pub(crate) struct KernelFacts<'a> {
    trained: &'a Trained,
    loss: Option<ApproximationLoss>,
}

impl KernelFacts<'_> {
    /// Measures the loss of a feature map on the training data. An interrupt skips this, because the model is already
    /// complete.
    pub(crate) fn of<'a>(trained: &'a Trained, data: &Dataset, cancel: &Cancel) -> Result<KernelFacts<'a>> {
        let loss = match trained.stop {
            Stop::Cancelled => None,
            _ => match approximation_loss(&trained.model, data, cancel) {
                Err(error) if error.code() == Code::Interrupted => None,
                loss => loss?,
            },
        };
        Ok(KernelFacts { trained, loss })
    }

    /// `kernel gaussian, gamma 0.05 found on a sample, 11,578 support vectors, 75 % of kernel rows from the cache`, or
    /// `…, by 978 landmarks (nystrom), 22 copies or mixtures of others dropped` and what these lose.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let settings = &self.trained.model.settings.kernel;
        let named = |kernel: &Kernel| format!("kernel {}", format::kernel(kernel, settings.gamma.is_some()));
        let counted = |count: usize| format::counted(count as u64, "support vector", "support vectors");
        match &self.trained.model.scorer {
            // Rows of kernel values have one weight per vector.
            Scorer::Linear { weights, .. } if settings.kind == KernelKind::Precomputed => {
                vec![format!("{}, {}", named(&Kernel::Precomputed), counted(vectors_among(weights)))]
            }
            Scorer::Linear { .. } => Vec::new(),
            Scorer::Expansion(expansion) => {
                let vectors = counted(expansion.count());
                let cache = match self.trained.kernel_rows {
                    Some((asked, computed)) if asked > 0 => {
                        let share = 100.0 * (asked - computed) as f64 / asked as f64;
                        format!(", {share:.0} % of kernel rows from the cache")
                    }
                    _ => String::new(),
                };
                let budget = match settings.budget {
                    Some(budget) => format!(" of a budget of {}", format::count(u64::from(budget))),
                    None => String::new(),
                };
                let first = format!("{}, {vectors}{budget}{cache}", named(&expansion.kernel));
                [first].into_iter().chain(self.trained.merging.as_ref().and_then(about_budget)).collect()
            }
            Scorer::Mapped(Mapped { map, .. }) => {
                let (rows, features) = (self.trained.model.certificate.rows, map.features() as u64);
                let fewer = match settings.approximate {
                    Some(Approximation::Nystrom { landmarks }) if features < u64::from(landmarks) => {
                        let dropped = rows.min(u64::from(landmarks)) - features;
                        let mut parts = Vec::new();
                        if u64::from(landmarks) > rows {
                            parts.push(format!("all {} used", format::counted(rows, "row", "rows")));
                        }
                        if dropped > 0 {
                            let (one, many) = ("copy or combination of others", "copies or combinations of others");
                            parts.push(format!("{} dropped", format::counted(dropped, one, many)));
                        }
                        format!(", {}", parts.join(", "))
                    }
                    _ => String::new(),
                };
                let first = format!("{}, by {}{fewer}", named(&map.kernel()), format::feature_map(map));
                let paired = self.trained.model.certificate.pairs.is_some();
                [first].into_iter().chain(self.loss.as_ref().map(|loss| loss_sentence(loss, paired))).collect()
            }
        }
    }

    /// The same in a report.
    pub(crate) fn report(&self, page: &mut Report) {
        let second = if self.loss.is_some() { "approximation error" } else { "effect of the budget" };
        let names = ["model", second].map(str::to_string);
        let said = self.sentences().into_iter().map(|sentence| sentence.trim().to_string());
        let rows: Vec<(String, String)> = names.into_iter().zip(said).collect();
        if !rows.is_empty() {
            page.facts("Kernel", rows);
        }
    }

    /// The same as JSON; null if there is no kernel.
    pub(crate) fn as_json(&self) -> Value {
        match &self.trained.model.scorer {
            Scorer::Expansion(expansion) => {
                let mut object = json!({ "kernel": expansion.kernel, "vectors": expansion.count() });
                if let Some((asked, computed)) = self.trained.kernel_rows {
                    object["rows"] = json!({ "asked": asked, "computed": computed });
                }
                if let Some(Merging { merged, removed, lost, length }) = self.trained.merging {
                    object["budget"] = json!(self.trained.model.settings.kernel.budget);
                    object["merging"] = json!({ "merged": merged, "removed": removed, "lost": lost, "length": length });
                }
                object
            }
            Scorer::Mapped(Mapped { map, .. }) => json!({
                "kernel": map.kernel(),
                "approximate": self.trained.model.settings.kernel.approximate,
                "mapped_features": map.features(),
                "loss": self.loss.as_ref().map(loss_as_json),
            }),
            Scorer::Linear { weights, .. } if self.trained.model.settings.kernel.kind == KernelKind::Precomputed => {
                json!({ "kernel": Kernel::Precomputed, "vectors": vectors_among(weights) })
            }
            Scorer::Linear { .. } => Value::Null,
        }
    }
}

/// `merged 8,718 vectors: this changed the function by about 23; its norm is 40`, if a budget had an effect.
fn about_budget(merging: &Merging) -> Option<String> {
    let Merging { merged, removed, lost, length } = *merging;
    let times = |count: u64| format::counted(count, "vector", "vectors");
    let what = match (merged, removed) {
        (0, 0) => return None,
        (merged, 0) => format!("merged {}", times(merged)),
        (0, removed) => format!("left out {}", times(removed)),
        (merged, removed) => format!("merged {} and left out {}", times(merged), format::count(removed)),
    };
    let (lost, length) = (format::significant(lost, 2), format::significant(length, 2));
    Some(format!("{what}: this changed the function by about {lost}; its norm is {length}"))
}

/// Number of support vectors among the columns of kernel values.
fn vectors_among(weights: &[f64]) -> usize {
    weights.iter().filter(|weight| **weight != 0.0).count()
}

/// `kernel values off by 0.0125; accuracy 0.8445 where the exact kernel has 0.8450 (−0.0005), learned from 2,000 rows`
fn loss_sentence(loss: &ApproximationLoss, paired: bool) -> String {
    let off = loss.kernel_error.map_or("kernel values not compared".to_string(), |error| {
        format!("kernel values off by {}", format::significant(error, 3))
    });
    let compared = match &loss.compared {
        Ok(Compared { metric, exact, approximate, learned, judged }) => {
            let sign = if approximate < exact { "−" } else { "+" };
            let (one, many) = if paired { ("pair", "pairs") } else { ("row", "rows") };
            format!(
                "{metric} {} where the exact kernel has {} ({sign}{}), both learned from {} and judged on {}",
                format::fixed(*approximate, 4),
                format::fixed(*exact, 4),
                format::fixed((approximate - exact).abs(), 4),
                format::counted(*learned as u64, one, many),
                format::count(*judged as u64),
            )
        }
        Err(why) => format!("accuracy not compared: {}", render(why, &Flags)),
    };
    format!("   {off}; {compared}")
}

fn loss_as_json(loss: &ApproximationLoss) -> Value {
    let mut object = json!({ "kernel_error": loss.kernel_error });
    match &loss.compared {
        Ok(Compared { metric, exact, approximate, learned, judged }) => {
            object["compared"] = json!({
                "metric": metric.to_string(),
                "exact": exact,
                "approximate": approximate,
                "difference": approximate - exact,
                "learned": learned,
                "judged": judged,
            });
        }
        Err(why) => object["not_compared"] = json!(render(why, &Flags)),
    }
    object
}
