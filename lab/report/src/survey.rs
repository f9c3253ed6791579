// SPDX-License-Identifier: MIT OR Apache-2.0
//! A survey on the terminal: first what serves which need best, in a screen; in detail one line for
//! each mechanism and one for each sleep.

use super::answer::on_a_terminal;
use super::axis;
use super::columns::{Columns, dash};
use super::doctor::{Detail, doctor};
use super::figures::{Figures, Having, Row};
use super::row_comparison::interval;
use super::section::{Section, leads};
use super::sentence::Sentence;
use super::style::{Style, width};
use super::subsection::{self, Subsection};
use super::switch::Operations;
use super::table::{number, word};
use super::unit::{Scale, Unit, alike, count, time_ns};
use super::wording::{sentence, shown};
use doorbell_results::configuration::{Configuration, WaitPolicy};
use doorbell_results::quantity::short;
use doorbell_results::record::ResultFile;
use doorbell_results::record::series::Quantity;
use doorbell_verdict::answer::{Answer, Need, Other, Pick, Placed};
use doorbell_verdict::compare::RELEVANT;
use doorbell_verdict::ratio::Standing;
use doorbell_verdict::sleeps::Slept;
use indexmap::IndexMap;

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
    fn text(&self, result: &ResultFile, figures: &Figures, style: &Style) -> String {
        let answered = doorbell_verdict::answer::answer(result);
        let told: Vec<Subsection> =
            round_trips(figures, &answered).into_iter().chain(sleeps(figures, &answered)).collect();
        let answer = if result.emulated() { Vec::new() } else { on_a_terminal(&answered) };
        let fitness = doctor(&result.machine, Detail::Brief, style);
        subsection::text(&told, style) + &fitness + &subsection::text(&answer, style)
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

/// Microseconds, in which all times of a survey stand.
const SCALE: Scale = Scale { unit: Unit::Microseconds };

fn screen(answer: &Answer, figures: &Figures) -> Vec<Subsection> {
    let picks = chosen(&answer.picks);
    let p99 = |pick: &Pick| {
        let row = figures.rows.iter().find(|row| measured(row, pick));
        let series = row.and_then(|row| row.series.get(&Quantity::RoundTrip));
        series.map_or_else(dash, |series| series.above(0.99, pick.round_trip_ns * 1e3, SCALE))
    };
    let first = |pick: &Pick| {
        picks.iter().find(|other| other.relation == pick.relation).is_some_and(|one| std::ptr::eq(*one, pick))
    };
    let mut table = Columns::none()
        .with(word("placement"), |pick: &&Pick| match first(pick) {
            true => axis::relation(&pick.relation),
            false => String::new(),
        })
        .with(word("need"), |pick| need(pick.need).to_owned())
        .with(word("mechanism"), |pick| pick.best.clone())
        .with(number("p50"), |pick| SCALE.show_ns(pick.round_trip_ns))
        .with(number("p99"), |pick| p99(pick))
        .with(number("CPU"), |pick| pick.cpu_ns.map_or_else(dash, |ns| SCALE.show_ns(ns)))
        .table(&picks);
    let room = SCREEN.saturating_sub(table.room());
    table.append(word("the others"), picks.iter().map(|pick| others(pick, room)));
    let few = picks.len() <= FEW_ROWS;
    let pinning = pinning(&answer.placements);
    let sleeping = answer.sleeps.iter().map(sleeping);
    // Where there are many placements, one mechanism speaks for all.
    let most = if few { usize::MAX } else { 1 };
    let lines = pinning.into_iter().take(most).chain(sleeping.take(most)).collect();
    let title = "Fastest there and back, µs (CPU: of a wake-up)";
    let told = Subsection::of_table(title, table, Vec::new()).into_iter();
    told.chain(Subsection::of_lines("", lines)).collect()
}

fn is_back_to_back(row: &Row) -> bool {
    row.configuration().pattern.back_to_back() && row.configuration().wait == WaitPolicy::Block
}

fn measured(row: &Row, pick: &Pick) -> bool {
    let configuration = row.configuration();
    let there = configuration.placement.relation == pick.relation;
    configuration.subject == pick.best && there && is_back_to_back(row)
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
                format!("{whose}{} {} ({})", pick.best, time_ns(pick.round_trip_ns), others(pick, usize::MAX))
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
        let pinned = time_ns(best.round_trip_ns);
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
    let [short, long] = [short_gap, long_gap].map(|ns| time_ns(ns as f64));
    let figures = format!("Longer sleep: {} wakes in {from} after {short}, {to} after {long}", slept.subject);
    format!("{figures}: {}", interval(slept.ratio))
}

/// What p50 is in tables beside which sentences stand.
const LEVELS: &str = " p50: the middle of the blocks' medians.";

/// What a row takes, picoseconds: its level where it was judged, which the
/// sentences go by, else the median of all its samples.
fn p50_ps((row, series): &Having, answer: &Answer) -> f64 {
    answer.level_ns(row.configuration()).map_or_else(|| series.p50_ps(), |ns| ns * 1e3)
}

/// One line for each mechanism, the fastest across cores first, columns for each placement.
fn round_trips(figures: &Figures, answer: &Answer) -> Option<Subsection> {
    let mut rows = figures.having(|_| Quantity::RoundTrip);
    rows.retain(|(row, _)| is_back_to_back(row));
    let mut relations: Vec<&str> = Vec::new();
    // The last placement with chosen CPUs is the farthest, where mechanisms differ most.
    let mut sorted_by = None;
    let mut subjects: IndexMap<&str, (Having, f64)> = IndexMap::new();
    for having in &rows {
        let configuration = having.0.configuration();
        let (p50, relation) = (p50_ps(having, answer), configuration.placement.relation.as_str());
        if !relations.contains(&relation) {
            relations.push(relation);
        }
        match subjects.get_mut(configuration.subject.as_str()) {
            Some((_, by)) if configuration.placement.cpus.is_some() => {
                *by = p50;
                sorted_by = Some(relation);
            }
            Some(_) => {}
            None => {
                subjects.insert(&configuration.subject, (*having, p50));
            }
        }
    }
    let mut subjects: Vec<(Having, f64)> = subjects.into_values().collect();
    subjects.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut columns = Columns::none()
        .with(word("mechanism"), |((row, _), _): &(Having, f64)| shown(axis::Axis::Subject, row));
    for relation in relations {
        let rows = &rows;
        let at = move |((row, _), _): &(Having, f64)| {
            let same = |other: &Configuration| {
                other.subject == row.configuration().subject && other.placement.relation == relation
            };
            rows.iter().find(|(other, _)| same(other.configuration()))
        };
        columns = columns
            .with(number(format!("{} p50", axis::relation(relation))), move |subject| {
                at(subject).map_or_else(dash, |having| SCALE.show(p50_ps(having, answer)))
            })
            .with(number("p99"), move |subject| {
                at(subject).map_or_else(dash, |having| having.1.above(0.99, p50_ps(having, answer), SCALE))
            })
            .with(number("CPU"), move |subject| SCALE.known(at(subject).and_then(|(row, _)| row.cpu_ps())))
            .with(number("count").keep(1), move |subject| {
                at(subject).map_or_else(dash, |(_, series)| count(series.count))
            });
    }
    let order = sorted_by
        .map_or_else(String::new, |by| format!(" Rows by their median on the {}.", axis::relation(by)));
    let lead = sentence(Quantity::RoundTrip.definition()) + LEVELS + &order;
    let title = "Round trip and CPU time of a wake-up, µs";
    Some(Subsection::of_table(title, columns.table(&subjects), Vec::new())?.led_by(lead))
}

/// One line for each mechanism and gap.
fn sleeps(figures: &Figures, answer: &Answer) -> Option<Subsection> {
    let mut rows = figures.having(|_| Quantity::Wake);
    rows.retain(|(row, _)| row.configuration().pattern.one_way());
    let table = Columns::none()
        .with(word("mechanism"), |(row, _): &Having| row.configuration().subject.clone())
        .with(word("waiter"), |(row, _)| match row.configuration().wait {
            WaitPolicy::Spin => "awake".to_owned(),
            _ => "asleep".to_owned(),
        })
        .with(number("gap"), |(row, _)| short(row.configuration().pattern.gap_ns()))
        .with(number("wake p50"), |having| SCALE.show(p50_ps(having, answer)))
        .with(number("p99"), |having| having.1.above(0.99, p50_ps(having, answer), SCALE))
        .cpu(number("CPU"), SCALE)
        .samples(number("count").keep(1))
        .p50(number("notify p50").keep(2), Quantity::Notify, SCALE)
        .table(&rows);
    let title = "Wake-up latency by how long the waiter slept, µs";
    let lead = sentence(Quantity::Wake.definition()) + LEVELS;
    Some(Subsection::of_table(title, table, Vec::new())?.led_by(lead))
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
