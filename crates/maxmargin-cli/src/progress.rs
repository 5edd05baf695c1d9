//! The progress table of a training run.

use crate::console::Console;
use crate::format;
use crate::told::Told;
use maxmargin::run::{Event, Observer};
use maxmargin::solve::relative_gap;
use std::io::Write;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Prints one table row per pass. On a terminal, the first rows are printed one below the other, and further ones are
/// redrawn in place. Elsewhere, a plain line is printed at intervals.
pub(crate) struct ProgressTable<'a> {
    console: &'a Console,
    metric: Option<String>,
    tolerance: f64,
    start: Instant,
    last_line: Option<Instant>,
    rows: usize,
    live_row: bool,
    pending: Option<String>,
    first_gap: Option<(f64, f64)>,
    told: Told,
}

/// Number of rows printed one below the other before the last one is redrawn in place.
const PLAIN_ROWS: usize = 8;
const LINE_EVERY: Duration = Duration::from_secs(2);

impl<'a> ProgressTable<'a> {
    /// A table. `metric` is the name of the held-out column, if there is one.
    pub(crate) fn new(console: &'a Console, metric: Option<String>, tolerance: f64) -> ProgressTable<'a> {
        ProgressTable {
            console,
            metric,
            tolerance,
            start: Instant::now(),
            last_line: None,
            rows: 0,
            live_row: false,
            pending: None,
            first_gap: None,
            told: Told::default(),
        }
    }

    /// Ends the table. The last row stays.
    pub(crate) fn finish(&mut self) {
        if let Some(row) = self.pending.take() {
            self.print(&row);
        }
        if self.live_row {
            let _ = writeln!(std::io::stderr());
            self.live_row = false;
        }
    }

    /// What the run told besides its passes.
    pub(crate) fn told(self) -> Told {
        self.told
    }

    fn print(&mut self, row: &str) {
        if self.rows == 0 {
            let width = self.metric_width();
            let counted = if self.told.columns.is_empty() { "pass" } else { "cols" };
            let metric = self.metric.as_deref().map_or(String::new(), |metric| format!("{metric:>width$}"));
            self.console.say(&format!("{:>5}{:>14}{:>10}{metric}{:>10}", counted, "objective", "gap", "time"));
        }
        self.rows += 1;
        self.last_line = Some(Instant::now());
        if self.console.is_live() && self.rows > PLAIN_ROWS {
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\x1b[2K{row}");
            let _ = out.flush();
            self.live_row = true;
        } else {
            self.console.say(row);
        }
    }

    /// Says on a terminal what takes the time after the last pass. The row of the result replaces it.
    fn polishing(&mut self) {
        if let Some(row) = self.pending.take() {
            self.print(&row);
        }
        if self.console.is_live() && self.rows > 0 {
            if self.live_row {
                let _ = writeln!(std::io::stderr());
            }
            let _ = write!(std::io::stderr(), "polishing to the last digits …");
            (self.live_row, self.rows) = (true, self.rows.max(PLAIN_ROWS));
        }
    }

    /// The width of the metric's column: that of the others, or that of its name.
    fn metric_width(&self) -> usize {
        self.metric.as_ref().map_or(0, |metric| (metric.chars().count() + 2).max(12))
    }

    /// Estimated remaining seconds, from how fast the logarithm of the gap has fallen.
    fn left(&mut self, gap: Option<f64>, elapsed: f64) -> Option<f64> {
        let gap = gap.filter(|gap| *gap > 0.0 && gap.is_finite())?;
        let (first_gap, first_time) = *self.first_gap.get_or_insert((gap, elapsed));
        let fallen = (first_gap / gap).ln();
        let to_go = (gap / self.tolerance).ln();
        (fallen > 0.5 && to_go > 0.0 && to_go.is_finite()).then(|| (elapsed - first_time) * to_go / fallen)
    }
}

impl Observer for ProgressTable<'_> {
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.told.hear(event);
        if !self.console.talks() {
            return ControlFlow::Continue(());
        }
        if matches!(event, Event::Polishing) {
            self.polishing();
        }
        let Event::Pass { pass, objective, lower_bound, held_out, .. } = event else {
            return ControlFlow::Continue(());
        };
        let elapsed = self.start.elapsed().as_secs_f64();
        let gap = lower_bound.map(|bound| relative_gap(*objective, bound));
        let width = self.metric_width();
        let held_out = match (&self.metric, held_out) {
            (None, _) => String::new(),
            (Some(_), None) => format!("{:>width$}", "–"),
            (Some(_), Some(value)) => format!("{:>width$}", format::fixed(*value, 4)),
        };
        let left = match self.left(gap, elapsed) {
            Some(left) if left >= 1.0 => format!("   about {} left", format::seconds(left)),
            _ => String::new(),
        };
        let row = format!(
            "{pass:>5}{:>14}{:>10}{held_out} {:>9}{left}",
            format::scientific(*objective, 4),
            gap.map_or("–".to_string(), format::gap),
            format::seconds(elapsed),
        );
        let due = self.last_line.is_none_or(|last| last.elapsed() >= LINE_EVERY);
        if self.console.is_live() || due || self.rows < PLAIN_ROWS {
            self.pending = None;
            self.print(&row);
        } else {
            self.pending = Some(row);
        }
        ControlFlow::Continue(())
    }
}

/// The progress of a bootstrap: a line redrawn in place on a terminal, and printed at intervals elsewhere.
pub(crate) struct ResampleProgress<'a> {
    line: LiveLine<'a>,
    start: Instant,
}

impl<'a> ResampleProgress<'a> {
    pub(crate) fn new(console: &'a Console) -> ResampleProgress<'a> {
        ResampleProgress { line: LiveLine::new(console), start: Instant::now() }
    }

    /// Clears the line.
    pub(crate) fn finish(&mut self) {
        self.line.clear();
    }
}

impl Observer for ResampleProgress<'_> {
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if let Event::Resamples { done, total } = event
            && self.line.is_due()
        {
            let left = self.start.elapsed().as_secs_f64() * (total - done) as f64 / (*done).max(1) as f64;
            let left = if left >= 1.0 { format!(" · about {} left", format::seconds(left)) } else { String::new() };
            self.line.draw(&format!("{done} of {total} resamples{left}"));
        }
        ControlFlow::Continue(())
    }
}

/// A line that is redrawn in place on a terminal, and printed at intervals elsewhere.
struct LiveLine<'a> {
    console: &'a Console,
    last: Instant,
    drawn: bool,
}

impl<'a> LiveLine<'a> {
    fn new(console: &'a Console) -> LiveLine<'a> {
        LiveLine { console, last: Instant::now(), drawn: false }
    }

    /// Whether the next update is due.
    fn is_due(&self) -> bool {
        self.console.talks() && (self.console.is_live() || self.last.elapsed() >= LINE_EVERY)
    }

    fn draw(&mut self, line: &str) {
        self.last = Instant::now();
        if self.console.is_live() {
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\x1b[2K{line}");
            let _ = out.flush();
            self.drawn = true;
        } else {
            self.console.say(line);
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}

/// The progress of cross-validation: one line per setting, redrawn in place on a terminal, and printed at intervals
/// elsewhere.
pub(crate) struct TuneProgress<'a> {
    line: LiveLine<'a>,
}

impl<'a> TuneProgress<'a> {
    pub(crate) fn new(console: &'a Console) -> TuneProgress<'a> {
        TuneProgress { line: LiveLine::new(console) }
    }

    /// Clears the line, because the table that follows has the same information.
    pub(crate) fn finish(&mut self) {
        self.line.clear();
    }
}

impl Observer for TuneProgress<'_> {
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let Event::Setting { c, gamma, quality, seconds, done, total } = event else {
            return ControlFlow::Continue(());
        };
        if !self.line.is_due() {
            return ControlFlow::Continue(());
        }
        // A larger C takes longer, so the last setting predicts the time better than the mean does.
        let left = seconds * (total - done) as f64;
        let left = if left >= 1.0 { format!(" · about {} left", format::seconds(left)) } else { String::new() };
        let quality = format::fixed(*quality, 4);
        let width = gamma.map_or(String::new(), |gamma| format!(", gamma = {}", format::significant(gamma, 3)));
        let c = format::significant(*c, 3);
        self.line.draw(&format!("{done} of {total} settings · C = {c}{width} gives {quality}{left}"));
        ControlFlow::Continue(())
    }
}
