// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run sorted for showing: variants with figures, and apart from them the trials that have none.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use super::unit::{Scale, time};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::histogram::Counters;
use doorbell_results::record::rank;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::variant::Variant;
use doorbell_results::record::within_grid::within_grid;
use doorbell_results::record::{Histogram, Outcome, Record, ResultFile, SideCounters};

/// A distribution in the buckets that are occupied; a thousand times
/// smaller than the histogram it comes from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Distribution {
    pub count: u64,
    /// Shortest, picoseconds.
    pub min_ps: u64,
    /// Longest, picoseconds.
    pub max_ps: u64,
    /// Mean, picoseconds.
    pub mean_ps: f64,
    /// Occupied buckets from short to long: middle value in picoseconds, count.
    pub buckets: Vec<(u64, u64)>,
    /// Median of each block's trial, picoseconds, in the order of the blocks.
    pub block_medians_ps: Vec<u64>,
    /// The grid on which the times were read, picoseconds; 0 where it is not known.
    pub grid_ps: f64,
}

impl Distribution {
    fn of(histogram: &Histogram, block_medians_ps: Vec<u64>, grid_ps: f64) -> Self {
        Self {
            count: histogram.count(),
            min_ps: histogram.min(),
            max_ps: histogram.max(),
            mean_ps: histogram.mean(),
            buckets: histogram.buckets().collect(),
            block_medians_ps,
            grid_ps,
        }
    }

    /// The time at quantile `q` of 0 to 1, picoseconds: the smallest that at least this share of
    /// the samples does not exceed, and within the steps of the clock where those matter.
    pub fn quantile(&self, q: f64) -> u64 {
        if let Some(ps) = within_grid(&self.buckets, q, self.grid_ps) {
            return (ps.round() as u64).clamp(self.min_ps, self.max_ps);
        }
        self.reading(q)
    }

    /// The median, picoseconds.
    pub fn p50_ps(&self) -> f64 {
        self.quantile(0.5) as f64
    }

    /// The reading at quantile `q`, picoseconds: on the steps of the
    /// clock, as a curve of all readings is drawn.
    pub fn reading(&self, q: f64) -> u64 {
        rank::at(self.buckets.iter().copied(), q, self.count, self.max_ps).max(self.min_ps)
    }

    /// A quantile above the median, in a table's unit, beside a level of `p50_ps` in the place of
    /// the median: no less than that, which weighs every block alike, where this weighs them by
    /// their samples and may have few of one that others held up.
    pub fn above(&self, q: f64, p50_ps: f64, scale: Scale) -> String {
        percentile((self.quantile(q) as f64).max(p50_ps), q, self.count, scale)
    }

    /// The time at quantile `q`, picoseconds; none where the samples
    /// are too few to have it: see [`supports`].
    pub fn percentile(&self, q: f64) -> Option<u64> {
        supports(self.count, q).then(|| self.quantile(q))
    }

    /// The same in words with its unit, `-` where the samples are too few.
    pub fn told(&self, q: f64) -> String {
        self.percentile(q).map_or_else(|| "-".to_owned(), |ps| time(ps as f64))
    }

    /// Shortest and longest median of the blocks, where there is more than one.
    pub fn spread_ps(&self) -> Option<(u64, u64)> {
        let shortest = self.block_medians_ps.iter().min()?;
        let longest = self.block_medians_ps.iter().max()?;
        (self.block_medians_ps.len() > 1).then_some((*shortest, *longest))
    }
}

/// Samples that must lie beyond a percentile for it to be shown: with fewer it is one of the
/// longest samples under another name.
const BEYOND: f64 = 3.0;

/// Whether `count` samples support quantile `q`: p90 takes 30, p99 300, p99.9 3,000. The median and
/// the ends are always shown.
pub fn supports(count: u64, q: f64) -> bool {
    q <= 0.5 || q >= 1.0 || count as f64 * (1.0 - q) >= BEYOND - 1e-6
}

/// A percentile in a table's unit, `-` where `count` samples do not support it.
pub fn percentile(ps: f64, q: f64, count: u64, scale: Scale) -> String {
    if supports(count, q) { scale.show(ps) } else { "-".to_owned() }
}

#[derive(Debug, Clone)]
pub struct Row<'result> {
    /// Its trials with usable figures.
    pub variant: Variant<'result>,
    /// Each quantity over all its blocks.
    pub series: BTreeMap<Quantity, Distribution>,
}

impl Row<'_> {
    pub fn configuration(&self) -> &Configuration {
        self.variant.configuration
    }

    /// Its trials that have figures.
    pub fn usable(&self) -> impl Iterator<Item = &Record> {
        self.variant.usable()
    }

    /// CPU time a wake-up or an operation, picoseconds: see [`cpu`].
    pub fn cpu_ps(&self) -> Option<f64> {
        let Some(batch) = self.configuration().pattern.batch() else {
            return self.variant.cpu_ns_per_wake().map(|ns| ns * 1e3);
        };
        let samples = self.series.get(&Quantity::Operation)?.count;
        let operations = samples.checked_mul(u64::from(batch.max(1)))?;
        let spent = self.spent_ns(|_| true);
        (spent > 0 && operations > 0).then(|| spent as f64 * 1e3 / operations as f64)
    }

    fn spent_ns(&self, of: fn(&SideCounters) -> bool) -> u64 {
        self.sum_of_sides(|side| if of(side) { side.user_ns.saturating_add(side.system_ns) } else { 0 })
    }

    /// Something that was counted of each side, over all sides and trials.
    pub fn sum_of_sides(&self, of: impl Fn(&SideCounters) -> u64) -> u64 {
        let sides = self.variant.usable().flat_map(|record| &record.sides);
        sides.fold(0, |sum, side| sum.saturating_add(of(side)))
    }

    /// CPU time of the waiting side per notification, picoseconds.
    pub fn waiter_ps(&self) -> Option<f64> {
        let spent = self.spent_ns(|side| side.side == "waiter");
        let seen = self.variant.tally().seen;
        (seen > 0 && spent > 0).then(|| spent as f64 * 1e3 / seen as f64)
    }

    /// The CPU time to be weighed against the latency, picoseconds, and what it is.
    pub fn price(&self) -> (Option<f64>, &'static str) {
        let pattern = self.configuration().pattern;
        let quantity = if pattern.receivers().is_some() { Quantity::LastWake } else { pattern.headline() };
        (self.cpu_ps(), cpu(quantity))
    }

    /// The median of `quantity`, picoseconds.
    pub fn p50_ps(&self, quantity: Quantity) -> Option<f64> {
        self.series.get(&quantity).map(Distribution::p50_ps)
    }

    /// The middle over the trials of a figure beside the series.
    pub fn figure(&self, wanted: impl Fn(&str) -> bool) -> Option<f64> {
        let figures = self.variant.usable().flat_map(|record| &record.figures);
        let mut values: Vec<f64> = figures
            .filter(|figure| wanted(&figure.name) && figure.value.is_finite())
            .map(|figure| figure.value)
            .collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    /// Whether it measures the harness itself.
    pub fn is_harness(&self) -> bool {
        self.variant.subject().is_harness()
    }

    /// Whether some of its trials were cut short by the user.
    pub fn is_partial(&self) -> bool {
        self.variant.records.iter().any(|record| record.outcome == Outcome::Partial)
    }
}

/// A row with its samples of one quantity.
pub type Having<'a> = (&'a Row<'a>, &'a Distribution);

/// The unit in which the medians of `rows` read best.
pub fn scale(rows: &[Having]) -> Scale {
    Scale::for_ps(rows.iter().map(|(_, series)| series.p50_ps()))
}

/// Trials without figures: a named line, never a row of a table.
#[derive(Debug, Clone)]
pub struct Absent<'result> {
    /// What was to be run.
    pub configuration: &'result Configuration,
    /// `skipped`, `implausible`, `hung`, `failed`, `unreadable`.
    pub name: &'static str,
    pub reasons: Vec<String>,
    /// How many of the configuration's trials ended like this.
    pub trials: usize,
}

impl Absent<'_> {
    /// Whether something went wrong, rather than being lacked by the machine.
    pub fn is_error(&self) -> bool {
        self.name != "skipped"
    }
}

#[derive(Debug, Clone)]
pub struct Figures<'result> {
    /// With figures, in the order of the plan.
    pub rows: Vec<Row<'result>>,
    pub absent: Vec<Absent<'result>>,
}

impl<'result> Figures<'result> {
    /// Sorts the records of `result`.
    pub fn of(result: &'result ResultFile) -> Self {
        let mut sorted = Self { rows: Vec::new(), absent: Vec::new() };
        for variant in result.variants() {
            sorted.sort(variant);
        }
        sorted
    }

    /// The rows that have samples of the quantity that `of` says.
    pub fn having(&self, of: impl Fn(&Row) -> Quantity) -> Vec<Having<'_>> {
        self.rows.iter().filter_map(|row| Some((row, row.series.get(&of(row))?))).collect()
    }

    /// Every quantity that some variant has, in the order in which readers want them.
    pub fn quantities(&self) -> Vec<Quantity> {
        let mut quantities: Vec<Quantity> =
            self.rows.iter().flat_map(|row| row.series.keys().copied()).collect();
        quantities.sort_unstable();
        quantities.dedup();
        quantities
    }

    fn sort(&mut self, variant: Variant<'result>) {
        let mut usable = Vec::new();
        let mut absent: IndexMap<(&str, Vec<String>), usize> = IndexMap::new();
        let mut sums: BTreeMap<Quantity, (Histogram, Vec<u64>)> = BTreeMap::new();
        let mut records = variant.records.clone();
        records.sort_by_key(|record| record.block);
        for record in records {
            let (name, reasons) = match &record.outcome {
                Outcome::Done | Outcome::Partial => match decode(record) {
                    Ok(counted) => {
                        for (quantity, median_ns, counters) in counted {
                            let (sum, medians) = sums.entry(quantity).or_default();
                            sum.add_counters(&counters);
                            medians.push((median_ns * 1e3).round() as u64);
                        }
                        usable.push(record);
                        continue;
                    }
                    Err(reason) => ("unreadable", vec![reason]),
                },
                Outcome::Skipped { reason } => ("skipped", vec![reason.clone()]),
                Outcome::Implausible { violations } => (
                    "implausible",
                    violations
                        .iter()
                        .map(|violation| format!("{}: {}", violation.rule, violation.evidence))
                        .collect(),
                ),
                Outcome::Hung { last_seen } => ("hung", last_seen.iter().map(ToString::to_string).collect()),
                Outcome::Failed { cause } => ("failed", vec![cause.clone()]),
            };
            // Told once with its number, if trials of the same configuration ended alike.
            *absent.entry((name, reasons)).or_default() += 1;
        }
        let configuration = variant.configuration;
        let absent = absent.into_iter();
        self.absent.extend(absent.map(|((name, reasons), trials)| Absent {
            configuration,
            name,
            reasons,
            trials,
        }));
        if usable.is_empty() {
            return;
        }
        let series = sums
            .into_iter()
            .filter(|(_, (histogram, _))| histogram.count() > 0)
            .map(|(quantity, (histogram, medians))| {
                let grid_ps = if quantity.is_shared_out() { 0.0 } else { variant.grid_ps };
                (quantity, Distribution::of(&histogram, medians, grid_ps))
            })
            .collect();
        self.rows.push(Row {
            variant: Variant {
                configuration: variant.configuration,
                records: usable,
                grid_ps: variant.grid_ps,
            },
            series,
        });
    }
}

/// What every series of a record counted, with its median.
fn decode(record: &Record) -> Result<Vec<(Quantity, f64, Counters)>, String> {
    let decoded = record.series.iter().map(|(quantity, series)| match series.counters() {
        Ok(counters) => Ok((*quantity, series.p50_ns, counters)),
        Err(error) => Err(format!("{}: {error}", name(*quantity))),
    });
    decoded.collect()
}

/// What the CPU time beside a quantity is.
pub fn cpu(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Operation => "CPU time per operation",
        Quantity::HandOff => "CPU time per hand-off",
        Quantity::Create | Quantity::Reap | Quantity::Life => "CPU time per hand-off or life of a task",
        Quantity::Transfer => "CPU time of the waiter and its kernel threads per transfer",
        Quantity::FirstWake | Quantity::MedianWake | Quantity::LastWake | Quantity::NotifyRound => {
            "CPU time of notifier and receivers per wake-up"
        }
        _ => "CPU time of a wake-up: the notifier's call and the waiter's time",
    }
}

/// A quantity's name in a heading.
pub fn name(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::RoundTrip => "Round trip",
        Quantity::Wake => "Wake-up latency",
        Quantity::WakeBack => "Wake-up latency, way back",
        Quantity::FirstWake => "First to wake",
        Quantity::MedianWake => "Median to wake",
        Quantity::LastWake => "Last to wake",
        Quantity::Response => "Response",
        Quantity::Notify => "Sender-side cost",
        Quantity::NotifyRound => "Sender-side cost of a whole round",
        Quantity::AroundWait => "Wait duration",
        Quantity::Operation => "Operation",
        Quantity::HandOff => "Hand-off",
        Quantity::Create => "Making a task",
        Quantity::Reap => "Reaping a task",
        Quantity::Life => "Life of a task",
        Quantity::Transfer => "Transfer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row_comparison::Judged;
    use crate::sample;
    use doorbell_results::configuration::{Pattern, Placement, WaitPolicy};
    use doorbell_results::record::Series;
    use doorbell_results::record::question::{self, By, Shape};

    /// One mechanism, gap and placement cost 19.5 µs of CPU in one
    /// verb, 57 in another and 99 in a third; later spin told the
    /// middle of its blocks where the others told all of them together.
    #[test]
    fn the_same_trials_have_the_same_figures_in_every_verb() {
        let gap_ns = 50_000;
        let configuration = Configuration {
            pattern: Pattern::OneWay { gap_ns },
            placement: Placement { relation: "same-l3".into(), cpus: Some([0, 1]) },
            ..sample::configuration("eventfd-epoll")
        };
        let records = (0..7_u32).map(|block| {
            // No two blocks alike in number, times or CPU time.
            let wakes = 40 + 30 * u64::from(block);
            let times: Vec<u64> =
                (0..wakes).map(|wake| 8_000_000 + 40_000 * (wake + 9 * u64::from(block))).collect();
            let mut record = sample::record(&configuration, block, &times);
            let calls: Histogram = times.iter().fold(Histogram::new(), |mut calls, ps| {
                calls.record(ps / 4);
                calls
            });
            record.series.insert(Quantity::Notify, Series::from(&calls));
            record.sides[0].system_ns = wakes * gap_ns;
            // Of a file from before it was told there is none.
            record.sides[0].call_ns = (block > 2).then_some(1_000.0 + 90.0 * f64::from(block));
            record.sides[1].system_ns = wakes * (3_000 + 700 * u64::from(block));
            record
        });
        let mut result = sample::result("ping", records.collect());
        // Two ways to wait are needed for there to be a choice.
        let slower = |record: &Record| {
            let mut slower = record.clone();
            slower.configuration.wait = WaitPolicy::SpinThenBlock { spin_ns: 20_000 };
            slower
        };
        let more: Vec<Record> = result.records.iter().map(slower).collect();
        result.plan.configurations.push(more[0].configuration.clone());
        result.records.extend(more);
        let figures = Figures::of(&result);
        let row = figures.rows.iter().find(|row| *row.configuration() == configuration).unwrap();
        let wakes = &row.series[&Quantity::Wake];
        let having: Vec<_> = figures.rows.iter().map(|row| (row, &row.series[&Quantity::Wake])).collect();
        let middle = Judged::of(&having, Quantity::Wake).p50_ps(&(row, wakes));
        let told = [middle, wakes.quantile(0.99) as f64, row.cpu_ps().unwrap()];

        let spun = doorbell_verdict::spin::spin(&result, 1.0).unwrap();
        let way = spun.gaps[0].ways.iter().find(|way| way.wait == WaitPolicy::Block).unwrap();
        // A bucket's middle in a table, its end for a verdict: three digits are the same.
        let same = |found: [f64; 3]| {
            let near = found.iter().zip(&told).all(|(found, told)| (found / told - 1.0).abs() < 1e-3);
            assert!(near && (found[2] / told[2] - 1.0).abs() < 1e-12, "{found:?} and {told:?}");
        };
        same([way.percentiles_ns[0], way.percentiles_ns[1], way.cpu_ns].map(|ns| ns * 1e3));

        let question = question::Pick {
            shape: Shape::OneToOne,
            needs: Vec::new(),
            by: By::P50,
            gap_ns,
            relation: None,
            traffic: None,
        };
        let picked = doorbell_verdict::pick::pick(&result, &question).unwrap();
        let ranked = picked.ranked.iter().find(|ranked| ranked.wait == WaitPolicy::Block).unwrap();
        let [p50, p99, _] = ranked.figures_ps.map(|ps| ps as f64);
        same([p50, p99, ranked.cpu_ns.unwrap() * 1e3]);
    }

    #[test]
    fn a_percentile_takes_three_samples_beyond_it() {
        for (q, least) in [(0.9, 30), (0.99, 300), (0.999, 3000), (0.9999, 30_000)] {
            assert!(supports(least, q) && !supports(least - 1, q), "{q}");
        }
        assert!(supports(1, 0.5) && supports(1, 1.0));
    }
}
