// SPDX-License-Identifier: MIT OR Apache-2.0
//! What others have claimed, held against a result: confirmed here, contradicted here, or cannot be told here.
//!
//! A result is a function of the result alone. A claim about every scene is contradicted by one scene and confirmed only
//! by all of them; a figure too near a claim's bound decides nothing.

use doorbell_results::record::ResultFile;

pub mod coroutines;
pub mod idling;
pub mod polling;
pub mod semaphores;

/// What a result says of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Confirmed,
    /// The result shows the opposite.
    Contradicted,
    /// The result does not decide it.
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
    judge: fn(&ResultFile) -> (Decision, String),
}

/// A claim with its result.
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
    /// What it is, in a sentence.
    pub about: &'static str,
    pub claims: &'static [Claim],
}

/// Every source. The one list to extend.
static SOURCES: [&Source; 4] = [&semaphores::SOURCE, &coroutines::SOURCE, &polling::SOURCE, &idling::SOURCE];

/// The source whose claims `result` can speak to.
pub fn source(result: &ResultFile) -> Option<&'static Source> {
    let name = result.plan.claims.as_deref()?;
    SOURCES.into_iter().find(|source| source.name == name)
}

/// Every claim that `result` could speak to, judged; empty for experiments that nobody has made claims about.
pub fn judge(result: &ResultFile) -> Vec<Judged> {
    let claims = source(result).map_or(&[] as &[Claim], |source| source.claims);
    claims
        .iter()
        .map(|claim| {
            let (decision, evidence) = (claim.judge)(result);
            Judged { claim, decision, evidence }
        })
        .collect()
}

/// How near a bound a figure decides nothing: the mean of twenty rounds moves by as much from one run to the next. Of a count of
/// instructions, too, which repeats exactly but is no time: what an instruction takes differs by more.
const TOO_NEAR: f64 = 0.05;

/// Whether the clock of the result is instructions, so that another run gives the same figures.
fn counts_instructions(result: &ResultFile) -> bool {
    result.machine.virtualisation.vm.as_ref().is_some_and(|vm| vm.deterministic)
}

/// Whether `value` is surely below `bound`, surely above, or too near.
fn against(value: f64, bound: f64) -> Option<std::cmp::Ordering> {
    match value / bound {
        ratio if ratio < 1.0 - TOO_NEAR => Some(std::cmp::Ordering::Less),
        ratio if ratio > 1.0 + TOO_NEAR => Some(std::cmp::Ordering::Greater),
        _ => None,
    }
}
