// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison for the terminal: a ratio with its interval and a verdict for each configuration,
//! then what was not compared.

use super::answer::{could_be, provisional};
use super::axis::{self, Axis};
use super::columns::{Columns, dash};
use super::style::{Role, Style};
use super::table::{number, word};
use super::unit::Scale;
use crate::wording::{beside, counted, foreign, missed, standing};
use doorbell_results::record::verdict::{self as record, Finding, Status};
use doorbell_verdict::compare::{ComparedConfiguration, Comparison, Doubt, Obstacle};
use doorbell_verdict::ratio::{Ratio, Standing};

/// The comparison of `candidate` with `baseline`, by the names of their files or runs.
pub fn comparison(comparison: &Comparison, baseline: &str, candidate: &str, style: &Style) -> String {
    let title = format!("{candidate} against {baseline}");
    let mut out: String = doubts(comparison).iter().map(|doubt| style.wrap(doubt, 0)).collect();
    out.push_str(&style.paint(Role::Heading, &style.wrap(&conclusion(comparison), 0)));
    out.push_str(&style.wrap(&title, 0));
    let rows = &comparison.rows;
    if !rows.is_empty() {
        let common = axis::common(rows.iter().map(|row| row.configuration));
        let taken_out = match rows.iter().any(|row| row.machine.is_some()) {
            true => ", the machine's own change taken out",
            false => "",
        };
        let note = format!(
            "Ratios of candidate to baseline, above 1 is slower{taken_out}; all \
             intervals of p50 and p99 hold together in 95 of 100 comparisons. All: {common}."
        );
        out.push_str(&style.wrap(&note, 0));
        let table = columns(rows).table(rows);
        out.push_str(&table.render(style));
    }
    let axes = all_axes(comparison);
    for sentence in never_came(comparison, &axes) {
        out.push_str(&style.paint(Role::Warning, &style.wrap(&sentence, 2)));
    }
    for configuration in &comparison.unmatched {
        out.push_str(&style.wrap(
            &format!(
                "Not compared: {}: {}.",
                axis::label(configuration.configuration, &axes),
                configuration.reason
            ),
            2,
        ));
    }
    out
}

/// What every form of the table of a comparison has.
pub(super) fn columns<'a>(rows: &[ComparedConfiguration<'a>]) -> Columns<'a, ComparedConfiguration<'a>> {
    let axes = axis::varying(rows.iter().map(|row| row.configuration));
    let scale = Scale::for_ps(rows.iter().map(|row| row.baseline_p50_ns * 1e3));
    Columns::along(&axes, "mechanism", |row: &ComparedConfiguration, axis| axis.value(row.configuration))
        .with(number(format!("before, {}", scale.unit.sign())), move |row| {
            scale.show(row.baseline_p50_ns * 1e3)
        })
        .with(word("p50 ratio"), |row| interval(row.p50))
        .with(word("p99 ratio").keep(3), |row| row.p99.map_or_else(dash, interval))
        .with(number("as measured").keep(2), |row| format!("{:.3}", row.measured))
        .with(number("machine").keep(1), |row| row.machine.map_or_else(dash, |ratio| format!("{ratio:.3}")))
        .with(word("verdict"), words)
}

/// The comparisons of one baseline with the candidates of these names, for programs. Of several,
/// each finding names its candidate.
pub fn verdict(compared: &[(Comparison, String)]) -> record::Verdict {
    let statuses: Vec<Status> = compared.iter().map(|(comparison, _)| comparison.status()).collect();
    let of = |name: &str, text: String| if compared.len() > 1 { format!("{name}: {text}") } else { text };
    let reasons = compared.iter().map(|(comparison, name)| {
        let doubts = doubts(comparison).into_iter();
        let lost = never_came(comparison, &all_axes(comparison));
        let all: Vec<String> = doubts.chain([conclusion(comparison)]).chain(lost).collect();
        of(name, all.join(" "))
    });
    let doubts = compared.iter().flat_map(|(comparison, _)| comparison.doubts());
    let findings = compared.iter().flat_map(|(comparison, name)| {
        let named = |found: Finding| Finding { configuration: of(name, found.configuration), ..found };
        findings(comparison).into_iter().map(named)
    });
    record::Verdict {
        status: Status::of(statuses.contains(&Status::Failed), statuses.contains(&Status::Inconclusive)),
        reason: reasons.collect::<Vec<_>>().join(" "),
        provisional: doubts.into_iter().any(|doubt| matches!(doubt, Doubt::Provisional(_))),
        findings: findings.collect(),
    }
}

fn findings(comparison: &Comparison) -> Vec<Finding> {
    let axes = all_axes(comparison);
    let rows = comparison.asked().map(|row| {
        let finding =
            Finding::new(axis::label(row.configuration, &axes), "p50", row.standing.status(), "ratio");
        finding.valued(row.p50.estimate, Some([row.p50.low, row.p50.high])).because(words(row))
    });
    let gone = comparison.unmatched.iter().map(|unmatched| {
        let name = axis::label(unmatched.configuration, &axes);
        let status = if unmatched.gone { Status::Inconclusive } else { Status::Answered };
        Finding::new(name, "p50", status, "ratio").because(unmatched.reason.clone())
    });
    rows.chain(gone).collect()
}

/// What is said before a comparison.
fn doubts(comparison: &Comparison) -> Vec<String> {
    let told = |doubt| match doubt {
        Doubt::Foreign => foreign(comparison.files[1]),
        Doubt::Partial(which) => {
            Some(format!("Partial: the {which} was interrupted; it is compared as far as it was measured."))
        }
        Doubt::Provisional(interfered) => Some(provisional(interfered)),
    };
    comparison.doubts().into_iter().filter_map(told).collect()
}

/// Where one run lost wake-ups, or saw them late, and the other did not as often. Of what was not
/// sent there is an estimate alone.
fn never_came(comparison: &Comparison, axes: &[Axis]) -> Vec<String> {
    let differs = |row: &&ComparedConfiguration| {
        let [before, after] = row.missed.map(|missed| (missed.lost, missed.late));
        before != after
    };
    let rows = comparison.rows.iter().filter(differs);
    rows.map(|row| format!("Wake-ups {}.", missed(&axis::label(row.configuration, axes), row.missed)))
        .collect()
}

/// What tells all configurations of both runs apart.
fn all_axes(comparison: &Comparison) -> Vec<Axis> {
    let rows = comparison.rows.iter().map(|row| row.configuration);
    axis::varying(rows.chain(comparison.unmatched.iter().map(|unmatched| unmatched.configuration)))
}

/// A ratio with its interval.
pub fn interval(ratio: Ratio) -> String {
    let high = if ratio.high.is_finite() { format!("{:.3}", ratio.high) } else { "?".to_owned() };
    format!("{:.3} [{:.3}..{high}]", ratio.estimate, ratio.low)
}

/// The verdict on a configuration, and what keeps it open.
pub fn words(row: &ComparedConfiguration) -> String {
    let why = row.doubt.as_ref().map_or_else(String::new, |doubt| format!("; {doubt}"));
    match row.standing {
        Standing::Slower => "slower".to_owned(),
        Standing::Faster => "faster".to_owned(),
        Standing::Same { within } => format!("same within {:.1} %", within * 100.0),
        Standing::Inconclusive => match &row.doubt {
            Some(Obstacle::FewBlocks(_)) => format!("inconclusive{why}"),
            _ => format!("inconclusive: {}{why}", could_be(row.p50)),
        },
    }
}

/// What it all comes to, in a sentence, and what must not be read without: that both are of two
/// machines, or one run, and what either was measured under.
pub fn conclusion(comparison: &Comparison) -> String {
    let [baseline, candidate] = comparison.files;
    let under = |name: &str, file| beside(file).map(|told| format!("{name}: {told}"));
    let others = [
        standing(baseline, candidate, "candidate"),
        under("Baseline", baseline),
        under("Candidate", candidate).filter(|_| !std::ptr::eq(baseline, candidate)),
    ];
    std::iter::once(concluded(comparison)).chain(others.into_iter().flatten()).collect::<Vec<_>>().join(" ")
}

fn concluded(comparison: &Comparison) -> String {
    let count =
        |wanted: fn(Standing) -> bool| comparison.asked().filter(|row| wanted(row.standing)).count() as u64;
    let slower = count(|verdict| verdict == Standing::Slower);
    let faster = count(|verdict| verdict == Standing::Faster);
    let same = count(|verdict| matches!(verdict, Standing::Same { .. }));
    let open = count(|verdict| verdict == Standing::Inconclusive);
    let configurations = counted(comparison.asked().count() as u64, "configuration");
    if let Some(refused) = &comparison.refused {
        return format!("Nothing is compared: {}.", refused.reason());
    }
    if comparison.rows.is_empty() {
        return "Nothing could be compared: the runs have no configuration in common.".to_owned();
    }
    let matters = format!("the same within {} %", comparison.relevant * 100.0);
    let parts = [(slower, "slower"), (faster, "faster"), (same, &matters), (open, "inconclusive")];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let left_out = match comparison.unmatched.iter().filter(|unmatched| unmatched.had).count() {
        0 => String::new(),
        more => format!(" {} of the baseline not compared.", counted(more as u64, "more configuration")),
    };
    let text = format!(
        "Of {configurations}: {}; in 95 of 100 comparisons all of that is right.{left_out}",
        parts.join(", ")
    );
    if slower + faster > 0 || open == 0 {
        return text;
    }
    // What could still be there, where nothing was found: how far the
    // intervals reach on the side that is farther.
    let mut reach: Vec<f64> =
        comparison.asked().map(|row| row.p50.high.max(1.0 / row.p50.low) - 1.0).collect();
    reach.sort_by(f64::total_cmp);
    match reach[reach.len() / 2] {
        middle if middle.is_finite() => {
            format!(
                "Inconclusive: in half of the configurations a difference of at most {:.1} % is \
                 still possible. {text}",
                middle * 100.0
            )
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;
    use doorbell_verdict::compare::{RELEVANT, compare};

    #[test]
    fn a_comparison_shows_every_verdict_and_what_was_not_compared() {
        let configurations = ["futex", "pipe", "eventfd", "spin"].map(sample::configuration);
        let level = |subject: &str| match subject {
            "futex" => 17_000.0,
            "pipe" => 16_100.0,
            _ => 14_000.0,
        };
        let first = sample::result(&configurations, 8, |_, block| 16_000.0 + f64::from(block % 3));
        let mut second = sample::result(&configurations[..3], 8, |configuration, block| {
            level(&configuration.subject) + f64::from(block % 3)
        });
        second.started_at_unix_ns += 1;
        let text =
            comparison(&compare(&first, &second, RELEVANT), "before.json", "after.json", &Style::PLAIN);
        insta::assert_snapshot!(text);
    }

    /// Two test cases had one name, "between processes, pattern one way, gap 1 ms", and that they
    /// had passed was said of what was not compared.
    #[test]
    fn what_was_not_compared_has_the_name_of_its_mechanism_and_has_not_passed() {
        let configurations = ["futex", "pipe", "eventfd"].map(sample::configuration);
        let [first, mut second] = [3, 1]
            .map(|few| sample::result(&configurations[..few], 8, |_, block| 16_000.0 + f64::from(block % 3)));
        second.started_at_unix_ns += 1;
        let compared = compare(&first, &second, RELEVANT);
        let verdict = verdict(&[(compared, "second".to_owned())]);
        let names: Vec<&str> =
            verdict.findings.iter().map(|finding| finding.configuration.as_str()).collect();
        assert_eq!(names, ["futex", "pipe", "eventfd"]);
        assert!(
            verdict.reason.ends_with("2 more configurations of the baseline not compared."),
            "{}",
            verdict.reason
        );
        let (_, junit) = crate::verdict_format::FORMATS[1];
        let text = junit("doorbell compare", &verdict);
        assert!(text.contains("tests=\"4\" failures=\"0\" errors=\"0\" skipped=\"2\""), "{text}");
        assert!(text.contains("<skipped message=\"only in the baseline\"/>"), "{text}");
    }
}
