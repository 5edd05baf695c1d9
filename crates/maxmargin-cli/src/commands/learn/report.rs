//! What `learn` says: lines of progress, the summary, and the object of `--json`.

use crate::console::Console;
use crate::format;
use maxmargin::online::{Aggression, Measured, Progress};
use maxmargin::stream::Learner;
use serde_json::{Map, Value as Json, json};
use std::time::Instant;

/// The number of examples at the first line of progress. Each further line follows when the number has doubled.
const FIRST_LINE: u64 = 1000;

/// Prints lines of progress, each when the number of examples has doubled.
pub(super) struct Lines<'a> {
    console: &'a Console,
    start: Instant,
    /// Number of examples at which the next line is due.
    next: u64,
    headed: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(console: &'a Console, start: Instant, seen: u64) -> Lines<'a> {
        Lines { console, start, next: (2 * seen).max(FIRST_LINE), headed: false }
    }

    /// The number of examples at which the next line is due.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Prints a line, if one is due.
    pub(super) fn print(&mut self, learner: &dyn Learner) {
        if learner.seen() < self.next {
            return;
        }
        self.next = 2 * learner.seen();
        let progress = learner.progress();
        let (mut head, mut line) =
            (format!("{:>14}", progress.unit.1), format!("{:>14}", format::count(progress.examples)));
        let share = |value: Option<f64>| value.map_or("–".to_string(), |value| format::fixed(value, 4));
        for (place, Measured { name, all, recent }) in progress.metrics.iter().enumerate() {
            let width = name.len().max(7) + 2;
            head += &format!("{name:>width$}");
            line += &format!("{:>width$}", share(*all));
            if recent.is_some() || place == 0 {
                head += &format!("{:>9}", "recent");
                line += &format!("{:>9}", share(*recent));
            }
        }
        if let Some(aggression) = &progress.aggression {
            head += &format!("{:>12}{:>12}", "mistakes", "allowed");
            line += &format!("{:>12}{:>12}", format::count(aggression.mistakes), allowed(aggression));
        }
        if let Some(threshold) = threshold(learner) {
            head += &format!("{:>11}", "threshold");
            line += &format!("{:>11}", format::significant(threshold, 4));
        }
        if !std::mem::replace(&mut self.headed, true) {
            self.console.say(&format!("{head}{:>10}", "time"));
        }
        let time = format::seconds(self.start.elapsed().as_secs_f64());
        self.console.say(&format!("{line} {time:>9}"));
    }
}

/// The most mistakes that the theory allows, rounded down: a mistake is whole.
fn allowed(aggression: &Aggression) -> String {
    aggression.bound.map_or("–".to_string(), |bound| format::count(bound as u64))
}

/// `1,200 batches, 30 mistakes of at most 80 · 128 + 128 rows kept in 1.2 MB`
fn steps(aggression: &Aggression) -> String {
    let mut said = format!(
        "{}, {} of at most {}",
        format::counted(aggression.batches, "batch", "batches"),
        format::counted(aggression.mistakes, "mistake", "mistakes"),
        allowed(aggression),
    );
    if let Some(([positive, negative], bytes)) = aggression.kept {
        said += &format!(" · {positive} + {negative} rows kept in {}", format::bytes(bytes));
    }
    if aggression.contradictions > 0 {
        let batches = format::counted(aggression.contradictions, "batch", "batches");
        said += &format!(" · {batches} left alone, since no weights are right about them");
    }
    said
}

/// The current threshold for ties, if the task has one.
fn threshold(learner: &dyn Learner) -> Option<f64> {
    learner.decoder().ok().and_then(|decoder| decoder.threshold())
}

/// `5,000 pairs, 30 ties · progressive error 0.1234, auc 0.9 ± 0.001 · threshold 1.2`
pub(super) fn summary(learner: &dyn Learner) -> String {
    let progress = learner.progress();
    let examples = format::counted(progress.examples, progress.unit.0, progress.unit.1);
    let Some(compared) = learner.compared() else {
        let metrics = progress.metrics.iter().filter_map(|metric| Some((metric.name, metric.all?)));
        let metrics: Vec<String> = metrics.map(|(name, value)| format!("{name} {}", format::fixed(value, 4))).collect();
        let steps =
            progress.aggression.as_ref().map_or(String::new(), |aggression| format!(" · {}", steps(aggression)));
        return format!("{examples} · progressive {}{steps}", metrics.join(", "));
    };
    format!(
        "{examples}, {} · progressive error {}{} · threshold {}",
        format::counted(compared.ties(), "tie", "ties"),
        format::fixed(compared.error().unwrap_or(0.0), 4),
        compared.auc().map_or(String::new(), |auc| format!(
            ", auc {} ± {}",
            format::fixed(auc.area, 4),
            format::significant(auc.resolution, 1)
        )),
        format::significant(threshold(learner).unwrap_or(0.0), 4),
    )
}

/// How the stream was judged, if it may stop early: `stopped after 30,000 rows, 12 % of mails.txt: …`
pub(super) fn stopping(learner: &dyn Learner, metric: Option<&str>, share: Option<f64>, file: &str) -> Option<String> {
    let judged = learner.judged()?;
    let (one, several) = learner.progress().unit;
    let rows = |count: u64| format::counted(count, one, several);
    let (Some((best, at)), Some(last)) = (judged.best, judged.last) else {
        let every = rows(judged.every);
        return Some(format!("never judged, since there were fewer than {every}: --judge-every sets their number"));
    };
    let (best, last) = (format::fixed(best, 4), format::fixed(last, 4));
    let what = metric.map_or("mean loss".to_string(), |metric| format!("held-out {metric}"));
    if !judged.stopped {
        return Some(format!("read to the end: {what} {last}, best {best} after {}", rows(at)));
    }
    let read = share.map_or(String::new(), |share| format!(", {} % of {file}", format::significant(100.0 * share, 3)));
    let seen = rows(learner.seen());
    Some(format!("stopped after {seen}{read}: {what} {last} is the third no better than {best} after {}", rows(at)))
}

/// The same for `--json`.
pub(super) fn judged(learner: &dyn Learner, metric: Option<&str>) -> Map<String, Json> {
    let mut object = Map::new();
    let Some(judged) = learner.judged() else { return object };
    object.insert("stopped".to_string(), json!(judged.stopped));
    object.insert("judged_by".to_string(), json!(metric.unwrap_or("loss")));
    object.insert("judgements".to_string(), json!(judged.count));
    object.insert("best".to_string(), json!(judged.best.map(|(best, _)| best)));
    object.insert("best_at".to_string(), json!(judged.best.map(|(_, at)| at)));
    object.insert("last".to_string(), json!(judged.last));
    object
}

/// Advice for a stream that says too little.
pub(super) fn advice(learner: &dyn Learner) -> Option<&'static str> {
    if let Some(aggression) = learner.progress().aggression {
        return (aggression.batches == 0).then_some(
            "   rows of one class came alone, or of weight zero: the weights were never changed, and have no meaning",
        );
    }
    let compared = learner.compared()?;
    if compared.ties() == 0 {
        Some("   no ties were seen: the threshold has no meaning")
    } else if compared.ties() == compared.pairs() {
        Some("   only ties were seen: the weights have no meaning")
    } else {
        None
    }
}

/// What `--json` says about the stream.
pub(super) fn object(learner: &dyn Learner) -> Map<String, Json> {
    let progress = learner.progress();
    let mut object = Map::new();
    let Progress { unit, examples, metrics, .. } = &progress;
    object.insert(unit.1.to_string(), json!(examples));
    object.insert("features".to_string(), json!(learner.features()));
    for Measured { name, all, recent } in metrics {
        object.insert(name.to_string(), json!(all));
        if recent.is_some() {
            object.insert(format!("recent_{name}"), json!(recent));
        }
    }
    if let Some(aggression) = &progress.aggression {
        object.insert("batches".to_string(), json!(aggression.batches));
        object.insert("mistakes".to_string(), json!(aggression.mistakes));
        object.insert("mistake_bound".to_string(), json!(aggression.bound));
        object.insert("contradictions".to_string(), json!(aggression.contradictions));
        if let Some((rows, bytes)) = aggression.kept {
            object.insert("rows_kept".to_string(), json!(rows));
            object.insert("bytes_kept".to_string(), json!(bytes));
        }
    }
    if let Some(compared) = learner.compared() {
        object.insert("ties".to_string(), json!(compared.ties()));
        object.insert("threshold".to_string(), json!(threshold(learner)));
        object.insert("recent_error".to_string(), json!(compared.recent_error()));
        object.insert("auc_resolution".to_string(), json!(compared.auc().map(|auc| auc.resolution)));
        object.insert("confusion".to_string(), json!(compared.confusion()));
    }
    object
}
