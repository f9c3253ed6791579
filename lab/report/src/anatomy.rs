// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell anatomy` on the terminal: the stages of each path, a waterfall of the median and of
//! the tail, what tracing cost.

use super::axis;
use super::bars;
use super::columns::Columns;
use super::figures::Figures;
use super::section::Section;
use super::subsection::Subsection;
use super::table::{Table, number, word};
use super::unit::{Scale, count, time};
use crate::wording::counted;
use doorbell_results::anatomy::{Hidden, Mark, Rank, Wake};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::{Histogram, ResultFile};
use doorbell_verdict::anatomy::{Cost, Dissected, PathTimes, dissect};

/// Columns of a waterfall's bars.
const BARS: usize = 48;

/// Paths of fewer wakes than this share of their variant are summed up in a line.
const RARE: f64 = 0.02;

#[derive(Debug)]
pub struct Stages;

impl Section for Stages {
    fn name(&self) -> &'static str {
        "stages"
    }
    fn answer(&self, result: &ResultFile, _: &Figures) -> Vec<Subsection> {
        answer(result).into_iter().collect()
    }
    fn details(&self, result: &ResultFile, _: &Figures) -> Vec<Subsection> {
        details(result)
    }
}

/// The stage that takes most of each variant's wake-ups, and all stages of the first.
fn answer(result: &ResultFile) -> Option<Subsection> {
    let variants = dissect(result);
    let ways = || variants.iter().filter_map(|variant| Some((variant, variant.paths.first()?)));
    let lead = ways().map(|(variant, way)| {
        let longest = way.stages.iter().max_by(|a, b| a.1.mean().total_cmp(&b.1.mean()));
        let longest = longest.map_or_else(String::new, |(mark, stage)| {
            format!("; {} of it until \"{}\"", share(stage, way), mark.stage())
        });
        let whole = time(way.whole.quantile(0.5) as f64);
        format!("{}: a wake-up takes {whole} (median){longest}.", label(variant.configuration, &variants))
    });
    let (_, way) = ways().next()?;
    let scale = Scale::for_ps(way.stages.values().map(Histogram::mean));
    let table = Columns::none()
        .with(word(format!("stage, {}", scale.unit.sign())), |(name, _): &Stage| (*name).to_owned())
        .each([(number("p50"), 0.5), (number("p99"), 0.99)], |(_, times), q| {
            scale.show(times.quantile(*q) as f64)
        })
        .with(number("mean"), |(_, times)| scale.show(times.mean()))
        .with(number("share"), |(_, times)| share(times, way))
        .table(&stages_of(way));
    Some(Subsection::answer("Where the time goes", lead.collect(), table))
}

fn details(result: &ResultFile) -> Vec<Subsection> {
    let variants = dissect(result);
    if variants.iter().all(|variant| variant.paths.is_empty()) {
        let none = "No traced trial of this run has figures.".to_owned();
        return Subsection::of_lines("", vec![none]).into_iter().collect();
    }
    let mut told: Vec<Subsection> = costs(&variants).into_iter().collect();
    for variant in variants.iter().filter(|variant| !variant.paths.is_empty()) {
        told.extend(stages(variant, &variants));
        told.extend(variant.shown.iter().map(|wake| waterfall(wake, &title(wake))));
    }
    let note = "A stage ends at the mark that names it and begins at the one before; what the kernel \
        does not show belongs to the stage after. The notifier goes on while the waiter's CPU wakes \
        up: its own return is no part of the way.";
    told.extend(Subsection::of_lines("", vec![note.to_owned()]));
    told
}

/// What tells this variant from the others, in words.
pub(super) fn label(configuration: &Configuration, variants: &[Dissected]) -> String {
    axis::label(configuration, &axis::varying(variants.iter().map(|variant| variant.configuration)))
}

pub(super) fn title(wake: &Wake) -> String {
    let which = match wake.rank {
        Rank::Median => "A median wake-up",
        Rank::P99 => "A wake-up at the 99th percentile",
        Rank::Worst => "The slowest wake-up",
    };
    format!("{which}: {}", time(wake.whole_ps() as f64))
}

/// Every path of a variant that is not rare, with its stages.
fn stages(variant: &Dissected, variants: &[Dissected]) -> Vec<Subsection> {
    let all: u64 = variant.paths.iter().map(|way| way.whole.count()).sum();
    let (rare, usual): (Vec<&PathTimes>, Vec<&PathTimes>) =
        variant.paths.iter().partition(|way| (way.whole.count() as f64) < RARE * all as f64);
    let table = |way: &&PathTimes| Subsection { table: Some(stage_table(way, all)), ..Subsection::default() };
    let mut told: Vec<Subsection> = usual.iter().map(table).collect();
    let title = format!("Where the time goes: {}", label(variant.configuration, variants));
    match told.first_mut() {
        Some(first) => first.title = title,
        None => told.push(Subsection { title, ..Subsection::default() }),
    }
    let summed_up = |way: &PathTimes| {
        let (seen, median) = (count(way.whole.count()), time(way.whole.quantile(0.5) as f64));
        format!("{}: {seen} of {}, median {median}.", way.name(), count(all))
    };
    let notes: Vec<String> = rare.into_iter().map(summed_up).chain(notes(variant)).collect();
    if let Some(last) = told.last_mut() {
        last.notes = notes;
    }
    told
}

/// What cannot be seen here, in a sentence.
pub(super) fn hidden(hidden: &Hidden) -> String {
    format!(
        "Hidden here: {} ({}). Its time belongs to the stage that follows.",
        hidden.mark.stage(),
        hidden.why
    )
}

/// What must be known of a variant besides its stages.
pub(super) fn notes(variant: &Dissected) -> Vec<String> {
    let mut notes: Vec<String> = variant.hidden.iter().map(|one| hidden(one)).collect();
    let counts = variant.counts;
    if counts.incomplete > 0 || counts.lost_events > 0 {
        notes.push(format!(
            "The kernel overwrote {} before they were read; {} of their time left out.",
            counted(counts.lost_events, "event"),
            counted(counts.incomplete, "wake-up")
        ));
    }
    if counts.merged > 0 {
        notes.push(format!("{} that brought several messages left out.", counted(counts.merged, "wake-up")));
    }
    notes
}

/// A stage, and how long it took.
pub(super) type Stage<'a> = (&'static str, &'a Histogram);

/// The stages of a path in their order, then the whole of it.
pub(super) fn stages_of(way: &PathTimes) -> Vec<Stage<'_>> {
    let stages = way.marks.iter().filter_map(|mark: &Mark| Some((mark.stage(), way.stages.get(mark)?)));
    stages.chain([("the whole wake-up", &way.whole)]).collect()
}

/// The part of a path that a stage takes.
fn share(times: &Histogram, way: &PathTimes) -> String {
    format!("{:.0} %", 100.0 * times.mean() / way.whole.mean().max(1.0))
}

/// What every form of the table of stages has.
pub(super) fn columns<'a>(way: &'a PathTimes, head: String, scale: Scale) -> Columns<'a, Stage<'a>> {
    let percentiles = [(number("p50"), 0.5), (number("p90").keep(4), 0.9), (number("p99"), 0.99)];
    Columns::none()
        .with(word(head), |(name, _): &Stage| (*name).to_owned())
        .each(percentiles, move |(_, times), q| scale.show(times.quantile(*q) as f64))
        .with(number("max").keep(5), move |(_, times)| scale.show(times.max() as f64))
        .with(number("mean").keep(3), move |(_, times)| scale.show(times.mean()))
        .with(number("share").keep(6), |(_, times)| share(times, way))
}

/// The unit in which the stages of a path read best.
pub(super) fn scale_of(way: &PathTimes) -> Scale {
    Scale::for_ps(way.stages.values().map(|stage| stage.quantile(0.5) as f64))
}

/// The stages of a path that `all` wake-ups could have taken.
fn stage_table(way: &PathTimes, all: u64) -> Table {
    let scale = scale_of(way);
    let ends = || way.stages.values().map(|stage| (stage.min().max(1), stage.max()));
    let from = ends().map(|ends| ends.0).min().unwrap_or(1) as f64;
    let to = ends().map(|ends| ends.1).max().unwrap_or(1) as f64;
    let whole = |times: &Histogram| std::ptr::eq(times, &way.whole);
    columns(way, format!("{}, {}", way.name(), scale.unit.sign()), scale)
        .with(number("count").keep(2), |(_, times)| match whole(times) {
            true => format!("{} of {}", count(times.count()), count(all)),
            false => count(times.count()),
        })
        .with(word("distribution").keep(1), |(_, times)| match whole(times) {
            true => String::new(),
            false => bars::strip(&times.buckets().collect::<Vec<_>>(), from, to),
        })
        .table(&stages_of(way))
}

/// A wake, a bar for each stage.
pub(super) fn waterfall(wake: &Wake, title: &str) -> Subsection {
    let whole = wake.whole_ps().max(1) as f64;
    let scale = Scale::for_ps([whole / 8.0]);
    let on = |mark: Mark| wake.marks.iter().find(|passed| passed.mark == mark).and_then(|passed| passed.cpu);
    let head = format!("{title} (stages in {})", scale.unit.sign());
    let table = Columns::none()
        .with(word(head), |(mark, ..): &(Mark, i64, i64)| format!("  {}", mark.stage()))
        .with(number("took"), |(_, from, to)| scale.show(to.saturating_sub(*from).max(0) as f64))
        .with(number("at").keep(2), |(.., to)| scale.show(*to as f64))
        .with(number("CPU").keep(3), |(mark, ..)| on(*mark).map_or_else(String::new, |cpu| cpu.to_string()))
        .with(word("").keep(4), |(_, from, to)| bar(*from as f64 / whole, *to as f64 / whole))
        .table(&wake.stages().collect::<Vec<_>>());
    Subsection { table: Some(table), ..Subsection::default() }
}

/// A bar from one share of the width to another; what is too short for a column still shows.
fn bar(from: f64, to: f64) -> String {
    let column = |share: f64| (share.clamp(0.0, 1.0) * BARS as f64).round() as usize;
    let (start, end) = (column(from), column(to));
    let long = if end > start { "█".repeat(end - start) } else { "▏".to_owned() };
    " ".repeat(start.min(BARS - 1)) + &long
}

/// What the recording itself cost.
fn costs(variants: &[Dissected]) -> Option<Subsection> {
    let known: Vec<(&Dissected, Cost)> =
        variants.iter().filter_map(|variant| Some((variant, variant.cost?))).collect();
    let scale = Scale::for_ps(known.iter().map(|(_, cost)| cost.without_ns * 1e3));
    let head = format!("What tracing costs, {}", scale.unit.sign());
    let table = Columns::none()
        .with(word(head), |(variant, _): &(&Dissected, Cost)| label(variant.configuration, variants))
        .with(number("p50 without"), |(_, cost)| scale.show_ns(cost.without_ns))
        .with(number("p50 with"), |(_, cost)| scale.show_ns(cost.with_ns))
        .with(number("difference"), |(_, cost)| difference(cost, |ns| scale.show_ns(ns)))
        .with(number("share").keep(3), |(_, cost)| match cost.is_shown() {
            true => format!("{:+.0} %", 100.0 * cost.difference_ns / cost.without_ns.max(1.0)),
            false => "none shown".to_owned(),
        })
        .with(number("blocks").keep(2), |(_, cost)| count(cost.blocks as u64))
        .with(number("wake-ups cut").keep(1), |(variant, _)| count(variant.counts.cut))
        .table(&known);
    let note = "Medians of the same wake-ups with and without the kernel's events recorded, in the \
        same blocks; the interval holds the mean difference of a block with 95 %. All stages below \
        contain their part of it.";
    Subsection::of_table("", table, vec![note.to_owned()])
}

/// What tracing added, with its interval: of fewer blocks than it takes for one nothing is said,
/// for what they differ by is the machine's as much as the tracing's.
pub(super) fn difference(cost: &Cost, show: impl Fn(f64) -> String) -> String {
    match cost.within_ns {
        Some(within) => format!("{} ± {}", show(cost.difference_ns), show(within)),
        None => "inconclusive".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use crate::subsection::text;
    use doorbell_results::anatomy::{Anatomy, sample as recorded};
    use doorbell_results::configuration::{Pattern, Trace};
    use doorbell_results::record::sample;

    fn shown(result: &ResultFile) -> String {
        text(&details(result), &Style::PLAIN)
    }

    /// Two configurations, one of them traced, whose anatomy is a recorded one.
    fn result(recorded: &Anatomy) -> ResultFile {
        let bare = Configuration {
            pattern: Pattern::OneWay { gap_ns: 1_000_000 },
            ..sample::configuration("futex")
        };
        let traced = Configuration { trace: Some(Trace::Stages), ..bare.clone() };
        let mut result = sample::result(&[bare, traced], 4, |configuration, block| {
            16_000.0 + 1000.0 * f64::from(u8::from(configuration.trace.is_some())) + f64::from(block)
        });
        for record in result.records.iter_mut().filter(|record| record.configuration.trace.is_some()) {
            record.anatomy = Some(recorded.clone());
        }
        result
    }

    #[test]
    fn what_the_kernel_hides_has_no_row_and_is_named() {
        let mut result = result(&recorded::no_interrupts());
        for anatomy in result.records.iter_mut().filter_map(|record| record.anatomy.as_mut()) {
            let why = "this kernel has no event ipi_send_cpu".to_owned();
            anatomy.hidden.push(doorbell_results::anatomy::Hidden { mark: Mark::InterruptSent, why });
        }
        let text = shown(&result);
        assert!(
            text.contains("Hidden here: interrupt sent (this kernel has no event ipi_send_cpu)"),
            "{text}"
        );
        assert!(!text.contains("\ninterrupt sent"), "{text}");
    }

    /// Wakes to a CPU that left out its switches from idle were said
    /// to have met the waiter before it slept.
    #[test]
    fn a_waiter_whose_coming_is_not_told_is_not_said_to_have_stayed() {
        let mut result = result(&recorded::no_switches());
        assert!(shown(&result).contains("woken on its way to sleep"));
        for anatomy in result.records.iter_mut().filter_map(|record| record.anatomy.as_mut()) {
            let why = "CPU 1 ran sides without telling that it turned to them".to_owned();
            anatomy.hidden.push(doorbell_results::anatomy::Hidden { mark: Mark::ScheduledIn, why });
        }
        let text = shown(&result);
        assert!(
            text.contains("CPU 1 ran sides without telling")
                && text.contains("the switch to the waiter not recorded"),
            "{text}"
        );
        assert!(!text.contains("on its way to sleep"), "{text}");
    }

    /// With one block the difference of the two trials stood there as
    /// the cost, at times a negative one.
    #[test]
    fn no_cost_of_tracing_is_told_from_one_block_or_within_the_noise() {
        let cost =
            Cost { without_ns: 9000.0, with_ns: 8000.0, difference_ns: -1000.0, within_ns: None, blocks: 1 };
        let ns = |ns: f64| format!("{ns:.0}");
        assert_eq!((difference(&cost, ns).as_str(), cost.is_shown()), ("inconclusive", false));
        let noisy = Cost { within_ns: Some(1500.0), blocks: 5, ..cost };
        assert_eq!((difference(&noisy, ns).as_str(), noisy.is_shown()), ("-1000 ± 1500", false));
        assert!(Cost { difference_ns: 2000.0, ..noisy }.is_shown());
        let mut result = result(&recorded::whole());
        result.records.retain(|record| record.block == 0);
        let text = shown(&result);
        let line = text.lines().skip_while(|line| !line.starts_with("What tracing costs")).nth(1).unwrap();
        assert!(line.contains("inconclusive") && line.contains("none shown"), "{line}");
    }

    #[test]
    fn bars_follow_each_other_and_none_is_lost() {
        assert_eq!(bar(0.0, 0.25), "█".repeat(12));
        assert_eq!(bar(0.25, 0.2501), format!("{}▏", " ".repeat(12)));
        assert_eq!(bar(1.0, 1.0), format!("{}▏", " ".repeat(47)));
    }
}
