// SPDX-License-Identifier: MIT OR Apache-2.0
//! What many results, of any machines, say of all claims together.

use std::collections::HashMap;

use doorbell_results::record::ResultFile;

use super::{Claim, Decision, SOURCES, Source, judge, source};

/// What one result says of a claim that it decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The name that the result goes by.
    pub by: String,
    pub decision: Decision,
    pub evidence: String,
}

#[derive(Debug)]
pub struct Entry {
    pub claim: &'static Claim,
    pub words: Vec<Word>,
    /// Why the last result that could have spoken does not decide it; none if there was none.
    pub why_not_decided: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    Open,
    Confirmed,
    Contradicted,
    /// Some machines confirm it, others contradict it.
    Both,
}

impl Standing {
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Confirmed => "confirmed",
            Self::Contradicted => "contradicted",
            Self::Both => "both, by machine",
        }
    }
}

impl Entry {
    pub fn standing(&self) -> Standing {
        let has = |decision| self.words.iter().any(|word| word.decision == decision);
        match (has(Decision::Confirmed), has(Decision::Contradicted)) {
            (false, false) => Standing::Open,
            (true, false) => Standing::Confirmed,
            (false, true) => Standing::Contradicted,
            (true, true) => Standing::Both,
        }
    }
}

/// Every claim of every source.
#[derive(Debug)]
pub struct Ledger {
    pub sources: Vec<(&'static Source, Vec<Entry>)>,
    /// Runs that were taken, by when and where they began, and the name of each.
    taken: HashMap<(u64, Option<String>), String>,
}

impl Default for Ledger {
    fn default() -> Self {
        let entry = |claim| Entry { claim, words: Vec::new(), why_not_decided: None };
        let entries = |source: &'static Source| (source, source.claims.iter().map(entry).collect());
        Self { sources: SOURCES.into_iter().map(entries).collect(), taken: HashMap::new() }
    }
}

impl Ledger {
    /// Takes `result`, which goes by the name `by`; an error says why it speaks to no claim.
    pub fn add(&mut self, by: &str, result: &ResultFile) -> Result<(), String> {
        let run = (result.started_at_unix_ns, result.machine.host.clone());
        if let Some(other) = self.taken.get(&run) {
            return Err(format!("is the run of {other} again"));
        }
        let Some(source) = source(result) else {
            return Err(format!("a run of '{}' as this one speaks to no claim", result.plan.experiment));
        };
        self.taken.insert(run, by.to_owned());
        let own = self.sources.iter_mut().find(|(other, _)| other.name == source.name);
        for (entry, judged) in own.into_iter().flat_map(|(_, entries)| entries).zip(judge(result)) {
            let word = Word { by: by.to_owned(), decision: judged.decision, evidence: judged.evidence };
            match word.decision {
                Decision::CannotTell => entry.why_not_decided = Some(format!("{by}: {}", word.evidence)),
                _ => entry.words.push(word),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::semaphores;
    use super::*;
    use doorbell_results::record::sample;

    fn run(host: &str) -> ResultFile {
        let mut result = sample::result(&[], 1, |_, _| 1000.0);
        result.plan.claims = Some(semaphores::SOURCE.name.to_owned());
        result.machine.host = Some(host.to_owned());
        result
    }

    #[test]
    fn every_claim_is_open_until_a_result_decides_it_and_none_counts_twice() {
        let mut ledger = Ledger::default();
        let claims: usize = ledger.sources.iter().map(|(_, entries)| entries.len()).sum();
        let all: usize = SOURCES.iter().map(|source| source.claims.len()).sum();
        assert_eq!(claims, all);
        ledger.add("a.json", &run("node1")).unwrap();
        assert_eq!(ledger.add("b.json", &run("node1")), Err("is the run of a.json again".to_owned()));
        ledger.add("c.json", &run("node2")).unwrap();
        let entries =
            &ledger.sources.iter().find(|(source, _)| source.name == semaphores::SOURCE.name).unwrap().1;
        for entry in entries {
            let why = entry.why_not_decided.as_deref().unwrap_or_default();
            // A run without a record decides nothing.
            assert!(entry.standing() == Standing::Open && why.starts_with("c.json: "), "{entry:?}");
        }
        let mut other = run("node3");
        other.plan.claims = None;
        assert!(ledger.add("d.json", &other).unwrap_err().contains("speaks to no claim"));
    }

    #[test]
    fn machines_that_differ_are_both_told() {
        let word = |decision| Word { by: String::new(), decision, evidence: String::new() };
        let claim = &SOURCES[0].claims[0];
        let of = |decisions: &[Decision]| {
            Entry { claim, words: decisions.iter().copied().map(word).collect(), why_not_decided: None }
                .standing()
        };
        use Decision::{Confirmed, Contradicted};
        assert_eq!(of(&[Confirmed, Confirmed]), Standing::Confirmed);
        assert_eq!(of(&[Contradicted]), Standing::Contradicted);
        assert_eq!(of(&[Confirmed, Contradicted]), Standing::Both);
    }
}
