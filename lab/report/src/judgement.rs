// SPDX-License-Identifier: MIT OR Apache-2.0
//! The question that a result was measured for, or another one, answered from the result alone.

use super::screen::{self, cautioned};
use super::style::Role;
use super::subsection::{self, Subsection};
use super::wording::{beside, cautions, standing};
use super::{check as check_view, gate as gate_view, pick as pick_view, spin as spin_view, verified};
use doorbell_results::record::ResultFile;
use doorbell_results::record::question::{Check, Limited, Question};
use doorbell_results::record::verdict::{Finding, Status, Verdict};
use doorbell_verdict::check::check;
use doorbell_verdict::compare::{Incomparable, RELEVANT, compare_with_runs, incomparable};
use doorbell_verdict::gate::gate;
use doorbell_verdict::pick::pick;
use doorbell_verdict::provisional::provisional;
use doorbell_verdict::spin::spin;
use doorbell_verdict::what_if::verify::asked;

/// An answer in words, and how it stands.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The words, and the tables behind them.
    pub subsections: Vec<Subsection>,
    pub status: Status,
    /// Each configuration, for programs.
    pub findings: Vec<Finding>,
}

impl Answer {
    /// The same for programs.
    pub fn verdict(&self, result: &ResultFile) -> Verdict {
        Verdict {
            status: self.status,
            reason: subsection::said(&self.subsections)
                .map(str::to_owned)
                .into_iter()
                .chain(beside(result))
                .collect::<Vec<_>>()
                .join(" "),
            provisional: provisional(result).is_some(),
            findings: self.findings.clone(),
        }
    }
}

/// Why a result cannot answer a question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    #[error(
        "this result has no trials one way with a gap and without a time-out: `doorbell spin -o \
         FILE` writes some, and so does `doorbell ping --gap 10us,1ms --wait \
         block,spin,spin-then-block=12us`"
    )]
    NoSpinning,
    #[error(
        "this result has no wake-ups one way: `doorbell gate -o FILE` measures some, and so does \
         `doorbell ping --gap 1ms`"
    )]
    NoWakes,
    #[error(transparent)]
    Incomparable(#[from] Incomparable),
    #[error("it was held against {0}: name that file as well")]
    NoBaseline(String),
    #[error(
        "its question, '{0}', is none of this version's: read it with the version that wrote it, \
         or a later one"
    )]
    Unknown(String),
    #[error("{0}")]
    UnknownNeed(String),
}

/// What was asked of `result` when it was measured, answered; nothing where nothing was. The
/// baseline of a check is looked for among `others`.
pub fn answered(result: &ResultFile, others: &[&ResultFile]) -> Vec<Subsection> {
    let Some(question) = &result.plan.question else { return Vec::new() };
    match answer(question, result, others) {
        Ok(answer) => answer.subsections,
        Err(error) => {
            let line = format!("What was asked of this run cannot be answered: {error}.");
            Subsection::of_lines("No verdict", vec![line]).into_iter().collect()
        }
    }
}

/// What is said of `result` to other programs: as
/// [`shown`](super::result_text::shown) says it to people.
pub fn verdict(result: &ResultFile, others: &[&ResultFile]) -> Verdict {
    let told = match &result.plan.question {
        None => screen::verdict(result),
        Some(question) => match (answer(question, result, others), &result.verdict) {
            (Ok(answer), _) => answer.verdict(result),
            (Err(_), Some(stored)) => stored.clone(),
            (Err(error), None) => Verdict {
                status: Status::Inconclusive,
                reason: format!("What was asked of this run cannot be answered: {error}."),
                provisional: provisional(result).is_some(),
                findings: Vec::new(),
            },
        },
    };
    cautioned(told, result)
}

/// `question` asked of `result`; the baseline of a check is looked for among `others`.
///
/// Where others interfered with most of the run, it says first that it is provisional, and stands
/// open; so does one that was cut, or is no machine's, of which every view says so first.
pub fn answer(question: &Question, result: &ResultFile, others: &[&ResultFile]) -> Result<Answer, NoAnswer> {
    let mut answer = as_measured(question, result, others)?;
    if let Some(verdict) = answer.subsections.first_mut() {
        verdict.lead.splice(0..0, beside(result));
    }
    if let Some(found) = provisional(result) {
        let title = crate::answer::provisional(found);
        let first = Subsection { title, role: Role::Warning, ..Subsection::default() };
        answer.subsections.insert(0, first);
    }
    let doubted = provisional(result).is_some() || !cautions(result).is_empty();
    if doubted && answer.status != Status::Failed {
        answer.status = Status::Inconclusive;
    }
    Ok(answer)
}

fn as_measured(question: &Question, result: &ResultFile, others: &[&ResultFile]) -> Result<Answer, NoAnswer> {
    Ok(match question {
        Question::Pick(question) => {
            let picked = pick(result, question).map_err(NoAnswer::UnknownNeed)?;
            Answer {
                subsections: pick_view::subsections(&picked, question),
                status: open_if(picked.choice.is_err()),
                findings: pick_view::findings(&picked, question),
            }
        }
        Question::Spin(question) => {
            let spun = spin(result, question.worth).ok_or(NoAnswer::NoSpinning)?;
            Answer {
                subsections: spin_view::subsections(&spun),
                status: open_if(spun.gaps.iter().any(|gap| gap.choice.is_err())),
                findings: spin_view::findings(&spun),
            }
        }
        Question::Gate(question) => {
            let gated = gate(result, *question).ok_or(NoAnswer::NoWakes)?;
            Answer {
                subsections: gate_view::subsections(&gated),
                status: gated.verdict.status(),
                findings: gate_view::findings(&gated),
            }
        }
        Question::Check(question) => checked(question, result, others)?,
        Question::Verify(question) => {
            let found = asked(question, result);
            Answer {
                subsections: verified::verified(question, &found),
                status: verified::status(&found),
                findings: verified::findings(question, &found),
            }
        }
        Question::Unknown(question) => {
            return Err(NoAnswer::Unknown(Question::name_of(question).to_owned()));
        }
    })
}

fn open_if(open: bool) -> Status {
    if open { Status::Inconclusive } else { Status::Answered }
}

fn title(check: &Check) -> String {
    let baseline = check.baseline.title();
    match check.more.len() {
        0 => baseline,
        1 => format!("{baseline} and one more run"),
        more => format!("{baseline} and {more} more runs"),
    }
}

fn checked(question: &Check, candidate: &ResultFile, others: &[&ResultFile]) -> Result<Answer, NoAnswer> {
    let baseline = others.iter().find(|other| question.baseline.is(other));
    let baseline = baseline.ok_or_else(|| NoAnswer::NoBaseline(question.baseline.title()))?;
    // What is called a difference must be no larger than the least that is asked about.
    let limits = question.conditions.iter().filter_map(|condition| match condition.limited {
        Limited::More(_, more) => Some(more),
        _ => None,
    });
    let more = question.more.iter().map(|run| {
        let found = others.iter().copied().find(|other| run.is(other));
        found.ok_or_else(|| NoAnswer::NoBaseline(run.title()))
    });
    let more = more.collect::<Result<Vec<&ResultFile>, NoAnswer>>()?;
    let others = more.iter().copied().chain([candidate]);
    if let Some(why) = others.into_iter().find_map(|run| incomparable(baseline, run)) {
        return Err(why.into());
    }
    let comparison = compare_with_runs(baseline, &more, candidate, limits.fold(RELEVANT, f64::min));
    let checked = check(&comparison, candidate, &question.conditions);
    let status = checked.status(baseline.partial);
    let mut subsections = check_view::subsections(&checked, &question.conditions, &title(question));
    if let Some(first) = subsections.first_mut().filter(|_| baseline.partial) {
        // In the sentence itself, so that programs are told too.
        first.title = format!(
            "Partial: the baseline was interrupted; it counts as far as it was measured. {}",
            first.title
        );
    }
    if let (Some(first), Some(standing)) = (subsections.first_mut(), standing(baseline, candidate, "here")) {
        first.title = format!("{} {standing}", first.title);
    }
    Ok(Answer { subsections, status, findings: check_view::findings(&checked, &question.conditions) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::{Configuration, Pattern};
    use doorbell_results::record::question::{Baseline, Gate, Which, condition};
    use doorbell_results::record::sample;

    fn result(question: Option<Question>) -> ResultFile {
        let configuration = Configuration {
            pattern: Pattern::OneWay { gap_ns: 1_000_000 },
            ..sample::configuration("futex")
        };
        let mut result = sample::result(&[configuration], 10, |_, _| 16_000.0);
        result.plan.question = question;
        result
    }

    fn against(baseline: Baseline) -> Question {
        let conditions = vec![condition("p50>+5%").unwrap()];
        Question::Check(Check { baseline, more: Vec::new(), conditions })
    }

    fn title(told: &[Subsection]) -> &str {
        told.first().map_or("", |subsection| &subsection.title)
    }

    #[test]
    fn a_gate_is_answered_by_the_limit_it_was_run_with() {
        let gate = Gate { limit_ns: 1000, which: Which::Quantile(0.999), confidence: 0.95 };
        let told = answered(&result(Some(Question::Gate(gate))), &[]);
        assert!(title(&told).starts_with("FAIL  p99.9 23.9 µs > 1 µs"), "{told:?}");
    }

    /// A gate that failed in text passed in JUnit where its file held no verdict, and a run that
    /// was cut or emulated was "answered".
    #[test]
    fn programs_are_told_what_people_are_told() {
        let gate = Gate { limit_ns: 1000, which: Which::Quantile(0.999), confidence: 0.95 };
        let failed = verdict(&result(Some(Question::Gate(gate))), &[]);
        assert_eq!(failed.status, Status::Failed);
        assert!(failed.reason.starts_with("FAIL  p99.9"), "{failed:?}");

        let baseline = Baseline::of("main.json".to_owned(), &result(None));
        let unanswered = verdict(&result(Some(against(baseline))), &[]);
        assert_eq!(unanswered.status, Status::Inconclusive);
        assert!(unanswered.reason.contains("held against made up (main.json)"), "{unanswered:?}");

        let whole = result(None);
        assert_eq!(verdict(&whole, &[]).status, Status::Answered);
        let cut = verdict(&ResultFile { partial: true, ..whole.clone() }, &[]);
        assert!(cut.status == Status::Inconclusive && cut.reason.starts_with("Partial: "), "{cut:?}");
        let mut emulated = whole;
        emulated.machine.virtualisation.emulated = true;
        let emulated = verdict(&emulated, &[]);
        assert!(
            emulated.status == Status::Inconclusive && emulated.reason.starts_with("emulated: "),
            "{emulated:?}"
        );
    }

    /// A quota of a tenth, steal, and other programs at 98 % stood in the doctor's list alone; a
    /// baseline of another machine was compared in silence.
    #[test]
    fn every_form_says_what_a_verdict_was_measured_under_and_that_its_baseline_is_another_machines() {
        let mut baseline = result(None);
        baseline.started_at_unix_ns -= 1;
        baseline.machine.processor.model_name = Some("EPYC".to_owned());
        let mut candidate = result(Some(against(Baseline::of("main.json".to_owned(), &baseline))));
        candidate.machine.processor.model_name = Some("Xeon".to_owned());
        candidate.machine.findings.push(doorbell_results::machine::doctor::Finding {
            name: "quota".to_owned(),
            severity: doorbell_results::machine::doctor::Severity::Warn,
            seen: "0.10 CPUs".to_owned(),
            effect: String::new(),
            cure: String::new(),
            source: String::new(),
        });
        let told = verdict(&candidate, &[&baseline]);
        let forms = crate::verdict_format::FORMATS.map(|(_, write)| write("doorbell check", &told));
        let text = [crate::result_text::Detail::Brief, crate::result_text::Detail::Full].map(|detail| {
            crate::result_text::shown(&candidate, &[&baseline], detail, &crate::style::Style::PLAIN)
        });
        for form in forms.iter().chain(&text) {
            let words = form.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains("Baseline: EPYC; here: Xeon."), "{form}");
            assert!(words.contains("Measured under: quota (0.10 CPUs)."), "{form}");
        }
        let compared = compare_with_runs(&baseline, &[], &candidate, RELEVANT);
        let conclusion = crate::comparison::conclusion(&compared);
        assert!(
            conclusion.contains("Baseline: EPYC; candidate: Xeon. Candidate: Measured under: quota"),
            "{conclusion}"
        );
        let itself = crate::comparison::conclusion(&compare_with_runs(&baseline, &[], &baseline, RELEVANT));
        assert!(itself.ends_with("Baseline and candidate are one and the same run."), "{itself}");
    }

    /// "answered", of "too few blocks to say by how much".
    #[test]
    fn what_compares_nothing_for_want_of_blocks_has_answered_nothing() {
        let configurations = ["futex", "pipe"].map(sample::configuration);
        let run = |blocks| {
            sample::result(&configurations, blocks, |configuration, block| {
                let level = if configuration.subject == "pipe" { 32_000.0 } else { 16_000.0 };
                level + f64::from(block % 3)
            })
        };
        assert_eq!(verdict(&run(3), &[]).status, Status::Inconclusive);
        assert_eq!(verdict(&run(12), &[]).status, Status::Answered);
    }

    #[test]
    fn what_asked_nothing_is_answered_nothing() {
        assert!(answered(&result(None), &[]).is_empty());
    }

    #[test]
    fn a_check_is_held_against_its_baseline_if_that_is_there_whatever_its_file_is_called_by_now() {
        let mut baseline = result(None);
        baseline.started_at_unix_ns -= 1;
        let checked = result(Some(against(Baseline::of("main.json".to_owned(), &baseline))));
        for others in [&[] as &[&ResultFile], &[&checked]] {
            let alone = answered(&checked, others);
            assert!(alone[0].lead[0].contains("held against made up (main.json)"), "{alone:?}");
        }
        let both = answered(&checked, &[&checked, &baseline]);
        assert!(
            title(&both).starts_with("Not worse") || title(&both).starts_with("Inconclusive"),
            "{both:?}"
        );
    }

    #[test]
    fn a_question_of_another_build_is_named_and_kept() {
        let text = r#"{"kind":"tea-leaves","cups":3}"#;
        let question: Question = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&question).unwrap().len(), text.len());
        let told = answered(&result(Some(question)), &[]);
        assert!(told[0].lead[0].contains("'tea-leaves'"), "{told:?}");
    }
}
