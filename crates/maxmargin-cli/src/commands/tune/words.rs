//! The output about compared settings: a table for people, an object for JSON, and warnings.

use crate::console::Console;
use crate::format;
use maxmargin::error::Result;
use maxmargin::select::{Edge, Row, Tuned};
use maxmargin::settings::Task;
use maxmargin::train::Trained;
use serde_json::{Value, json};

/// What the user should know before using the result.
pub(super) fn warnings(tuned: &Tuned, chosen: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    let c = |row: usize| format::significant(tuned.rows[row].c, 4);
    match tuned.edge(tuned.best) {
        Some(Edge::Highest) => warnings.push(format!(
            "the best C is the largest that was tried: a larger one may be better, try --grid {}",
            shifted(tuned, tuned.best, 0.1)
        )),
        Some(Edge::Lowest) => warnings.push(format!(
            "the best C is the smallest that was tried: a smaller one may be better, try --grid {}",
            shifted(tuned, tuned.best, 10.0)
        )),
        None => {}
    }
    if chosen != tuned.best && tuned.edge(chosen) == Some(Edge::Lowest) {
        warnings.push(format!(
            "C = {} is the smallest that was tried, and is within one standard error of the best",
            c(chosen)
        ));
    }
    let widths = tuned.widths();
    let width = tuned.rows[tuned.best].settings.kernel.gamma;
    if let (Some(low), Some(high), Some(gamma)) = (widths.first(), widths.last(), width) {
        if gamma <= *low {
            warnings.push(format!(
                "the best gamma is the smallest that was tried: try --gamma-grid {:.0e}:{:.0e}:5",
                gamma / 100.0,
                gamma * 10.0
            ));
        } else if gamma >= *high {
            warnings.push(format!(
                "the best gamma is the largest that was tried: try --gamma-grid {:.0e}:{:.0e}:5",
                gamma / 10.0,
                gamma * 100.0
            ));
        }
    }
    let slow = tuned.rows.iter().filter(|row| row.gap.is_some() && !row.converged).count() as u64;
    if slow > 0 {
        warnings.push(format!(
            "{} did not converge, so their models may not be optimal: try a larger --max-passes, --scale standard or \
             smaller values of C",
            format::counted(slow, "setting", "settings")
        ));
    }
    warnings
}

/// A grid beyond one end of the tried values: from `within` times the value at the end, a factor of a thousand
/// outwards.
fn shifted(tuned: &Tuned, end: usize, within: f64) -> String {
    let inside = tuned.rows[end].c * within;
    let outside = if within < 1.0 { inside * 1e4 } else { inside * 1e-4 };
    let count = if tuned.widths().is_empty() { 20 } else { 6 };
    format!("{:.0e}:{:.0e}:{count}", inside.min(outside), inside.max(outside))
}

/// `0.8476 ± 0.0019`
pub(super) fn value(summary: &maxmargin::select::OverFolds) -> String {
    if summary.folds.len() == 1 {
        return format::fixed(summary.mean, 4);
    }
    format!("{} ± {}", format::fixed(summary.mean, 4), format::fixed(summary.standard_error, 4))
}

/// All settings that were tried.
fn show_table(console: &Console, tuned: &Tuned, chosen: usize) -> Result<()> {
    let widths: Vec<usize> = tuned.metrics.iter().map(|metric| metric.to_string().len().max(15) + 3).collect();
    let wide = !tuned.widths().is_empty();
    let gamma = |text: String| if wide { format!("{text:>10}") } else { String::new() };
    let mut header = format!("  {:>10}{:>11}{}", "C", "lambda", gamma("gamma".to_string()));
    for (metric, width) in tuned.metrics.iter().zip(&widths) {
        header.push_str(&format!("{:>width$}", metric.to_string()));
    }
    console.show(&format!("{header}{:>11}{:>8}{:>11}", "gap", "passes", "time"))?;
    for (at, row) in tuned.rows.iter().enumerate() {
        let mark = match at {
            at if at == chosen => "→",
            at if at == tuned.best => "*",
            _ => " ",
        };
        let width = gamma(row.settings.kernel.gamma.map_or(String::new(), |gamma| format::significant(gamma, 3)));
        let mut line = format!("{mark} {:>10}{:>11}{width}", short(row.c), format::scientific(row.lambda, 2));
        for (summary, width) in row.metrics.iter().zip(&widths) {
            line.push_str(&format!("{:>width$}", value(summary)));
        }
        let gap = row.gap.map_or("–".to_string(), format::gap);
        let gap = if row.converged { gap } else { format!("{gap}!") };
        let seconds = format::seconds(row.seconds);
        let shown = match (row.without_threshold, tuned.was_left(at)) {
            (true, _) => "no threshold".to_string(),
            (_, true) => format!("dropped after {} folds", row.metrics[0].folds.len()),
            (_, false) => bar(tuned, at),
        };
        let line = format!("{line}{gap:>11}{:>8}{seconds:>11}  {shown}", format::count(row.passes));
        console.show(line.trim_end())?;
    }
    Ok(())
}

/// Shows the result. If quiet, only the chosen settings, which the user asked for.
pub(super) fn show(console: &Console, tuned: &Tuned, chosen: usize, warnings: &[String]) -> Result<()> {
    if console.talks() {
        show_table(console, tuned, chosen)?;
    }
    let best = &tuned.rows[tuned.best];
    if best.without_threshold {
        return console.show("no setting learns a threshold for ties");
    }
    let held = |row: &Row| {
        tuned.metrics.iter().zip(&row.metrics).map(|(m, s)| format!("{m} {}", value(s))).collect::<Vec<_>>().join(", ")
    };
    let said = |name: &str, row: &Row| {
        format!("{name}: {}, lambda = {}, {}", named(tuned, row), format::scientific(row.lambda, 2), held(row))
    };
    console.show(&format!("{}, {}", said("best", best), judged_by(tuned)))?;
    let simple = tuned.one_standard_error();
    if simple != tuned.best && (console.talks() || chosen == simple) {
        console.show(&said("within one standard error", &tuned.rows[simple]))?;
    }
    for warning in warnings.iter().filter(|_| console.talks()) {
        console.show(&format!("   {warning}"))?;
    }
    Ok(())
}

/// `over 5 folds`, or that one part was held out.
pub(super) fn judged_by(tuned: &Tuned) -> String {
    match tuned.fold_rows.len() {
        1 => "on held-out data".to_string(),
        folds => format!("over {folds} folds"),
    }
}

/// A value of C in a form that can be typed.
pub(super) fn short(c: f64) -> String {
    if (1e-3..1e5).contains(&c) { c.to_string() } else { format!("{c:e}") }
}

/// `C = 1`, or `C = 1, gamma = 0.05` if there were several widths.
pub(super) fn named(tuned: &Tuned, row: &Row) -> String {
    match row.settings.kernel.gamma.filter(|_| !tuned.widths().is_empty()) {
        Some(gamma) => format!("C = {}, gamma = {}", short(row.c), short(gamma)),
        None => format!("C = {}", short(row.c)),
    }
}

/// A bar for the quality of a row, from the worst to the best of all rows.
fn bar(tuned: &Tuned, at: usize) -> String {
    const WIDTH: f64 = 12.0;
    let mean = |row: &Row| row.metrics.first().map_or(0.0, |summary| summary.mean);
    let best = mean(&tuned.rows[tuned.best]);
    let far = tuned.rows.iter().map(|row| (mean(row) - best).abs()).fold(0.0, f64::max);
    let share = if far > 0.0 { 1.0 - (mean(&tuned.rows[at]) - best).abs() / far } else { 1.0 };
    let eighths = (share * WIDTH * 8.0).round() as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{part}", "█".repeat(eighths / 8))
}

/// The same as JSON.
pub(super) fn object(
    task: Task,
    tuned: &Tuned,
    chosen: usize,
    trained: Option<(&Trained, &str)>,
    seconds: Value,
) -> Value {
    let setting = |at: usize| {
        let (row, first) = (&tuned.rows[at], &tuned.rows[at].metrics[0]);
        let edge = tuned.edge(at).map(|edge| if edge == Edge::Lowest { "lowest" } else { "highest" });
        json!({ "row": at, "c": row.c, "lambda": row.lambda, "gamma": row.settings.kernel.gamma, "mean": first.mean,
            "standard_error": first.standard_error, "edge": edge })
    };
    let rows: Vec<Value> = tuned
        .rows
        .iter()
        .map(|row| {
            let first = &row.metrics[0];
            let metrics: serde_json::Map<String, Value> = tuned
                .metrics
                .iter()
                .zip(&row.metrics)
                .map(|(metric, summary)| {
                    let (mean, standard_error) = (summary.mean, summary.standard_error);
                    (
                        metric.to_string(),
                        json!({ "mean": mean, "standard_error": standard_error, "folds": summary.folds }),
                    )
                })
                .collect();
            json!({
                "c": row.c,
                "lambda": row.lambda,
                "gamma": row.settings.kernel.gamma,
                "mean": first.mean,
                "standard_error": first.standard_error,
                "folds": first.folds,
                "gap": row.gap,
                "passes": row.passes,
                "seconds": row.seconds,
                "converged": row.converged,
                "left": first.folds.len() < tuned.fold_rows.len(),
                "without_threshold": row.without_threshold,
                "metrics": metrics,
            })
        })
        .collect();
    let mut object = json!({
        "task": task.name(),
        "metric": tuned.metrics[0].to_string(),
        "higher_is_better": tuned.metrics[0].higher_is_better(),
        "folds": tuned.fold_rows,
        "best": setting(chosen),
        "best_mean": setting(tuned.best),
        "one_standard_error": setting(tuned.one_standard_error()),
        "rows": rows,
        "seconds": seconds,
    });
    if let Some((trained, output)) = trained {
        let certificate = &trained.model.certificate;
        object["model"] = json!({
            "file": output,
            "solver": trained.solver.name(),
            "objective": certificate.objective,
            "lower_bound": certificate.lower_bound,
            "gap": certificate.gap(),
            "constraints": certificate.constraints,
            "converged": certificate.converged,
            "passes": certificate.passes,
        });
        if let Some(rate) = trained.first_rate {
            object["model"]["rate"] = json!(rate);
        }
    }
    object
}
