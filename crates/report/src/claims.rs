// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims of others beside a result, for the terminal.

use super::style::Style;
use doorbell_results::record::ResultFile;
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

/// What became of the claims that the run could speak to, in a line; empty where there are none. Each of them is in the report.
pub fn text(result: &ResultFile, style: &Style) -> String {
    let judged = claims::judge(result);
    if judged.is_empty() {
        return String::new();
    }
    let text =
        format!("Published claims checked against this run: {}; `doorbell report` has each.", tally(&judged));
    format!("\n{}", style.wrap(&text, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_claims_stand_in_a_line_and_other_experiments_have_none() {
        let text = text(&sample::result("fanout", Vec::new()), &Style { width: 120, ..Style::PLAIN });
        assert!(text.contains("0 confirmed here") && text.contains("cannot be decided here"), "{text}");
        assert_eq!(super::text(&sample::result("ping", Vec::new()), &Style::PLAIN), "");
    }
}
