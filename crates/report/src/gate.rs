// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a node can run it, in words, and the table behind it.

use super::axis::{self, label};
use super::passage::{Passage, heads};
use super::style::Role;
use super::table::{Table, number, word};
use super::unit::{Scale, count, time};
use crate::wording::date;
use doorbell_results::record::question::{Gate, Which};
use doorbell_verdict::gate::{Decision, Gated, Judged};
use doorbell_verdict::quantile::unseen;
use doorbell_verdict::worst::{Unusual, Worst};

/// The verdict, what the longest wake's record tells, and the table.
pub fn passages(gated: &Gated) -> Vec<Passage> {
    let role = if gated.decision == Decision::Pass { Role::Heading } else { Role::Error };
    let longest = gated
        .configurations
        .iter()
        .filter_map(|configuration| Some((configuration, configuration.worst.as_ref()?)))
        .max_by(|a, b| a.1.wake_ns.total_cmp(&b.1.wake_ns));
    let lead = longest
        .map(|(configuration, worst)| explained(worst, &name(gated, configuration)))
        .into_iter()
        .collect();
    let told = Passage { title: verdict(gated), role, lead, ..Passage::default() };
    std::iter::once(told).chain(table(gated)).collect()
}

/// What must stay below the limit, in words.
pub fn asked(question: &Gate) -> String {
    match question.which {
        Which::Quantile(q) => format!("{} % of wake-ups", percent(q)),
        Which::Longest => "every wake".to_owned(),
    }
}

/// The verdict in one sentence.
pub fn verdict(gated: &Gated) -> String {
    let Gate { limit_ns, which, confidence } = gated.question;
    let limit = ns(limit_ns as f64);
    let sure = format!("{} % confidence", percent(confidence));
    let all: u64 = gated.configurations.iter().map(|configuration| configuration.above.all).sum();
    let among = |configurations: &[&Judged]| match (gated.configurations.len(), configurations) {
        (0 | 1, _) | (_, []) => String::new(),
        (all, [one]) => {
            format!(" in {} ({} of {all} configurations)", name(gated, one), configurations.len())
        }
        (all, [first, ..]) => {
            format!(
                " in {} and others ({} of {all} configurations)",
                name(gated, first),
                configurations.len()
            )
        }
    };
    let with = |wanted: fn(&Decision) -> bool| -> Vec<&Judged> {
        gated.configurations.iter().filter(|configuration| wanted(&configuration.decision)).collect()
    };
    match (&gated.decision, which) {
        (Decision::Pass, Which::Quantile(q)) => {
            // All of them or none: what holds for some configurations is not what the sentence says.
            let bounds: Option<Vec<u64>> = gated
                .configurations
                .iter()
                .map(|configuration| configuration.bounds.and_then(|bounds| bounds.upper_ps))
                .collect();
            let bound = bounds
                .and_then(|all| all.into_iter().max())
                .map_or_else(String::new, |ps| format!(": p{} is below {}", percent(q), time(ps as f64)));
            format!("Pass: {} take no more than {limit}, with {sure}{bound}.", asked(&gated.question))
        }
        (Decision::Pass, Which::Longest) => {
            let upper = gated
                .configurations
                .iter()
                .map(|configuration| configuration.above.upper)
                .fold(0.0, f64::max);
            let follows = if upper > 0.5 {
                "nothing follows for others, of which as many may take longer as not: the column 'design effect' says how few \
                 independent ones these are worth; give it more --blocks"
                    .to_owned()
            } else {
                format!("with {sure} fewer than 1 in {} do", count((1.0 / upper) as u64))
            };
            format!("Pass: none of {} wakes took longer than {limit}; {follows}.", count(all))
        }
        (Decision::Fail(why), _) => {
            let failed = among(&with(|decision| matches!(decision, Decision::Fail(_))));
            let sure = match which {
                Which::Quantile(_) => format!(", with {sure}"),
                Which::Longest => String::new(),
            };
            format!("Fail: not {} takes at most {limit}{sure}{failed}: {why}.", asked(&gated.question))
        }
        (Decision::CannotTell(why), _) => {
            let open = among(&with(|decision| matches!(decision, Decision::CannotTell(_))));
            format!(
                "Cannot tell whether {} takes at most {limit}, with {sure}{open}: {why}.",
                asked(&gated.question)
            )
        }
    }
}

fn name(gated: &Gated, configuration: &Judged) -> String {
    label(
        configuration.configuration,
        &axis::varying(gated.configurations.iter().map(|configuration| configuration.configuration)),
    )
}

fn explained(worst: &Worst, name: &str) -> String {
    let head = format!(
        "The longest wake-up, {}, was in block {} of {name}, in a trial that began {}.",
        ns(worst.wake_ns),
        worst.block + 1,
        date(worst.started_at_unix_ns)
    );
    if worst.others == 0 {
        return format!("{head} There is no other trial to say what is usual: its cause is unknown.");
    }
    if worst.unusual.is_empty() {
        return format!("{head} Nothing that is counted was unusual in that trial: its cause is unknown.");
    }
    let facts: Vec<String> = worst.unusual.iter().map(fact).collect();
    format!(
        "{head} Unusual in that trial: {}. Counts are of the whole trial: none of this is proven to have made that one wake long.",
        facts.join("; ")
    )
}

fn fact(fact: &Unusual) -> String {
    let amount = |value: f64| match fact.unit {
        "times" => format!("{} times", count(value as u64)),
        "ms" => format!("{value:.3} ms"),
        unit => format!("{:.1} % {unit}", value * 100.0),
    };
    format!("{}, {} (usually {})", fact.what, amount(fact.here), amount(fact.usual))
}

fn table(gated: &Gated) -> Option<Passage> {
    let axes = axis::varying(gated.configurations.iter().map(|configuration| configuration.configuration));
    let scale = Scale::for_ps(
        gated.configurations.iter().flat_map(|configuration| configuration.figures_ps.map(|ps| ps as f64)),
    );
    let sign = scale.unit.sign();
    let mut columns = heads(&axes, "mechanism");
    columns.extend(["p50", "p99", "p99.9"].map(|head| number(format!("{head}, {sign}")).keep(3)));
    columns.push(number(format!("max, {sign}")));
    if let Which::Quantile(q) = gated.question.which {
        columns.push(number(format!("p{} lies in", percent(q))));
    }
    columns.push(number("longer"));
    columns.push(number("share below"));
    columns.push(number("design effect").keep(1));
    columns.push(number("trials").keep(2));
    columns.push(number("interference").keep(2));
    columns.push(number("count"));
    columns.push(word("verdict"));
    let mut table = Table::new(columns);
    for configuration in &gated.configurations {
        let mut line: Vec<String> = axes.iter().map(|axis| axis.value(configuration.configuration)).collect();
        // Where not one wake-up was timed there is no figure, and a zero would be one.
        let counted = configuration.above.all > 0;
        let figure = |text: String| if counted { text } else { "-".to_owned() };
        line.extend(configuration.figures_ps.map(|ps| figure(scale.show(ps as f64))));
        if let Which::Quantile(_) = gated.question.which {
            let end = |end: Option<u64>| end.map_or_else(|| "?".to_owned(), |ps| scale.show(ps as f64));
            line.push(configuration.bounds.filter(|_| counted).map_or_else(
                || figure(String::new()),
                |bounds| format!("{} to {}", end(bounds.lower_ps), end(bounds.upper_ps)),
            ));
        }
        line.push(figure(count(configuration.above.surely)));
        line.push(figure(share(configuration.above.upper)));
        line.push(figure(format!("{:.1}", configuration.above.alike)));
        line.extend(configuration.trials.map(|trials| count(trials as u64)));
        line.push(count(configuration.above.all));
        line.push(
            match configuration.decision {
                Decision::Pass => "pass",
                Decision::Fail(_) => "fail",
                Decision::CannotTell(_) => "cannot tell",
            }
            .to_owned(),
        );
        table.row(line);
    }
    Passage::of_table(format!("Each configuration, {sign}"), table, vec![note(gated)])
}

fn note(gated: &Gated) -> String {
    let common = axis::common(gated.configurations.iter().map(|configuration| configuration.configuration));
    let all = if common.is_empty() { String::new() } else { format!("All: {common}. ") };
    let fewest = gated.configurations.iter().map(|configuration| configuration.trials[0]).min().unwrap_or(0);
    let harness = gated.harness_ns.map_or_else(String::new, |harness| {
        format!(" Two readings of the clock, {}, are part of each.", ns(harness))
    });
    format!(
        "{all}{}. Longer: wake-ups above the limit. Share below: what their true share is below, at {} % for each configuration (Clopper and \
         Pearson 1934, wake-ups that repeat each other counted together). Design effect: how many wake-ups are worth one independent \
         one (Kish, with Korn and Graubard's factor for few trials). What comes in fewer than {:.0} % of trials may have come in none of these, and is in no bound.{harness}",
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

fn ns(ns: f64) -> String {
    time(ns * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passage::verdict;
    use crate::style::Style;
    use doorbell_results::configuration::{Configuration, Pattern};
    use doorbell_results::record::series::Quantity;
    use doorbell_results::record::{Histogram, Outcome, ResultFile, Series, sample};
    use doorbell_verdict::gate;

    fn text(long: u64, which: Which) -> String {
        text_of(10, long, which)
    }

    fn text_of(blocks: u32, long: u64, which: Which) -> String {
        let configuration = Configuration {
            pattern: Pattern::OneWay { gap_ns: 1_000_000 },
            ..sample::configuration("futex")
        };
        let mut result = sample::result(&[configuration], blocks, |_, _| 16_000.0);
        for record in &mut result.records {
            let mut wakes = Histogram::new();
            (long..1000).for_each(|wake| wakes.record(4_000_000 + wake * 1000));
            wakes.record_many(50_000_000, long);
            record.series.insert(Quantity::Wake, Series::from(&wakes));
        }
        result.records.last_mut().unwrap().environment.steal_share = Some(0.2);
        let question = Gate { limit_ns: 20_000, which, confidence: 0.95 };
        let gated = gate::gate(&result, question).unwrap();
        verdict(&passages(&gated), &result, &Style::PLAIN)
    }

    #[test]
    fn a_verdict_says_what_was_asked_how_sure_it_is_and_what_it_rests_on() {
        let pass = text(0, Which::Quantile(0.999));
        assert!(
            pass.starts_with(
                "Pass: 99.9 % of wake-ups take no more than 20 us, with 95 % confidence: p99.9 is below 5 us.\n"
            ),
            "{pass}"
        );
        assert!(
            pass.contains("10,000")
                && pass.contains("1 in 2,688")
                && pass.contains("Again: doorbell ping --seed 1"),
            "{pass}"
        );
        let longest = text(0, Which::Longest);
        assert!(longest.starts_with("Pass: none of 10,000 wakes took longer than 20 us; with 95 % confidence fewer than 1 in 2,688 do."), "{longest}");
        let fail = text(20, Which::Quantile(0.99));
        assert!(
            fail.starts_with("Fail: not 99 % of wake-ups takes at most 20 us, with 95 % confidence: 200 of 10000 wakes took longer."),
            "{fail}"
        );
    }

    /// It said that with 95 % confidence fewer than 1 in 1 do.
    #[test]
    fn of_one_block_without_a_long_wake_nothing_follows_for_others() {
        let one = text_of(1, 0, Which::Longest);
        assert!(
            one.starts_with("Pass: none of 1,000 wakes took longer than 20 us; nothing follows for others"),
            "{one}"
        );
        assert!(!one.contains("1 in 1 do"), "{one}");
    }

    fn futex_one_way() -> Configuration {
        Configuration { pattern: Pattern::OneWay { gap_ns: 1_000_000 }, ..sample::configuration("futex") }
    }

    /// An ordinary user's gate with real-time priority, of which no trial could run, had a p50 and a longest wake-up of 0.0 ns.
    #[test]
    fn where_no_wake_up_was_timed_there_is_no_figure() {
        let mut result = sample::result(&[futex_one_way()], 3, |_, _| 16_000.0);
        for record in &mut result.records {
            record.outcome = Outcome::Failed { cause: "no right to real-time priority".to_owned() };
        }
        let question = Gate { limit_ns: 20_000, which: Which::Quantile(0.999), confidence: 0.95 };
        let gated = gate::gate(&result, question).unwrap();
        let text = verdict(&passages(&gated), &result, &Style::PLAIN);
        let row = text.lines().find(|line| line.contains("cannot tell")).unwrap();
        assert!(!row.contains("0.0") && !row.contains('%') && row.contains('-'), "{text}");
    }

    /// Slurm binds a command that asks for no more to one CPU, and every wake-up was one on the same core without a word.
    #[test]
    fn a_gate_bound_to_one_cpu_of_several_says_so_before_anything_else() {
        let mut result = sample::result(&[futex_one_way()], 3, |_, _| 16_000.0);
        let question = Gate { limit_ns: 20_000, which: Which::Longest, confidence: 0.95 };
        let first = |result: &ResultFile| {
            let gated = gate::gate(result, question).unwrap();
            let text = verdict(&passages(&gated), result, &Style { width: 400, ..Style::PLAIN });
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
