// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the doctor found, for people.

use super::style::{Role, Style, width};
use doorbell_results::machine::Machine;
use doorbell_results::machine::doctor::{Finding, Severity, worst};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The verdict, then every finding with its effect, its cure and
    /// its source, then the placements.
    Full,
    /// One line for each finding that is not as it should be, then the verdict.
    Brief,
}

/// The findings of `machine` and what follows from them.
pub fn doctor(machine: &Machine, detail: Detail, style: &Style) -> String {
    let mut out = String::new();
    if detail == Detail::Full {
        out += &style.paint(Role::Heading, &style.text(&title(machine)));
        out += "\n";
        out += &style.wrap(&verdict(&machine.findings), 0);
        out += "\n";
    }
    let shown = |finding: &&Finding| detail == Detail::Full || finding.severity != Severity::Ok;
    let findings: Vec<&Finding> = machine.findings.iter().filter(shown).collect();
    let names = findings.iter().map(|finding| width(&finding.name)).max().unwrap_or(0);
    for finding in findings {
        out += &entry(finding, names, detail, style);
    }
    if detail == Detail::Full {
        out += "\n";
        out += &style.paint(Role::Heading, "placements");
        out += "\n";
        let pairs = machine.topology.pairs();
        let names = pairs.iter().map(|pair| pair.relation.name().len()).max().unwrap_or(0);
        for pair in pairs {
            let mark = if pair.cpus.is_some() { "" } else { "none: " };
            out += &hanging(
                &format!("  {:names$}  ", pair.relation.name()),
                &format!("{mark}{}", pair.why),
                style,
            );
        }
    } else {
        out += &style.wrap(&verdict(&machine.findings), 0);
    }
    out
}

/// The machine in one line: processor, CPUs, kernel, memory.
pub fn title(machine: &Machine) -> String {
    let model = machine.processor.model_name.as_deref().or(machine.processor.vendor.as_deref());
    let parts = [
        model.map(str::to_owned),
        Some(format!("{} CPUs online", machine.topology.online.len())),
        machine.kernel.title(),
        machine.memory.total_bytes.map(|bytes| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn entry(finding: &Finding, names: usize, detail: Detail, style: &Style) -> String {
    let severity = finding.severity.name();
    let painted = match finding.severity {
        Severity::Ok => severity.to_owned(),
        Severity::Note => style.paint(Role::Aside, severity),
        Severity::Warn => style.paint(Role::Warning, severity),
        Severity::Unfit => style.paint(Role::Error, severity),
    };
    let gap = " ".repeat(5 - severity.len());
    let mut out = hanging(&format!("{painted}{gap}  {:names$}  ", finding.name), &finding.seen, style);
    if detail == Detail::Full && finding.severity != Severity::Ok {
        let margin = " ".repeat(5 + 2 + names + 2);
        for (label, text) in [("effect", &finding.effect), ("cure", &finding.cure), ("see", &finding.source)]
        {
            out += &hanging(&format!("{margin}{label:6}  "), text, style);
        }
    }
    out
}

/// `text` after `head`, its further lines below its first.
fn hanging(head: &str, text: &str, style: &Style) -> String {
    let body = style.wrap(text, width(head));
    let (blank, rest) = body.split_at(body.len() - body.trim_start().len());
    let head = if blank.is_empty() { head.trim_end() } else { head };
    format!("{head}{rest}")
}

/// Whether a machine with these findings is fit to measure, in a sentence.
pub fn verdict(findings: &[Finding]) -> String {
    let named = |severity: Severity| -> Vec<&str> {
        let wanted = findings.iter().filter(|finding| finding.severity == severity);
        wanted.map(|finding| finding.name.as_str()).collect()
    };
    let notes = named(Severity::Note).len();
    let aside = match notes {
        0 => String::new(),
        1 => "; 1 note says what its figures depend on".to_owned(),
        _ => format!("; {notes} notes say what its figures depend on"),
    };
    match worst(findings) {
        Severity::Unfit => {
            format!("This machine is unfit to measure: {}.", named(Severity::Unfit).join(", "))
        }
        Severity::Warn => {
            format!(
                "This machine can be measured, with warnings: {}{aside}.",
                named(Severity::Warn).join(", ")
            )
        }
        Severity::Note | Severity::Ok => format!("This machine is fit to measure{aside}."),
    }
}
