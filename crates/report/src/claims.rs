// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims of others beside a result, for the terminal.

use super::style::{Role, Style};
use super::table::{Align, Column, Table};
use doorbell_results::record::ResultFile;
use doorbell_verdict::claims::{self, Judged};

/// How many claims were ruled how, in words.
pub fn tally(judged: &[Judged]) -> String {
    use claims::Ruling::{CannotTell, Confirmed, Contradicted};
    [Confirmed, Contradicted, CannotTell]
        .map(|ruling| {
            let number = judged.iter().filter(|judged| judged.ruling == ruling).count();
            format!("{number} {}", ruling.name())
        })
        .join(", ")
}

/// The claims that the run could speak to, each with its ruling and what it rests on; empty where there are none.
pub fn text(result: &ResultFile, style: &Style) -> String {
    let judged = claims::judge(result);
    let Some(source) = claims::source(result.plan.layout).filter(|_| !judged.is_empty()) else {
        return String::new();
    };
    let mut out = format!("\n{}\n", style.paint(Role::Heading, "Claims of others, held against this run"));
    out.push_str(&style.wrap(&format!("Of {}. {}.", source.about, tally(&judged)), 0));
    let mut table = Table::new(vec![
        Column::new("row", Align::Right),
        Column::new("claim", Align::Left),
        Column::new("ruling", Align::Left),
    ]);
    for judged in &judged {
        let row = judged.claim.row.map_or_else(String::new, |row| row.to_string());
        // The claim over the evidence: both are sentences, and side by side there is no room for two.
        let room = style.width.saturating_sub(30).clamp(30, 90);
        let narrow = Style { width: room, ..*style };
        let mut lines: Vec<String> = narrow.wrap(judged.claim.says, 0).lines().map(str::to_owned).collect();
        lines.extend(narrow.wrap(&judged.evidence, 2).lines().map(str::to_owned));
        for (index, line) in lines.into_iter().enumerate() {
            let first = index == 0;
            let ruling = if first { judged.ruling.name().to_owned() } else { String::new() };
            table.row(vec![if first { row.clone() } else { String::new() }, line, ruling]);
        }
    }
    out.push_str(&table.render(style));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn each_claim_stands_with_its_ruling_and_other_experiments_have_none() {
        let result = sample::result("fanout", Vec::new());
        let text = text(&result, &Style { width: 120, ..Style::PLAIN });
        assert!(
            text.contains("Windows") && text.contains("cannot be told here") && text.contains("runs Linux"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
        assert_eq!(super::text(&sample::result("ping", Vec::new()), &Style::PLAIN), "");
    }
}
