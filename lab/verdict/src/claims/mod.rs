// SPDX-License-Identifier: MIT OR Apache-2.0
//! What others have claimed, held against a result: confirmed here,
//! contradicted here, or cannot be decided here.
//!
//! A claim is data: which figures it speaks of, where they must lie, and how many of them decide
//! it. One judge decides all of them, and a decision is a function of the result alone.

use doorbell_results::record::ResultFile;

/// A table of claims: the row, what is said, how many figures decide,
/// where they must lie, and what reads them.
macro_rules! claims {
    ($($row:expr, $says:expr, $rule:ident $bound:expr, $figures:expr;)*) => {
        &[$(super::Claim { row: $row, says: $says, rule: super::Rule::$rule, bound: $bound, figures: $figures }),*]
    };
}

pub mod coroutines;
pub mod idling;
pub mod ledger;
pub mod polling;
pub mod semaphores;

/// What a result says of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Confirmed,
    Contradicted,
    CannotTell,
}

impl Decision {
    pub fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed here",
            Self::Contradicted => "contradicted here",
            Self::CannotTell => "cannot be decided here",
        }
    }
}

#[derive(Debug)]
pub struct Claim {
    /// Its row in the list of the source's figures; none for what the source says without a figure.
    pub row: Option<u32>,
    pub says: &'static str,
    rule: Rule,
    bound: Bound,
    figures: Figures,
}

/// The figures of a result that a claim speaks of; an error is why it
/// has none, or why none can decide.
type Figures = fn(&ResultFile) -> Result<Reading, String>;

/// How many figures decide.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// One outside contradicts; only all of them confirm, and only where none is missing.
    Every,
    /// All of them on one side of the bound, or nothing is decided.
    Together,
    /// One confirms; none contradicts.
    Any,
    /// One confirms; that none does says something of this run alone.
    Seen,
}

/// Where figures agree with a claim. Which are too near a bound to decide is a share of it: figures
/// agree as far as `inside` within both ends (beyond them where it is negative), and disagree from
/// `outside` beyond one on.
#[derive(Debug, Clone, Copy)]
struct Bound {
    least: f64,
    most: f64,
    inside: f64,
    outside: f64,
}

/// How near a bound a figure decides nothing: the mean of twenty rounds moves by as much from one
/// run to the next. Of a count of instructions, too, which repeats exactly but is no time: what an
/// instruction takes differs by more.
const TOO_NEAR: f64 = 0.05;

impl Bound {
    /// Times between both, or too near one of them.
    const fn between(least: f64, most: f64) -> Self {
        Self { least, most, inside: TOO_NEAR, outside: TOO_NEAR }
    }
    const fn below(most: f64) -> Self {
        Self::between(f64::NEG_INFINITY, most)
    }
    const fn above(least: f64) -> Self {
        Self::between(least, f64::INFINITY)
    }
    /// Numbers without an error: these and what lies between.
    const fn exactly(least: f64, most: f64) -> Self {
        Self { least, most, inside: 0.0, outside: 0.0 }
    }
    /// A figure that is given with a range, or rounded: so far beyond it agrees still.
    const fn about(least: f64, most: f64, beyond: f64) -> Self {
        Self { least, most, inside: -beyond, outside: beyond }
    }

    /// Whether `figure` agrees; none where it is too near, or not seen at all.
    fn holds(&self, figure: Option<f64>) -> Option<bool> {
        let figure = figure?;
        if figure < self.least * (1.0 - self.outside) || figure > self.most * (1.0 + self.outside) {
            return Some(false);
        }
        let agrees = figure >= self.least * (1.0 + self.inside) && figure <= self.most * (1.0 - self.inside);
        agrees.then_some(true)
    }
}

#[derive(Debug, Default)]
struct Reading {
    /// In words, with values.
    seen: String,
    /// Each figure and what it is of; no figure where it is too small to be seen.
    figures: Vec<(String, Option<f64>)>,
    /// How many more the claim speaks of.
    missing: usize,
}

impl Reading {
    fn one(figure: impl Into<Option<f64>>, seen: String) -> Self {
        Self { seen, figures: vec![(String::new(), figure.into())], missing: 0 }
    }
}

impl Claim {
    /// `more` brings what is missing.
    fn judge(&self, result: &ResultFile, more: &str) -> (Decision, String) {
        use Decision::{CannotTell, Confirmed, Contradicted};
        let Reading { seen, figures, missing } = match (self.figures)(result) {
            Ok(reading) if reading.figures.is_empty() => {
                return (CannotTell, format!("nothing that it speaks of was measured ({more})"));
            }
            Ok(reading) => reading,
            Err(why) => return (CannotTell, why),
        };
        let side = |side| figures.iter().filter(move |(_, figure)| self.bound.holds(*figure) == side);
        let (all, agree, differ) = (figures.len(), side(Some(true)).count(), side(Some(false)).count());
        let decision = match self.rule {
            Rule::Every if differ > 0 => Contradicted,
            Rule::Together if differ == all => Contradicted,
            Rule::Every | Rule::Together if agree == all && missing == 0 => Confirmed,
            Rule::Any | Rule::Seen if agree > 0 => Confirmed,
            Rule::Any => Contradicted,
            _ => CannotTell,
        };
        let mut evidence = seen;
        match all {
            1 if agree + differ == 0 => evidence += "; too near what is claimed",
            1 => {}
            _ if agree == all => evidence += &format!("; all {all} agree with the claim"),
            _ => evidence += &format!("; {agree} of {all} agree with the claim"),
        }
        if let Some((first, _)) = side(Some(false)).next().filter(|_| all > 1) {
            evidence += &format!(", {differ} do not, such as {first}");
        }
        if all > 1 && agree + differ < all {
            evidence += &format!(", {} are too near to tell", all - agree - differ);
        }
        if missing > 0 {
            evidence += &format!("; {missing} that it speaks of are missing ({more})");
        }
        if matches!(self.rule, Rule::Seen) && decision == CannotTell {
            evidence += "; which alone contradicts nothing";
        }
        (decision, evidence)
    }
}

#[derive(Debug)]
pub struct Judged {
    pub claim: &'static Claim,
    pub decision: Decision,
    /// What it rests on, with values.
    pub evidence: String,
}

#[derive(Debug)]
pub struct Source {
    /// The name by which a plan says that its result can speak to these claims.
    pub name: &'static str,
    pub about: &'static str,
    /// What measures all that the claims speak of.
    more: &'static str,
    /// The command that does, for who has the machine.
    pub command: &'static str,
    pub machine: &'static str,
    pub claims: &'static [Claim],
}

/// Every source. The one list to extend.
static SOURCES: [&Source; 4] = [&semaphores::SOURCE, &coroutines::SOURCE, &polling::SOURCE, &idling::SOURCE];

pub fn source(result: &ResultFile) -> Option<&'static Source> {
    let name = result.plan.claims.as_deref()?;
    SOURCES.into_iter().find(|source| source.name == name)
}

/// Every claim that `result` could speak to, judged; empty for
/// experiments that nobody has made claims about.
pub fn judge(result: &ResultFile) -> Vec<Judged> {
    let Some(source) = source(result) else { return Vec::new() };
    let judged = source.claims.iter().map(|claim| {
        let (decision, evidence) = claim.judge(result, source.more);
        Judged { claim, decision, evidence }
    });
    judged.collect()
}

/// Whether the clock of the result is instructions, so that another run gives the same figures.
fn counts_instructions(result: &ResultFile) -> bool {
    result.machine.virtualisation.vm.as_ref().is_some_and(|vm| vm.deterministic)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What became of the claim that says `words`.
    pub(super) fn decided(result: &ResultFile, words: &str) -> (Decision, String) {
        let judged = judge(result).into_iter().find(|judged| judged.claim.says.contains(words)).unwrap();
        (judged.decision, judged.evidence)
    }

    #[test]
    fn a_bound_decides_nothing_near_it_and_an_exact_one_does() {
        let holds = |bound: Bound, figures: [f64; 4]| figures.map(|figure| bound.holds(Some(figure)));
        assert_eq!(holds(Bound::below(10.0), [9.4, 9.6, 10.4, 10.6]), [Some(true), None, None, Some(false)]);
        assert_eq!(holds(Bound::above(10.0), [9.4, 9.6, 10.4, 10.6]), [Some(false), None, None, Some(true)]);
        assert_eq!(
            holds(Bound::exactly(10.0, f64::INFINITY), [0.0, 9.9, 10.0, 99.0]),
            [false, false, true, true].map(Some)
        );
        assert_eq!(
            holds(Bound::about(5.0, 5.0, 0.2), [3.9, 4.1, 5.9, 6.1]),
            [false, true, true, false].map(Some)
        );
        assert_eq!(
            Bound::exactly(0.0, 1.0).holds(Some(0.0)),
            Some(true),
            "nothing at all is within a bound from nothing on"
        );
        assert_eq!(Bound::below(10.0).holds(None), None);
    }
}
