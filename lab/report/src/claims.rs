// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims of others beside a result, for the terminal.

use serde_json::{Value, json};

use super::fleet::LeftOut;
use super::style::{Role, Style};
use super::subsection::Subsection;
use doorbell_results::record::ResultFile;
use doorbell_verdict::claims::ledger::{Entry, Ledger, Standing};
use doorbell_verdict::claims::{self, Judged};

/// How many claims were ruled how, in words.
pub fn tally(judged: &[Judged]) -> String {
    use claims::Decision::{CannotTell, Confirmed, Contradicted};
    [Confirmed, Contradicted, CannotTell]
        .map(|decision| {
            let number = judged.iter().filter(|judged| judged.decision == decision).count();
            format!("{number} {}", decision.name())
        })
        .join(", ")
}

/// What became of the claims that the run could speak to, in a line; none where there are none.
/// Each of them is in the report.
pub fn subsection(result: &ResultFile) -> Option<Subsection> {
    let judged = claims::judge(result);
    let text =
        format!("Published claims checked against this run: {}; `doorbell report` has each.", tally(&judged));
    Subsection::of_lines("", vec![text]).filter(|_| !judged.is_empty())
}

fn asked(entries: &[Entry], open: bool) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(move |entry| !open || entry.standing() == Standing::Open)
}

/// How every claim of every source stands, and what was not taken.
pub fn ledger(claims: &Ledger, open: bool, left_out: &[LeftOut], style: &Style) -> String {
    let mut out = String::new();
    for (source, entries) in &claims.sources {
        let standings = [Standing::Confirmed, Standing::Contradicted, Standing::Both, Standing::Open];
        let tally = standings.map(|standing| {
            let number = entries.iter().filter(|entry| entry.standing() == standing).count();
            format!("{number} {}", standing.name())
        });
        out.push_str(&style.wrap(&format!("{}: {}. {}.", source.name, tally.join(", "), source.about), 0));
        for entry in asked(entries, open) {
            let row = entry.claim.row.map_or_else(String::new, |row| format!(" (row {row})"));
            out.push_str(&style.wrap(&format!("{}: {}{row}", entry.standing().name(), entry.claim.says), 2));
            for word in &entry.words {
                out.push_str(
                    &style.wrap(&format!("{}: {}: {}", word.by, word.decision.name(), word.evidence), 4),
                );
            }
            if let Some(why) = entry.why_not_decided.as_ref().filter(|_| entry.words.is_empty()) {
                out.push_str(&style.wrap(why, 4));
            }
        }
        if entries.iter().any(|entry| entry.standing() == Standing::Open) {
            out.push_str(&style.wrap(&format!("Open ones take {}:", source.machine), 2));
            out.push_str(&format!("    {}\n", source.command));
        }
        out.push('\n');
    }
    for LeftOut { file, reason } in left_out {
        out.push_str(&style.paint(Role::Warning, &style.wrap(&format!("Left out: {file}: {reason}"), 0)));
    }
    out
}

/// The same for other programs.
pub fn ledger_json(claims: &Ledger, open: bool, left_out: &[LeftOut]) -> Value {
    let entry = |entry: &Entry| {
        let words = entry.words.iter();
        let words = words
            .map(|word| json!({"by": word.by, "decision": word.decision.name(), "evidence": word.evidence}));
        json!({
            "row": entry.claim.row, "says": entry.claim.says, "standing": entry.standing().name(),
            "by": words.collect::<Vec<_>>(), "cannot_be_decided_here": entry.why_not_decided,
        })
    };
    let sources = claims.sources.iter().map(|(source, entries)| {
        json!({
            "name": source.name, "about": source.about, "command": source.command, "machine": source.machine,
            "claims": asked(entries, open).map(entry).collect::<Vec<_>>(),
        })
    });
    let left_out = left_out.iter().map(|left_out| json!({"file": left_out.file, "reason": left_out.reason}));
    json!({"sources": sources.collect::<Vec<_>>(), "left_out": left_out.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn every_open_claim_has_a_command_and_what_was_left_out_is_named() {
        let left_out = [LeftOut { file: "cut.json".to_owned(), reason: "ends too soon".to_owned() }];
        let style = Style { width: 120, ..Style::PLAIN };
        let claims = Ledger::default();
        let text = ledger(&claims, true, &left_out, &style);
        for (source, entries) in &claims.sources {
            assert!(text.contains(&format!("    {}\n", source.command)), "{text}");
            assert!(
                text.contains(&format!(
                    "{}: 0 confirmed, 0 contradicted, 0 both, by machine, {} open.",
                    source.name,
                    entries.len()
                )),
                "{text}"
            );
        }
        assert!(text.ends_with("Left out: cut.json: ends too soon\n"), "{text}");
        assert_eq!(ledger_json(&claims, false, &left_out)["left_out"][0]["file"], "cut.json");
    }

    #[test]
    fn the_claims_stand_in_a_line_and_other_experiments_have_none() {
        let told = subsection(&sample::result("fanout", Vec::new())).expect("claims");
        let text = &told.lead[0];
        assert!(text.contains("0 confirmed here") && text.contains("cannot be decided here"), "{text}");
        assert!(subsection(&sample::result("ping", Vec::new())).is_none());
    }
}
