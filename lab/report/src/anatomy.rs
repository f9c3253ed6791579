// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell anatomy` on the terminal: the stages of each path, a waterfall of the median and of
//! the tail, what tracing cost.

use super::axis;
use super::bars;
use super::figures::Figures;
use super::section::Section;
use super::style::{Role, Style};
use super::subsection::Subsection;
use super::table::{Align, Column, Table, number, word};
use super::unit::{Scale, count, time};
use crate::wording::counted;
use doorbell_results::anatomy::{Hidden, Mark, Rank, Wake};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::{Histogram, ResultFile};
use doorbell_verdict::anatomy::{Cost, Dissected, PathTimes, dissect};

/// Columns of a distribution's strip, and of a waterfall's bars.
const STRIP: usize = 24;
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
        answer(result)
    }
    fn text(&self, result: &ResultFile, _: &Figures, style: &Style) -> String {
        tables(result, style)
    }
}

/// The stage that takes most of each variant's wake-ups, and all stages of the first.
fn answer(result: &ResultFile) -> Vec<Subsection> {
    let variants = dissect(result);
    let ways = || variants.iter().filter_map(|variant| Some((variant, variant.paths.first()?)));
    let lead = ways().map(|(variant, way)| {
        let longest = way.stages.iter().max_by(|a, b| a.1.mean().total_cmp(&b.1.mean()));
        let longest = longest.map_or_else(String::new, |(mark, stage)| {
            let share = 100.0 * stage.mean() / way.whole.mean().max(1.0);
            format!("; {share:.0} % of it until \"{}\"", mark.stage())
        });
        let whole = time(way.whole.quantile(0.5) as f64);
        format!("{}: a wake-up takes {whole} (median){longest}.", label(variant.configuration, &variants))
    });
    let lead: Vec<String> = lead.collect();
    let table = ways().next().map(|(_, way)| {
        let scale = Scale::for_ps(way.stages.values().map(Histogram::mean));
        let mut table = Table::new(vec![
            word(format!("stage, {}", scale.unit.sign())),
            number("p50"),
            number("p99"),
            number("mean"),
            number("share"),
        ]);
        for line in rows(way, scale) {
            let [stage, p50, _, p99, _, mean, share, _] = &line[..] else { continue };
            table.row([stage, p50, p99, mean, share].map(Clone::clone).to_vec());
        }
        table
    });
    match lead.is_empty() {
        true => Vec::new(),
        false => {
            vec![Subsection { title: "Where the time goes".to_owned(), lead, table, ..Subsection::default() }]
        }
    }
}

/// Everything about a run of traced trials.
pub fn tables(result: &ResultFile, style: &Style) -> String {
    let variants = dissect(result);
    if variants.iter().all(|variant| variant.paths.is_empty()) {
        return "\nNo traced trial of this run has figures.\n".to_owned();
    }
    let mut out = costs(&variants, style);
    for variant in variants.iter().filter(|variant| !variant.paths.is_empty()) {
        out.push_str(&stages(variant, &variants, style));
        for wake in &variant.shown {
            out.push_str(&waterfall(wake, &title(wake), style));
        }
    }
    out.push_str(&style.wrap(
        "A stage ends at the mark that names it and begins at the one before; what the kernel does \
         not show belongs to the stage after. The notifier goes on while the waiter's CPU wakes \
         up: its own return is no part of the way.",
        0,
    ));
    out
}

/// What tells this variant from the others, in words.
pub(super) fn label(configuration: &Configuration, variants: &[Dissected]) -> String {
    axis::label(configuration, &axis::varying(variants.iter().map(|variant| variant.configuration)))
}

/// The name of a wake that is shown.
pub(super) fn title(wake: &Wake) -> String {
    let which = match wake.rank {
        Rank::Median => "A median wake-up",
        Rank::P99 => "A wake-up at the 99th percentile",
        Rank::Worst => "The slowest wake-up",
    };
    format!("{which}: {}", time(wake.whole_ps() as f64))
}

fn heading(text: &str, style: &Style) -> String {
    format!("\n{}\n", style.paint(Role::Heading, &style.text(text)))
}

fn stages(variant: &Dissected, variants: &[Dissected], style: &Style) -> String {
    let mut out = heading(&format!("Where the time goes: {}", label(variant.configuration, variants)), style);
    let all: u64 = variant.paths.iter().map(|way| way.whole.count()).sum();
    let rare = |way: &&PathTimes| (way.whole.count() as f64) < RARE * all as f64;
    for way in variant.paths.iter().filter(|way| !rare(way)) {
        out.push_str(&stage_table(way, all, style));
    }
    for way in variant.paths.iter().filter(rare) {
        let line = format!(
            "{}: {} of {}, median {}.",
            way.name(),
            count(way.whole.count()),
            count(all),
            time(way.whole.quantile(0.5) as f64)
        );
        out.push_str(&style.wrap(&line, 2));
    }
    for note in notes(variant) {
        out.push_str(&style.wrap(&note, 2));
    }
    out
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

fn stage_table(way: &PathTimes, all: u64, style: &Style) -> String {
    let scale = Scale::for_ps(way.stages.values().map(|stage| stage.quantile(0.5) as f64));
    let number = |head: &str| Column::new(head, Align::Right);
    let mut table = Table::new(vec![
        Column::new(format!("{}, {}", way.name(), scale.unit.sign()), Align::Left),
        number("p50"),
        number("p90").keep(4),
        number("p99"),
        number("max").keep(5),
        number("mean").keep(3),
        number("share").keep(6),
        number("count").keep(2),
        Column::new("distribution", Align::Left).keep(1),
    ]);
    let ends = || way.stages.values().map(|stage| (stage.min().max(1), stage.max()));
    let from = ends().map(|ends| ends.0).min().unwrap_or(1) as f64;
    let to = ends().map(|ends| ends.1).max().unwrap_or(1) as f64;
    let whole = way.whole.mean();
    for mark in &way.marks {
        let Some(stage) = way.stages.get(mark) else { continue };
        let mut line = vec![mark.stage().to_owned()];
        line.extend([0.5, 0.9, 0.99].map(|q| scale.show(stage.quantile(q) as f64)));
        line.push(scale.show(stage.max() as f64));
        line.push(scale.show(stage.mean()));
        line.push(format!("{:.0} %", 100.0 * stage.mean() / whole.max(1.0)));
        line.push(count(stage.count()));
        line.push(bars::strip(&stage.buckets().collect::<Vec<_>>(), from, to, STRIP, style));
        table.row(line);
    }
    let mut line = vec!["the whole wake-up".to_owned()];
    line.extend([0.5, 0.9, 0.99].map(|q| scale.show(way.whole.quantile(q) as f64)));
    line.extend([scale.show(way.whole.max() as f64), scale.show(whole), "100 %".to_owned()]);
    line.push(format!("{} of {}", count(way.whole.count()), count(all)));
    table.row(line);
    table.render(style)
}

/// A wake, a bar for each stage.
pub fn waterfall(wake: &Wake, title: &str, style: &Style) -> String {
    let whole = wake.whole_ps().max(1) as f64;
    let scale = Scale::for_ps([whole / 8.0]);
    let mut table = Table::new(vec![
        Column::new(format!("{title} (stages in {})", scale.unit.sign()), Align::Left),
        Column::new("took", Align::Right),
        Column::new("at", Align::Right).keep(2),
        Column::new("CPU", Align::Right).keep(3),
        Column::new("", Align::Left).keep(4),
    ]);
    for (mark, from, to) in wake.stages() {
        let on = wake.marks.iter().find(|passed| passed.mark == mark).and_then(|passed| passed.cpu);
        table.row(vec![
            format!("  {}", mark.stage()),
            scale.show(to.saturating_sub(from).max(0) as f64),
            scale.show(to as f64),
            on.map_or_else(String::new, |cpu| cpu.to_string()),
            bar(from as f64 / whole, to as f64 / whole, style),
        ]);
    }
    format!("\n{}", table.render(style))
}

/// A bar from one share of the width to another; what is too short for a column still shows.
fn bar(from: f64, to: f64, style: &Style) -> String {
    let column = |share: f64| (share.clamp(0.0, 1.0) * BARS as f64).round() as usize;
    let (start, end) = (column(from), column(to));
    let (full, thin) = if style.unicode { ('█', '▏') } else { ('#', '|') };
    let mut out = " ".repeat(start.min(BARS - 1));
    if end > start {
        out.extend(std::iter::repeat_n(full, end - start));
    } else {
        out.push(thin);
    }
    out
}

/// What the recording itself cost.
fn costs(variants: &[Dissected], style: &Style) -> String {
    let known: Vec<(&Dissected, Cost)> =
        variants.iter().filter_map(|variant| Some((variant, variant.cost?))).collect();
    if known.is_empty() {
        return String::new();
    }
    let scale = Scale::for_ps(known.iter().map(|(_, cost)| cost.without_ns * 1e3));
    let number = |head: &str| Column::new(head, Align::Right);
    let mut table = Table::new(vec![
        Column::new(format!("What tracing costs, {}", scale.unit.sign()), Align::Left),
        number("p50 without"),
        number("p50 with"),
        number("difference"),
        number("share").keep(3),
        number("blocks").keep(2),
        number("wake-ups cut").keep(1),
    ]);
    for (variant, cost) in known {
        table.row(vec![
            label(variant.configuration, variants),
            scale.show(cost.without_ns * 1e3),
            scale.show(cost.with_ns * 1e3),
            difference(&cost, |ns| scale.show(ns * 1e3)),
            if cost.is_shown() {
                format!("{:+.0} %", 100.0 * cost.difference_ns / cost.without_ns.max(1.0))
            } else {
                "none shown".to_owned()
            },
            count(cost.blocks as u64),
            count(variant.counts.cut),
        ]);
    }
    let mut out = format!("\n{}", table.render(style));
    let note = "Medians of the same wake-ups with and without the kernel's events recorded, in the \
        same blocks; the interval holds the mean difference of a block with 95 %. All stages below \
        contain their part of it.";
    out.push_str(&style.wrap(note, 2));
    out
}

/// What tracing added, with its interval: of fewer blocks than it takes for one nothing is said,
/// for what they differ by is the machine's as much as the tracing's.
pub(super) fn difference(cost: &Cost, show: impl Fn(f64) -> String) -> String {
    match cost.within_ns {
        Some(within) => format!("{} ± {}", show(cost.difference_ns), show(within)),
        None => "inconclusive".to_owned(),
    }
}

/// The rows of a table of stages for the page: names, then numbers as text.
pub(super) fn rows(way: &PathTimes, scale: Scale) -> Vec<Vec<String>> {
    let whole = way.whole.mean().max(1.0);
    let row = |name: &str, times: &doorbell_results::record::Histogram| {
        let mut cells = vec![name.to_owned()];
        cells.extend([0.5, 0.9, 0.99].map(|q| scale.show(times.quantile(q) as f64)));
        cells.push(scale.show(times.max() as f64));
        cells.push(scale.show(times.mean()));
        cells.push(format!("{:.0} %", 100.0 * times.mean() / whole));
        cells.push(count(times.count()));
        cells
    };
    let stages = way.marks.iter().filter_map(|mark: &Mark| Some(row(mark.stage(), way.stages.get(mark)?)));
    stages.chain([row("the whole wake-up", &way.whole)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::anatomy::{Anatomy, sample as recorded};
    use doorbell_results::configuration::{Pattern, Trace};
    use doorbell_results::record::sample;

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
    fn every_stage_has_a_row_and_every_shown_wake_a_waterfall() {
        let text = tables(&result(&recorded::whole()), &Style::PLAIN);
        for mark in &Mark::ALL[1..] {
            // In one or both tables, and in each of three waterfalls;
            // the head of a table may name a stage as well.
            let tables = if *mark == Mark::Taken { 1 } else { 2 };
            let rows = text.lines().filter(|line| line.trim_start().starts_with(mark.stage())).count();
            assert_eq!(rows, tables + 3, "{mark:?}:\n{text}");
        }
        assert!(text.contains("across CPUs, by interrupt"), "{text}");
        assert!(text.contains("68 of 80"), "the wake-ups of four trials together:\n{text}");
        assert!(text.is_ascii(), "{text}");
    }

    #[test]
    fn what_the_kernel_hides_has_no_row_and_is_named() {
        let mut result = result(&recorded::no_interrupts());
        for anatomy in result.records.iter_mut().filter_map(|record| record.anatomy.as_mut()) {
            let why = "this kernel has no event ipi_send_cpu".to_owned();
            anatomy.hidden.push(doorbell_results::anatomy::Hidden { mark: Mark::InterruptSent, why });
        }
        let text = tables(&result, &Style::PLAIN);
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
        assert!(tables(&result, &Style::PLAIN).contains("woken on its way to sleep"));
        for anatomy in result.records.iter_mut().filter_map(|record| record.anatomy.as_mut()) {
            let why = "CPU 1 ran sides without telling that it turned to them".to_owned();
            anatomy.hidden.push(doorbell_results::anatomy::Hidden { mark: Mark::ScheduledIn, why });
        }
        let text = tables(&result, &Style::PLAIN);
        assert!(
            text.contains("CPU 1 ran sides without telling")
                && text.contains("the switch to the waiter not recorded"),
            "{text}"
        );
        assert!(!text.contains("on its way to sleep"), "{text}");
    }

    #[test]
    fn the_cost_of_tracing_stands_with_its_interval() {
        let text = tables(&result(&recorded::whole()), &Style::PLAIN);
        let line = text.lines().skip_while(|line| !line.starts_with("What tracing costs")).nth(1).unwrap();
        assert!(line.contains("+-"), "{line}");
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
        let text = tables(&result, &Style::PLAIN);
        let line = text.lines().skip_while(|line| !line.starts_with("What tracing costs")).nth(1).unwrap();
        assert!(line.contains("inconclusive") && line.contains("none shown"), "{line}");
    }

    #[test]
    fn bars_follow_each_other_and_none_is_lost() {
        let style = Style { unicode: true, ..Style::PLAIN };
        assert_eq!(bar(0.0, 0.25, &style), "█".repeat(12));
        assert_eq!(bar(0.25, 0.2501, &style), format!("{}▏", " ".repeat(12)));
        assert_eq!(bar(1.0, 1.0, &Style::PLAIN), format!("{}|", " ".repeat(47)));
    }
}
