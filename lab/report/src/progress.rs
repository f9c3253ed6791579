// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress on standard error, drawn only between trials: while one runs, this process sleeps in
//! `poll` and no timer of its own fires.

use super::axis::{self, Axis};
use super::style::Style;
use super::unit::time;
use doorbell_results::configuration::Configuration;
use doorbell_results::plan::Plan;
use doorbell_results::record::{Histogram, Record, Variant};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::HashMap;
use std::time::Duration;

/// How long the rest will take, from the plan and from what the trials before took.
#[derive(Debug, Clone)]
pub struct Estimate {
    /// Trials of each configuration not yet run.
    left: HashMap<Configuration, u32>,
    /// Trials of each configuration run, and the time they took together.
    took: HashMap<Configuration, (u32, Duration)>,
}

impl Estimate {
    /// Before the first trial of `plan`.
    pub fn new(plan: &Plan) -> Self {
        Self {
            left: plan
                .configurations
                .iter()
                .map(|configuration| (configuration.clone(), plan.most_blocks()))
                .collect(),
            took: HashMap::new(),
        }
    }

    /// A trial of `configuration` took `wall`, set-up included.
    pub fn finished(&mut self, configuration: &Configuration, wall: Duration) {
        if let Some(left) = self.left.get_mut(configuration) {
            *left = left.saturating_sub(1);
        }
        let (trials, sum) = self.took.entry(configuration.clone()).or_default();
        *trials += 1;
        *sum += wall;
    }

    /// What the trials not yet run will take; none while nothing is known of them.
    ///
    /// A configuration that has run before is expected to take as long again; one that ends after a
    /// set time is expected to take that; any other as long as the mean of those that have run.
    pub fn remaining(&self) -> Option<Duration> {
        let (trials, sum) = self
            .took
            .values()
            .fold((0, Duration::ZERO), |(trials, sum), (more, wall)| (trials + more, sum + *wall));
        let mean = sum.checked_div(trials);
        self.left
            .iter()
            .filter(|(_, left)| **left > 0)
            .map(|(configuration, left)| {
                let known = self.took.get(configuration).and_then(|(trials, wall)| wall.checked_div(*trials));
                // A configuration with a time of its own that may also end by count takes at most that time.
                let planned = configuration.until.time_ns.map(Duration::from_nanos);
                Some(known.or(planned).or(mean)? * *left)
            })
            .sum()
    }
}

/// The progress of a run. Nothing is drawn where standard error is no terminal.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    estimate: Estimate,
    axes: Vec<Axis>,
    style: Style,
    /// What each configuration took so far, of those that have run.
    seen: HashMap<Configuration, Histogram>,
    /// The configuration that ran last, with what it took so far, in words.
    last: Option<String>,
}

impl Progress {
    /// Before the first trial of `plan`; `shown` is false under
    /// `--quiet` and wherever no progress is wanted.
    pub fn new(plan: &Plan, style: Style, shown: bool) -> Self {
        // Draws happen a few times per trial at most: the limit only
        // has to be above that, so that none is dropped.
        let target =
            if shown { ProgressDrawTarget::stderr_with_hz(255) } else { ProgressDrawTarget::hidden() };
        let trials = plan.configurations.len() as u64 * u64::from(plan.most_blocks());
        let bar = ProgressBar::with_draw_target(Some(trials), target);
        if let Ok(shape) = ProgressStyle::with_template("{bar:24} {pos}/{len}  {wide_msg}") {
            let signs = if style.unicode { "█▉▊▋▌▍▎▏ " } else { "##-" };
            bar.set_style(shape.progress_chars(signs));
        }
        Self {
            bar,
            estimate: Estimate::new(plan),
            axes: axis::varying(plan.configurations.iter()),
            style,
            seen: HashMap::new(),
            last: None,
        }
    }

    pub fn end(self) {
        self.bar.finish_and_clear();
    }

    fn message(&self, configuration: &Configuration) -> String {
        let label = axis::label(configuration, &self.axes);
        let left = self.estimate.remaining().filter(|left| *left >= Duration::from_secs(1));
        let left = left.map(|left| format!("about {} left", whole_seconds(left)));
        let parts: Vec<String> =
            left.into_iter().chain(self.last.clone()).chain([format!("now {label}")]).collect();
        self.style.text(&parts.join(" · "))
    }
}

impl Progress {
    /// A trial of `configuration` is about to start.
    pub fn starts(&mut self, configuration: &Configuration) {
        self.bar.set_message(self.message(configuration));
        self.bar.tick();
    }

    /// It ended with `record`.
    pub fn ends(&mut self, record: &Record) {
        // Of a pair of sides in which others had their turns it took
        // what it recorded, and a fifth more around that.
        let own_ns = record.sides.first().map(|side| side.window_ns / 5 * 6);
        let wall_ns = own_ns.filter(|_| !record.slices.is_empty()).unwrap_or(record.environment.wall_ns);
        self.estimate.finished(&record.configuration, Duration::from_nanos(wall_ns));
        if !self.bar.is_hidden() {
            self.last = self.estimated(record).or(self.last.take());
        }
        self.bar.inc(1);
    }
}

impl Progress {
    /// What the configuration of `record` took in all its trials up to this one.
    fn estimated(&mut self, record: &Record) -> Option<String> {
        let variant = Variant { configuration: &record.configuration, records: Vec::new(), grid_ps: 0.0 };
        let trial = record.series.get(&variant.headline())?.decode().ok()?;
        let seen = self.seen.entry(record.configuration.clone()).or_default();
        seen.add(&trial);
        let [p50, longest] = [seen.quantile(0.5), seen.max()].map(|ps| time(ps as f64));
        let label = axis::label(&record.configuration, &self.axes);
        Some(format!("{label}: p50 {p50}, longest {longest} so far"))
    }
}

fn whole_seconds(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds < 120 => time(seconds as f64 * 1e12),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{configuration, record};
    use doorbell_results::configuration::Until;

    #[test]
    fn the_estimate_learns_from_what_ran() {
        let timed = Configuration { until: Until::time(Duration::from_secs(2)), ..configuration("timed") };
        let (counted, other) = (configuration("counted"), configuration("other"));
        let plan = Plan::new("ping", vec![timed.clone(), counted.clone(), other], 2, 1);
        let mut estimate = Estimate::new(&plan);
        assert_eq!(estimate.remaining(), None, "nothing is known of a counted configuration that never ran");
        estimate.finished(&counted, Duration::from_secs(3));
        // Two timed ones at their own time, one counted as before, two others at the mean.
        assert_eq!(estimate.remaining(), Some(Duration::from_secs(2 * 2 + 3 + 2 * 3)));
        for configuration in &plan.configurations {
            estimate.finished(configuration, Duration::from_secs(1));
            estimate.finished(configuration, Duration::from_secs(1));
        }
        assert_eq!(estimate.remaining(), Some(Duration::ZERO));
    }

    #[test]
    fn the_running_estimate_is_over_all_trials_of_a_configuration_so_far() {
        let plan = Plan::new("gate", vec![configuration("futex")], 2, 1);
        let mut progress = Progress::new(&plan, Style::PLAIN, false);
        let trial = |block, ps| record(&plan.configurations[0], block, &[ps; 9]);
        let first = progress.estimated(&trial(0, 8_000_000)).unwrap();
        assert!(first.contains("p50 8 µs, longest 8 µs so far"), "{first}");
        let second = progress.estimated(&trial(1, 50_000_000)).unwrap();
        assert!(second.contains("p50 8 µs, longest 50 µs so far"), "{second}");
    }

    #[test]
    fn a_hidden_bar_draws_nothing_and_still_counts() {
        let plan = Plan::new("ping", vec![configuration("spin")], 1, 1);
        let mut progress = Progress::new(&plan, Style::PLAIN, false);
        progress.starts(&plan.configurations[0]);
        progress.ends(&record(&plan.configurations[0], 0, &[1000]));
        assert!(progress.bar.is_hidden());
        assert_eq!(progress.bar.position(), 1);
        progress.end();
    }
}
