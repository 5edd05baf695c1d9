//! [`Clock`]: an observer that ends a run when its time is over.

use crate::run::{Event, Observer};
use crate::settings::Settings;
use crate::solve::Stop;
use std::ops::ControlFlow;
use std::time::Instant;

/// Forwards reports, and asks the solver to stop at the first one after the time limit. A pass is never cut short.
pub(super) struct Clock<'a> {
    inner: &'a mut dyn Observer,
    began: Instant,
    limit: f64,
    is_over: bool,
}

impl<'a> Clock<'a> {
    pub(super) fn new(inner: &'a mut dyn Observer, settings: &Settings) -> Clock<'a> {
        let limit = settings.max_seconds.unwrap_or(f64::INFINITY);
        Clock { inner, began: Instant::now(), limit, is_over: false }
    }

    /// Why the run ended, given the reason of the solver, which does not know who asked it to stop.
    pub(super) fn reason(&self, stop: Stop) -> Stop {
        if stop == Stop::Cancelled && self.is_over { Stop::TimeLimit } else { stop }
    }
}

impl Observer for Clock<'_> {
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let answer = self.inner.report(event);
        if answer.is_break() {
            return answer;
        }
        let ends = matches!(event, Event::Pass { .. } | Event::Column { .. });
        self.is_over |= ends && self.began.elapsed().as_secs_f64() >= self.limit;
        if self.is_over { ControlFlow::Break(()) } else { answer }
    }
}
