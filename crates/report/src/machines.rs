// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines side by side, in words, and the table behind it.

use super::answer::could_be;
use super::style::Role;
use super::subsection::Subsection;
use super::table::{Table, number, word};
use super::unit::{count, plain};
use crate::wording::{counted, three};
use doorbell_results::plan::FEWEST_BLOCKS;
use doorbell_results::record::verdict::{Finding, Status, Verdict as Stored};
use doorbell_verdict::compare::RELEVANT;
use doorbell_verdict::machines::{Against, Group, Machines, Odd, Type};
use doorbell_verdict::ratio::{Ratio, Standing};

/// Odd machines that are named at the most; the rest is told by its number.
const NAMED: usize = 4;

/// Which type takes less time, how far the machines of one lie apart, which are odd, and the table.
pub fn subsections(machines: &Machines) -> Vec<Subsection> {
    let groups = &machines.groups;
    let mut lead: Vec<String> = groups.iter().skip(1).map(|group| against(group, &groups[0])).collect();
    lead.extend(odd(&machines.odd));
    let verdict =
        Subsection { title: conclusion(machines), role: Role::Heading, lead, ..Subsection::default() };
    std::iter::once(verdict).chain(table(machines)).collect()
}

fn conclusion(machines: &Machines) -> String {
    let [quickest, others @ ..] = &machines.groups[..] else { return String::new() };
    let of = format!(
        "{}, over {}",
        machines_of(quickest),
        counted(machines.configurations as u64, "configuration")
    );
    if others.is_empty() {
        return format!("One type: {} ({of}), {}.", name(&quickest.of), spread(quickest));
    }
    let known = others.iter().all(|group| decided(group) == Some(Standing::Slower));
    let how = if known { "Quickest" } else { "Perhaps the quickest" };
    format!("{how}: {} ({of}), {}.", name(&quickest.of), spread(quickest))
}

fn spread(group: &Group) -> String {
    match group.nodes.len() {
        1 => "of which one says nothing of others".to_owned(),
        _ => format!("which lie within {} %", three(group.apart() * 100.0)),
    }
}

fn machines_of(group: &Group) -> String {
    counted(group.nodes.len() as u64, "machine")
}

/// How a type stands to the quickest one, where machines decide it.
fn decided(group: &Group) -> Option<Standing> {
    match &group.against {
        Against::Type(ratio) => Some(ratio.standing(RELEVANT)),
        Against::Itself | Against::Middle { .. } => None,
    }
}

fn against(group: &Group, quickest: &Group) -> String {
    let who = format!("{} ({})", name(&group.of), machines_of(group));
    match &group.against {
        Against::Type(ratio) => {
            let how = match ratio.standing(RELEVANT) {
                Standing::Same { within } => format!("takes the same within {:.1} %", within * 100.0),
                Standing::Inconclusive => {
                    format!("may take as long or not, inconclusive: {}", could_be(*ratio))
                }
                Standing::Slower | Standing::Faster => {
                    format!("takes {} times as long ({})", plain(ratio.estimate), ends(*ratio))
                }
            };
            format!("{who} {how}; its machines lie within {} %.", three(group.apart() * 100.0))
        }
        Against::Middle { slower, faster, of } => format!(
            "{who} takes {} times as long, as far as the middle machine of each goes: slower in {slower} of {} and faster in {faster}. \
             With {} of a type nothing can be said of others: {FEWEST_BLOCKS} are needed.",
            plain(group.times),
            counted(*of as u64, "configuration"),
            machines_of(if group.nodes.len() < quickest.nodes.len() { group } else { quickest }),
        ),
        Against::Itself => String::new(),
    }
}

fn ends(ratio: Ratio) -> String {
    format!("{} to {}", plain(ratio.low), plain(ratio.high))
}

fn odd(odd: &[Odd]) -> Vec<String> {
    let told = |odd: &Odd| {
        format!(
            "{} takes {} times as long as the middle one of its type, in {} of {}",
            odd.name,
            plain(odd.times),
            odd.differs,
            counted(odd.compared as u64, "configuration")
        )
    };
    let named: Vec<String> = odd.iter().take(NAMED).map(told).collect();
    let more = match odd.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {}", counted(more as u64, "more machine")),
    };
    if named.is_empty() { Vec::new() } else { vec![format!("Odd: {}{more}.", named.join("; "))] }
}

/// A type in words, what is known of it.
pub(super) fn name(of: &Type) -> String {
    let cpus = format!("{} CPUs", of.cpus);
    let below = of.hypervisor.as_ref().map(|hypervisor| format!("under {hypervisor}"));
    let parts = [of.product.clone(), of.processor.clone(), Some(cpus), below];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn table(machines: &Machines) -> Option<Subsection> {
    let columns =
        vec![word("machine"), number("times as long").keep(3), number("results"), word("type").keep(1)];
    let mut table = Table::new(columns);
    for group in &machines.groups {
        for node in &group.nodes {
            table.row(vec![
                node.name.clone(),
                plain(node.times),
                count(node.results.len() as u64),
                name(&group.of),
            ]);
        }
    }
    let note = "As long as the middle machine of all, by the median over the configurations that all of them ran. Odd: most of \
                its configurations differ from those of the middle machine of its type.";
    Subsection::of_table("Each machine", table, vec![note.to_owned()])
}

/// The same for programs.
pub fn verdict(machines: &Machines, provisional: bool) -> Stored {
    let open = machines.groups.iter().skip(1).any(|group| {
        !matches!(decided(group), Some(Standing::Slower | Standing::Faster | Standing::Same { .. }))
    });
    let findings = machines.groups.iter().map(|group| {
        let status = match (&group.against, decided(group)) {
            (Against::Itself, _) => Status::Answered,
            (_, None | Some(Standing::Inconclusive)) => Status::Inconclusive,
            (_, Some(_)) => Status::Answered,
        };
        let interval = match &group.against {
            Against::Type(ratio) => Some([ratio.low, ratio.high]),
            Against::Itself | Against::Middle { .. } => None,
        };
        Finding::new(name(&group.of), "times as long as the quickest type".to_owned(), status, "ratio")
            .valued(group.times, interval)
            .because(spread(group))
    });
    Stored {
        status: if open || provisional { Status::Inconclusive } else { Status::Answered },
        reason: std::iter::once(conclusion(machines)).chain(odd(&machines.odd)).collect::<Vec<_>>().join(" "),
        provisional,
        findings: findings.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use crate::subsection::brief;
    use doorbell_results::record::{ResultFile, sample};
    use doorbell_verdict::machines::machines;

    fn on(host: &str, model: &str, ns: f64) -> ResultFile {
        let configurations = ["futex", "pipe"].map(sample::configuration);
        let mut result =
            sample::result(&configurations, 8, |_, block| ns * (1.0 + 0.002 * f64::from(block % 3)));
        result.machine.host = Some(host.to_owned());
        result.machine.processor.model_name = Some(model.to_owned());
        result
    }

    fn told(files: &[ResultFile]) -> String {
        let laid = machines(&files.iter().collect::<Vec<_>>()).unwrap();
        brief(&subsections(&laid), 12, &Style { width: 400, ..Style::PLAIN })
    }

    #[test]
    fn what_to_buy_and_what_to_send_back_stand_in_the_first_lines() {
        let old = (0..7).map(|node| on(&format!("old-{node}"), "Old", 6000.0 + f64::from(node)));
        let new = (0..7).map(|node| {
            on(&format!("new-{node}"), "New", if node == 4 { 5600.0 } else { 5000.0 + f64::from(node) })
        });
        let files: Vec<ResultFile> = old.chain(new).collect();
        let text = told(&files);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("Quickest: New, "), "{text}");
        assert!(lines[0].contains("(7 machines, over 2 configurations), which lie within 12 %"), "{text}");
        assert!(lines[1].starts_with("Old, ") && lines[1].contains("takes 1.20 times as long"), "{text}");
        assert!(text.contains("Odd: new-4 takes 1.12 times as long"), "{text}");
    }

    #[test]
    fn of_two_machines_it_says_that_they_are_too_few() {
        let text = told(&[on("a", "A", 5000.0), on("b", "B", 6000.0)]);
        assert!(
            text.contains("1.2") && text.contains("nothing can be said of others: 6 are needed"),
            "{text}"
        );
        assert!(!text.contains("Odd"), "{text}");
    }
}
