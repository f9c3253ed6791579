// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fleet in words: which nodes fail, which are odd beside others of their type, what those share,
//! which files were left out; and the table of the nodes that are named.

use std::collections::HashSet;

use super::columns::Columns;
use super::machines;
use super::style::Role;
use super::subsection::Subsection;
use super::table::{number, word};
use super::unit::{count, plain};
use crate::wording::counted;
use doorbell_results::record::verdict::{Finding, Status, Verdict};
use doorbell_verdict::fleet::{Beside, Judged, Shared};

/// Nodes, marks and files that a sentence names at the most; the rest is told by its number.
const NAMED: usize = 4;

/// What is said of a node that was asked and of which no file is there.
pub(super) const SILENT: &str = "no result";

/// A file that says nothing, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub file: String,
    pub reason: String,
}

/// What `fleet` says, and the table of the nodes that fail, are inconclusive or odd.
pub fn subsections(fleet: &Judged, left_out: &[LeftOut]) -> Vec<Subsection> {
    let role = if standing(fleet) == Status::Failed { Role::Error } else { Role::Heading };
    let lead = lead(fleet, left_out);
    let told = Subsection::verdict(conclusion(fleet), role, lead);
    let files = left_out.iter().map(|out| format!("{}: {}", out.file, out.reason)).collect();
    let files = Subsection::of_lines("Files that were left out", files);
    std::iter::once(told).chain(table(fleet)).chain(files).collect()
}

/// How the fleet stands: as its worst node does, of which all but one that only answers can pass. A
/// silent node is inconclusive.
pub fn standing(fleet: &Judged) -> Status {
    let silent = !fleet.silent.is_empty();
    let has = |status| {
        fleet.nodes.iter().any(|node| node.status == status) || (silent && status == Status::Inconclusive)
    };
    [Status::Failed, Status::Inconclusive, Status::Passed]
        .into_iter()
        .find(|status| has(*status))
        .unwrap_or(Status::Answered)
}

fn conclusion(fleet: &Judged) -> String {
    let of = |status| fleet.nodes.iter().filter(move |node| node.status == status);
    let all = counted((fleet.nodes.len() + fleet.silent.len()) as u64, "node");
    let names = |status| of(status).map(|node| node.name.clone());
    let open = of(Status::Inconclusive).count() + fleet.silent.len();
    match standing(fleet) {
        Status::Failed => {
            let also = match open {
                0 => String::new(),
                open => format!("; {} inconclusive", count(open as u64)),
            };
            let failed = of(Status::Failed).count() as u64;
            format!("FAIL  {} of {all}: {}{also}", count(failed), listed(names(Status::Failed)))
        }
        Status::Inconclusive => {
            let open_ones = names(Status::Inconclusive).chain(fleet.silent.iter().cloned());
            format!("INCONCLUSIVE  {} of {all}: {}", count(open as u64), listed(open_ones))
        }
        Status::Passed => format!("PASS  {all}"),
        Status::Answered => format!("{all}, none of which was asked to keep to anything"),
    }
}

/// The first of `names`, and how many more.
fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(NAMED);
    let first = names[..names.len() - more].join(", ");
    if more == 0 { first } else { format!("{first} and {} more", count(more as u64)) }
}

fn lead(fleet: &Judged, left_out: &[LeftOut]) -> Vec<String> {
    let mut lead = Vec::new();
    if !fleet.silent.is_empty() {
        lead.push(format!("No result of {}.", listed(fleet.silent.iter().cloned())));
    }
    if !fleet.shared.is_empty() {
        let shared = listed(fleet.shared.iter().map(share));
        lead.push(format!(
            "What those that fail or are slow share: {shared}. No cause: where to look first."
        ));
    }
    if !fleet.odd.is_empty() {
        let odd = listed(fleet.odd.iter().map(|odd| told(fleet, odd)));
        lead.push(format!("Odd beside others of their type: {odd}."));
    }
    if fleet.older > 0 {
        lead.push(format!(
            "{} of nodes that have a newer one: not counted.",
            counted(fleet.older as u64, "result")
        ));
    }
    if !fleet.strangers.is_empty() {
        lead.push(format!("Not asked, and not counted: {}.", listed(fleet.strangers.iter().cloned())));
    }
    if !left_out.is_empty() {
        let files = listed(left_out.iter().map(|out| out.file.clone()));
        lead.push(format!("Left out: {files}."));
    }
    lead
}

fn share(shared: &Shared) -> String {
    let Shared { mark, among: (with, of), others: (others, rest) } = shared;
    format!(
        "{mark} ({} of {}; {} of the {} others)",
        count(*with as u64),
        count(*of as u64),
        count(*others as u64),
        count(*rest as u64)
    )
}

fn told(fleet: &Judged, odd: &Beside) -> String {
    let name = &fleet.nodes[odd.node].name;
    format!(
        "{name} takes {} times as long in {} of {}",
        plain(odd.times),
        count(odd.differs as u64),
        counted(odd.compared as u64, "figure")
    )
}

/// The places of the nodes that fail, are inconclusive or odd, in this order.
pub fn to_look_at(fleet: &Judged) -> Vec<usize> {
    let odd: HashSet<usize> = fleet.odd.iter().map(|odd| odd.node).collect();
    let rank = |place: usize| match fleet.nodes[place].status {
        Status::Failed => Some(0),
        Status::Inconclusive => Some(1),
        Status::Passed | Status::Answered => odd.contains(&place).then_some(2),
    };
    let mut places: Vec<usize> = (0..fleet.nodes.len()).filter(|place| rank(*place).is_some()).collect();
    places.sort_by_key(|place| rank(*place));
    places
}

fn odd_one(fleet: &Judged, place: usize) -> Option<&Beside> {
    fleet.odd.iter().find(|odd| odd.node == place)
}

fn table(fleet: &Judged) -> Option<Subsection> {
    let mut table = Columns::none()
        .with(word("node"), |place: &usize| fleet.nodes[*place].name.clone())
        .with(word("verdict"), |place| fleet.nodes[*place].status.name().to_owned())
        .with(number("times as long"), |place| {
            odd_one(fleet, *place).map_or_else(String::new, |odd| plain(odd.times))
        })
        .with(word("type").keep(1), |place| machines::name(&fleet.nodes[*place].of))
        .with(word("reason").keep(2), |place| fleet.nodes[*place].reason.clone())
        .table(&to_look_at(fleet));
    for name in &fleet.silent {
        let open = Status::Inconclusive.name().to_owned();
        table.row(vec![name.clone(), open, String::new(), String::new(), SILENT.to_owned()]);
    }
    let note = "As long as the middle node of its type, where most of its figures are too far from \
        it for chance. Nodes that neither fail nor are inconclusive or odd are not listed.";
    Subsection::of_table("Nodes to look at", table, vec![note.to_owned()])
}

/// The same for programs: a finding for each node.
pub fn verdict(fleet: &Judged, left_out: &[LeftOut]) -> Verdict {
    let nodes = fleet.nodes.iter().enumerate().map(|(place, node)| {
        let finding = Finding::new(node.name.clone(), "times as long as its type", node.status, "ratio");
        let finding = finding.because(node.reason.clone());
        match odd_one(fleet, place) {
            Some(odd) => finding.valued(odd.times, None),
            None => finding,
        }
    });
    let silent = fleet.silent.iter().map(|name| {
        Finding::new(name.clone(), "times as long as its type", Status::Inconclusive, "ratio")
            .because(SILENT.to_owned())
    });
    let files = left_out.iter().map(|out| {
        Finding::new(out.file.clone(), "left out", Status::Inconclusive, "").because(out.reason.clone())
    });
    let standing = match standing(fleet) {
        Status::Failed => Status::Failed,
        _ if !left_out.is_empty() => Status::Inconclusive,
        standing => standing,
    };
    Verdict {
        status: standing,
        reason: std::iter::once(conclusion(fleet) + ".")
            .chain(lead(fleet, left_out))
            .collect::<Vec<_>>()
            .join(" "),
        provisional: false,
        findings: nodes.chain(silent).chain(files).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use crate::subsection::brief;
    use doorbell_results::record::{ResultFile, sample};
    use doorbell_verdict::fleet::Fleet;

    fn on(host: &str, status: Status, ns: f64) -> ResultFile {
        let mut result = sample::result(&[sample::configuration("futex")], 1, |_, _| ns);
        result.machine.host = Some(host.to_owned());
        result.name = None;
        let reason = "p99.9 80 µs > 50 µs".to_owned();
        let finding = Finding::new("CPU 0".to_owned(), "p99.9", status, "ns").valued(ns, None);
        result.verdict = Some(Verdict { status, reason, provisional: false, findings: vec![finding] });
        result
    }

    fn fleet(results: impl IntoIterator<Item = ResultFile>) -> Judged {
        let mut fleet = Fleet::begun_by(u64::MAX);
        results.into_iter().for_each(|result| fleet.add(&result).unwrap());
        fleet.judge()
    }

    fn told(fleet: &Judged, left_out: &[LeftOut]) -> String {
        brief(&subsections(fleet, left_out), 12, &Style { width: 110, ..Style::PLAIN })
    }

    #[test]
    fn who_fails_what_they_share_and_what_was_left_out_stand_in_the_first_lines() {
        let nodes = (0..40).map(|node| {
            let bad = node % 8 == 3;
            let status = if bad { Status::Failed } else { Status::Passed };
            let mut result =
                on(&format!("n{node:02}"), status, if bad { 80e3 } else { 20e3 + f64::from(node) });
            result.machine.power.idle_driver = Some(if bad { "acpi_idle" } else { "intel_idle" }.to_owned());
            result
        });
        let fleet = fleet(nodes);
        let left_out = [LeftOut { file: "x.json".to_owned(), reason: "it is cut".to_owned() }];
        let text = told(&fleet, &left_out);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "FAIL 5 of 40 nodes: n03, n11, n19, n27 and 1 more", "{text}");
        assert!(text.contains("idle driver acpi_idle (5 of 5; 0 of the 35 others)"), "{text}");
        assert!(text.contains("n03 takes 4.00 times as long in 1 of 1 figure"), "{text}");
        assert!(text.contains("Left out: x.json.") && text.contains("x.json: it is cut"), "{text}");
        assert!(lines.len() <= 20, "{text}");
        let verdict = verdict(&fleet, &left_out);
        assert_eq!((verdict.status, verdict.findings.len()), (Status::Failed, 41));
    }

    #[test]
    fn a_node_that_was_asked_and_is_silent_leaves_the_fleet_open() {
        let judged = |last: Status| {
            let mut fleet = Fleet::begun_by(u64::MAX);
            fleet.ask(["a", "b", "c"].map(str::to_owned));
            fleet.add(&on("a", Status::Passed, 20e3)).unwrap();
            fleet.add(&on("c", last, 20e3)).unwrap();
            fleet.judge()
        };
        let text = told(&judged(Status::Passed), &[]);
        assert!(text.starts_with("INCONCLUSIVE 1 of 3 nodes: b\nNo result of b.\n"), "{text}");
        let verdict = verdict(&judged(Status::Passed), &[]);
        assert_eq!((verdict.status, verdict.findings[2].reason.as_str()), (Status::Inconclusive, SILENT));
        assert!(told(&judged(Status::Failed), &[]).starts_with("FAIL 1 of 3 nodes: c; 1 inconclusive\n"));
    }

    #[test]
    fn a_fleet_that_passes_says_so_in_one_line() {
        let fleet = fleet((0..3).map(|node| on(&format!("n{node}"), Status::Passed, 20e3)));
        assert_eq!(told(&fleet, &[]), "PASS 3 nodes\n");
        assert_eq!(verdict(&fleet, &[]).status, Status::Passed);
    }

    #[test]
    fn files_that_were_left_out_leave_a_fleet_open_for_programs() {
        let fleet = fleet([on("a", Status::Passed, 20e3)]);
        let left_out = [LeftOut { file: "b.json".to_owned(), reason: "it is cut".to_owned() }];
        assert_eq!(verdict(&fleet, &left_out).status, Status::Inconclusive);
    }
}
