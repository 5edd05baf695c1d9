//! The sections of a report about compared settings.

use super::words::{short, value};
use crate::format;
use crate::report::{Axis, Best, HeatMap, LinePlot, Report, Series, Table, Tile, Tone};
use maxmargin::data::Dataset;
use maxmargin::select::{Row, Tuned};

/// The choice, its neighbours, and how it was evaluated.
pub(super) fn sections(
    page: &mut Report,
    tuned: &Tuned,
    chosen: usize,
    data: &Dataset,
    warnings: &[String],
    next: &str,
) {
    let row = &tuned.rows[chosen];
    let (metric, summary) = (tuned.metrics[0].to_string(), &row.metrics[0]);
    let rule = if chosen == tuned.best { "best mean" } else { "within one standard error of the best" };
    let seconds: f64 = tuned.rows.iter().map(|row| row.seconds).sum();
    page.headline(vec![
        Tile::new("C", short(row.c), rule),
        match row.settings.kernel.gamma.filter(|_| !tuned.widths().is_empty()) {
            Some(gamma) => Tile::new("gamma", short(gamma), ""),
            None => Tile::new("lambda", format::scientific(row.lambda, 2), ""),
        },
        Tile::new(
            metric.clone(),
            format::fixed(summary.mean, 4),
            format!("± {}", format::fixed(summary.standard_error, 4)),
        ),
        Tile::new(
            "fits",
            format::count(tuned.rows.iter().map(|row| row.metrics[0].folds.len() as u64).sum()),
            format::seconds(seconds),
        ),
    ]);
    for warning in warnings {
        page.callout(Tone::Warning, "", warning.clone());
    }
    if warnings.is_empty() && tuned.rows.len() > 2 {
        page.callout(Tone::Good, "", "Every fit converged, and the best C lies inside the grid.");
    }
    widths_section(page, tuned);
    path_section(page, tuned, row);
    table_section(page, tuned, chosen);
    facts_section(page, tuned, row, data);
    page.code("Next", next);
}

/// The metrics, the passes and the gap along the path of C.
fn path_section(page: &mut Report, tuned: &Tuned, row: &Row) {
    // If there are several widths, the path of the chosen one is drawn, as far as all folds were evaluated.
    let path: Vec<&Row> = (0..tuned.rows.len())
        .filter(|&at| tuned.rows[at].settings.kernel.gamma == row.settings.kernel.gamma && !tuned.was_left(at))
        .map(|at| &tuned.rows[at])
        .collect();
    let over =
        |value: &dyn Fn(&Row) -> f64| -> Vec<(f64, f64)> { path.iter().map(|row| (row.c, value(row))).collect() };
    let simple = tuned.one_standard_error();
    for (at, metric) in tuned.metrics.iter().enumerate() {
        let band = path.iter().map(|row| &row.metrics[at]).zip(&path);
        let band = band.map(|(s, row)| (row.c, s.mean - s.standard_error, s.mean + s.standard_error)).collect();
        let mut plot = LinePlot::new(Axis::log("C"), Axis::linear(metric.to_string()))
            .series(Series::new("mean", over(&|row| row.metrics[at].mean)).markers().band(band));
        for fold in 0..tuned.fold_rows.len() {
            let points = over(&|row| row.metrics[at].folds[fold]);
            plot = plot.series(Series::new(format!("fold {}", fold + 1), points).faint());
        }
        if tuned.rows[tuned.best].settings.kernel.gamma == row.settings.kernel.gamma {
            plot = plot.mark(tuned.rows[tuned.best].c, "best");
        }
        if simple != tuned.best {
            plot = plot.mark(tuned.rows[simple].c, "one standard error");
        }
        page.plot(
            format!("{metric} against C"),
            "The mean over the folds with a band of one standard error on either side; each fold in grey.",
            plot,
        );
    }
    page.plot(
        "Passes",
        "The sum over all folds. Every fit starts at the solution for the previous C.",
        LinePlot::new(Axis::log("C"), Axis::log("passes"))
            .series(Series::new("passes", over(&|row| row.passes.max(1) as f64)).markers()),
    );
    page.plot(
        "Relative gap",
        "The largest gap of all folds: an upper bound on how far a model is from the optimum.",
        LinePlot::new(Axis::log("C"), Axis::log("relative gap"))
            .series(
                Series::new(
                    "gap",
                    over(&|row| row.gap.unwrap_or(f64::NAN)).into_iter().filter(|p| p.1 > 0.0).collect(),
                )
                .markers(),
            )
            .rule(row.settings.tolerance, "tolerance"),
    );
}

/// All settings with their results.
fn table_section(page: &mut Report, tuned: &Tuned, chosen: usize) {
    let wide = !tuned.widths().is_empty();
    let mut header = vec!["C".to_string(), "lambda".into()];
    header.extend(wide.then(|| "gamma".to_string()));
    header.extend(tuned.metrics.iter().map(ToString::to_string));
    header.extend(["gap", "passes", "time", "converged"].map(String::from));
    let cells = |row: &Row| {
        let mut cells = vec![short(row.c), format::scientific(row.lambda, 2)];
        cells.extend(row.settings.kernel.gamma.filter(|_| wide).map(short));
        cells.extend(row.metrics.iter().map(value));
        cells.push(row.gap.map_or("–".to_string(), format::gap));
        cells.push(format::count(row.passes));
        cells.push(format::seconds(row.seconds));
        cells.push(match (row.metrics[0].folds.len(), row.converged) {
            _ if row.without_threshold => "no threshold".to_string(),
            (judged, _) if judged < tuned.fold_rows.len() => format!("dropped after {judged} folds"),
            (_, true) => "yes".to_string(),
            (_, false) => "no".to_string(),
        });
        cells
    };
    let rows = tuned.rows.iter().map(cells).collect();
    page.table_with_choice("Settings", Table { header, rows, highlight: Some(chosen) });
}

/// The data used for evaluation.
fn facts_section(page: &mut Report, tuned: &Tuned, row: &Row, data: &Dataset) {
    let held: Vec<String> = tuned.fold_rows.iter().map(|&rows| format::count(rows as u64)).collect();
    let mut facts = vec![
        ("rows".to_string(), format::count(data.rows() as u64)),
        ("features".to_string(), format::count(data.cols() as u64)),
        (format!("{} held out by each fold", if data.pairs().is_some() { "pairs" } else { "rows" }), held.join(", ")),
        ("loss".to_string(), row.settings.loss.name().to_string()),
        ("scaling".to_string(), row.settings.scale.name().to_string()),
        ("seed".to_string(), row.settings.seed.to_string()),
    ];
    if let Some(pairs) = data.pairs() {
        facts.insert(1, ("pairs".to_string(), format::count(pairs.len() as u64)));
        if let Some((_, names)) = pairs.groups() {
            facts.insert(2, ("groups of pairs, kept whole".to_string(), format::count(names.len() as u64)));
        }
    } else if let Some(groups) = data.groups() {
        facts.insert(1, ("queries, kept whole".to_string(), format::count(groups.len() as u64)));
    }
    page.facts("How it was measured", facts);
}

/// C against the widths of a kernel, if there are several.
fn widths_section(page: &mut Report, tuned: &Tuned) {
    let widths = tuned.widths();
    if widths.is_empty() {
        return;
    }
    let mut costs: Vec<f64> = tuned.rows.iter().map(|row| row.c).collect();
    costs.sort_by(f64::total_cmp);
    costs.dedup();
    let mean = |gamma: f64, c: f64| {
        let row = tuned.rows.iter().find(|row| row.c == c && row.settings.kernel.gamma == Some(gamma));
        row.map_or(f64::NAN, |row| row.metrics[0].mean)
    };
    let values = widths.iter().map(|&gamma| costs.iter().map(|&c| mean(gamma, c)).collect()).collect();
    let names = |values: &[f64]| values.iter().map(|&value| short(value)).collect::<Vec<_>>();
    let best = if tuned.metrics[0].higher_is_better() { Best::Highest } else { Best::Lowest };
    page.plot(
        format!("{} over C and gamma", tuned.metrics[0]),
        "The mean over the folds; for settings that were dropped, over the folds before that.",
        HeatMap::new(tuned.metrics[0].to_string(), ("C", names(&costs)), ("gamma", names(&widths)), values).best(best),
    );
}
