// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a node can run it, in words, and the table behind it.

use super::axis::{self, Axis, label};
use super::columns::{Columns, dash};
use super::figures::percentile;
use super::style::Role;
use super::subsection::{Subsection, all};
use super::table::{number, word};
use super::unit::{Scale, count, time, time_ns as ns};
use crate::wording::date;
use doorbell_results::record::question::{Gate, Which};
use doorbell_results::record::verdict::Finding;
use doorbell_verdict::gate::{Gated, Judged};
use doorbell_verdict::missed::never_came;
use doorbell_verdict::quantile::unseen;
use doorbell_verdict::verdict::Verdict;
use doorbell_verdict::worst::{Suspect, Unit, Worst};

/// The verdict, what the longest wake's record tells, and the table.
pub fn subsections(gated: &Gated) -> Vec<Subsection> {
    let role = if gated.verdict == Verdict::Passed { Role::Heading } else { Role::Error };
    let longest = gated
        .configurations
        .iter()
        .filter_map(|configuration| Some((configuration, configuration.worst.as_ref()?)))
        .max_by(|a, b| a.1.wake_ns.total_cmp(&b.1.wake_ns));
    let lead = longest.map(|(configuration, worst)| explained(worst, &name(gated, configuration)));
    let told = Subsection::verdict(verdict(gated), role, lead.into_iter().collect());
    std::iter::once(told).chain(table(gated)).collect()
}

/// What must stay below the limit, in words.
pub fn asked(question: &Gate) -> String {
    match question.which {
        Which::Quantile(q) => format!("{} % of wake-ups", percent(q)),
        Which::Longest => "every wake-up".to_owned(),
    }
}

/// The verdict in one line: the configuration that decides it, by its CPUs.
pub fn verdict(gated: &Gated) -> String {
    let Gate { limit_ns, which, confidence } = gated.question;
    let limit = ns(limit_ns as f64);
    let rank = |judged: &&Judged| match judged.verdict {
        Verdict::Failed(_) => 2,
        Verdict::Inconclusive(_) => 1,
        Verdict::Passed | Verdict::Answered => 0,
    };
    let figure = |judged: &&Judged| match judged.bounds {
        Some(bounds) => bounds.estimate_ps,
        None => judged.figures_ps[3],
    };
    let Some(worst) = gated.configurations.iter().max_by_key(|judged| (rank(judged), figure(judged))) else {
        return "INCONCLUSIVE  nothing was measured".to_owned();
    };
    let place = match worst.configuration.placement.cpus {
        Some([from, to]) => format!("CPU {from}→{to}"),
        None => "unpinned".to_owned(),
    };
    let alike = gated.configurations.iter().filter(|judged| rank(judged) == rank(&worst)).count();
    let others = match alike - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let counts = format!(
        "{place}{others}; {} of {} over the limit{}; {} % confidence",
        count(worst.above.surely),
        count(worst.above.all),
        match (&gated.verdict, worst.missed.told()) {
            // The reason says it.
            (Verdict::Failed(_), _) => String::new(),
            (_, missed) if missed.is_empty() => missed,
            (_, missed) => format!(", of them {missed}"),
        },
        percent(confidence)
    );
    let name = figure_name(which);
    if worst.above.all == 0 {
        let word = in_a_word(&gated.verdict);
        let why = gated.verdict.reason().map(ToString::to_string).unwrap_or_default();
        return format!("{word}  no wake-up was timed: {why} ({place}{others})");
    }
    let seen = reached(figure(&worst));
    match &gated.verdict {
        Verdict::Passed | Verdict::Answered => {
            let upper = worst.bounds.and_then(|bounds| bounds.upper_ps);
            let bound = match (which, upper) {
                (Which::Quantile(_), Some(ps)) if never_came(ps) => String::new(),
                (Which::Quantile(_), Some(ps)) => format!(", at most {}", time(ps as f64)),
                (Which::Quantile(_), None) => String::new(),
                (Which::Longest, _) => format!(", {}", future(gated)),
            };
            format!("PASS  {name} {seen} <= {limit}{bound} ({counts})")
        }
        Verdict::Failed(why) if worst.missed.all() > 0 || worst.above.surely == 0 => {
            format!("FAIL  {name} {seen}, limit {limit}: {why} ({counts})")
        }
        Verdict::Failed(_) => format!("FAIL  {name} {seen} > {limit} ({counts})"),
        Verdict::Inconclusive(why) => format!("INCONCLUSIVE  {name} {seen}, limit {limit}: {why} ({counts})"),
    }
}

fn figure_name(which: Which) -> String {
    match which {
        Which::Quantile(q) => format!("p{}", percent(q)),
        Which::Longest => "max".to_owned(),
    }
}

fn reached(ps: u64) -> String {
    if never_came(ps) { "never came".to_owned() } else { time(ps as f64) }
}

/// What follows for wake-ups that were not seen from none having been too long.
fn future(gated: &Gated) -> String {
    let upper = gated.configurations.iter().map(|judged| judged.above.upper).fold(0.0, f64::max);
    if upper > 0.5 {
        "which says nothing of others: so few independent wake-ups these are worth (design \
         effect); give it more --blocks"
            .to_owned()
    } else {
        format!("others longer in fewer than 1 of {}", count((1.0 / upper) as u64))
    }
}

/// The verdict on each configuration, for programs.
pub fn findings(gated: &Gated) -> Vec<Finding> {
    let figure = figure_name(gated.question.which);
    let told = gated.configurations.iter().map(|judged| {
        let status = judged.verdict.status();
        let why = judged.verdict.reason().map(ToString::to_string).unwrap_or_default();
        let known = |ps: Option<u64>| ps.filter(|ps| !never_came(*ps));
        let ns = |ps: Option<u64>| known(ps).map_or(f64::NAN, |ps| ps as f64 / 1e3);
        let (value, interval) = match judged.bounds {
            Some(bounds) => (ns(Some(bounds.estimate_ps)), Some([ns(bounds.lower_ps), ns(bounds.upper_ps)])),
            None => (ns(Some(judged.figures_ps[3]).filter(|_| judged.above.all > 0)), None),
        };
        Finding::new(name(gated, judged), figure.clone(), status, "ns").valued(value, interval).because(why)
    });
    told.collect()
}

fn axes(gated: &Gated) -> Vec<Axis> {
    axis::varying(gated.configurations.iter().map(|judged| judged.configuration))
}

fn name(gated: &Gated, judged: &Judged) -> String {
    label(judged.configuration, &axes(gated))
}

fn explained(worst: &Worst, name: &str) -> String {
    let head = format!(
        "The longest wake-up, {}, was in block {} of {name}, in a trial that began {}.",
        ns(worst.wake_ns),
        worst.block + 1,
        date(worst.started_at_unix_ns)
    );
    if worst.suspects.is_empty() {
        return format!(
            "{head} Nothing that is counted was large enough in that trial: its cause is unknown."
        );
    }
    let suspects: Vec<String> = worst.suspects.iter().map(suspect).collect();
    format!(
        "{head} Large enough in that trial to have made it so long: {}. Counts are of the whole \
         trial: none of this is proven to have made that one wake-up long (`doorbell why` looks at \
         single ones).",
        suspects.join("; ")
    )
}

fn suspect(suspect: &Suspect) -> String {
    let amount = |value: f64| match suspect.unit {
        Unit::Times => format!("{} times", count(value as u64)),
        Unit::Nanoseconds => ns(value),
        Unit::OfCpu => format!("{:.1} % of a CPU", value * 100.0),
        Unit::OfTime => format!("{:.1} % of the time", value * 100.0),
    };
    let usual = suspect.usual.map_or_else(String::new, |usual| format!(" (usually {})", amount(usual)));
    format!("{}, {}{usual}", suspect.what, amount(suspect.here))
}

fn table(gated: &Gated) -> Option<Subsection> {
    let all = gated.configurations.iter().flat_map(|judged| judged.figures_ps);
    let scale = Scale::for_ps(all.filter(|ps| !never_came(*ps)).map(|ps| ps as f64));
    let which = gated.question.which;
    let figures = [
        (number("p50").keep(3), (0, 0.5)),
        (number("p99").keep(3), (1, 0.99)),
        (number("p99.9").keep(3), (2, 0.999)),
        (number("max"), (3, 1.0)),
    ];
    let of_trials = [(number("trials").keep(2), 0), (number("interference").keep(2), 1)];
    let table =
        Columns::along(&axes(gated), "mechanism", |judged: &Judged, axis| axis.value(judged.configuration))
            .each(figures, |judged, (place, q)| match judged.figures_ps[*place] {
                ps if never_came(ps) => timed(judged, || "never".to_owned()),
                ps => timed(judged, || percentile(ps as f64, *q, judged.above.all, scale)),
            })
            .with_if(which != Which::Longest, number(format!("{} lies in", figure_name(which))), |judged| {
                let end = |end: Option<u64>| match end {
                    None => "?".to_owned(),
                    Some(ps) if never_came(ps) => "never".to_owned(),
                    Some(ps) => scale.show(ps as f64),
                };
                let between = judged
                    .bounds
                    .map(|bounds| format!("{} to {}", end(bounds.lower_ps), end(bounds.upper_ps)));
                timed(judged, || between.unwrap_or_default())
            })
            .with(number("longer"), |judged| timed(judged, || count(judged.above.surely)))
            .with(number("at most").keep(2), |judged| timed(judged, || share(judged.above.upper)))
            .with(number("design effect").keep(1), |judged| {
                timed(judged, || format!("{:.1}", judged.above.alike))
            })
            .each(of_trials, |judged, place| count(judged.trials[*place] as u64))
            .with(number("count").keep(1), |judged| count(judged.above.all))
            .with(word("verdict"), |judged| in_a_word(&judged.verdict).to_lowercase())
            .table(&gated.configurations);
    Subsection::of_table(format!("Each configuration, {}", scale.unit.sign()), table, vec![note(gated)])
}

/// Where not one wake-up was timed there is no figure, and a zero would be one.
fn timed(judged: &Judged, figure: impl FnOnce() -> String) -> String {
    if judged.above.all > 0 { figure() } else { dash() }
}

fn in_a_word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Passed | Verdict::Answered => "PASS",
        Verdict::Failed(_) => "FAIL",
        Verdict::Inconclusive(_) => "INCONCLUSIVE",
    }
}

fn note(gated: &Gated) -> String {
    let all = all(&axis::common(gated.configurations.iter().map(|judged| judged.configuration)));
    let all = if all.is_empty() { all } else { format!("{all} ") };
    let fewest = gated.configurations.iter().map(|configuration| configuration.trials[0]).min().unwrap_or(0);
    let harness = gated.harness_ns.map_or_else(String::new, |harness| {
        format!(" Two readings of the clock, {}, are part of each.", ns(harness))
    });
    format!(
        "{all}{}. Longer: wake-ups above the limit. At most: what their true share is below, at {} \
         % for each configuration (Clopper and Pearson 1934, wake-ups that repeat each other \
         counted together). Design effect: how many wake-ups are worth one independent one (Kish, \
         with Korn and Graubard's factor for few trials). What comes in fewer than {:.0} % of \
         trials may have come in none of these, and is in no bound.{harness}",
        crate::wording::sentence(
            gated.configurations.first().map_or("", |configuration| configuration.quantity.definition())
        )
        .trim_end_matches('.'),
        percent(gated.each),
        (100.0 * unseen(fewest, gated.each)).ceil(),
    )
}

fn share(share: f64) -> String {
    match share {
        share if share >= 0.001 => format!("{:.2} %", share * 100.0),
        share if share > 0.0 => format!("1 in {}", count((1.0 / share) as u64)),
        _ => "0".to_owned(),
    }
}

/// A share of 0 to 1 in percent, as short as it is exact: 0.999 is 99.9.
fn percent(share: f64) -> String {
    let text = format!("{:.4}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use crate::subsection::verdict;
    use doorbell_results::configuration::{Configuration, Pattern};
    use doorbell_results::record::series::Quantity;
    use doorbell_results::record::{Histogram, Outcome, ResultFile, Series, sample};
    use doorbell_verdict::gate;

    fn text(long: u64, which: Which) -> String {
        text_of(10, long, which)
    }

    fn text_of(blocks: u32, long: u64, which: Which) -> String {
        let mut result = sample::result(&[futex_one_way()], blocks, |_, _| 16_000.0);
        for record in &mut result.records {
            let mut wakes = Histogram::new();
            (long..1000).for_each(|wake| wakes.record(4_000_000 + wake * 1000));
            wakes.record_many(50_000_000, long);
            record.series.insert(Quantity::Wake, Series::from(&wakes));
        }
        result.records.last_mut().unwrap().environment.steal_share = Some(0.2);
        let question = Gate { limit_ns: 20_000, which, confidence: 0.95 };
        let gated = gate::gate(&result, question).unwrap();
        verdict(&subsections(&gated), &result, &Style::PLAIN)
    }

    #[test]
    fn a_verdict_says_what_was_asked_how_sure_it_is_and_what_it_rests_on() {
        insta::assert_snapshot!("pass", text(0, Which::Quantile(0.999)));
        insta::assert_snapshot!("pass_of_the_longest", text(0, Which::Longest));
        insta::assert_snapshot!("fail", text(20, Which::Quantile(0.99)));
    }

    /// It said that with 95 % confidence fewer than 1 in 1 do.
    #[test]
    fn of_one_block_without_a_long_wake_nothing_follows_for_others() {
        let one = text_of(1, 0, Which::Longest);
        assert!(one.starts_with("PASS max 5 us <= 20 us, which says nothing of others"), "{one}");
        assert!(!one.contains("1 in 1 do"), "{one}");
    }

    fn futex_one_way() -> Configuration {
        Configuration { pattern: Pattern::OneWay { gap_ns: 1_000_000 }, ..sample::configuration("futex") }
    }

    /// An ordinary user's gate with real-time priority, of which no trial could run, had a p50 and
    /// a longest wake-up of 0.0 ns.
    #[test]
    fn where_no_wake_up_was_timed_there_is_no_figure() {
        let mut result = sample::result(&[futex_one_way()], 3, |_, _| 16_000.0);
        for record in &mut result.records {
            record.outcome = Outcome::Failed { cause: "no right to real-time priority".to_owned() };
        }
        let question = Gate { limit_ns: 20_000, which: Which::Quantile(0.999), confidence: 0.95 };
        let gated = gate::gate(&result, question).unwrap();
        let text = verdict(&subsections(&gated), &result, &Style::PLAIN);
        let row = text.lines().find(|line| line.contains("inconclusive")).unwrap();
        assert!(!row.contains("0.0") && !row.contains('%') && !text.contains(" 0 ns"), "{text}");
        // Nor for programs, and nor where the first wait already had no end.
        for record in &mut result.records {
            record.outcome = Outcome::Hung { last_seen: Vec::new() };
        }
        for which in [Which::Longest, Which::Quantile(0.999)] {
            let gated = gate::gate(&result, Gate { limit_ns: 20_000, which, confidence: 0.95 }).unwrap();
            assert!(findings(&gated).iter().all(|finding| finding.value.is_none()), "{:?}", findings(&gated));
            let text = verdict(&subsections(&gated), &result, &Style::PLAIN);
            assert!(text.starts_with("FAIL no wake-up was timed: in 3 of 3 trials"), "{text}");
        }
    }

    /// Slurm binds a command that asks for no more to one CPU, and every wake-up was one on the
    /// same core without a word.
    #[test]
    fn a_gate_bound_to_one_cpu_of_several_says_so_before_anything_else() {
        let mut result = sample::result(&[futex_one_way()], 3, |_, _| 16_000.0);
        let question = Gate { limit_ns: 20_000, which: Which::Longest, confidence: 0.95 };
        let first = |result: &ResultFile| {
            let gated = gate::gate(result, question).unwrap();
            let text = verdict(&subsections(&gated), result, &Style { width: 400, ..Style::PLAIN });
            text.lines().next().unwrap().to_owned()
        };
        result.machine.topology.online = (0..64).collect();
        result.machine.topology.usable = (0..64).collect();
        assert!(!first(&result).contains("Bound"), "{}", first(&result));
        result.machine.topology.usable = [3].into_iter().collect();
        assert!(first(&result).starts_with("Bound to CPU 3 alone, of 64"), "{}", first(&result));
        result.machine.topology.online = [3].into_iter().collect();
        assert!(!first(&result).contains("Bound"), "it has no other");
    }

    #[test]
    fn percentages_are_as_short_as_they_are_exact() {
        assert_eq!([0.999, 0.95, 0.9999, 0.5].map(percent), ["99.9", "95", "99.99", "50"]);
    }
}
