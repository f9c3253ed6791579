// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts in the forms that machines of others read: JSON, JUnit,
//! annotations of GitHub Actions, Markdown.

use super::wording::three;
use crate::escaped::Escaped;
use doorbell_results::record::verdict::{Finding, Status, Verdict};
use doorbell_results::written::{inert, pretty_json};
use serde::Serialize;
use std::fmt::Write as _;

/// A form, and what writes it: the name of what was judged comes before the verdict.
pub type Format = (&'static str, fn(&str, &Verdict) -> String);

/// Every form. The one list to extend.
pub const FORMATS: [Format; 4] =
    [("json", json), ("junit", junit), ("github", github), ("markdown", markdown)];

/// One document: the name and the verdict as a result file holds it.
fn json(name: &str, verdict: &Verdict) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        name: &'a str,
        verdict: &'a Verdict,
    }
    // Text keys and finite numbers: writing to memory cannot fail.
    let text = pretty_json(&Document { name, verdict }).unwrap_or_default();
    text + "\n"
}

/// The verdict itself first, then what it is made of.
fn all(verdict: &Verdict) -> Vec<Finding> {
    let whole =
        Finding::new("verdict".to_owned(), "whole run", verdict.status, "").because(verdict.reason.clone());
    std::iter::once(whole).chain(verdict.findings.iter().cloned()).collect()
}

/// The figure with its interval, and the reason.
fn told(finding: &Finding) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), three);
    let figure = finding.value.map_or_else(String::new, |value| {
        let ends = finding
            .interval
            .map_or_else(String::new, |[low, high]| format!(" ({} to {})", number(low), number(high)));
        format!("{} {}{ends}", three(value), finding.unit)
    });
    match (figure.is_empty(), finding.reason.is_empty()) {
        (false, false) => format!("{figure}: {}", finding.reason),
        (true, _) => finding.reason.clone(),
        (false, true) => figure,
    }
}

/// A test case for the verdict and one for each configuration. What is inconclusive is an error: it
/// has not passed. What was not judged was skipped.
fn junit(name: &str, verdict: &Verdict) -> String {
    let findings = all(verdict);
    let count = |wanted: Status| findings.iter().filter(|finding| finding.status == wanted).count();
    let unjudged = |place: usize, finding: &Finding| {
        place > 0 && finding.status == Status::Answered && finding.value.is_none()
    };
    let skipped = findings.iter().enumerate().filter(|(place, finding)| unjudged(*place, finding)).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let _ = writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{skipped}\">",
        Escaped(name),
        findings.len(),
        count(Status::Failed),
        count(Status::Inconclusive)
    );
    for (place, finding) in findings.iter().enumerate() {
        let case = format!("{} {}", finding.configuration, finding.figure);
        let _ = write!(out, "    <testcase classname=\"{}\" name=\"{}\"", Escaped(name), Escaped(&case));
        let said = Escaped(&told(finding)).to_string();
        let _ = match finding.status {
            Status::Failed => writeln!(out, "><failure message=\"{said}\"/></testcase>"),
            Status::Inconclusive => {
                writeln!(out, "><error type=\"inconclusive\" message=\"{said}\"/></testcase>")
            }
            _ if unjudged(place, finding) => writeln!(out, "><skipped message=\"{said}\"/></testcase>"),
            _ => writeln!(out, "><system-out>{said}</system-out></testcase>"),
        };
    }
    out + "  </testsuite>\n</testsuites>\n"
}

/// A workflow command for the verdict and one for each configuration that did not pass.
fn github(name: &str, verdict: &Verdict) -> String {
    let findings = all(verdict);
    let shown = findings.iter().enumerate();
    let shown = shown.filter(|(place, finding)| {
        *place == 0 || matches!(finding.status, Status::Failed | Status::Inconclusive)
    });
    let lines = shown.map(|(_, finding)| {
        let level = match finding.status {
            Status::Failed => "error",
            Status::Inconclusive => "warning",
            _ => "notice",
        };
        let title = format!("{name}: {} {}", finding.configuration, finding.figure);
        format!("::{level} title={}::{}\n", property(&title), data(&told(finding)))
    });
    lines.collect()
}

/// As the runner takes a message apart (actions/toolkit, packages/core/src/command.ts).
fn data(text: &str) -> String {
    inert(&text.replace('%', "%25").replace('\n', "%0A"))
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// The verdict in bold, and a table.
fn markdown(name: &str, verdict: &Verdict) -> String {
    let plain = |text: &str| super::export::markdown::escape(text);
    let provisional = if verdict.provisional { " (provisional)" } else { "" };
    let mut out =
        format!("**{}: {}{provisional}.** {}\n", plain(name), verdict.status.name(), plain(&verdict.reason));
    if !verdict.findings.is_empty() {
        out.push_str(
            "\n| configuration | figure | seen | between | status | why |\n|---|---|---:|---:|---|---|\n",
        );
    }
    for finding in &verdict.findings {
        let number = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), three);
        let seen =
            finding.value.map_or_else(String::new, |value| format!("{} {}", three(value), finding.unit));
        let between = finding
            .interval
            .map_or_else(String::new, |[low, high]| format!("{} to {}", number(low), number(high)));
        let cells = [&finding.configuration, &finding.figure, &seen, &between].map(|text| plain(text));
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            cells.join(" | "),
            finding.status.name(),
            plain(&finding.reason)
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict() -> Verdict {
        let finding = |name: &str, status| Finding::new(name.to_owned(), "p50>+5%", status, "ratio");
        Verdict {
            status: Status::Failed,
            reason: "Worse than <main>: 7 % & more\nof it.".to_owned(),
            provisional: false,
            findings: vec![
                finding("futex, same L3", Status::Failed).valued(1.0712, Some([1.05, f64::INFINITY])),
                finding("pipe | \"odd\"", Status::Inconclusive).because("too near"),
                finding("spin", Status::Passed).valued(1.0, Some([0.99, 1.01])),
            ],
        }
    }

    fn format(name: &str) -> String {
        let (_, write) = FORMATS.into_iter().find(|(known, _)| *known == name).unwrap();
        write("doorbell check", &verdict())
    }

    #[test]
    fn the_document_is_read_back_as_the_verdict_that_it_was() {
        let document: serde_json::Value = serde_json::from_str(&format("json")).unwrap();
        let read: Verdict = serde_json::from_value(document["verdict"].clone()).unwrap();
        assert_eq!(read, verdict());
        assert_eq!(read.findings[0].interval, Some([Some(1.05), None]));
    }

    #[test]
    fn in_junit_what_failed_and_what_is_inconclusive_has_not_passed() {
        let text = format("junit");
        assert!(text.contains("tests=\"4\" failures=\"2\" errors=\"1\""), "{text}");
        assert!(text.contains("Worse than &lt;main&gt;: 7 % &amp; more"), "{text}");
        assert!(text.contains("pipe | &quot;odd&quot;"), "{text}");
    }

    #[test]
    fn an_annotation_is_one_line_whatever_stands_in_it() {
        let text = format("github");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].starts_with("::error title=doorbell check%3A verdict whole run::Worse"), "{text}");
        assert!(lines[0].ends_with("7 %25 & more%0Aof it."), "{text}");
        assert!(lines[2].starts_with("::warning "), "{text}");
    }

    #[test]
    fn a_table_of_markdown_has_as_many_columns_in_each_row() {
        let text = format("markdown");
        let columns = |line: &str| line.replace("\\|", "").matches('|').count();
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), 5, "{text}");
        assert!(rows.iter().all(|row| columns(row) == 7), "{text}");
    }
}
