// SPDX-License-Identifier: MIT OR Apache-2.0
//! A survey on the terminal: first what serves which need best, in a screen; in detail one line for
//! each mechanism and one for each sleep.

use super::answer::answer;
use super::axis;
use super::doctor::{Detail, doctor};
use super::figures::{Distribution, Figures, Row, supports};
use super::row_comparison::interval;
use super::section::{Section, leads};
use super::sentence::Sentence;
use super::style::{Role, Style, width};
use super::subsection::Subsection;
use super::switch::Operations;
use super::table::{Align, Column, Table, number, word};
use super::unit::{Scale, Unit, alike, count, time};
use doorbell_results::configuration::WaitPolicy;
use doorbell_results::quantity::short;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{Histogram, ResultFile, Variant};
use doorbell_verdict::answer::{Answer, Need, Other, Pick, Placed};
use doorbell_verdict::compare::RELEVANT;
use doorbell_verdict::ratio::Standing;
use doorbell_verdict::sleeps::Slept;

#[derive(Debug)]
pub struct Survey;

impl Section for Survey {
    fn name(&self) -> &'static str {
        "survey"
    }
    fn answer(&self, result: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        // Which mechanism to use is a question of times, and an emulator's times answer none.
        if result.emulated() {
            return super::emulated::counts_and_ratios(figures).into_iter().collect();
        }
        screen(&doorbell_verdict::answer::answer(result), figures)
    }
    fn sentences(&self, result: &ResultFile, figures: &Figures) -> Vec<Sentence> {
        let fastest = match result.emulated() {
            true => Vec::new(),
            false => fastest(&doorbell_verdict::answer::answer(result).picks),
        };
        fastest.into_iter().chain(leads(self.answer(result, figures))).collect()
    }
    fn text(&self, result: &ResultFile, _: &Figures, style: &Style) -> String {
        let variants = result.variants();
        let answered = doorbell_verdict::answer::answer(result);
        let mut out = round_trips(&variants, &answered, style) + &sleeps(&variants, &answered, style);
        out += &doctor(&result.machine, Detail::Brief, style);
        if !result.emulated() {
            out += &answer(&answered, style);
        }
        out
    }
    /// The one operation of a survey is there for its time alone.
    fn tells(&self, name: &str) -> bool {
        Operations.tells(name)
    }
}

/// Rows of the first screen's table at the most, and those that leave
/// room for every sentence below it.
const MOST_ROWS: usize = 11;
const FEW_ROWS: usize = 6;

/// Columns of the narrowest terminal that the first screen is made for.
const SCREEN: usize = 80;

/// The answer in a screen.
fn screen(answer: &Answer, figures: &Figures) -> Vec<Subsection> {
    let picks = chosen(&answer.picks);
    let scale = Scale { unit: Unit::Microseconds };
    let heads = [
        word("placement"),
        word("need"),
        word("mechanism"),
        number("p50"),
        number("p99"),
        number("CPU"),
        word("the others"),
    ];
    let mut last = "";
    let mut rows: Vec<[String; 6]> = Vec::new();
    for pick in &picks {
        let row = figures.rows.iter().find(|row| measured(row, pick));
        let series = row.and_then(|row| row.series.get(&Quantity::RoundTrip));
        let p99 = series
            .map_or_else(dash, |series: &Distribution| series.above(0.99, pick.round_trip_ns * 1e3, scale));
        let again = std::mem::replace(&mut last, &pick.relation) == pick.relation;
        rows.push([
            if again { String::new() } else { axis::relation(&pick.relation) },
            need(pick.need).to_owned(),
            pick.best.clone(),
            scale.show(pick.round_trip_ns * 1e3),
            p99,
            pick.cpu_ns.map_or_else(dash, |ns| scale.show(ns * 1e3)),
        ]);
    }
    let widest = |place: usize| {
        let cells = rows.iter().map(|row| width(&row[place]));
        cells.fold(width(&heads[place].head), usize::max) + 2
    };
    let room = SCREEN.saturating_sub((0..6).map(widest).sum());
    let mut table = Table::new(heads.to_vec());
    for (row, pick) in rows.into_iter().zip(&picks) {
        table.row(row.into_iter().chain([others(pick, room)]).collect());
    }
    let few = picks.len() <= FEW_ROWS;
    let pinning = pinning(&answer.placements);
    let sleeping: Vec<String> = answer.sleeps.iter().map(sleeping).collect();
    // Where there are many placements, one mechanism speaks for all.
    let most = if few { usize::MAX } else { 1 };
    let lines = pinning.into_iter().take(most).chain(sleeping.into_iter().take(most)).collect();
    let title = "Fastest there and back, µs (CPU: of a wake-up)";
    let told = Subsection::of_table(title, table, Vec::new()).into_iter();
    told.chain(Subsection::of_lines("", lines)).collect()
}

fn measured(row: &Row, pick: &Pick) -> bool {
    let configuration = row.configuration();
    configuration.subject == pick.best
        && configuration.placement.relation == pick.relation
        && configuration.pattern.back_to_back()
        && configuration.wait == WaitPolicy::Block
}

/// The picks for which there is room: a descriptor's only where two cores are nearest, then the
/// needs of places in the middle.
fn chosen(picks: &[Pick]) -> Vec<&Pick> {
    let mut relations: Vec<&str> = picks.iter().map(|pick| pick.relation.as_str()).collect();
    relations.dedup();
    let nearest = relations.iter().find(|relation| **relation != SAME_CORE).copied();
    let farthest = relations.last().copied();
    let mut chosen: Vec<&Pick> = picks.iter().collect();
    let leave_out: [&dyn Fn(&Pick) -> bool; 2] =
        [&|pick| pick.need == Need::Descriptor && Some(pick.relation.as_str()) != nearest, &|pick| {
            let ends = [Some(SAME_CORE), nearest, farthest].contains(&Some(pick.relation.as_str()));
            pick.need == Need::Sleeps && !ends
        }];
    for unwanted in leave_out {
        if chosen.len() > MOST_ROWS {
            chosen.retain(|pick| !unwanted(pick));
        }
    }
    chosen
}

const SAME_CORE: &str = "same-core";

fn need(need: Need) -> &'static str {
    match need {
        Need::Fastest => "may spin",
        Need::Sleeps => "both sleep",
        Need::Descriptor => "descriptor",
    }
}

/// What the table of the first screen says, a sentence for each placement.
fn fastest(picks: &[Pick]) -> Vec<Sentence> {
    let place = |picks: &[Pick]| {
        let each: Vec<String> = picks
            .iter()
            .map(|pick| {
                let whose = match pick.need {
                    Need::Fastest => "",
                    Need::Sleeps => "both asleep ",
                    Need::Descriptor => "descriptor ",
                };
                format!(
                    "{whose}{} {} ({})",
                    pick.best,
                    time(pick.round_trip_ns * 1e3),
                    others(pick, usize::MAX)
                )
            })
            .collect();
        let text = format!("Fastest on the {}: {}", axis::relation(&picks[0].relation), each.join("; "));
        // Of too few blocks no ratio is known.
        let untold =
            |pick: &Pick| !pick.others.is_empty() && pick.others.iter().all(|other| other.ratio.is_none());
        Sentence { text, open: picks.iter().all(untold) }
    };
    picks.chunk_by(|a, b| a.relation == b.relation).map(place).collect()
}

/// Which of the others are as fast, which may be and within what, and
/// how far the next is behind: "= pipe; fifo +12 %", "4 others within
/// 9 %"; in no more columns than there is `room`, as far as that goes.
fn others(pick: &Pick, room: usize) -> String {
    let of = |wanted: fn(Standing) -> bool| -> Vec<&Other> {
        pick.others.iter().filter(|other| wanted(other.standing)).collect()
    };
    let same = match of(|standing| matches!(standing, Standing::Same { .. })).as_slice() {
        [] => None,
        [one] => Some(format!("= {}", one.subject)),
        [first, more @ ..] => Some(format!("= {} and {} more", first.subject, more.len())),
    };
    let open = of(|standing| standing == Standing::Inconclusive);
    let most = open.iter().map(|other| other.ratio.map_or(f64::INFINITY, |ratio| ratio.high));
    let most = most.fold(1.0, f64::max);
    // Within much more it is as good as anything.
    let near = most < 2.0;
    let within = if near { format!(" within {:.0} %", (most - 1.0) * 100.0) } else { String::new() };
    let counted = match open.as_slice() {
        [] => None,
        [one] => Some(format!("or {}{within}", one.subject)),
        all if near => Some(format!("{} others{within}", all.len())),
        all => Some(format!("or one of {}", all.len())),
    };
    // Two are named where there is room.
    let named = match open.as_slice() {
        [one, other] => Some(format!("or {} or {}{within}", one.subject, other.subject)),
        _ => None,
    };
    let slower = of(|standing| standing == Standing::Slower);
    let next = slower.first().and_then(|next| Some((&next.subject, factor(next.ratio?.estimate))));
    // Beside more there is no room for it.
    let next = next.filter(|_| open.is_empty() || (same.is_none() && !near));
    let told = |open: &Option<String>, next: Option<String>| {
        [same.clone(), open.clone(), next].into_iter().flatten().collect::<Vec<_>>().join("; ")
    };
    let behind = next.as_ref().map(|(subject, behind)| format!("{subject} {behind}"));
    let unnamed = next.as_ref().map(|(_, behind)| format!("next {behind}"));
    let opens = named.iter().cloned().map(Some).chain([counted.clone()]);
    let all = opens.flat_map(|open| [behind.clone(), unnamed.clone()].map(|next| told(&open, next)));
    all.into_iter().find(|told| width(told) <= room).unwrap_or_else(|| told(&counted, None))
}

/// A ratio above 1 as a difference, or as a multiple where it is large.
fn factor(ratio: f64) -> String {
    match ratio {
        ..2.0 => format!("{:+.0} %", (ratio - 1.0) * 100.0),
        ..100.0 => format!("x {ratio:.1}"),
        _ => format!("x {ratio:.0}"),
    }
}

/// What pinning each mechanism that was also left to the scheduler is worth.
fn pinning(placed: &[Placed]) -> Vec<String> {
    let free = placed.iter().filter(|placed| placed.relation == "unpinned");
    free.filter_map(|free| {
        let pinned =
            placed.iter().filter(|other| other.subject == free.subject && other.relation != free.relation);
        let best = pinned.min_by(|a, b| a.round_trip_ns.total_cmp(&b.round_trip_ns))?;
        let (subject, place) = (&free.subject, axis::relation(&best.relation));
        let pinned = time(best.round_trip_ns * 1e3);
        // Left alone a trial runs on one core or on two, and a middle of both is what none of them took.
        let open = best.unpinned.is_some_and(|ratio| ratio.standing(RELEVANT) == Standing::Inconclusive);
        let left = match best.unpinned_ns.filter(|_| open) {
            Some(ends) => {
                let [from, to] = alike(ends.map(|ns| ns * 1e3));
                format!("{from} to {to} from block to block, inconclusive")
            }
            None => interval(best.unpinned),
        };
        Some(format!("Pinning: {subject} takes {pinned} on the {place}; left alone {left}"))
    })
    .collect()
}

/// What a longer sleep costs.
fn sleeping(slept: &Slept) -> String {
    let ((short_gap, short_ns), (long_gap, long_ns)) = (slept.short_ns, slept.long_ns);
    let [from, to] = alike([short_ns, long_ns].map(|ns| ns * 1e3));
    let [short, long] = [short_gap, long_gap].map(|ns| time(ns as f64 * 1e3));
    let figures = format!("Longer sleep: {} wakes in {from} after {short}, {to} after {long}", slept.subject);
    format!("{figures}: {}", interval(slept.ratio))
}

/// Nanoseconds as microseconds.
fn us(ns: f64) -> String {
    Scale { unit: Unit::Microseconds }.show(ns * 1e3)
}

/// What p50 is in tables beside which sentences stand.
const LEVELS: &str = " p50: the middle of the blocks' medians.";

/// One line for each mechanism, the fastest across cores first, three columns for each placement.
fn round_trips(variants: &[Variant], answer: &Answer, style: &Style) -> String {
    let of_interest = |variant: &&Variant| {
        variant.configuration.pattern.back_to_back() && variant.configuration.wait == WaitPolicy::Block
    };
    let mut relations: Vec<&str> = Vec::new();
    let mut sorted_by = None;
    let mut subjects: Vec<(&str, f64)> = Vec::new();
    let is_harness = |subject: &str| {
        variants.iter().any(|variant| variant.configuration.subject == subject && variant.is_harness())
    };
    for variant in variants.iter().filter(of_interest) {
        let relation = variant.configuration.placement.relation.as_str();
        if !relations.contains(&relation) {
            relations.push(relation);
        }
        let Some(whole) = variant.histogram(Quantity::RoundTrip) else { continue };
        let p50 = p50_ns(variant, &whole, answer);
        match subjects.iter_mut().find(|(subject, _)| *subject == variant.configuration.subject) {
            // The last placement with chosen CPUs is the farthest, where mechanisms differ most.
            Some(entry) if variant.configuration.placement.cpus.is_some() => {
                entry.1 = p50;
                sorted_by = Some(relation);
            }
            Some(_) => {}
            None => subjects.push((&variant.configuration.subject, p50)),
        }
    }
    subjects.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut columns = vec![Column::new("mechanism", Align::Left)];
    for relation in &relations {
        let name = axis::relation(relation);
        columns.push(Column::new(format!("{name} p50"), Align::Right));
        columns.push(Column::new("p99", Align::Right));
        columns.push(Column::new("CPU", Align::Right));
        columns.push(Column::new("count", Align::Right).keep(1));
    }
    let mut table = Table::new(columns);
    for (subject, _) in &subjects {
        let note = if is_harness(subject) { " (the harness itself)" } else { "" };
        let mut row = vec![format!("{subject}{note}")];
        for relation in &relations {
            let variant = variants.iter().filter(of_interest).find(|variant| {
                variant.configuration.subject == *subject
                    && variant.configuration.placement.relation == *relation
            });
            row.extend(figures_of(variant, Quantity::RoundTrip, answer));
        }
        table.row(row);
    }
    let order = sorted_by
        .map_or_else(String::new, |by| format!(" Rows by their median on the {}.", axis::relation(by)));
    let note = crate::wording::sentence(Quantity::RoundTrip.definition()) + LEVELS + &order;
    titled("Round trip and CPU time of a wake-up, µs", &note, &table, style)
}

/// One line for each mechanism and gap.
fn sleeps(variants: &[Variant], answer: &Answer, style: &Style) -> String {
    let mut table = Table::new(vec![
        Column::new("mechanism", Align::Left),
        Column::new("waiter", Align::Left),
        Column::new("gap", Align::Right),
        Column::new("wake p50", Align::Right),
        Column::new("p99", Align::Right),
        Column::new("CPU", Align::Right),
        Column::new("count", Align::Right).keep(1),
        Column::new("notify p50", Align::Right).keep(2),
    ]);
    for variant in variants.iter().filter(|variant| variant.configuration.pattern.one_way()) {
        let waiter = if variant.configuration.wait == WaitPolicy::Spin { "awake" } else { "asleep" };
        let mut row = vec![
            variant.configuration.subject.clone(),
            waiter.to_owned(),
            short(variant.configuration.pattern.gap_ns()),
        ];
        row.extend(figures_of(Some(variant), Quantity::Wake, answer));
        row.push(
            variant
                .histogram(Quantity::Notify)
                .map_or_else(dash, |whole| us(whole.quantile(0.5) as f64 / 1000.0)),
        );
        table.row(row);
    }
    let note = crate::wording::sentence(Quantity::Wake.definition()) + LEVELS;
    titled("Wake-up latency by how long the waiter slept, µs", &note, &table, style)
}

/// What a variant takes: its level where it was judged, which the
/// sentences go by, else the median of all its samples.
fn p50_ns(variant: &Variant, whole: &Histogram, answer: &Answer) -> f64 {
    answer.level_ns(variant.configuration).unwrap_or_else(|| whole.quantile(0.5) as f64 / 1000.0)
}

/// p50, p99, CPU per wake, count.
fn figures_of(variant: Option<&Variant>, quantity: Quantity, answer: &Answer) -> [String; 4] {
    let Some((variant, whole)) = variant.and_then(|variant| Some((variant, variant.histogram(quantity)?)))
    else {
        return [dash(), dash(), dash(), dash()];
    };
    let p50_ns = p50_ns(variant, &whole, answer);
    let p99_ns = (whole.quantile(0.99) as f64 / 1000.0).max(p50_ns);
    [
        us(p50_ns),
        if supports(whole.count(), 0.99) { us(p99_ns) } else { dash() },
        variant.cpu_ns_per_wake().map_or_else(dash, us),
        count(whole.count()),
    ]
}

fn dash() -> String {
    "-".to_owned()
}

fn titled(title: &str, note: &str, table: &Table, style: &Style) -> String {
    if table.is_empty() {
        return String::new();
    }
    let note = style.wrap(note, 0);
    format!("\n{}\n{note}{}", style.paint(Role::Heading, &style.text(title)), table.render(style))
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_verdict::ratio::Ratio;

    fn told(others: &[(&str, [f64; 3], Standing)]) -> String {
        told_in(others, usize::MAX)
    }

    fn told_in(others: &[(&str, [f64; 3], Standing)], room: usize) -> String {
        let others = others.iter().map(|(subject, [low, estimate, high], standing)| Other {
            subject: (*subject).to_owned(),
            ratio: Some(Ratio { estimate: *estimate, low: *low, high: *high }),
            standing: *standing,
        });
        let pick = Pick {
            relation: "same-core".to_owned(),
            need: Need::Sleeps,
            best: "futex".to_owned(),
            round_trip_ns: 4000.0,
            cpu_ns: None,
            others: others.collect(),
        };
        super::others(&pick, room)
    }

    /// A row of the first screen had 85 columns.
    #[test]
    fn where_there_is_no_room_for_the_name_of_the_next_one_its_distance_is_told() {
        let open = |subject| (subject, [0.9, 1.5, 3.0], Standing::Inconclusive);
        let others = [
            open("umwait"),
            open("mwaitx"),
            open("sched-yield"),
            ("eventfd", [400.0, 481.1, 500.0], Standing::Slower),
        ];
        assert_eq!(told_in(&others, 26), "or one of 3; eventfd x 481");
        assert_eq!(told_in(&others, 25), "or one of 3; next x 481");
        assert_eq!(told_in(&others, 22), "or one of 3");
        let two = [open("umwait"), open("mwaitx"), ("eventfd", [2.5, 3.0, 4.0], Standing::Slower)];
        assert_eq!(told_in(&two, 35), "or umwait or mwaitx; eventfd x 3.0");
        assert_eq!(told_in(&two, 26), "or one of 2; eventfd x 3.0");
    }

    #[test]
    fn what_may_be_as_fast_is_told_with_what_it_is_within_unless_that_is_as_good_as_anything() {
        let open = Standing::Inconclusive;
        let near = [("pipe", [1.0, 1.02, 1.06], open), ("fifo", [1.0, 1.03, 1.09], open)];
        let slower = ("tcp", [1.3, 1.4, 1.5], Standing::Slower);
        assert_eq!(told(&[near[0], near[1], slower]), "or pipe or fifo within 9 %");
        assert_eq!(told(&[near[0], slower]), "or pipe within 6 %");
        assert_eq!(told(&[("channel", [1.0, 3.0, 170.0], open), slower]), "or channel; tcp +40 %");
        let same = Standing::Same { within: 0.02 };
        assert_eq!(told(&[("pipe", [1.0, 1.0, 1.01], same), slower]), "= pipe; tcp +40 %");
    }
}
