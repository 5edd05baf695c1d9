//! Writes a report with every kind of section and plot over synthetic data, for checking the look after a change of
//! style: `cargo run --example report_gallery -- gallery.html`.

use maxmargin_cli::format;
use maxmargin_cli::report::{
    Axis, Bars, Best, HeatMap, Histogram, LinePlot, Ranked, Report, RocCurve, Series, Table, Tile, Tone,
};

/// A small generator of uniform numbers. The gallery only needs values that look like data.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

fn text(value: &str) -> String {
    value.to_string()
}

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "report.html".into());
    std::fs::write(path, gallery().render())
}

fn gallery() -> Report {
    let mut noise = Noise(7);
    let mut report = Report::new("Ranking model search.mm");
    report.subtitle("train.txt · 9,630 rows × 46 features · 471 queries · maxmargin train rank train.txt -o search.mm");
    report.headline(vec![
        Tile::new("ndcg@10, held out", "0.716", "± 0.031 over 157 queries"),
        Tile::new("objective", format::real(4218.7), "squared hinge, C = 1"),
        Tile::new("relative gap", format::gap(3.0e-7), "tolerance 1.0e-3"),
        Tile::new("pairs", format::count(52_325), "3 queries with a single grade ignored"),
        Tile::new("time", format::seconds(0.13), "load 0.03 s, train 0.10 s"),
    ]);
    report.callout(Tone::Good, "Converged.", "The objective is proven within 3.0e-7 of the optimum.");
    report.callout(
        Tone::Warning,
        "Feature scales differ by 2.1e5.",
        "Training is slower than it need be; add --scale standard.",
    );
    convergence(&mut report);
    report.facts(
        "Data",
        vec![
            (
                text("file"),
                text("MQ2008/a-rather-long-folder-name-that-does-not-end/Fold1/train-with-a-long-name.txt.gz"),
            ),
            (text("format"), text("svmlight, 1-based")),
            (text("rows"), format::count(9_630)),
            (text("features"), format::count(46)),
            (text("queries"), text("471, of which 3 have a single grade")),
            (text("read in"), format::seconds(0.03)),
        ],
    );
    report.facts(
        "Settings",
        vec![
            (text("task"), text("rank")),
            (text("loss"), text("squared-hinge")),
            (text("C"), text("1 (lambda 1.9e-5)")),
            (text("solver"), text("newton")),
            (text("scale"), text("none")),
            (text("seed"), text("0")),
        ],
    );
    quality(&mut report, &mut noise);
    tuning(&mut report);
    awkward(&mut report);
    report.text(
        "How to read this",
        "A gap of zero is a proof of optimality.\n\nThe held-out metric has its standard error.",
    );
    report.code("Next", "maxmargin evaluate search.mm test.txt --metric ndcg@10,map --report test.html");
    report
}

fn convergence(report: &mut Report) {
    let passes: Vec<f64> = (1..=24).map(f64::from).collect();
    let primal = passes.iter().map(|&p| (p, 4218.7 + 900.0 * (-0.45 * p).exp())).collect();
    let bound = passes.iter().map(|&p| (p, 4218.7 - 1400.0 * (-0.5 * p).exp())).collect();
    let gap = passes.iter().map(|&p| (p, 0.6 * (-0.62 * p).exp())).collect();
    report.plot(
        "Objective and lower bound",
        "The optimum lies between the two lines.",
        LinePlot::new(Axis::linear("pass"), Axis::linear("objective"))
            .series(Series::new("objective", primal).markers())
            .series(Series::new("lower bound", bound).markers().dashed()),
    );
    report.plot(
        "Relative gap",
        "Training stops when the gap falls below the tolerance.",
        LinePlot::new(Axis::linear("pass"), Axis::log("relative gap"))
            .series(Series::new("", gap).markers())
            .rule(1e-3, "tolerance"),
    );
}

fn quality(report: &mut Report, noise: &mut Noise) {
    let queries = (0..157).map(|i| (format!("query-{i}"), (0.74 + 0.24 * noise.normal()).clamp(0.0, 1.0))).collect();
    report.plot(
        "NDCG@10 by query",
        "A long tail at the right means a few queries fail badly.",
        Ranked::new(Axis::linear("ndcg@10").between(0.0, 1.0), "query", "queries", queries)
            .mean_label("mean 0.716 ± 0.031"),
    );
    let few = (0..24).map(|i| (format!("q{i}"), noise.uniform())).collect();
    report.plot("MAP by query, few", "", Ranked::new(Axis::linear("map").between(0.0, 1.0), "query", "queries", few));
    let sample =
        |n: usize, mean: f64, noise: &mut Noise| -> Vec<f64> { (0..n).map(|_| mean + noise.normal()).collect() };
    let classes =
        vec![(text("ham, 2,000 rows"), sample(2000, -1.3, noise)), (text("spam, 400 rows"), sample(400, 1.6, noise))];
    report.plot(
        "Scores by class",
        "The further apart, the better the classes are told from each other.",
        Histogram::new("score", "rows", classes).mark(0.0, "threshold"),
    );
    let grades = vec![
        (text("grade 0"), sample(7200, -1.0, noise)),
        (text("grade 1"), sample(1600, 0.2, noise)),
        (text("grade 2"), sample(830, 1.4, noise)),
    ];
    report.plot("Scores by grade", "Higher grades should lie further right.", Histogram::new("score", "rows", grades));
    let curve = |power: f64| (0..=200).map(|i| f64::from(i) / 200.0).map(|x| (x, x.powf(power))).collect();
    report.plot(
        "Receiver operating curve",
        "",
        LinePlot::roc(vec![
            RocCurve { label: text("test"), points: curve(0.12), area: 0.893 },
            RocCurve { label: text("train"), points: curve(0.09), area: 0.917 },
        ]),
    );
    let words =
        ["bm25_body", "bm25_title", "pagerank", "url_length", "größe", "検索スコア", "dwell_time", "idf_anchor"];
    let weights = (0..46).map(|i| match i {
        0 => (text("<script>alert('x')</script>"), 1.7),
        1 => (text("a_very_long_feature_name_that_nobody_would_type_but_a_pipeline_happily_produces"), -2.2),
        _ => (format!("{}_{i}", words[i % words.len()]), noise.normal() * 0.8),
    });
    report.plot("Largest weights", "", Bars::largest("weight", "features", weights.collect(), 16));
}

fn tuning(report: &mut Report) {
    let c: Vec<f64> = (-10..=6).map(|e| 10f64.powf(f64::from(e) / 2.0)).collect();
    let mean = |c: f64| 0.72 - 0.012 * (c.log10() + 1.0).powi(2);
    let path = c.iter().map(|&c| (c, mean(c))).collect();
    let band = c.iter().map(|&c| (c, mean(c) - 0.03, mean(c) + 0.03)).collect();
    report.plot(
        "Path over C",
        "Mean over five folds; the band is one standard error.",
        LinePlot::new(Axis::log("C"), Axis::linear("ndcg@10"))
            .series(Series::new("ndcg@10", path).markers().band(band))
            .mark(0.1, "chosen: C = 0.1"),
    );
    let columns: Vec<String> = ["0.01", "0.1", "1", "10", "100"].map(text).to_vec();
    let rows: Vec<String> = ["0.001", "0.01", "0.1", "1"].map(text).to_vec();
    let value = |i: usize, j: usize| 0.9 - 0.03 * (i as f64 - 1.3).powi(2) - 0.02 * (j as f64 - 2.2).powi(2);
    let mut grid: Vec<Vec<f64>> = (0..4).map(|i| (0..5).map(|j| value(i, j)).collect()).collect();
    grid[3][0] = f64::NAN;
    report.plot(
        "Accuracy over the grid",
        "Five folds.",
        HeatMap::new("accuracy", ("C", columns), ("gamma", rows), grid).best(Best::Highest),
    );
    let row = |c: &str, metric: f64, error: f64, gap: f64, time: f64| {
        vec![text(c), format::plus_minus(metric, error), format::gap(gap), format::seconds(time), text("newton")]
    };
    report.table_with_choice(
        "Settings tried",
        Table {
            header: ["C", "ndcg@10", "gap", "time", "solver"].map(text).to_vec(),
            rows: vec![
                row("0.01", 0.701, 0.031, 2.1e-4, 0.05),
                row("0.1", 0.716, 0.031, 3.0e-7, 0.11),
                row("1", 0.712, 0.032, 8.8e-5, 0.31),
                row("10", 0.698, 0.034, 7.0e-4, 1.27),
            ],
            highlight: Some(1),
        },
    );
}

fn awkward(report: &mut Report) {
    let zero_at_the_end = vec![(1.0, 0.1), (2.0, 1e-4), (3.0, f64::NAN), (4.0, 1e-9), (5.0, 0.0)];
    report.plot(
        "A gap that reaches zero",
        "",
        LinePlot::new(Axis::linear("pass"), Axis::log("gap")).series(Series::new("", zero_at_the_end).markers()),
    );
    report.plot("A plot of nothing", "", LinePlot::new(Axis::linear("pass"), Axis::linear("objective")));
    let lines = ["first", "second", "third", "a label that is too long for the end of its line, fourth"];
    let mut many = LinePlot::new(Axis::linear("step"), Axis::linear("value"));
    for (number, label) in lines.iter().enumerate() {
        let wave = (0..5000).map(f64::from).map(|x| (x, (x / 400.0 + number as f64).sin() + 0.2 * (x / 7.0).cos()));
        many = many.series(Series::new(*label, wave.collect()));
    }
    report.plot("Many points, long labels", "", many);
}
